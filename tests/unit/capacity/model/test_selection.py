"""Which form of the capacity model fits the runs best."""

import math

import numpy as np
import pytest
from capacity_runs import BUDGETS, proportional, raises, rates_of

from workbench.capacity import exploration_cost, leave_one_out_error, select_model
from workbench.capacity.model import STREAMBED_FORMS


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


def test_the_cost_of_runs_on_a_line_is_none_and_not_their_round_off():
    points = np.array([(memory, slots) for memory in (512.0, 1024.0, 4096.0) for slots in (1.0, 2.0, 4.0, 8.0)])
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(points))
        rates = 1000.0 * points[order, 1]
        costs = [exploration_cost(points[order][:count], rates[:count]) for count in range(8, len(points) + 1)]
        assert costs == [0.0] * len(costs)
    assert exploration_cost(points, 1000.0 * points[:, 1] + points[:, 1] % 3) > 0
