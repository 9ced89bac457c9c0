"""A query of two inputs on real Spark: what it finds, that event times stay aligned, and each input's share."""

import json
import re
import time
from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import two_inputs

from workbench import cli
from workbench.cli.console import DONE
from workbench.dataflow import Budget, SlotProfile
from workbench.doctor import quota_permitted
from workbench.measuring import CapacityEstimator
from workbench.records import Measurement
from workbench.testbed import SparkTestbed
from workbench.testbed.spark.driver.feed import ReplayFeed
from workbench.workload import Command, EventClock, prepare_inputs

pytestmark = pytest.mark.spark

ROWS, BATCHES = 900, 12
"""Of a batch, and batches: more rows than one pass over the data."""

FRACTIONS = quota_permitted()
BUDGET = Budget(2, SlotProfile(0.4, 600), 4.0) if FRACTIONS else Budget(1, SlotProfile(1.0, 1200), 4.0)
TESTBED = SparkTestbed(slot_cpus="auto" if FRACTIONS else "cores", warmup_cap_s=5)
EVENT_RATE = 150.0  # as in the data: rows of both inputs per second of event time
ORIGIN_US = 1_700_000_000_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("two")
    two_inputs.write(place)
    return place


def run(spark, folder, name, build, inputs=two_inputs.inputs):
    """Write the rows of a query over the inputs, batch by batch, and return them with the numbers of the batches."""
    place = folder / name
    place.mkdir()
    replays = prepare_inputs(inputs(folder), place)
    feed = ReplayFeed(place)
    feed.offer(Command(1, None, ROWS, EVENT_RATE))
    seen = defaultdict(list)
    running = (
        build(*feed.streams(spark, replays, 2))
        .writeStream.foreachBatch(lambda rows, number: seen[number].extend(map(tuple, rows.collect())))
        .option("checkpointLocation", str(place / "checkpoint"))
        .start()
    )
    try:
        end = time.monotonic() + 300
        while (running.lastProgress is None or running.lastProgress["batchId"] < BATCHES) and time.monotonic() < end:
            running.awaitTermination(0.2)
        last = running.lastProgress
    finally:
        running.stop()
    return replays, {number: rows for number, rows in seen.items() if number <= last["batchId"]}, last


def replayed(replay, last):
    clock = EventClock(ORIGIN_US, 0, 1e6 / EVENT_RATE)
    return [row for batch in replay.batches(0, last, clock) for row in batch.to_pylist()]


@pytest.mark.long
def test_deduplication_keeps_the_rows_of_every_pass_over_one_input_whose_keys_are_renewed(spark, folder):
    def orders(place):
        return (replace(two_inputs.inputs(place)[0], renew=("id",)),)

    def once(rows):
        return rows.withWatermark("placed_at", "1 minute").dropDuplicatesWithinWatermark(["id"]).select("id")

    _, seen, _ = run(spark, folder, "once", once, orders)
    found = [number for rows in seen.values() for (number,) in rows]
    assert len(found) == len(set(found)) == ROWS * len([rows for rows in seen.values() if rows])
    assert len(found) > 2 * two_inputs.ORDERS


def test_a_join_finds_what_plain_python_finds(spark, folder):
    replays, seen, last = run(spark, folder, "joined", two_inputs.revenue)
    released = json.loads(last.json)["sources"][0]["endOffset"]["n"]
    assert released >= BATCHES * ROWS > replays[0].period  # keys come again
    paid = defaultdict(list)
    for row in replayed(replays[1], released):
        paid[row["order_id"]].append(row)
    expected = [
        (order["id"], f"r{order['customer'] % 3}", one["amount"], order["placed_at"].timestamp())
        for order in replayed(replays[0], released)
        for one in paid[order["id"]]
        if order["placed_at"] <= one["paid_at"] <= order["placed_at"] + timedelta(minutes=1)
    ]
    assert len(expected) > 1_000
    found = [(*row[:3], row[3].timestamp()) for rows in seen.values() for row in rows]
    assert _rounded(found) == _rounded(expected)


def _rounded(rows):
    return sorted((*row[:3], round(row[3], 4)) for row in rows)


