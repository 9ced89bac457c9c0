import math
import random
from dataclasses import replace
from itertools import cycle

import pytest
from example_measurement import example_measurement, failed_run, on_cores

from workbench.capacity.explore import conclude
from workbench.errors import WorkbenchError
from workbench.records import OperatorCost
from workbench.study import Study, drift, study_drift
from workbench.study._drift import Difference, Scatter, scatter_of
from workbench.study.planned import plan_targets

STUDY = Study("nexmark:q1", (2e6, 2e7), (2, 4, 8, 16), (512,), testbed="fluid", slot_cpus=1.0, most_runs=7)


@pytest.fixture(scope="module")
def measured():
    return example_measurement()


def at(measurement, low, high, limit="query", **changes):
    rate = (low + min(high, low * 1.01)) / 2 if low else None
    estimate = replace(measurement.estimate, low=low, high=high, rate=rate, limit=limit)
    return replace(measurement, estimate=estimate, **changes)


def times(factor, run):
    return at(run, run.estimate.low * factor, run.estimate.high * factor)


def scaled(planned, factor):
    runs = tuple(times(factor, run) for run in planned.exploration.measurements)
    return replace(planned, exploration=conclude(runs, planned.exploration.reason, form="scaling", most_runs=7))


@pytest.mark.parametrize(
    ("before", "now", "judgement"),
    [
        ((1000, 1010), (1000, 1010), "within noise"),
        ((1000, 1010), (930, 940), "within noise"),
        ((1000, 1010), (700, 707), "lower"),
        ((1000, 1010), (1400, 1414), "higher"),
        ((1000, 1800), (700, 1260), "within noise"),  # wide brackets decide less
        ((1000, math.inf), (700, 707), "lower"),  # at least 1000 before
        ((1000, math.inf), (1400, 1414), "unknown"),
        ((1000, 1010), (700, math.inf), "unknown"),
        ((1000, 1010), (1400, math.inf), "higher"),
        ((1000, 1010), (0, 500), "lower"),  # nothing was sustained now
        ((1000, 1010), (0, 1500), "unknown"),
        ((0, 500), (0, 500), "unknown"),
        ((1000, math.inf), (1000, math.inf), "unknown"),
        # what the source limits may be more
        ((10000, 10100, "query"), (6000, 6060, "source"), "unknown"),
        ((6000, 6060, "source"), (10000, 10100, "query"), "unknown"),
        ((6000, 6060, "source"), (3000, 3030, "query"), "lower"),
        ((6000, 6060, "query"), (10000, 10100, "source"), "higher"),
        ((6000, 6060, "source"), (6000, 6060, "source"), "unknown"),
    ],
)
def test_a_change_is_one_only_beyond_the_noise(measured, before, now, judgement):
    found = drift(at(measured, *before), at(measured, *now))
    assert found.overall.judgement == judgement
    assert bool(found.losses) == (judgement == "lower")


def test_the_noise_is_students_quantile_and_chance_alone_is_called_a_change_once_in_twenty(measured):
    found = drift(at(measured, 1000, 1020), at(measured, 1000, 1020), Scatter(0.03, 10))
    width = math.log(1.02) ** 2 / 12
    assert found.overall.tolerated == pytest.approx(2.2281389 * math.sqrt(2 * 0.03**2 + 2 * width))
    assert found.overall.ratio == 1.0
    dice = random.Random(3)
    called = 0
    for _ in range(1000):
        first, second = (1000 * math.exp(dice.gauss(0, 0.03)) for _ in range(2))
        found = drift(at(measured, first, first * 1.0001), at(measured, second, second * 1.0001), Scatter(0.03, 10_000))
        called += found.overall.judgement != "within noise"
    assert 30 <= called <= 72  # 50 expected, three standard deviations


@pytest.mark.parametrize(("before", "now", "judgement"), [(1e-5, 2e-5, "higher"), (2e-5, 1e-5, "lower")])
def test_an_operator_that_became_dearer_or_cheaper_is_named_and_is_no_loss(measured, before, now, judgement):
    def costing(seconds):
        return replace(measured, costs=(OperatorCost("2 window", 0.01, seconds, 1e-7, 10, 100, 9, 3),))

    found = drift(costing(before), costing(now))
    (cost,) = found.costs
    assert (cost.thing, cost.judgement, cost.ratio) == ("Cost of 2 window", judgement, pytest.approx(now / before))
    assert found.losses == ()


