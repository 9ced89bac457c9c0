import math
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from capacity_truths import explore
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from workbench.capacity import (
    CapacityModel,
    check_model,
    exploration_cost,
    leave_one_out_error,
    review_readings,
    select_model,
)
from workbench.capacity.forms import STREAMBED_FORMS, TRANSFORMS
from workbench.capacity.model import FORMS, MAX_SLOTS
from workbench.capacity.scaling_law import fit_scaling_law
from workbench.errors import WorkbenchError

BUDGETS = np.array([(m, n) for m in (512.0, 1024.0, 4096.0) for n in (4.0, 9.0, 16.0, 30.0)])


def rates_of(form, a, b, c, points=BUDGETS):
    g = TRANSFORMS[form]
    return a * g(points[:, 0]) + b * g(points[:, 1]) + c


def proportional(points, per_slot=50_000.0, overhead=1.0):
    return per_slot * (points[:, 1] - overhead)


def raises(message):
    return pytest.raises(WorkbenchError, match=re.escape(message))


# fitting


@pytest.mark.parametrize("form", sorted(TRANSFORMS))
def test_exact_coefficients_are_found(form):
    model = CapacityModel(form).fit(BUDGETS, rates_of(form, 12.5, 3e4, -4e4))
    assert model.coef_ == pytest.approx([12.5, 3e4])
    assert model.intercept_ == pytest.approx(-4e4)
    assert model.predict([[2048, 100]]) == pytest.approx(rates_of(form, 12.5, 3e4, -4e4, np.array([[2048.0, 100.0]])))


@pytest.mark.parametrize("form", sorted(TRANSFORMS))
def test_noisy_rows_are_fitted_by_ordinary_least_squares(form):
    rng = np.random.default_rng(3)
    y = proportional(BUDGETS) * rng.lognormal(0, 0.1, len(BUDGETS))
    peer = LinearRegression().fit(TRANSFORMS[form](BUDGETS), y)
    model = CapacityModel(form).fit(BUDGETS, y)
    assert model.coef_ == pytest.approx(peer.coef_)
    assert model.intercept_ == pytest.approx(peer.intercept_)
    assert model.score(BUDGETS, y) == pytest.approx(peer.score(TRANSFORMS[form](BUDGETS), y))


@pytest.mark.parametrize("form", FORMS)
def test_it_is_a_scikit_learn_estimator(form):
    model = CapacityModel(form=form)
    assert model.get_params() == {"form": form, "stateful": None}
    assert clone(model).set_params(form="sqrt", stateful=True).get_params() == {"form": "sqrt", "stateful": True}
    with pytest.raises(NotFittedError):
        model.predict(BUDGETS)
    y = proportional(BUDGETS)
    assert model.fit(BUDGETS, 2 * y) is model
    again = clone(model).fit(BUDGETS, y)
    assert model.fit(BUDGETS, y).predict(BUDGETS) == pytest.approx(again.predict(BUDGETS), abs=0)
    assert pickle.loads(pickle.dumps(model)).predict(BUDGETS) == pytest.approx(again.predict(BUDGETS), abs=0)  # noqa: S301


def test_a_data_frame_may_have_its_columns_in_any_order():
    frame = pd.DataFrame({"query": "q1", "slots": BUDGETS[:, 1], "memory_mb": BUDGETS[:, 0]})
    y = pd.Series(rates_of("linear", 10, 5e4, 0), index=range(5, 17))
    model = CapacityModel().fit(frame, y)
    assert model.coef_ == pytest.approx([10, 5e4])
    assert model.predict(frame) == pytest.approx(y.to_numpy())


@pytest.mark.parametrize("form", ["linear", "log", "sqrt", "scaling"])
def test_the_unit_of_memory_does_not_matter(form):
    rng = np.random.default_rng(3)
    y = proportional(BUDGETS) * rng.lognormal(0, 0.1, len(BUDGETS))
    unit = np.array([1 / 1024, 1])
    there = np.array([[2048.0, 150.0]])
    in_mb, in_gb = CapacityModel(form).fit(BUDGETS, y), CapacityModel(form).fit(BUDGETS * unit, y)
    assert in_gb.predict(there * unit) == pytest.approx(in_mb.predict(there))
    assert np.ravel(in_gb.interval(there * unit)) == pytest.approx(np.ravel(in_mb.interval(there)))


