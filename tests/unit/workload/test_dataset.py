import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parquet_rows import stored
from refusals import refusals

from workbench.errors import QueryError, WorkbenchError
from workbench.workload import (
    Dataset,
    EventClock,
    Input,
    Query,
    check_dataset,
    check_inputs,
    prepare,
    prepare_inputs,
    schema_of,
)
from workbench.workload import dataset as module
from workbench.workload.dataset import BATCH_ROWS, check, merge
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


S = 1_000_000
EACH_10_US = EventClock(1_700_000_000 * S, 0, 10.0)
TIMES = st.lists(st.integers(0, 1000), min_size=1, max_size=40).map(sorted)


def input_of(folder, name, times_us):
    """An input of rows with these event times; each has its number."""
    columns = {"number": range(len(times_us)), "time": pa.array(times_us, pa.timestamp("us", "UTC"))}
    return Input(name, stored(folder, columns, "time", name))


def rows_of(replay, first, last, clock=EACH_10_US):
    return [row for batch in replay.batches(first, last, clock) for row in batch.to_pylist()]


def us(rows):
    return [round(row["time"].timestamp() * S) for row in rows]


@given(st.lists(TIMES, min_size=2, max_size=4))
def test_rows_are_numbered_in_the_order_of_their_arrival(arrivals):
    chosen, places = merge([np.array(times) for times in arrivals], [None] * len(arrivals))
    order = sorted((time, number, row) for number, times in enumerate(arrivals) for row, time in enumerate(times))
    for number, (rows, own) in enumerate(zip(chosen, places, strict=True)):
        assert [order[place] for place in own] == [(arrivals[number][row], number, row) for row in rows]


