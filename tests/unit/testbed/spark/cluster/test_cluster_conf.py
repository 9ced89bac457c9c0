"""What Spark is given of a cluster, and what its executors get."""

import os
import socket
import sys
import types
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from cluster_examples import FOUR, KUBERNETES, MASTER, SHARED, STANDALONE, YARN

from workbench.errors import WorkbenchError
from workbench.testbed.spark import Cluster
from workbench.testbed.spark.cluster import cluster_conf, merged_with_yours, pack
from workbench.testbed.spark.cluster.conf import kubernetes, owner, yarn
from workbench.testbed.spark.driver.session import python_of, spark_conf

COMMON = {
    "spark.dynamicAllocation.enabled": "false",
    "spark.speculation": "false",
    "spark.python.authenticate.socketTimeout": "120s",
}


@pytest.mark.parametrize(("seconds", "written"), [(90.5, "91s"), (604_800.0, "604800s"), (0.2, "1s")])
def test_spark_reads_a_wait_in_whole_seconds(seconds, written):
    made = cluster_conf(replace(STANDALONE, allocation_s=seconds), FOUR, None)
    assert made["spark.python.authenticate.socketTimeout"] == written


def test_standalone_is_asked_for_cores_in_all_and_by_executor():
    assert cluster_conf(STANDALONE, FOUR, "10.0.0.1") == COMMON | {
        "spark.driver.host": "10.0.0.1",
        "spark.driver.bindAddress": "10.0.0.1",
        "spark.executor.instances": "4",
        "spark.executor.cores": "1",
        "spark.executor.memory": "615m",
        "spark.task.cpus": "1",
        "spark.cores.max": "4",
    }


def test_kubernetes_limits_cores():
    made = kubernetes(KUBERNETES, FOUR)
    prefix = made.pop("spark.kubernetes.executor.podNamePrefix")
    assert prefix.startswith("workbench-")
    assert made == {
        "spark.submit.deployMode": "client",
        "spark.executor.memoryOverhead": "1203m",
        "spark.kubernetes.executor.request.cores": "2000m",
        "spark.kubernetes.executor.limit.cores": "2000m",
    }
    whole = cluster_conf(replace(KUBERNETES, driver_host="driver.svc"), FOUR, "10.0.0.1")
    assert (whole["spark.driver.host"], whole["spark.driver.bindAddress"]) == ("driver.svc", "10.0.0.1")
    assert (whole["spark.executor.instances"], whole["spark.executor.cores"]) == ("2", "2")


@pytest.mark.parametrize(
    ("given", "environment", "namespace", "owned"),
    [
        ({}, {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "HOSTNAME": "notebook-0"}, "default\n", True),
        ({"spark.kubernetes.namespace": "jobs"}, {"KUBERNETES_SERVICE_HOST": "x", "HOSTNAME": "n"}, "jobs", True),
        ({"spark.kubernetes.namespace": "jobs"}, {"KUBERNETES_SERVICE_HOST": "x", "HOSTNAME": "n"}, "default", False),
        ({"spark.kubernetes.driver.pod.name": "mine"}, {"KUBERNETES_SERVICE_HOST": "x", "HOSTNAME": "n"}, "default",
         False),
        ({}, {"KUBERNETES_SERVICE_HOST": "x", "HOSTNAME": "n"}, None, False),
        ({}, {"HOSTNAME": "desk"}, "default", False),
    ],
)  # fmt: skip
def test_a_pod_owns_the_executors_of_its_namespace_unless_another_is_named(
    tmp_path, given, environment, namespace, owned
):
    if namespace is not None:
        (tmp_path / "namespace").write_text(namespace)
    found = owner(given.get, environment, tmp_path / "namespace")
    assert found == ({"spark.kubernetes.driver.pod.name": environment["HOSTNAME"]} if owned else {})


@pytest.mark.parametrize(("given", "made"), [(None, "-XX:X=1"), ("-Dtrust=/store", "-Dtrust=/store -XX:X=1")])
def test_the_executors_java_options_of_yours_stay(given, made):
    name = "spark.executor.extraJavaOptions"
    assert merged_with_yours(STANDALONE, {name: given}.get, "-XX:X=1") == {name: made}
    assert name not in spark_conf(FOUR, Path("/folder"), Path("/disk"), 4, cluster=STANDALONE, address="10.0.0.1")


def test_yarn_needs_the_configuration_that_names_the_cluster():
    with pytest.raises(WorkbenchError, match="neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"):
        yarn(YARN, FOUR, {})
    assert yarn(YARN, FOUR, {"YARN_CONF_DIR": "/etc/hadoop"})["spark.executor.memoryOverhead"] == "2048m"


def test_executors_get_nothing_of_this_machines_folders(tmp_path):
    folder, disk = tmp_path / "folder", tmp_path / "disk"
    made = spark_conf(FOUR, folder, disk, 4, cluster=STANDALONE, address="10.0.0.1")
    executors = {key: value for key, value in made.items() if "xecutor" in key or "fs." in key}
    assert not [key for key, value in executors.items() if str(tmp_path) in value]
    assert made["spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"] == "409"  # of one executor
    assert made["spark.eventLog.dir"] == (folder / "eventlog").as_uri()  # the driver's process writes it


def test_the_users_modules_are_shipped_and_nothing_installed(tmp_path):
    (tmp_path / "shop" / "deep").mkdir(parents=True)
    for name in ("jobs.py", "shop/__init__.py", "shop/late.py", "shop/deep/__init__.py"):
        (tmp_path / name).write_text("")
    modules = [types.ModuleType("jobs"), types.ModuleType("shop"), types.ModuleType("builtin"), pytest, socket]
    os.utime(tmp_path / "jobs.py", (0, 0))  # before zip files know the time
    modules[0].__file__, modules[1].__file__ = str(tmp_path / "jobs.py"), str(tmp_path / "shop" / "__init__.py")
    names = zipfile.ZipFile(pack(tmp_path, modules)).namelist()
    ours = {name for name in names if not name.startswith("workbench/")}
    assert ours == {"jobs.py", "shop/__init__.py", "shop/late.py", "shop/deep/__init__.py"}
    assert {"workbench/__init__.py", "workbench/workload/source.py"} < {*names}


def test_the_executors_python_is_a_path_that_exists_or_a_name(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin")
    assert python_of(None, tmp_path) == python_of(STANDALONE, tmp_path) == sys.executable
    with pytest.raises(WorkbenchError, match="'/opt/none/python' does not exist on this machine") as error:
        python_of(Cluster(MASTER, SHARED, python="/opt/none/python"), tmp_path)
    assert error.value.settings == ("python",)
    assert python_of(Cluster(MASTER, SHARED, python="python3.11"), tmp_path) == "python3.11"
    assert sys.executable in (tmp_path / "bin" / "python3.11").read_text()
