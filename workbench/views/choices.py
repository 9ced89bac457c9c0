"""Deployments next to a planned one: fewer and more workers (or slots), with what they cost and risk."""

import itertools
from dataclasses import dataclass

from workbench.capacity import Model
from workbench.records import CapacityPlan

_BESIDE = 2


@dataclass(frozen=True)
class Choice:
    """One deployment.

    Parameters
    ----------
    workers
        How many; None where nothing is priced.
    slots
        How many they hold, or the plan has.
    per_month
        Price of all workers in 730 hours; None where nothing is priced.
    risk
        Probability that the capacity is below the rate.
    planned
        Whether it is the plan's.
    """

    workers: int | None
    slots: int
    per_month: float | None
    risk: float
    planned: bool


def choices(model: Model, plan: CapacityPlan) -> tuple[Choice, ...]:
    """Give the plan and the two deployments before and after it; none where the plan's risk is not known.

    Steps are whole workers of the planned type, filled; where nothing is priced, executors of the size measured, or
    slots. The plan's own risk is the verdict's, so that no two figures of a page contradict each other. More slots are
    no riskier, because some of them may stay idle; only the interval widens beyond the runs.
    """
    if plan.verdict is None or plan.verdict.risk is None:
        return ()
    price, own = plan.price, plan.budget.slots
    each = (plan.executor_slots or 1) if price is None else price.slots_per_worker
    planned = own // each if price is None else price.workers
    steps = range(max(1, planned - _BESIDE), planned + _BESIDE + 1)
    slots = [own if step == planned else step * each for step in steps]
    found = model.risks(plan.rate, plan.budget.profile.memory_mb, slots)
    own_risk = [plan.verdict.risk if step == planned else risk for step, risk in zip(steps, found, strict=True)]
    risks = [*own_risk[: steps.index(planned)], *itertools.accumulate(own_risk[steps.index(planned) :], min)]
    return tuple(
        Choice(
            None if price is None else step,
            count,
            None if price is None else price.per_month / price.workers * step,
            risk,
            step == planned,
        )
        for step, count, risk in zip(steps, slots, risks, strict=True)
    )
