"""A client that reads a topic, and what to say when it or the cluster refuses."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException

from workbench.errors import WorkbenchError
from workbench.redaction import is_secret
from workbench.workload.kafka.topic import Topic


@contextmanager
def consuming(topic: Topic, settings: Mapping[str, Any]) -> Iterator[Consumer]:
    """Give a consumer, closed at the end; what Kafka refuses in between is said with what to check."""
    heard = list[str]()
    consumer = _consumer(topic, settings, heard)
    try:
        yield consumer
    except KafkaException as error:
        raise _told(topic, error.args[0], heard) from error
    finally:
        consumer.close()


def _consumer(topic: Topic, settings: Mapping[str, Any], heard: list[str]) -> Consumer:
    ours = {
        "bootstrap.servers": topic.servers,
        "group.id": "streaming-capacity-workbench",  # nothing is ever committed
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": False,
        "queued.min.messages": 20_000,  # of a partition; what waits in the client is lost when it is interrupted
        "log_level": 0,  # librdkafka's own log may quote settings
        "error_cb": lambda error: heard.append(error.str()),
    }
    try:
        return Consumer({**settings, **ours})
    except (KafkaException, ValueError, TypeError) as error:
        raise refused(error, settings) from error


def refused(error: Exception, settings: Mapping[str, Any]) -> WorkbenchError:
    """Say what is wrong with the client's settings without quoting a secret of theirs."""
    first = error.args[0] if error.args else error
    said = first.str() if isinstance(first, KafkaError) else str(first)
    for name, value in settings.items():
        if value and is_secret(name):
            said = said.replace(str(value), "***")
    return WorkbenchError(f"The Kafka client refuses its settings: {said}. Correct the file of client settings.")


def _told(topic: Topic, error: KafkaError | object, heard: list[str]) -> WorkbenchError:
    said = error.str() if isinstance(error, KafkaError) else str(error)
    also = f" ({heard[-1].rstrip('.')})" if heard and heard[-1] != said else ""
    return WorkbenchError(
        f"Kafka does not give the topic {topic.url}: {said.rstrip('.')}{also}. Check the servers, the topic and the "
        "client settings, then run the same again."
    )
