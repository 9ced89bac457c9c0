"""A topic of a real broker, filled and captured."""

import json
import time
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kafka_records import blocks, double, framed, long, sent_to, text, union

from workbench.errors import WorkbenchError
from workbench.testbed.spark.kafka import Limits, capture, fill
from workbench.testbed.spark.machine.broker import offsets_of
from workbench.workload import ENCODED, Dataset, EventClock, prepare
from workbench.workload.kafka import Schema, Topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.usefixtures("connector")]

AT_MS = int(1000 * time.time())  # the broker deletes old records
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "order", "type": "long"}, {"name": "shop", "type": ["null", "string"]}],
}


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    """A data set of 120,000 orders."""
    rows = 120_000
    table = pa.table(
        {
            "order": pa.array(range(rows)),
            "shop": pa.array([f"shop-{number % 97}" for number in range(rows)]),
            "amount": pa.array([number % 1000 / 10 for number in range(rows)]),
        }
    )
    folder = tmp_path_factory.mktemp("orders")
    pq.write_table(table, folder / "orders.parquet")
    return prepare(Dataset(str(folder / "orders.parquet"), "parquet"), None, folder)


@pytest.fixture(scope="module")
def filled(broker, orders):
    topic = Topic.parse(broker.url("orders"))
    sent = fill(topic, orders, 120_000, key="shop", partitions=3)
    assert (sent.rows, sent.partitions) == (120_000, 3)
    return topic


def test_what_was_sent_is_captured_once(filled, tmp_path):
    found = capture(filled, tmp_path / "orders.parquet")
    table = pq.read_table(found.path)
    assert (found.rows, found.partitions, found.not_json) == (120_000, 3, 0)
    assert Counter(table["order"].to_pylist()) == Counter(range(120_000))
    assert table["amount"].type == pa.float64()
    assert table["_key"].to_pylist() == table["shop"].to_pylist()
    assert table["_timestamp"].to_pylist() == sorted(table["_timestamp"].to_pylist())
    assert [one.name for one in tmp_path.iterdir()] == ["orders.parquet"]


@pytest.mark.long
def test_the_newest_rows_are_captured(filled, tmp_path):
    found = capture(filled, tmp_path / "some.parquet", Limits(rows=3000))
    table = pq.read_table(found.path)
    assert 2900 <= found.rows <= 3000  # records of one millisecond come together
    assert min(table["order"].to_pylist()) > 116_000  # since one moment in all partitions
    assert set(table["_partition"].to_pylist()) == {0, 1, 2}


@pytest.mark.long
def test_bytes_and_seconds_bound_a_capture(filled, tmp_path):
    found = capture(filled, tmp_path / "small.parquet", Limits(megabytes=1, seconds=3600))
    assert 5_000 < found.rows < 120_000
    assert max(pq.read_table(found.path)["order"].to_pylist()) == 119_999
    with pytest.raises(WorkbenchError, match="has no records in the requested range"):
        capture(filled, tmp_path / "none.parquet", Limits(seconds=1e-3))


@pytest.mark.long
def test_keys_headers_and_values_that_are_no_json_are_kept(broker, tmp_path):
    headers = [("trace", b"7"), ("trace", b"\xff"), ("gone", None)]
    records = [(AT_MS + 1, b"plain", b"\xff", headers), (AT_MS + 2, None), (AT_MS, b'{"order": 1}')]
    found = capture(sent_to(broker, "mixed", records), tmp_path / "mixed.parquet")
    table = pq.read_table(found.path)
    assert (found.not_json, found.seconds) == (1, 0.002)  # a record without a value is not wrong one
    assert table["value"].to_pylist() == ['{"order": 1}', "plain", None]  # in the order of their timestamps
    assert table["_key"].to_pylist() == [None, b"\xff", None]
    assert json.loads(table["_headers"].to_pylist()[1]) == [["trace", "7"], ["trace", "/w=="], ["gone", None]]
    assert table["_headers"].to_pylist()[0] is None
    assert found.path.stat().st_mode & 0o777 == 0o600


