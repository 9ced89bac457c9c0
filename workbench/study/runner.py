"""Long work in a thread, watched and cancelled from a notebook whose kernel stays free.

The journal is the progress: every probe is on the disk before it is shown, so what is cancelled, or lost with the
kernel, goes on from its last probe when it is started again. Readers get frozen snapshots; ``start`` and ``cancel``
only set flags, so callbacks may call them from any thread.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Entry, Journal
from workbench.measuring import LOAD_CURVE, CapacityEstimator, Configuration, measure
from workbench.records import Measurement, MstEstimate, Probe, measurement_from_dict, probe_from_dict
from workbench.study.carry_out import Planned, run_study, testbed_of
from workbench.study.spec import Study
from workbench.testbed import SparkTestbed, Testbed
from workbench.workload import Query

State = Literal["idle", "running", "stopping", "cancelled", "failed", "done"]
T = TypeVar("T")

_MOST_LINES = 200
_BEGINS: frozenset[State] = frozenset({"idle", "cancelled", "failed"})


class CancelledError(BaseException):
    """The work was asked to end; no part of it may take this for a failure of its own."""


@dataclass(frozen=True)
class Line:
    """One line of the log, and the seconds of work before it."""

    at_s: float
    text: str


@dataclass(frozen=True)
class Snapshot:
    """What is known of the work now.

    Parameters
    ----------
    what
        What is worked on.
    state
        ``"idle"``, ``"running"``, ``"stopping"`` (cancelled, not yet ended), ``"cancelled"``, ``"failed"``, ``"done"``.
    elapsed_s
        Seconds of work, pauses left out.
    step
        What is being done.
    run, most_runs
        Number of the present measurement, and how many there are at the most.
    probes, most_probes
        Finished probes of the present measurement, its warm-up not counted, and how many there are at the most.
    budget, estimate
        What the present measurement runs on, and its bracket so far; None before its first probe.
    left_s
        Seconds until the end, roughly; None while nothing tells it.
    lines
        The last lines of the log.
    error
        Class and message of what ended the work.
    query
        Name of the query that is measured.
    """

    what: str
    state: State = "idle"
    elapsed_s: float = 0.0
    step: str = ""
    run: int = 0
    most_runs: int = 1
    probes: int = 0
    most_probes: int = 0
    budget: Budget | None = None
    estimate: MstEstimate | None = None
    left_s: float | None = None
    lines: tuple[Line, ...] = ()
    error: tuple[str, str] | None = None
    query: str = ""

    @property
    def may_start(self) -> bool:
        """Whether the work can be started or resumed."""
        return self.state in _BEGINS


class Report:
    """What the work reports to; every call ends the work if it is to be cancelled."""

    def __init__(self, say: Callable[[str], None], hear: Callable[[Entry], None], check: Callable[[], None]) -> None:
        self._say, self._hear, self.check = say, hear, check

    def say(self, text: str) -> None:
        """Log one line."""
        self._say(text)
        self.check()

    def hear(self, entry: Entry) -> None:
        """Take note of an entry that the journal has, or just got; what is finished is never thrown away."""
        self._hear(entry)
        if entry.kind != "finished":
            self.check()


class WatchedJournal(Journal):
    """A journal that tells what it gets, once that is on the disk, and which finished measurements are asked for."""

    def __init__(self, path: Path, hear: Callable[[Entry], None]) -> None:
        super().__init__(path)
        self._hear = hear

    def append(self, kind: str, key: str, data: object) -> None:
        """Write one line, then tell of it."""
        super().append(kind, key, data)
        self._hear(Entry(kind, key, data))

    def entries(self, kind: str | None = None, key: str | None = None) -> tuple[Entry, ...]:
        """Give finished lines; a finished measurement that is asked for by its key is told of."""
        found = super().entries(kind, key)
        if kind == "finished" and key is not None and found:
            self._hear(found[-1])
        return found


class Runner(Generic[T]):
    """Carries out one piece of work in a thread of its own; it can be cancelled and resumed.

    Parameters
    ----------
    what
        What is worked on, for readers.
    work
        Does it: given what to report to, returns the result. Started again it must go on from its journal.
    estimator
        Whose probes are reported; it brackets the maximum from those so far.
    query
        Name of the query that is measured, for readers.
    most_runs
        Measurements at the most.
    costs
        Whether a measurement goes on with runs at lower rates, for the costs.
    clock
        Seconds.
    """

    def __init__(
        self,
        what: str,
        work: Callable[[Report, Journal], T],
        journal: Journal,
        estimator: CapacityEstimator,
        *,
        query: str = "",
        most_runs: int = 1,
        costs: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._work, self._clock, self._estimator = work, clock, estimator
        self._costs = len(LOAD_CURVE) if costs else 0
        self._lock = threading.Lock()
        self._cancel = threading.Event()
        self._thread: threading.Thread | None = None
        self._result: T | None = None
        self._worked_s, self._since = 0.0, 0.0
        self._lines: deque[Line] = deque(maxlen=_MOST_LINES)
        self._probes: list[Probe] = []
        self._seconds: list[float] = []
        self._report = Report(self._say, self._hear, self._check)
        self._journal = WatchedJournal(journal.path, self._report.hear)
        self._now = Snapshot(what, query=query, most_runs=most_runs, most_probes=_most_probes(estimator))

    def start(self) -> None:
        """Start the work, or resume it; nothing happens while it runs or once it is done."""
        with self._lock:
            if not self._now.may_start:
                return
            self._cancel.clear()
            self._since = self._clock()
            self._now = replace(self._now, state="running", step="starting", error=None, run=0)
            self._thread = threading.Thread(target=self._carry_out, name=self._now.what, daemon=True)
            self._thread.start()

    def cancel(self) -> None:
        """Ask the work to end; it is resumed by `start`."""
        self._cancel.set()
        with self._lock:
            if self._now.state == "running":
                self._now = replace(self._now, state="stopping")

    def wait(self, seconds: float | None = None) -> Snapshot:
        """Wait until the work has ended, at most `seconds`, and tell how it stands."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
        return self.snapshot()

    @property
    def result(self) -> T:
        """What the work returned.

        Raises
        ------
        WorkbenchError
            While there is none.
        """
        now = self.snapshot()
        if now.state != "done" or self._result is None:
            told = f" ({now.error[1]})" if now.error else ""
            raise WorkbenchError(
                f"{now.what} has no result yet: it is {now.state}{told}. Start it, or wait until it is done."
            )
        return self._result

    def snapshot(self) -> Snapshot:
        """Tell how the work stands."""
        with self._lock:
            now, lines, probes = self._now, tuple(self._lines), tuple(self._probes)
            elapsed = self._elapsed()
            mean = sum(self._seconds) / len(self._seconds) if self._seconds else None
        estimate = None
        if probes and now.budget is not None:
            with suppress(WorkbenchError):  # nothing can be concluded from them: the work ends by saying so
                estimate = self._estimator.conclude(probes, self._estimator.settings(now.budget.interval_s))
        left = None
        if now.state == "running":
            left = time_left(estimate, self._estimator.tolerance, self._costs, now.most_runs - now.run, mean)
        return replace(now, elapsed_s=elapsed, lines=lines, estimate=estimate, left_s=left)

    def _elapsed(self) -> float:
        running = self._now.state in {"running", "stopping"}
        return self._worked_s + (self._clock() - self._since if running else 0.0)

    def _carry_out(self) -> None:
        state: State = "failed"
        error: tuple[str, str] | None = None
        try:
            self._result = self._work(self._report, self._journal)
            state = "done"
        except CancelledError:
            state = "cancelled"
        except BaseException as raised:  # noqa: BLE001 - shown as a card; in a thread nobody would see it
            error = (type(raised).__name__, str(raised))
        with self._lock:
            self._worked_s = self._elapsed()
            step = {"done": "finished", "cancelled": "cancelled; what was measured is kept"}.get(state, "failed")
            self._now = replace(self._now, state=state, step=step, error=error)
            self._lines.append(Line(self._worked_s, step if error is None else error[1]))

    def _check(self) -> None:
        if self._cancel.is_set():
            raise CancelledError

    def _say(self, text: str) -> None:
        with self._lock:
            self._lines.append(Line(self._elapsed(), text))
            self._now = replace(self._now, step=text)

    def _hear(self, entry: Entry) -> None:
        """Take note of what the journal got."""
        if entry.kind == "deployed":
            before = tuple(_unfinished(self._journal, entry.key))
            budget = _budget(entry.data["budget"])
            with self._lock:
                self._probes[:] = before
                self._now = replace(self._now, run=self._now.run + 1, probes=_count(before), budget=budget)
        elif entry.kind == "probe":
            with self._lock:
                self._probes.append(probe_from_dict(entry.data))
                self._now = replace(self._now, probes=_count(self._probes))
        elif entry.kind == "finished":
            self._finished(measurement_from_dict(entry.data, "A recorded measurement"))

    def _finished(self, measurement: Measurement) -> None:
        """Show a finished measurement, whether it was made now or is recorded."""
        with self._lock:
            probes = measurement.estimate.probes
            if tuple(self._probes) != probes:
                self._now = replace(self._now, run=self._now.run + 1)
            self._probes[:] = probes
            self._seconds.append(measurement.estimate.seconds)
            self._now = replace(self._now, probes=_count(probes), budget=measurement.budget)


