"""Values that have a schema: the file of it, the columns it gives, and what does not decode."""

import json
from contextlib import nullcontext
from datetime import UTC, date, datetime, time
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastavro import parse_schema, schemaless_writer
from kafka_records import Record

from workbench.cli import main
from workbench.errors import WorkbenchError
from workbench.workload import ENCODED, Dataset, EventClock, prepare
from workbench.workload.kafka import Schema, Topic, _capture, capture, read_schema
from workbench.workload.kafka._sample import joined, records_of

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "order", "type": "long"}, {"name": "shop", "type": ["null", "string"], "default": None}],
}
AT = datetime(2026, 1, 31, 12, 0, 0, 250_000, UTC)


class Holding(Record):
    def __init__(self, offset, value):
        super().__init__(2, offset)
        self._value = value

    def value(self):
        return self._value


def written(definition, row, number=None):
    buffer = BytesIO()
    schemaless_writer(buffer, parse_schema(definition), row)
    return (b"" if number is None else b"\0" + number.to_bytes(4, "big")) + buffer.getvalue()


def sampled(schema, values):
    half = len(values) // 2
    records = [Holding(place, value) for place, value in enumerate(values)]
    return joined([records_of(some) for some in (records[:half], records[half:])], schema)


def avro(definition=ORDER, number=None):
    return Schema(Path("order.avsc"), "AVRO", definition, number)


