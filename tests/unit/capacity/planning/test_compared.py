"""The forms of the model side by side: errors, the paper's choice, slots, and the evidence for the law."""

import json
from dataclasses import replace

import numpy as np
import pytest
from capacity_runs import BUDGETS, proportional, rates_of
from staged_runs import rated_run

from workbench.capacity import CapacityModel, ScalingModel, compare_forms, plan, select_model
from workbench.capacity.explore import conclude
from workbench.records import PlannedStudy, planned_to_dict

RATE = 4e6


def explored(points, rates, form="scaling"):
    runs = [
        rated_run(int(slots), int(memory), float(rate)) for (memory, slots), rate in zip(points, rates, strict=True)
    ]
    return conclude(runs, "all were measured", form=form, choice="edge", growth="workers")


def wobbling(rates, by=0.02, seed=1):
    return rates * (1 + by * np.random.default_rng(seed).standard_normal(len(rates)))


@pytest.fixture(scope="module")
def exploration():
    return explored(BUDGETS, wobbling(rates_of("sqrt", 10, 3e5, 1e4)))


def test_errors_are_those_of_refits(exploration):
    found = compare_forms(exploration)
    points, rates = exploration.points, exploration.rates
    order = np.lexsort((points[:, 0], points[:, 1]))
    lower, upper = order[:6], order[6:]
    for fit in found.fits:
        model = ScalingModel(growth="workers") if fit.form == "scaling" else CapacityModel(fit.form)
        model.stateful = exploration.model.stateful
        off = []
        for row in range(len(rates)):
            rest = np.arange(len(rates)) != row
            off.append(abs(model.fit(points[rest], rates[rest]).predict(points[[row]])[0] - rates[row]))
        assert fit.left_out == pytest.approx(np.mean(off), rel=1e-6)
        assert fit.left_out_share == pytest.approx(np.mean(off / rates), rel=1e-6)
        half = model.fit(points[lower], rates[lower]).predict(points[upper]) - rates[upper]
        assert fit.upper_half == pytest.approx(np.sqrt(np.mean(half**2)), rel=1e-6)
        assert fit.upper_half_share == pytest.approx(fit.upper_half / rates[upper].mean())


@pytest.mark.parametrize("form", ["linear", "sqrt", "log"])
def test_the_choice_and_the_coefficients_are_those_of_the_paper_s_rule(form):
    made = explored(BUDGETS, wobbling(rates_of(form, 10, 3e5, 1e6), 0.001))
    found, model = compare_forms(made), select_model(made.points, made.rates)
    assert (found.chosen, found.rule) == (form, "halves") == (model.form, "halves")
    assert found.fit_of(form).coefficients == pytest.approx((*model.coef_, model.intercept_))
    assert [fit.form for fit in found.fits] == ["linear", "sqrt", "log", "scaling"]


def test_slots_are_the_fewest_that_carry_the_margin_and_none_where_no_number_does(exploration):
    made = plan(exploration, RATE, memory_mb=[1024])
    (found,) = [compare_forms(exploration, [made], [1e15])]
    assert [(one.rate, one.slots) for one in found.targets] == [(RATE, made.budget.slots), (1e15, None)]
    for fit in found.fits[:3]:
        model = CapacityModel(fit.form).fit(exploration.points, exploration.rates)
        enough = (n for n in range(4, 10_000) if model.predict([[1024, n]])[0] >= 1.1 * RATE)
        assert fit.slots[0] == next(enough, fit.slots[0] if fit.form == "log" else None)
        assert fit.predicted == (pytest.approx(model.predict([[1024, made.budget.slots]])[0]), None)
    assert found.fit_of("log").slots[1] is None
    assert found.fit_of("scaling").predicted[0] == pytest.approx(made.expected_rate)


def test_slots_come_in_whole_executors_and_a_plan_at_another_interval_is_not_compared(exploration):
    made = plan(exploration, RATE, memory_mb=[1024], executor_slots=8)
    assert {fit.slots[0] % 8 for fit in compare_forms(exploration, [made]).fits} == {0}
    made = plan(exploration, RATE, memory_mb=[1024])
    other = replace(made, budget=replace(made.budget, interval_s=9.0))
    (target,) = compare_forms(exploration, [other]).targets
    assert (target.slots, target.expected_rate) == (None, None)


@pytest.mark.parametrize(
    ("slots", "rule", "evidence"),
    [((1, 2, 4), "leave-one-out", "too few"), ((1, 4, 16, 64), "halves", "law")],  # two runs determine a line
)
def test_few_runs_at_one_memory(slots, rule, evidence):
    points = np.array([(512.0, n) for n in slots])
    found = compare_forms(explored(points, 5e4 * points[:, 1] ** 0.75))
    assert (found.rule, found.evidence) == (rule, evidence)
    assert all(fit.left_out is not None for fit in found.fits)
    assert found.chosen == select_model(points, 5e4 * points[:, 1] ** 0.75).form


def test_law_and_form_are_distinguished_where_their_errors_are_and_without_one_the_first_is_taken():
    points = np.array([(512.0, 2.0), (512.0, 8.0), (2048.0, 2.0)])
    found = compare_forms(explored(points, proportional(points)))
    assert (found.chosen, found.rule, found.evidence) == ("linear", "first", "too few")
    assert [fit.left_out for fit in found.fits[:3]] == [None, None, None]
    points = np.array([(512.0, n) for n in (2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0)])
    assert compare_forms(explored(points, 5e4 * points[:, 1] ** 0.75)).evidence == "law"
    assert compare_forms(explored(points, 1e6 + 1e5 * points[:, 1])).evidence == "form"
    assert compare_forms(explored(points, wobbling(5e4 * points[:, 1], 0.03))).evidence == "alike"
    assert compare_forms(explored(points, 5e4 * points[:, 1], form="sqrt")).evidence == "set"


def test_the_document_of_a_study_has_the_comparison_and_older_ones_are_read(exploration, tmp_path):
    found = compare_forms(exploration, [plan(exploration, RATE, memory_mb=[1024])], [1e15])
    stored = PlannedStudy({}, "ended", (), runs=exploration.runs, forms=found)
    written = json.loads(json.dumps(planned_to_dict(stored), allow_nan=False))
    assert written["forms"]["chosen"] == found.chosen
    assert written["forms"]["fits"][2]["slots"][1] is None
    stored.to_json(tmp_path / "new.json")
    del written["forms"]
    (tmp_path / "old.json").write_text(json.dumps(written))
    assert PlannedStudy.from_json(tmp_path / "old.json") == PlannedStudy.from_json(tmp_path / "new.json")
