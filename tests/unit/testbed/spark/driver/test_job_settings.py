"""The configuration with which a deployment starts: what a job brings along, and what the testbed sets."""

import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pyspark.java_gateway
import pytest
from refusals import refusals

from workbench import redaction
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.records import JOINED, MEASURED, OURS, JobSettings
from workbench.study import query_of, study_from
from workbench.study import testbed_of as asked_testbed
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import Cluster, batch_session
from workbench.testbed.spark.driver.session import after_start, at_start, spark_conf
from workbench.testbed.spark.machine.java import bring
from workbench.workload import Query

BUDGET = Budget(2, SlotProfile(1, 1024))
CLUSTER = Cluster("spark://host:7077", "hdfs://host/dir", environment="packages.zip")
MAY_CHANGE = {
    "spark.sql.warehouse.dir",
    "spark.sql.streaming.minBatchesToRetain",
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
}
STUDY = {"query": "jobs:orders", "targets": [1000], "slots": [1, 2], "memory_mb": [1024]}


@pytest.fixture(autouse=True)
def _forget(monkeypatch):
    monkeypatch.setattr(redaction, "_hidden", set())


def conf(**where):
    return spark_conf(BUDGET, Path("/run"), Path("/disk"), 2, **where)


@pytest.mark.parametrize("where", [{}, {"cluster": CLUSTER, "address": "10.0.0.1"}])
def test_each_setting_of_the_testbed_is_refused_joined_or_may_be_changed(where):
    for name in conf(**where):
        refused = any(name == one or (one.endswith(".") and name.startswith(one)) for one in OURS)
        assert refused + (name in JOINED) + (name in MAY_CHANGE) == 1, name


def test_what_starts_a_jvm_has_no_secret_what_follows_has_it_and_without_any_nothing_changes(monkeypatch):
    monkeypatch.setenv("MY_VALUE", "hunter2xyz")
    settings = JobSettings(
        spark={
            "spark.my.thing": "${MY_VALUE}",
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.executor.extraJavaOptions": "-XX:+UseZGC",
        }
    )
    ours = conf()
    started = at_start(ours, settings)
    assert {name for name in started if started[name] != ours.get(name)} == {"spark.executor.extraJavaOptions"}
    assert started["spark.executor.extraJavaOptions"].endswith(" -XX:+UseZGC")
    assert "hunter2xyz" not in str(started)
    then = after_start(ours, settings)
    assert then["spark.my.thing"] == "hunter2xyz"
    assert then["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"
    assert "spark.executor.extraJavaOptions" not in then
    assert re.search(then["spark.redaction.regex"], "spark.my.thing")
    assert re.search(then["spark.redaction.regex"], "spark.PASSWORD")
    assert not re.search(ours["spark.redaction.regex"], "spark.my.thing")
    assert at_start(ours, JobSettings()) == ours
    assert after_start(ours, JobSettings()) == {}
    yours = JobSettings(spark={"spark.sql.streaming.minBatchesToRetain": "100"})
    assert yours.conf(MEASURED)["spark.sql.streaming.minBatchesToRetain"] == "100"


def test_executors_fetch_jars_and_files():
    did = []
    context = SimpleNamespace(
        _jsc=SimpleNamespace(addJar=lambda path: did.append(("jar", path))),
        addPyFile=lambda path: did.append(("py", path)),
        addFile=lambda path: did.append(("file", path)),
    )
    bring(("/x/a.jar",), JobSettings(py_files=("b.py",), files=("/x/c.csv",)), context)
    assert did == [("jar", "/x/a.jar"), ("py", str(Path.cwd() / "b.py")), ("file", "/x/c.csv")]


def test_a_study_passes_them_on_and_they_are_part_of_what_is_compared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "udf.jar").write_bytes(b"one")
    given = {"spark": {"spark.x": True, "spark.y": 3}, "jars": ["udf.jar"], "packages": ["io.delta:delta:4.0.0"]}
    study = study_from({**STUDY, **given})
    assert study.spark == {"spark.x": "true", "spark.y": "3"}
    testbed = asked_testbed(study, lambda _: None)
    assert testbed.settings == study.job_settings
    plain = asked_testbed(study_from(STUDY), lambda _: None)
    assert testbed.identity == f"{plain.identity}, {study.job_settings.identity}"
    assert plain.identity == SparkTestbed(slot_cpus="auto").identity  # as it was before: what is recorded still counts
    (tmp_path / "udf.jar").unlink()
    with pytest.raises(WorkbenchError, match=r"jars has 'udf\.jar', which is not a file here"):
        testbed.check(BUDGET)


test_a_study_refuses_what_cannot_be_passed_on = refusals(
    lambda given: study_from({**STUDY, **given}),
    ({"spark": ["x"]}, "spark is .*; it must be a mapping, such as spark.some.name: value"),
    ({"spark": {"spark.x": [1]}}, "spark: 'spark.x' is .*; it must be a text, a number, true or false"),
    ({"spark": {"spark.executor.cores": 4}}, "spark.executor.cores, which the workbench must set itself"),
    ({"packages": "a:b:1"}, "packages is 'a:b:1'; it must be a list"),
    ({"jars": ["x.jar"], "testbed": "fluid"}, "jars is given, but the fluid testbed starts no Spark"),
)


def test_a_module_finds_its_py_files_here(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", [])
    found = []

    def find(*_, **__):
        found.append(list(sys.path))
        return Query("orders", None, None)

    study = study_from({**STUDY, "py_files": [str(tmp_path / "lib" / "helpers.py"), str(tmp_path / "more.zip")]})
    query_of(study, find)
    assert found == [[str(tmp_path / "lib"), str(tmp_path / "more.zip")]]


def test_the_environment_is_as_it_was(monkeypatch):
    def refuse(*_):
        assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
        raise OSError

    monkeypatch.setattr(pyspark.java_gateway, "launch_gateway", refuse)
    monkeypatch.setenv("JAVA_HOME", os.environ.get("JAVA_HOME", ""))
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    before = dict(os.environ)
    with pytest.raises(OSError), batch_session():  # noqa: PT011 - the one above
        pass
    assert dict(os.environ) == before
