"""The core assignment against enumeration of all assignments."""

from fractions import Fraction
from itertools import product

from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from workbench.scaling import assign_cores


@st.composite
def problems(draw):
    nodes, executors = draw(st.integers(2, 3)), draw(st.integers(2, 3))
    most = 3 if nodes * executors < 9 else 2
    cores = draw(st.lists(st.integers(1, most), min_size=nodes, max_size=nodes))
    current = []
    for available in cores:
        owners = draw(st.lists(st.integers(0, executors - 1), max_size=available))
        current.append([owners.count(j) for j in range(executors)])
    owners = draw(st.lists(st.integers(0, executors - 1), max_size=sum(cores)))
    return {
        "current": current,
        "required": [owners.count(j) for j in range(executors)],
        "node_cores": cores,
        "state_bytes": draw(st.lists(st.integers(0, 100), min_size=executors, max_size=executors)),
        "local_node": draw(st.lists(st.integers(0, nodes - 1), min_size=executors, max_size=executors)),
        "data_intensity": draw(st.lists(st.sampled_from([0, 3, 5, 9, 40]), min_size=executors, max_size=executors)),
        "threshold": 2.0,
    }


def rows(cores, executors):
    """Every way to give at most `cores` cores of one node away."""
    return [row for row in product(range(cores + 1), repeat=executors) if sum(row) <= cores]


def exact_cost(current, new, state):
    total = Fraction(0)
    for j, size in enumerate(state):
        before, after = sum(row[j] for row in current), sum(row[j] for row in new)
        for old, kept in zip(current, new, strict=True):
            share = Fraction(old[j], before) if before else 0
            total += size * max(Fraction(0), share - (Fraction(kept[j], after) if after else 0))
    return total


def allowed(matrix, problem, threshold):
    """Constraints (b) and (c); (a) holds by construction."""
    for j, required in enumerate(problem["required"]):
        column = [row[j] for row in matrix]
        if sum(column) < required:
            return False
        if problem["data_intensity"][j] > threshold and sum(column) != column[problem["local_node"][j]]:
            return False
    return True


@examples(40)
@given(problem=problems())
def test_optimum_is_enumeration_and_greedy_is_feasible(problem):
    executors = len(problem["required"])
    everything = list(product(*(rows(cores, executors) for cores in problem["node_cores"])))
    threshold = problem["threshold"]
    while not (feasible := [matrix for matrix in everything if allowed(matrix, problem, threshold)]):
        threshold *= 2
    least = min(exact_cost(problem["current"], matrix, problem["state_bytes"]) for matrix in feasible)

    optimal = assign_cores(**problem, method="optimal")
    assert optimal.threshold == threshold
    assert optimal.matrix in feasible
    assert abs(exact_cost(problem["current"], optimal.matrix, problem["state_bytes"]) - least) < Fraction(1, 1000)
    assert abs(optimal.migrated_bytes - least) < 1e-3
    assert abs(optimal.bound - least) < 1e-3

    greedy = assign_cores(**problem)
    assert greedy.threshold >= threshold
    assert allowed(greedy.matrix, problem, greedy.threshold)
    assert all(sum(row) <= cores for row, cores in zip(greedy.matrix, problem["node_cores"], strict=True))
    assert abs(greedy.migrated_bytes - exact_cost(problem["current"], greedy.matrix, problem["state_bytes"])) < 1e-9
    if greedy.threshold == threshold:
        assert greedy.migrated_bytes >= least - Fraction(1, 10**9)
