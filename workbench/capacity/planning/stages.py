"""The stages of a micro-batch as measured: their costs and partitions in a plan, and the slots that follow a day."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from workbench.arrays import Floats
from workbench.capacity.explore import Exploration
from workbench.capacity.model import MicroBatch, Model, StageLine, carries
from workbench.capacity.partitions import LARGEST, at_rate, bids2_micro_batch
from workbench.capacity.planning.judged import on_cores
from workbench.capacity.planning.workers import in_executors
from workbench.dataflow import Budget
from workbench.records import BatchLayout, CapacityPlan, Day, Measurement

_CANDIDATES = 10_000  # slot counts that are tried; of more, this many at even distances


def source_share(measurements: Iterable[Measurement]) -> float | None:
    """Median share of the busy time that the measuring source took; None if it does not run in the slots."""
    shares = []
    for one in measurements:
        seen = one.estimate.observation
        if one.tasks is None and seen is not None and seen.busy_s > 0:
            of_source = [operator.useful_s for operator in seen.operators if operator.is_source]
            shares += [sum(of_source) / seen.busy_s] if of_source else []
    return statistics.median(shares) if shares else None


def batch_of(runs: Sequence[Measurement], parts: MicroBatch | None) -> MicroBatch | None:
    """Return the `parts` of a batch, or without them straight lines for the stages of the run that shows their costs.

    A stage without a line costs its mean per record. The driver's seconds are those of a batch outside its stages
    (planning, commit, the source's own work) at the rate sustained: as many on more slots that carry as much each,
    because the source's tasks read as many records. None where no run shows any costs. A planned slot is a core of its
    own, whatever shares of a quota the measured ones were.
    """
    if parts is not None:
        return replace(parts, speedup=1.0)
    run = max(runs, key=lambda run: sum(cost.levels for cost in run.costs))  # the run with most loads
    seen, slots = run.estimate.observation, run.budget.slots
    lines = {
        cost.operator: (cost.fixed_s, cost.per_record_s)
        for cost in run.costs
        if cost.fixed_s is not None and cost.per_record_s is not None
    }
    if seen is None or run.tasks is not None or not lines:
        return None
    stages = []
    for one in seen.operators:
        if not one.is_source:
            line = lines.get(one.operator, (0.0, one.useful_s / max(1, one.records_in)))
            ratio, source = one.records_in / max(1, seen.consumed_records), one.scans and not one.keeps_state
            stages.append(StageLine(one.operator, *line, ratio, 1.0, stateful=one.keeps_state, source=source))
    jobs = {} if seen.writes is None else dict(zip(("jobs_s", "jobs_at_once"), seen.writes.own_jobs, strict=True))
    batch = MicroBatch(0.0, 0.0, tuple(stages), error=0.0, readings=1, **jobs)
    left = [one.duration_s - sum(batch.parts_s(one.records, slots, slots).values()) for one in seen.batches[1:]]
    return replace(batch, driver_s=max(0.0, statistics.fmean(left))) if left else batch


def in_turns(parts: MicroBatch | None, slots: Floats, frozen: Floats, interval_s: float) -> Floats:
    """Return the rates at `slots` when the state keeps `frozen` partitions: records/s by the parts, else in any unit.

    Slots that are fewer than the partitions take them in turns, and pay the fixed seconds of a task at each. The source
    is read in a partition for each slot. Where the parts are unknown, or leave no rate at the last of `slots`, only the
    turns count.
    """
    if parts is None or not carries(parts, slots[-1:], interval_s):
        return np.asarray(frozen / np.ceil(frozen / slots))
    return parts.rates(slots, frozen, interval_s, slots)


def lay_out(
    parts: MicroBatch | None, slots: int, interval_s: float, rate: float, frozen: int | None = None
) -> BatchLayout | None:
    """Lay out the stages at some slots; None if the parts of a batch are unknown."""
    if parts is None or not parts.stages:
        return None
    # The MILP, where it takes less than a second.
    found = bids2_micro_batch(parts, slots, interval_s, solver="cbc" if slots <= LARGEST else "exact", frozen=frozen)
    return at_rate(found, parts, slots, rate)


def least_slots(  # noqa: PLR0917
    model: Model,
    parts: MicroBatch | None,
    budget: Budget,
    rate: float,
    margin: float,
    least: int,
    risk: float | None,
    frozen: int | None,
) -> int:
    """Return the fewest slots, at most those of `budget`, that carry `rate` with `frozen` partitions of the state."""
    memory = budget.profile.memory_mb
    fewest = min(budget.slots, model.slots_for(rate, memory, margin, min_slots=least, risk=risk))
    if frozen is None or fewest == budget.slots:
        return fewest
    many = min(_CANDIDATES, budget.slots - fewest)
    slots = np.linspace(fewest, max(fewest, budget.slots - 1), many).round()
    counts = slots.astype(int).tolist()
    whole = in_turns(parts, slots, slots, budget.interval_s)
    kept = in_turns(parts, slots, np.full_like(slots, frozen), budget.interval_s)
    carried = model.capacities(memory, counts, risk) * kept / np.where(whole > 0, whole, np.inf)
    return next((n for n, most in zip(counts, carried, strict=True) if most >= margin * rate), budget.slots)


STEP_S = 3600.0  # shortest time between changes, seconds: a restart costs minutes, so not every swing is followed


def follow(
    exploration: Exploration,
    plan: CapacityPlan,
    rates: Sequence[float],
    every_s: float,
    *,
    gain: float = 1.0,
    risk: float | None = None,
) -> Day:
    """Find the fewest slots for every step of a day, with the margin and risk of `plan`, and at most its slots.

    The load is one rate (records/s) for each `every_s` seconds. `gain` is the capacity at the plan's trigger interval
    relative to that at the explored one.
    """
    frozen = None if plan.layout is None else plan.layout.stateful_partitions
    # Slots that are paid anyway are in both or in neither; but the state has as many partitions as the plan has slots.
    budget = plan.budget if frozen is not None else replace(plan.budget, slots=plan.least_slots or plan.budget.slots)
    least = min(run.budget.slots for run in exploration.runs)
    many = max(1, round(STEP_S / every_s))
    highest = [max(rates[first : first + many]) for first in range(0, len(rates), many)]
    parts = batch_of(exploration.measurements, exploration.model.batch)
    model, transfer = on_cores(exploration, plan.cores)
    if plan.on_other_cores and plan.cores is not None:
        gain *= transfer.ratio if risk is None else transfer.quantile(risk)
        parts = None if parts is None else parts.on_cores(plan.cores.times)
    taken = [
        least if rate <= 0 else least_slots(model, parts, budget, rate / gain, plan.margin, least, risk, frozen)
        for rate in highest
    ]
    slots = [in_executors(count, plan.executor_slots) for count in taken]
    price = plan.price
    hours = tuple(min(many, len(rates) - first) * every_s / 3600 for first in range(0, len(rates), many))
    found = Day(hours, tuple(highest), tuple(slots), budget.slots)
    if price is None:
        return found
    each = price.instance.price_per_hour
    costs = tuple(math.ceil(count / price.slots_per_worker) * each for count in slots)
    return replace(found, costs=costs, static_cost=price.per_hour)
