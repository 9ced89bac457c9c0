"""A query of several inputs: the study that init writes, what is refused, and what a measurement depends on."""

import json
import os
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import two_inputs
import yaml
from refusals import refusals

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator, Configuration, measurement_key
from workbench.study import draft, find_query, read_query, read_study, study_from
from workbench.testbed import FluidTestbed

JOB = """
def _named(spark):
    return spark.read.option("header", True).csv("names.csv").join(spark.table("shops"), "shop")


def revenue(orders, payments, minutes=1):
    known = orders.join(_named(orders.sparkSession), "customer")
    return known.join(payments, known.id == payments.order_id)


def any_number(*streams):
    return streams[0]
"""
ASKED = {"query": "two_jobs:revenue", "targets": [1000], "slots": [1, 2], "memory_mb": [1024]}
INPUTS = {
    "orders": {"dataset": "orders.parquet", "event_time": "placed_at"},
    "payments": {"dataset": "payments.parquet", "event_time": "paid_at"},
}
LATE = {"dataset": "late.parquet", "event_time": "paid_at"}


@pytest.fixture(autouse=True)
def folder(tmp_path):
    (tmp_path / "two_jobs.py").write_text(JOB)
    two_inputs.write(tmp_path)


def test_init_writes_a_study_that_a_dry_run_takes(prints, tmp_path):
    said = prints("init", "two_jobs.py:revenue", "orders.parquet", "payments.parquet")
    assert "orders: event time: column 'placed_at'" in said
    assert "orders: join: by 'id', 'customer'" in said
    assert "static tables, read by the function itself: shops, names.csv" in said
    study = read_study("study.yaml")
    renewed = {"orders": ("id",), "payments": ("order_id",)}
    assert list(study.inputs.items()) == [(name, INPUTS[name] | {"renew": keys}) for name, keys in renewed.items()]
    assert study.datasets == ("orders.parquet", "payments.parquet")
    text = (tmp_path / "study.yaml").read_text()
    assert "# one for each argument of the function, in their order" in text
    assert "# records/s of all inputs together: put your rates here" in text
    assert "two_jobs:revenue takes 2 DataFrames" in " ".join(prints("plan", "study.yaml", "--dry-run").split())


def test_inputs_of_other_times_are_refused_by_init_and_by_a_dry_run(refuses, tmp_path):
    times = two_inputs.stamps([1_800_000_000_000_000 + n for n in range(3)])
    pq.write_table(pa.table({"order_id": [1, 2, 3], "amount": [1, 2, 3], "paid_at": times}), tmp_path / "late.parquet")
    (tmp_path / "s.yaml").write_text(yaml.dump({**ASKED, "inputs": INPUTS | {"payments": LATE}}))
    for command in (["init", "two_jobs.py:revenue", "orders.parquet", "late.parquet"], ["plan", "s.yaml", "--dry-run"]):
        assert "The inputs have 0 s of event time in common" in refuses(*command)
    assert not (tmp_path / "study.yaml").exists()


WATERMARKS = """
def paid(orders, payments):
    return orders.join(payments.withWatermark("paid_at", "1 minute"), "id")


def made(orders, payments):
    payments = renamed(payments)
    return orders.join(payments.withWatermark("settled_at", "1 minute"), "id")


def typo(orders, payments):
    renamed = orders.withColumn("who", orders.id)
    return renamed.join(payments).groupBy("custmer", "who").count()
"""


def test_a_watermark_on_a_column_that_the_data_lacks_is_refused_by_init_and_by_a_dry_run(refuses, tmp_path):
    (tmp_path / "marked_jobs.py").write_text(WATERMARKS)
    pq.write_table(pa.table({"order_id": [1, 2], "paid_on": [1.0, 2.0]}), tmp_path / "timeless.parquet")
    inputs = INPUTS | {"payments": {"dataset": "timeless.parquet"}}
    (tmp_path / "s.yaml").write_text(
        yaml.dump({**ASKED, "query": "marked_jobs:paid", "inputs": inputs}, sort_keys=False)
    )
    files = ["orders.parquet", "timeless.parquet"]
    for command in (["init", "marked_jobs.py:paid", *files], ["plan", "s.yaml", "--dry-run"]):
        said = refuses(*command)
        assert "has a watermark on the column 'paid_at' of payments, whose data has only order_id, paid_on. Did" in said
        assert "Did you mean 'paid_on'? Correct the column in line 3 of marked_jobs.py" in said
    assert draft("marked_jobs:made", files).found[1].event_time is None


