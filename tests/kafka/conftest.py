"""A broker for all tests of Kafka, and Spark's connector to it."""

import os
from pathlib import Path

import pytest
from kafka_broker import JARS, NoMavenError, running

from workbench.testbed.spark.machine import java as connectors

CONNECTOR = JARS.parent / "kafka-connector-4.2.0"


def lacking(what, reason):
    pytest.skip(f"{what} comes from Maven Central, which cannot be reached: {reason}")


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    yield from started(tmp_path_factory.mktemp("kafka"))


@pytest.fixture(scope="module")
def certified_broker(tmp_path_factory):
    """A broker that takes no client without a certificate."""
    yield from started(tmp_path_factory.mktemp("kafka"), tls=True)


def started(folder, *, tls=False):
    try:
        with running(folder, tls=tls) as broker:
            yield broker
    except NoMavenError as reason:
        lacking("Kafka", reason)


@pytest.fixture(scope="session")
def connector():
    """Spark's Kafka connector, fetched once."""
    if not any(CONNECTOR.glob("spark-avro*")) and (reason := connectors.fetch_connector("4.2.0", CONNECTOR)):
        lacking("Spark's Kafka connector", reason)
    before = os.environ.get(connectors.JARS)
    os.environ[connectors.JARS] = str(CONNECTOR)
    yield Path(CONNECTOR)
    os.environ.pop(connectors.JARS)
    if before is not None:
        os.environ[connectors.JARS] = before
