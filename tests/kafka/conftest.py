"""A broker for all tests of Kafka."""

import os

import pytest
from kafka_broker import NoMavenError, running


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    try:
        with running(tmp_path_factory.mktemp("kafka")) as broker:
            yield broker
    except NoMavenError as reason:
        text = f"Kafka comes from Maven Central, which cannot be reached: {reason}"
        pytest.fail(text) if os.environ.get("CI") else pytest.skip(text)
