"""What is sent to a topic, and where a capture begins so that its limits are reached at the newest records."""

import bisect
import json
import math
import time
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refusals

from workbench.errors import WorkbenchError
from workbench.testbed.spark.kafka import fill
from workbench.testbed.spark.kafka import topics as filling
from workbench.testbed.spark.kafka.topics import Limits, beginning
from workbench.workload import ENCODED, Dataset, prepare
from workbench.workload.kafka import Topic

TOPIC = Topic("h:1", "orders")
NOW_S = 1_790_000_000.0


@pytest.fixture
def sent(monkeypatch):
    """Records that a fake broker takes: time, value, key, headers."""
    found = []
    broker = SimpleNamespace(made=lambda _: 3, sending=lambda: nullcontext(found.extend))

    @contextmanager
    def reached(*_):
        yield broker

    monkeypatch.setattr(filling, "reached", reached)
    monkeypatch.setattr(filling, "packed", lambda *record: record)
    monkeypatch.setattr(filling.time, "time", lambda: NOW_S)
    return found


def sampled(values, keys=None, headers=None, encoding=None, **columns):
    """A sample as a capture writes it."""
    rows = len(values)
    own = {
        "_key": keys or [None] * rows,
        "_timestamp": [datetime.fromtimestamp(1_780_000_000 + place / 1000, UTC) for place in range(rows)],
        "_partition": pa.array([3] * rows, pa.int32()),
        "_offset": list(range(rows)),
        "_headers": pa.array(headers or [None] * rows, pa.string()),
    }
    table = pa.table({**(columns or {"value": values}), **own})
    return table.replace_schema_metadata({ENCODED: encoding} if encoding else None)


def refilled(folder, sample, event_time=None, rows=None, **options):
    """Fill a topic from a sample."""
    pq.write_table(sample, folder / "sample.parquet")
    ready = prepare(Dataset(str(folder / "sample.parquet"), "parquet"), event_time, folder)
    return fill(TOPIC, ready, rows or sample.num_rows, event_time=event_time, **options)


def test_a_captured_sample_is_sent_as_it_was_and_another_column_may_be_the_key(sent, tmp_path):
    columns = {"order": [1, 2, None], "_key_": ["mine", None, None], "value_": [2.5, 3.0, None]}
    headers = ['[["trace","7"],["trace",null]]', None, None]
    refilled(tmp_path, sampled([0] * 3, ["shop", None, "gone"], headers, **columns))
    values = [{"order": 1, "_key": "mine", "value": 2.5}, {"order": 2, "_key": None, "value": 3.0}]
    assert [value and json.loads(value) for _, value, _, _ in sent] == [*values, None]
    assert [key for _, _, key, _ in sent] == [b"shop", None, b"gone"]
    assert [pairs for *_, pairs in sent] == [[("trace", b"7"), ("trace", None)], [], []]
    refilled(tmp_path, sampled([0], ["1"], shop=["a"]), key="shop")
    assert sent[-1][2] == b"a"


def test_values_that_were_no_json_are_sent_as_they_were(sent, tmp_path):
    refilled(tmp_path, sampled([b"\x00\xff", None, b"plain"], [b"\xfe", None, None]))
    assert [value for _, value, _, _ in sent] == [b"\x00\xff", None, b"plain"]
    assert [key for _, _, key, _ in sent] == [b"\xfe", None, None]


def test_a_sample_of_avro_values_is_refused_before_anything_is_sent(sent, tmp_path):
    with pytest.raises(WorkbenchError, match=r"whose values are Avro, which is not written here.*source: replay"):
        refilled(tmp_path, sampled([0], encoding=b"avro", order=[1]))
    assert sent == []


@pytest.mark.parametrize("event_time", [None, "_timestamp"])
def test_the_timestamps_have_the_event_rate_up_to_now(sent, tmp_path, event_time):
    refilled(tmp_path, sampled([0] * 3, order=[1, 1, 1]), event_time, rows=6, event_rate=2.0)
    assert [round(NOW_S * 1000) - at_ms for at_ms, *_ in sent] == [3000, 2500, 2000, 1500, 1000, 500]


