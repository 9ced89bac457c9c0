"""The scaling law, and the interval that it gives every form of the capacity model."""

import numpy as np
import pytest
from capacity_runs import BUDGETS, proportional, raises, rates_of
from capacity_truths import explore

from workbench.capacity import CapacityModel, ScalingModel, model_of_form
from workbench.capacity.model import FORMS, scaling_law
from workbench.capacity.model.scaling_law import fit_scaling_law


def test_the_law_finds_overhead_growth_and_memory_and_notices_what_levels_off():
    rng = np.random.default_rng(0)
    runs = np.array([(m, n) for m in (512.0, 4096.0) for n in (3.0, 4.0, 6.0, 8.0, 12.0, 24.0)])
    y = proportional(runs, overhead=2.0) * rng.lognormal(0, 0.02, len(runs))
    model = ScalingModel(growth="tasks").fit(runs, y)
    assert model.law_.grid.weight @ model.law_.grid.overhead == pytest.approx(2.0, abs=0.4)
    assert model.law_.expected_exponents == pytest.approx([0.0, 1.0], abs=0.03)
    assert model.predict([[1024, 96]]) == pytest.approx(94 * 50_000, rel=0.05)
    y = proportional(BUDGETS, overhead=0.0) * (BUDGETS[:, 0] / 512) ** 0.1
    low, high = ScalingModel(growth="tasks").fit(BUDGETS, y).predict([[512, 150], [4096, 150]])
    assert high / low == pytest.approx(8**0.1, rel=0.03)
    rng = np.random.default_rng(5)
    noise = rng.lognormal(0, 0.03, len(BUDGETS))
    steady = ScalingModel(growth="tasks").fit(BUDGETS, proportional(BUDGETS) * noise)
    levelling = ScalingModel(growth="tasks").fit(BUDGETS, 1e5 * BUDGETS[:, 1] ** 0.4 * noise)
    assert steady.law_.levelling < 0.05
    assert levelling.law_.levelling > 0.99
    assert levelling.predict([[1024, 120]]) == pytest.approx(1e5 * 120**0.4, rel=0.25)


def test_a_stateful_query_may_level_off_and_one_of_two_operators_is_taken_for_stateless():
    one = explore(7)
    fits = [ScalingModel(stateful=known, growth="tasks").fit(one.X, one.y) for known in (False, None, True)]
    stateless, unknown, stateful = fits
    lows = [model.interval(one.target)[0][0] for model in (stateful, unknown, stateless)]
    assert lows == sorted(lows)
    assert lows[0] < 0.9 * lows[2]
    assert stateless.law_.levelling < unknown.law_.levelling < stateful.law_.levelling
    runs = BUDGETS - [0, 2]
    fits = [ScalingModel(stateful=known, growth="tasks").fit(runs, proportional(runs)) for known in (False, None)]
    assert fits[0].interval([[512, 200]]) == fits[1].interval([[512, 200]])


def test_the_law_needs_no_more_than_two_runs():
    (low,), (high,) = ScalingModel(growth="tasks").fit([[512, 2], [512, 4]], [1e5, 3e5]).interval([[512, 8]])
    assert 3e5 < low < 6e5 < high


@pytest.mark.parametrize("form", FORMS)
def test_intervals_hold_the_prediction_and_widen_with_level_and_distance(form):
    one = explore(11)
    model = model_of_form(form).fit(one.X, one.y)
    memory, most = one.X[0, 0], one.X[:, 1].max()
    there = np.array([[memory, most * factor] for factor in (1.0, 2.0, 4.0, 8.0)])
    wide, narrow = model.interval(there, 0.95), model.interval(there, 0.5)
    middle = model.predict(there)
    assert (wide[0] <= narrow[0]).all()
    assert (narrow[0] <= middle).all()
    assert (middle <= narrow[1]).all()
    assert (narrow[1] <= wide[1]).all()
    relative = (wide[1] - wide[0]) / ScalingModel(growth="tasks").fit(one.X, one.y).predict(there)
    assert (np.diff(relative) > 0).all()


def test_every_form_has_an_interval_at_least_the_laws():
    one = explore(4)
    low, high = ScalingModel(growth="tasks").fit(one.X, one.y).interval(one.target)
    for form in FORMS:
        of_form = model_of_form(form, growth="tasks").fit(one.X, one.y).interval(one.target)
        assert of_form[0] <= low
        assert of_form[1] >= high