@pytest.mark.parametrize("form", ["linear", "log", "sqrt", "scaling"])
def test_constant_memory_is_no_information(form):
    runs = BUDGETS[BUDGETS[:, 0] == 1024]
    model = CapacityModel(form).fit(runs, proportional(runs))
    assert model.coef_[0] == pytest.approx(0, abs=1e-12)
    assert model.predict([[512, 20]]) == pytest.approx(model.predict([[4096, 20]]), rel=1e-3)
    if form != "scaling":
        assert math.isfinite(leave_one_out_error(runs, proportional(runs), form))
    known, unknown = (np.diff(np.ravel(model.interval([[memory, 100]])))[0] for memory in (1024, 4096))
    assert unknown > 1.2 * known


def test_nearly_constant_memory_does_not_blow_up():
    rng = np.random.default_rng(1)
    runs = BUDGETS.copy()
    runs[:, 0] = 1024 + rng.uniform(-1, 1, len(runs))
    y = proportional(runs) * rng.lognormal(0, 0.05, len(runs))
    model = CapacityModel("scaling").fit(runs, y)
    (low,), (high,) = model.interval([[1024, 100]])
    assert low < proportional(np.array([[1024, 100.0]]))[0] < high < 1.5 * low
    (middle,) = model.predict([[4096, 100]])
    assert middle == pytest.approx(99 * 50_000, rel=0.2)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([[1, 2, 3]], [1], "X has the shape (1, 3); it must have two columns, memory_mb and slots, one row per run."),
        ([1, 2], [1, 2], "X has the shape (2,); it must have two columns"),
        ([["a", 1], [2, 3]], [1, 2], "X is not a table of numbers"),
        ([[1, 2], [3, math.nan]], [1, 2], "X holds a number that is not finite; leave out such rows."),
        ([[1, 2], [3, 4]], [1], "y has the shape (1,); X has 2 rows, so give 2 rates."),
        ([[1, 2], [3, 4]], [1, None], "y holds a rate that is not finite; leave out runs without a result."),
        ([[1, 2], [3, 4]], [1, "much"], "y is not a list of numbers"),
        ([[1, 2]], [1], "1 run(s) cannot make a model; measure at least two budgets."),
    ],
)
def test_what_is_no_table_of_runs_is_refused(x, y, message):
    with raises(message):
        CapacityModel().fit(x, y)


def test_unknown_forms_and_undefined_rows_are_refused():
    with raises("The form of a capacity model is 'cubic'; use one of linear, sqrt, log, log1p, scaling."):
        CapacityModel("cubic").fit(BUDGETS, proportional(BUDGETS))
    with raises("The form is 'scaling'; least squares knows linear, sqrt, log, log1p. Use one of these."):
        leave_one_out_error(BUDGETS, proportional(BUDGETS), "scaling")
    with raises("The form 'log' is not defined at memory_mb = 0, slots = 4; both must be positive. Correct the row"):
        CapacityModel("log").fit([[0, 4], [1, 5]], [1, 2])
    with raises("The scaling law needs positive memory, slots and rates; leave out the runs that sustained nothing."):
        CapacityModel("scaling").fit([[1, 4], [1, 5]], [1, 0])


# leave-one-out, cost, selection


def test_leave_one_out_error_of_a_row_that_alone_determines_a_coefficient_is_infinite():
    assert leave_one_out_error([[1, 2], [1, 3], [1, 4], [2, 3]], [1, 2, 3, 5]) == math.inf
    assert leave_one_out_error([[1, 2], [2, 4], [3, 6], [4, 8]], [1, 2, 3, 5]) == math.inf  # rank 2
    assert leave_one_out_error([[1, 2], [2, 3]], [1, 2]) == math.inf


def test_the_cost_is_the_least_error_over_the_forms():
    y = rates_of("sqrt", 10, 3e4, -1e4)
    assert exploration_cost(BUDGETS, y) == pytest.approx(leave_one_out_error(BUDGETS, y, "sqrt"), abs=1e-6)
    assert exploration_cost(BUDGETS, y, ["log"]) == leave_one_out_error(BUDGETS, y, "log") > 1000


