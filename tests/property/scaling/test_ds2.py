"""DS2 against a linear engine: never too few tasks, never one too many, and one step is enough."""

from fractions import Fraction

from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from workbench.dataflow import Dataflow, Edge, Operator
from workbench.scaling import ds2


@st.composite
def engines(draw):
    """A random acyclic dataflow whose tasks have fixed true rates and selectivities."""
    sources, scaled = draw(st.integers(1, 2)), draw(st.integers(1, 5))
    names = [f"s{i}" for i in range(sources)] + [f"o{i}" for i in range(scaled)]
    edges = []
    for index in range(sources, len(names)):
        upstream = draw(st.sets(st.integers(0, index - 1), min_size=1, max_size=2))
        edges += [Edge(names[u], names[index]) for u in sorted(upstream)]
    operators = tuple(Operator(name, "source" if name.startswith("s") else "map") for name in names)
    return (
        Dataflow("random", operators, tuple(edges)),
        {name: draw(st.integers(1, 500)) for name in names[:sources]},
        {name: draw(st.integers(1, 60)) for name in names[sources:]},  # true rate of one task
        {name: Fraction(draw(st.integers(0, 8)), draw(st.integers(1, 4))) for name in names[sources:]},
    )


def needs(flow, sources, selectivity):
    """Input of every operator while it keeps up."""
    output, need = dict(sources), {}
    for name in flow.topological_order():
        if name not in sources:
            need[name] = sum((output[edge.upstream] for edge in flow.edges if edge.downstream == name), Fraction(0))
            output[name] = need[name] * selectivity[name]
    return need


def run(flow, sources, rate, selectivity, tasks):
    """Counters of one second; back-pressure slows all sources alike to what the tightest operator can do."""
    need = needs(flow, sources, selectivity)
    pace = min([Fraction(1)] + [Fraction(tasks[o] * rate[o]) / need[o] for o in need if need[o]])
    counters = {}
    for name, wanted in need.items():
        share = wanted * pace / tasks[name]
        counters[name] = [(share, share * selectivity[name], share / rate[name])] * tasks[name]
    return pace, counters


@examples(80)
@given(engine=engines(), data=st.data())
def test_one_step_is_enough_and_no_task_is_too_many(engine, data):
    flow, sources, rate, selectivity = engine
    tasks = {name: data.draw(st.integers(1, 9), label=name) for name in rate}
    _, counters = run(flow, sources, rate, selectivity, tasks)
    as_floats = {name: [tuple(map(float, instance)) for instance in rows] for name, rows in counters.items()}
    decision = ds2(flow, as_floats, sources)
    need = needs(flow, sources, selectivity)
    for name, proposed in decision.parallelism.items():
        if name in decision.uninformed:
            assert not need[name]
            continue
        assert proposed * rate[name] >= need[name]
        assert proposed == 1 or (proposed - 1) * rate[name] < need[name]
        assert abs(decision.optimal_output[name] - need[name] * selectivity[name]) <= 1e-9 * max(1, need[name] * 8)

    pace, counters = run(flow, sources, rate, selectivity, decision.parallelism)
    assert pace == 1
    again = ds2(flow, counters, sources)
    assert again.parallelism == decision.parallelism
    exact = {name: need[name] * selectivity[name] for name in need if need[name]}  # rationals stay exact
    assert {name: again.optimal_output[name] for name in exact} == exact