def test_init_names_a_key_that_no_data_set_has_but_almost(prints, tmp_path):
    (tmp_path / "marked_jobs.py").write_text(WATERMARKS)
    said = prints("init", "marked_jobs.py:typo", *FILES)
    assert "The query's state goes by 'custmer', which no data set has. Did you mean 'customer'?" in said
    assert "'who', which" not in said


def test_an_event_time_is_no_key_though_a_join_compares_it(tmp_path):
    body = "left.join(right, 'l_id = r_id AND r_at BETWEEN l_at AND l_at + 5')"
    (tmp_path / "timed_jobs.py").write_text(f"def revenue(left, right):\n    return {body}\n")
    for name in ("l", "r"):
        rows = "".join(f"{n},{1_767_225_600 + n}\n" for n in range(100))
        (tmp_path / f"{name}.csv").write_text(f"{name}_id,{name}_at\n{rows}")
    made = draft("timed_jobs:revenue", ["l.csv", "r.csv"])
    found = [(one.event_time, one.keys, tuple(one.renew)) for one in made.found]
    assert found == [("l_at", ("l_id",), ("l_id",)), ("r_at", ("r_id",), ("r_id",))]


FILES = ["orders.parquet", "payments.parquet"]


@pytest.mark.parametrize(
    ("files", "times", "said"),
    [
        (FILES[:1], (), r"takes 3 arguments \(orders, payments, minutes=1\), and one data set.*a file for each"),
        (FILES[:1] * 3, (), r"takes 2 DataFrames \(orders, payments\), and 3 data sets are given"),
        (FILES, ["placed_at"], "1 event-time column named for 2 data sets"),
        (FILES, ["placed_at", "placed_at"], "has no column 'placed_at'"),
    ],
)
def test_there_must_be_a_file_for_each_argument_and_an_event_time_for_each_or_none(files, times, said):
    with pytest.raises(WorkbenchError, match=said):
        draft("two_jobs:revenue", files, times)
    made = draft("two_jobs:any_number", FILES, ["placed_at", "paid_at"])
    assert [(one.name, one.event_time) for one in made.found] == [("input1", "placed_at"), ("input2", "paid_at")]


@pytest.mark.parametrize("find", [find_query, read_query])
def test_a_query_is_found_with_its_inputs(find):
    query = find("two_jobs:revenue", inputs=INPUTS)
    found = {one.name: {"dataset": one.dataset.path, "event_time": one.dataset.event_time} for one in query.inputs}
    assert list(found.items()) == list(INPUTS.items())
    swapped = {name: INPUTS[name] for name in ("payments", "orders")}
    with pytest.raises(WorkbenchError, match="Call the inputs as the arguments, in their order"):
        find("two_jobs:revenue", inputs=swapped)
    with pytest.raises(WorkbenchError, match=r"(?s)nexmark:q1.* inputs"):
        find("nexmark:q1", inputs=INPUTS)
    with pytest.raises(WorkbenchError, match=r"takes \(orders, payments, minutes=\w+\), and its inputs are orders"):
        find("two_jobs:revenue", inputs={"orders": INPUTS["orders"]})


test_a_study_says_what_is_wrong_with_its_inputs = refusals(
    lambda changes: study_from({**ASKED, "inputs": INPUTS, **changes}),
    ({"dataset": "orders.parquet"}, "dataset is given, and inputs too"),
    ({"event_time": "time"}, "event_time is given, and inputs too"),
    ({"source": "kafka"}, "source is 'kafka', and there are 2 inputs"),
    ({"inputs": ["orders.parquet"]}, "must name the data set of each argument"),
    ({"inputs": {"a b": {"dataset": "x.csv"}}}, "inputs: 'a b' is .*; it must be an argument"),
    ({"inputs": {"orders": "x.csv"}}, "inputs: 'orders' is 'x.csv'; it must be an argument .*, with its dataset"),
    ({"inputs": {"orders": {"dataset": "x.csv", "rate": 3}}}, "'orders' has the unknown key 'rate'; known are data"),
    (
        {"inputs": {"orders": {"dataset": "orders.parquet", "event_tme": "time"}}},
        "unknown key 'event_tme'; known are dataset, event_time, share, renew; did you mean 'event_time'",
    ),
    ({"inputs": {"orders": {"dataset": "x.csv", "share": 2}}}, "inputs: 'orders': share is 2"),
)


