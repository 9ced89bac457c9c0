"""The seam between estimating and executing: what every testbed offers.

Life cycle: ``deploy`` gives a context manager; inside it one `Run` is live. ``set_rate`` commands a rate and
flushes what had queued up, ``observe`` lets time pass and returns what was seen of whole batches. Leaving
the context removes every process, control group and folder of the deployment.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from workbench.dataflow import Budget
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
