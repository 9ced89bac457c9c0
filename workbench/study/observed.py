"""A running query, as its log shows it: what it sustains, what limits it, what an outage costs, and plans from it."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from workbench import bounds, defaults, units
from workbench.capacity import Exploration
from workbench.capacity.explore import conclude
from workbench.capacity.model import Asked, MicroBatch, fit_micro_batch
from workbench.capacity.planning import margin_of, read_instances
from workbench.checks import SLACK, positive, within
from workbench.errors import NoCapacityError, WorkbenchError
from workbench.observing import (
    LEFT_OUT,
    EndingRuns,
    Headroom,
    RunningQuery,
    as_measurement,
    ending_runs,
    headroom,
    not_identifiable,
    read_log,
    unseen,
)
from workbench.records import EndingRun, Gauge
from workbench.study.planned import Planned, plan_targets, read_planned
from workbench.study.spec import Study, check_key

RECENT_S = 60.0  # of batches that show the present rate of arrival, and the present time of a batch
OUTAGE_MIN = 10.0  # outage to ask about by default, minutes
_COUNTS = 0.2  # share of the operators' time; with less, an operator's skew does not count


@dataclass(frozen=True)
class StudyComparison:
    """What a study expects of the cores that a running query has."""

    query: str  # the query of the study, which may have another name than the job
    slots: int  # slots of the study that have as many cores
    rate: float  # records/s that its model expects of them, with the 90 % interval
    low: float
    high: float
    times: float  # what the log's query sustains, over that
    agrees: bool
    takes: tuple[tuple[float, int | None], ...]  # slots of the running query by target rate; None: never


@dataclass(frozen=True)
class Observed:
    """What a log shows of a query."""

    running: RunningQuery
    headroom: Headroom
    parts: MicroBatch | None  # what batches consist of; None where the log does not explain them
    planned: Planned | None = None  # plans for other rates; None: none requested, or possible
    unplanned: str = ""  # why there are no plans, if any were requested
    compared: StudyComparison | None = None  # the same cores by a study that was measured
    ending: EndingRuns | None = None  # what its runs took; None if it runs continuously
    run: EndingRun | None = None  # the run that must end in time
    asked: Asked = field(default_factory=lambda: Asked("observed"))  # how the log was read, for the commands of advice

    @property
    def partitions(self) -> tuple[int, int]:
        """Partitions of the state or the shuffles, and of the source, on the slots of most batches."""
        blocks = self.running.usual_blocks
        shuffled = max(block.partitions for block in blocks)
        own = [block.observation.source_partitions for block in blocks]
        return shuffled, max((one for one in own if one is not None), default=shuffled)

    @property
    def limits(self) -> dict[str, float]:
        """Share of the interval that each part of a batch takes at the sustained rate; empty where unknown."""
        rate, interval_s = self.headroom.rate, self.headroom.interval_s
        if self.parts is None or rate is None:
            return {}
        spent = self.parts.parts_s(rate * interval_s, self.running.slots, *self.partitions, rate=rate)
        whole = sum(spent.values())
        return {name: seconds / whole for name, seconds in spent.items()} if whole > 0 else {}

    @property
    def skew(self) -> tuple[str, float] | None:
        """The operator whose fullest task exceeds its mean most, in the busiest block of usual slots; None: unknown.

        Operators that take little of the time do not count: theirs costs nothing.
        """
        if not self.running.usual_blocks:
            return None
        seen = max(self.running.usual_blocks, key=lambda block: block.rows).observation.operators
        whole = sum(operator.useful_s for operator in seen)
        busy = [one for one in seen if one.tasks > 1 and one.useful_s >= _COUNTS * whole]
        known = [(one.key_skew, one.operator) for one in busy if one.key_skew is not None]
        if not known:
            return None
        skew, operator = max(known)
        return operator, skew

    def catch_up_s(self, outage_s: float, *, at_worst: bool = False) -> float | None:
        """Return the seconds to catch up after an outage at the peak load; inf if it never does, None if unknown.

        A cap lets the same rows in at each trigger. Without one, large batches pay their fixed part once. `at_worst`
        takes the rate at the low end of its interval.
        """
        room = self.headroom
        if room.rate is None:
            return None
        rate, peak = (min(room.rate, room.low) if at_worst else room.rate), room.peak_rate
        if peak <= 0 or outage_s <= 0:
            return 0.0
        if room.admitted_rate is not None:
            admitted = min(rate, room.admitted_rate)
            return outage_s * peak / (admitted - peak) if admitted > peak else math.inf
        return _worked_off_s(outage_s, peak / rate, room.fixed_s, room.interval_s) if rate > peak else math.inf


def _worked_off_s(outage_s: float, load: float, fixed_s: float, interval_s: float) -> float:
    """Return the seconds until a batch lasts no longer than the interval, where nothing caps batches.

    The first batch has all waiting rows, each later one those that arrived during the last. So a batch lasts
    a + q x the seconds of the last one, and the seconds approach a / (1 - q) by the factor q at each. `fixed_s`
    is a, and `load`, below 1, that over what is sustained.
    """
    kept = load * (1 - fixed_s / interval_s)
    if not 0 < kept < 1:
        return fixed_s
    limit_s = fixed_s / (1 - kept)
    if interval_s <= limit_s:  # by rounding: the load almost equals what is sustained
        return math.inf
    over = max(1.0, (outage_s - limit_s) / (interval_s - limit_s))
    batches = max(1, math.ceil(-math.log(over) / math.log(kept)))
    return batches * limit_s + (outage_s - limit_s) * kept * (1 - kept**batches) / (1 - kept)


def compare(
    running: RunningQuery, found: Headroom, measured: Planned, targets: tuple[float, ...] = ()
) -> StudyComparison:
    """Compare a log, which shows the level, with a measured study, which shows how capacity grows.

    The slots of the two are different cores. What a log's query sustains, over what the study's model expects of as
    many cores, says how many measured cores one of its cores is worth; with it the measured growth is carried over.
    """
    if found.rate is None:
        raise not_identifiable(running, found)
    budget = measured.exploration.runs[-1].budget
    slots = max(1, round(running.slots * running.cpus / budget.profile.cpus))
    model = measured.exploration.model
    if found.interval_s != budget.interval_s:
        model = model.at_interval(found.interval_s)
    as_much = running.memory_mb * budget.profile.cpus / running.cpus  # by cores as the query counts them
    memory = min(model.memory_, key=lambda one: (abs(one - as_much), one))
    there = [(memory, slots)]
    (rate,), ((low,), (high,)) = model.predict(there), model.interval(there)
    if not rate > 0:
        raise WorkbenchError(
            f"The study's model says nothing of {units.some(slots, 'slot')}, as many cores as the "
            f"{units.some(running.slots, 'slot')} of {running.name} have. Measure fewer slots, then compare again."
        )
    study, times = measured.study, found.rate / rate
    margin = margin_of(study.margin, study.risk, study.outage)
    takes: list[tuple[float, int | None]] = []
    for target in targets:
        try:
            many = model.slots_for(target / times, memory, margin, risk=study.risk)
            takes.append((target, max(1, math.ceil(many * budget.profile.cpus / running.cpus - SLACK))))
        except WorkbenchError:
            takes.append((target, None))
    agrees = found.low <= high and low <= found.high
    return StudyComparison(study.query, slots, float(rate), float(low), float(high), float(times), agrees, tuple(takes))


def explored_log(study: Study) -> Exploration:
    """Read the log of a study's query, and fit the model to what it shows."""
    running = read_log(study.log or "", study.query)
    if study.slots != (running.slots,) or study.memory_mb != (running.memory_mb,):
        raise WorkbenchError(
            f"In the log, {running.name} runs on {units.some(running.slots, 'slot')} of {running.memory_mb:,} MB, and "
            f"the study says {list(study.slots)} and {list(study.memory_mb)}. Set slots: [{running.slots}] and "
            f"memory_mb: [{running.memory_mb}].",
            settings=("slots", "memory_mb"),
        )
    if running.interval_s is not None and not math.isclose(running.interval_s, study.interval_s):
        raise WorkbenchError(
            f"In the log, {running.name} has a trigger interval of {running.interval_s:g} s, and the study says "
            f"{study.interval_s:g} s. Set interval_s: {running.interval_s:g}.",
            settings=("interval_s",),
        )
    given = study if study.slot_cpus != defaults.SLOT_CPUS else replace(study, slot_cpus=running.cpus)
    return explored_running(given, running)


