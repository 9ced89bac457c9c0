"""A measurement: the estimate of one query on one budget, with all that is needed to read it later.

It is stored as one versioned JSON file.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from workbench import __version__
from workbench.checks import shown
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.files import write_whole
from workbench.metrics import Observation, SourceProfile
from workbench.reading import parse_json, read_text
from workbench.records.documents import Setting, check_version, structure, unstructure
from workbench.speed import CoreSpeed, typical_of

SIMULATED, RECORDED = "simulated", "recorded"  # origin of slots that no machine has
_VIRTUAL = {True: "yes", False: "no", None: "unknown"}
_LOW = 4  # factor between a low rate and the highest
VERSION = 2

Phase = Literal["warm-up", "probe", "reading"]
Limit = Literal["query", "source", "none"]
Verdict = Literal["sustained", "overloaded", "source-bound", "disturbed", "not-offered", "warming", "not-at-capacity"]


@dataclass(frozen=True)
class Machine:
    """The machine of a run: no host name, no user, no path."""

    slots: str = ""  # the slots: a CPU quota, whole cores, `SIMULATED`, or `RECORDED`
    processor: str = ""
    virtual: bool | None = False  # whether it is a virtual machine, whose speed others influence; None: unknown
    cores: float | None = None  # cores that the workbench may use; None: none are used
    memory_gib: float | None = None
    system: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)  # further facts in words by name, such as versions
    dedicated: bool = True  # whether the slots' cores are reserved for them; False where a cluster only counts them
    # how fast its cores are, where that was timed apart from the observations; None: it was not. A Spark batch is only
    # here
    speed: CoreSpeed | None = None

    @property
    def real(self) -> bool:
        """Whether something ran on it, unlike a simulation or a table of rates."""
        return self.slots not in {SIMULATED, RECORDED}

    @property
    def load_seen(self) -> bool:
        """Whether other load on it was observed, unlike that of a cluster's workers and that behind a log."""
        return "master" not in self.facts

    def described(self) -> dict[str, str]:
        """Every known fact in words, by name."""
        known = {
            "processor": self.processor,
            "virtual machine": _VIRTUAL[self.virtual] if self.processor else "",
            "cores": "" if self.cores is None else f"{self.cores:g}",
            "memory": "" if self.memory_gib is None else f"{self.memory_gib:.1f} GiB",
            "system": self.system,
            **self.facts,
            "slots are": self.slots,
        }
        return {name: value for name, value in known.items() if value}


@dataclass(frozen=True)
class Judgement:
    """What was decided about one observation, with the numbers behind it."""

    verdict: Verdict  # ``"sustained"`` or ``"overloaded"`` for a valid observation, otherwise why it does not count
    consumed_share: float  # rows consumed / rows due over the whole batches
    backlog_slope: float  # least-squares slope of the backlog at the releases, records/s
    slope_error: float
    reason: str
    # whether the observation was judged although the machine was disturbed, the code was still being compiled, or the
    # slots were not at capacity
    disturbed: bool = False

    @property
    def answered(self) -> bool:
        """Whether the verdict shows anything about the query."""
        return self.verdict in {"sustained", "overloaded"}

    @property
    def repeatable(self) -> bool:
        """Whether a repeat may sustain the rate: it failed, and the query may not be the reason."""
        return self.verdict in {"disturbed", "warming", "not-at-capacity"}


@dataclass(frozen=True)
class Probe:
    """A finished step."""

    number: int
    phase: Phase
    rate: float
    attempt: int
    observation: Observation  # what was seen: for a probe its window, for a warm-up its steady end
    # None for the warm-up, and for a reading, which is what a query's log shows of its largest batches
    judgement: Judgement | None = None
    started_s: float = 0.0  # when it began, seconds after the estimate began
    seconds: float = 0.0  # how long it took, including the time that was not observed
    steady: bool | None = None  # whether the warm-up became steady before its cap; None for a probe
    # of the state, and of the source unless it has its own; None: as many as there are slots
    partitions: int | None = None
    # whether a warm-up ended with the state at its working size, or without state; None for other probes
    filled: bool | None = None
    source_partitions: int | None = None  # of the source, where they differ from `partitions`

    def answered(self, verdict: str) -> bool:
        """Whether the verdict is `verdict`."""
        return self.judgement is not None and self.judgement.verdict == verdict


