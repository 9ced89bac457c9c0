"""Avro values as columns, of the types that Spark's ``from_avro`` gives them, with three exceptions.

A union of several types, a record without fields, and a record inside itself are JSON text. Times of day are whole
numbers of their unit, and a decimal with more digits than Spark has is text.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import time
from io import BytesIO
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from fastavro import schemaless_reader
from fastavro.schema import SchemaParseException, UnknownType, expand_schema, parse_schema

WRONG = (SchemaParseException, UnknownType, ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What the library raises for a definition that is none."""

_MOST_DIGITS = 38
_LONGEST = 300
_PLAIN: Mapping[str, pa.DataType] = MappingProxyType(
    {
        "null": pa.string(),
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "bytes": pa.binary(),
        "fixed": pa.binary(),
        "string": pa.string(),
        "enum": pa.string(),
    }
)
_TIMES: Mapping[tuple[str, str], pa.DataType] = MappingProxyType(
    {
        ("int", "date"): pa.date32(),
        ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
        ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
        ("long", "local-timestamp-millis"): pa.timestamp("ms"),
        ("long", "local-timestamp-micros"): pa.timestamp("us"),
    }
)
_WIDER = ({"int", "long"}, {"float", "double"})  # unions that one type holds
_Change = Callable[[Any], Any]


@dataclass(frozen=True)
class Decoder:
    """Decodes values of one schema.

    Parameters
    ----------
    parsed
        The schema as the library has it.
    columns
        Name, type, and change from the library's value to the column's, of each field.
    """

    parsed: Any
    columns: tuple[tuple[str, pa.DataType, _Change | None], ...]

    @classmethod
    def of(cls, definition: Mapping[str, Any]) -> "Decoder":
        """Prepare for the values of an Avro record; raises one of `WRONG` where `definition` is none."""
        whole: Any = expand_schema(dict(definition))
        columns = tuple((field["name"], *_column(field["type"])) for field in whole["fields"])
        return cls(parse_schema(dict(definition)), columns)

    def decode(self, body: bytes) -> dict[str, Any] | None:
        """Give the fields of a value; None where it is no such record, from its first to its last byte."""
        buffer = BytesIO(body)
        try:
            found = schemaless_reader(buffer, self.parsed, None)
        except Exception:  # noqa: BLE001 - the library raises what the bytes happen to lead to
            return None
        return found if isinstance(found, dict) and buffer.tell() == len(body) else None

    def table(self, rows: Sequence[Mapping[str, Any] | None]) -> dict[str, pa.Array]:
        """Give the columns of decoded values, which are empty where there is none."""
        return {
            name: pa.array([None if row is None else _changed(row[name], change) for row in rows], kind)
            for name, kind, change in self.columns
        }


def reason(error: Exception) -> str:
    """Say in a line what is wrong with a definition."""
    if isinstance(error, UnknownType):
        return f"the type {error.name!r} is not defined in it"[:_LONGEST]
    return (str(error).strip() or type(error).__name__).rstrip(".")[:_LONGEST]


def _changed(value: Any, change: _Change | None) -> Any:  # noqa: ANN401 - any field's
    return value if value is None or change is None else change(value)


def _column(kind: Any) -> tuple[pa.DataType, _Change | None]:  # noqa: ANN401, PLR0911 - one answer for each kind
    """Give the type of a column for a type of Avro, and what makes the library's values fit it."""
    if isinstance(kind, list):
        return _union([one for one in kind if one != "null"])
    if isinstance(kind, str):
        return (_PLAIN[kind], None) if kind in _PLAIN else (pa.string(), _json)  # a record inside itself
    name = kind["type"]
    if not isinstance(name, str):
        return _column(name)
    if name == "record":
        return _struct([(field["name"], *_column(field["type"])) for field in kind["fields"]])
    if name == "array":
        inside, change = _column(kind["items"])
        return pa.list_(inside), None if change is None else lambda many: [_changed(one, change) for one in many]
    if name == "map":
        inside, change = _column(kind["values"])
        return pa.map_(pa.string(), inside), lambda found: [(key, _changed(one, change)) for key, one in found.items()]
    return _logical(name, kind)


def _union(kinds: Sequence[Any]) -> tuple[pa.DataType, _Change | None]:
    if len(kinds) == 1:
        return _column(kinds[0])
    if all(isinstance(one, str) for one in kinds) and {*kinds} in _WIDER:
        return _column(max(kinds, key=["int", "long", "float", "double"].index))
    return pa.string(), None if not kinds else _json


def _struct(fields: Sequence[tuple[str, pa.DataType, _Change | None]]) -> tuple[pa.DataType, _Change | None]:
    if not fields:
        return pa.string(), _json  # Parquet has no empty structs
    kind = pa.struct([(name, inside) for name, inside, _ in fields])
    if all(change is None for *_, change in fields):
        return kind, None
    return kind, lambda found: {name: _changed(found[name], change) for name, _, change in fields}


def _logical(name: str, kind: Mapping[str, Any]) -> tuple[pa.DataType, _Change | None]:
    logical = str(kind.get("logicalType"))
    if (name, logical) in _TIMES:
        return _TIMES[name, logical], None
    if logical == "decimal" and "precision" in kind:
        digits, scale = int(kind["precision"]), int(kind.get("scale", 0))
        return (pa.string(), str) if digits > _MOST_DIGITS else (pa.decimal128(digits, scale), None)
    if logical == "uuid" and name in {"string", "fixed"}:
        return pa.string(), str
    if (name, logical) == ("int", "time-millis"):
        return pa.int32(), lambda at: _micros(at) // 1000
    if (name, logical) == ("long", "time-micros"):
        return pa.int64(), _micros
    return _PLAIN[name], None


def _micros(at: time) -> int:
    return ((at.hour * 60 + at.minute) * 60 + at.second) * 1_000_000 + at.microsecond


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
