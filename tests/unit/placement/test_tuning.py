from dataclasses import replace

import pytest
from placement_oracle import example_a, example_b

from workbench.errors import WorkbenchError
from workbench.placement import CostVector, PlacementProblem, search, tune, tune_thresholds
from workbench.placement import tuning as tuning_module
from workbench.placement._effort import Effort


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
    real = tuning_module.explore_plans

    def slow(problem, thresholds, effort, *, first):
        return real(problem, thresholds, effort if thresholds == CostVector() else Effort(effort.until, 1), first=first)

    monkeypatch.setattr(tuning_module, "explore_plans", slow)
    problem = example_b((4, 6, 5, 8, 1), 4, 6)
    assert not tune(problem, bounds=False).minimal
    with pytest.warns(UserWarning, match=r"took more than 5.0 s and counts as having no plan"):
        tune_thresholds(problem, bounds=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"relaxation": 1.0}, "relaxation is 1.0; give a factor above 1"),
        ({"step": 0}, "step is 0; give a number above 0"),
        ({"timeout_s": 0}, "timeout_s is 0; give seconds above 0"),
    ],
)
def test_bad_arguments_are_refused_with_what_is_allowed(arguments, message):
    with pytest.raises(WorkbenchError, match=message):
        tune_thresholds(example_a(), **arguments)