def overrun_s(probes: Sequence[Probe], interval_s: float) -> float | None:
    """Seconds of a batch at a low rate, if no batch of `probes` met the interval, so that no rate fits it.

    A low rate is at most a quarter of the highest; its shortest batch counts, if the machine was not disturbed and the
    state was its own: after a higher rate, it would pay for what that left. None where no such rate was probed, a
    batch met the interval, or the line through the batches of the lowest and of any other such rate falls below the
    interval: then a lower rate may fit, as where a batch goes through a state that grows with the rate.
    """
    probed = [probe for probe in probes if probe.phase == "probe"]
    low = max((probe.rate for probe in probed), default=0.0) / _LOW
    if any(batch.duration_s <= interval_s for probe in probed for batch in probe.observation.batches):
        return None
    quiet = [
        (probe.rate, min(batch.duration_s for batch in probe.observation.lasting))
        for probe in probed
        if probe.answered("overloaded") and not (probe.judgement and probe.judgement.disturbed)
        if probe.filled is not None or not any(one.keeps_state for one in probe.observation.operators)
        if probe.observation.batches
    ]
    few = min((took_s for rate, took_s in quiet if rate <= low), default=None)
    if few is None:
        return None
    least, least_s = min(quiet)
    slopes = [(took_s - least_s) / (rate - least) for rate, took_s in quiet if rate > least]
    return few if least_s - max(slopes, default=0.0) * least > interval_s else None


@dataclass(frozen=True)
class MstEstimate:
    """A maximum sustainable throughput (MST) as a bracket, from probes at chosen rates or from a query's log."""

    rate: float | None  # mean rate consumed at `low`, records/s; None if no rate was sustained
    low: float  # highest rate confirmed sustained; 0 if none was. From a log, the lower end of the 90 % interval
    # lowest rate confirmed not sustained, above which nothing was sustained; inf if there is none. Where repeated
    # answers contradict each other, `low` and `high` enclose all rates in doubt. From a log, the upper end
    high: float
    probes: tuple[Probe, ...]  # all, in order, the warm-up first; or the reading of a log
    observation: Observation | None  # the last one at `low`, or the reading; None if no rate was sustained
    # what bounds the rate from above: ``"query"`` (an overloaded rate close above), ``"source"`` (the next rate up
    # would be source-bound: this is not the query's MST) or ``"none"`` (the highest rate allowed was sustained, or the
    # probes ran out while the bracket was wide: `low` is a bound)
    limit: Limit
    seconds: float
    steady: bool = True
    exhausted: bool = False  # whether the probes ran out before the bracket was nearly as narrow as asked
    contradictions: tuple[float, ...] = ()  # rates with both answers, or sustained above one that was overloaded

    @property
    def from_readings(self) -> bool:
        """Whether the estimate was read from a query's log instead of probed at chosen rates."""
        return any(probe.phase == "reading" for probe in self.probes)

    @property
    def probed(self) -> int:
        """Number of probes after the warm-up, or of readings."""
        return sum(probe.phase != "warm-up" for probe in self.probes)

    @property
    def filled(self) -> bool | None:
        """Whether the state had its working size when the rate was sustained; None if unknown."""
        found = None
        for probe in self.probes:
            found = found if probe.filled is None else probe.filled
            if self.observation is not None and probe.observation == self.observation:
                break
        return found

    @property
    def disturbed(self) -> bool:
        """Whether a probe had to be judged on a disturbed machine."""
        return any(probe.judgement is not None and probe.judgement.disturbed for probe in self.probes)

    @property
    def middle(self) -> float:
        """The headline: the rate that commands, cards, plans and models give for this estimate, records/s.

        It is the middle of the bracket, of its logarithms, because the maximum is anywhere in it; `low` where that is
        a bound, and 0 if no rate was sustained.
        """
        closed = math.isfinite(self.high) and self.limit != "none"
        return math.sqrt(self.low * self.high) if closed else self.low


@dataclass(frozen=True)
class MstInterval:
    """The interval for the maximum sustainable throughput of a next deployment."""

    # low, high: records/s
    low: float
    high: float
    level: float  # share of next deployments that should be in it
    deviation: float  # relative standard deviation of repeats behind it
    repeats: int  # measurements of this configuration behind it, including this one


@dataclass(frozen=True)
class OperatorCost:
    """Cost of one task of one operator in one micro-batch."""

    operator: str
    # fixed_s, per_record_s: a and b of seconds = a + b x records; None if fewer than three levels were seen
    fixed_s: float | None
    per_record_s: float | None
    per_record_error: float | None  # standard error of b
    # records_low, records_high: range of records per task that was seen: outside it the line extrapolates
    records_low: float
    records_high: float
    # samples, levels: number of points, and of record levels that differ by more than 2 %
    samples: int
    levels: int


