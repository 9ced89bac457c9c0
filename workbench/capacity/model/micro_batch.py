"""The micro-batch: what the time of a batch consists of, fitted to real runs.

A batch holds the driver (planning, offsets, commits, scheduling each task) and then, one after the other, its stages:

    seconds = d + e tasks + j / slots + sum over stages of waves x (a + b x rows of a task + c x rows in its state)

- ``d``, ``e``: the driver's, fixed and for each task: what is left of a batch beyond its slots' own seconds.
- ``j``: of jobs on a table's log, as Delta's: their slot seconds, the same in each batch. They get no shorter than
  their tasks allow that run at once.
- ``a``, ``b``: of one task of a stage, fixed (its start, opening and committing its state) and for each row.
- ``c``: for each row in the state of a join or a deduplication, which goes through it at every batch. It is fitted
  where rows stay far longer than a batch takes, and where readings distinguish it from ``a`` and ``b``. By Little's law
  the state holds rate x stay of a row.
- The rows of a task are a power of the source's rows for each task: partial aggregation sends one row for each key that
  a task has met, so larger batches send fewer for each source row. A stage that reads the source has them all.
- ``waves``: partitions / slots, rounded up.

The capacity at any slots, partitions and interval is the rate at which a batch takes as long as the interval. Runs at
several loads, and above all with many more partitions than slots, distinguish the parts. Stages are taken to follow
each other, which is exact where each fills its waves.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from workbench.arrays import Floats, contributions
from workbench.metrics import HeldRows, Observation
from workbench.records import Measurement, Probe
from workbench.speed import CoreSpeed, slowness

EXPLAINED = 0.15
"""Largest deviation of ln seconds from the batches at which the parts are used; repeats differ by half of it."""

_LEAST_ROWS, _UNBOUNDED = 1e-6, 1e18  # of a task
_STEPS, _STILL = 200, 1e-12
_FEWEST_READINGS, _FITTED = 4, 3  # readings; what is fitted of a batch: driver, tasks, rows
_ERRORS = 2.0  # standard errors that the cost of a row in the state must exceed
_DISTINCT = 1.5  # largest over smallest number of rows of a task, to separate fixed from per-row seconds
_Counts = TypeVar("_Counts", float, Floats)
_STEADY = 0.1  # prior deviation of the power of rows, so that a few similar readings do not produce one


@dataclass(frozen=True)
class StageLine:
    """A stage: a task takes `fixed_s` + `per_row_s` x rows, which are `scale` x (source rows / partitions)^`power`.

    Where it goes through its state at every batch, it takes `held_s` more for each row of its share of the state, in
    which a source row stays for `stays_s` of event time.
    """

    name: str
    fixed_s: float
    per_row_s: float
    scale: float
    power: float
    stateful: bool = False
    source: bool = False
    held_s: float = 0.0
    stays_s: float = 0.0

    def state_s(self, source_rate: _Counts) -> _Counts:
        """Slot seconds that the state of one task takes, for `source_rate` of the source a second for each task."""
        return self.held_s * self.stays_s * source_rate

    def rows_s(self, source_rows: Floats) -> Floats:
        """Slot seconds that the rows of one task take, for `source_rows` of the source for each task."""
        return np.asarray(self.per_row_s * self.scale * source_rows**self.power)


@dataclass(frozen=True)
class MicroBatch:
    """The parts of a batch."""

    driver_s: float  # the driver's seconds, fixed
    driver_task_s: float  # and for each task
    stages: tuple[StageLine, ...]  # in order, the source's own work included in the stage that reads it
    error: float  # standard deviation of ln seconds of the batches seen, around the fit
    readings: int  # how many batches were seen
    # how much faster a task runs while other slots idle, where slots are shares of one quota
    speedup: float = 1.0
    jobs_s: float = 0.0  # slot seconds of jobs on a table's log
    jobs_at_once: float = 1.0  # tasks of theirs that run at once, where there are slots for them

    def unsplit_s(self, slots: _Counts) -> _Counts:
        """Seconds on `slots` that no partitions change: the driver's fixed ones, and jobs on a table's log."""
        share: _Counts = np.maximum(1 / slots, 1 / (self.jobs_at_once * self.speedup))
        return self.driver_s + self.jobs_s * share

    @property
    def explains(self) -> bool:
        """Whether the parts fit the readings well enough for a plan to rest on them."""
        return self.error <= EXPLAINED

    def on_cores(self, times: float) -> "MicroBatch":
        """Return the parts on cores that are `times` times as fast: all of them take 1 / `times` of their seconds."""
        stages = tuple(
            replace(one, fixed_s=one.fixed_s / times, per_row_s=one.per_row_s / times, held_s=one.held_s / times)
            for one in self.stages
        )
        own = {name: getattr(self, name) / times for name in ("driver_s", "driver_task_s", "jobs_s")}
        return replace(self, **own, stages=stages)

    def parts_s(
        self,
        rows: float,
        slots: float,
        partitions: float,
        source_partitions: float | None = None,
        *,
        rate: float = 0.0,
    ) -> dict[str, float]:
        """Seconds of a batch of `rows` source rows by their cause.

        `source_partitions` are a topic's own; the state is that of `rate` source rows a second.
        """
        tasks = self._tasks(partitions, source_partitions)
        spent = {
            "driver": self.driver_s,
            "driver, per task": self.driver_task_s * sum(count for _, count in tasks),
            "tasks, fixed": sum(float(turns(count, slots, self.speedup)) * stage.fixed_s for stage, count in tasks),
            "rows": sum(
                float(turns(count, slots, self.speedup) * stage.rows_s(np.array(rows / count)))
                for stage, count in tasks
            ),
        }
        if self.jobs_s:
            spent["log"] = self.unsplit_s(slots) - self.driver_s
        if any(stage.held_s for stage in self.stages):
            spent["state"] = sum(
                float(turns(count, slots, self.speedup)) * stage.state_s(rate / count) for stage, count in tasks
            )
        return spent

    def staying(self, times: float) -> "MicroBatch":
        """Return the parts where rows stay in the state `times` as long."""
        return replace(self, stages=tuple(replace(one, stays_s=one.stays_s * times) for one in self.stages))

    def rates(
        self, slots: Floats, partitions: Floats, interval_s: float, source_partitions: Floats | None = None
    ) -> Floats:
        """Records/s at which a batch takes `interval_s`, by deployment; 0 if its fixed parts alone take as long."""
        room_s = interval_s * (1 - self.fixed_share(slots, partitions, interval_s, source_partitions))
        tasks = self._tasks(partitions, source_partitions)
        rows = np.full_like(room_s, _LEAST_ROWS)
        for _ in range(_STEPS):  # Newton's method: the seconds are concave in the rows, so it converges from below
            spent, slope = np.zeros_like(room_s), np.zeros_like(room_s)
            for stage, count in tasks:
                seconds = turns(count, slots, self.speedup) * stage.rows_s(rows * (partitions / count))
                kept = turns(count, slots, self.speedup) * stage.state_s(partitions / count / interval_s)
                spent += seconds + kept * rows
                slope += stage.power * seconds / rows + kept
            further = np.divide(room_s - spent, slope, out=np.full_like(rows, _UNBOUNDED), where=slope > 0)
            before, rows = rows, np.minimum(rows + np.maximum(further, 0.0), _UNBOUNDED)
            if (rows <= before * (1 + _STILL)).all():
                break
        return np.where(room_s > 0, rows, 0.0) * partitions / interval_s

    def fixed_share(
        self, slots: Floats, partitions: Floats, interval_s: float, source_partitions: Floats | None = None
    ) -> Floats:
        """Share of `interval_s` that is spent whatever the number of rows."""
        tasks = self._tasks(partitions, source_partitions)
        driver_s = self.unsplit_s(slots) + self.driver_task_s * sum(count for _, count in tasks)
        tasks_s = sum(turns(count, slots, self.speedup) * stage.fixed_s for stage, count in tasks)
        return np.asarray((driver_s + tasks_s) / interval_s)

    def _tasks(self, partitions: _Counts, source_partitions: _Counts | None) -> list[tuple[StageLine, _Counts]]:
        own = partitions if source_partitions is None else source_partitions
        return [(stage, own if stage.source else partitions) for stage in self.stages]

    def rate(self, slots: float, partitions: float, interval_s: float, source_partitions: float | None = None) -> float:
        """Return `rates` for one deployment."""
        own = None if source_partitions is None else np.array([source_partitions])
        return float(self.rates(np.array([slots]), np.array([partitions]), interval_s, own)[0])


def turns(count: Floats | float, slots: Floats | float, speedup: float) -> Floats:
    """Return how long `count` tasks take on `slots`, in multiples of one task's seconds on its slot."""
    few = np.maximum(np.asarray(count) / slots, 1 / speedup)
    return np.asarray(np.where(np.asarray(count) < slots, few, np.ceil(np.asarray(count) / slots)))


