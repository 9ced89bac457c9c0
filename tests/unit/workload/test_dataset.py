import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from parquet_rows import stored
from refusals import refusals

from workbench.errors import WorkbenchError
from workbench.workload import Dataset, EventClock, Query, check_dataset, prepare, schema_of
from workbench.workload import dataset as module
from workbench.workload.dataset import BATCH_ROWS, check
from workbench.workload.inside import Inside


def rows(replay, first, last, clock=None):
    clock = clock or EventClock(0, 0, 1_000_000)
    return pa.Table.from_batches(list(replay.batches(first, last, clock)), replay.schema())


@pytest.fixture
def orders(tmp_path):
    path = tmp_path / "orders.csv"
    path.write_text("time,shop,amount\n2024-01-01T00:00:00Z,a,1\n2024-01-01T00:00:10Z,b,2\n2024-01-01T00:00:07Z,a,3\n")
    return path


def test_a_row_keeps_its_lateness_when_its_event_time_is_replaced_and_the_data_is_looped_over(orders, tmp_path):
    replay = prepare(Dataset.at(str(orders)), "time", tmp_path)
    got = rows(replay, 0, 3).column("time").cast(pa.int64()).to_pylist()
    assert got == [0, 1_000_000, 2_000_000 - 3_000_000]
    assert rows(replay, 2, 7).column("amount").to_pylist() == [3, 1, 2, 3, 1]


def test_any_slice_gives_the_same_rows_across_batches(tmp_path):
    count = 2 * BATCH_ROWS + 17
    replay = prepare(stored(tmp_path, {"n": np.arange(count)}), None, tmp_path)
    assert replay.rows == count
    expected = np.arange(BATCH_ROWS - 3, count + 5) % count
    assert rows(replay, BATCH_ROWS - 3, count + 5).column("n").to_pylist() == expected.tolist()


@pytest.mark.parametrize("unit", [1, 1_000, 1_000_000, 1_000_000_000])
@pytest.mark.parametrize("recorded", [1_700_000_000, -1_700_000_000])
def test_an_integer_event_time_keeps_its_unit(tmp_path, unit, recorded):
    replay = prepare(stored(tmp_path, {"at": [recorded * unit, (recorded - 5) * unit]}), "at", tmp_path)
    base = 1_700_000_000
    clock = EventClock(base * 1_000_000, 0, 1_000_000)
    assert rows(replay, 0, 2, clock).column("at").to_pylist() == [base * unit, (base + 1 - 5) * unit]


def written(folder, kind, texts, text_type=None):
    """A file with a time column, as text where the format has types."""
    path = folder / f"times.{kind}"
    if kind == "parquet":
        return stored(folder, {"time": pa.array(texts, text_type or pa.string())}, "time")
    if kind == "csv":
        path.write_text("\n".join(["time,n", *(f"{text},1" for text in texts)]) + "\n")
    else:
        path.write_text("".join(f'{{"time": "{text}"}}\n' for text in texts))
    return Dataset.at(str(path), "time")


ISO = [
    ["2024-01-01T00:00:00Z", "2024-01-01T00:00:03Z", "2024-01-01T00:00:01Z"],
    ["2024-01-01 00:00:00", "2024-01-01 00:00:03", "2024-01-01 00:00:01"],
    ["2024-01-01T00:00:00.250", "2024-01-01T00:00:03.250", "2024-01-01T00:00:01.250"],
    ["2024-01-01T01:00:00.25+01:00", "2024-01-01T01:00:03.25+01:00", "2024-01-01T01:00:01.25+01:00"],
    ["2024-01-01T00:00:00.123456789", "2024-01-01T00:00:03.123456789", "2024-01-01T00:00:01.123456789"],
    ["2024-01-01T00:00:00Z", "2024-01-01T00:00:03.000000001Z", "2024-01-01T00:00:01.000000001Z"],
]


