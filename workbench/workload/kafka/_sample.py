"""Captured records as a table: in the order of their timestamps, JSON objects and Avro records as columns.

An Avro schema gives its columns their types. Of JSON, a column whose values are of several kinds, or hold objects
without fields, which Parquet cannot store, is JSON text.
Texts stay texts, also those that look like times.
"""

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from confluent_kafka import Message

from workbench.workload.kafka._wire import json_in, split
from workbench.workload.kafka.schema import Schema
from workbench.workload.query import ENCODED

if TYPE_CHECKING:
    from workbench.workload.kafka._avro import Decoder

KEY, TIMESTAMP, PARTITION, OFFSET, HEADERS, VALUE = "_key", "_timestamp", "_partition", "_offset", "_headers", "value"
OWN = frozenset({KEY, TIMESTAMP, PARTITION, OFFSET, HEADERS})
"""Columns of a sample that are no part of the values."""
_RESERVED = OWN | {VALUE}
COLUMNS: Mapping[str, str] = MappingProxyType(
    {KEY: "key", TIMESTAMP: "timestamp", PARTITION: "partition", OFFSET: "offset"}
)
"""Columns of a sample that are a record's own, and their names in Spark's Kafka source."""

LEAST_SHARE = 0.99
"""Share of the values that must be JSON objects, or decode with the schema."""

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


def records_of(messages: Sequence[Message]) -> pa.Table:
    """Make a table of records as they are."""
    columns = [
        pa.array([message.key() for message in messages], pa.binary()),
        pa.array([message.value() for message in messages], pa.binary()),
        pa.array([_time_ms(message) for message in messages], pa.int64()).cast(_MILLISECONDS),
        pa.array([message.partition() for message in messages], pa.int32()),
        pa.array([message.offset() for message in messages], pa.int64()),
        pa.array([_headers(message.headers()) for message in messages], pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=_STORED)


@dataclass(frozen=True)
class Sample:
    """Captured records as a table.

    Parameters
    ----------
    table
        A row for each record; without a value, and where it does not decode, its columns are empty.
    values, wrong
        Records with a value, and those of them that are no JSON object or do not decode.
    first_wrong
        Partition and offset of the first of these.
    numbers
        How many values have which schema id before them.
    """

    table: pa.Table
    values: int
    wrong: int
    first_wrong: tuple[int, int] | None
    numbers: Mapping[int, int]


@dataclass
class _Decoded:
    """What becomes of values, one after the other, and what was seen of them."""

    schema: Schema | None = None
    values: int = 0
    wrong: int = 0
    first_wrong: int | None = None
    seen: int = 0

    def __post_init__(self) -> None:
        self.numbers: Counter[int] = Counter()
        self.decoder: Decoder | None = None
        self._one: Callable[[bytes], tuple[dict[str, Any] | None, int | None]] = _object_and_number
        if self.schema is not None and self.schema.kind == "AVRO":
            # Only topics with an Avro schema need its library.
            from workbench.workload.kafka._avro import Decoder as Avro  # noqa: PLC0415

            self.decoder = Avro.of(self.schema.definition)
            self._one = partial(_record, self.decoder.decode, self.schema.number)

    def of(self, values: Iterable[bytes | None]) -> Iterator[dict[str, Any] | None]:
        """Give the fields of each value; None where it has none."""
        for value in values:
            self.seen += 1
            if value is None:
                yield None
                continue
            found, number = self._one(value)
            self.values += 1
            if number is not None:
                self.numbers[number] += 1
            if found is None:
                self.wrong += 1
                self.first_wrong = self.seen - 1 if self.first_wrong is None else self.first_wrong
            yield found


def joined(parts: Sequence[pa.Table], schema: Schema | None = None) -> Sample:
    """Put parts into one table, their values decoded: with an Avro schema as it says, otherwise JSON as its values say.

    Without a schema, values that are no JSON stay bytes.
    """
    stored = pa.concat_tables(parts)
    decoded = _Decoded(schema)
    columns, encoding = {VALUE: _text(stored[VALUE])}, b""
    if decoded.decoder is not None:
        tables = [pa.table(decoded.decoder.table(list(decoded.of(values)))) for values in _values(parts)]
        columns, encoding = _named(tables), b"avro"
    else:
        kinds: dict[str, set[str]] = {}
        for values in _values(parts):
            for found in decoded.of(values):
                for name, value in (found or {}).items():
                    kinds.setdefault(name, set()).update(_kinds(value))
        good = decoded.values - decoded.wrong
        if good and good >= LEAST_SHARE * decoded.values:
            columns, encoding = _columns(parts, kinds), b"framed" if decoded.numbers else b""
    columns |= {KEY: _text(stored[KEY])} | {name: stored[name] for name in (TIMESTAMP, PARTITION, OFFSET, HEADERS)}
    table = pa.table(columns).replace_schema_metadata({ENCODED: encoding} if encoding else None)
    order = [(TIMESTAMP, "ascending"), (PARTITION, "ascending"), (OFFSET, "ascending")]
    first, places = decoded.first_wrong, (stored[PARTITION], stored[OFFSET])
    return Sample(
        table.take(pc.sort_indices(table, order)),
        decoded.values,
        decoded.wrong,
        None if first is None else (places[0][first].as_py(), places[1][first].as_py()),
        decoded.numbers,
    )


def _record(
    decode: Callable[[bytes], dict[str, Any] | None], number: int | None, value: bytes
) -> tuple[dict[str, Any] | None, int | None]:
    """Decode an Avro record with or without the wire format; one with another schema's id is not tried."""
    found, body = split(value)
    if found is not None and number in {None, found} and (fields := decode(body)) is not None:
        return fields, found
    fields = decode(value)  # a bare value may begin with the byte 0, too
    return fields, found if fields is None else None


def traffic_s(table: pa.Table) -> float:
    """Seconds from the first to the last timestamp; 0 where there is none."""
    ends = pc.min_max(table[TIMESTAMP].cast(pa.int64())).as_py()
    return 0.0 if ends["min"] is None else (ends["max"] - ends["min"]) / 1000


def _values(parts: Iterable[pa.Table]) -> Iterator[list[bytes | None]]:
    return (part[VALUE].to_pylist() for part in parts)


def field_of(column: str) -> str:
    """Return the name of the JSON field that a sample's `column` holds: one with a name that is ours has got a "_"."""
    return column.removesuffix("_") if column.removesuffix("_") in _RESERVED else column


def _columns(parts: Sequence[pa.Table], kinds: Mapping[str, set[str]]) -> dict[str, pa.ChunkedArray]:
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
    return _named(tables)


def _named(tables: Sequence[pa.Table]) -> dict[str, pa.ChunkedArray]:
    """Put the columns of all parts together, those with a name that is ours under another."""
    taken = set(_RESERVED)
    named = {}
    for name in tables[0].column_names:
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
    return None if value is None else _object_and_number(value)[0]


def _object_and_number(value: bytes) -> tuple[dict[str, Any] | None, int | None]:
    """Give the JSON object that a value is, if it is one, and the id of the schema before it."""
    number, body = json_in(value)
    if not body.lstrip().startswith(b"{"):
        return None, number
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None, number
    return found if isinstance(found, dict) else None, number


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
