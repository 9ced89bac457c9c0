"""Spark in this process, with its Kafka connector and an event log that can be read as it is written."""

import os
import sys
from contextlib import contextmanager

from workbench.testbed.spark import connector_jars, find_java


@contextmanager
def topic_session(folder, *, slots, shuffles, settings=None):
    """Give a session on `slots` cores, and its event log; both are in `folder`. `settings` are Spark's, on top."""
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "JAVA_HOME": find_java(folder).home}
    from pyspark.sql import SparkSession

    logs = folder / "log"
    logs.mkdir()
    builder = SparkSession.builder.master(f"local[{slots}]").appName("topics")
    own = {
        "spark.jars": ",".join(connector_jars(print)),
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.python.authenticate.socketTimeout": "300s",  # Python starts slowly on a busy machine
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(shuffles),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    for name, value in (own | (settings or {})).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    (log,) = logs.iterdir()
    try:
        yield session, log
    finally:
        session.stop()
