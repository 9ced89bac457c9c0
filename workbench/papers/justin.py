"""Justin, section 5, by simulation: DS2 and Justin on q1, q3, q5, q11 and q8.

The autoscaler is the paper's, with the settings of the operator that its authors released: it plans for operators that
are half busy, and tasks of a stateful operator divide its 24 key groups, which are also the most that it can have. The
sources generate records: they are not counted, back-pressure slows them down, and at the target rate they are so busy
(0.81, our assumption) that they trigger a last decision, which is how DS2 gets from 8 to 12 tasks.

Costs are not published, so these are fitted: at the target rate, with all state in memory, the main operator is as busy
in the configuration reported for Justin as the autoscaler plans (q5: busier, so that all 24 tasks are needed). State is
read by Zipf's law (exponent 0.78), a missed record takes 27 times as long, and the working sets of q11 and q8 are those
for which DS2 needs its reported 12 and 24 tasks. What Justin ends with, the steps and the savings follow from them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.papers.figure import Headline, Panel, Paper, Reader, Reproduction, read_figures, reader
from workbench.scaling import JUSTIN, AnyPolicy, Decision, Ds2Policy, JustinPolicy, JustinVariant, Timeline, replay
from workbench.simulation import OperatorModel, QueryModel, RateTrace, StateModel

NAME = "justin"
_BASE_MB = 158.0
_BESIDE_MB = 173.0
"""Heap and network memory of a task without its managed memory, as released: 134 and 39 MB. DS2's published 2,317 MB
for q1 are 7 tasks of 173 and 158 MB."""
_SECONDS, _STEP_S, _EVERY = 1800, 5.0, 4
_RATE = 1e5
_SETTINGS = replace(JUSTIN, key_groups=24)
_PLANNED = 1 / (1 / JUSTIN.utilization_target + JUSTIN.restart_s / JUSTIN.catch_up_s)
_SOURCE, _BUSY_SOURCE = "injector", 0.81


class _Published(NamedTuple):
    """What section 5.1 reports: tasks and managed MB of the main operator, reconfigurations, savings, memory of all."""

    ds2: tuple[int, float]
    justin: tuple[int, float]
    steps: tuple[int | None, int | None]
    memory_saved: float | None  # %
    cpu_saved: float | None  # %
    memory_mb: tuple[float | None, float | None] = (None, None)  # of all tasks under DS2 and Justin


PUBLISHED: Mapping[str, _Published] = {
    "q1": _Published((7, 158), (7, 0), (2, 2), 40, None, (2317, 1379)),
    "q3": _Published((12, 158), (12, 158), (3, 3), 10, None),
    "q5": _Published((24, 158), (24, 158), (None, None), None, None),
    "q11": _Published((12, 158), (6, 316), (3, 3), 28, 48),
    "q8": _Published((24, 158), (12, 316), (4, 4), 27, 48),
}
"""By query. On q8 Justin scales up once and out three times."""


def _query(name: str, tasks: int, working_set_mb: float | None, before: tuple[str, ...] = ()) -> QueryModel:
    """Build sources, stateless operators, a main operator that needs `tasks` with its state in memory, and a sink."""
    cpu_s = _PLANNED * (tasks - 0.1) / _RATE
    names = ("source", _SOURCE, *before, "main", "sink")
    stateful = working_set_mb is not None
    state = None if working_set_mb is None else StateModel(working_set_mb, miss_s=26 * cpu_s, locality=0.78)
    operators = [Operator(one, "source" if one == "source" else "map", one == "main" and stateful) for one in names]
    flow = Dataflow(name, tuple(operators), tuple(Edge(*pair) for pair in pairwise(names)))
    models = {one: OperatorModel(OperatorProfile(1e-6, 0, 100, 1.0)) for one in before}
    models[_SOURCE] = OperatorModel(OperatorProfile(_BUSY_SOURCE / _RATE, 0, 100, 1.0))
    models["main"] = OperatorModel(OperatorProfile(cpu_s, 0, 100, 0.1), state=state)
    models["sink"] = OperatorModel(OperatorProfile(1e-6, 0, 0, 0))
    return QueryModel(flow, models)


_QUERIES: Mapping[str, QueryModel] = {
    "q11": _query("q11", 6, 860.0),
    "q8": _query("q8", 12, 2016.0),
    "q1": _query("q1", 7, None),
    "q3": _query("q3", 12, 8.0, ("filter persons", "filter auctions")),
    "q5": _query("q5", 36, 10.0),
}
_POLICIES: Mapping[str, AnyPolicy] = {
    "DS2": Ds2Policy(_SETTINGS),
    "Justin as released": JustinPolicy(_SETTINGS, JustinVariant(once=True)),
    "Justin as printed": JustinPolicy(_SETTINGS),
}
_COMPARED = ("DS2", "Justin as released")


@lru_cache(maxsize=len(_QUERIES) * len(_POLICIES))
def run(query: str, policy: str) -> Timeline:
    """Replay a constant rate on a query under a policy, from one task per operator."""
    model = _QUERIES[query]
    start = Decision(dict.fromkeys(model.modelled, 1), dict.fromkeys(model.modelled, _BASE_MB))
    trace = RateTrace.constant(_RATE, _SECONDS)
    return replay(trace, model, _POLICIES[policy], start, memory_mb=_BESIDE_MB, step_s=_STEP_S, generated=True)


class _Deployed(NamedTuple):
    """From when on, s; tasks, sources excluded; their memory, MB; tasks and managed MB of the main operator."""

    since_s: float
    tasks: int
    memory_mb: float
    main: tuple[int, float]


def _deployed(query: str, policy: str) -> list[_Deployed]:
    first = dict.fromkeys(_QUERIES[query].modelled, 1)
    managed_mb: Mapping[str, float | None] = dict.fromkeys(first, _BASE_MB)
    steps: list[tuple[float, Mapping[str, int], Mapping[str, float | None]]] = [(0.0, first, managed_mb)]
    steps += [(one.at_s, one.tasks, one.managed_mb or {}) for one in run(query, policy).reconfigurations]
    found = []
    for since_s, tasks, managed in steps:
        counted = {name: count for name, count in tasks.items() if name != _SOURCE}
        memory_mb = sum(count * (_BESIDE_MB + (managed.get(name) or 0.0)) for name, count in counted.items())
        found.append(_Deployed(since_s, sum(counted.values()), memory_mb, (tasks["main"], managed.get("main") or 0.0)))
    return found


def final(query: str, policy: str) -> tuple[int, float]:
    """Tasks and managed MB of the main operator at the end."""
    return _deployed(query, policy)[-1].main


def _saved(query: str) -> tuple[float, float]:
    """Memory and tasks that Justin as released saves of DS2's at the end, %."""
    ds2, other = (_deployed(query, name)[-1] for name in _COMPARED)
    return 100 * (1 - other.memory_mb / ds2.memory_mb), 100 * (1 - other.tasks / ds2.tasks)


