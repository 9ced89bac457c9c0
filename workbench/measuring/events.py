"""Events of a measurement, as types.

``measure`` yields them; the command line, the live panel and the dry run read them. Those that a later run resumes
from are in the journal before they are yielded, one line each:

=============  ===================  ==========================================
event          kind in the journal  data
=============  ===================  ==========================================
`Deployed`     ``deployed``         facts of the machine and the budget
`Probed`       ``probe``            the probe
`LoadProbed`   ``load``             the probe
`Finished`     ``finished``         the measurement
`Abandoned`    ``given up``         the reason
=============  ===================  ==========================================
"""

import math
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Protocol, TypeVar

from workbench.checks import shown
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.journal import Entry, Journal
from workbench.records import FailedRun, Machine, Measurement, Probe, measurement_from_dict, structure, unstructure

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
    """A probe of the estimate, or its warm-up, is finished.

    `low` and `high` are the bracket so far, records/s, which no journal keeps: 0 and infinity where it is open.
    """

    key: str
    probe: Probe
    low: float = field(default=0.0, compare=False)
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
            return Finished(key, measurement_from_dict(data, "The recorded measurement"))
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
