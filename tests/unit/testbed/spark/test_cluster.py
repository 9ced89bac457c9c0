"""What is asked of a cluster, what is refused before anything starts, and what errors say."""

import socket
import sys
import types
import zipfile
from dataclasses import replace

import pytest

from workbench import cli
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.records import Executor
from workbench.study import study_from
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import Cluster, look_at
from workbench.testbed.spark.cluster import cluster_conf, pack, refused
from workbench.testbed.spark.cluster.kubernetes import conf as kubernetes_conf
from workbench.testbed.spark.cluster.standalone import Offer, Worker, refuse, waiting
from workbench.testbed.spark.cluster.yarn import conf as yarn_conf
from workbench.testbed.spark.session import python_of, spark_conf

MASTER, SHARED = "spark://m:7077", "hdfs://n/checkpoints"
STANDALONE = Cluster(MASTER, SHARED)
KUBERNETES = Cluster("k8s://https://api:6443", SHARED, executor_slots=2)
YARN = Cluster("yarn", SHARED, executor_slots=4)
FOUR = Budget(4, SlotProfile(1, 1024))
COMMON = {
    "spark.dynamicAllocation.enabled": "false",
    "spark.speculation": "false",
    "spark.python.authenticate.socketTimeout": "120s",
}


@pytest.mark.parametrize("master", ["mesos://m", "spark://", "spark://m", "spark:/m:7077", "yarn-client", "locl"])
def test_a_master_that_is_none_is_refused_with_those_there_are(master):
    with pytest.raises(WorkbenchError, match="must be local, spark://HOST:PORT, k8s://https://HOST:PORT or yarn"):
        Cluster(master, SHARED)


def test_checkpoints_need_a_folder_that_all_reach():
    with pytest.raises(WorkbenchError, match=r"'spark://m:7077' is a cluster, so checkpoints need a folder.*hdfs://"):
        Cluster(MASTER)
    with pytest.raises(WorkbenchError, match=r"checkpoint is '/tmp/here'; it must be the URI of a folder") as error:
        Cluster(MASTER, "/tmp/here")
    assert error.value.settings == ("checkpoint",)


def test_no_password_is_taken_because_it_would_be_kept():
    with pytest.raises(WorkbenchError, match="event_log has a password in its address") as error:
        Cluster(MASTER, SHARED, event_log="s3a://key:secret@bucket/logs")
    assert "secret" not in str(error.value)


def test_a_budget_becomes_executors_of_one_size():
    assert STANDALONE.executors(FOUR) == (4, Executor(1, FOUR.profile))
    assert YARN.executors(FOUR) == (1, Executor(4, FOUR.profile))
    with pytest.raises(WorkbenchError, match=r"3 slots do not fill executors of 2 slots\. Use a multiple of 2"):
        KUBERNETES.executors(Budget(3, FOUR.profile))
    with pytest.raises(WorkbenchError, match=r"A slot has 0\.4 cores; on a cluster it must have whole cores"):
        STANDALONE.executors(Budget(4, SlotProfile(0.4, 1024)))


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


def test_kubernetes_limits_cores_and_owns_its_pods_where_the_driver_is_one():
    inside = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "HOSTNAME": "notebook-0"}
    made = kubernetes_conf(KUBERNETES, FOUR, inside)
    prefix = made.pop("spark.kubernetes.executor.podNamePrefix")
    assert prefix.startswith("workbench-")
    assert made == {
        "spark.submit.deployMode": "client",
        "spark.executor.memoryOverhead": "1203m",
        "spark.kubernetes.executor.request.cores": "2000m",
        "spark.kubernetes.executor.limit.cores": "2000m",
        "spark.kubernetes.driver.pod.name": "notebook-0",
    }
    assert "spark.kubernetes.driver.pod.name" not in kubernetes_conf(KUBERNETES, FOUR, {"HOSTNAME": "desk"})
    whole = cluster_conf(replace(KUBERNETES, driver_host="driver.svc"), FOUR, "10.0.0.1")
    assert (whole["spark.driver.host"], whole["spark.driver.bindAddress"]) == ("driver.svc", "10.0.0.1")
    assert (whole["spark.executor.instances"], whole["spark.executor.cores"]) == ("2", "2")


