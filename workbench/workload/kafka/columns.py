"""Columns of a sample that are no field of its values."""

from collections.abc import Mapping
from types import MappingProxyType

HEADERS, VALUE = "_headers", "value"
COLUMNS: Mapping[str, str] = MappingProxyType(
    {"_key": "key", "_timestamp": "timestamp", "_partition": "partition", "_offset": "offset"}
)
"""Columns of a sample that are a record's own, and their names in Spark's Kafka source."""


def field_of(column: str) -> str:
    """Return the name of the field that a sample's `column` holds: one with a name that is ours has got a "_"."""
    return column.removesuffix("_") if column.removesuffix("_") in {*COLUMNS, HEADERS, VALUE} else column
