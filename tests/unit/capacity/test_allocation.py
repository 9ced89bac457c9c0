import math

import numpy as np
import pulp
import pytest
from refusals import refusals

from workbench.capacity import bids2
from workbench.capacity.allocation import solve_by_cbc
from workbench.errors import WorkbenchError

RATES = {"parse": 120.0, "join": 45.0, "filter": 200.0, "window": 30.0}
RATIOS = {"parse": 1.0, "join": 2 / 5, "filter": 2 / 5, "window": 1 / 10}


def test_worked_example():
    found = bids2(RATES, RATIOS, 11)
    assert found.tasks == {"parse": 4, "join": 4, "filter": 1, "window": 2}
    assert found.source_rate == pytest.approx(450)
    assert found.capacities == pytest.approx({"parse": 480, "join": 450, "filter": 500, "window": 600})
    assert found.bottleneck == "join"
    assert found.shares == pytest.approx({"parse": 4 / 11, "join": 4 / 11, "filter": 1 / 11, "window": 2 / 11})
    assert (found.unbounded, found.idle_slots, found.status) == ({}, 0, "optimal")
    milp = bids2(RATES, RATIOS, 11, solver="cbc")
    assert (sum(milp.tasks.values()), milp.status) == (11, "optimal")
    assert milp.source_rate == min(milp.tasks[name] * RATES[name] / RATIOS[name] for name in RATES)
    assert milp.source_rate == pytest.approx(450)


@pytest.mark.parametrize("solver", ["exact", "cbc"])
@pytest.mark.parametrize("rate", [1e307, 5e-324])
def test_rates_near_the_ends_of_the_floats_are_rates(rate, solver):
    found = bids2({"b": rate, "a": rate}, {"a": 1.0, "b": 1.0}, 10, solver=solver)
    assert found.tasks == {"b": 5, "a": 5}


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8])
def test_numbers_of_few_bits_are_reckoned_with_in_full(kind):
    rates = {"a": kind(100), "b": kind(45)}
    assert bids2(rates, {"a": 1.0, "b": 2.0}, 10**9) == bids2({"a": 100, "b": 45}, {"a": 1.0, "b": 2.0}, 10**9)


def test_ties_go_to_the_first_operator_and_one_of_whole_numbers_is_a_tie():
    found = bids2({"b": 1, "a": 1}, {"b": 1, "a": 49}, 51)
    assert (found.tasks, found.source_rate) == ({"b": 2, "a": 49}, 1.0)
    assert bids2({"b": 1, "a": 1}, {"b": 1, "a": 49}, 50).bottleneck == "b"
    assert bids2({"b": 1.0, "a": 1.0}, {"a": 1.0, "b": 1.0}, 5).tasks == {"b": 3, "a": 2}
    assert bids2({"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 1.0}, 5).bottleneck == "b"
    assert bids2({"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 1.0}, 4).bottleneck == "a"


@pytest.mark.parametrize("solver", ["exact", "cbc"])
@pytest.mark.parametrize("undefined", [None, math.inf, math.nan])
def test_an_operator_without_a_bound_gets_one_task_and_a_reason(solver, undefined):
    rates = {"map": 10.0, "sink": undefined, "late": math.nan}
    found = bids2(rates, {"map": 1.0, "sink": 0.5, "late": 0.0}, 6, solver=solver)
    assert found.tasks == {"map": 4, "sink": 1, "late": 1}
    assert found.unbounded == {"sink": "true rate undefined", "late": "no input seen"}
    assert found.capacities == {"map": 40.0, "sink": math.inf, "late": math.inf}
    assert (found.source_rate, found.bottleneck) == (40.0, "map")


@pytest.mark.parametrize("solver", ["exact", "cbc"])
def test_nothing_bounded_is_an_answer_with_idle_slots(solver):
    found = bids2({"a": 5.0, "b": None}, {"a": 0.0, "b": 1.0}, 7, solver=solver)
    assert found.tasks == {"a": 1, "b": 1}
    assert (found.source_rate, found.bottleneck, found.idle_slots) == (math.inf, None, 5)


def test_numbers_of_numpy_are_numbers_and_extreme_ones_do_no_harm():
    found = bids2({"a": np.float64(2.0)}, {"a": np.float64(0.5)}, np.int64(3))
    assert (found.tasks, found.source_rate) == ({"a": 3}, 12.0)
    assert type(found.source_rate) is float
    found = bids2({"a": 1e300, "b": 1e-300, "c": 1e-3}, {"a": 1e-8, "b": 1e8, "c": 1.0}, 10)
    assert found.tasks == {"a": 1, "b": 8, "c": 1}


def test_an_infeasible_budget_names_the_minimum():
    with pytest.raises(WorkbenchError) as error:
        bids2(RATES, RATIOS, 3)
    assert str(error.value).startswith("A budget of 3 slots misses the minimum of 4, one task for each operator ")
    many = {f"o{i}": 1.0 for i in range(7)}
    with pytest.raises(WorkbenchError, match=r"minimum of 7, .* \(o0, o1, o2, o3, o4 and 2 more\); give it at least 7"):
        bids2(many, many, 6, solver="cbc")


test_input_that_means_nothing_is_refused = refusals(
    bids2,
    ({}, {}, 3, r"^There are no operators to give slots to; pass the true rate of at least one\.$"),
    ({"a": 1.0}, {}, 3, r"^Operator 'a' has no ratio; give both mappings the same operators, without sources\.$"),
    ({"a": 1.0}, {"a": 1.0, "source": 1.0}, 3, "^Operator 'source' has no true rate"),
    ({"a": 1.0}, {"a": -1.0}, 3, r"^The ratio of operator 'a' is -1\.0; it must be a finite number of at least 0"),
    ({"a": 1.0}, {"a": None}, 3, "^The ratio of operator 'a' is None"),
    ({"a": 0.0}, {"a": 1.0}, 3, r"^The true rate of operator 'a' is 0\.0; it must be above 0"),
    ({"a": 1.0}, {"a": 1.0}, 2.5, r"^slots is 2\.5; it must be a whole number of at least 0\.$"),
    ({"a": 1.0}, {"a": 1.0}, 3, "glpk", r"^The solver is 'glpk'; use one of 'exact', 'cbc'\.$"),
)


def test_a_cbc_that_cannot_be_run_and_a_problem_without_a_solution_are_named(monkeypatch):
    problem = pulp.LpProblem("nothing", pulp.LpMinimize)
    count = problem.add_variable("count", 0, 1, pulp.LpInteger)
    problem += count
    problem += 2 * count == 1
    with pytest.raises(WorkbenchError, match=r"^CBC found no solution of nothing \(Infeasible\)\.$"):
        solve_by_cbc(problem)
    with pytest.raises(WorkbenchError, match=r"^CBC found no solution of nothing within 5 s; raise the time limit \("):
        solve_by_cbc(problem, 5.0)
    monkeypatch.setattr(pulp.PULP_CBC_CMD, "pulp_cbc_path", "/nowhere/cbc")
    with pytest.raises(WorkbenchError, match=r"CBC could not be run on bids2 \(.*/nowhere/cbc.*\); check that"):
        bids2(RATES, RATIOS, 11, solver="cbc")
