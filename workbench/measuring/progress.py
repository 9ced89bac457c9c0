"""Events in words: one line each, for a terminal and a log."""

import math

from workbench import units
from workbench.dataflow import Budget
from workbench.measuring.events import Abandoned, Concluded, Deployed, Event, Failed, LoadProbed, Probed
from workbench.records import FailedRun, Measurement, Probe


def describe(event: Event) -> str | None:
    """Describe `event` in one line, or a conclusion in several; None for an event that needs no line."""
    text = None
    match event:
        case Deployed(resumed=resumed, load_curve=load_curve) if resumed or load_curve:
            text = f"resuming: {len(resumed) + len(load_curve)} finished probes are not repeated"
        case Deployed(budget=budget, machine=machine) if not machine.real:
            text = f"{machine.slots}: {_slots(budget)}"
        case Deployed(budget=budget):
            text = f"deployed on {_slots(budget)} at a trigger interval of {budget.interval_s:g} s"
        case Probed(probe=probe, low=low, high=high):
            text = _describe_probe(probe, low, high)
        case LoadProbed(probe=probe):
            divided = "" if probe.partitions is None else f" with {units.some(probe.partitions, 'partition')}"
            text = f"for the costs: {units.rate(probe.observation.consumed_rate)}{divided}"
        case Failed(run=run):
            text = f"{_slots(run.budget)} failed: {run.failure}"
        case Abandoned(reason=reason):
            text = f"starting again: {reason}"
        case Concluded(what=what):
            text = "\n".join(what.lines) or None
    return text


def describe_run(run: Measurement | FailedRun, number: int, runs: tuple[int, int]) -> str:
    """Describe in one line what a run sustains or why it failed; `runs` are the least and the most of them."""
    least, most = runs
    of_all = "" if number > most else f"/{most}" if least == most else f" of at most {most}"
    if isinstance(run, FailedRun):
        return f"run {number}{of_all} · {_slots(run.budget)} failed: {run.failure}"
    estimate = run.estimate
    found = "no rate sustained" if estimate.rate is None else units.rate(estimate.middle)
    made = units.some(sum(probe.phase != "warm-up" for probe in estimate.probes), "probe")
    return f"run {number}{of_all} · {_slots(run.budget)} · {found}{_bracket(estimate.low, estimate.high)} · {made}"


def _slots(budget: Budget) -> str:
    return f"{units.some(budget.slots, 'slot')} of {units.count(budget.profile.memory_mb)} MB"


def _bracket(low: float, high: float, when: str = "") -> str:
    """Return the rates between which the maximum is, in brackets; empty where they are unknown."""
    if math.isfinite(high):
        start, end = units.ends(low, high)
        return f" ({when}{start} to {end})" if low else f" ({when}below {end})"
    return f" ({when}{units.scaled(low, '')} or more)" if low else ""


def _describe_probe(probe: Probe, low: float, high: float) -> str:
    if probe.judgement is None:
        if probe.filled is not None:
            filled = "its working size" if probe.filled else "not its working size yet"
            return f"state filled at {units.rate(probe.rate)}: {filled} after {probe.seconds:.0f} s"
        steady = "steady" if probe.steady else "not steady yet, but at its cap"
        return f"warm-up: {units.rate(probe.observation.consumed_rate)}, {steady} after {probe.seconds:.0f} s"
    answer = f"{probe.judgement.verdict}{_bracket(low, high, 'so far ')}"
    return f"probe {probe.number} at {units.rate(probe.rate)}: {answer}. {probe.judgement.reason}"
