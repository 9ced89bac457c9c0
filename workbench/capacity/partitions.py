"""BIDS2 where stages take turns at the slots: the partitions of every stage that give a budget the highest rate.

StreamBed's question (section V) is which parallelism of each operator gives a bounded budget of slots the highest
source rate. In a micro-batch every stage may use all slots, one after the other, so the budget is the trigger interval:
maximise the rows N of a batch subject to

    driver + driver per task x tasks + sum over stages of waves x (fixed + rows of a task x seconds per row) <= interval

where the seconds of a row include those of the state that it leaves behind, at that rate,
with one binary for each partition count that a stage may have. Stages that keep state share one count, since the
checkpoint does, and so do stages that read the source. Of the candidates of a stage one is chosen (n_ic <= M y_ic, sum
over c of n_ic = N), so the problem is linear. Where the rows of a task are a power of the source's below 1, it is
linear at a number of rows, and solved again there until that number stands still (Newton's method on an increasing
concave function, which converges from below).

Stages are taken not to overlap, and to have even tasks, so the rate overstates what is then measured, as BIDS2's does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import pulp

from workbench.arrays import Floats
from workbench.capacity.allocation import Solver, solve_by_cbc
from workbench.capacity.model import MicroBatch, StageLine, turns
from workbench.checks import one_of, positive, whole
from workbench.errors import WorkbenchError
from workbench.records import BatchLayout, Stage

LARGEST = 64  # up to this many slots every count is a candidate, and the MILP takes less than a second
_GRID, _WAVES = 48, 4
_STEPS, _STILL = 60, 1e-9
_TIE = 1e-9  # of the interval


@dataclass(frozen=True)
class _Choice:
    """Stages that share a partition count, and the counts that they may have."""

    stages: tuple[StageLine, ...]
    counts: tuple[int, ...]


def bids2_micro_batch(
    batch: MicroBatch,
    slots: int,
    interval_s: float,
    *,
    solver: Solver = "exact",
    frozen: int | None = None,
    slot_speedup: float = 1.0,
) -> BatchLayout:
    """Choose the partitions of every stage so that the rate which fills the interval is the highest possible.

    It is 0 where what rows do not add to fills the interval alone.

    Parameters
    ----------
    solver
        ``"exact"``: for a number of rows each choice is independent of the others, so the best layout at it is known,
        and the rows follow by Newton's method. ``"cbc"``: the MILP. Both give the same rate; of layouts with it, both
        take the one of fewest tasks.
    frozen
        Partitions of the state that a checkpoint holds already; None: choose them.
    slot_speedup
        Times as fast as on its slot that a task runs while other slots idle: where slots are shares of one quota,
        1 / cores of a slot. Fewer tasks than slots then leave nothing unused, and spare what each task costs.
    """
    whole("slots", slots, 1)
    positive("The trigger interval", interval_s, "seconds")
    if not slot_speedup >= 1:
        raise WorkbenchError(f"slot_speedup is {slot_speedup!r}; a task is at least as fast as its slot: at least 1.")
    one_of("The solver", solver, get_args(Solver))
    if not batch.stages:
        raise WorkbenchError("The batch has no stages; measure a run that shows them.")
    groups: dict[object, list[StageLine]] = {}
    for number, line in enumerate(batch.stages):
        groups.setdefault("state" if line.stateful else "source" if line.source else number, []).append(line)
    own = candidates(slots) if frozen is None else (whole("partitions", frozen, 1),)
    choices = [_Choice(tuple(lines), own if kind == "state" else candidates(slots)) for kind, lines in groups.items()]
    problem = _Problem(batch, choices, slots, interval_s, slot_speedup)
    chosen, rows = problem.solve(_milp if solver == "cbc" else _each)
    partitions = {line.name: count for choice, count in zip(choices, chosen, strict=True) for line in choice.stages}
    return _layout(problem, partitions, rows)


@dataclass(frozen=True)
class _Problem:
    batch: MicroBatch
    choices: Sequence[_Choice]
    slots: int
    interval_s: float
    speedup: float

    def costs(self, choice: _Choice, rows: float) -> tuple[Floats, Floats]:
        """Seconds that each candidate takes with `rows`, and the slope there."""
        counts = np.array(choice.counts)
        tasks_s = self.batch.driver_task_s * counts * len(choice.stages)
        waves, fixed_s = turns(counts, self.slots, self.speedup), sum(line.fixed_s for line in choice.stages)
        spent = [line.rows_s(rows / counts) for line in choice.stages]
        kept = sum(line.state_s(rows / counts / self.interval_s) for line in choice.stages)
        slope = (sum(line.power * one for line, one in zip(choice.stages, spent, strict=True)) + kept) / rows
        return np.asarray(tasks_s + waves * (fixed_s + sum(spent) + kept)), np.asarray(waves * slope)

    def solve(self, step: "_Step") -> tuple[list[int], float]:
        """Find the layout and its rows: from few rows on, each step goes to where the tangent fills the interval."""
        rows = 1.0
        tables = [self.costs(choice, rows) for choice in self.choices]
        least = self.batch.unsplit_s(self.slots) + sum(seconds.min() for seconds, _ in tables)
        if least >= self.interval_s:
            return _fewest(self, tables), 0.0
        for _ in range(_STEPS):
            before, rows = rows, step(self, tables, rows)
            tables = [self.costs(choice, rows) for choice in self.choices]
            if rows <= before * (1 + _STILL):
                break
        return _fewest(self, tables), rows


_Tables = Sequence[tuple[Floats, Floats]]
_Step = Callable[[_Problem, _Tables, float], float]


def _each(problem: _Problem, tables: _Tables, rows: float) -> float:
    """Take the best candidate of each choice at `rows`, and follow their tangents until the interval is full."""
    best = [(seconds.min(), slopes[seconds.argmin()]) for seconds, slopes in tables]
    spent = problem.batch.unsplit_s(problem.slots) + sum(second for second, _ in best)
    slope = sum(slope for _, slope in best)
    further = (problem.interval_s - spent) / slope if slope > 0 else rows
    return float(rows + max(0.0, min(further, 1e9 * rows)))


def _milp(problem: _Problem, tables: _Tables, rows: float) -> float:
    """Solve the linear problem at `rows`, in multiples of the rows that the tangents of the best candidates allow."""
    reach = _each(problem, tables, rows)
    most = 4.0  # by its tangent, no layout carries more than this many times the rows of the one best at `rows`
    model = pulp.LpProblem("bids2_micro_batch", pulp.LpMaximize)
    total = model.add_variable("rows", 0, most)
    spent = []
    for g, ((seconds, slopes), choice) in enumerate(zip(tables, problem.choices, strict=True)):
        tangents = np.array([seconds - slopes * rows, slopes * reach]) / problem.interval_s
        lines = lowest(list(zip(*tangents.tolist(), choice.counts, strict=True)), most)
        taken = [model.add_variable(f"y_{g:03d}_{c:05d}", cat=pulp.LpBinary) for _, _, c in lines]
        own = [model.add_variable(f"n_{g:03d}_{c:05d}", 0, most) for _, _, c in lines]
        model += pulp.lpSum(taken) == 1
        model += pulp.lpSum(own) == total
        for y, n, (fixed, slope, _) in zip(taken, own, lines, strict=True):
            model += n <= most * y
            spent += [fixed * y, slope * n]
    model += pulp.lpSum(spent) <= 1 - problem.batch.unsplit_s(problem.slots) / problem.interval_s
    model.setObjective(total)
    solve_by_cbc(model)
    return max(rows, float(total.value()) * reach)


def lowest(lines: Sequence[tuple[float, float, int]], most: float) -> list[tuple[float, float, int]]:
    """Keep the lines, each a value at 0, a slope and a count, that are lowest somewhere from 0 to `most`.

    Without other candidates, which no optimum has, CBC has little left to search. Of equal lines the one of fewest
    tasks stays.
    """
    present = min(lines)
    kept = [present]
    while True:
        flatter = [
            ((line[0] - present[0]) / (present[1] - line[1]), line[1], line[2], line)
            for line in lines
            if line[1] < present[1]
        ]
        if not flatter:
            return kept
        at, _, _, present = min(flatter)
        if at > most:
            return kept
        kept.append(present)


def _fewest(problem: _Problem, tables: _Tables) -> list[int]:
    """Take the best candidate of each choice; of equally good ones the one of fewest tasks."""
    slack = _TIE * problem.interval_s
    return [
        choice.counts[int(np.argmax(seconds <= seconds.min() + slack))]
        for choice, (seconds, _) in zip(problem.choices, tables, strict=True)
    ]


def candidates(slots: int) -> tuple[int, ...]:
    """Partition counts that a stage may have on `slots`: all up to 64 slots, a grid of more, and some full waves."""
    counts = list(range(1, slots + 1))
    if slots > LARGEST:
        counts = sorted({*np.geomspace(1, slots, _GRID).round().astype(int).tolist(), slots})
    return (*counts, *(slots * waves for waves in range(2, _WAVES + 1)))


def at_rate(layout: BatchLayout, batch: MicroBatch, slots: int, rate: float, slot_speedup: float = 1.0) -> BatchLayout:
    """Return the layout with the times that its batches take at `rate`, records/s, instead of at the highest rate."""
    problem = _Problem(batch, (), slots, layout.interval_s, slot_speedup)
    return replace(_layout(problem, layout.partitions, rate * layout.interval_s), rate=layout.rate)


def _layout(problem: _Problem, partitions: Mapping[str, int], rows: float) -> BatchLayout:
    """Return the layout as a record: each stage as a line at its rows."""
    batch = problem.batch
    stages, took = [], {"the driver": batch.driver_s + batch.driver_task_s * sum(partitions.values())}
    if batch.jobs_s:
        took["jobs on the table's log"] = batch.unsplit_s(problem.slots) - batch.driver_s
    for line in batch.stages:
        count = partitions[line.name]
        ratio = line.scale * (max(rows, 1.0) / count) ** (line.power - 1)
        # A stage of the layout is a line, so the state of its rows counts with them.
        per_row_s = line.per_row_s + (line.state_s(1 / problem.interval_s) / ratio if line.held_s else 0.0)
        stages.append(Stage(line.name, line.fixed_s, per_row_s, ratio, stateful=line.stateful, source=line.source))
        waves = float(turns(count, problem.slots, problem.speedup))
        took[line.name] = waves * (line.fixed_s + per_row_s * ratio * rows / count)
    seconds = {problem.slots: sum(took.values())}
    limit = max(took, key=lambda name: took[name])
    return BatchLayout(
        tuple(stages), dict(partitions), seconds, seconds, problem.interval_s, rows / problem.interval_s, limit
    )
