"""ODRP against brute force over all plans, its settings, and its limits."""

import math
from dataclasses import astuple
from itertools import product

import numpy as np
import pytest
from placement_oracle import flow_of
from refusals import refusals

from workbench.dataflow import Dataflow, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.placement import ODRP_SETTINGS, OdrpWeights, odrp

CHAIN = flow_of("chain", {"source": "source", "map": "map", "sink": "sink"}, [("source", "map"), ("map", "sink")])
DIAMOND = flow_of(
    "diamond",
    {"source": "source", "left": "map", "right": "map", "join": "join"},
    [("source", "left"), ("source", "right"), ("left", "join"), ("right", "join")],
)
PROFILES = {
    "source": OperatorProfile(1e-3, 0.0, 100.0, 1.0),
    "map": OperatorProfile(4e-3, 0.0, 40.0, 0.5),
    "sink": OperatorProfile(1e-3, 0.0, 0.0, 0.0),
    "left": OperatorProfile(3e-3, 0.0, 30.0, 1.0),
    "right": OperatorProfile(1e-3, 0.0, 60.0, 1.0),
    "join": OperatorProfile(2e-3, 0.0, 0.0, 0.0),
}
RATE = 400.0
DELAY, CAP, UP = 2e-3, 10.0, 0.99


def profiles(flow):
    return {operator.name: PROFILES[operator.name] for operator in flow.operators}


def arriving(flow):
    rates = {"source": RATE}
    for name in flow.topological_order()[1:]:
        rates[name] = sum(
            rates[e.upstream] * PROFILES[e.upstream].selectivity for e in flow.edges if e.downstream == name
        )
    return rates


def sent(flow, edge):
    """Bytes/s over an edge: what its upstream operator sends is in equal copies for its consumers."""
    consumers = sum(other.upstream == edge.upstream for other in flow.edges)
    return arriving(flow)[edge.upstream] * PROFILES[edge.upstream].output_bytes / consumers


def stay(service, rate, replicas):
    """Seconds at one of the replicas, each an M/M/1 queue as far as it is not overloaded."""
    room = 1 / service - rate / replicas
    limit = CAP * service * max(1, rate / replicas * service)
    return min(1 / room, limit) if room > 0 else limit


def worth(flow, counts):
    """Response, slots, traffic and -log availability of a plan, by an independent implementation."""
    rates = arriving(flow)

    def time(name):
        profile, replicas = PROFILES[name], sum(counts[name])
        return stay(profile.cpu_s, rates[name], replicas)

    def remote(edge):
        pairs = [(a, b) for a in places(counts[edge.upstream]) for b in places(counts[edge.downstream])]
        return sum(a != b for a, b in pairs) / len(pairs)

    def finish(name):
        into = [edge for edge in flow.edges if edge.downstream == name]
        return time(name) + max((finish(edge.upstream) + DELAY * remote(edge) for edge in into), default=0)

    return (
        max(finish(operator.name) for operator in flow.operators),
        sum(map(sum, counts.values())),
        sum(sent(flow, edge) * remote(edge) for edge in flow.edges),
        -math.log(UP) * sum(sum(n > 0 for n in row) for row in counts.values()),
    )


def places(row):
    return [worker for worker, count in enumerate(row) for _ in range(count)]


def all_counts(flow, workers, slots, most):
    names = [operator.name for operator in flow.operators]
    rows = [row for row in product(range(most + 1), repeat=workers) if 1 <= sum(row) <= most]
    for chosen in product(rows, repeat=len(names)):
        if all(sum(column) <= slots for column in zip(*chosen, strict=True)):
            yield dict(zip(names, chosen, strict=True))


@pytest.mark.parametrize("flow", [CHAIN, DIAMOND], ids=lambda flow: flow.name)
@pytest.mark.parametrize(
    "weights",
    [*ODRP_SETTINGS, OdrpWeights(0.3, 0.1, 0.4, 0.2), OdrpWeights(0, 0, 1, 0), OdrpWeights(1, 0.3, 0, 1)],
    ids=str,
)
def test_no_plan_scores_higher(flow, weights):
    workers, slots, most = 2, 4, 2
    assumed = {"link_delay_s": DELAY, "congestion": CAP, "availability": UP}
    found = odrp(flow, profiles(flow), RATE, workers, slots, weights=weights, most=most, **assumed)
    values = np.array([worth(flow, counts) for counts in all_counts(flow, workers, slots, most)])
    chosen = ODRP_SETTINGS[weights] if isinstance(weights, str) else weights
    aims = np.array(astuple(chosen))
    low, high = ranges(flow, workers, slots, most)
    scores = aims.sum() - (aims * (values - low) / (high - low)).sum(axis=1)
    assert found.score == pytest.approx(scores.max(), abs=1e-6)
    assert found.gap == pytest.approx(0, abs=1e-6)
    counts = {name: tuple(row) for name, row in zip(found.problem.operators, found.counts.tolist(), strict=True)}
    told = (found.response_s, found.slots, found.traffic, -math.log(found.availability))
    assert told == pytest.approx(worth(flow, counts), abs=1e-9)


