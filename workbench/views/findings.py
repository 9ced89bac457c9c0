"""Findings of a measurement, each as one sentence."""

import math

from workbench import units
from workbench.dataflow import Budget
from workbench.records import MstEstimate, MstInterval


def where(budget: Budget, *, ran: bool = True) -> str:
    """Say what was deployed: ``"4 slots of 0.2 core at a 2 s interval"``; what was simulated has no interval."""
    slots = units.some(budget.slots, "slot")
    cpus = budget.profile.cpus
    cores = f"{units.number(cpus)} core{'s' if cpus > 1 else ''}"
    return f"{slots} of {cores}" + (f" at a {units.seconds(budget.interval_s)} interval" if ran else "")


def capacity(query: str, budget: Budget, estimate: MstEstimate, *, ran: bool = True) -> str:
    """Say what rate `query` sustains, that it is only a lower bound, that none was sustained, or none judged yet."""
    if estimate.rate is None:
        least = min((probe.rate for probe in estimate.probes if probe.answered("overloaded")), default=None)
        if least is None:
            return f"No rate of {query} has been judged yet on {where(budget, ran=ran)}"
        return f"{query} sustained no rate that was tried, not even {units.rate(least)}, on {where(budget, ran=ran)}"
    bound = "at least " if estimate.limit != "query" else ""
    return f"{query} sustains {bound}{units.rate(estimate.middle)} on {where(budget, ran=ran)}"


def bracket(estimate: MstEstimate) -> str:
    """Say between which rates the maximum lies and how wide that is."""
    if estimate.rate is None:
        return "No rate was confirmed as sustained."
    if math.isinf(estimate.high):
        return f"{units.rate(estimate.low)} was confirmed as sustained; no higher rate was confirmed as too much."
    if estimate.from_readings:
        half = math.log(estimate.high / estimate.low) / 2
        low, high = units.ends(estimate.low, estimate.high, "records/s")
        return (
            f"The mean of its readings at the maximum rate is known to ±{units.share(half)} (90 % interval): "
            f"{low} to {high}."
        )
    low, high = units.ends(estimate.low, estimate.high)
    width = units.chance(1 - estimate.low / estimate.high)
    return f"The maximum is between {low} (sustained) and {high} records/s (not sustained), {width} apart."


def marked(estimate: MstEstimate) -> tuple[float | None, str]:
    """Give the rate (records/s) that figures mark, and what it is; None without one."""
    if estimate.from_readings:
        return estimate.middle, "mean of the readings"
    return (None if estimate.rate is None else estimate.low), "highest sustained"


def growing_state(estimate: MstEstimate) -> str:
    """Say at what size of a state that grows without bound the rate was found: that of the records in it."""
    since_empty = estimate.probes[-1:] if estimate.from_readings else estimate.probes
    records = sum(probe.observation.consumed_rate * probe.seconds for probe in since_empty)
    return (
        f"The state grows with every record, to that of about {units.scaled(records, 'records')} here: this is the "
        "rate at that state, not a maximum that lasts."
    )


def interval(found: MstInterval | None) -> str:
    """Say where the maximum of a next deployment lies."""
    if found is None:
        return ""
    basis = (
        f"{found.repeats} measurements of this configuration"
        if found.repeats > 1
        else "known repeats on such machines, as this is the only measurement of this configuration"
    )
    low, high = units.ends(found.low, found.high, "records/s")
    return (
        f"Another deployment would sustain between {low} and {high} "
        f"({units.share(found.level)} interval; repeats differ by about {units.share(found.deviation)}, by {basis})."
    )
