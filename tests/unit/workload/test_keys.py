"""Key frequencies as a value, and what ``workbench keys`` says of them."""

import csv
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from parquet_rows import stored

from workbench.cli import keys
from workbench.errors import WorkbenchError
from workbench.workload import Dataset, EventClock, KeyFrequencies, prepare
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


class Asked:
    """Notes what is asked of Spark's reader, and has the columns that it was asked for."""

    @property
    def read(self):
        return self

    def schema(self, asked):
        self.asked = asked
        return self

    def format(self, _):
        return self

    def load(self, _):
        return self

    @property
    def columns(self):
        return self.asked.names

    def selectExpr(self, _):  # noqa: N802 - Spark's name
        return self.asked.simpleString()


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.dictionary(pa.int32(), pa.string()), "string"),
        (pa.uint32(), "bigint"),
    ],
)
def test_of_a_parquet_file_the_key_alone_is_read(tmp_path, kind, asked):
    city = pa.array([1, 2]).cast(pa.string()).cast(kind)
    data = stored(tmp_path, {"city": city, "at": pa.array([1, 2], pa.timestamp("ns"))})
    assert _keys(Asked(), data, "city") == f"struct<city:{asked}>"
    with pytest.raises(WorkbenchError, match=r"no column 'ct'; its columns are city, at\. Did you mean"):
        _keys(Asked(), data, "ct")


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
    assert text.startswith("More than 3 tasks do not raise the rate: the most frequent key, 'a', has 40 % of the rows")
    assert "auction: 1,000 rows, 5 without a key, 33 keys, counted exactly" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["a", "400", "40", "%"] in rows
    assert ["4", "2.4", "42", "%"] in rows  # partitions, the fullest against the mean, and the rate that allows
    assert "executor" not in text
    keys._show(KeyFrequencies("k", 7, 0, ("a",), (7,), 1))
    assert capsys.readouterr().out.startswith("More than 1 task does not raise the rate: ")
    keys._show(SKETCH)
    text = capsys.readouterr().out
    assert "61 keys (within 4 %, nearly always), estimated by a sketch" in text
    assert "counts may be too high by up to 7 rows (0.7 %)" in text


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"records": 0}, r"Column 'k' has no key in any row \(2 rows are empty\); name another column"),
        ({"distinct": 1}, "Column 'k' has 2 keys listed, 2 counts and 1 keys in all; give one count for each key"),
        ({"counts": (1, 2)}, "The counts of column 'k' must be above 0 and descend"),
        ({"method": "rough"}, "method is 'rough'; use one of 'exact', 'sketch'"),
    ],
)
def test_bad_values_are_named(change, text):
    given = {"column": "k", "records": 3, "missing": 2, "keys": ("a", "b"), "counts": (2, 1), "distinct": 2}
    with pytest.raises(WorkbenchError, match=text):
        KeyFrequencies(**(given | change))