@pytest.mark.parametrize("form", STREAMBED_FORMS)
def test_halves_choose_the_form_the_rates_have(form):
    model = select_model(BUDGETS, rates_of(form, 10, 3e4, -1e4))
    assert model.form == form
    assert model.coef_ == pytest.approx([10, 3e4])


def test_halves_judge_by_the_upper_half_only():
    runs = np.array([(m, n) for n in (2.0, 4.0, 8.0, 16.0) for m in (1.0, 2.0)])
    y = np.sqrt(runs[:, 1])
    y[runs[:, 1] > 4] = 0.5 * runs[runs[:, 1] > 4, 1]  # the upper half lies near the line through the lower
    lower = runs[:, 1] <= 4
    errors = {
        form: np.sqrt(np.mean((CapacityModel(form).fit(runs[lower], y[lower]).predict(runs[~lower]) - y[~lower]) ** 2))
        for form in STREAMBED_FORMS
    }
    assert min(errors, key=errors.get) == "linear"
    assert select_model(runs, y).form == "linear"
    assert select_model(runs[::-1], y[::-1]).form == "linear"


def test_a_lower_half_with_one_slot_count_is_extended():
    runs = np.array([(1.0, 2.0)] * 3 + [(2.0, 2.0)] * 3 + [(1.0, 5.0), (2.0, 9.0), (1.0, 16.0), (2.0, 30.0)])
    for form in STREAMBED_FORMS:
        assert select_model(runs, rates_of(form, 1, 10, 5, runs)).form == form


def test_leave_one_out_decides_where_too_few_runs_are_left_to_test():
    runs = np.array([(1.0, 2.0)] * 3 + [(2.0, 2.0)] * 3 + [(1.0, 30.0), (2.0, 30.0)])  # 7 determine, 1 is left
    y = np.array([10.0, 11, 12, 13, 14, 15, 200, 201])
    errors = {form: leave_one_out_error(runs, y, form) for form in STREAMBED_FORMS}
    assert select_model(runs, y).form == min(errors, key=errors.get) == select_model(runs, y, rule="leave-one-out").form


def test_ties_go_to_the_first_form():
    constant = np.full(len(BUDGETS), 7.0)
    assert select_model(BUDGETS, constant).form == "linear"
    undetermined = [[1, 2], [1, 2], [1, 2]]
    assert select_model(undetermined, [1, 2, 3], ["log", "linear"]).form == "log"


def test_robust_selects_nothing():
    y = rates_of("sqrt", 10, 3e4, -1e4)
    assert select_model(BUDGETS, y, rule="robust").form == "scaling"
    assert select_model(BUDGETS, proportional(BUDGETS), ["log", "scaling"]).form == "scaling"


def test_selection_refuses_unknown_rules_and_no_forms():
    with raises("The rule is 'best'; use one of halves, leave-one-out, robust."):
        select_model(BUDGETS, proportional(BUDGETS), rule="best")
    with raises("No form competes; give at least one, such as 'linear'."):
        select_model(BUDGETS, proportional(BUDGETS), [])


# the scaling law


def test_the_law_finds_overhead_and_proportional_growth():
    rng = np.random.default_rng(0)
    runs = np.array([(m, n) for m in (512.0, 4096.0) for n in (3.0, 4.0, 6.0, 8.0, 12.0, 24.0)])
    y = proportional(runs, overhead=2.0) * rng.lognormal(0, 0.02, len(runs))
    model = CapacityModel("scaling").fit(runs, y)
    assert model.overhead_ == pytest.approx(2.0, abs=0.4)
    assert model.coef_ == pytest.approx([0.0, 1.0], abs=0.03)
    assert model.predict([[1024, 96]]) == pytest.approx(94 * 50_000, rel=0.05)
    plain = math.exp(model.intercept_) * 1448.2 ** model.coef_[0] * (24 - model.overhead_) ** model.coef_[1]
    assert plain == pytest.approx(model.predict([[1448.2, 24]])[0], rel=1e-4)


def test_the_law_carries_a_memory_effect_to_any_number_of_slots():
    y = proportional(BUDGETS, overhead=0.0) * (BUDGETS[:, 0] / 512) ** 0.1
    low, high = CapacityModel("scaling").fit(BUDGETS, y).predict([[512, 150], [4096, 150]])
    assert high / low == pytest.approx(8**0.1, rel=0.03)


