"""Kafka as a workload: a bounded sample of a topic becomes a data set, and a data set fills a topic."""

from workbench.workload.kafka._capture import Captured, Limits, capture
from workbench.workload.kafka._fill import Filled, fill, topic_beside
from workbench.workload.kafka._java import java_settings
from workbench.workload.kafka._newest import offsets_of
from workbench.workload.kafka._sample import COLUMNS, HEADERS, VALUE, field_of
from workbench.workload.kafka.schema import Schema, read_schema
from workbench.workload.kafka.topic import CLIENT_CONFIG, SCHEME, Topic, client_settings

__all__ = [
    "CLIENT_CONFIG",
    "COLUMNS",
    "HEADERS",
    "SCHEME",
    "VALUE",
    "Captured",
    "Filled",
    "Limits",
    "Schema",
    "Topic",
    "capture",
    "client_settings",
    "field_of",
    "fill",
    "java_settings",
    "offsets_of",
    "read_schema",
    "topic_beside",
]
