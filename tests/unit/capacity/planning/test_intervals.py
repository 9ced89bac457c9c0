"""The trigger interval as a choice: capacity against latency."""

import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student
from simulated_run import SimulatedRun
from staged_runs import seeing, staged_exploration

from workbench.answers.planned import cards
from workbench.capacity import plan
from workbench.capacity.planning import IntervalPoint, IntervalSpeedup, interval_points, interval_speedups, sweep
from workbench.capacity.planning.judged import Place, falls_short
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, result_of
from workbench.records import Machine
from workbench.study import Study, intervals_left_out, prepare, read_planned, refuse_failures, run_study, write_planned
from workbench.study.planned import MeasurementFailedError, plan_targets
from workbench.testbed import FluidTestbed, SparkTestbed
from workbench.workload import nexmark

POINTS = (
    IntervalPoint(1.0, 10_000.0, 9_900.0, 10_300.0, 1.9, 1.3),
    IntervalPoint(2.0, 20_000.0, 19_800.0, 20_600.0, 3.9, 2.7),
    IntervalPoint(5.0, 30_000.0, 29_800.0, 30_600.0, 9.7, 6.4),
)
BUDGET = Budget(2, SlotProfile(1.0, 1024))


class MicroBatches:
    """A simulated deployment per interval, on a clock of its own."""

    identity = "micro-batches"
    kind = "spark"

    def __init__(self):
        self.runs = []

    @property
    def clock(self):
        return lambda: self.runs[-1].now

    def operators(self, query):  # noqa: ARG002
        return ()

    def deploy(self, query, budget, layout=None, *, repeat=None):  # noqa: ARG002
        run = SimulatedRun(interval_s=budget.interval_s)
        run.machine, run.source = Machine(), None
        self.runs.append(run)
        return nullcontext(run)


def swept_on(testbed, intervals, folder, query="q1", **settings):
    journal, estimator = Journal(folder / "j.jsonl"), CapacityEstimator(**settings)
    steps = sweep(nexmark.query(query), BUDGET, intervals, testbed=testbed, estimator=estimator, journal=journal)
    return result_of(steps)


def test_every_interval_is_measured_once(tmp_path):
    testbed = MicroBatches()
    runs, again = (
        swept_on(testbed, intervals, tmp_path, "q5", tolerance=0.02)
        for intervals in ((5.0, 1.0, 2.0, 1.0), (1.0, 2.0, 5.0))
    )
    assert [run.budget.interval_s for run in runs] == [1.0, 2.0, 5.0]
    assert again == runs
    assert len(testbed.runs) == 3
    points = interval_points(runs)
    # batch time = a + b x rows: the longer the interval, the smaller the share of a
    assert points[0].rate < points[1].rate < points[2].rate
    for point in points:
        assert point.interval_s < point.latency_s <= 2 * point.interval_s * 1.05
        assert point.interval_s / 2 < point.mean_latency_s < point.latency_s
    (before,), (after,) = interval_points(runs[:1]), interval_points([seeing(runs[0], lacking_s=0.25)])
    assert after.mean_latency_s == pytest.approx(before.mean_latency_s + 0.25)
    assert after.latency_s == pytest.approx(before.latency_s + 0.25)


def test_a_sweep_needs_something_to_compare_and_a_trigger(tmp_path):
    for intervals, testbed, message in (
        ([2.0, 2.0], MicroBatches(), r"intervals to compare are \[2.0, 2.0\]; give at least two"),
        ([1.0, 2.0], FluidTestbed(), r"has no trigger interval. Compare intervals on Spark"),
    ):
        with pytest.raises(WorkbenchError, match=message):
            swept_on(testbed, intervals, tmp_path)


def ratios(found):
    return {interval: gain.ratio for interval, gain in found.items()}