@pytest.mark.long
def test_no_input_runs_ahead_of_the_other(spark, folder):
    def both(orders, payments):
        one = orders.selectExpr("'orders' AS input", "placed_at AS time")
        return one.union(payments.selectExpr("'payments' AS input", "paid_at AS time"))

    _, seen, last = run(spark, folder, "both", both)
    span_s = ROWS / EVENT_RATE
    for rows in list(seen.values())[1:]:
        assert len(rows) == ROWS
        ends = {name: max(time for which, time in rows if which == name) for name in ("orders", "payments")}
        assert abs(ends["orders"] - ends["payments"]).total_seconds() < span_s
    counts = [source["numInputRows"] for source in json.loads(last.json)["sources"]]
    assert sum(counts) == ROWS
    assert [source["endOffset"]["input"] for source in json.loads(last.json)["sources"]] == [0, 1]


@pytest.mark.alone
@pytest.mark.long
def test_the_rate_is_met_in_sum_and_by_shares(folder):
    rate = 500.0
    with TESTBED.deploy(two_inputs.query(folder, (0.75, 0.25)), BUDGET) as deployed:
        deployed.set_rate(rate)
        deployed.settle(10)
        seen = deployed.observe(20)
        facts = deployed.machine.facts
    assert facts["inputs"].startswith("orders 75 %, payments 25 % of the rate")
    assert seen.consumed_rate == pytest.approx(rate, rel=0.1)
    assert [one.name for one in seen.inputs] == ["orders", "payments"]
    assert sum(one.records for one in seen.inputs) == seen.consumed_records == seen.operators[0].records_out
    for one, share in zip(seen.inputs, (0.75, 0.25), strict=True):
        assert one.records / seen.consumed_records == pytest.approx(share, abs=0.02)
        (operator,) = (operator for operator in seen.operators if (operator.operator,) == one.operators)
        assert operator.records_in == one.records
        assert one.selectivity == pytest.approx(1, abs=0.01)
    assert seen.inputs[0].operators != seen.inputs[1].operators
    assert any("join" in operator.operator for operator in seen.operators)


JOB = """
from pyspark.sql import functions as f


def revenue(orders, payments):
    names = orders.sparkSession.read.csv("regions.csv", header=True, inferSchema=True)
    placed = orders.withWatermark("placed_at", "2 seconds").join(f.broadcast(names), "customer")
    paid = payments.withWatermark("paid_at", "2 seconds")
    return placed.join(paid, f.expr("id = order_id AND paid_at BETWEEN placed_at AND placed_at + INTERVAL 1 SECOND"))
"""


@pytest.mark.alone
@pytest.mark.long
def test_two_files_become_a_study_and_a_measurement(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    Path("shop_jobs.py").write_text(JOB)
    names = "".join(f"{n},r{n % 3}\n" for n in range(two_inputs.CUSTOMERS))
    Path("regions.csv").write_text(f"customer,region\n{names}")
    assert cli.main(["init", "shop_jobs.py:revenue", "orders.parquet", "payments.parquet"]) == DONE
    with Path("study.yaml").open("a") as study:
        study.write("\nwarmup_s: 10\n")
    hurried = partial(CapacityEstimator, warmup_min_s=5.0, warmup_cap_s=20.0)  # the inputs matter here, not the rate
    monkeypatch.setattr("workbench.cli.measuring.CapacityEstimator", hurried)
    assert cli.main(["plan", "study.yaml", "--dry-run"]) == DONE
    asked = ["--slots", str(BUDGET.slots), "--interval", "4", "--memory-mb", str(BUDGET.profile.memory_mb)]
    short = ["--max-rate", "500", "--tolerance", "0.5", "--no-costs", "--output", "found.json"]
    assert cli.main(["measure", "study.yaml", *asked, *short]) == DONE
    assert "The inputs have their parts of it: orders " in " ".join(capsys.readouterr().out.split())
    found = Measurement.from_json("found.json")
    rows = found.estimate.observation.inputs
    assert rows[0].records / sum(one.records for one in rows) == pytest.approx(2 / 3, abs=0.05)
    assert re.match(r"orders 6[5-8] %, payments 3[2-5] % of the rate", found.machine.facts["inputs"])