@pytest.mark.parametrize(
    ("kind", "value", "column", "found"),
    [
        ("boolean", True, pa.bool_(), True),
        ("int", -7, pa.int32(), -7),
        ("long", 2**40, pa.int64(), 2**40),
        ("float", 0.5, pa.float32(), 0.5),
        ("double", 0.1, pa.float64(), 0.1),
        ("bytes", b"\0\xff", pa.binary(), b"\0\xff"),
        ("string", "é", pa.string(), "é"),
        (["null", "long"], None, pa.int64(), None),
        (["long", "null"], 5, pa.int64(), 5),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", pa.string(), "B"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", pa.binary(), b"ab"),
        ({"type": "long", "logicalType": "timestamp-millis"}, AT, pa.timestamp("ms", "UTC"), AT),
        ({"type": "long", "logicalType": "timestamp-micros"}, AT, pa.timestamp("us", "UTC"), AT),
        (
            {"type": "long", "logicalType": "local-timestamp-micros"},
            AT.replace(tzinfo=None),
            pa.timestamp("us"),
            AT.replace(tzinfo=None),
        ),
        ({"type": "int", "logicalType": "date"}, date(2026, 1, 31), pa.date32(), date(2026, 1, 31)),
        ({"type": "int", "logicalType": "time-millis"}, time(0, 1, 2, 3000), pa.int32(), 62_003),
        ({"type": "long", "logicalType": "time-micros"}, time(0, 1, 2, 3), pa.int64(), 62_000_003),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            Decimal("-1.50"),
            pa.decimal128(10, 2),
            Decimal("-1.50"),
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 1},
            Decimal("1.5"),
            pa.string(),
            "1.5",
        ),
        ({"type": "string", "logicalType": "uuid"}, UUID(int=5), pa.string(), str(UUID(int=5))),
        ({"type": "array", "items": ["null", "int"]}, [1, None], pa.list_(pa.int32()), [1, None]),
        ({"type": "map", "values": "long"}, {"a": 1}, pa.map_(pa.string(), pa.int64()), [("a", 1)]),
        (
            {
                "type": "record",
                "name": "P",
                "fields": [{"name": "x", "type": {"type": "int", "logicalType": "time-millis"}}],
            },
            {"x": time(0, 0, 1)},
            pa.struct([("x", pa.int32())]),
            {"x": 1000},
        ),
        (["null", "int", "string"], 5, pa.string(), "5"),
        (["int", "long"], 2**40, pa.int64(), 2**40),
        ({"type": "record", "name": "Nothing", "fields": []}, {}, pa.string(), "{}"),
    ],
)
def test_columns_have_the_schema_s_types(tmp_path, kind, value, column, found):
    definition = {"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]}
    sample = sampled(avro(definition), [written(definition, {"a": value}), None])
    assert sample.wrong == 0
    pq.write_table(sample.table, tmp_path / "sample.parquet")
    table = pq.read_table(tmp_path / "sample.parquet")
    assert table["a"].type.equals(column) or table["a"].type == column
    assert table["a"].to_pylist() == [found, None]
    ready = prepare(Dataset(str(tmp_path / "sample.parquet"), "parquet"), "_timestamp", tmp_path)
    assert ready.schema().metadata[ENCODED] == b"avro"
    (batch,) = ready.batches(0, 2, EventClock(10**15, 0, 1000.0))
    assert batch.num_rows == 2


def test_types_that_are_named_again_and_a_record_inside_itself():
    point = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
    definition = {
        "type": "record",
        "name": "R",
        "namespace": "n",
        "fields": [
            {"name": "a", "type": point},
            {"name": "b", "type": "Point"},
            {"name": "more", "type": ["null", "n.R"]},
        ],
    }
    inner = {"a": {"x": 3}, "b": {"x": 4}, "more": None}
    row = {"a": {"x": 1}, "b": {"x": 2}, "more": inner}
    table = sampled(avro(definition), [written(definition, row)]).table
    assert table["b"].to_pylist() == [{"x": 2}]
    assert json.loads(table["more"][0].as_py()) == inner


def test_names_that_are_ours_get_another():
    definition = {"type": "record", "name": "R", "fields": [{"name": n, "type": "int"} for n in ("value", "_key")]}
    table = sampled(avro(definition), [written(definition, {"value": 1, "_key": 2})]).table
    assert (table["value_"].to_pylist(), table["_key_"].to_pylist()) == ([1], [2])


def test_values_with_and_without_the_wire_format():
    rows = [{"order": number, "shop": "a"} for number in range(4)]
    values = [written(ORDER, row, number) for row, number in zip(rows, (7, None, 7, 9), strict=True)]
    assert values[1][:1] == b"\2"
    found = sampled(avro(), [*values, written(ORDER, {"order": 0, "shop": "a"})])  # begins with the byte 0
    assert found.wrong == 0
    assert found.table["order"].to_pylist() == [0, 1, 2, 3, 0]
    assert found.numbers == {7: 2, 9: 1}
    found = sampled(avro(number=7), values)  # another schema's values are not guessed at
    assert (found.wrong, found.first_wrong, found.numbers) == (1, (2, 3), {7: 2, 9: 1})
    assert found.table["order"].to_pylist() == [0, 1, 2, None]


@pytest.mark.parametrize("value", [b"", b"\2", b"\2\0\0", b"\2\2\xff", b"\x80" * 12, b"{}", b"\0\0\0\0\7"])
def test_what_is_no_record_from_its_first_to_its_last_byte_does_not_decode(value):
    found = sampled(avro(), [written(ORDER, {"order": 1}), value])
    assert (found.values, found.wrong, found.first_wrong) == (2, 1, (2, 1))


@pytest.fixture
def captured(tmp_path, monkeypatch):
    """Capture a topic that holds given values."""
    monkeypatch.chdir(tmp_path)

    def of(values, schema):
        read = [records_of([Holding(place, value) for place, value in enumerate(values)])]
        monkeypatch.setattr(_capture, "consuming", lambda *_: nullcontext())
        monkeypatch.setattr(_capture, "ends_of", lambda *_: {2: (0, len(values))})
        monkeypatch.setattr(_capture, "_begin", lambda *_: {2: 0})
        monkeypatch.setattr(_capture._Reading, "read", lambda _: read)
        return capture(Topic("h:1", "orders"), tmp_path / "orders.parquet", schema=schema)

    return of


def test_a_few_values_that_do_not_decode_are_counted(captured):
    values = [written(ORDER, {"order": number}, 7) for number in range(199)]
    found = captured([*values, b"{}"], avro())
    assert (found.rows, found.not_decoded, found.not_json, found.schema_ids) == (200, 1, 0, (7,))
    assert pq.read_table(found.path)["order"].null_count == 1


@pytest.mark.parametrize(
    ("schema", "number", "said"),
    [
        (avro(number=5), 7, r"The values are in a registry's wire format, with the schema id 7\. Name the schema"),
        (avro({**ORDER, "fields": ORDER["fields"][:1]}), None, r"No value is in a registry's wire format"),
    ],
)
def test_more_than_a_percent_is_an_error_that_names_the_first(captured, tmp_path, schema, number, said):
    values = [None, *(written(ORDER, {"order": 64, "shop": "hunter2"}, number) for _ in range(10))]
    with pytest.raises(WorkbenchError, match=said) as error:
        captured(values, schema)
    assert f"10 of 10 values of kafka://h:1/orders do not decode with {schema.said}" in str(error.value)
    assert "at most 1 % may. The first is in partition 2, at offset 1; expected were the fields order" in str(
        error.value
    )
    assert "hunter2" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_json_with_a_registry_s_answer(captured):
    schema = Schema(Path("order.json"), "JSON", {"type": "object"}, 7)
    found = captured([b'\0\0\0\0\7{"a": 1}'], schema)
    assert (found.columns[0], found.not_decoded, found.schema_ids) == ("a", 0, (7,))
    with pytest.raises(WorkbenchError, match=r"the JSON schema order.json \(id 7\).*expected were a JSON object"):
        captured([b"1"], schema)


def test_what_a_registry_hands_out_is_read(tmp_path):
    file = tmp_path / "s.json"
    for content, kind, number in (
        (ORDER, "AVRO", None),
        ({"schema": json.dumps(ORDER)}, "AVRO", None),
        ({"subject": "orders-value", "version": 2, "id": 7, "schema": json.dumps(ORDER)}, "AVRO", 7),
        ({"schema": json.dumps(ORDER), "schemaType": "AVRO", "id": 7}, "AVRO", 7),
        ({"schema": '{"type": "object"}', "schemaType": "JSON"}, "JSON", None),
    ):
        file.write_text(json.dumps(content))
        found = read_schema(file)
        assert (found.kind, found.number) == (kind, number)
        assert found.definition == (ORDER if kind == "AVRO" else {"type": "object"})
    digests = {avro().digest, avro(number=7).digest, avro({**ORDER, "name": "Bid"}).digest}
    assert len(digests) == 3
    assert Schema(Path("other.avsc"), "AVRO", dict(reversed(ORDER.items()))).digest == avro().digest


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, r"The schema s.json cannot be read: No such file or directory. Check the path"),
        ("{", r"The schema s.json is no JSON: .*It must be an Avro record"),
        ("[1]", r"is \[1\]; it must be an Avro record"),
        ({"type": "enum", "name": "E", "symbols": []}, r"has the type 'enum'; it must be a record"),
        ({}, r"has the type None; it must be a record"),
        ({"type": "object"}, r"is a JSON Schema. JSON values become columns without one: leave it out"),
        ({"schema": "{"}, r"has a text 'schema' that is no JSON: "),
        ({"schema": '"string"'}, r"has a text 'schema' that is 'string'; it must be an Avro record"),
        ({"schema": "syntax", "schemaType": "PROTOBUF"}, r"has the schemaType PROTOBUF, .* Leave it out: values are"),
        ({"schema": "{}", "schemaType": "XML"}, r"has the schemaType 'XML'; it must be AVRO or JSON"),
        ({"schema": "{}", "references": [{"name": "x"}]}, r"refers to other schemas .* Write their definitions"),
        ({"schema": "{}", "schemaType": "JSON", "id": "7"}, r"has the id '7'; it must be a whole number"),
        ({"type": "record", "name": "R", "fields": []}, r"is a record without fields; it must have one at least"),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "Money"}]},
            r"is no Avro schema: the type 'Money' is not defined in it. Correct it",
        ),
        ({"type": "record", "fields": [{"name": "a", "type": "int"}]}, r"is no Avro schema: .*name"),
        ({"type": "record", "name": "R", "fields": [{"name": "a"}]}, r"is no Avro schema: .*missing 'type'"),
        ({"type": "record", "name": "R"}, r"is a record without fields; it must have one at least"),
        ({"type": "record", "name": "R", "fields": [3]}, r"is no Avro schema: .*[Rr]ecord field"),
    ],
)
def test_a_file_that_is_no_schema_is_refused_with_the_next_step(tmp_path, monkeypatch, capsys, content, said):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("s.json").write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(WorkbenchError, match=said):
        read_schema("s.json")
    assert main(["capture", "kafka://h:1/orders", "x.parquet", "--schema", "s.json"]) == 2
    assert "The schema s.json" in capsys.readouterr().err


