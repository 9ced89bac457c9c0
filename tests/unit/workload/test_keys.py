"""Key frequencies as a value, counted with Arrow as in plain Python, and what ``workbench keys`` says of them."""

import csv
import dataclasses
import itertools
import json
import math
import struct
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parquet_rows import stored
from refusals import refusals

from workbench.cli import keys
from workbench.cli.console import BAD_INPUT
from workbench.errors import WorkbenchError
from workbench.workload import Dataset, EventClock, KeyFrequencies, count_keys_here, joined_shares, prepare
from workbench.workload import keys as counting
from workbench.workload.columns import can_hash, spark_hash
from workbench.workload.keys import _keys

EXACT = KeyFrequencies(
    "auction", 1000, 5, ("a", "b", "c"), (400, 200, 100), 33, partition_shares={4: (0.1, 0.6, 0.2, 0.1)}
)
SKETCH = KeyFrequencies("auction", 1000, 0, ("a",), (400,), 61, "sketch", 7, 0.02)


class Parser:
    """Splits the lines of a CSV file as Spark's parser does: `escape` stands before a quote within quotes."""

    columns = ("name", "city")

    def __init__(self):
        self.asked = {"escape": "\\"}

    @property
    def read(self):
        return self

    def format(self, _):
        return self

    def options(self, **asked):
        self.asked |= asked
        return self

    def load(self, path):
        double = self.asked["escape"] == '"'
        with Path(path).open(newline="") as file:
            self.rows = list(csv.reader(file, doublequote=double, escapechar=None if double else self.asked["escape"]))[
                1:
            ]
        return self

    def selectExpr(self, asked):  # noqa: N802 - Spark's name
        return [row[self.columns.index(asked.split("`")[1])] for row in self.rows]


@pytest.mark.parametrize("name", ['the "Blue, Red" inn', "C:\\"])
def test_the_keys_of_a_csv_file_are_those_of_its_replay(tmp_path, name):
    pyarrow.csv.write_csv(pa.table({"name": [name], "city": ["Ulm"]}), tmp_path / "inns.csv")
    data = Dataset.at(str(tmp_path / "inns.csv"))
    replayed = pa.Table.from_batches(prepare(data, None, tmp_path).batches(0, 1, EventClock(0, 0, 1.0)))
    for column in ("name", "city"):
        assert _keys(Parser(), data, column) == replayed.column(column).to_pylist()


def test_what_follows_from_the_counts_also_a_key_trace():
    assert (EXACT.untracked_keys, EXACT.untracked_records) == (30, 300)
    assert EXACT.hottest_share == 0.4
    assert EXACT.useful_tasks == 2.5
    assert EXACT.imbalance(4) == pytest.approx(2.4)
    powers = KeyFrequencies("k", 1875, 0, ("a", "b", "c", "d"), (900, 450, 300, 225), 4)
    assert powers.zipf_exponent == pytest.approx(1.0)
    assert math.isnan(SKETCH.zipf_exponent)
    shares = EXACT.trace(changes_per_minute=2.0).shares
    assert shares.tolist() == pytest.approx([0.4, 0.2, 0.1, *[0.01] * 30])


def test_the_report_names_hot_keys_skew_and_the_error_of_a_sketch(capsys):
    keys._show(EXACT)
    text = capsys.readouterr().out
    assert text.startswith("Where a row goes to the task of its key, more than 3 tasks do not raise the rate: ")
    assert text.partition(": ")[2].startswith("the most frequent key, 'a', has 40 % of the rows")
    assert "auction: 1,000 rows, 5 without a key, 33 keys, counted exactly" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["a", "400", "40", "%"] in rows
    assert ["4", "2.4", "42", "%"] in rows  # partitions, the fullest against the mean, and what four slots reach
    first, second = (line.split() for line in text.splitlines() if "fullest," in line or "times the mean" in line)
    assert " ".join(first[2:] + second[4:]) == "with a slot each, of the slots' rate"
    assert "executor" not in text
    keys._show(KeyFrequencies("k", 7, 0, ("a",), (7,), 1))
    assert ", more than 1 task does not raise the rate: " in capsys.readouterr().out
    keys._show(SKETCH)
    text = capsys.readouterr().out
    assert "61 keys (within 4 %, nearly always), estimated by a sketch" in text
    assert "counts may be too high by up to 7 rows (0.7 %)" in text


