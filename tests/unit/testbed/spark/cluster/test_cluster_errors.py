import sys
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from cluster_examples import FOUR, STANDALONE
from py4j.protocol import Py4JError
from refusals import refusals

from workbench.errors import WorkbenchError
from workbench.testbed.spark.cluster import check_log_folder, check_shared, refused
from workbench.testbed.spark.cluster.executors import _on_executors
from workbench.testbed.spark.driver import deployment as driver
from workbench.testbed.spark.driver.process import LEFT


@pytest.fixture
def serving(tmp_path):
    """A driver on a cluster whose file system permits nothing."""
    cluster, places = replace(STANDALONE, event_log="hdfs://n/logs"), {"checkpoint": "hdfs://n/c/workbench-1"}
    spec = SimpleNamespace(budget=FOUR, cluster=cluster, generator=None, quota=None, places=places, folder=tmp_path)
    serving = driver.Driver(MagicMock(), spec)
    serving._spark = MagicMock()
    system = serving._spark._jvm.org.apache.hadoop.fs.Path.return_value.getFileSystem.return_value
    system.create.side_effect = system.delete.side_effect = Py4JError("Permission denied")
    return serving


def test_a_log_that_could_not_be_kept_is_refused_before_anything_is_measured(serving, monkeypatch):
    for name in ("await_executors", "registered", "describe_workers", "check_shared", "pack"):
        monkeypatch.setattr(driver, name, MagicMock())
    with pytest.raises(WorkbenchError, match="event log cannot be kept in hdfs://n/logs: Permission denied") as error:
        serving._await_cluster()
    assert error.value.settings == ("event_log",)


def test_what_cannot_be_put_in_order_at_the_end_is_named(serving, monkeypatch, capsys):
    monkeypatch.setattr(driver, "end_session", MagicMock(side_effect=Py4JError("No space left")))
    serving.end()
    assert capsys.readouterr().out.splitlines() == [
        f"{LEFT}the checkpoints in hdfs://n/c/workbench-1 cannot be removed (Permission denied): remove the folder",
        f"{LEFT}the event log is missing or incomplete in hdfs://n/logs: No space left",
    ]


def test_without_the_file_system_of_s3a_its_package_is_named():
    spark = MagicMock()
    spark._jvm.org.apache.hadoop.util.VersionInfo.getVersion.return_value = "3.5.0"
    system = spark._jvm.org.apache.hadoop.fs.Path.return_value.getFileSystem
    system.side_effect = Py4JError("ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found")
    step = r"S3AFileSystem not found\. Add spark\.jars\.packages: org\.apache\.hadoop:hadoop-aws:3\.5\.0 to your"
    with pytest.raises(WorkbenchError, match=step):
        check_shared(spark, "s3a://bucket/checkpoints", 1)
    with pytest.raises(WorkbenchError, match=step):
        check_log_folder(spark, "s3a://bucket/logs")


@pytest.mark.parametrize("package", ["pyarrow", "numpy"])
def test_workers_without_a_package_that_every_source_needs_are_noticed(monkeypatch, package):
    spark = MagicMock()
    _on_executors(spark, 1)
    (look_there,) = spark.sparkContext.parallelize.return_value.mapPartitions.call_args.args
    assert len(list(look_there(None))) == 1
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=package):
        list(look_there(None))


def test_a_cluster_needs_no_memory_of_this_machine(tmp_path):
    here, there = (SimpleNamespace(folder=tmp_path, cluster=one) for one in (None, STANDALONE))
    assert "Free memory" in str(driver._refused(OSError("gone"), here))
    (tmp_path / "jvm.log").write_text("began\nfull\n")
    assert "refused: gone full. Run the same again; 'workbench" in str(driver._refused(OSError("gone.\nat x"), there))


def raised(text, environment=None):
    raise refused(text, replace(STANDALONE, environment=environment))


PACKED = "packages.tar.gz"
test_what_spark_says_of_a_cluster_is_named_with_the_next_step = refusals(
    raised,
    ("java.io.InvalidClassException: org.apache.spark.deploy; local class incompatible", "runs another version"),
    ("java.lang.ClassNotFoundException: org.apache.spark.rpc.Gone", "runs another version"),
    ("java.lang.ClassNotFoundException: Class com.shop.Codec not found",
     r"class com\.shop\.Codec is missing on the workers of spark://m:7077\. Add .*spark\.jars\.packages"),
    ("java.lang.NoClassDefFoundError: com/shop/Codec", r"class com\.shop\.Codec is missing"),
    ("PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10",
     "Python is of another version than this one: .*3.10"),
    ('java.io.IOException: Cannot run program "/opt/py": error=2', "workers have no such Python: .*/opt/py"),
    ("  ModuleNotFoundError: No module named 'pyarrow'", "lacks a package: .*'pyarrow'. Install it there"),
    ("SparkException: x\nCaused by: java.lang.Error: full", r"failed: java\.lang\.Error: full\. 'workbench doctor"),
    ("Python in worker has different version: 3.9", PACKED, r"packages.tar.gz has a Python of another.* 3\.\d+ \(env"),
    ('Cannot run program "./environment/bin/python": error=2', PACKED, r"no Python that runs on the .*: .*conda-pack"),
    ("ModuleNotFoundError: No module named 'pyarrow'", PACKED, r"lacks a package: .*'pyarrow'. Install it there, and"),
)  # fmt: skip