def test_the_law_notices_what_levels_off():
    rng = np.random.default_rng(5)
    noise = rng.lognormal(0, 0.03, len(BUDGETS))
    steady = CapacityModel("scaling").fit(BUDGETS, proportional(BUDGETS) * noise)
    levelling = CapacityModel("scaling").fit(BUDGETS, 1e5 * BUDGETS[:, 1] ** 0.4 * noise)
    assert steady.law_.levelling < 0.05
    assert levelling.law_.levelling > 0.99
    assert levelling.predict([[1024, 120]]) == pytest.approx(1e5 * 120**0.4, rel=0.25)


def test_a_stateful_query_may_level_off():
    one = explore(7)
    stateless, unknown, stateful = (
        CapacityModel("scaling", stateful=known).fit(one.X, one.y) for known in (False, None, True)
    )
    lows = [model.interval(one.target)[0][0] for model in (stateful, unknown, stateless)]
    assert lows == sorted(lows)
    assert lows[0] < 0.9 * lows[2]
    assert stateless.law_.levelling < unknown.law_.levelling < stateful.law_.levelling


def test_a_query_of_two_operators_is_taken_for_stateless():
    runs = BUDGETS - [0, 2]
    fits = [CapacityModel("scaling", stateful=known).fit(runs, proportional(runs)) for known in (False, None)]
    assert fits[0].interval([[512, 200]]) == fits[1].interval([[512, 200]])


def test_the_law_needs_no_more_than_two_runs():
    (low,), (high,) = CapacityModel("scaling").fit([[512, 2], [512, 4]], [1e5, 3e5]).interval([[512, 8]])
    assert 3e5 < low < 6e5 < high


@pytest.mark.parametrize("form", FORMS)
def test_intervals_hold_the_prediction_and_widen_with_level_and_distance(form):
    one = explore(11)
    model = CapacityModel(form).fit(one.X, one.y)
    memory, most = one.X[0, 0], one.X[:, 1].max()
    there = np.array([[memory, most * factor] for factor in (1.0, 2.0, 4.0, 8.0)])
    wide, narrow = model.interval(there, 0.95), model.interval(there, 0.5)
    middle = model.predict(there)
    assert (wide[0] <= narrow[0]).all()
    assert (narrow[0] <= middle).all()
    assert (middle <= narrow[1]).all()
    assert (narrow[1] <= wide[1]).all()
    relative = (wide[1] - wide[0]) / CapacityModel("scaling").fit(one.X, one.y).predict(there)
    assert (np.diff(relative) > 0).all()


def test_every_form_has_an_interval_at_least_the_laws():
    one = explore(4)
    low, high = CapacityModel("scaling").fit(one.X, one.y).interval(one.target)
    for form in FORMS:
        of_form = CapacityModel(form).fit(one.X, one.y).interval(one.target)
        assert of_form[0] <= low
        assert of_form[1] >= high


def test_more_runs_narrow_the_interval_but_repeats_of_one_budget_hardly():
    rng = np.random.default_rng(2)
    few = BUDGETS[[0, 3, 8, 11]]
    repeated, spread = np.repeat(few, 6, axis=0), np.repeat(BUDGETS, 2, axis=0)

    def width(runs):
        (low,), (high,) = CapacityModel("scaling").fit(runs, y_of(runs)).interval([[1024, 100]])
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
    with raises("The level of an interval is 90; it must lie between 0 and 1, such as 0.9."):
        CapacityModel().fit(BUDGETS, proportional(BUDGETS)).interval([[512, 10]], level=90)


# the inverse


def test_slots_for_a_rate_with_streambeds_margin():
    model = CapacityModel("linear").fit(BUDGETS, proportional(BUDGETS, overhead=0.0))
    assert model.slots_for(1e6, memory_mb=1024) == 22  # exactly 1.1 million at 22 slots
    assert model.slots_for(1e6 + 1, memory_mb=1024) == 23
    assert model.slots_for(1e6, memory_mb=1024, margin=1.0) == 20
    assert model.slots_for(1e6, memory_mb=1024, min_slots=40) == 40
    assert model.slots_for(1.0, memory_mb=1024) == 1
    assert model.slots_for(1e12, memory_mb=1024) == 22_000_000


