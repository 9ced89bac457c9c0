"""The vocabulary: what is deployed, and on what.

A *dataflow* is a directed acyclic graph of *operators*. On Spark an operator is a stage, the chain
between two exchanges, as CAPSys treats a chain. A *slot* runs one *task* at a time. A *slot profile* is a
slot's share of a core and its memory. A *budget* is a number of slots of one profile, with a trigger
interval.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Literal, get_args

from workbench import bounds, units
from workbench.checks import not_negative, positive, require, within
from workbench.errors import WorkbenchError

Partitioning = Literal["shuffle", "forward"]


@dataclass(frozen=True)
class Operator:
    """One operator of a dataflow."""

    name: str  # unique within its dataflow
    kind: str  # free text; only "source" has a meaning
    stateful: bool = False  # whether its tasks keep state between records

    def __post_init__(self) -> None:
        require(bool(self.name), "An operator's name is empty; give it a name.")


@dataclass(frozen=True)
class Edge:
    """Records flow from `upstream` to `downstream`, all to all (``"shuffle"``) or one to one (``"forward"``)."""

    upstream: str
    downstream: str
    partitioning: Partitioning = "shuffle"

    def __post_init__(self) -> None:
        require(
            self.partitioning in get_args(Partitioning),
            f"Edge {self.upstream} -> {self.downstream} has partitioning {self.partitioning!r}; "
            f"use one of {', '.join(get_args(Partitioning))}.",
        )


@dataclass(frozen=True)
class Dataflow:
    """An acyclic graph of operators, each name used once and each end of an edge among them: else a WorkbenchError."""

    name: str
    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        names = [operator.name for operator in self.operators]
        require(bool(names), f"Dataflow {self.name!r} has no operators; give it at least one.")
        counts = Counter(names)
        for name in names:
            require(counts[name] == 1, f"Dataflow {self.name!r} has two operators named {name!r}; rename one.")
        for edge in self.edges:
            for end in (edge.upstream, edge.downstream):
                if end not in counts:
                    raise WorkbenchError(
                        f"Edge {edge.upstream} -> {edge.downstream} of dataflow {self.name!r} names the unknown "
                        f"operator {end!r}; the operators are {', '.join(names)}."
                    )
        try:
            self.topological_order()
        except CycleError as error:
            raise WorkbenchError(
                f"Dataflow {self.name!r} has the cycle {' -> '.join(error.args[1])}; a dataflow must be acyclic."
            ) from error

    def topological_order(self) -> tuple[str, ...]:
        """Operator names, each after its upstream operators."""
        return self._order

    @cached_property
    def _order(self) -> tuple[str, ...]:
        sorter: TopologicalSorter[str] = TopologicalSorter({operator.name: () for operator in self.operators})
        for edge in self.edges:
            sorter.add(edge.downstream, edge.upstream)
        return tuple(sorter.static_order())

    @cached_property
    def feeding(self) -> Mapping[str, tuple[Edge, ...]]:
        """Edges that lead to each operator, by its name; operators without such edges are left out."""
        found: dict[str, list[Edge]] = {}
        for edge in self.edges:
            found.setdefault(edge.downstream, []).append(edge)
        return {name: tuple(edges) for name, edges in found.items()}

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Names of the operators of kind ``"source"``."""
        return tuple(operator.name for operator in self.operators if operator.kind == "source")


@dataclass(frozen=True)
class SlotProfile:
    """The resources of one slot: `cpus` cores (a fraction is a CPU quota) and `memory_mb` MiB."""

    cpus: float
    memory_mb: int

    def __post_init__(self) -> None:
        within("A slot's cpus", self.cpus, bounds.LEAST_CPUS, bounds.CPUS, "cores", ends="[]")
        within("A slot's memory_mb", self.memory_mb, 0, bounds.MEMORY_MB, "MB", ends="(]")


@dataclass(frozen=True)
class Budget:
    """A number of slots of one profile, and the trigger interval (seconds)."""

    slots: int
    profile: SlotProfile
    interval_s: float = 2.0

    def __post_init__(self) -> None:
        require(
            isinstance(self.slots, int) and self.slots >= 1,
            f"slots is {self.slots!r}; it must be a whole number of at least 1.",
        )
        positive("The trigger interval", self.interval_s, "seconds")

    @property
    def words(self) -> str:
        """Slots and their profile for a reader, such as ``"2 slots of 0.4 core and 1,024 MB"``."""
        return f"{units.some(self.slots, 'slot')} of {self.profile.cpus:g} core and {self.profile.memory_mb:,} MB"

    @property
    def memory_mb(self) -> int:
        """Total memory of the slots, MiB."""
        return self.slots * self.profile.memory_mb

    @property
    def cpus(self) -> float:
        """Total cores of the slots."""
        return self.slots * self.profile.cpus


@dataclass(frozen=True)
class OperatorProfile:
    """Unit costs of one operator, per input record."""

    cpu_s: float
    state_bytes: float  # read from and written to state
    output_bytes: float  # sent downstream
    selectivity: float  # records out per record in

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            not_negative(f"{name} of an operator profile", value)
