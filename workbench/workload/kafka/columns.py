"""Columns of a sample that are not a field of its values."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

HEADERS, VALUE = "_headers", "value"
COLUMNS: Mapping[str, str] = MappingProxyType(
    {"_key": "key", "_timestamp": "timestamp", "_partition": "partition", "_offset": "offset"}
)
"""Columns of a sample that come from the record itself, and their names in Spark's Kafka source."""


_TAKEN = frozenset({*COLUMNS, HEADERS, VALUE})


def named(fields: Iterable[str]) -> dict[str, str]:
    """Return the columns of a sample for the fields of its values; a field with a reserved name gets a "_"."""
    found: dict[str, str] = {}
    for name in fields:
        free = name
        while free in _TAKEN or free in found:
            free += "_"
        found[free] = name
    return found


def field_of(column: str) -> str:
    """Return the name of the field behind a sample's `column`; see `named`."""
    return column.removesuffix("_") if column.removesuffix("_") in _TAKEN else column