def _figure_5(query: str) -> Reproduction:
    published = PUBLISHED[query]
    rate = Panel("Capacity reached", "Time (min)", "Throughput (% of the target rate)")
    tasks = Panel("Cores", "Time (min)", "Tasks, the sink included, sources not")
    memory = Panel("Memory", "Time (min)", "Memory of these tasks (MB)")
    end = _SECONDS / 60
    series = []
    for policy in _POLICIES:
        line, steps = run(query, policy), _deployed(query, policy)
        places = range(_EVERY - 1, len(line.consumed), _EVERY)
        ends_s = [(place + 1) * _STEP_S for place in places]
        minutes = [end_s / 60 for end_s in ends_s]
        # those of the step that has just ended
        held = [next(one for one in reversed(steps) if one.since_s < end_s) for end_s in ends_s]
        consumed = (100 * float(line.consumed[place - _EVERY + 1 : place + 1].mean()) / _RATE for place in places)
        series += [
            rate.series(policy, minutes, consumed),
            tasks.series(policy, minutes, (one.tasks for one in held)),
            memory.series(policy, minutes, (one.memory_mb for one in held)),
        ]
    extra = len(_QUERIES[query].modelled) - 2  # operators of one task; not the source
    for name, (count, _), total in (
        ("paper, DS2 at the end", published.ds2, published.memory_mb[0]),
        ("paper, Justin at the end", published.justin, published.memory_mb[1]),
    ):
        series.append(tasks.series(name, (end,), (count + extra,), published=True))
        if total is not None:
            series.append(memory.series(name, (end,), (total,), published=True))
    return Reproduction((rate, tasks, memory), tuple(series))


def _results(_: str) -> Reproduction:
    queries = tuple(PUBLISHED)
    steps = Panel("Reconfigurations", "Query and policy", "Reconfigurations", "bars")
    memory = Panel("Memory", "Query", "Memory that Justin saves (%)", "bars")
    cores = Panel("CPU", "Query", "Tasks that Justin saves (%)", "bars")
    cells = tuple(f"{query} {policy.split()[0]}" for query in queries for policy in _COMPARED)
    counts = (len(run(query, policy).reconfigurations) for query in queries for policy in _COMPARED)
    said_steps = (count for query in queries for count in PUBLISHED[query].steps)
    series = [steps.series("paper", cells, said_steps, published=True), steps.series("ours", cells, counts)]
    said = zip(*((one.memory_saved, one.cpu_saved) for one in PUBLISHED.values()), strict=True)
    for panel, paper, ours in zip((memory, cores), said, zip(*map(_saved, queries), strict=True), strict=True):
        series += [panel.series("paper", queries, paper, published=True), panel.series("ours", queries, ours)]
    return Reproduction((steps, memory, cores), tuple(series))


_FITTED = "costs and working sets give the published tasks"


def _ends(query: str) -> Iterator[Headline]:
    """Tasks and managed memory of the main operator at the end, by policy."""
    for policy, (tasks, managed_mb) in zip(_COMPARED, PUBLISHED[query][:2], strict=True):
        what = f"Tasks of {query}'s main operator under {policy}"
        yield Headline(what, "", float(tasks), _end(query, policy, 0), query, fitted=_FITTED)
        if policy != "DS2":  # which leaves the memory as it is
            yield Headline("their managed memory", "MB", managed_mb, _end(query, policy, 1), query)


def _end(query: str, policy: str, place: int) -> Reader:
    return lambda _: float(final(query, policy)[place])


def _savings() -> Iterator[Headline]:
    """Memory of all, and tasks, which are fitted."""
    for query, of in PUBLISHED.items():
        for panel, saved, fitted in (("Memory", of.memory_saved, ""), ("CPU", of.cpu_saved, _FITTED)):
            if saved is not None:
                what = f"{panel} that Justin saves on {query}"
                yield Headline(what, "%", saved, reader(["ours", query, panel]), fitted=fitted)


PAPER = Paper(
    NAME,
    "Justin: Hybrid CPU/Memory Elastic Scaling for Distributed Stream Processing",
    read_figures(
        NAME,
        {"Figure 5": _figure_5, "Section 5.1": _results},
        derived={"Figure 5": chain.from_iterable(map(_ends, _QUERIES)), "Section 5.1": _savings()},
    ),
)