def test_a_row_that_came_late_is_sent_with_its_event_time(sent, tmp_path):
    times = [datetime.fromtimestamp(1_780_000_000 + second, UTC) for second in (0, 10, 4)]
    pq.write_table(pa.table({"shop": ["a", "b", "c"], "at": times}), tmp_path / "orders.parquet")
    ready = prepare(Dataset(str(tmp_path / "orders.parquet"), "parquet"), "at", tmp_path)
    fill(TOPIC, ready, 3, key="shop", event_time="at", event_rate=1.0)
    assert [round(NOW_S * 1000) - at_ms for at_ms, *_ in sent] == [3000, 2000, 7000]
    assert [key for _, _, key, _ in sent] == [b"a", b"b", b"c"]
    assert json.loads(sent[0][1]) == {"shop": "a", "at": "2026-09-21T14:13:17+00:00"}
    assert sent[0][3] == []


def test_a_key_that_is_no_column(tmp_path):
    pq.write_table(pa.table({"order": [1]}), tmp_path / "orders.parquet")
    ready = prepare(Dataset(str(tmp_path / "orders.parquet"), "parquet"), None, tmp_path)
    with pytest.raises(WorkbenchError, match="'region' is not a column; the columns are order"):
        fill(TOPIC, ready, 1, key="region")


NOW_MS = 1_790_000_000_000


class Stamped:
    """A topic whose records, of 1 KiB, have the times of `stamps`, ms since 1970, by partition."""

    def __init__(self, stamps):
        self.stamps = stamps

    def since(self, at_ms, ends):
        return {number: bisect.bisect_left(self.stamps[number], at_ms) for number in ends}

    def row_bytes(self, begin):
        assert any(first < len(self.stamps[number]) for number, first in begin.items())
        return 1024.0


@pytest.fixture
def begun(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: NOW_MS / 1000)

    def begin(stamps, **limits):
        ends = {number: (0, len(times)) for number, times in stamps.items()}
        first = beginning(Stamped(stamps), Limits(**limits), ends)
        return {number: len(times) - first[number] for number, times in stamps.items()}

    return begin


def spread(count, seconds, before_s=0):
    """Times of `count` records within `seconds`, until `before_s` ago."""
    return [NOW_MS - round(1000 * (before_s + seconds * (1 - place / count))) for place in range(count)]


@pytest.mark.parametrize("before_s", [0, 5, 40_000_000])
def test_partitions_are_captured_since_one_moment(begun, before_s):
    taken = begun({0: spread(90_000, 900, before_s), 1: spread(10_000, 900, before_s), 2: []}, rows=10_000)
    assert 9_990 <= sum(taken.values()) <= 10_000
    assert taken[0] == pytest.approx(9_000, abs=20)
    assert taken[2] == 0


@pytest.mark.parametrize(
    ("stamps", "limits", "taken"),
    [
        ({0: spread(5_000, 50), 1: spread(50_000, 500, before_s=100)}, {"rows": 1_000}, {0: 1_000, 1: 0}),  # no traffic
        ({0: spread(500, 5), 1: spread(7, 500)}, {"rows": 1_000}, {0: 500, 1: 7}),  # less than is asked: all
        ({0: spread(6_000, 600), 1: spread(600, 600)}, {"seconds": 60.0}, {0: 600, 1: 60}),
    ],
)
def test_what_is_captured_of_each_partition(begun, stamps, limits, taken):
    assert begun(stamps, **limits) == taken


@pytest.mark.parametrize("at_ms", [NOW_MS - 5_000, NOW_MS + 3_600_000, 0])
def test_records_of_one_time_are_shared_in_proportion(begun, at_ms):
    taken = begun({0: 9_000 * [at_ms], 1: 1_000 * [at_ms]}, rows=1_000)
    assert taken == pytest.approx({0: 900, 1: 100}, abs=1)


def test_of_large_records_fewer_are_read_so_that_they_are_the_newest(begun):
    taken = begun({0: spread(50_000, 500), 1: spread(50_000, 500)}, megabytes=10)
    assert taken == pytest.approx({0: 4_864, 1: 4_864}, abs=100)  # 95 % of 10 MiB, of 1 KiB each


test_limits_are_checked = refusals(
    lambda given: Limits(**given),
    ({"rows": 0}, "rows is 0"),
    ({"seconds": -1.0}, "seconds is -1.0"),
    ({"seconds": math.inf}, "seconds is inf"),
    ({"megabytes": 2000}, "at most 1,024"),
)