def test_gains_are_relative_to_the_explored_interval_and_as_uncertain_as_two_measurements():
    assert ratios(interval_speedups(POINTS, 2.0)) == {1.0: 0.5, 2.0: 1.0, 5.0: 1.5}
    assert ratios(interval_speedups(POINTS, 2.0, latency_s=4.0)) == {1.0: 0.5, 2.0: 1.0}
    assert ratios(interval_speedups(POINTS, 2.0, latency_s=2.0)) == {1.0: 0.5}
    with pytest.raises(WorkbenchError, match=r"keeps a latency of 1 s: the least was 1.90 s at 1 s"):
        interval_speedups(POINTS, 2.0, latency_s=1.0)
    with pytest.raises(WorkbenchError, match=r"interval 3 s that the model rests on.*compared: 1 s, 2 s, 5 s"):
        interval_speedups(POINTS, 3.0)
    found = interval_speedups(POINTS, 2.0)
    assert [found[2.0].quantile(one) for one in (0.05, 0.5, 0.95)] == [1.0, 1.0, 1.0]  # the explored one itself
    fast = found[1.0]
    brackets = math.sqrt(10_300 / 9_900 * 20_600 / 19_800)
    scatter = math.exp(student.ppf(0.95, 8) * 0.05 * math.sqrt(2))  # of two runs, as repeats are expected to
    assert fast.quantile(0.95) == pytest.approx(0.5 * scatter * brackets)
    assert fast.quantile(0.05) == pytest.approx(0.5 / scatter / brackets)
    assert fast.quantile(0.5) == 0.5
    open_ended = interval_speedups((POINTS[0], replace(POINTS[1], high=math.inf)), 2.0)[1.0]
    assert open_ended.quantile(0.95) == pytest.approx(0.5 * scatter * math.sqrt(10_300 / 9_900))


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    study = Study("nexmark:q1", (2e7,), (2, 4, 8, 16), (512,), testbed="fluid", slot_cpus=1.0, most_runs=4)
    return run_study(study, Journal(tmp_path_factory.mktemp("i") / "j.jsonl"))


def planned(explored, latency_s, **settings):
    allowed = interval_speedups(POINTS, 2.0, latency_s)
    return plan(explored.exploration, 1e7, memory_mb=(512,), interval_speedups=allowed, **settings)


def test_the_least_slots_for_a_rate_and_a_latency(explored):
    fast, middle, slow = (planned(explored, latency_s) for latency_s in (2.0, 4.0, math.inf))
    assert [one.budget.interval_s for one in (fast, middle, slow)] == [1.0, 2.0, 5.0]
    assert fast.budget.slots > middle.budget.slots > slow.budget.slots
    alone = plan(explored.exploration, 1e7, memory_mb=(512,))
    assert replace(middle, cards=()) == replace(alone, cards=())
    for one in (fast, slow):
        assert one.expected_rate >= 1.1e7 * (1 - 1e-9)
        assert one.low < one.expected_rate < one.high
        note = next(card for card in one.cards if card.concern == "trigger interval")
        assert "explored at a trigger interval of 2 s" in note.finding
        assert "workbench verify --interval" in note.advice


def products(model, slots, memory_mb, gain, many=300):
    """Equally probable capacities x equally probable gains, which err independently."""
    chances = [(number + 0.5) / many for number in range(many)]
    capacities = [model.law_.quantile(np.array([[memory_mb, float(slots)]]), chance)[0] for chance in chances]
    return np.outer(capacities, [gain.quantile(chance) for chance in chances])


@pytest.mark.parametrize(("bracket", "deviation"), [(0.02, 0.14), (0.1, 0.07), (0.1, 0.03)])
def test_the_risk_at_another_interval_counts_the_tails_and_agrees_with_the_interval(bracket, deviation):
    found, gain = staged_exploration(slots=(2, 2, 4, 4, 8, 8)), IntervalSpeedup(2.0, bracket, deviation, 4)

    def planned(rate):
        return plan(found, rate, memory_mb=(600,), interval_speedups={5.0: gain}, margin=1.0)

    first = planned(40_000)
    likely = products(found.model, first.budget.slots, 600, gain)
    assert first.verdict.risk == pytest.approx((likely < 40_000).mean(), abs=0.002)
    for rate in np.linspace(0.6, 1.0, 9) * first.expected_rate:
        made = planned(rate)
        assert falls_short(made.verdict.risk) == (made.low < rate)
    rare = 0.7 * first.expected_rate
    (risk,) = Place(found, found.model, gain, None).risks(rare, 600, [first.budget.slots])
    assert risk == pytest.approx((likely < rare).mean(), abs=0.001)


def test_the_probability_below_a_gain_is_that_of_its_quantile():
    gain = IntervalSpeedup(2.0, 0.1, 0.07, 4)
    for chance in (0.01, 0.2, 0.7, 0.99):
        assert gain.below(np.array([gain.quantile(chance)])) == pytest.approx(chance)
    assert gain.below(np.array([1.9, 2.0, 2.1])) == pytest.approx(0.5)  # within the brackets