def explored_running(study: Study, running: RunningQuery) -> Exploration:
    """Fit the model to what a query's log shows; see `explored_log`."""
    seen = replace(running, cpus=study.slot_cpus)
    run = as_measurement(seen, headroom(seen.batches, study.interval_s))
    try:
        return conclude([run], "one log was read", form=study.form, choice="edge", growth=study.growth)
    except NoCapacityError as error:
        if study.growth == "tasks":  # which one run does not show, whatever its batches consist of
            raise
        raise NoCapacityError(
            f"The log shows what {seen.name} sustains on {units.some(seen.slots, 'slot')}, and not what more slots "
            "would carry: its tasks do not account for how long a batch takes, or the driver takes almost all of it. "
            "Measure the query on several numbers of slots (workbench init), or shorten what runs in the driver."
        ) from error


def _check_run(rows: float | None, deadline_s: float | None, targets: Sequence[float]) -> None:
    if (rows is None) != (deadline_s is None):
        given, lacking = ("rows", "deadline") if deadline_s is None else ("deadline", "rows")
        raise WorkbenchError(f"The {given} of a run is given without its {lacking}. Add it, or leave both out.")
    if rows is not None and targets:
        raise WorkbenchError("The rows and deadline of a run are a target of their own. Leave the other targets out.")