@pytest.mark.parametrize("flow", [CHAIN, DIAMOND], ids=lambda flow: flow.name)
def test_traffic_is_what_the_workers_send_in_all(flow):
    """A worker for each task, so that everything is remote."""
    found = odrp(flow, profiles(flow), RATE, len(flow.operators), 1)
    assert found.traffic == pytest.approx(found.problem.worker_loads(found.counts)[2].sum())


def ranges(flow, workers, slots, most):
    """Best and worst of each objective: every operator at its fastest or slowest, all pairs local or remote."""
    rates, names = arriving(flow), [operator.name for operator in flow.operators]

    def longest(replicas, delay):
        def finish(name):
            own = stay(PROFILES[name].cpu_s, rates[name], replicas)
            return own + max((finish(e.upstream) + delay for e in flow.edges if e.downstream == name), default=0)

        return max(map(finish, names))

    bytes_per_s = sum(sent(flow, edge) for edge in flow.edges)
    down = -math.log(UP) * len(names)
    low = [longest(most, 0), len(names), 0, down]
    high = [longest(1, DELAY), min(most * len(names), workers * slots), bytes_per_s, down * min(workers, most)]
    return np.array(low), np.array(high)


def test_the_settings_are_those_of_the_paper():
    # Table 3: latency takes all the slots it may, equal weights take fewer.
    plans = {name: odrp(CHAIN, profiles(CHAIN), 2 * RATE, 2, 6, weights=name, most=4) for name in ODRP_SETTINGS}
    assert plans["latency"].slots == 12
    assert plans["latency"].response_s <= min(plans["default"].response_s, plans["weighted"].response_s)
    assert plans["default"].slots < plans["latency"].slots
    # nothing demands that the rate be sustained
    cheapest = odrp(CHAIN, profiles(CHAIN), RATE, 2, 4, weights=OdrpWeights(0, 1, 0, 0))
    assert cheapest.slots == 3
    assert cheapest.problem.cpu[1] == pytest.approx(1.6)  # the map's one task would need that many cores


def test_a_fixed_number_stays_fixed_and_a_source_without_profile_runs_elsewhere():
    found = odrp(CHAIN, profiles(CHAIN), RATE, 2, 4, weights="latency", most={"map": 3}, fixed={"source": 2})
    assert dict(zip(found.problem.operators, found.problem.parallelism, strict=True))["source"] == 2
    assert found.problem.cost(found.counts).worst <= 1
    found = odrp(CHAIN, {name: PROFILES[name] for name in ("map", "sink")}, RATE, 2, 2)
    assert found.problem.operators == ("map", "sink")


def test_when_time_is_up_the_plan_comes_with_its_gap():
    found = odrp(DIAMOND, profiles(DIAMOND), 1_500.0, 4, 8, weights="latency", timeout_s=0.3)
    assert found.problem.checked(found.counts).sum() == found.slots
    assert 0 < found.gap == pytest.approx(found.bound - found.score)
    assert found.bound <= 1


test_bad_input_is_named = refusals(
    lambda more: odrp(CHAIN, profiles(CHAIN), RATE, 2, 4, **more),
    ({"weights": "speed"}, r"weights are 'speed'; use one of default, weighted, latency, or OdrpWeights"),
    ({"most": 0}, r"replicas of 'source' is 0; it must be a whole number of at least 1"),
    ({"fixed": {"sinc": 2}}, r"unknown operator 'sinc'; there are source, map, sink"),
    ({"fixed": {"map": 9}}, r"need 11 slots at least, but 2 workers of 4 slots cannot hold more than 8; add"),
    ({"congestion": 0.5}, r"congestion is 0\.5; it must be a finite number of at least 1"),
    ({"link_delay_s": math.nan}, r"link_delay_s is nan; it must be a finite number of at least 0 \(seconds\)"),
    ({"availability": 0}, r"availability is 0; it must be above 0 and at most 1 \(a probability\)"),
    ({"timeout_s": 0}, r"timeout_s is 0; it must be a finite number above 0 \(seconds"),
    ({"speeds": [1]}, "1 speed for 2 workers; give one for each"),
)


def test_edges_between_the_same_operators_are_one_and_what_is_too_large_or_lacks_profiles_is_refused():
    often = Dataflow("chain", CHAIN.operators, (*CHAIN.edges, *[CHAIN.edges[1]] * 20_000))
    found = odrp(often, profiles(CHAIN), RATE, 2, 4, fixed={"source": 1, "map": 2, "sink": 1})
    assert found.problem.parallelism == (1, 2, 1)
    large = r"would have up to 1,[0-9,]+ variables; at most 100,000 are solved. Use fewer"
    with pytest.raises(WorkbenchError, match=large):
        odrp(CHAIN, profiles(CHAIN), RATE, 5_000, 8)
    with pytest.raises(WorkbenchError, match=r"'map' of dataflow 'chain' has no profile; those given are source"):
        odrp(CHAIN, {"source": PROFILES["source"]}, RATE, 2, 4)
    with pytest.raises(WorkbenchError, match=r"not all 0"):
        OdrpWeights(0, 0, 0, 0)
