"""CAPS from end to end: tuned, searched, the plan of the front that sustains most; thresholds computed ahead."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from placement_oracle import all_plans, example_a, example_b

from workbench.errors import WorkbenchError
from workbench.placement import (
    CostVector,
    PlacementProblem,
    ThresholdTable,
    _caps,
    caps,
    placed_rate,
    search,
    tune,
    tune_range,
    tune_thresholds,
)
from workbench.placement._effort import Effort
from workbench.simulation import Worker

WORKER = Worker(1.3, 60.0, 200.0)


def problem(seed):
    random = np.random.default_rng(seed)
    tasks = tuple(int(count) for count in random.integers(1, 5, 3))
    loads = [random.uniform(0.1, 1.0, 3), random.uniform(0, 50, 3), random.uniform(0, 100, 3)]
    return PlacementProblem(tasks, [(0, 1), (1, 2)], 3, 4, *loads)


@pytest.mark.parametrize("seed", range(12))
def test_of_all_plans_within_tuned_thresholds_none_dominates_or_sustains_more(seed):
    given = problem(seed)
    found = caps(given, worker=WORKER)
    assert found.within == tune(given).thresholds
    plans = [given.plan(np.array(one).T) for one in all_plans(given)]
    within = [plan for plan in plans if plan.cost.within(found.within)]
    assert found.count == len(within)
    costs = np.array([tuple(plan.cost) for plan in within])
    best = np.array(tuple(found.best.cost))
    assert not ((costs <= best + 1e-9).all(axis=1) & (costs < best - 1e-9).any(axis=1)).any()
    rates = [placed_rate(given, plan.counts, 1.0, WORKER).rate for plan in within]
    assert placed_rate(given, found.best.counts, 1.0, WORKER).rate == pytest.approx(max(rates))
    assert (found.best, found.exhausted) == (found.pareto[0], True)


def test_a_front_is_led_by_the_plan_that_sustains_most():
    given = example_b((4, 6, 5, 8, 1), 4, 6)
    everything = search(given)
    led = caps(given, thresholds=CostVector(), worker=Worker(cpus=1e-3))
    assert {plan.cost for plan in led.pareto} == {plan.cost for plan in everything.pareto}
    assert led.best.cost.cpu == min(plan.cost.cpu for plan in everything.pareto) < everything.best.cost.cpu
    assert caps(given, thresholds=CostVector()).best == everything.best


def test_out_of_time_the_plan_of_the_tuning_is_kept_and_without_a_plan_within_thresholds_none(monkeypatch):
    found = caps(problem(0), thresholds=CostVector(0, 0, 0))
    assert (found.best, found.count, found.exhausted) == (None, 0, True)
    given = example_b((4, 6, 5, 8, 1), 4, 6)
    tuned = tune(given)

    def slow(*given, first=False, timeout_s):
        found = search(*given, first=first, timeout_s=timeout_s)
        return found if first else replace(found, count=0, pareto=(), best=None, exhausted=False)

    monkeypatch.setattr(_caps, "search", slow)
    assert caps(given).best.cost == tuned.plan.cost


SCALES = [{"0": 2, "1": 3, "2": 4, "3": 5, "4": 1}, {"0": 4, "1": 6, "2": 5, "3": 8, "4": 1}]


def test_thresholds_computed_ahead_are_those_of_the_tuning_at_any_rate(tmp_path):
    given = example_b((4, 6, 5, 8, 1), 4, 6)
    file = tmp_path / "thresholds.json"
    tune_range(given, SCALES).to_json(file)
    table = ThresholdTable.from_json(file)
    for tasks in SCALES:
        scaled = given.with_parallelism(tasks)
        cpu, io, net = (7 * scaled.loads).tolist()
        faster = PlacementProblem(scaled.parallelism, scaled.edges, 4, 6, cpu, io, net, operators=scaled.operators)
        assert table.find(faster) == table.find(scaled) == tune(scaled).thresholds
    assert table.find(given.with_parallelism((1, 1, 1, 1, 1))) is None
    cpu, io, net = given.loads.tolist()
    other = PlacementProblem(given.parallelism, given.edges, 4, 6, cpu[::-1], io, net, operators=given.operators)
    assert table.find(other) is None


def test_thresholds_of_another_cluster_or_query_are_refused(tmp_path):
    table = tune_range(example_b((4, 6, 5, 8, 1), 4, 6), SCALES[:1])
    with pytest.raises(WorkbenchError, match=r"are for 0, 1, 2, 3, 4 on 4 x 6 slots; .* on 5 x 6\. Tune"):
        table.find(example_b((4, 6, 5, 8, 1), 5, 6))
    with pytest.raises(WorkbenchError, match="the problem has 0, 1, 2 on 3 x 4"):
        table.find(problem(0))
    file = tmp_path / "thresholds.json"
    table.to_json(file)
    written = json.loads(file.read_text(encoding="utf-8"))
    for content, message in (("{", "is not JSON"), (json.dumps(written | {"slots": "six"}), "cannot be read: .*slots")):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(WorkbenchError, match=message):
            ThresholdTable.from_json(file)
    with pytest.raises(WorkbenchError, match="cannot be read"):
        ThresholdTable.from_json(tmp_path / "none.json")


# --- the tuning


def test_example_b_is_tuned_as_in_the_reference_and_bounds_save_probes_but_change_no_threshold():
    problem = example_b((4, 6, 5, 8, 1), 4, 6)
    tuning, ours = tune(problem, bounds=False), tune(problem)
    assert [*tuning.alone] == pytest.approx([0.0177, 0, 0.374], abs=5e-4)
    assert [*tuning.thresholds] == pytest.approx([0.0236, 0.0133, 0.4979], abs=5e-5)
    assert tuning.probes == 53
    assert tuning.minimal
    assert tuning.plan.cost.within(tuning.thresholds)
    assert tuning.plan.cost.worst == pytest.approx(0.46, abs=5e-3)
    assert (ours.thresholds, ours.alone) == (tuning.thresholds, tuning.alone)
    assert ours.plan.cost.within(ours.thresholds)
    assert ours.probes < 10
    # io alone is balanced perfectly; with the others it cannot be
    assert ours.alone.io == 0
    assert ours.thresholds.io > 0.01


def test_with_ceilings_each_dimension_is_tightened_with_the_others_at_theirs():
    problem, ceilings = example_b((4, 6, 5, 8, 1), 4, 6), CostVector(0.07, 0.07, 0.5)
    plans = search(problem).pareto
    factor = next(n for n in range(99) if any(plan.cost.within(scaled(ceilings, 1.1**n)) for plan in plans))
    highest = scaled(ceilings, 1.1**factor)
    tuned = tune(problem, ceilings=ceilings)
    assert tuned.minimal
    for dimension in ("cpu", "io", "net"):
        level = getattr(tuned.alone, dimension)
        within = [plan for plan in plans if plan.cost.within(replace(highest, **{dimension: level}))]
        tighter = replace(highest, **{dimension: level / 1.1 - 1e-6 if level > 0.01 else 0.0})
        assert within
        assert level in {0.0, 0.01} or not any(plan.cost.within(tighter) for plan in plans)
    assert tuned.plan.cost.within(tuned.thresholds)
    off = tune(problem).alone
    assert all(one >= other for one, other in zip(tuned.alone, off, strict=True))
    assert tuned.alone != off


def scaled(limits, factor):
    return CostVector(*(min(1.0, factor * limit) for limit in limits))


def test_thresholds_are_those_of_the_tuning_and_the_first_where_all_plans_are_alike():
    assert tune_thresholds(example_a()) == tune(example_a()).thresholds
    assert search(example_a(), tune_thresholds(example_a())).count > 0
    alike = PlacementProblem((6,), [], 3, 2, (1,), (0,), (0,))
    assert tune_thresholds(alike) == CostVector(0.01, 0.01, 0.01)


def test_a_probe_out_of_time_is_told(monkeypatch):
    real = _caps.explore_plans

    def slow(problem, thresholds, effort, *, first):
        return real(problem, thresholds, effort if thresholds == CostVector() else Effort(effort.until, 1), first=first)

    monkeypatch.setattr(_caps, "explore_plans", slow)
    problem = example_b((4, 6, 5, 8, 1), 4, 6)
    assert not tune(problem, bounds=False).minimal
    monkeypatch.setattr(_caps, "tune", partial(tune, bounds=False))
    with pytest.warns(UserWarning, match=r"took more than 5.0 s and counts as having no plan"):
        tune_thresholds(problem)
