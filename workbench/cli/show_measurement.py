"""What is printed of a measurement: a sentence on what the query sustains, and a row for each probe."""

from collections.abc import Sequence

from rich.table import Table

from workbench import units
from workbench.cli import look
from workbench.records import Measurement, Probe


def sentence(measurement: Measurement) -> str:
    """Say what the query sustains on which budget, and what bounds that."""
    estimate, budget = measurement.estimate, measurement.budget
    interval = f" at a {budget.interval_s:g} s interval" * measurement.ran
    profile = f"{budget.profile.cpus:g} core and {budget.profile.memory_mb:,} MB"
    where = f"on {units.some(budget.slots, 'slot')} of {profile}{interval}"
    if estimate.rate is None:
        failed = len(estimate.probes) - 1
        return f"{measurement.query} sustains no rate that was tried {where}: {units.some(failed, 'probe')} failed."
    low, high = units.ends(estimate.low, estimate.high, "records/s")
    upper = {
        "query": f"{low} was sustained, {high} was not",
        "source": "the source cannot feed more: this is source-bound, the query may sustain more",
        "none": "nothing higher was tried",
    }[estimate.limit]
    if estimate.from_readings:
        upper = f"90 % interval {low} to {high}, from readings"
    least = "" if estimate.limit == "query" else "at least "
    return f"{measurement.query} sustains {least}{units.rate(estimate.middle)} {where}; {upper}."


def probes(made: Sequence[Probe]) -> Table:
    """Make the table of the probes, the warm-up first; or of the readings."""
    table = look.table({"probe": "right", "records/s": "right", "consumed": "right", "verdict": "left"})
    for number, probe in enumerate(made):
        judgement = probe.judgement
        reading = probe.phase == "reading"
        table.add_row(
            "warm-up" if probe.phase == "warm-up" else f"reading {probe.number}" if reading else str(number),
            units.scaled(probe.observation.consumed_rate if reading else probe.rate, ""),
            units.share(judgement.consumed_share) if judgement else "",
            judgement.verdict if judgement else "",
        )
    return table
