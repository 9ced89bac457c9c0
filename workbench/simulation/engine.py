"""The fluid engine: a deployment under load, step by step.

Records are a fluid. In every step the waves (`waves`) flow downstream first: windowed operators whose window has ended
emit, then the sources. A wave takes as much of the step as the waves before it left, and as many records as its fullest
task, its workers and the free buffers allow: a full task stops those upstream of it, up to the source, where the rest
waits. A step is exact for constant rates without buffers, however long it is, if it divides the window.

Simplification: within a wave all tasks are fed at the heads' pace, so a record that waits in a task's buffer counts as
arrived further downstream too; the error is at most one buffer.

The state is a value, so that a policy may look at it, change the deployment and go on (`carry`).
"""

import hashlib
import math
from dataclasses import dataclass, replace

import numpy as np

from workbench.arrays import Floats
from workbench.errors import WorkbenchError
from workbench.simulation.deployment import Costs, Deployment

_FULL = 1e-9  # of a step or a window: rounding


@dataclass(frozen=True)
class State:
    """The content of a deployment between two steps; arrays have one entry per task."""

    age_s: float
    window_age_s: float
    waiting_s: Floats  # input that waits in the buffer of each task, in seconds of its work
    held: Floats  # results of the open window
    pending: Floats  # results of ended windows that are yet to be emitted

    @classmethod
    def empty(cls, deployment: Deployment, age_s: float = 0.0) -> "State":
        """Return a state with nothing waiting, at a window's start."""
        zeros = np.zeros(deployment.size)
        return cls(age_s, 0.0, zeros, zeros, zeros)


@dataclass(frozen=True)
class Step:
    """The events of one step; arrays have one entry per task."""

    consumed: float  # records the sources emitted
    # seconds in which the sources' wave flowed at full pace or was stopped; all of the step if more was offered than
    # fits
    active_s: float
    records: Floats
    results: Floats  # results that windowed tasks emitted
    useful_s: Floats
    emitting_s: float = 0.0  # seconds of `active_s` in which windows emitted and the sources stood still
    useful_emitting_s: Floats | None = None  # seconds of work meanwhile; None for none


def stream(*key: str | float | None) -> np.random.Generator:
    """Return the random numbers that belong to `key`: the seed, the configuration, the number of the repeat.

    They depend on what is measured, not on when: an exploration that was killed and resumed, in any order and in any
    process, sees what an undisturbed one sees.
    """
    digest = hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def speed_factor(random: np.random.Generator, deviation: float) -> float:
    """Draw a speed around 1: log-normal with mean 1, cut off at three standard deviations of its logarithm."""
    normal = float(np.clip(random.standard_normal(), -3.0, 3.0))
    spread = math.sqrt(math.log1p(deviation * deviation))
    return math.exp(spread * normal - spread * spread / 2)


def whole_step(step_s: float, window_s: float | None) -> float:
    """Longest step up to `step_s` that divides the window."""
    return step_s if window_s is None else window_s / math.ceil(window_s / step_s - _FULL)


def advance(
    deployment: Deployment, state: State, offered: float, step_s: float, speed: float = 1.0
) -> tuple[State, Step]:
    """Let one step pass, at a `speed` of which 1 is normal.

    `offered` are the records that wait at the sources or arrive there meanwhile; inf offers as many as fit.
    """
    window_s = deployment.model.window_s
    if window_s is not None and state.window_age_s >= window_s * (1 - _FULL):
        state = replace(state, window_age_s=0.0, held=np.zeros_like(state.held), pending=state.pending + state.held)
    free = deployment.buffer_s == 0 and deployment.cluster is None
    if free and (window_s is None or not state.pending.any()):
        return _undisturbed(deployment, state, offered, step_s, speed)
    work = _Work(deployment, state, deployment.costs(state.age_s), step_s * speed)
    pending, emitted = state.pending, np.zeros(deployment.size)
    for heads, flow in deployment.flows[:-1]:
        volumes = np.array([pending[deployment.slices[head]].sum() for head in heads])
        if not volumes.any():
            continue
        results = np.zeros_like(pending)
        for head in heads:
            results[deployment.slices[head]] = pending[deployment.slices[head]]
        emitted += work.flow(volumes @ flow, 1.0, results) * results
        for head, volume in zip(heads, volumes, strict=True):
            if volume > 0:
                work.close(head)
    emitting_s, useful_emitting_s = work.now_s, work.worked_s / speed
    consumed = work.flow(deployment.source_records, offered, np.zeros(deployment.size))
    waiting_s, useful_s = work.finish()
    held = state.held + np.where(deployment.windowed, work.records * deployment.selectivity, 0.0)
    after = State(
        state.age_s + step_s, state.window_age_s + step_s, waiting_s, held, np.maximum(pending - emitted, 0.0)
    )
    active_s = work.now_s / speed
    return after, Step(
        consumed, active_s, work.records, emitted, useful_s / speed, emitting_s / speed, useful_emitting_s
    )