GIVEN = {"column": "k", "records": 3, "missing": 2, "keys": ("a", "b"), "counts": (2, 1), "distinct": 2}
test_bad_values_are_named = refusals(
    lambda change: KeyFrequencies(**(GIVEN | change)),
    ({"records": 0}, r"Column 'k' has no key in any row \(2 rows are empty\); name another column"),
    ({"distinct": 1}, "Column 'k' has 2 keys listed, 2 counts and 1 keys in all; give one count for each key"),
    ({"counts": (1, 2)}, "The counts of column 'k' must be above 0 and descend"),
    ({"method": "rough"}, "method is 'rough'; use one of 'exact', 'sketch'"),
)


BITS = 0xFFFFFFFF


def murmur3(words, length):
    """Murmur3 of 32 bits in plain Python, of signed words."""
    state = 42
    for word in words:
        k = (word & BITS) * 0xCC9E2D51 & BITS
        k = (k << 15 | k >> 17) & BITS
        state ^= k * 0x1B873593 & BITS
        state = ((state << 13 | state >> 19) & BITS) * 5 + 0xE6546B64 & BITS
    state ^= length
    state = (state ^ state >> 16) * 0x85EBCA6B & BITS
    state = (state ^ state >> 13) * 0xC2B2AE35 & BITS
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def plain_hash(key, kind):
    """Spark's hash of one key in plain Python."""
    if isinstance(key, str):
        text = key.encode()
        whole = len(text) - len(text) % 4
        words = [int.from_bytes(text[at : at + 4], "little") for at in range(0, whole, 4)]
        return murmur3([*words, *(byte - 256 * (byte > 127) for byte in text[whole:])], len(text))
    if isinstance(key, Decimal):
        key, kind = int(key.scaleb(kind.scale)), pa.int64()
    elif isinstance(key, float):
        small = kind == pa.float32()
        key = struct.unpack("i" if small else "q", struct.pack("f" if small else "d", key or 0.0))[0]
        kind = pa.int32() if small else pa.int64()
    elif isinstance(key, datetime):
        key, kind = (key - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1), pa.int64()
    elif isinstance(key, date):
        key, kind = (key - date(1970, 1, 1)).days, pa.int32()
    if kind == pa.int64():
        return murmur3([key & BITS, key >> 32], 8)
    return murmur3([int(key)], 4)


def test_the_hash_is_that_of_sparks_documentation():
    assert spark_hash(pa.array(["ABC"])).tolist() == [-757602832]


COLUMNS = {
    "text": (pa.string(), st.text(max_size=11)),
    "long": (pa.int64(), st.integers(-(1 << 63), (1 << 63) - 1)),
    "int": (pa.int32(), st.integers(-(1 << 31), (1 << 31) - 1)),
    "short": (pa.int16(), st.integers(-(1 << 15), (1 << 15) - 1)),
    "flag": (pa.bool_(), st.booleans()),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "float": (pa.float32(), st.floats(allow_nan=False, width=32)),
    "day": (pa.date32(), st.dates()),
    "time": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    "amount": (pa.decimal128(18, 2), st.decimals(-(10**15), 10**15, places=2)),
}


@pytest.mark.parametrize("kind", COLUMNS)
@given(data=st.data())
def test_every_type_is_hashed_as_in_plain_python(kind, data):
    typed, values = COLUMNS[kind]
    keys = data.draw(st.lists(values, max_size=8))
    assert can_hash(typed)
    array = pa.array(["before", *keys] if kind == "text" else keys, typed)
    array = array.slice(1) if kind == "text" else array
    assert spark_hash(array).tolist() == [plain_hash(key, typed) for key in keys]


def skewed(rows, seed=3):
    return np.random.default_rng(seed).zipf(1.3, rows) % 5000


