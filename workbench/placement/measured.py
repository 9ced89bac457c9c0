"""A measurement as something to place: a query's dataflow with the unit costs of its operators."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
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
    names = [one.operator for one in seen]
    simulated = short_name(name)
    known = preset(simulated).dataflow if simulated in PRESETS else None
    if edges is None and known is not None and {o.name for o in known.operators} - set(known.sources) == set(names):
        flow, guessed = known, False
    else:
        guessed = edges is None
        pairs = list(pairwise(names) if edges is None else edges)
        fed = {downstream for _, downstream in pairs}
        nodes = [Operator(one.operator, one.kind, one.keeps_state) for one in seen]
        if not any(one.is_source for one in seen):
            nodes.insert(0, Operator(SOURCE, SOURCE))
            pairs = [*((SOURCE, one) for one in names if one not in fed), *pairs]
        flow = Dataflow(name, tuple(nodes), tuple(Edge(*pair) for pair in pairs))
    return MeasuredQuery(flow, {one.operator: _profile(one) for one in seen}, guessed)


def _profile(seen: OperatorMetrics) -> OperatorProfile:
    records = seen.records_in
    if not records:
        return OperatorProfile(0.0, 0.0, 0.0, 0.0)
    return OperatorProfile(
        seen.cpu_s / records, (seen.state_bytes or 0) / records, seen.shuffle_bytes / records, seen.selectivity or 0.0
    )
