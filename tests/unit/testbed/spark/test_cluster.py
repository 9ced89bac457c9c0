"""What is asked of a cluster, what is refused before anything starts, and what errors say."""

import json
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
from py4j.protocol import Py4JError

from workbench import cli
from workbench.cli import planning
from workbench.dataflow import Budget, SlotProfile
from workbench.defaults import SLOT_CPUS
from workbench.errors import WorkbenchError
from workbench.records import Executor
from workbench.study import study_from
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import Cluster, driver, look, look_at
from workbench.testbed.spark.cluster import beside_yours, check_log_folder, check_shared, cluster_conf, pack, refused
from workbench.testbed.spark.cluster.executors import _on_executors
from workbench.testbed.spark.cluster.kubernetes import conf as kubernetes_conf
from workbench.testbed.spark.cluster.kubernetes import owner
from workbench.testbed.spark.cluster.standalone import Offer, Worker, offer_of, refuse, waiting
from workbench.testbed.spark.cluster.yarn import conf as yarn_conf
from workbench.testbed.spark.look import check_authentication
from workbench.testbed.spark.process import LEFT
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


@pytest.mark.parametrize(
    "master",
    [
        "mesos://m",
        "spark://",
        "spark://m",
        "spark:/m:7077",
        "spark://m:7077,n:65536",
        "yarn-client",
        "locl",
        "k8s://",
        "k8s://api:6443",
        "k8s://ftp://api",
        "k8s://https://",
        "k8s://https://api:99999",
    ],
)
def test_a_master_that_is_none_is_refused_with_those_there_are(master):
    with pytest.raises(WorkbenchError, match="must be local, spark://HOST:PORT, k8s://https://HOST:PORT or yarn"):
        Cluster(master, SHARED)


def test_checkpoints_need_a_folder_that_all_reach():
    with pytest.raises(WorkbenchError, match=r"'spark://m:7077' is a cluster, so checkpoints need a folder.*hdfs://"):
        Cluster(MASTER)
    with pytest.raises(WorkbenchError, match=r"checkpoint is '/tmp/here'; it must be the URI of a folder") as error:
        Cluster(MASTER, "/tmp/here")
    assert error.value.settings == ("checkpoint",)


def test_an_address_that_is_no_uri_is_named_without_its_credentials():
    with pytest.raises(WorkbenchError, match=r"checkpoint is '\[x/y', which is no URI\. Correct it") as error:
        Cluster(MASTER, "hdfs://key:hidden@[x/y")
    assert "hidden" not in str(error.value)
    assert error.value.settings == ("checkpoint",)


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1.0, 0.0, 1e6])
def test_a_wait_ends_and_is_one(seconds):
    with pytest.raises(WorkbenchError, match=r"allocation_s is .*; it must be at least 0\.001 and at most 604800"):
        Cluster(MASTER, SHARED, allocation_s=seconds)


@pytest.mark.parametrize(("seconds", "written"), [(90.5, "91s"), (604_800.0, "604800s"), (0.2, "1s")])
def test_spark_reads_a_wait_in_whole_seconds(seconds, written):
    made = cluster_conf(replace(STANDALONE, allocation_s=seconds), FOUR, None)
    assert made["spark.python.authenticate.socketTimeout"] == written


def test_no_password_is_taken_because_it_would_be_kept():
    with pytest.raises(WorkbenchError, match="event_log has a password in its address") as error:
        Cluster(MASTER, SHARED, event_log="s3a://key:secret@bucket/logs")
    assert "secret" not in str(error.value)


def test_a_budget_becomes_executors_of_one_size():
    assert STANDALONE.executors(FOUR) == (4, Executor(1, FOUR.profile))
    assert YARN.executors(FOUR) == (1, Executor(4, FOUR.profile))
    with pytest.raises(WorkbenchError, match=r"3 slots cannot fill executors of 2 slots\. Use a multiple of 2"):
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


def test_kubernetes_limits_cores():
    made = kubernetes_conf(KUBERNETES, FOUR)
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
    assert beside_yours(STANDALONE, {name: given}.get, "-XX:X=1") == {name: made}
    assert name not in spark_conf(FOUR, Path("/folder"), Path("/disk"), 4, cluster=STANDALONE, address="10.0.0.1")


def test_a_cluster_whose_processes_do_not_authenticate_is_warned_of():
    spark = MagicMock()
    spark.sparkContext.getConf.return_value = {"spark.authenticate": "true"}
    assert check_authentication(spark) == "spark.authenticate is on"
    spark.sparkContext.getConf.return_value = {}
    with pytest.raises(WorkbenchError, match=r"spark\.authenticate is not on: .* Set it to true"):
        check_authentication(spark)


