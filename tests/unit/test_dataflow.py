from itertools import pairwise
from operator import call

from placement_oracle import Counted
from refusals import refusals

from workbench.dataflow import Budget, Dataflow, Edge, Operator, OperatorProfile, SlotProfile
from workbench.scaling import ds2
from workbench.views.figures import observed_graph

JOIN = (Edge("a", "c"), Edge("b", "c"))
SOURCE, MAP, SINK = Operator("source", "source"), Operator("map", "map"), Operator("sink", "sink")


def test_operators_follow_the_edges_whatever_their_order_and_a_budget_adds_up_its_slots():
    flow = Dataflow("q", (SINK, MAP, SOURCE), (Edge("map", "sink"), Edge("source", "map")))
    assert flow.topological_order() == ("source", "map", "sink")
    assert flow.sources == ("source",)
    joined = Dataflow("join", (Operator("a", "source"), Operator("b", "source"), Operator("c", "join")), JOIN)
    assert joined.feeding == {"c": JOIN}
    budget = Budget(4, SlotProfile(0.25, 512))
    assert (budget.cpus, budget.memory_mb, budget.interval_s) == (1.0, 2048, 2.0)


test_what_cannot_be_is_refused_with_what_is_allowed = refusals(
    call,
    (lambda: SlotProfile(0, 512), r"cpus is 0; it must be at least 0\.001 and at most 1024 \(cores\)"),
    (lambda: SlotProfile(1e-30, 512), r"cpus is 1e-30; it must be at least 0\.001 and at most 1024 \(cores\)"),
    (lambda: SlotProfile(1, 10**18), r"memory_mb is 1[0,]+; it must be above 0 and at most 1\.67772e\+07 \(MB\)"),
    (lambda: SlotProfile(1, -1), "memory_mb is -1"),
    (lambda: Budget(0, SlotProfile(1, 512)), "slots is 0; it must be a whole number of at least 1"),
    (lambda: Budget(1, SlotProfile(1, 512), float("nan")), "interval is nan"),
    (lambda: OperatorProfile(-1.0, 0, 0, 1), "cpu_s of an operator profile is -1.0"),
    (lambda: Operator("", "map"), "name is empty"),
    (lambda: Edge("a", "b", "hash"), "'hash'; use one of shuffle, forward"),
    (lambda: Dataflow("q", (MAP, MAP), ()), "two operators named 'map'; rename one"),
    (lambda: Dataflow("q", (MAP, SINK), (Edge("mpa", "sink"),)), "unknown operator 'mpa'; the operators are map, "),
    (
        lambda: Dataflow("q", (MAP, SINK), (Edge("map", "sink"), Edge("sink", "map"))),
        r"has the cycle (map -> sink -> map|sink -> map -> sink); a dataflow must be acyclic",
    ),
)


def test_what_feeds_an_operator_is_found_without_searching_all_edges():
    names = [f"o{number}" for number in range(200)]
    edges = Counted(Edge(one, other) for one, other in pairwise(names))
    flow = Dataflow("chain", (Operator("o0", "source"), *(Operator(name, "map") for name in names[1:])), edges)
    counters = {name: [(100.0, 100.0, 0.5)] for name in names[1:]}
    found = ds2(flow, counters, {"o0": 1e3})
    assert found.optimal_output["o199"] == 1e3
    observed_graph(flow)
    assert edges.walks < 20  # and not once for every operator