def measuring(
    query: Query,
    budget: Budget,
    testbed: Testbed,
    journal: Journal,
    estimator: CapacityEstimator | None = None,
    *,
    costs: bool = True,
    output: Path | None = None,
) -> Runner[Measurement]:
    """Measure one budget in a thread: a runner whose result is the measurement.

    Parameters
    ----------
    query, budget, testbed, estimator
        What is measured, and how; see `workbench.capacity.measure`.
    journal
        Where every probe is recorded; a cancelled measurement goes on from there.
    costs
        Whether to add short runs at lower rates, which tell fixed from per-record costs.
    output
        Where the measurement is written as JSON.
    """
    chosen = estimator or CapacityEstimator()

    def work(report: Report, watched: Journal) -> Measurement:
        return measure(
            Configuration(query, budget),
            _watched(testbed, report),
            chosen,
            watched,
            costs=costs,
            progress=report.say,
            output=output,
        )

    profile = budget.profile
    return Runner(
        f"{query.name} on {budget.slots} slots of {profile.cpus:g} core and {profile.memory_mb} MB",
        work,
        journal,
        chosen,
        query=query.name,
        costs=costs,
    )


def planning(
    study: Study, journal: Journal, testbed: Testbed | None = None, estimator: CapacityEstimator | None = None
) -> Runner[Planned]:
    """Explore and plan a study in a thread: a runner whose result is the planned study.

    Parameters
    ----------
    study
        What to plan.
    journal
        Where every probe is recorded; finished measurements are not repeated.
    testbed, estimator
        Where and how to measure; as the study says by default.
    """

    def work(report: Report, watched: Journal) -> Planned:
        chosen = testbed or testbed_of(study, report.say)
        return run_study(study, watched, progress=report.say, testbed=_watched(chosen, report), estimator=estimator)

    return Runner(
        f"{study.query} for {len(study.targets)} target rates",
        work,
        journal,
        estimator or CapacityEstimator(tolerance=study.tolerance),
        query=study.query,
        most_runs=max(study.most_runs, len(study.space.corners)),
    )


