import math

import pytest
from refusals import refusals

from workbench.dataflow import Dataflow, Edge, Operator
from workbench.scaling import ds2

CHAIN = Dataflow(
    "chain",
    (
        Operator("source", "source"),
        Operator("filter", "map"),
        Operator("count", "aggregate", stateful=True),
        Operator("sink", "s"),
    ),
    (Edge("source", "filter"), Edge("filter", "count"), Edge("count", "sink")),
)
FED = Dataflow("f", (Operator("s", "source"), Operator("o", "map")), (Edge("s", "o"),))
COUNTERS = {"filter": [(1200, 300, 3 / 5), (1000, 250, 1 / 2)], "count": [(240, 24, 4 / 5)], "sink": [(24, 0, 1 / 100)]}


def test_example():
    decision = ds2(CHAIN, COUNTERS, {"source": 9000})
    assert {name: rates[0] for name, rates in decision.true_rates.items()} == pytest.approx(
        {"filter": 4000, "count": 300, "sink": 2400}
    )
    assert decision.parallelism == {"filter": 5, "count": 8, "sink": 1}
    assert decision.optimal_output == pytest.approx({"source": 9000, "filter": 2250, "count": 225, "sink": 0})
    assert decision.uninformed == ()


def test_exact_multiples_do_not_round_up():
    for tasks in range(1, 200):  # 0.1 s per record: tasks x 10 records/s
        assert ds2(FED, {"o": [(3, 3, 3 * 0.1)]}, {"s": tasks * 10.0}).parallelism == {"o": tasks}
    assert ds2(FED, {"o": [(3, 3, 3 * 0.1)]}, {"s": 0.0}).parallelism == {"o": 1}


def test_idle_instances_count_as_the_others_and_an_operator_without_information_keeps_its_tasks():
    idle = COUNTERS | {"filter": [(1200, 300, 3 / 5), (0, 0, 0.0), (0, 0, 0.1)]}
    decision = ds2(CHAIN, idle, {"source": 9000})
    assert decision.parallelism["filter"] == 5
    assert decision.true_rates["filter"] == pytest.approx((2000, 500))
    silent = COUNTERS | {"filter": [(0, 0, 0.0)] * 3}
    decision = ds2(CHAIN, silent, {"source": 90})
    assert (decision.parallelism["filter"], decision.uninformed) == (3, ("filter",))
    assert decision.optimal_output["filter"] == 90  # selectivity 1 while unknown
    known = ds2(CHAIN, COUNTERS, {"source": 90}).selectivity
    assert ds2(CHAIN, silent, {"source": 90}, last_selectivity=known).optimal_output["filter"] == 22.5


SOURCE = {"source": 1}
UNFED = Dataflow("f", (*FED.operators, Operator("p", "map")), FED.edges)


test_bad_input_is_named = refusals(
    ds2,
    (CHAIN, COUNTERS, {}, "source_rates lacks 'source' of dataflow 'chain'; give one entry for every source"),
    (CHAIN, COUNTERS, SOURCE | {"filter": 2}, "source_rates names 'filter', no source of .* 'chain'; there is so"),
    (CHAIN, {"filter": [(1, 1, 1)]}, SOURCE, "counters lacks 'count', 'sink' of dataflow 'chain'; .* not a source"),
    (CHAIN, COUNTERS | {"sink": []}, SOURCE, "Operator 'sink' has no counters; give those of each"),
    (CHAIN, COUNTERS | {"sink": [(1, 0, 1), (1, 0, -1.0)]}, SOURCE, r"instance 1 of .* 'sink' are \(1, 0, -1\.0\)"),
    (CHAIN, COUNTERS, {"source": math.nan}, "rate of source 'source' is nan; it must be a finite number of at"),
    (UNFED, {"o": [(1, 1, 1)], "p": [(1, 1, 1)]}, {"s": 1}, "Operator 'p' has no upstream .* add the edge that"),
)
