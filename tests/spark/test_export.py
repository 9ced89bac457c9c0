"""What a plan exports runs as it is: its spark-submit, and its job with the names in capitals filled in."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from staged_runs import staged_exploration

from workbench.capacity import plan
from workbench.records import MEASURED
from workbench.testbed.spark import find_java

MODULE = """
from pyspark.sql import functions as f

DECODE = lambda stream: stream
FUNCTION = lambda stream: stream.groupBy((f.col("value") % 100).alias("key")).count()
"""
REPORT = """
import json
found = {"conf": {key: spark.conf.get(key) for key in json.loads(KEYS)}}
found["batches"] = [json.loads(one.json) for query in spark.streams.active for one in query.recentProgress]
print("FOUND", json.dumps(found))
for query in spark.streams.active:
    query.stop()
"""


def fill(job, folder, keys):
    """Give the job with its names filled in and Spark's own generator in the place of Kafka."""
    changes = (
        ("from MODULE import", "from orders import"),
        ('.format("kafka")', '.format("rate-micro-batch")'),
        ('.option("kafka.bootstrap.servers", "BROKERS")', ""),
        ('.option("subscribe", "TOPIC")', ""),
        ('"minPartitions"', '"numPartitions"'),
        ('"maxOffsetsPerTrigger"', '"rowsPerBatch"'),
        ('.format("SINK")', '.format("noop")'),
        ('"MODE"', '"update"'),
        ('"CHECKPOINT"', repr(str(folder / "checkpoint"))),
        (".awaitTermination()", ".awaitTermination(25)"),
    )
    for old, new in changes:
        assert old in job
        job = job.replace(old, new)
    assert not re.search(r"\b(MODULE|SINK|MODE|CHECKPOINT|BROKERS|TOPIC)\b", job.split('"""')[2])
    return f"KEYS = {json.dumps(keys)!r}\n{job}\n{REPORT}"


@pytest.mark.alone
@pytest.mark.long
def test_an_exported_job_runs_with_the_settings_that_were_measured(tmp_path):
    made = replace(plan(staged_exploration(), 10_000, memory_mb=[600]), testbed_kind="spark")
    conf = made.spark_conf()
    keys = [key for key in conf if key.startswith("spark.sql.")]
    assert set(MEASURED) <= set(keys)
    (tmp_path / "orders.py").write_text(MODULE)
    (tmp_path / "job.py").write_text(fill(made.job(), tmp_path, keys))
    environment = os.environ | {
        "JAVA_HOME": find_java(tmp_path).home,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(tmp_path),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    command = ["bash", "-c", made.spark_submit("job.py", master="local[2]")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("FOUND"))[6:])
    assert found["conf"] == {key: conf[key] for key in keys}
    full = [batch for batch in found["batches"] if batch["numInputRows"]]
    cap = int(re.search(r'"maxOffsetsPerTrigger", (\d+)', made.job())[1])
    assert cap == pytest.approx(made.expected_rate * made.budget.interval_s, rel=0.01)
    assert {batch["numInputRows"] for batch in full} == {cap}
    assert len(full) >= 3
    (state,) = full[-1]["stateOperators"]
    assert state["numShufflePartitions"] == int(conf["spark.sql.shuffle.partitions"])