def test_slots_for_at_a_risk():
    one = explore(7)
    for form in ("linear", "scaling"):
        model = CapacityModel(form, stateful=False).fit(one.X, one.y)
        rate, memory = float(one.truth), one.target[0, 0]
        slots = model.slots_for(rate, memory, margin=1.0, risk=0.05)
        assert slots > model.slots_for(rate, memory, margin=1.0)
        ends = model.interval([[memory, slots - 1], [memory, slots]], level=0.9)[0]
        assert ends[0] < rate <= ends[1] * (1 + 1e-9)


def test_no_number_of_slots():
    falling = CapacityModel("linear").fit(BUDGETS, rates_of("linear", 0, -10, 1000))
    with raises(
        "No number of slots carries 1.1e+06 records/s (1.1 x 1e+06) at memory_mb = 512: by the linear form capacity "
        "does not grow with slots (coefficient -10). Measure more slot counts, or use another form."
    ):
        falling.slots_for(1e6, memory_mb=512)
    slow = CapacityModel("log").fit(BUDGETS, rates_of("log", 0, 10, 0))
    assert slow.slots_for(100, 512, margin=1.0) == math.ceil(math.exp(10))
    with raises(f"No number of slots up to {MAX_SLOTS:,} carries 1,000 records/s (1 x 1,000) at memory_mb = 512"):
        slow.slots_for(1000, 512, margin=1.0)


def test_a_rate_that_few_slots_carry_is_not_refused_because_more_carry_less():
    falling = CapacityModel("linear").fit(BUDGETS, rates_of("linear", 0, -10, 1000))
    assert falling.slots_for(900, memory_mb=512) == 1
    assert falling.slots_for(850, memory_mb=512, min_slots=4) == 4


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"rate": 0.0}, "The rate is 0.0; it must be a finite number above 0."),
        ({"rate": math.inf}, "The rate is inf; it must be a finite number above 0."),
        ({"memory_mb": -1}, "The memory_mb is -1; it must be a finite number above 0."),
        ({"margin": 0}, "The margin is 0; it must be a finite number above 0."),
        ({"min_slots": 0}, "min_slots is 0; it must be a whole number of at least 1."),
        ({"min_slots": 2.5}, "min_slots is 2.5; it must be a whole number of at least 1."),
        ({"risk": 5}, "The risk is 5; it must lie between 0 and 1, such as 0.05."),
    ],
)
def test_impossible_requests_are_refused(request_, message):
    model = CapacityModel().fit(BUDGETS, proportional(BUDGETS))
    with raises(message):
        model.slots_for(**{"rate": 1e6, "memory_mb": 512, **request_})


# readings


def stuck_at(limit, rows, noise=0.03):
    rng = np.random.default_rng(8)
    y = proportional(BUDGETS) * rng.lognormal(0, noise, len(BUDGETS))
    y[list(rows)] = limit * (1 + 2e-3 * rng.uniform(size=len(rows)))
    return y


def test_stuck_readings_are_found():
    y = stuck_at(100_000, (2, 5, 7))
    review = review_readings(BUDGETS, y)
    (group,) = review.stuck
    assert group.runs == (2, 5, 7)
    assert group.budgets == 3
    assert group.expected == (pytest.approx(8 * 50_000, rel=0.15), pytest.approx(29 * 50_000, rel=0.15))
    assert [row for row, valid in enumerate(review.valid) if not valid] == [2, 5, 7]
    assert review.low == ()
    assert str(group).startswith("3 runs on 3 budgets read 100,039 records/s within 0.5%, where 38")
    assert str(group).endswith("is expected: a limit outside the query was measured.")


def test_two_limits_are_found_one_after_the_other():
    y = stuck_at(100_000, (2, 5, 7))
    y[[3, 6, 9]] = 40_000
    review = review_readings(BUDGETS, y)
    assert sorted(group.runs for group in review.stuck) == [(2, 5, 7), (3, 6, 9)]


def test_equal_readings_of_equal_slot_counts_are_no_limit():
    y = proportional(BUDGETS)  # three memories each, to the last digit
    assert review_readings(BUDGETS, y).stuck == ()
    y[BUDGETS[:, 1] == 16] = 100_000.0  # low, but at one slot count: nothing says that it is a limit
    assert review_readings(BUDGETS, y).stuck == ()


