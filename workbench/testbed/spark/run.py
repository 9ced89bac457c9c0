"""``SparkRun``: a running deployment on Spark, as its driver process answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from workbench import units
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.metrics import Observation, SourceProfile
from workbench.records import Machine
from workbench.testbed.spark.driver.process import answer, ended, go_on
from workbench.testbed.spark.driver.spec import Turn


@dataclass
class SparkRun:
    """One live deployment; see `workbench.testbed.base.SharedRun`."""

    budget: Budget
    machine: Machine
    source: SourceProfile
    expected_rate: float
    _connection: Connection
    _layout: Mapping[str, int] | None = None
    _restarts: bool = True  # whether its rows begin again with the query
    _check: Callable[[], None] = go_on
    _output: Callable[[], str] = str
    _progress: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        self.deployed = self.budget

    def turn(self, budget: Budget, layout: Mapping[str, int] | None = None) -> None:
        """Continue with `budget` in the same executor: the query starts again, with warm code and an empty state."""
        if budget.slots > self.deployed.slots or budget.profile != self.deployed.profile:
            raise WorkbenchError(
                f"{units.some(budget.slots, 'slot')} of {budget.profile.cpus:g} core and "
                f"{budget.profile.memory_mb:,} MB cannot take a turn in a deployment of "
                f"{units.some(self.deployed.slots, 'slot')} of {self.deployed.profile.cpus:g} core and "
                f"{self.deployed.profile.memory_mb:,} MB. Give at most its slots, of its profile.",
                settings=("slots",),
            )
        self.source, self.expected_rate = self._ask("turn", Turn(budget, *partitions(layout or {}, budget)))
        self.budget, self._layout = budget, layout

    def empty(self) -> bool:
        """Start the query again with an empty state; False on a cluster, and for a topic, which is read on."""
        if self._restarts:
            self.turn(self.budget, self._layout)
        return self._restarts

    def set_rate(self, rate: float) -> None:
        """Offer `rate` records/s from the next batch on; inf offers the maximum rate that fits the interval."""
        self._ask("rate", rate)

    def settle(self, seconds: float) -> None:
        """Let `seconds` pass unobserved."""
        self._ask("settle", seconds)

    def fill(self, least_s: float, most_s: float) -> bool:
        """Let the state reach its working size, within `least_s` to `most_s` seconds; return whether it has."""
        filled: bool = self._ask("fill", (least_s, most_s))
        return filled

    def await_quiet(self, most_s: float) -> None:
        """Wait for disturbing load on the machine to end, about `most_s` seconds at most."""
        self._ask("await_quiet", most_s)

    def observe(self, seconds: float) -> Observation:
        """Let `seconds` pass and report the complete batches in them."""
        observation: Observation = self._ask("observe", seconds)
        return observation

    def _ask(self, verb: str, value: float | Turn | tuple[float, float]) -> Any:  # noqa: ANN401
        try:
            self._connection.send((verb, value))
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ended(self._output()) from error
        return answer(self._connection, self._progress, self._check, self._output)


def partitions(layout: Mapping[str, int], budget: Budget) -> tuple[int, int]:
    """Return the numbers of partitions of the source and of the state."""
    unknown = layout.keys() - {"source", "state"}
    wrong = [count for count in layout.values() if not isinstance(count, int) or count < 1]
    if unknown or wrong:
        raise WorkbenchError(
            f"The layout {dict(layout)!r} cannot be deployed on Spark: it may set 'source' and 'state' to whole "
            "numbers of at least 1. Leave out the rest."
        )
    return layout.get("source", budget.slots), layout.get("state", budget.slots)
