"""A plan's exports on real Spark: its command starts a job as it stands, and Spark takes every setting."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from staged_runs import staged_exploration

from workbench.capacity import plan
from workbench.testbed.spark import find_java

pytestmark = pytest.mark.spark

# Counts by key in one batch, then prints what Spark made of its settings; the pod is the one that Spark would ask
# Kubernetes for, made by its own code.
JOB = """
import json
import sys

import psutil
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1000).option("numPartitions", 2).load()
counted = rows.groupBy((f.col("value") % 7).alias("key")).count()
query = counted.writeStream.format("noop").outputMode("update").option("checkpointLocation", sys.argv[2])
query = query.trigger(availableNow=True).start()
query.awaitTermination()

context, jvm = spark.sparkContext, spark._jvm
k8s = jvm.org.apache.spark.deploy.k8s
conf = context._jsc.sc().getConf().set("spark.kubernetes.container.image", "none")
none = jvm.scala.Option.apply(None)
executor = k8s.KubernetesConf.createExecutorConf(conf, "1", "planned", none, 0)
profile = context._jsc.sc().resourceProfileManager().defaultResourceProfile()
step = k8s.features.BasicExecutorFeatureStep(executor, jvm.org.apache.spark.SecurityManager(conf, none, None), profile)
resources = step.configurePod(k8s.SparkPod.initialPod()).container().getResources()

def quantities(found):
    return {kind: found.get(kind).toString() for kind in ("cpu", "memory")}

taken = {
    "context": dict(context.getConf().getAll()),
    "session": {key: spark.conf.get(key) for key in sys.argv[3:]},
    "progress": json.loads(query.lastProgress.json),
    "executor": context.parallelize([0], 1).map(lambda _: [p.cmdline() for p in psutil.Process().parents()]).first(),
    "pod": {"requests": quantities(resources.getRequests()), "limits": quantities(resources.getLimits())},
}
with open(sys.argv[1], "w") as file:
    json.dump(taken, file)
spark.stop()
"""


@pytest.fixture(scope="module")
def made():
    return plan(staged_exploration(cpus=0.4, memory_mb=600), 5e3, memory_mb=[600])


@pytest.fixture(scope="module")
def taken(made, tmp_path_factory):
    """What Spark made of the plan's command, on a worker that has the container's memory and no more."""
    import pyspark

    folder = tmp_path_factory.mktemp("deployment")
    for name in ("bin", "jars", "python"):  # local-cluster writes into SPARK_HOME
        (folder / name).symlink_to(Path(pyspark.__file__).parent / name)
    (folder / "job.py").write_text(JOB)
    sql = sorted(key for key in made.spark_conf() if key.startswith("spark.sql."))
    command = made.spark_submit(
        f"{folder}/job.py {folder}/taken.json {folder}/checkpoint {' '.join(sql)}",
        f"local-cluster[{made.executors},{made.executor.slots},{made.executor.memory_mb}]",
    )
    environment = os.environ | {
        "JAVA_HOME": find_java(tmp_path_factory.mktemp("java")).home,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return json.loads((folder / "taken.json").read_text())


def test_spark_takes_every_setting(made, taken):
    conf = made.spark_conf()
    assert {key: taken["context"].get(key) for key in conf} == conf
    assert taken["session"] == {key: value for key, value in conf.items() if key.startswith("spark.sql.")}


def test_the_state_is_kept_and_partitioned_as_planned(made, taken):
    (state,) = taken["progress"]["stateOperators"]
    assert state["numShufflePartitions"] == made.layout.stateful_partitions
    assert any(name.startswith("rocksdb") for name in state["customMetrics"])
    assert taken["progress"]["numInputRows"] == 1000


def test_the_executor_has_the_planned_heap(made, taken):
    (executor,) = (
        words for words in taken["executor"] if any("CoarseGrainedExecutorBackend" in word for word in words)
    )
    assert f"-Xmx{made.executor.heap_mb}M" in executor
    assert executor[executor.index("--cores") + 1] == str(made.executor.slots)


def test_spark_asks_kubernetes_for_the_container_that_was_planned(made, taken):
    assert taken["pod"] == made.kubernetes()["resources"]
