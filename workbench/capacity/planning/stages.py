"""The stages of a micro-batch as they were measured: their costs, their partitions in a plan, the source's share."""

import statistics
from collections.abc import Iterable

from workbench.capacity.model import MicroBatch
from workbench.capacity.planning.layout import micro_batch_layout
from workbench.dataflow import Budget
from workbench.records import BatchLayout, Measurement, Stage, stages_of

_RANGE_COUNTS = 16  # slot counts between lowest and highest load that the state's partitions are chosen for, about


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


def _stages_of_parts(parts: MicroBatch, source_rows: float) -> tuple[Stage, ...]:
    """Give the stages where each task has `source_rows` of the source's rows."""
    return tuple(
        Stage(
            line.name,
            line.fixed_s,
            line.per_row_s,
            line.scale * source_rows ** (line.power - 1),
            stateful=line.stateful,
            source=line.source,
        )
        for line in parts.stages
    )


def lay_out(
    measurement: Measurement,
    budget: Budget,
    rate: float,
    low_slots: int | None = None,
    low_rate: float | None = None,
    *,
    parts: MicroBatch | None = None,
) -> tuple[BatchLayout | None, BatchLayout | None]:
    """Lay out the stages at the planned slots and at those of the lowest load, with one count for the state at both.

    Parameters
    ----------
    measurement
        Shows what the stages cost; without that, there is no layout.
    budget, rate
        What is planned, and the records/s it is for.
    low_slots, low_rate
        The least slots and the load they are for; None: the deployment does not shrink.
    parts
        Of a batch, where they are known from all runs.
    """
    most, interval = budget.slots, budget.interval_s
    stages = stages_of(measurement) if parts is None else _stages_of_parts(parts, rate * interval / most)
    if not stages:
        return None, None

    def fixed_s(slots: int) -> float:
        if parts is None:
            return unstaged_s(measurement)
        return parts.driver_s + parts.driver_task_s * len(stages) * slots

    if low_slots is None or low_rate is None:
        return micro_batch_layout(stages, most, interval, rate=rate, batch_fixed_s=fixed_s(most)), None
    step = max(1, (most - low_slots) // _RANGE_COUNTS)
    counts = sorted({*range(low_slots, most, step), most})
    load = {n: low_rate + (rate - low_rate) * (n - low_slots) / max(1, most - low_slots) for n in counts}
    frozen = micro_batch_layout(stages, counts, interval, rate=load).stateful_partitions

    def layout(slots: int, offered: float) -> BatchLayout:
        return micro_batch_layout(
            stages, slots, interval, rate=offered, batch_fixed_s=fixed_s(slots), stateful_partitions=frozen
        )

    return layout(most, rate), layout(low_slots, low_rate)