def test_json_becomes_columns_of_the_types_that_it_has(broker, tmp_path):
    values = [
        {
            "whole": 1,
            "part": 1,
            "any": 1,
            "at": "2026-01-31T12:00:00Z",
            "list": [{"x": 1}],
            "_key": "mine",
            "value": 2.5,
        },
        {"whole": None, "part": 2.5, "any": "two", "at": "2026-01-31T12:00:01Z", "Any": True, "a.b": {"c": "é"}},
    ]
    bodies = [json.dumps(value).encode() for value in values]
    bodies = [bodies[0], framed(258, bodies[1]), None, *[b'{"whole": 3}'] * 100, b"{broken"]
    found = capture(sent_to(broker, "json", [(AT_MS, body) for body in bodies]), tmp_path / "json.parquet")
    table = pq.read_table(found.path)
    assert (found.not_json, found.schema_ids) == (1, (258,))
    assert table.schema.metadata[ENCODED] == b"framed"
    assert table["whole"].to_pylist() == [1, None, None, *[3] * 100, None]
    assert table["part"].to_pylist()[:3] == [1.0, 2.5, None]
    assert table["any"].to_pylist()[:3] == ["1", "two", None]
    assert table["Any"].to_pylist()[:3] == [None, True, None]
    assert table["at"].to_pylist()[:2] == ["2026-01-31T12:00:00Z", "2026-01-31T12:00:01Z"]
    assert table["list"].to_pylist()[:2] == [[{"x": 1}], None]
    assert table["a.b"].to_pylist()[1] == {"c": "é"}
    assert (table["_key_"].to_pylist()[0], table["value_"].to_pylist()[0]) == ("mine", 2.5)


def test_avro_becomes_columns_of_the_schema_s_types(broker, tmp_path):
    point = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
    money = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    instant = {"type": "long", "logicalType": "timestamp-millis"}
    kinds = {
        "truth": ("boolean", b"\1", pa.bool_(), True),
        "int": ("int", long(-7), pa.int32(), -7),
        "long": ("long", long(2**40), pa.int64(), 2**40),
        "double": ("double", double(0.1), pa.float64(), 0.1),
        "bytes": ("bytes", text(b"\0\xff"), pa.binary(), b"\0\xff"),
        "string": ("string", text("é"), pa.string(), "é"),
        "none": (["null", "long"], union(0), pa.int64(), None),
        "some": (["long", "null"], union(0, long(5)), pa.int64(), 5),
        "enum": ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, long(1), pa.string(), "B"),
        "fixed": ({"type": "fixed", "name": "F", "size": 2}, b"ab", pa.binary(), b"ab"),
        "day": ({"type": "int", "logicalType": "date"}, long(20_484), pa.date32(), date(2026, 1, 31)),
        "at": (instant, long(AT_MS), pa.timestamp("us", "UTC"), datetime.fromtimestamp(AT_MS / 1000, UTC)),
        "money": (money, text(b"\xff\x6a"), pa.decimal128(10, 2), Decimal("-1.50")),
        "list": (
            {"type": "array", "items": ["null", "int"]},
            blocks(union(1, long(1)), union(0)),
            pa.list_(pa.int32()),
            [1, None],
        ),
        "map": (
            {"type": "map", "values": "long"},
            blocks(text("a") + long(1)),
            pa.map_(pa.string(), pa.int64()),
            [("a", 1)],
        ),
        "inner": (point, long(3), pa.struct([("x", pa.int32())]), {"x": 3}),
        "again": ("Point", long(4), pa.struct([("x", pa.int32())]), {"x": 4}),
        "either": (
            ["null", "int", "string"],
            union(2, text("five")),
            pa.struct([("member0", pa.int32()), ("member1", pa.string())]),
            {"member0": None, "member1": "five"},
        ),
        "value": ("int", long(1), pa.int32(), 1),
    }
    fields = [{"name": name, "type": kind} for name, (kind, *_) in kinds.items()]
    body = b"".join(written for _, written, _, _ in kinds.values())
    schema = Schema(tmp_path / "r.avsc", "AVRO", {"type": "record", "name": "R", "fields": fields})
    found = capture(sent_to(broker, "kinds", [(AT_MS, body), (AT_MS, None)]), tmp_path / "r.parquet", schema=schema)
    table = pq.read_table(found.path)
    assert (found.rows, found.not_decoded) == (2, 0)
    for name, (_, _, kind, value) in kinds.items():
        column = table["value_" if name == "value" else name]
        assert (name, column.to_pylist()) == (name, [value, None])
        assert str(column.type).replace("element", "item").replace(" ('map')", "") == str(kind), name
    ready = prepare(Dataset(str(found.path), "parquet"), "_timestamp", tmp_path)
    assert ready.schema().metadata[ENCODED] == b"avro"
    (batch,) = ready.batches(0, 2, EventClock(10**15, 0, 1000.0))
    assert batch.num_rows == 2


