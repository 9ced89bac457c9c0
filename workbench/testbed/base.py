"""The seam between estimating and executing: what every testbed offers.

Life cycle: ``deploy`` gives a context manager; inside it one `Run` is live. ``set_rate`` commands a rate and
flushes what had queued up, ``observe`` lets time pass and returns what was seen of whole batches. Leaving
the context removes every process, control group and folder of the deployment.

Cold JVMs differ more than budgets do, and their code takes a minute to warm up. So `WarmTestbed` deploys each memory
profile once, on the most slots; a smaller budget is fewer partitions, cores and quota in the same executor.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Protocol, Self, runtime_checkable

import psutil

from workbench.dataflow import Budget, SlotProfile
from workbench.metrics import Observation, SourceProfile
from workbench.records import Machine
from workbench.workload import Query


class Run(Protocol):
    """One deployment under load."""

    @property
    def budget(self) -> Budget:
        """Slots, their profile and the trigger interval."""

    @property
    def machine(self) -> Machine:
        """The machine that the deployment runs on."""

    @property
    def source(self) -> SourceProfile | None:
        """Cost of the source alone; None if it has none of its own."""

    def set_rate(self, rate: float) -> None:
        """Offer `rate` records/s from the next batch on; inf offers as many records as fit the interval."""

    def settle(self, seconds: float) -> None:
        """Let `seconds` pass unobserved."""

    def await_quiet(self, most_s: float) -> None:
        """Wait until no other load disturbs what is observed, about `most_s` seconds at most; it may be invisible."""

    def observe(self, seconds: float) -> Observation:
        """Let `seconds` pass and report the whole batches in them; raise a `WorkbenchError` when the query failed.

        An overloaded query may need longer: the testbed waits for three whole batches, up to a cap of its own.
        """


class Testbed(Protocol):
    """A place to deploy queries."""

    @property
    def kind(self) -> str:
        """The kind, in one word: ``"spark"``, ``"fluid"`` (simulated) or ``"recorded"``."""

    @property
    def identity(self) -> str:
        """What a measurement depends on in addition to query and budget: only equal ones may be mixed."""

    def operators(self, query: Query) -> tuple[str, ...]:
        """Operators that slots are distributed to; none where stages take turns at all slots, as in micro-batches."""

    def deploy(
        self, query: Query, budget: Budget, layout: Mapping[str, int] | None = None, *, repeat: int | None = None
    ) -> AbstractContextManager[Run]:
        """Deploy `query` on `budget`; a `WorkbenchError` says why they cannot be deployed here.

        Parameters
        ----------
        layout
            Tasks by operator, where the testbed lets them be set; None leaves them to the testbed.
        repeat
            How often this configuration was measured before; a simulated testbed's noise depends on it.
        """


@runtime_checkable
class SharedRun(Run, Protocol):
    """A warm deployment in which several budgets can take turns, so that all of them meet the same machine."""

    @property
    def expected_rate(self) -> float:
        """Records/s to expect from the warm code, or from an earlier turn of the same budget."""

    def turn(self, budget: Budget, layout: Mapping[str, int] | None = None) -> None:
        """Start the query again on `budget`, which has at most the slots deployed; its state begins empty."""

    def empty(self) -> bool:
        """Start the query again with an empty state, and return True; False where that is impossible."""

    def fill(self, least_s: float, most_s: float) -> bool:
        """Let the state reach its working size, within `least_s` to `most_s` seconds; return whether it has.

        Until rows leave a state, it grows, and a query is faster than it will be. A query without state has reached it.
        """


@runtime_checkable
class Sharing(Protocol):
    """A testbed on which budgets of one memory profile can share a deployment."""

    def deploy_shared(self, query: Query, budgets: Sequence[Budget]) -> AbstractContextManager[SharedRun]:
        """Deploy `query` so that each of `budgets`, which differ in their slots and intervals, can take its turn."""


@runtime_checkable
class Simulated(Protocol):
    """A testbed whose time passes on a clock of its own."""

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds."""


_OWN_MB = 2048  # of a deployment, beyond its slots: the driver and the Python workers


@dataclass
class _Deployment:
    """A warm deployment and its context; before its first turn, `begun` is the budget and the layout it has."""

    run: SharedRun
    held: ExitStack
    begun: tuple[Budget, Mapping[str, int] | None] | None


@dataclass
class WarmTestbed:
    """A testbed whose deployments last until it is closed, on a `testbed` where budgets can share them (`Sharing`).

    `budgets` are all that may be deployed; the most slots of a profile are those of its deployment. Deployments of
    other profiles are idle meanwhile.
    """

    testbed: Testbed
    budgets: Sequence[Budget]
    _open: dict[SlotProfile, _Deployment] = field(default_factory=dict, init=False)
    _apart: set[SlotProfile] = field(default_factory=set, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for profile in list(self._open):
            self._close(profile)

    @property
    def kind(self) -> str:
        """The kind of the wrapped testbed."""
        return self.testbed.kind

    @property
    def identity(self) -> str:
        """The identity of the wrapped testbed."""
        return self.testbed.identity

    def operators(self, query: Query) -> tuple[str, ...]:
        """Operators that slots are distributed to."""
        return self.testbed.operators(query)

    def shares(self, profile: SlotProfile) -> bool:
        """Whether the budgets of `profile` take turns in one deployment."""
        return profile not in self._apart

    def part(self, profile: SlotProfile) -> None:
        """Deploy each budget of `profile` separately from now on, because fewer slots would have more memory each."""
        self._apart.add(profile)
        self._close(profile)

    def deploy(
        self, query: Query, budget: Budget, layout: Mapping[str, int] | None = None, *, repeat: int | None = None
    ) -> AbstractContextManager[Run]:
        """Start a turn of `budget` in the deployment of its profile, which is made at first use."""
        if self.shares(budget.profile):
            return self._turn(query, budget, layout)
        return self.testbed.deploy(query, budget, layout, repeat=repeat)

    @contextmanager
    def _turn(self, query: Query, budget: Budget, layout: Mapping[str, int] | None) -> Iterator[Run]:
        profile = budget.profile
        try:
            found = self._open.get(profile) or self._deploy(query, budget)
            if found.begun != (budget, layout):
                found.run.turn(budget, layout)
            found.begun = None  # its state will have the age of this turn: the next one begins again
            yield found.run
            found.run.set_rate(0.0)
        except BaseException:
            self._close(profile)
            raise

    def _deploy(self, query: Query, budget: Budget) -> _Deployment:
        assert isinstance(self.testbed, Sharing)  # noqa: S101 - a study asks before it makes one
        own = [one for one in (*self.budgets, budget) if one.profile == budget.profile]
        most = max(own, key=lambda one: one.slots)
        needed_mb = most.slots * most.profile.memory_mb + _OWN_MB
        for other in list(self._open):
            if psutil.virtual_memory().available < needed_mb << 20:
                self._close(other)
        with ExitStack() as made:
            run = made.enter_context(self.testbed.deploy_shared(query, own))
            self._open[budget.profile] = _Deployment(run, made.pop_all(), (most, None))
        return self._open[budget.profile]

    def _close(self, profile: SlotProfile) -> None:
        if profile in self._open:
            self._open.pop(profile).held.close()