def test_what_is_not_needed_does_not_end_the_look(tmp_path, monkeypatch, capsys):
    def lacking():
        raise WorkbenchError("It is off.")

    steps = [("authentication", lacking, False), ("executors", lacking, True), ("workers", lacking, True)]
    monkeypatch.setattr(look, "_steps", lambda *_: steps)
    asked = {"cluster": asdict(STANDALONE), "budget": asdict(FOUR)}
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    look.main(str(tmp_path / "asked.json"))
    seen = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["thing"], one["needed"]) for one in seen] == [("authentication", False), ("executors", True)]


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
    assert replace(KUBERNETES, master="k8s://https://api").addresses == (("api", 443),)
    assert replace(KUBERNETES, master="k8s://http://[::1]/clusters/c1").addresses == (("::1", 80),)
    assert YARN.addresses == ()


def test_a_master_that_does_not_answer_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and not listening
        nobody = Cluster(f"spark://127.0.0.1:{taken.getsockname()[1]}", SHARED)
        with pytest.raises(WorkbenchError, match=r"cannot be reached \(127\.0\.0\.1:\d+: Connection refused\)\. Check"):
            nobody.reach()
        (seen,) = look_at(nobody, FOUR)
        assert (seen.thing, seen.found) == ("cluster", "not reached")
    with pytest.raises(WorkbenchError, match=r"cannot be reached \(a\.\.b:7077: .*label"):
        Cluster("spark://a..b:7077", SHARED).reach()


def test_a_budget_that_fills_no_executors_is_no_matter_of_the_master():
    (seen,) = look_at(replace(STANDALONE, executor_slots=2), replace(FOUR, slots=1))
    assert (seen.thing, seen.found) == ("executors", "not fit")
    assert "1 slot cannot fill executors of 2 slots" in seen.fix


class Stopped(subprocess.Popen):
    """A process that stops itself, and whose time is over then."""

    def wait(self, timeout=None):
        if timeout is None:
            return super().wait()
        os.waitpid(self.pid, os.WUNTRACED)
        raise subprocess.TimeoutExpired(self.args, timeout)