@pytest.mark.parametrize(
    ("write", "typed", "missing"),
    [
        ("parquet", pa.int64(), 7),
        ("parquet", pa.int32(), 0),
        ("parquet", pa.dictionary(pa.int32(), pa.string()), 7),
        ("csv", pa.int64(), 7),
        ("csv", pa.string(), 7),
        ("jsonl", pa.string(), 7),
        ("folder", pa.int64(), 0),
    ],
)
def test_the_count_is_that_of_plain_python(tmp_path, monkeypatch, write, typed, missing):
    monkeypatch.setattr(counting, "MOST_EXACT", 6000)  # several sums on the way
    text = pa.types.is_dictionary(typed) or typed == pa.string()
    keys = [f"c{one}" if text else int(one) for one in skewed(30_000)] + [None] * missing
    table = pa.table({"amount": range(len(keys)), "customer": pa.array(keys, pa.string() if text else typed)})
    place = tmp_path / f"orders.{write}"
    if write == "csv":
        pa.csv.write_csv(table, place)
    elif write == "jsonl":
        place.write_text(
            "".join(f'{{"customer": {"null" if one is None else repr(one)}}}\n'.replace("'", '"') for one in keys)
        )
    elif write == "folder":
        place.mkdir()
        for part in range(3):
            pq.write_table(table.slice(10_000 * part, 10_000), place / f"{part}.parquet")
    else:
        pq.write_table(table.set_column(1, "customer", table["customer"].cast(typed)), place)
    found = count_keys_here(Dataset.at(str(place)), "customer", top=50, partitions=[1, 8, 200])
    counts = Counter(one for one in keys if one is not None)
    expected = sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))[:50]
    assert list(zip(found.keys, found.counts, strict=True)) == [(str(key), count) for key, count in expected]
    assert (found.records, found.missing, found.distinct) == (30_000, missing, len(counts))
    assert (found.method, found.count_error, found.distinct_deviation) == ("exact", 0, 0.0)
    hashed = pa.string() if text else pa.int64() if write == "csv" else typed
    for many in (1, 8, 200):
        spread = Counter()
        for key, count in counts.items():
            spread[plain_hash(key, hashed) % many] += count
        assert found.partition_shares[many] == tuple(spread[part] / 30_000 for part in range(many))


def test_zeros_are_one_key_an_empty_text_is_missing_unless_quoted_and_a_column_without_keys_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text('shop,city\na,NA\n,NA\n"",Ulm\n')
    found = count_keys_here(Dataset.at(str(tmp_path / "x.csv")), "shop")
    assert (found.keys, found.missing) == (("", "a"), 1)
    assert count_keys_here(Dataset.at(str(tmp_path / "x.csv")), "city").keys == ("NA", "Ulm")
    values = pa.array([0.0, -0.0, float("nan"), -float("nan"), 1.5])
    found = count_keys_here(stored(tmp_path, {"x": values}), "x")
    assert dict(zip(found.keys, found.counts, strict=True)) == {"0.0": 2, "nan": 2, "1.5": 1}
    (tmp_path / "x.csv").write_text("a,b\n1,\n2,\n")
    with pytest.raises(WorkbenchError, match="Column 'b' has no key in any of its 2 rows"):
        count_keys_here(Dataset.at(str(tmp_path / "x.csv")), "b")


@pytest.mark.parametrize(
    ("column", "method", "change"),
    [
        ("nested", "auto", {}),
        ("bytes", "auto", {}),
        ("long", "sketch", {}),
        ("long", "auto", {"HERE_BYTES": 10}),
        ("long", "auto", {"MOST_EXACT": 2}),
    ],
)
def test_spark_counts_what_is_left(tmp_path, monkeypatch, column, method, change):
    for name, value in change.items():
        monkeypatch.setattr(counting, name, value)
    data = stored(tmp_path, {"nested": [[1], [2], [3]], "bytes": [b"a", b"b", b"c"], "long": [1, 2, 3]})
    assert count_keys_here(data, column, method=method) is None


@pytest.fixture
def no_spark(monkeypatch):
    monkeypatch.setattr(keys, "batch_session", lambda: pytest.fail("Spark was started"))


@pytest.mark.usefixtures("no_spark")
def test_the_command_counts_a_file_without_spark_and_refuses_a_mistyped_column_at_once(tmp_path, run, prints):
    (tmp_path / "orders.csv").write_text("customer_id\n" + "c0\n" * 2 + "".join(f"c{n}\n" for n in range(1, 9)))
    said = prints("keys", "orders.csv", "customer_id")
    assert "more than 5 tasks do not raise the rate" in said
    assert "Zipf exponent about " in said
    (tmp_path / "even.csv").write_text("customer_id\n" + "".join(f"c{number}\n" for number in range(200)))
    assert "Zipf" not in prints("keys", "even.csv", "customer_id")
    for method in ("auto", "exact", "sketch"):
        code, said = run("keys", "orders.csv", "custmer_id", "--method", method)
        assert code == BAD_INPUT
        assert "no column 'custmer_id'; its columns are customer_id. Did you mean 'customer_id'?" in said.err


def frequencies(rows, top=None):
    """Count `rows` in plain Python, and list the `top` keys."""
    found = sorted(Counter(map(str, rows)).items(), key=lambda one: (-one[1], one[0]))
    return KeyFrequencies("k", len(rows), 0, *zip(*found[:top], strict=True), len(found))