more = partial(pytest.param, marks=pytest.mark.long)


def order(number, shop=None):
    return long(number) + (union(0) if shop is None else union(1, text(shop)))


@pytest.mark.long
def test_what_is_no_record_from_its_first_to_its_last_byte_does_not_decode(broker, tmp_path):
    wrong = [b"", b"\2", b"\2\2\xff", b"\x80" * 12, b"{}", order(1) + b"x", framed(9, b"")]
    wrong += [long(1) + union(1, long(2**30))]  # a text of a GiB, which is not there
    good = [framed(7, order(1, "a")), order(2), order(0, "b"), framed(9, order(3)), None]  # one begins with the byte 0
    records = [(AT_MS + place, body) for place, body in enumerate([*good, *wrong, *[order(4)] * 1000])]
    topic = sent_to(broker, "orders-avro", records)
    found = capture(topic, tmp_path / "o.parquet", schema=Schema(tmp_path / "o.avsc", "AVRO", ORDER))
    assert (found.not_decoded, found.not_json, found.schema_ids) == (8, 0, (7, 9))
    table = pq.read_table(found.path)
    assert table["order"].to_pylist()[:13] == [1, 2, 0, 3, *[None] * 9]
    assert table["shop"].to_pylist()[:5] == ["a", None, "b", None, None]


@pytest.mark.parametrize(
    ("fields", "number", "said"),
    [
        more(ORDER["fields"], 5, r"The values are in a registry's wire format, with the schema id 7\. Name the schema"),
        more(ORDER["fields"][:1], None, r"do not decode .* expected were the fields order, and nothing after"),
        ([{"name": "a", "type": "Money"}], None, r"Spark does not read .* with the Avro schema o.avsc: .*Money"),
    ],
)
def test_a_schema_that_is_another_s_is_named_with_the_first_value(broker, tmp_path, fields, number, said):
    name = f"other-{number}-{len(fields)}-{fields[0]['name']}"
    topic = sent_to(broker, name, [(AT_MS, None), *[(AT_MS, framed(7, order(64, "hunter2")))] * 10])
    schema = Schema(tmp_path / "o.avsc", "AVRO", {**ORDER, "fields": fields}, number)
    with pytest.raises(WorkbenchError, match=said) as error:
        capture(topic, tmp_path / "o.parquet", schema=schema)
    if "Money" not in said:
        assert f"10 of 10 values of {topic.url} do not decode with {schema.said}" in str(error.value)
        assert "at most 1 % may. The first is in partition 0, at offset 1" in str(error.value)
    assert "hunter2" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.fault("a broker is away when a capture begins", sees="the broker is named, with what to do")
def test_a_broker_that_is_away_is_named_and_a_capture_can_be_repeated(broker, filled, tmp_path):
    target = tmp_path / "orders.parquet"
    broker.stop()
    try:
        with pytest.raises(WorkbenchError, match=r"Check the servers, .*then run the same again"):
            capture(filled, target)
    finally:
        broker.start()
    assert list(tmp_path.iterdir()) == []
    assert capture(filled, target).rows == 120_000


def test_a_topic_that_there_is_not(broker):
    with pytest.raises(WorkbenchError, match=r"/none does not exist.*Check its name"):
        offsets_of(Topic.parse(broker.url("none")), {})


def test_a_login_that_the_broker_does_not_take_is_told_without_the_password(broker):
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me"}
    with pytest.raises(WorkbenchError) as error:
        offsets_of(Topic.parse(broker.url("orders")), login | {"sasl.password": "hunter2"})
    assert "cannot be used: " in str(error.value)
    assert "Check the servers, the topic and the client settings" in str(error.value)
    assert "hunter2" not in str(error.value)


def test_a_record_that_is_too_large_is_told_with_the_setting(broker):
    said = r"does not take records .*large.* About 1 rows are in the topic.*max\.request\.size"
    with pytest.raises(WorkbenchError, match=said):
        sent_to(broker, "large", [(AT_MS, b"small"), (AT_MS, b"x" * 2_000_000)])


def test_a_place_that_is_no_file_is_refused(tmp_path):
    (tmp_path / "orders.parquet").mkdir()
    with pytest.raises(WorkbenchError, match=r"is not a place for a sample; name a file that ends in .parquet"):
        capture(Topic("h:1", "orders"), tmp_path / "orders.parquet")
