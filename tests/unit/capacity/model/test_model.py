"""The capacity model: fitted to runs, asked for the slots that carry a rate, and which form of it fits best."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from capacity_runs import BUDGETS, proportional, raises, rates_of
from refusals import refusals
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from workbench.capacity import (
    CapacityModel,
    ScalingModel,
    exploration_cost,
    leave_one_out_error,
    model_of_form,
    select_model,
)
from workbench.capacity.model import FORMS
from workbench.capacity.model.model import MAX_SLOTS


def test_parameters_are_those_of_the_constructor():
    model = CapacityModel(form="log")
    assert model.get_params() == {"form": "log", "growth": None, "stateful": None}
    assert clone(model).set_params(form="sqrt", stateful=True).get_params()["form"] == "sqrt"
    assert clone(ScalingModel(stateful=True)).get_params() == {"growth": None, "stateful": True}


@pytest.mark.parametrize("form", FORMS)
def test_it_is_a_scikit_learn_estimator(form):
    model = model_of_form(form)
    assert model.form == form
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
    in_mb, in_gb = model_of_form(form).fit(BUDGETS, y), model_of_form(form).fit(BUDGETS * unit, y)
    assert in_gb.predict(there * unit) == pytest.approx(in_mb.predict(there))
    assert np.ravel(in_gb.interval(there * unit)) == pytest.approx(np.ravel(in_mb.interval(there)))


@pytest.mark.parametrize("form", ["linear", "log", "sqrt", "scaling"])
def test_constant_memory_is_no_information(form):
    runs = BUDGETS[BUDGETS[:, 0] == 1024]
    model = model_of_form(form).fit(runs, proportional(runs))
    assert model.predict([[512, 20]]) == pytest.approx(model.predict([[4096, 20]]), rel=1e-3)
    if form != "scaling":
        assert model.coef_[0] == pytest.approx(0, abs=1e-12)
        assert math.isfinite(leave_one_out_error(runs, proportional(runs), form))
    known, unknown = (np.diff(np.ravel(model.interval([[memory, 100]])))[0] for memory in (1024, 4096))
    assert unknown > 1.2 * known


def test_nearly_constant_memory_does_not_blow_up():
    rng = np.random.default_rng(1)
    runs = BUDGETS.copy()
    runs[:, 0] = 1024 + rng.uniform(-1, 1, len(runs))
    y = proportional(runs) * rng.lognormal(0, 0.05, len(runs))
    model = ScalingModel(growth="tasks").fit(runs, y)
    (low,), (high,) = model.interval([[1024, 100]])
    assert low < proportional(np.array([[1024, 100.0]]))[0] < high < 1.5 * low
    (middle,) = model.predict([[4096, 100]])
    assert middle == pytest.approx(99 * 50_000, rel=0.2)


test_what_is_no_table_of_runs_is_refused = refusals(
    CapacityModel().fit,
    ([[1, 2, 3]], [1], r"X has the shape \(1, 3\); it must have two columns, memory_mb and slots, one row per run\."),
    ([1, 2], [1, 2], r"X has the shape \(2,\); it must have two columns"),
    ([["a", 1], [2, 3]], [1, 2], "X is not a table of numbers"),
    ([[1, 2], [3, math.nan]], [1, 2], r"X holds a number that is not finite; leave out such rows\."),
    ([[1, 2], [3, 4]], [1], r"y has the shape \(1,\); X has 2 rows, so give 2 rates\."),
    ([[1, 2], [3, 4]], [1, None], r"y holds a rate that is not finite; leave out runs without a result\."),
    ([[1, 2], [3, 4]], [1, "much"], "y is not a list of numbers"),
    ([[1, 2]], [1], r"1 run\(s\) cannot make a model; measure at least two budgets\."),
)


def test_unknown_forms_and_undefined_rows_are_refused():
    with raises("The form of a capacity model is 'cubic'; use one of linear, sqrt, log, log1p, or ScalingModel()."):
        CapacityModel("cubic").fit(BUDGETS, proportional(BUDGETS))
    with raises("The form of a capacity model is 'cubic'; use one of 'linear', 'sqrt', 'log', 'log1p', 'scaling'."):
        model_of_form("cubic")
    with raises("The form of a capacity model is 'cubic'; use one of 'linear', 'sqrt', 'log', 'log1p', 'scaling'."):
        select_model(BUDGETS, proportional(BUDGETS), ["cubic"], "halves")
    with raises("The form is 'scaling'; least squares knows linear, sqrt, log, log1p. Use one of these."):
        leave_one_out_error(BUDGETS, proportional(BUDGETS), "scaling")
    with raises("The form 'log' is not defined at memory_mb = 0, slots = 4; both must be positive. Correct the row"):
        CapacityModel("log").fit([[0, 4], [1, 5]], [1, 2])
    with raises("The scaling law needs positive memory, slots and rates; leave out the runs that sustained nothing."):
        ScalingModel().fit([[1, 4], [1, 5]], [1, 0])


# the inverse


def test_slots_for_a_rate_with_streambeds_margin():
    model = CapacityModel("linear").fit(BUDGETS, proportional(BUDGETS, overhead=0.0))
    assert model.slots_for(1e6, memory_mb=1024) == 22  # exactly 1.1 million at 22 slots
    assert model.slots_for(1e6 + 1, memory_mb=1024) == 23
    assert model.slots_for(1e6, memory_mb=1024, margin=1.0) == 20
    assert model.slots_for(1e6, memory_mb=1024, min_slots=40) == 40
    assert model.slots_for(1.0, memory_mb=1024) == 1
    assert model.slots_for(1e12, memory_mb=1024) == 22_000_000


@pytest.mark.parametrize("step", [1, 2, 3, 7, 40])
def test_slots_for_a_rate_in_steps_are_the_fewest_of_those_that_carry_it(step):
    for form in ("linear", "sqrt", "scaling"):
        model = model_of_form(form).fit([[1024, n] for n in (2, 4, 8, 16)], [1e5, 1.9e5, 3.5e5, 6e5])
        for rate in (5e4, 4e5, 7e5):
            steps = range(step, 4000, step)
            fewest = next(n for n in steps if model.predict([[1024, n]])[0] >= 1.1 * rate and n >= 3)
            assert model.slots_for(rate, 1024, min_slots=3, step=step) == fewest


def test_no_number_of_slots_is_refused_but_not_where_few_carry_the_rate_and_more_less():
    falling = CapacityModel("linear").fit(BUDGETS, rates_of("linear", 0, -10, 1000))
    with raises(
        "No number of slots sustains 1.10 M records/s (1.1 x 1 M records/s) at 512 MB a slot: by the linear form "
        "capacity does not grow with slots (coefficient -10). Measure more slot counts, or use another form."
    ):
        falling.slots_for(1e6, memory_mb=512)
    slow = CapacityModel("log").fit(BUDGETS, rates_of("log", 0, 10, 0))
    assert slow.slots_for(100, 512, margin=1.0) == math.ceil(math.exp(10))
    with raises(f"No number of slots up to {MAX_SLOTS:,} sustains 1.00 k records/s at 512 MB a slot: by the log form"):
        slow.slots_for(1000, 512, margin=1.0)
    assert falling.slots_for(900, memory_mb=512) == 1
    assert falling.slots_for(850, memory_mb=512, min_slots=4) == 4


test_impossible_requests_are_refused = refusals(
    lambda request: (
        CapacityModel().fit(BUDGETS, proportional(BUDGETS)).slots_for(**{"rate": 1e6, "memory_mb": 512} | request)
    ),
    ({"rate": 0.0}, r"The rate is 0\.0; it must be a finite number above 0\."),
    ({"rate": math.inf}, r"The rate is inf; it must be a finite number above 0\."),
    ({"memory_mb": -1}, r"The memory_mb is -1; it must be a finite number above 0\."),
    ({"margin": 0}, r"The margin is 0; it must be a finite number above 0\."),
    ({"min_slots": 0}, r"min_slots is 0; it must be a whole number of at least 1\."),
    ({"min_slots": 2.5}, r"min_slots is 2\.5; it must be a whole number of at least 1\."),
    ({"risk": 5}, r"The risk is 5; it must be between 0 and 1, such as 0\.05\."),
)


def test_leave_one_out_error_of_a_row_that_alone_determines_a_coefficient_is_infinite():
    assert leave_one_out_error([[1, 2], [1, 3], [1, 4], [2, 3]], [1, 2, 3, 5]) == math.inf
    assert leave_one_out_error([[1, 2], [2, 4], [3, 6], [4, 8]], [1, 2, 3, 5]) == math.inf  # rank 2
    assert leave_one_out_error([[1, 2], [2, 3]], [1, 2]) == math.inf


def test_the_cost_is_the_least_error_over_the_forms_and_none_of_runs_on_a_line():
    y = rates_of("sqrt", 10, 3e4, -1e4)
    assert exploration_cost(BUDGETS, y) == pytest.approx(leave_one_out_error(BUDGETS, y, "sqrt"), abs=1e-6)
    assert exploration_cost(BUDGETS, y, ["log"]) == leave_one_out_error(BUDGETS, y, "log") > 1000
    points = np.array([(memory, slots) for memory in (512.0, 1024.0, 4096.0) for slots in (1.0, 2.0, 4.0, 8.0)])
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(points))
        rates = 1000.0 * points[order, 1]
        costs = [exploration_cost(points[order][:count], rates[:count]) for count in range(8, len(points) + 1)]
        assert costs == [0.0] * len(costs)
    assert exploration_cost(points, 1000.0 * points[:, 1] + points[:, 1] % 3) > 0


def test_selection_takes_the_first_of_a_tie_nothing_but_the_law_for_robust_and_refuses_unknown_rules():
    constant = np.full(len(BUDGETS), 7.0)
    assert select_model(BUDGETS, constant).form == "linear"
    undetermined = [[1, 2], [1, 2], [1, 2]]
    assert select_model(undetermined, [1, 2, 3], ["log", "linear"]).form == "log"
    y = rates_of("sqrt", 10, 3e4, -1e4)
    assert select_model(BUDGETS, y, rule="robust").form == "scaling"
    assert select_model(BUDGETS, proportional(BUDGETS), ["log", "scaling"]).form == "scaling"
    with raises("The rule is 'best'; use one of 'halves', 'leave-one-out', 'robust'."):
        select_model(BUDGETS, proportional(BUDGETS), rule="best")
    with raises("No form competes; give at least one, such as 'linear'."):
        select_model(BUDGETS, proportional(BUDGETS), [])