def test_the_capacity_at_another_interval_is_as_uncertain_as_model_and_gain(explored):
    fast = planned(explored, 2.0)
    gain, model = interval_speedups(POINTS, 2.0)[1.0], explored.exploration.model
    found = products(model, fast.budget.slots, 512, gain, 100)
    assert (found < fast.low).mean() == pytest.approx(0.05, abs=0.004)
    assert (found > fast.high).mean() == pytest.approx(0.05, abs=0.004)
    note = next(card for card in fast.cards if card.concern == "trigger interval")
    assert "had 0.50 times the capacity (90 %: 0.42 to 0.59)" in note.finding
    risky = planned(explored, 2.0, risk=0.05)
    assert risky.low >= 1e7  # the gain's risk is in it, too


def test_a_latency_nobody_keeps_refuses_the_targets(explored, tmp_path):
    runs = swept_on(MicroBatches(), (1.0, 2.0), tmp_path)
    study = replace(explored.study, testbed="spark", intervals=(1.0, 2.0), latency_s=0.5)
    planned = plan_targets(study, explored.exploration, runs)
    assert planned.plans == ()
    assert "No trigger interval keeps a latency of 0.5 s" in planned.refused[0][1]
    study = replace(study, latency_s=None)
    planned = plan_targets(study, explored.exploration, runs)
    shown = {card.name: card for card in cards(planned)}
    assert shown["intervals"].finding.startswith("From 1 s to 2 s the capacity of nexmark:q1 grows")
    assert not [card for card in shown.values() if card.kind == "error"]
    write_planned(planned, tmp_path / "plans.json")
    again = read_planned(tmp_path / "plans.json")
    assert again.sweep == planned.sweep
    assert [one.budget for one in again.plans] == [one.budget for one in planned.plans]


class Failing(MicroBatches):
    """Micro-batches of half a second cannot be measured."""

    def deploy(self, query, budget, layout=None, *, repeat=None):
        if budget.interval_s < 1:
            raise WorkbenchError("The source alone releases too little. Use a longer trigger interval (--interval).")
        return super().deploy(query, budget, layout, repeat=repeat)


@pytest.fixture
def swept(tmp_path):
    return swept_on(Failing(), (0.5, 2.0, 5.0), tmp_path)


def test_an_interval_that_cannot_be_measured_costs_no_plan(explored, swept, tmp_path):
    study = replace(explored.study, testbed="spark", intervals=(0.5, 2.0, 5.0))
    planned = plan_targets(study, explored.exploration, swept)
    assert planned.refused == ()
    assert planned.plans[0].budget.interval_s in {2.0, 5.0}
    reason = "The source alone releases too little. Use a longer trigger interval (--interval)."
    assert intervals_left_out(planned.sweep) == {0.5: reason}
    (card,) = (card for card in cards(planned) if card.name == "intervals")
    assert f"The 0.5 s interval was left out: {reason}" in card.finding
    with pytest.raises(MeasurementFailedError, match=r"at a trigger interval of 0.5 s: The source alone"):
        refuse_failures(planned)
    write_planned(planned, tmp_path / "plans.json")
    assert read_planned(tmp_path / "plans.json").plans == planned.plans


def test_what_is_no_capacity_is_not_compared_and_without_the_explored_interval_targets_are_planned(explored, swept):
    study = replace(explored.study, testbed="spark", intervals=(2.0, 5.0))
    bound = replace(swept[2], estimate=replace(swept[2].estimate, limit="source", high=math.inf))
    planned = plan_targets(study, explored.exploration, (swept[1], bound))
    assert planned.plans[0].budget.interval_s == 2.0
    assert "the source was the limit" in intervals_left_out(planned.sweep)[5.0]
    study = replace(explored.study, testbed="spark", intervals=(0.5, 2.0, 5.0))
    bound = replace(swept[1], estimate=replace(swept[1].estimate, limit="source", high=math.inf))
    runs = (swept[0], bound, swept[2])
    planned = plan_targets(study, explored.exploration, runs)
    assert planned.refused == ()
    assert planned.plans[0].budget.interval_s == 2.0
    refused = plan_targets(replace(study, latency_s=9.0), explored.exploration, runs).refused
    assert "Nothing was sustained at the trigger interval 2 s" in refused[0][1]


def test_intervals_spark_cannot_have_are_refused_before_anything_is_measured(journal):
    study = Study("nexmark:q1", (1e5,), (1, 2), (1024,), slot_cpus=1.0, intervals=(0.05, 2.0))
    testbed = replace(SparkTestbed(), slot_cpus="auto")
    with pytest.raises(WorkbenchError, match=r"trigger interval is 0.05 s; it must be at least"):
        prepare(replace(study, slot_cpus=0.2), journal, testbed=testbed)
