"""A running query's log next to a study that was measured: the log knows the level, the study how capacity grows.

The slots of the two are different cores. What a log's query sustains, over what the study's model expects of as many
cores, says how many measured cores one of its cores is worth; with it the measured growth is carried over.
"""

import math
from dataclasses import dataclass

from workbench import units
from workbench.capacity.model import MARGIN
from workbench.checks import SLACK
from workbench.errors import WorkbenchError
from workbench.observing import Headroom, RunningQuery
from workbench.study.planned import Planned


@dataclass(frozen=True)
class Compared:
    """What a study expects of the cores that a running query has."""

    query: str  # that was studied; the names of a job and of its study may differ
    slots: int  # of the study, that are as many cores
    rate: float  # records/s that its model expects of them, with the 90 % interval
    low: float
    high: float
    times: float  # what the log's query sustains over that
    agrees: bool
    takes: tuple[tuple[float, int | None], ...]  # slots of the running query by target rate; None: never


def compare(running: RunningQuery, found: Headroom, measured: Planned, targets: tuple[float, ...] = ()) -> Compared:
    """Hold what a log shows against a study that was measured."""
    if found.rate is None:
        raise WorkbenchError(f"What {running.name} sustains is not identifiable from its log: {found.why_not}.")
    budget = measured.exploration.runs[-1].budget
    slots = max(1, round(running.slots * running.cpus / budget.profile.cpus))
    model = measured.exploration.model
    if found.interval_s != budget.interval_s:
        model = model.at_interval(found.interval_s)
    as_much = running.memory_mb * budget.profile.cpus / running.cpus  # for each core as the query's
    memory = min(model.memory_, key=lambda one: (abs(one - as_much), one))
    there = [(memory, slots)]
    (rate,), ((low,), (high,)) = model.predict(there), model.interval(there)
    if not rate > 0:
        raise WorkbenchError(
            f"The study's model says nothing of {units.some(slots, 'slot')}, as many cores as the "
            f"{units.some(running.slots, 'slot')} of {running.name} have. Measure fewer slots, then compare again."
        )
    study, times = measured.study, found.rate / rate
    margin = study.margin or (MARGIN if study.risk is None else 1.0)
    margin = margin if study.outage is None else max(margin, study.outage.margin)
    takes: list[tuple[float, int | None]] = []
    for target in targets:
        try:
            many = model.slots_for(target / times, memory, margin, risk=study.risk)
            takes.append((target, max(1, math.ceil(many * budget.profile.cpus / running.cpus - SLACK))))
        except WorkbenchError:
            takes.append((target, None))
    agrees = found.low <= high and low <= found.high
    return Compared(
        measured.study.query, slots, float(rate), float(low), float(high), float(times), agrees, tuple(takes)
    )
