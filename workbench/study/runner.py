"""Long work in a thread, watched and cancelled from a notebook whose kernel stays free.

The journal is the progress: every probe is on the disk before it is shown, so what is cancelled, or lost with the
kernel, continues from its last probe when it is started again. Readers get frozen snapshots; ``start`` and ``cancel``
only set flags, so callbacks may call them from any thread.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from workbench.capacity.explore import Configured, Question
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import (
    LOAD_CURVE,
    CapacityEstimator,
    Concluded,
    Configuration,
    Deployed,
    Event,
    Finished,
    Probed,
    Reused,
    describe,
    measure,
    result_of,
)
from workbench.records import Measurement, MstEstimate, Probe
from workbench.study.carry_out import SoFar, study_steps
from workbench.study.planned import Planned
from workbench.study.prepared import prepare, runs_of, testbed_of
from workbench.study.spec import Study
from workbench.testbed import Simulated, SparkTestbed, Testbed
from workbench.workload import Query

State = Literal["idle", "running", "stopping", "cancelled", "failed", "done"]
T = TypeVar("T")

_MOST_LINES = 200
_BEGINS: frozenset[State] = frozenset({"idle", "cancelled", "failed"})
_KINDS: Mapping[type, str] = {Question: "question", Configured: "configured", SoFar: "so_far"}


class CancelledError(BaseException):
    """The work was cancelled; no part of it may treat this as a failure of its own."""


class Line(NamedTuple):
    """One line of the log, and the seconds of work before it."""

    at_s: float
    text: str


@dataclass(frozen=True)
class Snapshot:
    """The state of the work; `run` and `probes` are of the present measurement, without its warm-up."""

    what: str
    state: State = "idle"  # "stopping": cancelled, not yet ended
    elapsed_s: float = 0.0  # of work, without pauses
    step: str = ""
    run: int = 0
    most_runs: int = 1  # at most
    probes: int = 0
    most_probes: int = 0  # at most
    budget: Budget | None = None
    estimate: MstEstimate | None = None  # its bracket so far; None before its first probe
    left_s: float | None = None  # until the end, roughly; None while unknown
    lines: tuple[Line, ...] = ()
    error: tuple[str, str] | None = None  # class and message of what ended the work
    query: str = ""
    ran: bool = True  # on a machine, so that it takes time
    explores: bool = False  # an explorer chooses what is measured, as in a study
    question: Question | None = None  # its last question
    configured: Configured | None = None  # how BIDS2 divides the budget
    so_far: SoFar | None = None  # what the runs show

    @property
    def may_start(self) -> bool:
        """Whether the work can be started or resumed."""
        return self.state in _BEGINS


class Runner(Generic[T]):
    """Carries out one piece of work in a thread of its own; it can be cancelled and resumed.

    `begins` is what is known of the `work` before it is started. Given the runner to report to, the work yields events
    and returns the result; started again it resumes. `estimator` is whose probes are reported; `costs`, whether runs at
    lower rates follow.
    """

    def __init__(
        self,
        begins: Snapshot,
        work: Callable[["Runner[T]"], Generator[Event, None, T]],
        estimator: CapacityEstimator,
        *,
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
        self._now = replace(begins, most_probes=estimator.steps.most_probes)

    def start(self) -> None:
        """Start the work, or resume it; do nothing while it runs or once it is done."""
        with self._lock:
            if not self._now.may_start:
                return
            self._cancel.clear()
            self._since = self._clock()
            self._now = replace(self._now, state="running", step="starting", error=None, run=0)
            self._thread = threading.Thread(target=self._carry_out, name=self._now.what, daemon=True)
            self._thread.start()

    def cancel(self) -> None:
        """Cancel the work; `start` resumes it."""
        self._cancel.set()
        with self._lock:
            if self._now.state == "running":
                self._now = replace(self._now, state="stopping")

    def wait(self, seconds: float | None = None) -> Snapshot:
        """Wait until the work has ended, at most `seconds`, and return its state."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self.snapshot()

    @property
    def result(self) -> T:
        """The result of the work."""
        now = self.snapshot()
        if now.state != "done" or self._result is None:
            error = f" ({now.error[1]})" if now.error else ""
            raise WorkbenchError(
                f"{now.what} has no result yet: it is {now.state}{error}. Start it, or wait until it is done."
            )
        return self._result

    def snapshot(self) -> Snapshot:
        """Return the state of the work."""
        with self._lock:
            now, lines, probes = self._now, tuple(self._lines), tuple(self._probes)
            elapsed = self._elapsed()
            mean = sum(self._seconds) / len(self._seconds) if self._seconds else None
        estimate = None
        if probes and now.budget is not None:
            with suppress(WorkbenchError):  # nothing can be concluded from them: the work itself ends with that error
                estimate = self._estimator.steps.conclude(probes, now.budget.interval_s)
        left = None
        if now.state == "running":
            left = time_left(estimate, self._estimator.tolerance, self._costs, now.most_runs - now.run, mean)
        made = sum(probe.phase != "warm-up" for probe in probes)
        return replace(now, elapsed_s=elapsed, lines=lines, probes=made, estimate=estimate, left_s=left)

    def _elapsed(self) -> float:
        running = self._now.state in {"running", "stopping"}
        return self._worked_s + (self._clock() - self._since if running else 0.0)

    def _carry_out(self) -> None:
        state: State = "done"
        error: tuple[str, str] | None = None
        try:
            self._result = result_of(self._work(self), self._fold)
        except CancelledError:
            state = "cancelled"
        except BaseException as raised:  # noqa: BLE001 - shown as a card; in a thread nobody would see it
            state, error = "failed", (type(raised).__name__, str(raised))
        with self._lock:
            self._worked_s = self._elapsed()
            step = {"done": "finished", "cancelled": "cancelled; what was measured is kept"}.get(state, "failed")
            self._now = replace(self._now, state=state, step=step, error=error)
            self._lines.append(Line(self._worked_s, step if error is None else error[1]))

    def check(self) -> None:
        """End the work if it was cancelled: for a deployment that works for minutes without an event."""
        if self._cancel.is_set():
            raise CancelledError

    def say(self, text: str) -> None:
        """Log one line, and `check`."""
        self._log(text)
        self.check()

    def _log(self, text: str) -> None:
        with self._lock:
            self._lines.append(Line(self._elapsed(), text))
            self._now = replace(self._now, step=text)

    def _fold(self, event: Event) -> None:
        """Fold `event` into the snapshot; finished parts are never discarded."""
        for text in (describe(event) or "").splitlines():
            self._log(text)
        changed: dict[str, Any] = {}
        with self._lock:
            match event:
                case Concluded(what=what) if type(what) in _KINDS:  # shown until the next one of its kind
                    changed = {_KINDS[type(what)]: what}
                case Deployed(budget=budget, resumed=resumed, machine=machine):
                    self._probes[:] = resumed
                    changed = {"run": self._now.run + 1, "budget": budget, "ran": machine.real}
                case Probed(probe=probe):
                    self._probes.append(probe)
                case Finished(measurement=measurement) | Reused(measurement=measurement):
                    self._probes[:] = measurement.estimate.probes
                    self._seconds.append(measurement.estimate.seconds)
                    changed = {"run": self._now.run + isinstance(event, Reused), "budget": measurement.budget}
            self._now = replace(self._now, **changed)
        if not isinstance(event, Finished | Reused):
            self.check()