def time_left(
    estimate: MstEstimate | None, tolerance: float, costs: int, later_runs: int, mean_run_s: float | None
) -> float | None:
    """Seconds until the end, roughly, at the pace of the probes so far; None while nothing tells it.

    The bracket is halved (in the logarithm) by every probe until it is as narrow as `tolerance`; `costs` more runs
    follow, and `later_runs` measurements that take `mean_run_s` seconds each, at the most.
    """
    made = [probe.seconds for probe in estimate.probes if probe.phase == "probe"] if estimate is not None else []
    if estimate is None or not made or estimate.low <= 0 or math.isinf(estimate.high):
        return None
    width = math.log(estimate.high / estimate.low) / math.log1p(tolerance)
    probes = math.ceil(math.log2(max(1.0, width - 1e-6)))
    here = (probes + costs) * sum(made) / len(made)
    if later_runs <= 0:
        return here
    return here + later_runs * (mean_run_s or estimate.seconds + here)


def _watched(testbed: Testbed, report: Report) -> Testbed:
    """Let Spark, which works for minutes at a stretch, look for a cancellation meanwhile."""
    if isinstance(testbed, SparkTestbed):
        return replace(testbed, progress=report.say, check_owner=report.check)
    return testbed


def _unfinished(journal: WatchedJournal, key: str) -> list[Probe]:
    """Probes of the measurement `key` since it was last finished."""
    probes: list[Probe] = []
    for entry in journal.entries(key=key):
        if entry.kind in {"finished", "given up"}:
            probes = []
        elif entry.kind == "probe":
            probes.append(probe_from_dict(entry.data))
    return probes


def _budget(data: Mapping[str, Any]) -> Budget:
    return Budget(data["slots"], SlotProfile(**data["profile"]), data["interval_s"])


def _count(probes: Iterable[Probe]) -> int:
    return sum(probe.phase == "probe" for probe in probes)


def _most_probes(estimator: CapacityEstimator) -> int:
    return estimator.max_probes if estimator.schedule == "adaptive" else estimator.published.probes