def test_yarn_needs_the_configuration_that_names_the_cluster():
    with pytest.raises(WorkbenchError, match="neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"):
        yarn_conf(YARN, FOUR, {})
    assert yarn_conf(YARN, FOUR, {"YARN_CONF_DIR": "/etc/hadoop"})["spark.executor.memoryOverhead"] == "2048m"


def test_executors_get_nothing_of_this_machines_folders(tmp_path):
    folder, disk = tmp_path / "folder", tmp_path / "disk"
    made = spark_conf(FOUR, folder, disk, 4, cluster=STANDALONE, address="10.0.0.1")
    executors = {key: value for key, value in made.items() if "xecutor" in key or "fs." in key}
    assert not [key for key, value in executors.items() if str(tmp_path) in value]
    assert made["spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"] == "409"  # of one executor
    assert made["spark.eventLog.dir"] == (folder / "eventlog").as_uri()  # the driver's process writes it


def test_addresses_are_those_of_every_master():
    assert Cluster("spark://a:7077,b:7078", SHARED).addresses == (("a", 7077), ("b", 7078))
    assert KUBERNETES.addresses == (("api", 6443),)
    assert YARN.addresses == ()


def test_a_master_that_does_not_answer_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and not listening
        nobody = Cluster(f"spark://127.0.0.1:{taken.getsockname()[1]}", SHARED)
        with pytest.raises(WorkbenchError, match=r"cannot be reached \(127\.0\.0\.1:\d+: Connection refused\)\. Check"):
            nobody.reach()
        (seen,) = look_at(nobody, FOUR)
        assert (seen.thing, seen.found) == ("cluster", "not reached")


def test_the_address_on_the_way_to_the_master_is_the_drivers():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert Cluster(f"spark://127.0.0.1:{server.getsockname()[1]}", SHARED).reach() == "127.0.0.1"


def workers(*free):
    return Offer(tuple(Worker(2, 2048, cores, memory) for cores, memory in free))


def test_what_the_cluster_could_never_hold_is_refused_at_once():
    refuse(STANDALONE, FOUR, workers((0, 0), (0, 0)))  # it is only busy
    with pytest.raises(WorkbenchError, match=r"no room for 4 executors of 1 core and 615 MB of heap\. The master has 1 "
                       r"live worker \(2 of 2 cores and 2048 of 2048 MB free\): use 2 or fewer"):  # fmt: skip
        refuse(STANDALONE, FOUR, workers((2, 2048)))
    with pytest.raises(WorkbenchError, match="The master has no live worker: start workers"):
        refuse(STANDALONE, FOUR, Offer(()))


def test_a_cluster_that_is_busy_is_told_from_one_whose_executors_do_not_come():
    busy = waiting(STANDALONE, FOUR, Offer(workers((0, 800), (1, 800)).workers, ("other", "third")), 1)
    assert "gave 1 of 4 executors of 1 core and 615 MB of heap within 120 s; nothing was measured" in str(busy)
    assert "2 other applications run or wait. Wait until other applications end" in str(busy)
    lost = waiting(STANDALONE, FOUR, workers((2, 2048), (2, 2048)), 0)
    assert "did not register: look into the workers' logs" in str(lost)
    assert busy.settings == lost.settings == ("slots", "allocation_s")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("java.io.InvalidClassException: org.apache.spark.deploy; local class incompatible", "runs another version"),
        ("PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10",
         "Python is of another version than this one: .*3.10"),
        ('java.io.IOException: Cannot run program "/opt/py": error=2', "workers have no such Python: .*/opt/py"),
        ("  ModuleNotFoundError: No module named 'pyarrow'", "lacks a package: .*'pyarrow'. Install it there"),
        ("SparkException: x\nCaused by: java.lang.Error: full", r"failed: java\.lang\.Error: full\. 'workbench doctor"),
    ],
)  # fmt: skip
def test_what_spark_says_of_a_cluster_is_named_with_the_next_step(text, message):
    with pytest.raises(WorkbenchError, match=message):
        raise refused(text, STANDALONE)


