import math
from fractions import Fraction

import pytest

from workbench.dataflow import Dataflow, Edge, Operator
from workbench.errors import WorkbenchError
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
COUNTERS = {"filter": [(1200, 300, 3 / 5), (1000, 250, 1 / 2)], "count": [(240, 24, 4 / 5)], "sink": [(24, 0, 1 / 100)]}


def test_example():
    decision = ds2(CHAIN, COUNTERS, {"source": 9000})
    assert {name: rates[0] for name, rates in decision.true_rates.items()} == pytest.approx(
        {"filter": 4000, "count": 300, "sink": 2400}
    )
    assert decision.parallelism == {"filter": 5, "count": 8, "sink": 1}
    assert decision.optimal_output == pytest.approx({"source": 9000, "filter": 2250, "count": 225, "sink": 0})
    assert decision.uninformed == ()


def test_rationals_stay_exact():
    exact = {name: [(*one[:2], Fraction(str(one[2]))) for one in rows] for name, rows in COUNTERS.items()}
    decision = ds2(CHAIN, exact, {"source": 9000})
    assert decision.true_rates["filter"] == (4000, 1000)
    assert decision.optimal_output == {"source": 9000, "filter": 2250, "count": 225, "sink": 0}


def test_exact_multiples_do_not_round_up():
    flow = Dataflow("f", (Operator("s", "source"), Operator("o", "map")), (Edge("s", "o"),))
    for tasks in range(1, 200):  # 0.1 s per record: tasks x 10 records/s
        assert ds2(flow, {"o": [(3, 3, 3 * 0.1)]}, {"s": tasks * 10.0}).parallelism == {"o": tasks}
    assert ds2(flow, {"o": [(3, 3, 3 * 0.1)]}, {"s": 0.0}).parallelism == {"o": 1}


def test_sources_feed_every_consumer_in_full_and_inputs_add_up():
    flow = Dataflow(
        "diamond",
        (
            Operator("a", "source"),
            Operator("b", "source"),
            Operator("left", "map"),
            Operator("right", "map"),
            Operator("join", "join", stateful=True),
        ),
        (Edge("a", "left"), Edge("a", "right"), Edge("b", "right"), Edge("left", "join"), Edge("right", "join")),
    )
    counters = {"left": [(10, 20, 1)], "right": [(10, 5, 1)], "join": [(10, 1, 1)]}
    decision = ds2(flow, counters, {"a": 100, "b": 40})
    assert decision.parallelism == {"left": 10, "right": 14, "join": 27}
    assert decision.optimal_output == {"a": 100, "b": 40, "left": 200, "right": 70, "join": 27}


def test_idle_instances_are_stood_for_by_the_others():
    idle = COUNTERS | {"filter": [(1200, 300, 3 / 5), (0, 0, 0.0), (0, 0, 0.1)]}
    decision = ds2(CHAIN, idle, {"source": 9000})
    assert decision.parallelism["filter"] == 5
    assert decision.true_rates["filter"] == pytest.approx((2000, 500))


def test_an_operator_without_information_keeps_its_tasks_and_is_flagged():
    silent = COUNTERS | {"filter": [(0, 0, 0.0)] * 3}
    decision = ds2(CHAIN, silent, {"source": 90})
    assert (decision.parallelism["filter"], decision.uninformed) == (3, ("filter",))
    assert decision.optimal_output["filter"] == 90  # selectivity 1 while unknown
    known = ds2(CHAIN, COUNTERS, {"source": 90}).selectivity
    assert ds2(CHAIN, silent, {"source": 90}, last_selectivity=known).optimal_output["filter"] == 22.5


@pytest.mark.parametrize(
    ("counters", "rates", "text"),
    [
        (COUNTERS, {}, "source_rates lacks 'source' of dataflow 'chain'; give one entry for every source."),
        (
            COUNTERS,
            {"source": 1, "filter": 2},
            "source_rates names 'filter', no source of dataflow 'chain'; there is source.",
        ),
        (
            {"filter": [(1, 1, 1)]},
            {"source": 1},
            (
                "counters lacks 'count', 'sink' of dataflow 'chain'; "
                "give one entry for every operator that is not a source."
            ),
        ),
        (
            COUNTERS | {"sink": []},
            {"source": 1},
            "Operator 'sink' has no counters; give those of each of its instances.",
        ),
        (
            COUNTERS | {"sink": [(1, 0, 1), (1, 0, -1.0)]},
            {"source": 1},
            (
                "The counters of instance 1 of operator 'sink' are (1, 0, -1.0); they must be "
                "(processed, pushed, useful seconds), finite and at least 0."
            ),
        ),
        (
            COUNTERS,
            {"source": math.nan},
            "The rate of source 'source' is nan; it must be a finite number of at least 0.",
        ),
    ],
)
def test_bad_input_is_named(counters, rates, text):
    with pytest.raises(WorkbenchError) as error:
        ds2(CHAIN, counters, rates)
    assert str(error.value) == text


def test_an_operator_nothing_feeds_is_named():
    flow = Dataflow("f", (Operator("s", "source"), Operator("o", "map"), Operator("p", "map")), (Edge("s", "o"),))
    with pytest.raises(WorkbenchError) as error:
        ds2(flow, {"o": [(1, 1, 1)], "p": [(1, 1, 1)]}, {"s": 1})
    assert str(error.value) == (
        "Operator 'p' has no upstream and is not of kind 'source', so its rate is unknown; "
        "add the edge that feeds it, or make it a source."
    )
