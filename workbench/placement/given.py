"""What is placed, and what was asked of the file that describes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low

from workbench.placement.problem import PlacementProblem
from workbench.simulation import Worker


@dataclass(frozen=True)
class PlacementInput:
    """What to place.

    Parameters
    ----------
    queries
        Problem of each query, all on the same cluster.
    rate
        Source rate of the loads, records/s; None if it was not said.
    worker
        Capacities of a worker of speed 1.
    basis
        One sentence: what the rates of placements rest on; empty where the problem itself says.
    unit_cpus
        Cores of one unit of CPU. Loads of a plan are in slots, because no task has more than one.
    chosen
        Which of several plans is placed, and the rates of the others; empty where there is no choice.
    sized
        Whether speeds of the workers were given, so that another number of workers needs others.
    alike
        Why any placement carries the same, and what is left to choose; empty where placements differ.
    """

    queries: Mapping[str, PlacementProblem]
    rate: float | None = None
    worker: Worker = field(default_factory=Worker)
    basis: str = ""
    unit_cpus: float = 1.0
    chosen: str = ""
    sized: bool = False
    alike: str = ""

    @property
    def speeds_with_one_more(self) -> tuple[float, ...]:
        """Speeds of the workers and of one more; empty where none need to be given.

        One more is taken for as fast as the middle one, of an even number the slower of the two: at least half of the
        workers are as slow or slower, and the next need not be slow because one is.
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
class Asked:
    """What is asked of a file; see `read_placement_input` for all but the first."""

    what: str  # the file, as errors name it
    # workers, slots, rate, speeds, room: none: as the file says
    workers: int | None = None
    slots: int | None = None
    rate: float | None = None
    speeds: Sequence[float] | None = None
    room: int | None = None