@dataclass(frozen=True)
class Reading:
    """Means over the complete batches of one observation."""

    slots: int
    partitions: int  # of the state
    source_partitions: int  # of the source: a topic's own
    rows: float
    batch_s: float
    stage_rows: tuple[float, ...]
    stage_s: tuple[float, ...]  # slot seconds of all tasks
    stateful: tuple[bool, ...]
    scans: tuple[bool, ...]
    held: tuple[tuple[float, float], ...] = ()  # rows in each stage's state, and how long a source row stays there
    jobs: tuple[float, float] = (0.0, 1.0)  # slot seconds of jobs on a table's log, and tasks of them at once

    def tasks(self, place: int) -> int:
        """Return the number of tasks of a stage."""
        return self.source_partitions if self.scans[place] and not self.stateful[place] else self.partitions

    @property
    def driver_s(self) -> float:
        """Seconds of the batch beyond the slots' own."""
        return self.batch_s - sum(self.stage_s) / self.slots


def readings_of(runs: Iterable[Measurement]) -> tuple[tuple[str, ...], list[Reading]]:
    """Return the names of the stages, and the observations of `runs` that show as many: the commonest number."""
    found: list[tuple[tuple[str, ...], Reading, CoreSpeed | None]] = []
    for run in runs:
        if run.tasks is not None:
            continue
        for probe in (*run.estimate.probes, *run.load_curve, *run.divided):
            if probe.phase != "warm-up":
                found += [(*one, probe.observation.cores) for one in _reading(run.budget.slots, probe)]
    counts = Counter(len(names) for names, _, _ in found)
    most = max(counts, key=lambda stages: (counts[stages], stages), default=0)
    whole = [one for one in found if len(one[0]) == most]  # others lack a node without rows, or compacted a table
    names = whole[0][0] if whole else ()
    slower = slowness([cores for _, _, cores in whole])
    return names, [
        replace(
            one,
            batch_s=one.batch_s / factor,
            stage_s=tuple(each / factor for each in one.stage_s),
            jobs=(one.jobs[0] / factor, one.jobs[1]),
        )
        for (_, one, _), factor in zip(whole, slower, strict=True)
    ]


