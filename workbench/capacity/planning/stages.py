"""The stages of a micro-batch as they were measured: their costs, their partitions in a plan, the source's share."""

import statistics
from collections.abc import Iterable

import numpy as np

from workbench.capacity.model import MicroBatch, Model
from workbench.capacity.planning.layout import micro_batch_layout
from workbench.dataflow import Budget
from workbench.records import BatchLayout, Measurement, Stage, stages_of

_CANDIDATES = 10_000  # slot counts that are looked at; of more, as many at even distances


def unstaged_s(measurement: Measurement) -> float:
    """Seconds of a batch outside its stages (planning, commit, the source's own work), at the rate sustained.

    They are as many on more slots that carry as much each: planning and commit are the driver's, and the source's tasks
    read as many records.
    """
    seen, slots, stages = measurement.estimate.observation, measurement.budget.slots, stages_of(measurement)
    if seen is None or not stages:
        return 0.0
    left = [
        batch.duration_s - sum(stage.seconds(slots, slots, batch.records) for stage in stages)
        for batch in seen.batches[1:]
    ]
    return max(0.0, statistics.fmean(left)) if left else 0.0


def source_share(measurements: Iterable[Measurement]) -> float | None:
    """Share of the slots' busy time that the measuring source took, the median over the runs.

    None where it has no part in the slots: on an engine whose operators run side by side sources are not among them,
    and a query that is observed reads its own.
    """
    shares = []
    for one in measurements:
        seen = one.estimate.observation
        if seen is None or one.tasks is not None or not any(operator.is_source for operator in seen.operators):
            continue
        whole = sum(operator.useful_s for operator in seen.operators)
        reading = sum(operator.useful_s for operator in seen.operators if operator.is_source)
        if whole > 0:
            shares.append(reading / whole)
    return statistics.median(shares) if shares else None


def lay_out(
    measurement: Measurement,
    slots: int,
    interval_s: float,
    rate: float,
    *,
    parts: MicroBatch | None = None,
    frozen: int | None = None,
) -> BatchLayout | None:
    """Lay out the stages at some slots; None where the measurement does not show what they cost.

    Parameters
    ----------
    measurement
        Shows what the stages cost.
    slots, interval_s, rate
        Of the deployment: the records/s it is for.
    parts
        Of a batch, where they are known from all runs.
    frozen
        Partitions of the state that a checkpoint holds already; None: choose them.
    """
    if parts is None:
        stages, fixed_s = stages_of(measurement), unstaged_s(measurement)
    else:
        counts = [frozen if line.stateful and frozen else slots for line in parts.stages]
        fixed_s = parts.driver_s + parts.driver_task_s * sum(counts)
        stages = tuple(
            Stage(
                line.name,
                line.fixed_s,
                line.per_row_s,
                line.scale * (rate * interval_s / count) ** (line.power - 1),
                stateful=line.stateful,
                source=line.source,
            )
            for line, count in zip(parts.stages, counts, strict=True)
        )
    if not stages:
        return None
    return micro_batch_layout(stages, slots, interval_s, rate=rate, batch_fixed_s=fixed_s, stateful_partitions=frozen)


def least_slots(  # noqa: PLR0917
    model: Model, budget: Budget, rate: float, margin: float, least: int, risk: float | None, frozen: int | None
) -> int:
    """Give the least slots that carry `rate` with the state's partitions `frozen`, and at most those of `budget`.

    Slots that are fewer than the partitions take them in turns, and pay the fixed seconds of a task at each. Without
    the parts of a batch nothing is known of that, and the slots are those that would do with a partition each.

    Parameters
    ----------
    model
        Of the capacity.
    budget
        The most slots, their memory and the trigger interval.
    rate
        Records/s, at the explored interval.
    margin, risk
        See `Model.slots_for`.
    least
        Fewest slots to consider.
    frozen
        Partitions of the state; None without any.
    """
    memory, parts = budget.profile.memory_mb, model.batch
    fewest = min(budget.slots, model.slots_for(rate, memory, margin, min_slots=least, risk=risk))
    if parts is None or frozen is None:
        return fewest
    many = min(_CANDIDATES, budget.slots - fewest)
    slots = np.linspace(fewest, max(fewest, budget.slots - 1), many).round()
    counts = slots.astype(int).tolist()
    whole = parts.rates(slots, slots, budget.interval_s)
    in_turns = parts.rates(slots, np.full_like(slots, frozen), budget.interval_s, slots)
    carried = model.capacities(memory, counts, risk) * in_turns / np.where(whole > 0, whole, np.inf)
    return next((n for n, most in zip(counts, carried, strict=True) if most >= margin * rate), budget.slots)