def test_what_was_seen_before_the_time_was_over_is_kept_and_the_users_folder_hides_nothing(tmp_path, monkeypatch):
    (tmp_path / "signal.py").write_text("raise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    line = '{"thing": "application", "found": "has room"}'
    stop = "os.kill(os.getpid(), signal.SIGSTOP)"
    monkeypatch.setattr(look, "_MAIN", f"import os, signal; print({line!r}, flush=True); {stop}")
    monkeypatch.setattr(subprocess, "Popen", Stopped)
    with socket.create_server(("127.0.0.1", 0)) as server:
        seen = look_at(Cluster(f"spark://127.0.0.1:{server.getsockname()[1]}", SHARED), FOUR)
    assert [(one.thing, one.found) for one in seen] == [
        ("cluster", "reached"),
        ("application", "has room"),
        ("cluster", "no answer for 4 executors"),
    ]
    assert seen[-1].fix == "Spark did not finish within 540 s."


def test_the_address_on_the_way_to_the_master_is_the_drivers():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert Cluster(f"spark://127.0.0.1:{server.getsockname()[1]}", SHARED).reach() == "127.0.0.1"


@pytest.mark.parametrize(
    "servers", ["localhost:9092", "127.0.0.1:9092,[::1]:9093", "localhost.:1", "[::ffff:7f00:1]:1"]
)
def test_a_broker_that_each_executor_would_look_for_on_itself_is_refused(servers):
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = f"127.0.0.1:{server.getsockname()[1]}"
        standalone = Cluster(f"spark://{here}", SHARED)
        standalone.check_servers(servers)  # its workers are on this machine
        # A pod has a loopback of its own, and so has what is behind a tunnel.
        for cluster in (
            YARN,
            Cluster(f"k8s://https://{here}", SHARED),
            replace(standalone, driver_host="10.1.2.3"),
        ):
            with pytest.raises(
                WorkbenchError, match=r"broker is at .*, which each executor takes for itself\. Give the"
            ):
                cluster.check_servers(servers)
            cluster.check_servers(f"{servers},broker-1:9092")


def workers(count, applications=()):
    return Offer((Worker(2, 2048),) * count, applications)


def test_what_the_cluster_could_never_hold_is_refused_at_once():
    refuse(STANDALONE, FOUR, workers(2, ("other", "this")))  # it is only busy
    with pytest.raises(WorkbenchError, match=r"no room for 4 executors of 1 core and 615 MB of heap\. The master has 1 "
                       r"live worker \(2 cores and 2,048 MB\): use 2 or fewer"):  # fmt: skip
        refuse(STANDALONE, FOUR, workers(1))
    with pytest.raises(WorkbenchError, match="The master has no live worker: start workers"):
        refuse(STANDALONE, FOUR, Offer(()))
    with pytest.raises(WorkbenchError, match=r"MB\): use smaller ones, or add workers"):
        refuse(STANDALONE, Budget(4, SlotProfile(1, 8192)), workers(1))


def test_of_several_masters_one_may_be_down():
    both, jvm, standby = Cluster("spark://a:7077,b:7077", SHARED), MagicMock(), MagicMock()
    network = getattr(getattr(jvm.org.apache.spark.rpc, "RpcEnv$"), "MODULE$").create.return_value
    network.setupEndpointRef.side_effect = [Py4JError("a is down"), standby]
    standby.askSync.return_value.workers.return_value = [MagicMock(**{"cores.return_value": 8})]
    assert [worker.cores for worker in offer_of(jvm, both, "").workers] == [8]
    network.setupEndpointRef.side_effect = Py4JError("both are down")
    with pytest.raises(Py4JError, match="both are down"):
        offer_of(jvm, both, "")
    assert network.shutdown.call_count == 2


def test_a_log_that_could_not_be_kept_is_refused_before_anything_is_measured(monkeypatch):
    for name in ("await_executors", "registered", "describe_workers", "check_shared", "pack"):
        monkeypatch.setattr(driver, name, MagicMock())
    spark = MagicMock()
    system = spark._jvm.org.apache.hadoop.fs.Path.return_value.getFileSystem.return_value
    system.create.side_effect = Py4JError("Permission denied")
    cluster = replace(STANDALONE, event_log="hdfs://n/logs")
    spec = SimpleNamespace(budget=FOUR, cluster=cluster, generator=None, quota=None, checkpoints="", folder=None)
    serving = driver.Driver(MagicMock(), spec)
    serving._spark = spark
    with pytest.raises(WorkbenchError, match="event log cannot be kept in hdfs://n/logs: Permission denied") as error:
        serving._await_cluster()
    assert error.value.settings == ("event_log",)


def test_what_cannot_be_put_in_order_at_the_end_is_named(monkeypatch, capsys, tmp_path):
    spark = MagicMock()
    system = spark._jvm.org.apache.hadoop.fs.Path.return_value.getFileSystem.return_value
    system.delete.side_effect = Py4JError("Permission denied")

    def end(*_):
        raise Py4JError("No space left")

    monkeypatch.setattr(driver, "end_session", end)
    cluster = replace(STANDALONE, event_log="hdfs://n/logs")
    spec = SimpleNamespace(
        budget=FOUR, cluster=cluster, generator=None, quota=None, checkpoints="hdfs://n/c/workbench-1", folder=tmp_path
    )
    serving = driver.Driver(MagicMock(), spec)
    serving._spark = spark
    serving.end()
    assert capsys.readouterr().out.splitlines() == [
        f"{LEFT}the checkpoints in hdfs://n/c/workbench-1 cannot be removed (Permission denied): remove the folder",
        f"{LEFT}the event log is not in hdfs://n/logs, or is not whole there: No space left",
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


def test_a_cluster_needs_no_memory_of_this_machine():
    assert "Free memory" in str(driver._refused("gone", on_cluster=False))
    assert str(driver._refused("gone", on_cluster=True)).endswith(
        "refused: gone. Run the same again; 'workbench doctor --master' shows what may be missing."
    )


def test_a_cluster_that_is_busy_is_told_from_one_whose_executors_do_not_come():
    busy = waiting(STANDALONE, FOUR, workers(2, ("other", "third", "this")), 1)
    assert "gave 1 of 4 executors of 1 core and 615 MB of heap within 120 s; nothing was measured" in str(busy)
    assert "2 other applications run or wait. Wait until other applications end" in str(busy)
    lost = waiting(STANDALONE, FOUR, workers(2, ("this",)), 0)
    assert "did not register: look into the workers' logs" in str(lost)
    assert busy.settings == lost.settings == ("slots", "allocation_s")


@pytest.mark.parametrize(
    ("text", "message"),
    [
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


def test_a_budget_is_checked_without_the_cluster():
    testbed = SparkTestbed(cluster=STANDALONE)
    testbed.check(Budget(100, SlotProfile(1, 1024)))
    with pytest.raises(WorkbenchError, match="The heap of 1 slot of 512 MB is 308 MB"):
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


@pytest.mark.parametrize(("given", "cpus"), [("", SLOT_CPUS), ("slot_cpus: 1\n", 1.0)])
def test_a_study_of_a_cluster_moves_to_this_machine_by_its_master(given, cpus, tmp_path, monkeypatch):
    (tmp_path / "study.yaml").write_text(
        f"query: nexmark:q1\ntargets: [1000]\nslots: [1, 2]\nmemory_mb: [1024]\n{given}"
        f"master: {MASTER}\ncheckpoint: {SHARED}\nexecutor_slots: 2\nallocation_s: 60\n"
    )
    found = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(planning, "dry_run", lambda study, _: found.append(study))
    monkeypatch.setattr(planning, "_show_dry_run", lambda *_, **__: 0)
    assert cli.main(["plan", "study.yaml", "--dry-run", "--master", "local"]) == 0
    assert (found[0].master, found[0].cluster, found[0].slot_cpus) == ("local", None, cpus)
    assert cli.main(["plan", "study.yaml", "--dry-run", "--allocation-s", "90"]) == 0
    assert (found[1].cluster.allocation_s, found[1].slot_cpus) == (90, 1)


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