def _reading(slots: int, probe: Probe) -> list[tuple[tuple[str, ...], Reading]]:
    seen: Observation = probe.observation
    batches = seen.batches[1:]
    stages = [operator for operator in seen.operators if not operator.is_source]
    if not batches or not stages or not seen.consumed_records:
        return []
    count = len(batches)
    # The source's own seconds are spent in the stages that read it, in proportion to their rows.
    own = sum(operator.useful_s for operator in seen.operators if operator.is_source)
    scanned = sum(operator.records_in for operator in stages if operator.scans)
    useful = [
        operator.useful_s + (own * operator.records_in / scanned if operator.scans and scanned else 0.0)
        for operator in stages
    ]
    reading = Reading(
        slots,
        probe.partitions or slots,
        seen.source_partitions or probe.source_partitions or probe.partitions or slots,
        seen.consumed_records / count,
        sum(batch.duration_s for batch in batches) / count,
        tuple(operator.records_in / count for operator in stages),
        tuple(one / count for one in useful),
        tuple(operator.keeps_state for operator in stages),
        tuple(operator.scans for operator in stages),
        tuple(_held_by(operator.operator, seen.held) for operator in stages) if seen.held else (),
        (0.0, 1.0) if seen.writes is None else seen.writes.own_jobs,
    )
    return [(tuple(operator.operator for operator in stages), reading)]


def _held_by(operator: str, held: Sequence[HeldRows]) -> tuple[float, float]:
    """Return the rows that an operator holds, by the kinds in its name, and how long a source row stays in it."""
    own = [one for one in held if one.kind in operator.split()]
    return sum(one.rows for one in own), sum(one.stays_s for one in own)


