"""What a caller asks to be placed on which workers, and what a file makes of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low

from workbench.placement.problem import PlacementProblem
from workbench.simulation import Worker


@dataclass(frozen=True)
class PlacementInput:
    """The problem to place, and what is known about it."""

    queries: Mapping[str, PlacementProblem]  # problem of each query, all on the same cluster
    rate: float | None = None  # source rate of the loads, records/s; None if unknown
    worker: Worker = field(default_factory=Worker)  # capacities of a worker of speed 1
    basis: str = ""  # one sentence on what the rates of placements rest on; empty if the problem itself has them
    unit_cpus: float = 1.0  # cores per unit of CPU. Loads of a plan are in slots, because no task has more than one.
    chosen: str = ""  # which of several plans is placed, and the rates of the others; empty where there is no choice
    sized: bool = False  # whether speeds of the workers were given, so that another number of workers needs others
    alike: str = ""  # why any placement carries the same rate, and what is left to choose; empty if placements differ

    @property
    def speeds_with_one_more(self) -> tuple[float, ...]:
        """Speeds of the workers and of one more; empty where none need to be given.

        The one more is as fast as the middle one, of an even number the slower of the two.
        """
        speeds = self.problem.speeds
        return (*speeds, median_low(speeds)) if self.sized else ()

    @property
    def problem(self) -> PlacementProblem:
        """All queries as one graph; operators keep their names if there is only one."""
        if len(self.queries) == 1:
            return next(iter(self.queries.values()))
        return PlacementProblem.together(self.queries)


@dataclass(frozen=True)
class Request:
    """Parameters of ``read_placement_input``, with `what` as the file's name in errors; None: as in the file."""

    what: str
    workers: int | None
    slots: int | None
    rate: float | None
    speeds: Sequence[float] | None
    room: int | None

    @property
    def anywhere(self) -> bool:
        """Whether the workers are unspecified."""
        return self.workers is self.slots is self.room is None

    def workers_of(self, slots: int) -> int | None:
        """Return the requested workers, or as many as the room takes."""
        if self.workers is not None or self.room is None:
            return self.workers
        return math.ceil(self.room / max(1, slots))
