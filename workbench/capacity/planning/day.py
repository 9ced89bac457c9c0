"""A day's load: the slots that follow it, compared with those that its peak takes all day."""

import math
from collections.abc import Sequence
from dataclasses import replace

from workbench.capacity.explore import Exploration
from workbench.capacity.planning.cores import on_cores
from workbench.capacity.planning.executor import in_executors
from workbench.capacity.planning.stages import batch_of, least_slots
from workbench.records import CapacityPlan, Day

STEP_S = 3600.0
"""How long the slots stay the same, seconds: a restart costs minutes, so nobody follows every swing."""


def follow(
    exploration: Exploration,
    plan: CapacityPlan,
    rates: Sequence[float],
    every_s: float,
    *,
    gain: float = 1.0,
    risk: float | None = None,
) -> Day:
    """Find the least slots for every step of a day, with the margin and risk of `plan`, and never more than its slots.

    Parameters
    ----------
    rates, every_s
        The load, records/s, one rate for each `every_s` seconds.
    gain
        Capacity at the plan's trigger interval relative to that at the explored one.
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
