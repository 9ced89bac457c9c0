"""Runs that take what there is and end: how much they take, and what one takes that must end in time."""

import json
from pathlib import Path

import pytest
from refusals import refusals
from written_logs import BEGUN, LISTENER, application, batch, progress, stamp, written

from workbench.cli import main
from workbench.observing import ending_runs, read_log
from workbench.study import observe

PRICES = Path(__file__).parents[3] / "data" / "instances.csv"
CAP, DRIVER_S, ROW_S, SLOTS = 50_000, 0.5, 4e-5, 4
FULL_S = DRIVER_S + 0.02 + 1.1 * ROW_S * CAP / SLOTS
RATE = CAP / FULL_S


def lasts(rows):
    return FULL_S - 1.1 * ROW_S * (CAP - rows) / SLOTS


def runs(takes, *, start_s=30.0, pause_s=3600.0, name="orders", tasks=True):
    """Yield the log of an application that runs a query again and again, each time until nothing is left."""
    if tasks:
        yield from application(SLOTS, "spark://m:7077")
    at_s, number = BEGUN, 0
    for place, rows in enumerate(takes):
        run = f"r-{place}"
        begun = {"id": "q-1", "runId": run, "name": name, "timestamp": stamp(at_s)}
        yield {"Event": f"{LISTENER}QueryStartedEvent"} | begun
        at_s += start_s
        for taken in [CAP] * (rows // CAP) + [rows % CAP] * (rows % CAP > 0):
            batch_s = lasts(taken)
            of = {"name": name, "query": "q-1", "run": run}
            if tasks:
                yield from batch(number, taken, at_s, ran_s=batch_s - DRIVER_S, batch_s=batch_s, slots=SLOTS,
                                 tasks=(SLOTS, SLOTS), **of)  # fmt: skip
            else:
                yield progress(number, taken, at_s, batch_s=batch_s, **of)
            number, at_s = number + 1, at_s + batch_s + 0.005
        yield {"Event": f"{LISTENER}QueryTerminatedEvent", "id": "q-1", "runId": run, "exception": None}
        at_s += pause_s


@pytest.fixture(scope="module")
def nightly(tmp_path_factory):
    """Nights of 1 to 2 M rows."""
    return written(tmp_path_factory.mktemp("logs") / "app", runs([1_000_000, 1_520_000, 2_000_000]))


ONE = list(runs([1_000_000]))


@pytest.mark.parametrize(
    ("log", "ends"),
    [
        (ONE, True),
        ([*ONE[:-2], ONE[-1]], False),  # stopped within a batch: the last one has jobs and no progress
        (ONE[:-1], False),
        ([*ONE[:-1], ONE[-1] | {"exception": "java.lang.OutOfMemoryError"}], False),
    ],
)
def test_one_run_that_ended_by_itself_is_one(tmp_path, log, ends):
    assert read_log(written(tmp_path / "log", log)).ends is ends


def test_what_runs_take_is_summed_up_and_the_rate_of_full_batches_is_what_fills_them(nightly):
    running = read_log(nightly)
    assert running.ends
    found = ending_runs(running.runs, running.batches)
    assert (found.runs, found.rows, found.most_rows, found.largest) == (3, 1_520_000, 2_000_000, CAP)
    assert found.rate == pytest.approx(RATE, rel=0.01)
    assert found.full_s == pytest.approx(FULL_S, rel=0.01)
    assert found.most_s == pytest.approx(40 * FULL_S, rel=0.01)
    assert found.start_s == pytest.approx(30)
    room = observe(nightly).headroom
    assert room.interval_s == pytest.approx(FULL_S, rel=0.01)
    assert room.low < RATE < room.high < 1.3 * room.low


def test_a_run_that_must_end_in_time_is_planned(nightly):
    """Twice as many rows a second take twice the slots, and the driver's part once."""
    rows, deadline_s = 40_000_000, 630.0
    found = observe(nightly, rows=rows, deadline_s=deadline_s)
    assert (found.run.start_s, found.run.rate) == (30.0, pytest.approx(rows / 600))
    (plan,) = found.planned.plans
    assert plan.run == found.run
    assert plan.run.lasts_s(plan.expected_rate) < deadline_s
    fewer = observe(nightly, rows=rows, deadline_s=2 * deadline_s).planned.plans[0]
    assert fewer.budget.slots < plan.budget.slots
    assert "availableNow=True" in plan.job()


def test_the_answer_says_time_and_price_of_a_run(nightly, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ["--rows", "40M", "--deadline", "630", "--prices", str(PRICES)]
    assert main(["observe", str(nightly), *asked]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "A run of orders on 4 slots takes what there is and ends" in said
    assert "beyond the 10 min asked for" in said  # on its own four slots
    assert "A run of 40 M rows lasts about" in said
    assert "USD a run" in said


def test_a_run_on_what_it_has_is_answered_without_tasks_also_where_runs_are_over_while_code_warms_up(tmp_path, capsys):
    running = read_log(written(tmp_path / "short", runs([70_000] * 6, tasks=False)))
    assert len(running.batches) == 12
    assert ending_runs(running.runs, running.batches).rate == pytest.approx(RATE, rel=0.01)
    log = written(tmp_path / "log", runs([1_000_000] * 3, tasks=False))
    main(["observe", str(log), "--rows", "4M", "--deadline", "3600", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["runs"]["rate"] == pytest.approx(RATE, rel=0.01)
    assert "shows no tasks of its batches" in told["unplanned"]


test_what_is_asked_of_a_run_is_checked = refusals(
    lambda nightly, asked: observe(nightly, **asked),
    ({"rows": 1e6}, "given without its deadline"),
    ({"deadline_s": 60.0}, "given without its rows"),
    ({"rows": 1e6, "deadline_s": 60.0, "targets": [1e3]}, "Leave the other targets out"),
    ({"rows": 1e6, "deadline_s": 20.0}, "start_s is 30; it must be at least 0 and below the deadline of 20 s"),
    fixture="nightly",
)
