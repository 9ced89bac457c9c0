"""Captured records as a table: in the order of their timestamps, JSON objects as columns.

A column whose values are of several kinds, or hold objects without fields, which Parquet cannot store, is JSON text.
Texts stay texts, also those that look like times.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.parquet as pq
from confluent_kafka import Message

KEY, TIMESTAMP, PARTITION, OFFSET, HEADERS, VALUE = "_key", "_timestamp", "_partition", "_offset", "_headers", "value"
OWN = frozenset({KEY, TIMESTAMP, PARTITION, OFFSET, HEADERS})
"""Columns of a sample that are no part of the values."""
_RESERVED = OWN | {VALUE}
COLUMNS: Mapping[str, str] = MappingProxyType(
    {KEY: "key", TIMESTAMP: "timestamp", PARTITION: "partition", OFFSET: "offset"}
)
"""Columns of a sample that are a record's own, and their names in Spark's Kafka source."""

_JSON_SHARE = 0.99  # of the values that must be objects
_LEAST_BLOCK = 1 << 20
_MILLISECONDS = pa.timestamp("ms", "UTC")
_STORED = pa.schema(
    [
        (KEY, pa.binary()),
        (VALUE, pa.binary()),
        (TIMESTAMP, _MILLISECONDS),
        (PARTITION, pa.int32()),
        (OFFSET, pa.int64()),
        (HEADERS, pa.string()),
    ]
)


def write_part(messages: Sequence[Message], path: Path) -> None:
    """Write records as they are."""
    columns = [
        pa.array([message.key() for message in messages], pa.binary()),
        pa.array([message.value() for message in messages], pa.binary()),
        pa.array([_time_ms(message) for message in messages], pa.int64()).cast(_MILLISECONDS),
        pa.array([message.partition() for message in messages], pa.int32()),
        pa.array([message.offset() for message in messages], pa.int64()),
        pa.array([_headers(message.headers()) for message in messages], pa.string()),
    ]
    pq.write_table(pa.Table.from_arrays(columns, schema=_STORED), path, compression="zstd")


def joined(parts: Sequence[Path]) -> tuple[pa.Table, int]:
    """Put parts into one table; count the values that are no JSON object. Without a value, columns are empty."""
    rows = objects = 0
    kinds: dict[str, set[str]] = {}
    for values in _values(parts):
        rows += sum(value is not None for value in values)
        for found in map(_object, values):
            objects += found is not None
            for name, value in (found or {}).items():
                kinds.setdefault(name, set()).update(_kinds(value))
    stored = pa.concat_tables([pq.read_table(part) for part in parts])
    columns = _columns(parts, kinds) if objects and objects >= _JSON_SHARE * rows else {VALUE: _text(stored[VALUE])}
    columns |= {KEY: _text(stored[KEY])} | {name: stored[name] for name in (TIMESTAMP, PARTITION, OFFSET, HEADERS)}
    table = pa.table(columns)
    order = [(TIMESTAMP, "ascending"), (PARTITION, "ascending"), (OFFSET, "ascending")]
    return table.take(pc.sort_indices(table, order)), rows - objects


def traffic_s(table: pa.Table) -> float:
    """Seconds from the first to the last timestamp; 0 where there is none."""
    ends = pc.min_max(table[TIMESTAMP].cast(pa.int64())).as_py()
    return 0.0 if ends["min"] is None else (ends["max"] - ends["min"]) / 1000


def _values(parts: Iterable[Path]) -> Iterator[list[bytes | None]]:
    for part in parts:
        yield pq.read_table(part, columns=[VALUE])[VALUE].to_pylist()


def field_of(column: str) -> str:
    """Return the name of the JSON field that a sample's `column` holds: one with a name that is ours has got a "_"."""
    return column.removesuffix("_") if column.removesuffix("_") in _RESERVED else column


def _columns(parts: Sequence[Path], kinds: Mapping[str, set[str]]) -> dict[str, pa.ChunkedArray]:
    """Read JSON objects into columns, those of several kinds as text."""
    plain = [name for name, seen in kinds.items() if len(seen - {"null"}) <= 1]
    tables = []
    for values in _values(parts):
        found = [_object(value) or {} for value in values]
        typed = _typed([{name: one[name] for name in plain if name in one} for one in found])
        for name in kinds:
            if name not in typed:
                typed[name] = pa.array([_as_json(one[name]) if name in one else None for one in found], pa.string())
        tables.append(pa.table({name: typed[name] for name in kinds}))
    taken = set(_RESERVED)
    named = {}
    for name in kinds:
        free = name
        while free in taken:
            free += "_"
        taken.add(free)
        named[free] = _same_type([table[name] for table in tables])
    return named


def _typed(rows: Sequence[Mapping[str, Any]]) -> dict[str, pa.ChunkedArray]:
    """Give the columns that Arrow reads from objects; none of those that it cannot, or that Parquet cannot store."""
    lines = [json.dumps(row, ensure_ascii=False).encode() for row in rows]
    block = max(_LEAST_BLOCK, 2 * max(map(len, lines), default=0))
    data, options = b"\n".join(lines) + b"\n", pj.ReadOptions(block_size=min(block, (1 << 31) - 1))
    try:
        table = pj.read_json(pa.BufferReader(data), options)
        texts = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
        if texts:  # they are texts that look like times
            schema = pa.schema([(name, pa.string()) for name in texts])
            table = pj.read_json(pa.BufferReader(data), options, pj.ParseOptions(explicit_schema=schema))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # kinds that differ deep inside
        return {}
    return {field.name: table[field.name] for field in table.schema if _storable(field.type)}


def _storable(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(_storable(field.type) for field in kind)
    return _storable(kind.value_type) if pa.types.is_list(kind) else True


def _same_type(chunks: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Put a column's parts together: as the type that all of them fit, else as text."""
    try:
        schemas = [pa.schema([("it", chunk.type)]) for chunk in chunks]
        kind = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
        cast = [chunk.cast(kind) for chunk in chunks]
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        texts = [pa.array([None if one is None else _as_json(one) for one in chunk.to_pylist()], pa.string())
                 for chunk in chunks]  # fmt: skip
        return pa.chunked_array(texts)
    return pa.chunked_array([piece for chunk in cast for piece in chunk.chunks], kind)


def _object(value: bytes | None) -> dict[str, Any] | None:
    """Give the JSON object that a value is; None if it is none."""
    if value is None or not value.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _kinds(value: object) -> set[str]:
    """Say what kind of JSON a value is; integers that no column of 64 bits holds are a kind of their own."""
    if value is None:
        return {"null"}
    if isinstance(value, bool):
        return {"truth"}
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return {"number", "large number"}
    return {{int: "number", float: "number", str: "text", list: "list"}.get(type(value), "object")}


def _as_json(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give bytes as text where all of them are."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return values


def _time_ms(message: Message) -> int | None:
    """Milliseconds since 1970 at which a record was made or appended; None where it has no time."""
    _, at = message.timestamp()
    return at if at > 0 else None


def _headers(headers: Mapping[str, Any] | Iterable[tuple[str, Any]] | None) -> str | None:
    """Write headers as JSON, a list of pairs: a name may stand twice."""
    if not headers:
        return None
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return json.dumps([[name, _readable(value)] for name, value in pairs], ensure_ascii=False)


def _readable(value: object) -> object:
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()
