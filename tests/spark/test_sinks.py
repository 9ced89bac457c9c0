"""Sinks and checkpoints on real Spark: what is written is what the query says, its cost is seen, nothing stays."""

import json
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import job_with_sinks
import pyarrow.dataset as ds
import pytest
from toy_query import KEYS, query

from workbench.dataflow import Budget, SlotProfile
from workbench.doctor import quota_permitted
from workbench.errors import WorkbenchError
from workbench.records import JobSettings
from workbench.testbed import SparkTestbed

pytestmark = pytest.mark.spark

FRACTIONS = quota_permitted()
BUDGET = Budget(2, SlotProfile(0.4, 600), 1.0) if FRACTIONS else Budget(1, SlotProfile(1.0, 1200), 1.0)
ROWS = replace(query(job_with_sinks.cents), name="job_with_sinks:cents")


@contextmanager
def deployed(asked, **settings):
    """Deploy a query with a sink or a checkpoint; give the run and what was said."""
    said = []
    testbed = SparkTestbed(
        slot_cpus="auto" if FRACTIONS else "cores",
        warmup_cap_s=4,
        settings=JobSettings(**settings),
        progress=said.append,
    )
    with testbed.deploy(asked, BUDGET) as run:
        yield run, said


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    """What a Parquet sink and a checkpoint folder hold while a query runs, and when it is over."""
    place = tmp_path_factory.mktemp("sink")
    table, checkpoint = place / "table", place / "checkpoint"
    with deployed(ROWS, sink=f"parquet {table}", checkpoint=str(checkpoint)) as (run, said):
        run.set_rate(2_000.0)
        seen = run.observe(4)
        run.set_rate(0.0)
        run.settle(3)
        (own,) = table.iterdir()
        written = ds.dataset(own / "query", format="parquet").to_table()
        kept = {one.name for one in next(checkpoint.iterdir()).joinpath("query").iterdir()}
    return seen, written, kept, set(place.iterdir()), said, run.machine


def test_the_table_has_the_rows_that_the_query_says_once_each(parquet):
    written = parquet[1].sort_by("id").to_pydict()
    count = len(written["id"])
    assert count > 0
    assert written["id"] == [3 * number for number in range(count)]
    assert written["cents"] == [3 * number for number in written["id"]]
    assert written["key"] == [number % KEYS for number in written["id"]]


def test_the_checkpoint_has_offsets_and_commits(parquet):
    assert {"offsets", "commits", "metadata"} <= parquet[2]


def test_nothing_stays_in_the_places_and_the_user_is_told(parquet):
    _, _, _, left, said, machine = parquet
    assert left == set()
    assert any("written for real, to a folder of its own" in text for text in said)
    assert machine.facts["sink"] == "parquet"
    assert machine.facts["checkpoint"] == "in a folder of the job"


@pytest.mark.long
@pytest.mark.alone  # milliseconds are asserted, which other work hides
def test_what_writing_takes_is_seen(parquet):
    cost = parquet[0].writes
    assert cost.batch_s > 0.005  # a file sink's commit lists files and writes its own log
    assert cost.log_s > 0
    assert cost.written == pytest.approx(1 / 3, rel=0.1)
    assert cost.state_s is None


@pytest.mark.long
def test_a_delta_table_has_the_rows_once_each_and_costs_a_commit_each_batch(tmp_path):
    with delta_table(tmp_path) as (run, own):
        run.set_rate(2_000.0)
        seen = run.observe(4)
        run.set_rate(0.0)
        run.settle(3)
        files = [json.loads(line) for one in sorted(own.glob("_delta_log/*.json")) for line in one.open()]
        added = [str(own / line["add"]["path"]) for line in files if "add" in line]
        written = ds.dataset(added, format="parquet").to_table().sort_by("id").to_pydict()
    assert written["id"] == [3 * number for number in range(len(written["id"]))]
    assert len(list(tmp_path.iterdir())) == 0
    assert seen.writes.batch_s > 0.05  # a commit reads and writes Delta's log
    assert seen.writes.jobs_s > 0
    assert seen.writes.jobs_at_once >= 1
    assert sum(one.useful_s for one in seen.operators) > 0


@contextmanager
def delta_table(place):
    """A run that writes to a Delta table, and the folder of the table."""
    try:
        with deployed(ROWS, sink=f"delta {place}") as (run, _):
            run.set_rate(100.0)
            run.observe(4)
            (own,) = place.iterdir()
            yield run, own / "query"
    except WorkbenchError as error:
        if "could not be fetched" in str(error):
            pytest.skip(f"Delta comes from Maven Central, which cannot be reached: {error}")
        raise


@pytest.mark.alone
@pytest.mark.long
def test_foreach_batch_calls_the_users_function_with_each_batch_once(tmp_path):
    asked = replace(ROWS, sink=job_with_sinks.keep)
    with deployed(asked, sink=f"job_with_sinks:keep {tmp_path}") as (run, _):
        run.set_rate(2_000.0)
        run.observe(4)
        run.set_rate(0.0)
        run.settle(3)
        (own,) = Path(tmp_path).iterdir()
        called = sorted(int(one.name.partition("=")[2]) for one in (own / "query").iterdir())
        written = ds.dataset(own / "query", format="parquet", partitioning="hive").to_table().sort_by("id").to_pydict()
    assert written["id"] == [3 * number for number in range(len(written["id"]))]
    assert called == list(range(called[-1] + 1))
    assert written["batch"] == sorted(written["batch"])
    assert not list(tmp_path.iterdir())


@pytest.mark.alone
@pytest.mark.long
def test_a_sink_that_sleeps_and_grows_is_seen_in_the_figures():
    asked = replace(ROWS, sink=job_with_sinks.slow)
    with deployed(asked, sink="job_with_sinks:slow") as (run, said):
        run.set_rate(2_000.0)
        run.settle(32)
        cost = run.observe(8).writes
    assert cost.batch_s > 0.15
    assert cost.growth_s == pytest.approx(0.02, rel=0.3)
    assert cost.batches >= 30
    assert any("writes where it always does" in text for text in said)