def join(sides):
    """Return the share of each key in the rows of a join, pair by pair."""
    rows = Counter(str(row[0]) for row in itertools.product(*sides) if len(set(row)) == 1)
    return {key: many / rows.total() for key, many in rows.items()}


SIDES = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=30), min_size=2, max_size=3)


@given(SIDES)
def test_the_shares_of_a_join_are_those_of_its_rows_one_by_one(sides):
    counted, true = [*map(frequencies, sides)], join(sides)
    if not true:
        with pytest.raises(WorkbenchError, match="'k' is in every input, so nothing is joined by it"):
            joined_shares(counted)
        return
    found = joined_shares(counted)
    assert found.most == pytest.approx(true)
    assert (found.least, found.unlisted, found.exact) == (found.most, 0.0, True)
    assert list(found.most.values()) == sorted(found.most.values(), reverse=True)


@given(
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=9), min_size=2, max_size=3), st.integers(1, 6), st.data()
)
def test_where_keys_are_untracked_or_counts_too_high_the_shares_of_a_join_are_within_their_bounds(sides, top, data):
    counted = []
    for side in sides:
        one, error = frequencies(side, top), data.draw(st.integers(0, 3))
        high = sorted((count + data.draw(st.integers(0, error)) for count in one.counts), reverse=True)
        method = "sketch" if error else "exact"
        counted.append(dataclasses.replace(one, counts=tuple(high), method=method, count_error=error))
    true = join(sides)
    try:
        found = joined_shares(counted)
    except WorkbenchError:
        assert not true
        return
    for key, share in true.items():
        least, most = (found.least[key], found.most[key]) if key in found.most else (0.0, found.unlisted)
        assert least - 1e-12 <= share <= most + 1e-12
    assert all(0 <= found.least[key] <= most <= 1 for key, most in found.most.items())
    assert found.exact or any(one.count_error or one.untracked_keys for one in counted)


def test_a_key_that_is_hot_in_one_input_is_bounded_where_the_other_does_not_list_it():
    orders = frequencies(["a"] * 50 + ["b"] * 10 + ["c"])
    payments = frequencies(["b"] * 20 + ["a", *range(20)], top=1)
    found = joined_shares([orders, payments])
    assert (found.least["b"], found.most["b"]) == (pytest.approx(200 / (200 + 50 * 20 + 20)), 1.0)
    assert (found.least["a"], found.most["a"]) == (0.0, pytest.approx(50 * 20 / (50 * 20 + 200)))


MADE = {  # rows of two inputs, and what is said of their join
    "nearly unique": (
        [*range(20_000), *range(100), 1500],
        [*range(1000, 20_000), 1500],
        "No key of 'shop' limits the join with up to 4,750 tasks: the most frequent, '1500', has 0.021 % of its rows.",
    ),
    "hot in both": (
        ["a"] * 300 + [*range(5000)],
        ["a"] * 200 + [*range(5000)],
        (
            "The key 'a' has 5.66 % of the rows of orders and 3.85 % of the rows of payments, and 92.3 % of the rows "
            "of their join. One task joins them, so more than 2 tasks do not raise its rate."
        ),
    ),
    "hot in one": (
        ["a"] * 3000 + [*range(9000)],
        ["a", *range(9000)],
        (
            "The key 'a' has 25 % of the rows of orders and 0.0111 % of the rows of payments, and 25 % of the rows of "
            "their join. One task joins them, so more than 4 tasks do not raise its rate."
        ),
    ),
    "hot in one, and not in the other": (
        ["a"] * 3000 + [*range(9000)],
        [*range(9000)],
        "No key of 'shop' limits the join with up to 9,000 tasks: the most frequent, '0', has 0.0111 % of its rows.",
    ),
}


@pytest.fixture
def joining(tmp_path):
    (tmp_path / "jobs.py").write_text("def both(orders, payments):\n    return orders.join(payments, 'shop')\n")
    (tmp_path / "s.yaml").write_text(
        "query: jobs:both\ninputs: {orders: {dataset: orders.parquet}, payments: {dataset: payments.parquet}}\n"
        "targets: [100]\nslots: [1, 2]\nmemory_mb: [1024]\n"
    )

    def made(orders, payments):
        for name, rows in (("orders", orders), ("payments", payments)):
            stored(tmp_path, {"shop": [*map(str, rows)]}, name=name)

    return made