def shown_interval(running: RunningQuery, ending: EndingRuns | None, given_s: float | None) -> float | None:
    """Return the trigger interval; for runs that end, the seconds of a full batch; None if batches follow at once."""
    if given_s is not None or running.interval_s is not None:
        return running.interval_s if given_s is None else given_s
    if running.batches and ending is not None:
        return ending.full_s
    if running.batches and not running.at_once:
        raise WorkbenchError(
            f"The log does not show the trigger interval of {running.name}: its batches waited, but for no clock, or "
            "several intervals would leave the same log. Give the interval, or the longest batch that you accept, in "
            "seconds.",
            settings=("interval_s",),
        )
    return None


def observe(
    log: str | Path,
    *,
    query: str | None = None,
    progress: str | Path | None = None,
    interval_s: float | None = None,
    slots: int | None = None,
    slot_cpus: float | None = None,
    targets: Sequence[float] = (),
    prices: str | None = None,
    margin: float | None = None,
    risk: float | None = None,
    measured: str | Path | None = None,
    outage_min: float = OUTAGE_MIN,
    rows: float | None = None,
    deadline_s: float | None = None,
    start_s: float | None = None,
) -> Observed:
    """Read what a running query sustains from its log, and plan it for other rates.

    `log` is Spark's event log, a log of its driver, or progress events: a file, or a folder; `progress` has those
    events for an event log without them. `query` is a name or id; None: the log has one. Where the log does not show
    them, give `interval_s`, the trigger interval, seconds; `slots`, tasks that can run at once; `slot_cpus`, cores of a
    slot. `targets`, `prices`, `margin` and `risk` are of a study, `measured` the path of plans that were measured, to
    compare with. `outage_min` minutes are asked about, which the commands of advice repeat. Instead of `targets`:
    `rows` that a run takes, within `deadline_s` seconds from its start, of which `start_s` are before its first batch;
    None: as the log shows, or `EndingRun.start_s`.

    Raises WorkbenchError when the log cannot be read, has no such query, or leaves its trigger interval open, and when
    the plans were not measured or cannot be compared.
    """
    if interval_s is not None:
        positive("The trigger interval", interval_s, "seconds")
    if slot_cpus is not None:
        positive("A slot's cpus", slot_cpus, "cores")
    within("The outage", outage_min, 0, bounds.SECONDS / 60, "minutes", ends="[]")
    _check_run(rows, deadline_s, targets)
    wanted: tuple[float, ...] = check_key("targets", tuple(targets)) if targets else ()
    keys = {"log": str(log), "margin": margin, "risk": risk, "prices": prices}
    given = {name: check_key(name, value) for name, value in keys.items()}
    options = {
        "query": query,
        "progress": progress and str(progress),
        "interval": interval_s,
        "slots": slots,
        "slot-cpus": slot_cpus,
        "prices": prices,
        "outage": None if outage_min == OUTAGE_MIN else outage_min,
        "measured": measured and str(measured),
        "rows": rows,
        "deadline": deadline_s,
        "start": start_s,
    }
    named = {name: value for name, value in options.items() if value is not None}
    asked = Asked("observed", None, given["log"], named, given["risk"])
    instances = read_instances(Path(prices)) if prices else ()  # before gigabytes are read
    planned_before = read_planned(Path(measured)) if measured else None
    if planned_before is not None and planned_before.study.testbed == "fluid":
        raise WorkbenchError(
            f"{measured} is a study of {planned_before.study.query!r} on the simulated engine, whose cores are "
            "not real. Give the plans of a study that was measured, of the log's query (workbench plan)."
        )
    running = read_log(log, query, progress, slots)
    ending = ending_runs(running.runs, running.batches) if running.ends else None
    starts_s = (start_s, None if ending is None else ending.start_s, EndingRun.start_s)  # as given, as seen, as usual
    run = None
    if rows is not None and deadline_s is not None:
        run = EndingRun(rows, deadline_s, next(one for one in starts_s if one is not None))
        wanted = (run.rate,)
    interval_s = shown_interval(running, ending, interval_s)
    running = replace(running, cpus=running.cpus if slot_cpus is None else slot_cpus)
    found = unseen(running.with_rows, running.triggers, LEFT_OUT)
    if running.batches:
        found = headroom(running.batches, interval_s)
    parts = None
    with suppress(WorkbenchError):
        parts = fit_micro_batch([as_measurement(running, found)])
    explained = parts if parts is not None and parts.explains else None
    compared = None if planned_before is None else compare(running, found, planned_before, wanted)
    known = Observed(running, found, explained, compared=compared, ending=ending, run=run, asked=asked)
    if not wanted:
        return known
    study = Study(
        running.name,
        wanted,
        (max(1, running.slots),),
        (running.memory_mb,),
        testbed="observed",
        slot_cpus=running.cpus,
        interval_s=interval_s or defaults.INTERVAL_S,
        **given,
        **({} if run is None else asdict(run)),
    )
    try:
        explored = replace(explored_running(study, running), asked=asked)
        return replace(known, planned=plan_targets(study, explored, (), instances))
    except WorkbenchError as error:
        return replace(known, unplanned=str(error))


