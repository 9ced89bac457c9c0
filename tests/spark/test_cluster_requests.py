"""What Kubernetes and YARN would be asked for, by Spark's own builders; no cluster is needed."""

import os

import pytest
import yaml

from workbench.dataflow import Budget, SlotProfile
from workbench.testbed.spark import Cluster, find_java
from workbench.testbed.spark.cluster import cluster_conf

pytestmark = pytest.mark.spark

FOUR = Budget(4, SlotProfile(1, 1024))


@pytest.fixture(scope="module")
def jvm(tmp_path_factory):
    """Spark's classes, without a session."""
    os.environ["JAVA_HOME"] = find_java(tmp_path_factory.mktemp("java")).home
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    with (tmp_path_factory.mktemp("log") / "jvm.log").open("ab") as log:
        gateway = launch_gateway(SparkConf(), {"stdout": log, "stderr": log})
    yield gateway.jvm
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)


def single(package, name):
    """A Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def configured(jvm, cluster, **more):
    conf = jvm.org.apache.spark.SparkConf(False).setMaster(cluster.master).setAppName("workbench")  # noqa: FBT003 - without the defaults
    for key, value in (cluster_conf(cluster, FOUR, "10.0.0.1") | more).items():
        conf.set(key, value)
    profiles = single(jvm.org.apache.spark.resource, "ResourceProfile")
    profiles.clearDefaultProfile()  # of an earlier test
    return conf, profiles.getOrCreateDefaultProfile(conf)


def test_an_executors_pod_is_limited_to_what_it_requests(jvm):
    cluster = Cluster("k8s://https://api:6443", "s3a://bucket/checkpoints", executor_slots=2)
    ports = {"spark.driver.port": "7078", "spark.driver.blockManager.port": "7079"}
    conf, profile = configured(jvm, cluster, **ports, **{"spark.kubernetes.container.image": "spark:4.3.0"})
    spark, default = jvm.org.apache.spark, "$lessinit$greater$default$"
    manager = single(spark, "SecurityManager")
    security = spark.SecurityManager(conf, getattr(manager, default + "2")(), getattr(manager, default + "3")())
    of_one = single(spark.deploy.k8s, "KubernetesConf").createExecutorConf(
        conf, "1", "spark-1", single(jvm.scala, "None"), 0
    )
    built = spark.scheduler.cluster.k8s.KubernetesExecutorBuilder().buildFromFeatures(of_one, security, None, profile)
    text = jvm.io.fabric8.kubernetes.client.utils.Serialization
    pod, container = (yaml.safe_load(text.asYaml(part)) for part in (built.pod().pod(), built.pod().container()))
    _, executor = cluster.executors(FOUR)
    both = {"cpu": "2000m", "memory": f"{executor.memory_mb}Mi"}
    assert container["resources"] == {"requests": both, "limits": both}
    variables = {one["name"]: one.get("value") for one in container["env"]}
    assert variables["SPARK_EXECUTOR_CORES"] == "2"
    assert variables["SPARK_EXECUTOR_MEMORY"] == f"{executor.heap_mb}m"
    assert variables["SPARK_DRIVER_URL"] == "spark://CoarseGrainedScheduler@10.0.0.1:7078"
    assert pod["metadata"]["name"].startswith("workbench-")


def test_yarn_is_asked_for_containers_of_the_same_size(jvm, monkeypatch):
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    cluster = Cluster("yarn", "hdfs://namenode/checkpoints", executor_slots=4)
    conf, profile = configured(jvm, cluster)
    _, executor = cluster.executors(FOUR)
    asked = profile.executorResources()
    amounts = {name: asked.apply(name).amount() for name in ("cores", "memory", "memoryOverhead")}
    assert amounts == {"cores": 4, "memory": executor.heap_mb, "memoryOverhead": executor.overhead_mb}
    assert sum((amounts["memory"], amounts["memoryOverhead"])) == executor.memory_mb
    assert conf.get("spark.executor.instances") == "1"