def test_the_users_modules_are_shipped_and_nothing_installed(tmp_path):
    (tmp_path / "shop" / "deep").mkdir(parents=True)
    for name in ("jobs.py", "shop/__init__.py", "shop/late.py", "shop/deep/__init__.py"):
        (tmp_path / name).write_text("")
    modules = [types.ModuleType("jobs"), types.ModuleType("shop"), types.ModuleType("builtin"), pytest, socket]
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


def test_a_budget_is_checked_without_the_cluster():
    testbed = SparkTestbed(cluster=STANDALONE)
    testbed.check(Budget(100, SlotProfile(1, 1024)))
    with pytest.raises(WorkbenchError, match="1 slots of 512 MB leave a heap of 308 MB"):
        testbed.check(Budget(100, SlotProfile(1, 512)))
    with pytest.raises(WorkbenchError, match="on a cluster it must have whole cores"):
        testbed.check(Budget(1, SlotProfile(0.5, 2048)))


def test_a_measurement_belongs_to_its_cluster_and_names_no_host():
    identity = SparkTestbed(cluster=STANDALONE).identity
    others = [
        Cluster("spark://n:7077", SHARED),
        Cluster(MASTER, SHARED, executor_slots=2),
        Cluster(MASTER, "s3a://b/c"),
    ]
    assert len({identity, *(SparkTestbed(cluster=one).identity for one in others)}) == 4
    assert "master standalone cluster" in identity
    assert "//m" not in identity


STUDY = {"query": "nexmark:q1", "targets": [1e6], "slots": [1, 2, 4], "memory_mb": [1024], "master": MASTER}


def test_a_study_moves_to_a_cluster_by_its_master():
    study = study_from(STUDY | {"checkpoint": SHARED, "executor_slots": 1})
    assert study.cluster == STANDALONE
    assert (study.slot_cpus, study.shared) == (1.0, False)
    assert study_from({key: value for key, value in STUDY.items() if key != "master"}).cluster is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "checkpoints need a folder"),
        ({"checkpoint": SHARED, "deployment": "shared"}, "on a cluster each budget is deployed apart"),
        ({"checkpoint": SHARED, "testbed": "fluid"}, "the fluid testbed starts no Spark"),
        ({"checkpoint": SHARED, "master": "local"}, "checkpoint is given, but the master is 'local'"),
        ({"checkpoint": SHARED, "executor_slots": 0}, "executor_slots is 0; it must be a whole number of at least 1"),
    ],
)
def test_a_study_that_no_cluster_can_carry_out_is_refused(change, message):
    with pytest.raises(WorkbenchError, match=message):
        study_from(STUDY | change)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--master", MASTER], "(--checkpoint)"),
        (["--checkpoint", SHARED], "is given without a cluster. Give the master"),
        (["--master", MASTER, "--checkpoint", SHARED, "--slot-cpus", "0.4"], "whole cores"),
        (["--master", MASTER, "--checkpoint", SHARED, "--slots", "3", "--executor-slots", "2"], "(--slots, --executor"),
    ],
)
def test_the_command_line_names_its_own_options(options, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["measure", "nexmark:q1", *options]) == 2
    assert message in capsys.readouterr().err


def test_the_doctor_of_a_cluster_says_why_it_cannot_measure(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{taken.getsockname()[1]}"
        assert cli.main(["doctor", "--master", master, "--checkpoint", SHARED]) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert "The cluster cannot measure yet: cluster." in said
    assert f"The master {master} cannot be reached" in said
