"""Cores against brute force: the greedy allocation over all allocations, the assignment over all assignments."""

from fractions import Fraction
from itertools import product

from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from workbench.scaling import allocate_cores, assign_cores

RATES = st.integers(1, 12)


def exact_latency(arrivals, service, source, cores):
    """Equation 1 in rationals, Erlang C from its textbook sum; None when unstable."""
    total = Fraction(0)
    for arrival, rate, k in zip(arrivals, service, cores, strict=True):
        load = Fraction(arrival, rate)
        if load >= k:
            return None
        term = below = Fraction(1)
        for i in range(1, k):
            term = term * load / i
            below += term
        last = term * load / (k - load)
        total += arrival * (last / (below + last) / (k * rate - arrival) + Fraction(1, rate))
    return total / source


@examples(60)
@given(
    stations=st.lists(st.tuples(RATES, RATES), min_size=1, max_size=3),
    tightness=st.fractions(Fraction(1, 50), 3, max_denominator=50),
    spare=st.integers(0, 5),
)
def test_greedy_is_brute_force(stations, tightness, spare):
    arrivals, service = zip(*stations, strict=True)
    source = arrivals[0]
    start = [a // s + 1 for a, s in stations]
    supply = sum(start) + spare
    target = sum(Fraction(a, s) for a, s in stations) / source * (1 + tightness)
    answer = allocate_cores(arrivals, service, source, float(target), supply)

    possible = [range(k, k + spare + 1) for k in start]
    latencies = {
        cores: exact_latency(arrivals, service, source, cores) for cores in product(*possible) if sum(cores) <= supply
    }
    margin = target * Fraction(1, 10**8)
    if any(abs(latency - target) <= margin for latency in latencies.values()):
        return  # on the edge of the slack either answer is right
    met = [cores for cores, latency in latencies.items() if latency < target]
    assert answer.status == ("ok" if met else "exhausted")
    if met:
        assert sum(answer.cores) == min(map(sum, met))
    else:
        assert sum(answer.cores) == supply
    least = min(latency for cores, latency in latencies.items() if sum(cores) == sum(answer.cores))
    assert abs(answer.latency - float(least)) <= 1e-9 * float(least)
    assert abs(answer.latency - float(latencies[answer.cores])) <= 1e-9 * answer.latency


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