def test_more_runs_narrow_the_interval_but_repeats_of_one_budget_hardly():
    rng = np.random.default_rng(2)
    few = BUDGETS[[0, 3, 8, 11]]
    repeated, spread = np.repeat(few, 6, axis=0), np.repeat(BUDGETS, 2, axis=0)

    def width(runs):
        (low,), (high,) = ScalingModel(growth="tasks").fit(runs, y_of(runs)).interval([[1024, 100]])
        return (high - low) / proportional(np.array([[1024.0, 100.0]]))[0]

    def y_of(runs):
        return proportional(runs) * rng.lognormal(0, 0.05, len(runs))

    assert width(spread) < 0.95 * width(few)
    assert width(repeated) > 0.75 * width(few)


def test_without_positive_rates_there_is_a_prediction_but_no_interval():
    model = CapacityModel().fit(BUDGETS, rates_of("linear", 0, 10, -50))
    assert model.predict([[512, 100]]) == pytest.approx(950)
    with raises("There is no interval, because a rate, a memory or a number of slots of the runs was not positive;"):
        model.interval([[512, 100]])
    with raises("Memory and slots must be positive, for an interval and for the scaling form."):
        CapacityModel().fit(BUDGETS, proportional(BUDGETS)).interval([[512, 0]])
    with raises("The level of an interval is 90; it must be between 0 and 1, such as 0.9."):
        CapacityModel().fit(BUDGETS, proportional(BUDGETS)).interval([[512, 10]], level=90)


@pytest.mark.parametrize("probability", [1e-4, 0.05, 0.5, 0.9])
def test_what_is_below_a_quantile_has_its_probability(probability):
    law = fit_scaling_law(BUDGETS, proportional(BUDGETS) * np.random.default_rng(4).lognormal(0, 0.05, len(BUDGETS)))
    asked = np.array([[512.0, 2.0], [1024.0, 100.0]])
    for point, rate in zip(asked, law.quantile(asked, probability), strict=True):
        assert law.below(point[None], rate) == pytest.approx(probability, rel=1e-6)


def test_repeats_of_a_budget_take_no_more_work(monkeypatch):
    made = []
    rows = scaling_law._rows
    monkeypatch.setattr(scaling_law, "_rows", lambda *given: made.append(rows(*given)) or made[-1])
    points = np.repeat(BUDGETS, 50, axis=0)
    fit_scaling_law(points, proportional(points) * np.random.default_rng(1).lognormal(0, 0.02, len(points)))
    assert {one.shape[1] for one in made} == {len(BUDGETS)}


def test_the_law_is_drawn_to_the_brackets_that_it_misses_and_to_no_others():
    points = np.array([(1024.0, slots) for slots in (1, 2, 4)])
    rates = 1e5 * np.array([1.0, 2.6, 5.2])
    law = fit_scaling_law(points, rates)
    middle = law.quantile(points, 0.5)
    assert middle[0] > 1.05 * rates[0]
    tied = law.tied(points, rates / 1.02, rates * 1.02)
    assert tied.quantile(points, 0.5) == pytest.approx(np.clip(middle, rates / 1.02, rates * 1.02))
    assert law.tied(points, middle / 1.1, middle * 1.1) is law
    low, high = tied.quantile(points, 0.05), tied.quantile(points, 0.95)
    assert high / low == pytest.approx(law.quantile(points, 0.95) / law.quantile(points, 0.05))
    for point, rate in zip(points, tied.quantile(points, 0.3), strict=True):
        assert tied.below(point[None], rate) == pytest.approx(0.3)


def test_a_tie_fades_beyond_the_slots_measured_and_at_one_slot_count_is_to_what_is_beyond_all():
    points = np.array([(1024.0, slots) for slots in (2, 4, 8)])
    law = fit_scaling_law(points, 1e5 * points[:, 1])
    middle = law.quantile(points, 0.5)
    tied = law.tied(points, middle * [1.2, 0.5, 0.5], middle * [2, 2, 0.9])
    asked = np.array([(1024.0, slots) for slots in (1, 2, 8, 16, 80)])
    factors = np.log(tied.quantile(asked, 0.5) / law.quantile(asked, 0.5))
    assert factors == pytest.approx(np.log([1.2, 1.2, 0.9, 0.9, 0.9]) * [0.5, 1, 1, 0.5, 0.1])
    points = np.array([(1024.0, slots) for slots in (2, 4, 4, 8)])
    law = fit_scaling_law(points, 1e5 * points[:, 1])
    middle = law.quantile(points, 0.5)
    width = np.array([1.1, 1.01, 1.01, 1.1])
    apart = middle * [1, 1.2, 0.8, 1]  # one above the law, one below
    assert law.tied(points, apart / width, apart * width) is law
    both = middle * [1, 1.3, 1.2, 1]
    assert law.tied(points, both / width, both * width).quantile(points[1:2], 0.5) == pytest.approx(
        middle[1] * 1.2 / 1.01
    )
