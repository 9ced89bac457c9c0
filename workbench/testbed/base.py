"""The seam between estimating and executing: what every testbed offers.

Life cycle: ``deploy`` gives a context manager; inside it one `Run` is live. ``set_rate`` commands a rate and
flushes what had queued up, ``observe`` lets time pass and returns what was seen of whole batches. Leaving
the context removes every process, control group and folder of the deployment.
"""

from contextlib import AbstractContextManager
from typing import Protocol

from workbench.dataflow import Budget
from workbench.metrics import Observation
from workbench.workload.query import Query


class Run(Protocol):
    """One deployment under load."""

    @property
    def budget(self) -> Budget:
        """Slots, their profile and the trigger interval."""
        ...

    def set_rate(self, rate: float) -> None:
        """Offer `rate` records/s from the next batch on; inf offers as much as fits the interval."""
        ...

    def settle(self, seconds: float) -> None:
        """Let `seconds` pass unobserved."""
        ...

    def observe(self, seconds: float) -> Observation:
        """Let `seconds` pass and report the whole batches in them.

        An overloaded query may need longer for a few whole batches; the testbed then waits for at least three,
        up to a cap of its own.

        Raises
        ------
        WorkbenchError
            When the query failed.
        """
        ...


class Testbed(Protocol):
    """A place to deploy queries."""

    def deploy(self, query: Query, budget: Budget) -> AbstractContextManager[Run]:
        """Deploy `query` on `budget`.

        Raises
        ------
        WorkbenchError
            When the query or the budget cannot be deployed here; the message says why.
        """
        ...
