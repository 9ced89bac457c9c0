"""An archive of packages for the executors of a cluster: what is refused, what Spark gets, what the driver starts."""

import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from cluster_examples import FOUR, MASTER, SHARED

from workbench import cli
from workbench.errors import WorkbenchError
from workbench.study import study_from
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import Cluster, look_at
from workbench.testbed.spark.cluster import cluster_conf, executors, refused
from workbench.testbed.spark.driver.session import python_of, spark_conf


@pytest.fixture
def packed(tmp_path, monkeypatch):
    """A cluster whose executors get an archive of this folder."""
    monkeypatch.chdir(tmp_path)
    Path("packages.tar.gz").write_bytes(b"packed")
    return Cluster(MASTER, SHARED, environment="packages.tar.gz")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"environment": "/opt/bin/python"}, r"'/opt/bin/python'; it must be an archive that ends in .*, use python"),
        ({"environment": "a#b.zip"}, r"environment is 'a#b.zip'; Spark reads a comma and #.*Rename the file"),
        ({"environment": "a.zip", "python": "python3"}, r"is 'a.zip', and python is 'python3': .*Leave one"),
    ],
)
def test_what_is_no_archive_is_refused(given, message):
    with pytest.raises(WorkbenchError, match=message) as error:
        Cluster(MASTER, SHARED, **given)
    assert error.value.settings[0] == "environment"


def test_an_archive_that_is_missing_is_named_before_anything_starts(packed, capsys):
    SparkTestbed(cluster=packed).check(FOUR)
    Path("packages.tar.gz").unlink()
    missing = r"The environment 'packages.tar.gz' is not a file on this machine.*conda pack -o environment.tar.gz"
    with pytest.raises(WorkbenchError, match=missing):
        SparkTestbed(cluster=packed).check(FOUR)
    with pytest.raises(WorkbenchError, match=missing):
        _ = SparkTestbed(cluster=packed).identity
    (seen,) = look_at(packed, FOUR)
    assert "packages.tar.gz" in seen.fix
    options = ["--master", MASTER, "--checkpoint", SHARED, "--environment", "packages.tar.gz"]
    assert cli.main(["measure", "nexmark:q1", *options]) == 2
    assert "is not a file on this machine" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("master", "key"),
    [(MASTER, "spark.archives"), ("k8s://https://a:1", "spark.archives"), ("yarn", "spark.yarn.dist.archives")],
)
def test_spark_unpacks_it_for_the_executors_and_not_for_the_driver(packed, tmp_path, monkeypatch, master, key):
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    plain = cluster_conf(replace(packed, master=master, environment=None), FOUR, None)
    made = cluster_conf(replace(packed, master=master), FOUR, None)
    prefix = "spark.kubernetes.executor.podNamePrefix"  # random
    assert {name: value for name, value in made.items() if plain.get(name) != value and name != prefix} == {
        key: f"{tmp_path}/packages.tar.gz#environment",
        "spark.pyspark.python": "./environment/bin/python",
        "spark.pyspark.driver.python": sys.executable,
    }


def test_the_driver_starts_its_own_python_by_the_same_name_and_in_the_same_folder(packed, tmp_path):
    (home := tmp_path / "home").mkdir()
    (deployment := tmp_path / "deployment").mkdir()
    os.chdir(home)
    name = python_of(packed, deployment)
    asked = "import os, sys; print(os.getcwd(), sys.executable)"
    said = subprocess.run([name, "-c", asked], cwd=deployment, capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(home), sys.executable]
    option = f'"-Duser.dir={home}"'  # relative paths of a query stay those of this folder
    for cluster, there in ((packed, True), (replace(packed, environment=None), False)):
        conf = spark_conf(FOUR, tmp_path, tmp_path, 4, cluster=cluster)
        assert (option in conf["spark.driver.extraJavaOptions"]) is there


def test_a_measurement_belongs_to_what_the_archive_holds(packed, tmp_path):
    def identity(cluster):
        return SparkTestbed(cluster=cluster).identity

    first = identity(packed)
    (tmp_path / "copy.tgz").write_bytes(b"packed")
    assert identity(replace(packed, environment="copy.tgz")) == first != identity(replace(packed, environment=None))
    (tmp_path / "copy.tgz").write_bytes(b"again!")
    assert identity(replace(packed, environment="copy.tgz")) != first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Python in worker has different version: 3.9", r"packages.tar.gz has a Python of another.* 3\.\d+ \(env"),
        ('Cannot run program "./environment/bin/python": error=2', r"no Python that runs on the workers: .*conda-pack"),
        ("ModuleNotFoundError: No module named 'pyarrow'", r"lacks a package: .*'pyarrow'. Install it there, and pack"),
        ("java.lang.Error: full", r"failed: java\.lang\.Error: full"),
    ],
)
def test_what_its_python_lacks_is_named_with_the_next_step(packed, text, message):
    with pytest.raises(WorkbenchError, match=message):
        raise refused(text, packed)


def test_the_machine_of_a_measurement_names_it(packed, monkeypatch):
    monkeypatch.setattr(executors, "_on_executors", lambda *_: [("cpu", None, 8.0, "Linux 6", "3.11.7")])
    facts = executors.describe_workers(SimpleNamespace(), packed, FOUR).facts
    assert facts == {"Python": "3.11.7", "master": "standalone", "environment": "packages.tar.gz"}


def test_a_study_names_it_and_its_plans_start_with_it(packed):
    study = study_from(
        {"query": "nexmark:q1", "targets": [1e6], "slots": [1, 2, 4], "memory_mb": [1024]}
        | {"master": MASTER, "checkpoint": SHARED, "environment": "packages.tar.gz"}
    )
    assert study.cluster == packed
    assert Cluster(**asdict(packed)) == packed
    with pytest.raises(WorkbenchError, match="environment is given, but the master is 'local'"):
        replace(study, master="local", checkpoint="")
