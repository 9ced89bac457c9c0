"""``FluidTestbed``: deploys query models on the fluid engine, on a simulated clock.

For what no machine here can run, hundreds of slots, and for tests with a known truth.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from workbench import units
from workbench.checks import positive, within
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.metrics import OperatorMetrics, TaskSample
from workbench.records import SIMULATED, Machine
from workbench.simulation import (
    PRESETS,
    Deployment,
    QueryModel,
    State,
    advance,
    preset,
    short_name,
    speed_factor,
    steady_state,
    stream,
    whole_step,
)
from workbench.testbed.pipelined import Engine, PipelinedRun, Repeats, SimulatedClock
from workbench.workload import Query

_JITTER_LIMIT = 3.0
_ROUNDING = 1e-9


@dataclass(frozen=True)
class FluidTestbed:
    """Deploys query models on simulated slots.

    The noise of a deployment depends on the seed, the configuration (query, slot profile, layout) and how often that
    was deployed before (`repeat`), not on the order of measurements, and that of an observation in it on the commanded
    rate: so an exploration that is resumed sees the same numbers. The `clock` has the simulated seconds of all runs;
    give it to an estimator: ``CapacityEstimator(clock=testbed.clock)``.
    """

    seed: int = 0  # of all noise
    noise: float | None = None  # relative standard deviation of a deployment's speed, so of its MST; None: the query's
    jitter: float = 0.01  # relative standard deviation of the speed from step to step
    buffer_s: float = 0.0  # input a task can hold, seconds of its work
    step_s: float = 0.5  # longest step of the engine
    models: Sequence[QueryModel] = ()  # those that can be asked for by name, in addition to the presets
    clock: SimulatedClock = field(default_factory=SimulatedClock, compare=False, repr=False)
    _repeats: Repeats = field(default_factory=Repeats, init=False, compare=False, repr=False)
    kind = "fluid"

    def __post_init__(self) -> None:
        for name, high in (("noise", 1.0), ("jitter", 0.3)):
            if (value := getattr(self, name)) is not None:
                within(name, value, 0, high, "standard deviation / mean", ends="[]")
        positive("step_s", self.step_s, "seconds")

    @property
    def identity(self) -> str:
        """See `workbench.testbed.Testbed`."""
        noise = "of the query" if self.noise is None else f"{self.noise:g}"
        models = f", models {hashlib.sha256(repr(self.models).encode()).hexdigest()[:8]}" if self.models else ""
        return (
            f"fluid, seed {self.seed}, noise {noise}, jitter {self.jitter:g}, buffer {self.buffer_s:g} s, "
            f"step {self.step_s:g} s{models}"
        )

    def model(self, query: Query | QueryModel | str) -> QueryModel:
        """Find the model of `query`: itself, or the one of its name (``"q5"``, ``"nexmark:q5"``)."""
        if isinstance(query, QueryModel):
            return query
        name = short_name(query if isinstance(query, str) else query.name)
        known = {model.name: model for model in self.models}
        if name in known:
            return known[name]
        if name in PRESETS:
            return preset(name)
        raise WorkbenchError(
            f"The fluid testbed has no model of query {name!r}; it has {', '.join((*known, *PRESETS))}. Use one of "
            "these, or give a QueryModel."
        )

    def operators(self, query: Query | QueryModel | str) -> tuple[str, ...]:
        """Operators that slots can be distributed to: all but the sources, upstream first."""
        return self.model(query).modelled

    @contextmanager
    def deploy(
        self,
        query: Query | QueryModel | str,
        budget: Budget,
        layout: Mapping[str, int] | None = None,
        *,
        repeat: int | None = None,
    ) -> Iterator[PipelinedRun]:
        """Deploy `query`, a model or what has the name of one, on slots that hold one task each, sources not counted.

        A `layout` has as many tasks as there are slots; None deals these out evenly, upstream operators first. Without
        `repeat`, it is how often this testbed deployed the configuration.
        """
        model = self.model(query)
        tasks, profile = _layout(model, budget, layout), budget.profile
        deployment = Deployment(model, tasks, profile.memory_mb, cpus=profile.cpus, buffer_s=self.buffer_s)
        configuration = (model.name, profile.memory_mb, profile.cpus, *sorted(tasks.items()))
        with self._repeats.number(configuration, repeat) as number:
            key = repr((self.seed, configuration, number))
            noise = model.noise if self.noise is None else self.noise
            speed = speed_factor(stream(key), noise)
            engine = _FluidEngine(deployment, budget.interval_s, self.step_s, key=key, speed=speed, jitter=self.jitter)
            yield PipelinedRun(budget, self.clock, engine, Machine(slots=SIMULATED))


def _layout(model: QueryModel, budget: Budget, layout: Mapping[str, int] | None) -> dict[str, int]:
    names, slots = model.modelled, budget.slots
    if slots < len(names):
        raise WorkbenchError(
            f"{units.some(slots, 'slot')} cannot hold query {model.name!r}: its {len(names)} operators "
            f"({', '.join(names)}) need one each. Give it more slots."
        )
    if layout is None:
        return {name: (slots - number - 1) // len(names) + 1 for number, name in enumerate(names)}
    if sum(layout.values()) != slots:
        raise WorkbenchError(
            f"The layout has {units.some(sum(layout.values()), 'task')} for {units.some(slots, 'slot')}; give every "
            "slot one task, sources not counted."
        )
    return dict(layout)


class _FluidEngine(Engine):
    """A deployment on the engine; its noise is its `speed`, the deviation from step to step, and the random `key`."""

    def __init__(
        self, deployment: Deployment, interval_s: float, step_s: float, *, key: str, speed: float, jitter: float
    ) -> None:
        window_s = deployment.model.window_s
        self._deployment, self._key, self._speed, self._jitter = deployment, key, speed, jitter
        # Whole windows, so that no burst is cut in two.
        self.batch_s = interval_s if window_s is None else window_s * math.ceil(interval_s / window_s - _ROUNDING)
        self.step_s = whole_step(min(step_s, self.batch_s), window_s or self.batch_s)
        self._state = State.empty(deployment)
        self._random = stream(key)
        self._window_left = 0.0
        self.begin()

    def restart(self, rate: float) -> float:
        self._state = State.empty(self._deployment, self._state.age_s)
        self._random = stream(self._key, rate)
        self._window_left = 0.0
        return self._deployment.model.window_s or 0.0

    def step(self, offered: float) -> tuple[float, float]:
        speed = self._speed
        if self._jitter > 0:
            normal = float(np.clip(self._random.standard_normal(), -_JITTER_LIMIT, _JITTER_LIMIT))
            speed *= 1.0 + self._jitter * normal
        self._state, step = advance(self._deployment, self._state, min(offered, self._paced()), self.step_s, speed)
        self._window_left -= step.consumed
        self._batch_work += (step.records, step.results, step.useful_s)
        return step.consumed, step.active_s

    def _paced(self) -> float:
        """Return how many records the sources release at most: in each window, what the deployment can process in one.

        Without this, overload would be chaotic (a window filled with more than the next one can work off stalls the
        sources for longer than a window, see `engine`), and what an observation then sees would depend on its length.
        The spread of real estimates is in the noise instead.
        """
        window_s = self._deployment.model.window_s
        if window_s is None:
            return math.inf
        if self._state.window_age_s < self.step_s / 2 or self._state.window_age_s > window_s - self.step_s / 2:
            self._window_left = self._steady_rate * self._speed * window_s
        return max(0.0, self._window_left)

    @cached_property
    def _steady_rate(self) -> float:
        return steady_state(self._deployment).rate

    def begin(self) -> None:
        self._work = np.zeros((3, self._deployment.size))
        self._batch_work = np.zeros_like(self._work)

    def sample(self) -> tuple[TaskSample, ...]:
        deployment = self._deployment
        records, _, useful_s = (np.add.reduceat(row, deployment.starts) for row in self._batch_work)
        self._work += self._batch_work
        self._batch_work = np.zeros_like(self._work)
        return tuple(
            TaskSample(name, float(records[i] / tasks), float(useful_s[i] / tasks))
            for i, (name, tasks) in enumerate(deployment.tasks.items())
        )

    def operators(self, elapsed_s: float) -> tuple[OperatorMetrics, ...]:
        return tuple(self._metrics(name, elapsed_s) for name in self._deployment.tasks)

    def _metrics(self, name: str, elapsed_s: float) -> OperatorMetrics:
        deployment = self._deployment
        where, tasks = deployment.slices[name], deployment.tasks[name]
        records, results, useful = (row[where] for row in self._work)
        behaviour = deployment.model.operators[name]
        operator = next(one for one in deployment.model.dataflow.operators if one.name == name)
        received, useful_s = float(records.sum()), float(useful.sum())
        sent = float(results.sum()) if behaviour.windowed else received * behaviour.profile.selectivity
        records_in = round(received)
        cpu_s = records @ deployment.cpu_s[where] + results @ deployment.emission_cpu_s[where]
        hits, latency_s = deployment.state_access().get(name, (None, None))
        return OperatorMetrics(
            operator=name,
            kind=operator.kind,
            tasks=tasks,
            records_in=records_in,
            records_out=round(sent),
            useful_s=useful_s,
            busyness=min(1.0, useful_s / (tasks * elapsed_s)),
            true_processing_rate=records_in / useful_s if records_in and useful_s > 0 else None,
            cpu_s=float(cpu_s) / self._speed,
            shuffle_bytes=round(received * behaviour.profile.output_bytes),
            state_bytes=round(received * behaviour.profile.state_bytes) if operator.stateful else None,
            cache_hit_rate=hits,
            state_latency_s=latency_s,
            key_skew=float(deployment.shares[where].max() * tasks) if tasks > 1 else None,
        )
