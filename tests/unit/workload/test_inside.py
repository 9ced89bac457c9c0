"""Event times inside JSON texts: cut out, and written again in their own way."""

import json

import pyarrow as pa
import pytest
from parquet_rows import stored

from workbench.errors import WorkbenchError
from workbench.workload import EventClock, check_dataset, prepare, schema_of
from workbench.workload.inside import Inside

CLOCK = EventClock(1_700_000_000_123_456, 0, 1_000_000.0)
"""A row a second from 2023-11-14 22:13:20.123456 on."""


def replayed(folder, values, event_time="value.time", kind=None):
    columns = {
        "value": pa.array(values, kind or pa.binary()),
        "timestamp": pa.array([0] * len(values), pa.timestamp("us", "UTC")),
    }
    dataset = stored(folder, columns, event_time)
    check_dataset(dataset, event_time)
    made = prepare(dataset, event_time, folder)
    assert made.schema() == schema_of(dataset, event_time)
    (batch,) = made.batches(0, len(values), CLOCK)
    assert batch.schema.equals(made.schema())
    return batch.to_pylist()


@pytest.mark.parametrize(
    ("first", "second", "written"),
    [
        ("2020-01-01T00:00:05Z", "2020-01-01T00:00:02Z", "2023-11-14T22:13:18Z"),
        ("2020-01-01 00:00:05.250", "2020-01-01 00:00:02.250", "2023-11-14 22:13:18.123"),
        ("2020-01-01T01:00:05.123456789+01:00", "2020-01-01T01:00:02.123456789+01:00", "2023-11-14T22:13:18.123456Z"),
        (1_600_000_005, 1_600_000_002, 1_700_000_000 - 2),
        (1_600_000_005_000, 1_600_000_002_000, 1_700_000_000_123 - 2000),
    ],
)
def test_a_time_keeps_its_way_of_writing_and_its_lateness(tmp_path, first, second, written):
    rows = [json.dumps({"shop": 'a "time" of', "time": one, "n": [1]}).encode() for one in (first, second)]
    found = replayed(tmp_path, rows)
    value = json.loads(found[1]["value"])
    assert value == {"shop": 'a "time" of', "time": written, "n": [1]}  # three seconds late, a second after the first
    assert found[1]["timestamp"].timestamp() == pytest.approx(
        1_700_000_001.123456
    )  # of the broker, which it reaches now


def test_a_time_inside_an_object_and_a_text_column(tmp_path):
    rows = [json.dumps({"time": "x", "a": {"b": {"time": "2020-01-01T00:00:00Z"}}}) for _ in range(2)]
    found = replayed(tmp_path, rows, "value.a.b.time", pa.string())
    assert json.loads(found[0]["value"]) == {"time": "x", "a": {"b": {"time": "2023-11-14T22:13:20Z"}}}


@pytest.mark.parametrize("values", [[b'{"time": "2020-01-01T00:00:00Z"}', b'{"other": 1}'], [b"\xff\xfe", b"\x00"]])
def test_values_without_the_field_are_counted(tmp_path, values):
    with pytest.raises(WorkbenchError, match=r"of 2 values of the column 'value' have no JSON field 'time'"):
        replayed(tmp_path, values)


def test_a_column_with_a_dot_in_its_name_is_a_column():
    assert Inside.named("value.time", ["value", "value.time"]) is None
    assert Inside.named("time", ["value"]) is None
    assert Inside.named("value.time", ["value"]) == Inside("value", "time")
