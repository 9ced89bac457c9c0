"""Events of a measurement, as types and in words, and the state that they add up to.

``measure`` yields them; the command line, the live panel and the dry run read them. Those that a later run resumes
from are in the journal before they are yielded, one line each, as `record` writes it.
"""

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Protocol, TypeVar

from workbench import units
from workbench.checks import shown
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.journal import Entry, Journal
from workbench.records import FailedRun, Machine, Measurement, Probe, structure, unstructure

T = TypeVar("T")


@dataclass(frozen=True)
class Deployed:
    """The query runs on `budget`; `resumed` and `load_curve` are taken over from an interrupted measurement."""

    key: str
    machine: Machine
    budget: Budget
    resumed: tuple[Probe, ...] = ()
    load_curve: tuple[Probe, ...] = ()


@dataclass(frozen=True)
class Probed:
    """A probe of the estimate, or its warm-up, is finished."""

    key: str
    probe: Probe
    low: float = field(default=0.0, compare=False)  # the bracket so far, records/s, which no journal keeps
    high: float = field(default=math.inf, compare=False)


@dataclass(frozen=True)
class LoadProbed:
    """A run at a lower rate is finished, which separates fixed from per-record costs."""

    key: str
    probe: Probe


@dataclass(frozen=True)
class _OfMeasurement:
    key: str
    measurement: Measurement


class Finished(_OfMeasurement):
    """The measurement is complete."""


class Reused(_OfMeasurement):
    """The journal had the measurement, so nothing was deployed."""


class Estimated(_OfMeasurement):
    """The maximum of a budget is known; runs for its costs may follow."""


@dataclass(frozen=True)
class Abandoned:
    """The recorded part cannot be resumed; the measurement starts again."""

    key: str
    reason: str


@dataclass(frozen=True)
class Failed:
    """The measurement ended with an error that other measurements may not have."""

    run: FailedRun


class Conclusion(Protocol):
    """What follows from the runs so far: the next budget, its layout, or the answers that are possible by now."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The conclusion in words, one line each."""


@dataclass(frozen=True)
class Concluded:
    """The explorer, the optimizer or the model has drawn a conclusion from the runs so far."""

    what: Conclusion


Event = Deployed | Probed | LoadProbed | Estimated | Finished | Reused | Abandoned | Failed | Concluded


def record(journal: Journal, event: Deployed | Probed | LoadProbed | Finished | Abandoned) -> Event:
    """Write `event` to the journal, and return it once it is on the disk."""
    match event:
        case Deployed(key, machine, budget):
            journal.append("deployed", key, {"machine": asdict(machine), "budget": asdict(budget)})
        case Probed(key, probe):
            journal.append("probe", key, unstructure(probe))
        case LoadProbed(key, probe):
            journal.append("load", key, unstructure(probe))
        case Finished(key, measurement):
            journal.append("finished", key, unstructure(measurement))
        case Abandoned(key, reason):
            journal.append("given up", key, {"reason": reason})
    return event


def recorded(journal: Journal, key: str | None = None) -> Iterator[Event]:
    """Read the events of `key`, or of all measurements, in the order in which they were recorded."""
    for entry in journal.entries(key=key):
        event = event_of(entry, f"the journal {journal.path}")
        if event is not None:
            yield event


def event_of(entry: Entry, journal: str = "the journal") -> Event | None:
    """Read the event of a line of `journal`, whose name is for errors; None for kinds not of measuring."""
    try:
        return _event_of(entry)
    except WorkbenchError as error:
        raise WorkbenchError(f"Line {entry.line} of {journal}: {error} Or delete that line.") from error


def _event_of(entry: Entry) -> Event | None:
    key, data = entry.key, entry.data
    if entry.kind in _KINDS and not isinstance(data, Mapping):
        raise WorkbenchError(f"the content of {entry.kind!r} is {shown(data)}; it must be an object.")
    for name in _KINDS.get(entry.kind, ()):
        if name not in data:
            raise WorkbenchError(f"the content of {entry.kind!r} lacks {name!r}.")
    match entry.kind:
        case "deployed":
            machine = structure(data["machine"], Machine, "The recorded machine")
            return Deployed(key, machine, structure(data["budget"], Budget, "The recorded budget"))
        case "probe" | "load":
            probe = structure(data, Probe, "The recorded probe")
            return Probed(key, probe) if entry.kind == "probe" else LoadProbed(key, probe)
        case "finished":
            return Finished(key, structure(data, Measurement, "The recorded measurement"))
        case "given up":
            return Abandoned(key, str(data["reason"]))
    return None


_KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"deployed": ("machine", "budget"), "probe": (), "load": (), "finished": (), "given up": ("reason",)}
)
"""The kinds of events that are recorded, each with the keys that it must have."""


def ignore(_: Event) -> None:
    """Ignore an event."""


def result_of(events: Generator[Event, None, T], listen: Callable[[Event], None] = ignore) -> T:
    """Carry `events` out, pass each to `listen`, and return their result; the deployment is released in any case."""
    with closing(events):
        while True:
            try:
                event = next(events)
            except StopIteration as end:
                result: T = end.value
                return result
            listen(event)


@dataclass(frozen=True)
class Deployment:
    """What one deployment contributed to a measurement; code warms up again in each."""

    probes: tuple[Probe, ...] = ()
    load_curve: tuple[Probe, ...] = ()


@dataclass(frozen=True)
class State:
    """The progress of a measurement."""

    finished: tuple[Measurement, ...] = ()
    deployments: tuple[Deployment, ...] = ()  # observations since it was last finished or abandoned

    @property
    def history(self) -> tuple[Probe, ...]:
        """Probes of the estimate under way, in order."""
        return tuple(probe for deployment in self.deployments for probe in deployment.probes)

    @property
    def load_curve(self) -> tuple[Probe, ...]:
        """Runs at lower rates since it was last finished, in order."""
        return tuple(probe for deployment in self.deployments for probe in deployment.load_curve)


def replay(journal: Journal, key: str) -> State:
    """Fold the events in `journal` of the measurement `key`."""
    return fold(recorded(journal, key))


def last_finished(journal: Journal, key: str) -> Measurement | None:
    """Return the measurement `key` that was finished last; earlier ones, of which there may be many, are not read."""
    finished = journal.entries("finished", key)
    event = event_of(finished[-1], f"the journal {journal.path}") if finished else None
    return event.measurement if isinstance(event, Finished) else None


def fold(events: Iterable[Event]) -> State:
    """Return the state after `events`."""
    finished: list[Measurement] = []
    deployments: list[tuple[list[Probe], list[Probe]]] = []  # probes and load curve of each
    for event in events:
        match event:
            case Finished(_, measurement):
                finished.append(measurement)
                deployments = []
            case Abandoned():
                deployments = []
            case Deployed():
                deployments.append(([], []))
            # A probe without a deployment is another process's, which measured the same while this one finished it.
            case Probed(_, probe) if deployments:
                deployments[-1][0].append(probe)
            case LoadProbed(_, probe) if deployments:
                deployments[-1][1].append(probe)
    return State(tuple(finished), tuple(Deployment(tuple(probes), tuple(curve)) for probes, curve in deployments))


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
    made = units.some(estimate.probed, "probe")
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