def test_a_measurement_depends_on_every_input_and_its_share(tmp_path):
    def key(**shares):
        inputs = {name: one | ({"share": shares[name]} if shares else {}) for name, one in INPUTS.items()}
        query = find_query("two_jobs:revenue", inputs=inputs)
        asked = Configuration(query, Budget(1, SlotProfile(1, 1024)))
        return measurement_key(asked, FluidTestbed(), CapacityEstimator())

    study = study_from({**ASKED, "inputs": {name: one | {"share": 0.5} for name, one in INPUTS.items()}})
    assert (replace(study), study.inputs["orders"]["share"]) == (study, 0.5)
    first = key()
    assert key() == first
    assert key(orders=0.5, payments=0.5) != first
    os.utime(tmp_path / "payments.parquet", (1, 1))  # as where it was written again
    assert key() != first


def test_measure_takes_a_study_for_its_data_and_keys_counts_the_column_of_the_input_that_has_it(prints, refuses):
    prints("init", "two_jobs.py:revenue", "orders.parquet", "payments.parquet")
    said = refuses("measure", "study.yaml", "--dataset", "orders.parquet")
    assert "--dataset is given, but study.yaml sets it" in said
    assert "cores" in refuses("measure", "study.yaml", "--slots", "4000")
    found = json.loads(prints("keys", "study.yaml", "order_id", "--json"))
    assert found["records"] == pytest.approx(two_inputs.ORDERS / 2, rel=0.1)
    said = refuses("keys", "study.yaml", "shop")
    assert "has the column" in said
    assert "payments.parquet has order_id, amount, paid_at" in said


def test_a_unique_key_that_one_input_is_deduplicated_by_is_renewed(tmp_path):
    body = "rows.withWatermark('at', '1 minute').dropDuplicatesWithinWatermark(['number'])"
    (tmp_path / "single.py").write_text(f"def once(rows):\n    return {body}\n")
    times = "\n".join(f"2026-01-31T12:{n // 60:02}:{n % 60:02}Z,{n}" for n in range(400))
    (tmp_path / "rows.csv").write_text(f"at,number\n{times}\n")
    made = draft("single.py:once", ["rows.csv"])
    (tmp_path / "study.yaml").write_text(made.text)
    study = read_study(tmp_path / "study.yaml")
    fed = {"dataset": "rows.csv", "event_time": "at", "renew": ("number",)}
    assert (study.dataset, dict(study.inputs["rows"])) == (None, fed)
    assert "share" not in made.text


def test_a_key_of_which_some_values_repeat_is_not_called_unique(tmp_path, prints):
    body = "a.join(b, 'number = paid AND at BETWEEN due AND due + INTERVAL 1 MINUTE')"
    (tmp_path / "pair.py").write_text(f"def both(a, b):\n    return {body}\n")

    def rows(name, columns, numbers):
        lines = "\n".join(f"2026-01-31T12:{at // 60:02}:{at % 60:02}Z,{number}" for at, number in enumerate(numbers))
        (tmp_path / name).write_text(f"{columns}\n{lines}\n")

    rows("a.csv", "at,number", [*range(392), *range(8)])  # eight are sent twice
    rows("b.csv", "due,paid", [n // 2 for n in range(600)])  # two payments of each
    said = prints("init", "pair.py:both", "a.csv", "b.csv")
    assert "a: nearly unique, 2 % of the rows repeat one: 'number', so other values in each pass over the data" in said
    assert "b: keys of another input, 50 % of the rows repeat one: 'paid', so other values in each pass" in said
    text = (tmp_path / "study.yaml").read_text()
    assert "renew: [number]             # nearly unique, 2 % of the rows repeat one: others in each pass" in text
    assert "renew: [paid]             # keys of another input, 50 % of the rows repeat one: others in each pass" in text
    assert read_study(tmp_path / "study.yaml").inputs["a"]["renew"] == ("number",)
