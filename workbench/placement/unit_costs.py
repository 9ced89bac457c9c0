"""The unit costs of a query's operators, as measured, and the rates at which records reach them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from workbench.checks import not_negative
from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.metrics import SOURCE, OperatorMetrics
from workbench.records import CapacityPlan
from workbench.simulation import PRESETS, preset, short_name

BATCH = "micro-batch"
"""Name of the single operator as which all stages of a micro-batch are placed and scaled."""


@dataclass(frozen=True)
class MeasuredQuery:
    """A query as measured: its dataflow, and unit costs by operator; `guessed` says that its edges were not given."""

    dataflow: Dataflow
    profiles: Mapping[str, OperatorProfile]
    guessed: bool = False


def batch_query(plan: CapacityPlan, seen: Sequence[OperatorMetrics], slot_cpus: float) -> MeasuredQuery:
    """Derive the unit costs of a whole micro-batch, so that the plan's slots carry just the plan's capacity.

    The stages of a micro-batch take all slots in turn, so a slot is what is placed and scaled: one operator, with as
    many tasks as slots. A record costs it all slots over the capacity, which counts the fixed part of a batch, waiting
    and uneven keys in, as no sum of the operators' CPU seconds does.
    """
    records = next((one.records_in for one in seen if one.scans), 0) or max((one.records_in for one in seen), default=0)
    state, shuffled = (
        sum(getattr(one, name) or 0 for one in seen) / max(1, records) for name in ("state_bytes", "shuffle_bytes")
    )
    profile = OperatorProfile(plan.budget.slots * slot_cpus / plan.expected_rate, state, shuffled, 1.0)
    operators = (Operator(SOURCE, SOURCE), Operator(BATCH, BATCH, plan.stateful))
    flow = Dataflow(plan.query, operators, (Edge(SOURCE, BATCH),))
    return MeasuredQuery(flow, {BATCH: profile})


def measured_query(
    name: str, operators: Iterable[OperatorMetrics], edges: Iterable[tuple[str, str]] | None = None
) -> MeasuredQuery:
    """Derive unit costs from what was observed (CAPSys, section 5.1: metric / records, here input records).

    Without edges, they are those of the simulated query of this name if it has these operators, else a chain in the
    order observed. Operators that nothing feeds are fed by a source that runs elsewhere.
    """
    seen = list(operators)
    profiles = {one.operator: _profile(one) for one in seen}
    if edges is None and (simulated := short_name(name)) in PRESETS:
        known = preset(simulated).dataflow
        if {one.name for one in known.operators} - set(known.sources) == set(profiles):
            return MeasuredQuery(known, profiles)
    pairs = list(pairwise(profiles) if edges is None else edges)
    nodes = [Operator(one.operator, one.kind, one.keeps_state) for one in seen]
    if not any(one.is_source for one in seen):
        fed = {downstream for _, downstream in pairs}
        nodes.insert(0, Operator(SOURCE, SOURCE))
        pairs = [*((SOURCE, one) for one in profiles if one not in fed), *pairs]
    flow = Dataflow(name, tuple(nodes), tuple(Edge(*pair) for pair in pairs))
    return MeasuredQuery(flow, profiles, guessed=edges is None)


def _profile(seen: OperatorMetrics) -> OperatorProfile:
    records = seen.records_in
    if not records:
        return OperatorProfile(0.0, 0.0, 0.0, 0.0)
    return OperatorProfile(
        seen.cpu_s / records, (seen.state_bytes or 0) / records, seen.shuffle_bytes / records, seen.selectivity or 0.0
    )


def arriving_rates(
    dataflow: Dataflow, profiles: Mapping[str, OperatorProfile], rate: float | Mapping[str, float]
) -> dict[str, float]:
    """Input rate of every operator; a consumer gets the full output of every operator that feeds it.

    The `rate` is that of every source by name; one number is enough for a single source.
    """
    sources = dataflow.sources
    if not isinstance(rate, Mapping):
        if len(sources) != 1:
            raise WorkbenchError(
                f"Dataflow {dataflow.name!r} has {len(sources)} sources ({', '.join(sources)}), but the rate is one "
                "number; give the rate of every source by name."
            )
        rate = {sources[0]: rate}
    if set(rate) != set(sources):
        raise WorkbenchError(f"Rates are given for {', '.join(rate)}; the sources are {', '.join(sources)}.")
    for name, value in rate.items():
        not_negative(f"The rate of source {name!r}", value, "records/s")
    arriving = {operator.name: rate.get(operator.name, 0.0) for operator in dataflow.operators}
    for name in dataflow.topological_order():
        for edge in dataflow.feeding.get(name, ()):
            selectivity = profiles[edge.upstream].selectivity if edge.upstream in profiles else 1.0
            arriving[name] += arriving[edge.upstream] * selectivity
    return arriving


def require_each(thing: str, given: Mapping[str, object], names: Sequence[str], dataflow: Dataflow) -> None:
    """Refuse a table that lacks one of the operators."""
    for name in names:
        if name not in given:
            raise WorkbenchError(
                f"Operator {name!r} of dataflow {dataflow.name!r} has no {thing}; "
                f"those given are {', '.join(given) or 'none'}."
            )
