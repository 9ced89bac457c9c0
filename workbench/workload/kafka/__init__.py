"""Kafka as a workload: topics, the client's settings, schemas of values, and the columns of a sample."""

from workbench.workload.kafka.schema import COLUMNS, HEADERS, VALUE, Schema, field_of, named, read_schema
from workbench.workload.kafka.topic import CLIENT_CONFIG, SCHEME, Topic, client_settings, java_settings