def gauges(running: RunningQuery, interval_s: float | None, outage_s: float) -> Mapping[Gauge, float | None]:
    """Return the gauges of a query with at least one batch that counts, for an outage of `outage_s` seconds.

    Without a trigger interval, seconds, it is as the log shows, and nothing that needs it is known until it does.
    """
    ending = ending_runs(running.runs, running.batches) if running.ends else None
    try:
        interval_s = shown_interval(running, ending, interval_s)
    except WorkbenchError:  # the log may show it later
        interval_s = None
    found, last, states = headroom(running.batches, interval_s), running.batches[-1], running.states
    recent = [one for one in running.batches if one.start_s + one.batch_s >= last.start_s + last.batch_s - RECENT_S]
    after = [one for one in recent if one.since_s < math.inf]
    passed_s = sum(one.since_s for one in after)
    known = found.rate is not None
    return {
        Gauge.HEADROOM: found.left,
        Gauge.CAPACITY: found.rate,
        Gauge.CAPACITY_LOW: found.low if known else None,
        Gauge.CAPACITY_HIGH: found.high if known else None,
        Gauge.CAPACITY_AT_LEAST: found.at_least or None,
        Gauge.RATE: sum(one.rows for one in after) / passed_s if passed_s else None,
        Gauge.PEAK: found.peak_rate,
        Gauge.BATCH_S: sum(one.batch_s for one in recent) / len(recent),
        Gauge.INTERVAL_S: interval_s,
        Gauge.DRIFT: 0.0 if found.drift is None else max(0.0, found.drift.per_day_s),
        Gauge.STATE_ROWS: sum(one.rows for one in states) if states else None,
        Gauge.STATE_BYTES: sum(one.memory_bytes for one in states) if states else None,
        Gauge.STATE_GROWTH: sum(one.memory_per_day for one in states) if states else None,
        Gauge.CATCH_UP_S: Observed(running, found, None).catch_up_s(outage_s),
        Gauge.LAST_BATCH: running.ended_s,
    }