def measuring(
    query: Query,
    budget: Budget,
    testbed: Testbed,
    journal: Journal,
    estimator: CapacityEstimator | None = None,
    *,
    costs: bool = True,
) -> Runner[Measurement]:
    """Measure one budget in a thread: a runner whose result is the measurement."""
    chosen = estimator or CapacityEstimator()

    def work(report: Runner[Measurement]) -> Generator[Event, None, Measurement]:
        return measure(Configuration(query, budget), _watched(testbed, report), chosen, journal, costs=costs)

    begins = Snapshot(f"{query.name} on {budget.words}", query=query.name, ran=not isinstance(testbed, Simulated))
    return Runner(begins, work, chosen, costs=costs)


def planning(
    study: Study, journal: Journal, testbed: Testbed | None = None, estimator: CapacityEstimator | None = None
) -> Runner[Planned]:
    """Explore and plan a study in a thread: a runner whose result is the planned study."""

    def work(report: Runner[Planned]) -> Generator[Event, None, Planned]:
        watched = _watched(testbed or testbed_of(study, report.say), report)
        return study_steps(prepare(study, journal, progress=report.say, testbed=watched, estimator=estimator))

    begins = Snapshot(
        f"{study.query} for {len(study.targets)} target rates",
        query=study.query,
        most_runs=max(runs_of(study), len(study.space.corners)),
        ran=study.testbed == "spark" if testbed is None else not isinstance(testbed, Simulated),
        explores=True,
    )
    return Runner(begins, work, estimator or CapacityEstimator(tolerance=study.tolerance))


def time_left(
    estimate: MstEstimate | None, tolerance: float, costs: int, later_runs: int, mean_run_s: float | None
) -> float | None:
    """Seconds until the end, roughly, at the pace of the probes so far; None while it is unknown.

    The bracket is halved (in the logarithm) by every probe until it is as narrow as `tolerance`; `costs` more runs
    follow, and `later_runs` measurements that take `mean_run_s` seconds each, at most.
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


def _watched(testbed: Testbed, report: Runner[Any]) -> Testbed:
    """Have Spark, which works for minutes without an event, check for a cancellation meanwhile."""
    if isinstance(testbed, SparkTestbed):
        return replace(testbed, progress=report.say, check_owner=report.check)
    return testbed
