"""Kafka as a workload: topics, the client's settings, schemas of values, and the columns of a sample."""

from workbench.workload.kafka._java import java_settings
from workbench.workload.kafka.columns import COLUMNS, HEADERS, VALUE, field_of, named
from workbench.workload.kafka.schema import Schema, read_schema
from workbench.workload.kafka.topic import CLIENT_CONFIG, SCHEME, Topic, client_settings
