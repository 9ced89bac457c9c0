"""What is sent to a topic: rows as JSON, and a captured sample as it was captured."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.errors import WorkbenchError
from workbench.workload import Dataset, prepare
from workbench.workload.kafka import Schema, Topic, _fill, fill
from workbench.workload.kafka._sample import joined, records_of

TOPIC = Topic("h:1", "orders")
NOW_S = 1_790_000_000.0


class Sent:
    """A record as it was sent; as the client gives it when it is captured."""

    def __init__(self, offset, value, key=None, timestamp=1_780_000_000_000, headers=None):
        self.sent = {"value": value, "key": key, "timestamp": timestamp, "headers": headers}
        self._offset = offset

    def error(self):
        return None

    def partition(self):
        return 3

    def offset(self):
        return self._offset

    def timestamp(self):
        return 1, self.sent["timestamp"]

    def __getattr__(self, name):
        return lambda: self.sent[name]


@pytest.fixture
def sent(monkeypatch):
    """Records that a fake producer takes."""
    found = []

    class Producer:
        def __init__(self, settings):
            pass

        def produce(self, name, on_delivery, **record):  # noqa: ARG002
            found.append(record)

        def poll(self, _):
            pass

        def __len__(self):
            return 0

    monkeypatch.setattr(_fill, "Producer", Producer)
    monkeypatch.setattr(_fill, "_created", lambda *_: 3)
    monkeypatch.setattr(_fill.time, "time", lambda: NOW_S)
    return found


def refilled(folder, captured, event_time=None, rows=None, schema=None, **options):
    """Fill a topic from the sample of `captured` records."""
    pq.write_table(joined([records_of(captured)], schema).table, folder / "sample.parquet")
    ready = prepare(Dataset(str(folder / "sample.parquet"), "parquet"), event_time, folder)
    return fill(TOPIC, ready, rows or len(captured), event_time=event_time, **options)


def test_a_captured_sample_is_sent_as_it_was(sent, tmp_path):
    values = [{"order": 1, "_key": "mine", "value": 2.5}, {"order": 2, "_key": None, "value": 3.0}]
    first = Sent(0, json.dumps(values[0]).encode(), b"shop", headers=[("trace", b"7"), ("trace", None)])
    refilled(tmp_path, [first, Sent(1, json.dumps(values[1]).encode()), Sent(2, None, b"gone")])
    assert [one["value"] and json.loads(one["value"]) for one in sent] == [*values, None]
    assert [one["key"] for one in sent] == [b"shop", None, b"gone"]
    assert [one["headers"] for one in sent] == [[("trace", b"7"), ("trace", None)], [], []]


def test_values_that_were_no_json_are_sent_as_they_were(sent, tmp_path):
    refilled(tmp_path, [Sent(0, b"\x00\xff", b"\xfe"), Sent(1, None), Sent(2, b"plain")])
    assert [one["value"] for one in sent] == [b"\x00\xff", None, b"plain"]
    assert [one["key"] for one in sent] == [b"\xfe", None, None]


def test_json_behind_a_registry_s_wire_format_is_sent_without_it(sent, tmp_path):
    refilled(tmp_path, [Sent(0, b'\0\0\0\0\7{"order": 1}')])
    assert [json.loads(one["value"]) for one in sent] == [{"order": 1}]


def test_a_sample_of_avro_values_is_refused_before_anything_is_sent(sent, tmp_path):
    definition = {"type": "record", "name": "Order", "fields": [{"name": "order", "type": "long"}]}
    with pytest.raises(WorkbenchError, match=r"whose values are Avro, which is not written here.*source: replay"):
        refilled(tmp_path, [Sent(0, b"\2")], schema=Schema(Path("order.avsc"), "AVRO", definition))
    assert sent == []


def test_another_column_of_a_sample_may_be_the_key(sent, tmp_path):
    refilled(tmp_path, [Sent(0, b'{"shop": "a"}', b"1")], key="shop")
    assert [one["key"] for one in sent] == [b"a"]


@pytest.mark.parametrize("event_time", [None, "_timestamp"])
def test_the_timestamps_have_the_event_rate_up_to_now(sent, tmp_path, event_time):
    captured = [Sent(place, b'{"order": 1}', timestamp=1_780_000_000_000 + place) for place in range(3)]
    refilled(tmp_path, captured, event_time, rows=6, event_rate=2.0)
    assert [round(NOW_S * 1000) - one["timestamp"] for one in sent] == [3000, 2500, 2000, 1500, 1000, 500]


def test_a_row_that_came_late_is_sent_with_its_event_time(sent, tmp_path):
    times = [datetime.fromtimestamp(1_780_000_000 + second, UTC) for second in (0, 10, 4)]
    pq.write_table(pa.table({"shop": ["a", "b", "c"], "at": times}), tmp_path / "orders.parquet")
    ready = prepare(Dataset(str(tmp_path / "orders.parquet"), "parquet"), "at", tmp_path)
    fill(TOPIC, ready, 3, key="shop", event_time="at", event_rate=1.0)
    assert [round(NOW_S * 1000) - one["timestamp"] for one in sent] == [3000, 2000, 7000]
    assert [one["key"] for one in sent] == [b"a", b"b", b"c"]
    assert json.loads(sent[0]["value"]) == {"shop": "a", "at": "2026-09-21T14:13:17+00:00"}
    assert "headers" not in sent[0]
