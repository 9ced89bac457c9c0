import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parquet_rows import stored
from refusals import refusals

from workbench.errors import QueryError
from workbench.workload import Dataset, EventClock, Input, Query, check_inputs, prepare_inputs
from workbench.workload import inputs as module
from workbench.workload.dataset import BATCH_ROWS
from workbench.workload.inputs import merge

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