def fit_micro_batch(runs: Iterable[Measurement]) -> MicroBatch | None:
    """Fit the parts of a batch to `runs`; None where these do not show their stages, or too few sizes of tasks.

    A log may have batches of one size alone, where a cap makes them. The seconds of a stage then count as those of its
    rows, and the driver's as fixed, which is as long on more slots with as many rows for each task.
    """
    measured = list(runs)
    names, readings = readings_of(measured)
    if len(knowing := [one for one in readings if one.held]) > _FEWEST_READINGS:
        readings = knowing  # the others have a state of unknown size
    each = [one.rows / one.source_partitions for one in readings]
    if len(readings) < _FEWEST_READINGS:
        return None
    one_size = max(each) < _DISTINCT * min(each)
    if one_size and any(run.testbed_kind != "observed" for run in measured):
        return None
    stages = tuple(_stage(name, place, readings, one_size=one_size) for place, name in enumerate(names))
    tasks = np.array([sum(map(one.tasks, range(len(names)))) for one in readings], dtype=float)
    seen_s = [one.jobs[0] for one in readings]  # a mean: some jobs are not of each batch
    at_once = float(np.average([one.jobs[1] for one in readings], weights=seen_s if any(seen_s) else None))
    speedup = max(1.0, 1 / measured[0].budget.profile.cpus)
    model = MicroBatch(0.0, 0.0, stages, 0.0, len(readings), speedup, float(np.mean(seen_s)), at_once)
    left = np.array([one.driver_s - replace(model, jobs_s=one.jobs[0]).unsplit_s(one.slots) for one in readings])
    counted = np.zeros_like(tasks) if one_size else tasks
    ones, weight = np.ones_like(counted), 1 / np.array([one.batch_s for one in readings])
    driver_s, driver_task_s = contributions((ones, counted), left, weight)[0].tolist()
    model = replace(model, driver_s=driver_s, driver_task_s=driver_task_s)
    missed = [math.log(_batch_s(replace(model, jobs_s=one.jobs[0]), one) / one.batch_s) for one in readings]
    fitted = _FITTED + any(stage.held_s for stage in stages)
    return replace(model, error=math.sqrt(sum(one**2 for one in missed) / (len(missed) - fitted)))


def _batch_s(model: MicroBatch, seen: Reading) -> float:
    """Seconds that a reading's batch takes by the model, with the state that it had."""
    held = sum(
        float(turns(seen.partitions, seen.slots, model.speedup)) * stage.held_s * rows / seen.partitions
        for stage, (rows, _) in zip(model.stages, seen.held, strict=bool(seen.held))
    )
    return held + sum(model.parts_s(seen.rows, seen.slots, seen.partitions, seen.source_partitions).values())


def _stage(name: str, place: int, readings: Sequence[Reading], *, one_size: bool) -> StageLine:
    partitions = np.array([one.tasks(place) for one in readings], dtype=float)
    rows = np.array([one.stage_rows[place] for one in readings])
    seconds = np.array([one.stage_s[place] for one in readings])
    fed = np.array([one.rows for one in readings])
    counted = np.zeros_like(partitions) if one_size else partitions
    weight = 1 / np.maximum(seconds, 1e-9)
    fixed_s, per_row_s = contributions((counted, rows), seconds, weight)[0].tolist()
    held, stays = np.array([one.held[place] if one.held else (0.0, 0.0) for one in readings]).T
    held_s = 0.0
    if 1 <= _spread(stays) < _DISTINCT <= min(_spread(held / partitions), _spread(held / np.maximum(rows, 1.0))):
        found, errors = contributions((counted, rows, held), seconds, weight)
        if found[2] > _ERRORS * errors[2]:
            fixed_s, per_row_s, held_s = found.tolist()
    scale, power = _power(fed / partitions, rows / partitions)
    stateful, scans = any(one.stateful[place] for one in readings), any(one.scans[place] for one in readings)
    line = StageLine(name, fixed_s, per_row_s, scale, power, stateful=stateful, source=scans and not stateful)
    return replace(line, held_s=held_s, stays_s=float(np.median(stays))) if held_s else line


def _spread(values: Floats) -> float:
    """Return the largest of `values` over the smallest; 0 where one is 0, so that nothing is known."""
    return float(values.max() / values.min()) if values.min() > 0 else 0.0


def _power(fed: Floats, rows: Floats) -> tuple[float, float]:
    """Fit rows = scale x fed^power, with the power drawn towards 1."""
    seen = (fed > 0) & (rows > 0)
    if not seen.any():
        return 0.0, 1.0
    x, y = np.log(fed[seen]), np.log(rows[seen])
    centre = x.mean()
    spread = float(((x - centre) ** 2).sum())
    left = y - x
    noise = 0.05**2
    bent = float(((x - centre) * left).sum()) / (spread + noise / _STEADY**2) if spread else 0.0
    power = min(1.0, max(0.0, 1 + bent))
    return float(np.exp((y - power * x).mean())), power
