"""What a cluster is given as, what is reached of it, and what Spark and its executors get."""

import math
import os
import socket
import subprocess
import sys
import types
import zipfile
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from cluster_examples import FOUR, KUBERNETES, MASTER, SHARED, STANDALONE, YARN
from py4j.protocol import Py4JError
from refusals import refusals

from workbench import cli
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.records import Executor
from workbench.study import study_from
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import Cluster, look_at
from workbench.testbed.spark.cluster import cluster_conf, executors, merged_with_yours, pack
from workbench.testbed.spark.cluster.executors import Offer, offer_of, refuse, waiting
from workbench.testbed.spark.cluster.settings import owner
from workbench.testbed.spark.driver.session import python_of, spark_conf

STANDALONES = ("mesos://m", "spark://", "spark://m", "spark:/m:7077", "spark://m:7077,n:65536", "yarn-client", "locl")
PODS = ("k8s://", "k8s://api:6443", "k8s://ftp://api", "k8s://https://", "k8s://https://api:99999")
LIMITS = r"allocation_s is .*; it must be at least 0\.001 and at most 604800"


@pytest.mark.parametrize(
    ("given", "message", "setting"),
    [
        *(((master, SHARED), r"must be local, spark://HOST:PORT, k8s://.* or yarn", "master")
          for master in (*STANDALONES, *PODS)),
        ((MASTER,), r"'spark://m:7077' is a cluster, so checkpoints need a folder.*hdfs://", "checkpoint"),
        ((MASTER, "/tmp/here"), r"checkpoint is '/tmp/here'; it must be the URI of a folder", "checkpoint"),
        ((MASTER, "hdfs://key:hidden@[x/y"), r"checkpoint is '\[x/y', which is not a URI\. Correct it", "checkpoint"),
    ],
)  # fmt: skip
def test_a_master_or_a_checkpoint_that_is_none_is_refused_without_credentials(given, message, setting):
    with pytest.raises(WorkbenchError, match=message) as error:
        Cluster(*given)
    assert error.value.settings == (setting,)
    assert "hidden" not in str(error.value)


test_a_wait_that_is_none_or_does_not_end_and_a_password_are_refused = refusals(
    lambda given: Cluster(MASTER, SHARED, **given),
    *(({"allocation_s": seconds}, LIMITS) for seconds in (math.nan, math.inf, -1.0, 0.0, 1e6)),
    ({"event_log": "s3a://key:hunter2@bucket/logs"}, "event_log has a password in its address"),
)


def test_a_budget_becomes_executors_of_one_size_and_addresses_are_those_of_every_master():
    assert STANDALONE.executors(FOUR) == (4, Executor(1, FOUR.profile))
    assert YARN.executors(FOUR) == (1, Executor(4, FOUR.profile))
    with pytest.raises(WorkbenchError, match=r"3 slots cannot fill executors of 2 slots\. Use a multiple of 2"):
        KUBERNETES.executors(Budget(3, FOUR.profile))
    with pytest.raises(WorkbenchError, match=r"A slot has 0\.4 cores; on a cluster it must have whole cores"):
        STANDALONE.executors(Budget(4, SlotProfile(0.4, 1024)))
    testbed = SparkTestbed(cluster=STANDALONE)
    testbed.check(Budget(100, SlotProfile(1, 1024)))
    with pytest.raises(WorkbenchError, match="The heap of 1 slot of 512 MB is 308 MB"):
        testbed.check(Budget(100, SlotProfile(1, 512)))
    with pytest.raises(WorkbenchError, match="on a cluster it must have whole cores"):
        testbed.check(Budget(1, SlotProfile(0.5, 2048)))
    assert Cluster("spark://a:7077,b:7078", SHARED).addresses == (("a", 7077), ("b", 7078))
    assert KUBERNETES.addresses == (("api", 6443),)
    assert replace(KUBERNETES, master="k8s://https://api").addresses == (("api", 443),)
    assert replace(KUBERNETES, master="k8s://http://[::1]/clusters/c1").addresses == (("::1", 80),)
    assert YARN.addresses == ()


def test_each_manager_is_asked_in_its_own_way_and_a_measurement_belongs_to_its_cluster(monkeypatch):
    identity = SparkTestbed(cluster=STANDALONE).identity
    others = [
        Cluster("spark://n:7077", SHARED),
        Cluster(MASTER, SHARED, executor_slots=2),
        Cluster(MASTER, "s3a://b/c"),
    ]
    assert len({identity, *(SparkTestbed(cluster=one).identity for one in others)}) == 4
    assert "master standalone cluster" in identity
    assert "//m" not in identity
    assert cluster_conf(STANDALONE, FOUR, "10.0.0.1") == COMMON | {
        "spark.driver.host": "10.0.0.1",
        "spark.driver.bindAddress": "10.0.0.1",
        "spark.executor.instances": "4",
        "spark.executor.cores": "1",
        "spark.executor.memory": "615m",
        "spark.task.cpus": "1",
        "spark.cores.max": "4",
    }
    made = cluster_conf(replace(KUBERNETES, driver_host="driver.svc"), FOUR, "10.0.0.1")
    assert made.pop("spark.kubernetes.executor.podNamePrefix").startswith("workbench-")
    assert made == COMMON | {
        "spark.driver.host": "driver.svc",
        "spark.driver.bindAddress": "10.0.0.1",
        "spark.executor.instances": "2",
        "spark.executor.cores": "2",
        "spark.executor.memory": "1229m",
        "spark.task.cpus": "1",
        "spark.submit.deployMode": "client",
        "spark.executor.memoryOverhead": "1203m",
        "spark.kubernetes.executor.request.cores": "2000m",
        "spark.kubernetes.executor.limit.cores": "2000m",
    }
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(WorkbenchError, match="neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"):
        cluster_conf(YARN, FOUR, None)
    monkeypatch.setenv("YARN_CONF_DIR", "/etc/hadoop")
    assert cluster_conf(YARN, FOUR, None)["spark.executor.memoryOverhead"] == "2048m"