def _undisturbed(
    deployment: Deployment, state: State, offered: float, step_s: float, speed: float
) -> tuple[State, Step]:
    """Let one step pass in which the sources' wave flows alone and nothing is buffered: the fullest task decides."""
    seconds = deployment.steady_source_seconds
    if state.age_s < deployment.model.warm_up.seconds:
        seconds = deployment.source_records * deployment.costs(state.age_s).record_s
    fullest, left_s = float(seconds.max()), step_s * speed
    most = left_s / fullest if fullest > 0 else math.inf
    done = offered if most >= offered * (1 - _FULL) else most
    if math.isinf(done):
        raise _unlimited(deployment)
    active_s = left_s if done < offered else min(left_s, left_s * done / most)
    records = done * deployment.source_records
    held = state.held
    if deployment.model.window_s is not None:
        held = held + np.where(deployment.windowed, records * deployment.selectivity, 0.0)
    nothing = np.zeros_like(seconds)
    after = State(state.age_s + step_s, state.window_age_s + step_s, nothing, held, state.pending)
    useful_s = np.minimum(done * seconds, left_s)
    return after, Step(done, active_s / speed, records, nothing, useful_s / speed)


def _unlimited(deployment: Deployment) -> WorkbenchError:
    return WorkbenchError(
        f"Nothing limits the rate of query {deployment.model.name!r}: no record costs any time. Give an operator cpu_s "
        "above 0, or offer a finite rate."
    )


def carry(state: State, old: Deployment, new: Deployment) -> State:
    """Hand the windows' contents over to another deployment of the same query, which begins cold.

    Records that wait in buffers are dropped from them: put them back to the sources.
    """
    held, pending = np.zeros(new.size), np.zeros(new.size)
    for name, where in new.slices.items():
        held[where] = state.held[old.slices[name]].sum() * new.shares[where]
        pending[where] = state.pending[old.slices[name]].sum() * new.shares[where]
    return State(0.0, state.window_age_s, np.zeros(new.size), held, pending)


class _Work:
    """The work of one step: what was done until `now_s`, seconds after its begin."""

    def __init__(self, deployment: Deployment, state: State, costs: Costs, step_s: float) -> None:
        self._deployment = deployment
        self._costs = costs
        self._step_s = step_s
        self._waiting_s = state.waiting_s
        self._arrived_s = np.zeros(deployment.size)
        self._extra_s = np.zeros(deployment.size)  # emitting, and waiting for the worker
        self._open_s = np.full(deployment.size, step_s)  # time in which a task takes input
        self.now_s = 0.0
        self.records = np.zeros(deployment.size)

    @property
    def worked_s(self) -> Floats:
        """Seconds worked until now, buffers aside."""
        return np.minimum(self._arrived_s + self._extra_s, self.now_s)

    def close(self, head: str) -> None:
        """Record that the windowed operator `head` has taken no input until now."""
        self._open_s[self._deployment.slices[head]] = self._step_s - self.now_s

    def flow(self, records: Floats, amount: float, results: Floats) -> float:
        """Let up to `amount` times these records and results flow from now on; return how many times they did.

        If not all does, that lasts until the end of the step.
        """
        left_s = self._step_s - self.now_s
        if left_s <= self._step_s * _FULL:
            return 0.0
        arriving_s, emitting_s = records * self._costs.record_s, results * self._costs.result_s
        room_s = self._deployment.buffer_s - self._waiting_s
        most = _times(np.minimum(room_s + left_s, room_s + self._open_s - self._arrived_s), arriving_s)
        most = min(most, _times(np.full_like(emitting_s, left_s), emitting_s))
        contention = self._deployment.contention
        if contention is not None:
            crowded_s = contention.seconds(records, results, self._costs.cpu_factor)
            most = min(most, _times(np.full_like(crowded_s, left_s), crowded_s))
        done = amount if most >= amount * (1 - _FULL) else most
        if math.isinf(done):
            raise _unlimited(self._deployment)
        self.records += done * records
        self._arrived_s += done * arriving_s
        self._extra_s += done * emitting_s
        if contention is not None:
            # The work that the tasks alone would ask of their worker, 1 being its capacity; they take that much longer.
            own_s = arriving_s + emitting_s
            alone = min(amount, left_s / own_s.max()) if own_s.max() > 0 else 0.0
            asked = (alone / left_s * crowded_s).max(axis=0)
            self._extra_s += done * own_s * (np.maximum(asked, 1.0)[contention.worker] - 1.0)
        if done < amount:
            self.now_s = self._step_s
        elif most > 0:
            self.now_s = min(self._step_s, self.now_s + left_s * done / most)
        return done

    def finish(self) -> tuple[Floats, Floats]:
        """Input seconds that wait after the step, and seconds worked."""
        present_s = self._waiting_s + self._arrived_s
        served_s = np.minimum(present_s, self._open_s)
        return present_s - served_s, np.minimum(served_s + self._extra_s, self._step_s)


def _times(space: Floats, need: Floats) -> float:
    """How many times every `need` fits its `space`; inf without any need."""
    taken = need > 0
    if not taken.any():
        return math.inf
    return max(0.0, float((space[taken] / need[taken]).min()))