@pytest.mark.parametrize("texts", ISO)
@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_iso_text_is_an_event_time_in_every_format(tmp_path, kind, texts):
    data = written(tmp_path, kind, texts)
    check(data, "time")
    replay = prepare(data, "time", tmp_path)
    assert replay.schema().field("time").type == pa.timestamp("us", "UTC")
    got = rows(replay, 0, 3).column("time").cast(pa.int64()).to_pylist()
    assert got == [0, 1_000_000, 2_000_000 - 2_000_000]


def test_iso_text_may_be_stored_in_any_of_parquets_ways_and_be_a_day(tmp_path):
    for text_type in (pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        data = written(tmp_path, "parquet", ISO[1], text_type)
        check(data, "time")
        assert prepare(data, "time", tmp_path).rows == 3
    replay = prepare(written(tmp_path, "parquet", ["2024-01-02", "2024-01-01"]), "time", tmp_path)
    assert rows(replay, 1, 2).column("time").cast(pa.int64()).to_pylist() == [1_000_000 - 86_400_000_000]


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["1/2/2024"], "Failed to parse string: '1/2/2024' as .*"),
        (["2024-01-01T00:00:00Z", "yesterday"], "'yesterday' as .*"),
        (["2024-01-01T00:00:00Z", "2024-01-01T00:00:00"], "'2024-01-01T00:00:00' .* expected a zone offset"),
        (["2024-01-01T00:00:00", "2024-01-01T00:00:00Z"], "'2024-01-01T00:00:00Z' .* expected no zone offset"),
    ],
)
def test_text_that_is_no_time_is_told_before_anything_starts(tmp_path, texts, reason):
    with pytest.raises(WorkbenchError, match=rf"'time' is text, but not all of it ISO .*{reason}\. Write all of them"):
        check(written(tmp_path, "parquet", texts), "time")


def test_a_missing_event_time_column_is_named_with_the_nearest_and_empty_event_times_are_counted(orders, tmp_path):
    with pytest.raises(WorkbenchError, match=r"no column 'tim' .*; .* time, shop, amount\. Did you mean 'time'\?$"):
        check(Dataset.at(str(orders)), "tim")
    data = stored(tmp_path, {"at": pa.array([0, None], pa.timestamp("us"))})
    for use in (lambda: check(data, "at"), lambda: prepare(data, "at", tmp_path)):
        with pytest.raises(WorkbenchError, match="'at' has 1 empty values; fill or drop those rows"):
            use()


test_a_column_that_is_no_time_or_has_no_row_is_refused = refusals(
    lambda tmp_path, column, event_time: check(stored(tmp_path, {"at": column}), event_time),
    (pa.array([1], pa.time32("s")), "at", r"is of type time32\[ms\]; it must be a timestamp, a date, ISO text"),
    ([1.5], "at", "is of type double; it must be a timestamp, a date, ISO text"),
    (pa.array([], pa.int64()), None, "is empty; give one with at least one row"),
    fixture="tmp_path",
)


def test_a_path_without_data_and_a_file_of_the_wrong_format_are_refused_with_the_next_step(tmp_path):
    with pytest.raises(
        WorkbenchError, match=r"does not exist; name a Parquet.* at the folder in which you run this\.$"
    ):
        Dataset.at(str(tmp_path / "nowhere"))
    (tmp_path / "payments.txt").touch()
    with pytest.raises(WorkbenchError, match=r"run this\. Did you mean '.*/payments\.txt'\?$"):
        Dataset.at(str(tmp_path / "paymens.txt"))
    with pytest.raises(WorkbenchError, match=r"run this\.$"):
        Dataset.at(str(tmp_path / "nowhere" / "paymens.txt"))
    with pytest.raises(WorkbenchError, match=r"holds no \.parquet, \.csv"):
        Dataset.at(str(tmp_path))
    (tmp_path / "bad.parquet").write_text("not parquet")
    with pytest.raises(WorkbenchError, match=r"cannot be read as parquet: .* or convert it to Parquet"):
        check(Dataset.at(str(tmp_path / "bad.parquet")), None)