def test_circumstances_that_differ_are_listed_and_other_things_cannot_be_compared(measured, planned):
    found = drift(measured, replace(measured, machine=replace(measured.machine, cores=4), workbench_version="9"))
    version, cores = found.differences
    assert (version.thing, cores) == ("Workbench version", Difference("Machine: cores", "2", "4"))
    with pytest.raises(WorkbenchError, match=r"the query was q5 and is q1. Compare runs of the same"):
        drift(measured, replace(measured, query="q1"))
    with pytest.raises(WorkbenchError, match=r"the budget was 4 slots of 0.2 core and 512 MB at 2 s and is 5 slots"):
        drift(measured, replace(measured, budget=replace(measured.budget, slots=5)))
    with pytest.raises(WorkbenchError, match=r"interval_s was 2.0 and is 5.0"):
        study_drift(planned, replace(planned, study=replace(STUDY, interval_s=5.0)))
    nothing = replace(planned.exploration, runs=())
    with pytest.raises(WorkbenchError, match=r"measured no budget in common"):
        study_drift(planned, replace(planned, exploration=nothing))


def test_a_study_without_change_has_none_and_budgets_together_tell_what_one_cannot(planned):
    found = study_drift(planned, planned)
    assert found.overall.judgement == "within noise"
    assert found.overall.ratio == pytest.approx(1.0)
    assert found.differences == ()
    assert [promise.verdict for promise in found.promises] == ["holds"] * len(planned.plans)
    assert [promise.slots_now for promise in found.promises] == [plan.budget.slots for plan in planned.plans]
    noise = study_drift(planned, planned).overall.rise_by_chance
    factor = (1 + noise) ** -1.1
    found = study_drift(planned, scaled(planned, factor))
    assert found.overall.judgement == "lower"
    assert found.overall.ratio == pytest.approx(factor)
    assert {change.judgement for change in found.changes} == {"within noise"}


def test_runs_that_scatter_widen_the_noise(planned):
    dice = random.Random(1)
    runs = tuple(times(math.exp(dice.gauss(0, 0.5)), run) for run in planned.exploration.measurements)
    scattered = replace(planned.exploration, runs=runs)
    assert scatter_of([scattered]).deviation > 2 * scatter_of([planned.exploration]).deviation
    assert scatter_of([]) == Scatter()


def test_an_earlier_plan_that_no_longer_suffices_is_called_too_small(planned):
    last = planned.plans[-1]
    small = replace(last, budget=replace(last.budget, slots=2))
    tight = replace(last, rate=last.expected_rate * 0.95)
    found = study_drift(replace(planned, plans=(last, tight, small)), planned)
    assert [promise.verdict for promise in found.promises] == ["holds", "eats its margin", "too small"]
    assert found.promises[1].slots_now is None


def at_five_seconds(planned, *, gain):
    """The study with plans for 5 s and a sweep in which the capacity there is `gain` times as high as at 2 s."""
    run = max(planned.exploration.measurements, key=lambda run: run.budget.slots)
    low, high = run.estimate.low, run.estimate.high
    sweep = (run, at(run, gain * low, gain * high, budget=replace(run.budget, interval_s=5.0)))
    plans = plan_targets(replace(STUDY, margin=1.5), planned.exploration, sweep).plans
    return replace(planned, plans=plans, sweep=sweep)


def test_an_earlier_plan_is_held_against_its_own_trigger_interval(planned):
    before = at_five_seconds(planned, gain=3.0)
    assert {plan.budget.interval_s for plan in before.plans} == {5.0}
    for promise, plan in zip(study_drift(before, before).promises, before.plans, strict=True):
        assert promise.expected == pytest.approx(plan.expected_rate)
        assert (promise.low, promise.high) == pytest.approx((plan.low, plan.high), rel=0.1)
        assert promise.verdict == "holds"
    now = at_five_seconds(planned, gain=2.25)
    assert study_drift(before, now).promises[-1].verdict == "eats its margin"
    mixed = replace(before, plans=(*before.plans, *planned.plans))  # that interval was not measured now
    assert [one.budget for one in study_drift(mixed, planned).promises] == [plan.budget for plan in planned.plans]


def test_whose_cores_is_said_where_two_machines_meet_and_of_studies_all_runs_count(measured, planned):
    before, now = on_cores(measured, 0.25e-3, 0.285e-3), on_cores(at(measured, 500, 505), 0.5e-3, 0.57e-3)
    found = drift(before, now)
    assert tuple(found.cores) == pytest.approx((0.5, 0.5 / 1.15, 0.5 * 1.15))
    assert found.other_cores() == " The cores were 0.50 times as fast as those of the earlier run (0.43 to 0.57)."
    assert drift(before, on_cores(measured, 0.26e-3, 0.31e-3)).other_cores() == ""  # within the doubt
    assert drift(before, measured).cores is None  # nobody timed them

    def timed(*factors):
        slower = zip(planned.exploration.measurements, cycle(factors), strict=False)
        made = tuple(on_cores(run, 1e-4 * factor, 1e-4 * factor) for run, factor in slower)
        return replace(planned, exploration=replace(planned.exploration, runs=made))

    assert study_drift(timed(1.0), timed(2.0, 4.0, 4.0)).cores.times == pytest.approx(0.25)