@given(TIMES, TIMES, st.floats(0.05, 0.95))
def test_shares_repeat_or_leave_out_rows_each_in_its_place(one, two, share):
    chosen, places = merge([np.array(one), np.array(two)], [share, 1 - share])
    total = len(one) + len(two)
    assert [len(rows) for rows in chosen] == [max(1, round(share * total)), max(1, round((1 - share) * total))]
    assert sorted(np.concatenate(places)) == list(range(sum(map(len, chosen))))
    for times, rows in ((one, chosen[0]), (two, chosen[1])):
        assert set(np.diff(rows)) <= {len(times) // len(rows), -(-len(times) // len(rows))}
    arrived = dict(zip(np.concatenate(places), [*np.array(one)[chosen[0]], *np.array(two)[chosen[1]]], strict=True))
    assert [arrived[place] for place in sorted(arrived)] == sorted(arrived.values())


@pytest.fixture
def two(tmp_path):
    """Orders every 10 ms for 500 s, every hundredth a minute late; and a payment of every second one, 3 s later."""
    orders = [n * 10_000 - (60 * S if n % 100 == 99 else 0) for n in range(50_000)]
    payments = [n * 20_000 + 3 * S for n in range(25_000)]
    return input_of(tmp_path, "orders", orders), input_of(tmp_path, "payments", payments)


def test_every_slice_gives_the_same_rows_and_together_they_are_all(two, tmp_path):
    replays = prepare_inputs(two, tmp_path)
    period = replays[0].period
    assert [one.rows for one in replays] == [50_000, 25_000]
    assert period == 75_000 == replays[1].period
    assert replays[0].schema().names == ["number", "time"]
    cuts = [0, 1, 7_000, BATCH_ROWS, period - 1, period, 2 * period + 12_345]
    for replay in replays:
        whole = rows_of(replay, 0, cuts[-1])
        assert [row for a, b in pairwise(cuts) for row in rows_of(replay, a, b)] == whole
        assert [row["number"] for row in whole] == [n % replay.rows for n in range(len(whole))]
    for a, b in pairwise(cuts):
        assert sum(len(rows_of(replay, a, b)) for replay in replays) == b - a


def test_rows_that_arrived_together_are_due_together_in_every_pass(two, tmp_path):
    orders, payments = prepare_inputs(two, tmp_path)
    for loop in (0, 2):
        first = loop * orders.period + 30_000
        ordered = {row["number"]: time for row, time in zip(*_timed(orders, first), strict=True)}
        paid = {2 * row["number"]: time for row, time in zip(*_timed(payments, first), strict=True)}
        lags = [paid[number] - ordered[number] for number in paid.keys() & ordered.keys() if number % 100 != 99]
        assert len(lags) > 3_000
        # In the samples 3 s, in which 450 rows arrive: 4.5 ms at a row every 10 us.
        assert min(lags) == pytest.approx(4_500, abs=30)
        assert max(lags) == pytest.approx(4_500, abs=30)
        late = [time for row, time in zip(*_timed(orders, first), strict=True) if row["number"] % 100 == 99]
        early = [time for row, time in zip(*_timed(orders, first), strict=True) if row["number"] % 100 == 98]
        assert np.mean(np.array(early) - np.array(late)) == pytest.approx(60 * S, rel=1e-3)


def _timed(replay, first):
    rows = rows_of(replay, first, first + 15_000)
    return rows, us(rows)


def test_an_input_without_event_times_is_spread_evenly(two, tmp_path):
    plain = Input("plain", stored(tmp_path, {"number": range(7_500)}))
    *_, found = prepare_inputs((*two, plain), tmp_path)
    assert found.schema().names == ["number"]
    counts = [len(rows_of(found, at, at + 8_250)) for at in range(8_250, 66_000, 8_250)]
    assert max(counts) - min(counts) <= 2
    assert sum(counts) == pytest.approx(7 * 7_500 * 50 / 503, rel=0.01)  # 8,250 rows arrive in 50 s of 503


def test_a_share_is_met_in_every_part_of_the_loop(two, tmp_path):
    given_shares = (Input("orders", two[0].dataset, 0.25), Input("payments", two[1].dataset, 0.75))
    orders, payments = prepare_inputs(given_shares, tmp_path)
    assert (orders.rows, payments.rows, orders.period) == (18_750, 56_250, 75_000)
    assert len(rows_of(orders, 30_000, 40_000)) == pytest.approx(2_500, abs=2)


def test_renewed_keys_are_others_in_each_pass_and_the_same_in_all_inputs(tmp_path):
    names = pa.array([f"c{n % 3}" for n in range(10)])
    inputs = []
    for name, key in (("orders", "id"), ("payments", "order")):
        columns = {key: pa.array(range(100, 110), pa.int32()), "customer": names, "code": names}
        inputs.append(Input(name, stored(tmp_path, columns, name=name), renew=(key, "code")))
    orders, payments = prepare_inputs(inputs, tmp_path)
    first, second = (rows_of(orders, loop * 20, loop * 20 + 20) for loop in (0, 1))
    assert [row["id"] for row in first] == list(range(100, 110))
    assert {row["id"] for row in second} == {row["order"] for row in rows_of(payments, 20, 40)} == set(range(110, 120))
    assert {row["code"] for row in second} == {"c0~1", "c1~1", "c2~1"}
    assert {row["customer"] for row in second} == {"c0", "c1", "c2"}
    assert next(orders.batches(20, 40, EACH_10_US)).schema == orders.schema()


def test_renewed_fields_of_json_are_others_in_each_pass(tmp_path):
    def value(number, key):
        return {"about": {"time": f"2020-01-01T00:00:{number:02d}Z", key: 100 + number}, "code": f"c{number % 3}"}

    inputs = []
    for name, key in (("orders", "id"), ("payments", "order")):
        texts = pa.array([json.dumps(value(number, key)).encode() for number in range(10)])
        dataset = stored(tmp_path, {"value": texts}, "value.about.time", name)
        inputs.append(Input(name, dataset, renew=("value.code", f"value.about.{key}")))
        check_inputs(inputs[-1:])
    orders, payments = prepare_inputs(inputs, tmp_path)
    assert orders.schema().names == ["value"]
    passes = [[json.loads(row["value"]) for row in rows_of(orders, at, at + 20)] for at in (0, 20, 40)]
    assert [row["about"]["id"] for row in passes[0]] == list(range(100, 110))
    assert [row["code"] for row in passes[0]] == [f"c{number % 3}" for number in range(10)]
    assert [row["about"]["id"] for row in passes[2]] == list(range(120, 130))
    assert {row["code"] for row in passes[2]} == {"c0~2", "c1~2", "c2~2"}
    paid = [json.loads(row["value"])["about"] for row in rows_of(payments, 40, 60)]
    assert [row["order"] for row in paid] == list(range(120, 130))
    assert all(row["time"] > "2020-01-01T00:00:09Z" for row in paid)


@pytest.mark.parametrize(
    ("renew", "said"),
    [
        (("value.none",), "2 of 2 values of the column 'value' have no JSON field 'none'"),
        (("value.price",), "'value.price', whose values are not all whole numbers"),
        (("value.id", "key.id"), "inside the columns value and key"),
        (("x",), "renew has 'x', no column of .*orders.parquet"),
        (("time",), "renew has 'time', timestamp.* of .*orders.parquet"),
        (("price",), "renew has 'price', double of .*orders.parquet"),
    ],
)
def test_what_cannot_be_renewed_is_refused(tmp_path, renew, said):
    values = [json.dumps({"id": number, "price": number + 0.5}).encode() for number in range(2)]
    times = pa.array([1, 2], pa.timestamp("us", "UTC"))
    columns = {"value": values, "key": values, "price": [1.5, 2.5], "time": times}
    with pytest.raises(QueryError, match=said):
        check_inputs([Input("orders", stored(tmp_path, columns, "time", "orders"), renew=renew)])


def test_data_sets_of_other_times_are_refused(two, tmp_path, monkeypatch):
    later = input_of(tmp_path, "later", [600 * S, 700 * S])
    with pytest.raises(QueryError, match=r"have 0 s of event time in common.*later: 1970-01-01T00:10:00 to") as error:
        prepare_inputs((two[0], later), tmp_path)
    assert error.value.settings == ("inputs",)
    with pytest.raises(QueryError) as early:  # before anything starts
        check_inputs((two[0], later))
    assert str(early.value) == str(error.value)
    check_inputs(two)
    check_inputs((two[0], replace(later, dataset=replace(later.dataset, event_time=None))))
    monkeypatch.setattr(module, "_READ_BYTES", 1)
    check_inputs((two[0], later))  # as if reading them took long


def shared(*shares):
    data = Dataset("orders.csv", "csv")
    return Query("jobs:revenue", len, tuple(Input(name, data, share) for name, share in shares))


test_inputs_that_cannot_be_are_refused = refusals(
    shared,
    ("at least one",),
    (("a", None), ("a", None), "each with another name"),
    (("a", 0.5), ("b", None), "a 0.5, b none; each must"),
    (("a", 0.5), ("b", 0.4), "a 0.5, b 0.4; each must"),
    (("a", 1.5), ("b", -0.5), "above 0"),
)


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