def test_a_query_takes_the_event_time_of_its_data_set():
    data = Dataset("o.csv", "csv", "time")
    assert Query("x", len, data).event_time == "time"
    assert Query("x", len, data, "at").event_time == "at"
    assert Query("x", len, Dataset("o.csv", "csv")).event_time is None
    assert Query("x", len, Dataset("o.csv", "csv")).reading(data).event_time == "time"
    assert Query("x", len, Dataset("o.csv", "csv"), "at").reading(Dataset("p.csv", "csv")).event_time == "at"


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


def test_a_time_is_inside_an_object_or_a_text_column_and_a_column_may_have_a_dot_in_its_name(tmp_path):
    rows = [json.dumps({"time": "x", "a": {"b": {"time": "2020-01-01T00:00:00Z"}}}) for _ in range(2)]
    found = replayed(tmp_path, rows, "value.a.b.time", pa.string())
    assert json.loads(found[0]["value"]) == {"time": "x", "a": {"b": {"time": "2023-11-14T22:13:20Z"}}}
    assert Inside.named("value.time", ["value", "value.time"]) is None
    assert Inside.named("time", ["value"]) is None
    assert Inside.named("value.time", ["value"]) == Inside("value", "time")


@pytest.mark.parametrize("values", [[b'{"time": "2020-01-01T00:00:00Z"}', b'{"other": 1}'], [b"\xff\xfe", b"\x00"]])
def test_values_without_the_field_are_counted(tmp_path, values):
    with pytest.raises(WorkbenchError, match=r"of 2 values of the column 'value' have no JSON field 'time'"):
        replayed(tmp_path, values)


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "orders.parquet"
    times = pa.array([datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n) for n in range(500)])
    pq.write_table(pa.table({"time": times, "shop": pa.array([f"s{n % 7}" for n in range(500)])}), path)
    return path


@pytest.mark.fault("a data file is torn at any byte")
def test_a_torn_file(parquet, tmp_path, injected):
    whole, run = parquet.read_bytes(), tmp_path / "run"
    run.mkdir()
    for cut in injected.moments(len(whole) - 1, 25):
        parquet.write_bytes(whole[:cut])
        with pytest.raises(WorkbenchError, match=r"The dataset .*orders.parquet' cannot be read as parquet: ") as seen:
            prepare(Dataset(str(parquet), "parquet", "time"), "time", run)
        injected.seen(str(seen.value).replace(f"{tmp_path}/", "").split(":")[0])
        assert "convert it to Parquet" in str(seen.value)
        parquet.write_bytes(whole)
        assert prepare(Dataset(str(parquet), "parquet", "time"), "time", run).rows == 500


@pytest.mark.fault("a data file goes away while it is read")
def test_a_file_that_goes_away(tmp_path, monkeypatch, injected):
    folder, run = tmp_path / "orders", tmp_path / "run"
    folder.mkdir()
    run.mkdir()
    typed = module._typed
    for gone in injected.moments(9):
        for number in range(10):
            pq.write_table(pa.table({"shop": pa.array([f"s{n}" for n in range(50)])}), folder / f"{number}.parquet")

        def remove(*arguments, gone=gone):
            (folder / f"{gone}.parquet").unlink(missing_ok=True)
            return typed(*arguments)

        monkeypatch.setattr(module, "_typed", remove)
        try:
            rows = prepare(Dataset(str(folder), "parquet", None), None, run).rows
        except WorkbenchError as error:
            assert "cannot be read as parquet" in str(error)  # noqa: PT017 - it may have been read before
            injected.seen("The dataset 'orders' cannot be read as parquet")
        else:
            assert rows == 500  # it was read, or open, before it went away
            injected.seen("nothing: the data had been copied")
