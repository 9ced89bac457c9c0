"""A measurement: the estimate of one query on one budget, with all that is needed to read it later.

It is stored as one versioned JSON file.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from workbench import __version__
from workbench.checks import shown
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.files import write_whole
from workbench.metrics import SourceProfile
from workbench.reading import parse_json, read_text
from workbench.records.documents import Setting, check_version, structure, unstructure
from workbench.records.estimate import MstEstimate, MstInterval, OperatorCost, Probe
from workbench.speed import CoreSpeed, typical_of

SIMULATED, RECORDED = "simulated", "recorded"  # origin of slots that no machine has
_VIRTUAL = {True: "yes", False: "no", None: "unknown"}


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


VERSION = 2


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
        """Cores that the tasks of one slot used at the rate, by the testbed's CPU seconds; None: unknown."""
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
        if seen is None or apart is None or apart.batch_s is None:
            return seen or apart
        return replace(seen, batch_s=apart.batch_s)

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


def measurement_from_dict(data: Mapping[str, Any], what: str = "The measurement") -> Measurement:
    """Build a measurement from plain JSON values; `what` names it in errors."""
    if not isinstance(data, Mapping):
        raise WorkbenchError(f"{what} is {shown(data)}; it must be an object. Measure again.")
    return structure(data, Measurement, what)


def measurement_from_document(document: object, what: str) -> Measurement:
    """Build a measurement from the values of its file; `what` names it in errors."""
    if not isinstance(document, Mapping):
        raise WorkbenchError(f"{what} is a JSON {type(document).__name__}; it must be an object.")
    check_version(
        document.get("version"), VERSION, f"{what} has", "Read it with the workbench that wrote it, or measure again."
    )
    return measurement_from_dict({name: value for name, value in document.items() if name != "version"}, what)


def nearest_run(runs: Iterable[Measurement], budget: Budget) -> Measurement | None:
    """Return the run nearest to `budget`, by memory first, then by slots, among those with observed operators."""
    return min(
        (run for run in runs if run.estimate.observation is not None and run.estimate.observation.operators),
        key=lambda run: (
            abs(run.budget.profile.memory_mb - budget.profile.memory_mb),
            abs(run.budget.slots - budget.slots),
        ),
        default=None,
    )