def test_the_command_says_what_did_not_decode_and_which_ids_there_are(captured, capsys):
    Path("order.avsc").write_text(json.dumps(ORDER))
    values = [written(ORDER, {"order": number}, 7 + number % 2) for number in range(199)]
    captured([*values, b"{}"], avro())
    Path("orders.parquet").unlink()
    assert main(["capture", "kafka://h:1/orders", "orders.parquet", "--schema", "order.avsc"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "columns: order, shop, _key" in said
    assert "note: values that do not decode with the schema: 1" in said
    assert "note: the values have the schema ids 7, 8; all were read with the Avro schema order.avsc" in said
    assert main(["capture", "kafka://h:1/orders", "orders.parquet", "--schema", "order.avsc", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["not_decoded"], told["schema_ids"]) == (200, 1, [7, 8])
    assert main(["fill", "kafka://h:1/orders", "orders.parquet", "--rows", "1"]) == 2
    assert "whose values are Avro, which is not written here" in capsys.readouterr().err


def test_a_sample_is_whole_and_only_yours(captured, tmp_path):
    found = captured([b'{"a": 1}'], None)
    assert found.path.stat().st_mode & 0o777 == 0o600
    found.path.unlink()
    found.path.mkdir()
    with pytest.raises(WorkbenchError, match=r"is no place for a sample; name a file that ends in .parquet"):
        captured([b'{"a": 1}'], None)
    assert [one.name for one in tmp_path.iterdir()] == ["orders.parquet"]