@pytest.mark.parametrize("made", MADE)
def test_what_is_said_of_a_join_is_what_its_pairs_show(joining, run, prints, refuses, made):
    orders, payments, answer = MADE[made]
    joining(orders, payments)
    said = " ".join(prints("keys", "s.yaml", "shop").split())
    assert said.startswith(answer)
    assert "not tracked" not in said
    found = json.loads(prints("keys", "s.yaml", "shop", "--json", "--top", "5"))
    of_orders, of_payments = (Counter(map(str, rows)) for rows in (orders, payments))
    pairs = Counter({key: many * of_payments[key] for key, many in of_orders.items()})
    true = {key: pairs[key] / pairs.total() for key in found["joined"]}
    assert found["inputs"]["orders"]["hottest_share"] == pytest.approx(max(of_orders.values()) / of_orders.total())
    assert found["joined"] == found["joined_at_least"] == pytest.approx(true)
    assert min(found["joined"].values()) >= max(many for key, many in pairs.items() if key not in true) / pairs.total()
    code, said = run("keys", "s.yaml", "shop", "--top", "0")
    assert (code, "list at least one key" in said.err) == (BAD_INPUT, True)
    assert "'shop' is in orders and payments. Name one of their files" in refuses(
        "keys", "s.yaml", "shop", "--plan", "s.yaml"
    )
    assert [len(found["joined"]), *(len(one["keys"]) for one in found["inputs"].values())] == [5, 5, 5]


@pytest.mark.parametrize(
    ("query", "goes"),
    [
        ("orders.join(payments, 'number')", "the query's join goes by 'number', not by 'shop'"),
        (
            "orders.join(payments, 'number').groupBy('City').count()",
            "state goes by 'city' and its join goes by 'number', not by 'shop'",
        ),
        ("orders.filter('shop > 0')", "the query has neither state nor a join"),
        ("orders.join(payments, 'number').groupBy('made').count()", ""),  # perhaps of the column
        ("orders.join(payments, f.expr('orders.Shop = payments.shop'))", ""),
        ("orders.join(payments, 'number').repartition(9, 'shop')", ""),
        ("step(orders)", ""),
    ],
)
def test_of_a_column_that_the_query_does_not_go_by_nothing_follows(joining, tmp_path, prints, query, goes):
    joining([], [])
    rows = {"shop": ["a"] * 8 + ["b"] * 2, "number": range(10), "city": ["x"] * 10}
    for name in ("orders", "payments"):
        stored(tmp_path, rows, name=name)
    (tmp_path / "jobs.py").write_text(
        f"from pyspark.sql import functions as f\nfrom elsewhere import step\n\n\n"
        f"def both(orders, payments):\n    return {query}\n"
    )
    said = " ".join(prints("keys", "s.yaml", "shop").split())
    found = json.loads(prints("keys", "s.yaml", "shop", "--json"))
    if goes:
        answer = f"{goes}, so the key 'a' is not kept in one task and does not limit the tasks."
        assert said.startswith("By its text, ")
        assert answer in said
        assert "key orders payments" in said
        assert "a 80 % 80 %" in said
        assert answer in found["answer"]
        assert "joined" not in found
    else:
        assert said.startswith("The key 'a' has 80 % of the rows of orders and ")
        assert found["joined"]


@pytest.mark.parametrize(
    ("hot", "answer", "joined"),
    [
        (
            400,
            (
                "The key 'a' has 80 % of the rows of orders and 80 % of the rows of payments, and 79.4 % to 100 % of "
                "the rows of their join. One task joins them, so more than 2 tasks do not raise its rate."
            ),
            "79.4 % to 100 %",
        ),
        (
            2,
            (
                "The counts do not show which key of 'shop' limits the join: one that is not tracked may have up "
                "to 100 % of its rows. Count exactly (--method exact), or track more (--tracked)."
            ),
            "0 % to 100 %",
        ),
    ],
)
def test_of_a_sketch_bounds_are_said_of_a_join_and_nothing_where_they_leave_it_open(  # noqa: PLR0917
    joining, monkeypatch, prints, hot, answer, joined
):
    joining(["a"], ["a"])
    found = KeyFrequencies("shop", hot + 100, 0, ("a",), (hot,), 61, "sketch", 2, 0.02)
    monkeypatch.setattr(keys, "_counted", lambda *_: found)
    said = " ".join(prints("keys", "s.yaml", "shop").split())
    assert said.startswith(answer)
    assert joined in said
    assert "note: keys that are not tracked have pairs, too" in said
