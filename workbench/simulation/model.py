"""The cost of a query: its dataflow and, for every operator, what one record costs.

Everything that makes capacity grow otherwise than in proportion to the slots is stated here as a mechanism, never as a
curve of capacity over slots: records that change tasks cost more, keys are skewed, state misses its cache, windows
emit their results in bursts, small heaps are collected more often.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Self

import numpy as np

from workbench.arrays import Floats
from workbench.checks import not_negative, require, whole, within
from workbench.dataflow import Dataflow, OperatorProfile
from workbench.reading import finite_cell, read_rows


@dataclass(frozen=True)
class StateResponse:
    """One operator's response to managed memory, as measured at several memory bounds.

    Between two rows everything is linear, beyond them constant. What counts is memory against state: a task with twice
    the share of the keys it had when it was measured needs twice the memory for the same response.
    """

    memory_mb: tuple[float, ...]  # managed memory of one task, MB, ascending
    hit_rate: tuple[float, ...]  # share of the look-ups that the cache answered, at each
    latency_s: tuple[float, ...]  # mean seconds of one state access
    true_rate: tuple[float, ...]  # records/s of one task that works all the time; state accesses included
    tasks: int = 1  # tasks the operator had then: each held 1 / tasks of the state

    def __post_init__(self) -> None:
        columns = (self.memory_mb, self.hit_rate, self.latency_s, self.true_rate)
        require(
            len({len(column) for column in columns}) == 1 and len(self.memory_mb) > 0,
            f"A state response has columns of {', '.join(str(len(column)) for column in columns)} rows; give as many "
            "of each, at least one.",
        )
        for before, memory in pairwise((0.0, *self.memory_mb)):
            require(
                memory > before,
                f"The memory of a state response is {memory:g} MB after {before:g} MB; it must ascend from above 0. "
                "Give each memory once.",
            )
        for rate in self.hit_rate:
            require(0 <= rate <= 1, f"A hit rate of a state response is {rate:g}; it must be a share from 0 to 1.")
        require(
            all(0 <= wait < math.inf for wait in self.latency_s)
            and all(0 < rate < math.inf for rate in self.true_rate),
            "A state response needs latencies of at least 0 s and true rates above 0 records/s, all finite.",
        )
        require(self.tasks >= 1, f"A state response was measured with {self.tasks!r} tasks; it needs at least 1.")

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], tasks: int = 1) -> Self:
        """Read the columns memory_mb, hit_rate, latency_s and true_rate from a CSV file with a header."""
        names = [field.name for field in fields(cls) if field.name != "tasks"]
        rows = [
            tuple(finite_cell(row[name], f"Line {line} of {path}", name) for name in names)
            for line, row in read_rows(path, f"The response {path}", names, f"It needs {', '.join(names)}.")
        ]
        require(bool(rows), f"{path} has no rows; give at least one below the header.")
        memory, hits, waits, rates = (tuple(column) for column in zip(*sorted(rows), strict=True))
        return cls(memory, hits, waits, rates, tasks)

    def hits(self, memory_mb: float, shares: Floats) -> Floats:
        """Hit rate of tasks with `memory_mb` of managed memory and these shares of the keys, shape (tasks,)."""
        return self._at(memory_mb, shares, self.hit_rate)

    def access_s(self, memory_mb: float, shares: Floats) -> Floats:
        """Mean seconds of one state access, likewise."""
        return self._at(memory_mb, shares, self.latency_s)

    def record_s(self, memory_mb: float, shares: Floats) -> Floats:
        """Seconds per record, likewise: of the interpolated true rates."""
        return 1.0 / self._at(memory_mb, shares, self.true_rate)

    def _at(self, memory_mb: float, shares: Floats, column: tuple[float, ...]) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            asked = np.where(shares > 0, memory_mb / (shares * self.tasks), math.inf)
        return np.asarray(np.interp(asked, self.memory_mb, column))


@dataclass(frozen=True)
class StateModel:
    """State that may exceed memory: every read that misses the cache waits."""

    # what all tasks of the operator together read again and again, MB; a task holds the share of its keys
    working_set_mb: float
    reads: float = 1.0
    miss_s: float = 1e-4  # seconds a read waits when it misses the cache
    hit_s: float = 0.0
    cache_share: float = 0.4  # share of a slot's memory that caches state (Flink's managed memory: 0.4 by default)
    # 0: all of the working set is read equally often; towards 1: fewer and fewer keys get most reads (`hit_rate`)
    locality: float = 0.0
    # what was measured, instead of what `hit_rate` computes: what a record takes beyond the operator's `cpu_s` is then
    # time spent on state; `reads`, `miss_s`, `hit_s` and `locality` do not count
    response: StateResponse | None = None

    def __post_init__(self) -> None:
        for name in ("working_set_mb", "reads", "miss_s", "hit_s"):
            not_negative(f"A state's {name}", getattr(self, name))
        within("A state's cache_share", self.cache_share, 0.0, 1.0, "share of the slot's memory", ends="[]")
        within("A state's locality", self.locality, 0.0, 0.99, "exponent", ends="[]")


@dataclass(frozen=True)
class OperatorModel:
    """The cost of one record in an operator, and how unevenly the records reach its tasks."""

    # CPU seconds (on one full core), bytes of state and of output, and selectivity, each per input record
    profile: OperatorProfile
    # CPU seconds more for a record that comes from another task than the receiving one would be chained to: of p tasks
    # behind a shuffle, a share of 1 - 1/p of the records
    exchange_s: float = 0.0
    # whether results are held back until the query's window ends and then emitted before any further input
    windowed: bool = False
    emission_s: float = 0.0  # CPU seconds per result a windowed operator emits
    hot_share: float = 0.0  # share of the records that have the most frequent key, which one task must take
    imbalance: float = 0.0  # relative standard deviation of the tasks' shares of the other keys
    state: StateModel | None = None  # None: no state, or state that always fits
    # partitions that the keys are in for good, as a checkpoint of Spark freezes them; a task takes whole ones. None: as
    # many as tasks
    partitions: int | None = None
    # what a record costs with 1, 2, ... tasks, relative to `profile`; the last holds for more. Of micro-batches it is
    # what the fixed seconds of tasks take that follow each other on few slots
    slowdown: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        for name in ("exchange_s", "emission_s"):
            not_negative(f"An operator's {name}", getattr(self, name), "seconds")
        if self.partitions is not None:
            whole("An operator's partitions", self.partitions, 1)
        require(
            bool(self.slowdown) and all(0 < one < math.inf for one in self.slowdown),
            f"An operator's slowdown is {self.slowdown!r}; give finite numbers above 0, one for each number of tasks.",
        )
        within("An operator's hot_share", self.hot_share, 0.0, 1.0, "share of the records", ends="[]")
        within("An operator's imbalance", self.imbalance, 0.0, 0.3, "standard deviation / mean", ends="[]")
        if self.state is not None and self.state.response is not None:
            best = max(self.state.response.true_rate)
            require(
                self.profile.cpu_s <= (1 + 1e-9) / best,
                f"cpu_s is {self.profile.cpu_s!r} s, but one task was measured at {best:g} records/s; give the CPU "
                "seconds of that task without its state accesses.",
            )
        require(
            self.windowed or self.emission_s == 0,
            f"emission_s is {self.emission_s!r} for an operator that is not windowed; only a windowed operator emits "
            "by itself. Put the seconds into cpu_s, or set windowed=True.",
        )

    def cpu_s(self, tasks: int) -> float:
        """CPU seconds of a record with this number of tasks, without `exchange_s`."""
        return self.profile.cpu_s * self.slowdown[min(tasks, len(self.slowdown)) - 1]


@dataclass(frozen=True)
class WarmUp:
    """How a fresh deployment reaches its steady speed.

    Code is compiled within `code_s` seconds, from `slowdown` times more CPU per record down to none; caches fill within
    `cache_s`. Both change linearly, so afterwards the deployment is exactly steady.
    """

    code_s: float = 20.0
    slowdown: float = 1.0
    cache_s: float = 20.0

    def __post_init__(self) -> None:
        for name in ("code_s", "slowdown", "cache_s"):
            not_negative(f"A warm-up's {name}", getattr(self, name))

    @property
    def seconds(self) -> float:
        """Age at which the deployment is steady."""
        return max(self.code_s, self.cache_s)

    def cpu_factor(self, age_s: float) -> float:
        """CPU seconds per record, as a multiple of the steady ones."""
        return 1.0 + self.slowdown * max(0.0, 1.0 - age_s / self.code_s) if self.code_s > 0 else 1.0

    def cache_filled(self, age_s: float) -> float:
        """Share of the steady hit rate."""
        return min(1.0, age_s / self.cache_s) if self.cache_s > 0 else 1.0


STEADY = WarmUp(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class QueryModel:
    """A query as the fluid engine sees it."""

    # its operators. The sources lie outside and cost nothing, unless `operators` has a model for one
    dataflow: Dataflow
    operators: Mapping[str, OperatorModel]  # model by operator name, for every operator that is not a source
    # seconds between two ends of windows; all windowed operators share it. None without a windowed operator
    window_s: float | None = None
    # MB of live objects on a slot's heap: collecting garbage takes live / (memory - live) more CPU time
    live_mb: float = 0.0
    # share of the source rate by source; equal shares by default. Sources keep their proportions
    source_shares: Mapping[str, float] = field(default_factory=dict)
    # relative standard deviation of one deployment's speed against another's of the same configuration
    noise: float = 0.0
    warm_up: WarmUp = STEADY  # how a fresh deployment reaches its steady speed

    def __post_init__(self) -> None:
        known = [operator.name for operator in self.dataflow.operators]
        sources = self.dataflow.sources
        require(bool(sources), f"Query {self.name!r} has no operator of kind 'source'; give it one.")
        for name in self.operators:
            require(name in known, f"Query {self.name!r} models the unknown operator {name!r}; it has {listed(known)}.")
        for name in known:
            require(
                name in sources or name in self.operators,
                f"Query {self.name!r} has no model for operator {name!r}; every operator but the sources needs one.",
            )
        for edge in self.dataflow.edges:
            require(
                edge.downstream not in sources,
                f"Edge {edge.upstream} -> {edge.downstream} of query {self.name!r} leads into a source; remove it.",
            )
        windowed = [name for name, model in self.operators.items() if model.windowed]
        for name in windowed:
            require(name not in sources, f"The source {name!r} of query {self.name!r} cannot be windowed.")
        require(
            (self.window_s is None) == (not windowed),
            f"Query {self.name!r} has window_s = {self.window_s!r} and the windowed operators "
            f"{listed(windowed)}; give window_s if and only if an operator is windowed.",
        )
        if self.window_s is not None:
            within(f"window_s of query {self.name!r}", self.window_s, 1e-3, math.inf, "seconds", ends="[)")
        not_negative(f"live_mb of query {self.name!r}", self.live_mb, "MB")
        within(f"The noise of query {self.name!r}", self.noise, 0.0, 1.0, "standard deviation / mean", ends="[]")
        shares = dict(self.source_shares) or {name: 1 / len(sources) for name in sources}
        require(
            set(shares) == set(sources) and min(shares.values()) >= 0 and math.isclose(sum(shares.values()), 1.0),
            f"source_shares of query {self.name!r} is {shares}; it needs one share for each of {listed(sources)}, "
            "none below 0, that add up to 1.",
        )
        object.__setattr__(self, "source_shares", MappingProxyType(shares))
        object.__setattr__(self, "operators", MappingProxyType(dict(self.operators)))

    @property
    def name(self) -> str:
        """Name of the query: its dataflow's."""
        return self.dataflow.name

    @cached_property
    def modelled(self) -> tuple[str, ...]:
        """Operators that have tasks, upstream first."""
        return tuple(name for name in self.dataflow.topological_order() if name in self.operators)

    def operators_in_order(self) -> Iterator[tuple[str, OperatorModel]]:
        """Yield the modelled operators with their models, upstream first."""
        return ((name, self.operators[name]) for name in self.modelled)

    @property
    def minimal_layout(self) -> dict[str, int]:
        """One task for each operator: the smallest deployment."""
        return dict.fromkeys(self.modelled, 1)


