import numpy as np
import pyarrow as pa
import pytest
from parquet_rows import stored

from workbench.errors import WorkbenchError
from workbench.workload import Dataset, EventClock, Query, prepare
from workbench.workload.dataset import BATCH_ROWS, check


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


def test_a_missing_event_time_column_is_named_with_the_nearest(orders):
    with pytest.raises(WorkbenchError, match=r"no column 'tim' .*; .* time, shop, amount\. Did you mean 'time'\?$"):
        check(Dataset.at(str(orders)), "tim")


@pytest.mark.parametrize(
    ("column", "event_time", "said"),
    [
        (pa.array([1], pa.time32("s")), "at", r"is of type time32\[ms\]; it must be a timestamp, a date, ISO text"),
        ([1.5], "at", "is of type double; it must be a timestamp, a date, ISO text"),
        (pa.array([], pa.int64()), None, "is empty; give one with at least one row"),
    ],
)
def test_a_column_that_is_no_time_or_has_no_row_is_refused(tmp_path, column, event_time, said):
    with pytest.raises(WorkbenchError, match=said):
        check(stored(tmp_path, {"at": column}), event_time)


def test_empty_event_times_are_counted(tmp_path):
    data = stored(tmp_path, {"at": pa.array([0, None], pa.timestamp("us"))})
    for use in (lambda: check(data, "at"), lambda: prepare(data, "at", tmp_path)):
        with pytest.raises(WorkbenchError, match="'at' has 1 empty values; fill or drop those rows"):
            use()


def test_a_path_without_data_and_a_file_of_the_wrong_format_are_refused_with_the_next_step(tmp_path):
    with pytest.raises(WorkbenchError, match=r"does not exist; give the path .* from the folder in which you run this"):
        Dataset.at(str(tmp_path / "nowhere"))
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