@pytest.mark.parametrize(
    "servers", ["localhost:9092", "127.0.0.1:9092,[::1]:9093", "localhost.:1", "[::ffff:7f00:1]:1"]
)
def test_a_broker_that_each_executor_would_look_for_on_itself_is_refused(servers):
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = f"127.0.0.1:{server.getsockname()[1]}"
        standalone = Cluster(f"spark://{here}", SHARED)
        assert standalone.reach() == "127.0.0.1"  # the driver's address is that on the way to the master
        standalone.check_servers(servers)  # its workers are on this machine
        # A pod has a loopback of its own, and so has what is behind a tunnel.
        elsewhere = Cluster(f"k8s://https://{here}", SHARED), replace(standalone, driver_host="10.1.2.3")
        for cluster in (YARN, *elsewhere):
            with pytest.raises(WorkbenchError, match=r"broker is at .*, which each executor takes for itself\. Give"):
                cluster.check_servers(servers)
            cluster.check_servers(f"{servers},broker-1:9092")


def workers(count, applications=()):
    return Offer(((2, 2048),) * count, applications)


def test_what_a_cluster_could_never_hold_is_refused_at_once_and_busy_is_told_from_lost():
    refuse(STANDALONE, FOUR, workers(2, ("other", "this")))  # it is only busy
    for budget, offer, message in (
        (FOUR, workers(1), r"4 executors of 1 core and 615 MB of heap\. .* 1 live worker \(2 cores .* use 2 or fewer"),
        (FOUR, Offer(()), "The master has no live worker: start workers"),
        (Budget(4, SlotProfile(1, 8192)), workers(1), r"MB\): use smaller ones, or add workers"),
    ):
        with pytest.raises(WorkbenchError, match=message):
            refuse(STANDALONE, budget, offer)
    busy = waiting(STANDALONE, FOUR, workers(2, ("other", "third", "this")), 1)
    assert "gave 1 of 4 executors of 1 core and 615 MB of heap within 120 s; nothing was measured" in str(busy)
    assert "2 other applications run or wait. Wait until other applications end" in str(busy)
    lost = waiting(STANDALONE, FOUR, workers(2, ("this",)), 0)
    assert "did not register: look into the workers' logs" in str(lost)
    assert busy.settings == lost.settings == ("slots", "allocation_s")


def test_of_several_masters_one_may_be_down():
    both, jvm, standby = Cluster("spark://a:7077,b:7077", SHARED), MagicMock(), MagicMock()
    network = getattr(getattr(jvm.org.apache.spark.rpc, "RpcEnv$"), "MODULE$").create.return_value
    network.setupEndpointRef.side_effect = [Py4JError("a is down"), standby]
    standby.askSync.return_value.workers.return_value = [MagicMock(**{"cores.return_value": 8})]
    assert [cores for cores, _ in offer_of(jvm, both, "").workers] == [8]
    network.setupEndpointRef.side_effect = Py4JError("both are down")
    with pytest.raises(Py4JError, match="both are down"):
        offer_of(jvm, both, "")
    assert network.shutdown.call_count == 2


COMMON = {
    "spark.dynamicAllocation.enabled": "false",
    "spark.speculation": "false",
    "spark.python.authenticate.socketTimeout": "120s",
}


@pytest.mark.parametrize(("seconds", "written"), [(90.5, "91s"), (604_800.0, "604800s"), (0.2, "1s")])
def test_spark_reads_a_wait_in_whole_seconds(seconds, written):
    made = cluster_conf(replace(STANDALONE, allocation_s=seconds), FOUR, None)
    assert made["spark.python.authenticate.socketTimeout"] == written


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


def test_executors_get_the_users_modules_and_nothing_installed_or_of_this_machines_folders(tmp_path):
    folder, disk = tmp_path / "folder", tmp_path / "disk"
    made = spark_conf(FOUR, folder, disk, 4, cluster=STANDALONE, address="10.0.0.1")
    executors = {key: value for key, value in made.items() if "xecutor" in key or "fs." in key}
    assert not [key for key, value in executors.items() if str(tmp_path) in value]
    assert made["spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"] == "409"  # of one executor
    assert made["spark.eventLog.dir"] == (folder / "eventlog").as_uri()  # the driver's process writes it
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