def listed(names: Iterable[str]) -> str:
    """Return names in the form of a message."""
    return ", ".join(names) or "none"


def input_ratios(model: QueryModel) -> dict[str, float]:
    """Count the records into each operator per source record, in the long run: `r` of StreamBed's Equation 3."""
    return _spread(model, model.source_shares, stop_at_windows=False)


def waves(model: QueryModel) -> tuple[dict[str, dict[str, float]], ...]:
    """Return records that flow at the same time, by wave: `[head][operator]` enter per record that a head emits.

    Records that a source emits run through the operators until they reach a windowed one, which holds its results back.
    When the window ends, the windowed operators emit, and their results run on to the next windowed ones. A windowed
    operator takes no input while it emits, and it cannot emit while the next ones take none; so the waves of one window
    follow each other, downstream first, the sources last. Windowed operators that have the same number of windowed
    operators behind them emit in one wave, as its heads.
    """
    windowed = [name for name in model.modelled if model.operators[name].windowed]
    inflow = {name: _spread(model, {name: 1.0}) for name in (*windowed, *model.dataflow.sources)}
    height: dict[str, int] = {}
    for name in reversed(windowed):
        behind = [height[other] for other in windowed if other in height and inflow[name].get(other, 0.0) > 0]
        height[name] = 1 + max(behind, default=-1)
    levels = [
        [name for name in windowed if height[name] == level] for level in range(max(height.values(), default=-1) + 1)
    ]
    return tuple({head: inflow[head] for head in heads} for heads in (*levels, model.dataflow.sources))


def _spread(model: QueryModel, emitted: Mapping[str, float], *, stop_at_windows: bool = True) -> dict[str, float]:
    """Count the records into each operator when those in `emitted` emit as given; edges carry all of an output."""
    inputs: dict[str, float] = {}
    outputs: dict[str, float] = {}
    sources = model.dataflow.sources
    for name in model.dataflow.topological_order():
        behaviour = model.operators.get(name)
        received = sum(outputs.get(edge.upstream, 0.0) for edge in model.dataflow.feeding.get(name, ()))
        if name in emitted and name in sources:  # a modelled source works on what it emits
            received = emitted[name]
        if name in emitted and name not in sources:
            outputs[name] = emitted[name]
            continue
        if behaviour is None:
            outputs[name] = received
            continue
        inputs[name] = received
        held_back = stop_at_windows and behaviour.windowed
        outputs[name] = 0.0 if held_back else received * behaviour.profile.selectivity
    return inputs