def test_a_single_reading_is_stuck_only_at_a_known_limit():
    y = stuck_at(100_000, (7,))
    assert review_readings(BUDGETS, y).stuck == ()
    assert review_readings(BUDGETS, y).low == (7,)
    review = review_readings(BUDGETS, y, limits=[100_000])
    assert review.stuck[0].runs == (7,)
    assert review.low == ()
    assert review_readings(BUDGETS, proportional(BUDGETS), limits=[150_000]).stuck == ()  # what 4 slots carry


def test_the_objective_may_excuse_a_reading():
    y = stuck_at(100_000, (2, 5, 7))
    objectives = np.full(len(y), np.nan)
    assert len(review_readings(BUDGETS, y, objectives).stuck) == 1
    objectives[[2, 5, 7]] = 110_000
    assert review_readings(BUDGETS, y, objectives).stuck == ()
    with raises("The objectives have the shape (2,); give one for each of the 12 runs."):
        review_readings(BUDGETS, y, [1, 2])


def test_objectives_alone_tell_stuck_readings_from_a_fit_of_nothing():
    points = [[512, 2], [512, 4], [512, 8]]
    assert review_readings(points, [1e5, 1e5, 1e5]).stuck == ()
    assert len(review_readings(points, [1e5, 1e5, 1e5], [2e5, 4e5, 8e5]).stuck) == 1


# checks


def findings(model, runs, y, slots, memory=1024):
    return {finding.concern: finding for finding in check_model(model, runs, y, slots, memory)}


def test_nothing_is_doubtful_within_steady_runs():
    runs = np.repeat(BUDGETS, 3, axis=0)
    y = proportional(runs) * np.random.default_rng(1).lognormal(0, 0.02, len(runs))
    assert findings(CapacityModel("scaling").fit(runs, y), runs, y, 30) == {}


def test_doubts_are_found_and_advise():
    rng = np.random.default_rng(1)
    runs = BUDGETS[[0, 1, 8, 9]]
    y = proportional(runs) * (runs[:, 0] / 512) ** 0.2 * rng.lognormal(0, 0.02, len(runs))
    found = findings(CapacityModel("scaling").fit(runs, y), runs, y, 180)
    assert set(found) == {"few runs", "extrapolation", "forms disagree", "wide interval", "memory at the edge"}
    assert found["few runs"].finding == "The model rests on 4 runs at 2 slot counts."
    assert found["extrapolation"].value == pytest.approx(20)
    assert found["extrapolation"].finding == "The answer extrapolates 20.0 times beyond the 9 slots measured."
    assert "scaling" in found["forms disagree"].finding
    assert found["forms disagree"].value > 0.5
    assert all(finding.advice.endswith(".") for finding in found.values())


def test_a_memory_that_was_not_measured_is_a_doubt():
    runs = np.repeat(BUDGETS, 3, axis=0)
    y = proportional(runs)
    model = CapacityModel("scaling").fit(runs, y)
    found = findings(model, runs, y, 30, memory=16384)["memory not measured"]
    assert found.value == 4
    assert found.finding.startswith("The memory of 16384 per slot lies outside the 512 to 4096 measured")
    assert findings(model, runs, y, 30, memory=256)["memory not measured"].value == 2
    for memory in (512, 700, 4096):
        assert "memory not measured" not in findings(model, runs, y, 30, memory=memory)


def test_levelling_off_is_a_doubt():
    y = 1e5 * BUDGETS[:, 1] ** 0.4 * np.random.default_rng(5).lognormal(0, 0.03, len(BUDGETS))
    assert "levels off" in findings(CapacityModel("linear").fit(BUDGETS, y), BUDGETS, y, 60)
    with raises("The target is slots = 0, memory_mb = 1024; both must be positive. Give a budget."):
        check_model(CapacityModel().fit(BUDGETS, y), BUDGETS, y, 0, 1024)


def test_the_law_is_deterministic():
    one = explore(3)
    first, second = (fit_scaling_law(one.X, one.y).quantile(one.target, 0.05) for _ in range(2))
    assert first == second