@dataclass(frozen=True)
class Measurement:
    """One measurement."""

    query: str
    budget: Budget
    estimate: MstEstimate
    costs: tuple[OperatorCost, ...]
    source: SourceProfile | None  # the source's own profile; None if it was not profiled
    testbed: str  # identity of the testbed: its kind and its settings in words
    started_at: str  # ISO 8601 date and time
    testbed_kind: str  # ``"spark"``, ``"fluid"``, ``"recorded"`` or ``"observed"``
    machine: Machine = field(default_factory=Machine)
    settings: Mapping[str, Setting] = field(default_factory=dict)
    load_curve: tuple[Probe, ...] = ()  # at lower rates, which the costs rest on in addition to the probes
    divided: tuple[Probe, ...] = ()  # with more partitions than slots: what a task costs the slots and the driver
    workbench_version: str = __version__
    tasks: Mapping[str, int] | None = None  # tasks by operator, if an optimizer set them
    predicted_rate: float | None = None  # records/s that the optimizer predicted for them
    interval: MstInterval | None = None  # interval of a next deployment's maximum; None without a bracket
    # whether its state grows with every record, so that the rate belongs to a size of the state, and is no MST
    unbounded_state: bool = False

    def __post_init__(self) -> None:
        try:
            datetime.fromisoformat(self.started_at)
        except ValueError as error:
            raise WorkbenchError(
                f"started_at is {shown(self.started_at)}; it must be an ISO 8601 date and time such as "
                "2026-01-31T12:00:00+00:00."
            ) from error

    @property
    def ran(self) -> bool:
        """Whether a query ran: a simulation and a table of rates have no batches, machine or next deployment."""
        return self.testbed_kind not in {"fluid", "recorded"}

    @property
    def source_limit(self) -> float | None:
        """Highest rate of the source alone by which the last probe was judged, records/s; None: not profiled.

        It may be above that of `source`: one that seems to limit a query is profiled again, and divided by its scans.
        """
        seen = [probe.observation.source_rate_limit for probe in self.estimate.probes[-1:]]
        if seen and math.isfinite(seen[0]):
            return seen[0]
        return None if self.source is None else self.source.rate_limit

    @property
    def used_cores(self) -> float | None:
        """Cores that the query's tasks used of one slot at the rate, by the testbed's CPU seconds; None: unknown."""
        seen = self.estimate.observation
        if seen is None or not seen.operators or seen.elapsed_s <= 0:
            return None
        return sum(one.cpu_s for one in seen.operators) / (seen.elapsed_s * self.budget.slots)

    @property
    def core_speed(self) -> CoreSpeed | None:
        """How fast the slots' cores were: the median of the probes; None: not timed, as on a cluster.

        A Spark batch is timed once: for the machine, or else in the deployment.
        """
        seen, apart = typical_of(probe.observation.cores for probe in self.estimate.probes), self.machine.speed
        if seen is None or apart is None or apart.warm_batch_s is None:
            return seen or apart
        return replace(seen, warm_batch_s=apart.warm_batch_s)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the measurement to `path`, all of it or nothing."""
        document = {"version": VERSION, **unstructure(self)}
        write_whole(path, json.dumps(document, allow_nan=False, ensure_ascii=False, indent=1) + "\n")

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> "Measurement":
        """Read a measurement; WorkbenchError for another version, unknown keys or wrong types."""
        text = read_text(path, f"The measurement {path}")
        try:
            document = parse_json(text)
        except ValueError as error:
            raise WorkbenchError(f"The measurement {path} is not JSON: {error}. Measure again.") from error
        return measurement_from_document(document, f"The measurement {path}")


@dataclass(frozen=True)
class FailedRun:
    """A configuration that could not be measured."""

    query: str
    budget: Budget
    testbed: str
    started_at: str
    failure: str  # the reason, in sentences that name the next step
    tasks: Mapping[str, int] | None = None
    predicted_rate: float | None = None


Run = Measurement | FailedRun


def core_speed_of(runs: Iterable[Measurement]) -> CoreSpeed | None:
    """Return how fast the cores behind `runs` were, the median of those that were timed; None if none was."""
    return typical_of(run.core_speed for run in runs)


def measurement_from_document(document: object, what: str) -> Measurement:
    """Build a measurement from the values of its file; `what` names it in errors."""
    if not isinstance(document, Mapping):
        raise WorkbenchError(f"{what} is a JSON {type(document).__name__}; it must be an object.")
    check_version(
        document.get("version"), VERSION, f"{what} has", "Read it with the workbench that wrote it, or measure again."
    )
    return structure({name: value for name, value in document.items() if name != "version"}, Measurement, what)


def nearest_run(runs: Iterable[Measurement], budget: Budget) -> Measurement | None:
    """Return the run nearest to `budget`, by memory first, then by slots, among those with observed operators.

    It is the latest of several on one budget, since a run is repeated when the one before is doubtful.
    """
    latest = {run.budget: run for run in runs if run.estimate.observation and run.estimate.observation.operators}
    return min(
        latest.values(),
        key=lambda run: (
            abs(run.budget.profile.memory_mb - budget.profile.memory_mb),
            abs(run.budget.slots - budget.slots),
        ),
        default=None,
    )