@pytest.mark.parametrize("side", [-1, 1])
def test_a_change_is_called_one_from_the_share_on_that_chance_is_said_to_explain(planned, side):
    tolerated = study_drift(planned, planned).overall.tolerated
    seen = set()
    for near in (0.95, 0.98, 0.999, 1.001, 1.02, 1.05):
        found = study_drift(planned, scaled(planned, math.exp(side * near * tolerated))).overall
        beyond = 1 - found.ratio > found.fall_by_chance if side < 0 else found.ratio - 1 > found.rise_by_chance
        assert beyond == (found.judgement != "within noise")
        seen.add(found.judgement)
    assert seen == {"within noise", "lower" if side < 0 else "higher"}


def explored(planned, *readings, choice="edge"):
    """The study with other runs: the slots of each and the ends of its bracket, or why it failed."""
    first = replace(planned.exploration.measurements[0], predicted_rate=None)
    runs = []
    for slots, low, high in readings:
        limit = "query" if high not in {None, math.inf} else "none"
        run = at(first, low or 0, high or math.inf, limit, budget=STUDY.space.budget(slots, 512))
        runs.append(failed_run(run, "The disk is full; free some of it.") if low is None else run)
    return replace(planned, exploration=conclude(runs, "ended", form="scaling", choice=choice))


def proportional(*slots, factor=1.0):
    return [(count, factor * count * 1e5, factor * count * 1.01e5) for count in slots]


def capacity_at(found, slots):
    (change,) = (change for change in found.changes if change.thing.startswith(f"Capacity of {slots} slots"))
    return change


def test_one_budget_that_collapsed_is_a_loss_though_the_others_are_as_before(planned):
    before = explored(planned, *proportional(2, 4, 8, 16))
    now = explored(planned, *proportional(2, 4, 8), (16, 0, 3.2e5), (16, 0, 3.2e5))
    found = study_drift(before, now)
    assert found.overall.judgement == "within noise"
    (loss,) = found.losses
    assert loss.ratio is None
    assert loss.bounds == (0, pytest.approx(0.2, rel=0.05))


FAILED, NOTHING, MORE = (4, None, None), (4, 0, 1e5), (4, 4e5, math.inf)


@pytest.mark.parametrize("last", [FAILED, NOTHING, MORE], ids=["failed", "sustained nothing", "no upper end"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_repeat_that_is_not_fitted_does_not_stand_for_its_budget(planned, last, swapped):
    whole, more = explored(planned, *proportional(2, 4, 8)), explored(planned, *proportional(2, 4, 8), last)
    assert more.exploration.fitted == (0, 1, 2)
    found = study_drift(more, whole) if swapped else study_drift(whole, more)
    assert [(one.judgement, one.ratio) for one in found.changes] == [("within noise", pytest.approx(1))] * 3
    assert (found.overall.thing, found.losses) == ("Capacity over 3 budgets", ())


@pytest.mark.parametrize("factor", [0.3, 3.0])
def test_the_run_that_ended_the_exploration_tells_no_drift(planned, factor):
    before = proportional(2, 4, 8, 16, 2, 4, 8)
    ending = proportional(16, factor=factor)
    now = explored(planned, *before, *ending, choice="improvement")
    assert now.exploration.fitted == tuple(range(7))
    found = study_drift(explored(planned, *before), now)
    assert found.losses == ()
    assert {change.judgement for change in found.changes} == {"within noise"}


def test_a_budget_of_which_only_the_failure_is_known_is_not_compared_and_repeats_count_by_their_mean(planned):
    known, failed = proportional(2, 4, 8), (16, None, None)
    found = study_drift(explored(planned, *known, *proportional(16)), explored(planned, *known, failed))
    assert [change.thing.split(" slot")[0] for change in found.changes] == [f"Capacity of {one}" for one in (2, 4, 8)]
    low, high = (proportional(4, factor=math.exp(side * 0.2)) for side in (-1, 1))
    others = proportional(2, 8)
    found = study_drift(explored(planned, *others, *low, *high), explored(planned, *others, *high, *low))
    change = capacity_at(found, 4)
    assert change.ratio == pytest.approx(1)
    assert change.before == pytest.approx(change.now)
    width = math.log(1.01) ** 2 / 12
    each, deviation = found.scatter.quantile(3), found.scatter.deviation
    assert change.tolerated == pytest.approx(each * math.sqrt(deviation**2 + width))
    assert capacity_at(found, 8).tolerated == pytest.approx(each * math.sqrt(2 * (deviation**2 + width)))
    overall = found.scatter.quantile() * math.sqrt(5 * (deviation**2 + width)) / 3
    assert found.overall.tolerated == pytest.approx(overall)
