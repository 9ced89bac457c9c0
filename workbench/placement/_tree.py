"""The compiled depth-first search of CAPS (CAPSys, section 4.3): layers of operators, in each layer the workers.

A node chooses how many tasks of a layer's operator a worker gets. On entering a layer all limits become a lowest and
a highest count per worker: slots, and the three thresholds, for the network load is convex in the count once the
other operators are placed. Inside the layer a choice is made only if the later workers can take the rest, so no
branch ends before its layer does. Counts ascend, which meets balanced plans first.

The search stops after a number of nodes and continues where it stopped, so that its caller can watch the clock.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.arrays import Floats, Ints
from workbench.placement._compiled import compiled, inlined

DONE, PAUSED, FRONT_FULL, FOUND = range(4)

# Integers of a state, by layer and worker; all but the last two concern the worker alone.
CHOSEN, TOP, LEFT, FREE, LOW, HIGH, TWIN, RUN_END, LOW_AFTER, HIGH_AFTER = range(10)
# Loads of a state, by layer and worker: those that the earlier layers put there, and what links to them add here.
CPU, IO, NET, LINKS, LINKS_PER_TASK = range(5)

_EQUAL = 1e-9


class Layers(NamedTuple):
    """The problem in search order; loads and limits in units of the cost (divided by L^max - L^min)."""

    tasks: Ints  # (layers,)
    load: Floats  # (2, layers): cpu and io of one task
    first_edge: Ints  # (layers + 1,): edges whose later end is this layer, shuffles before forwards
    first_forward: Ints  # (layers,)
    other: Ints  # (edges,): layer of the other end
    upstream: NDArray[np.bool_]  # (edges,): whether this layer is the upstream end
    link: Floats  # (edges,): load of one link
    limit: Floats  # (3, workers): highest load
    ideal: Floats  # (3,)
    speed: Floats  # (workers,)
    operator: Ints  # (layers,): position in the problem
    slots: int


class State(NamedTuple):
    """The position of the search.

    ``CHOSEN`` is the count chosen, ``TOP`` the highest to choose, ``LEFT`` the tasks not placed before this worker,
    ``FREE`` its slots, ``LOW`` and ``HIGH`` its bounds; a ``TWIN`` has the same tasks so far, and the same speed, as
    the worker before it, ``RUN_END`` is the last of a run of twins; ``LOW_AFTER`` and ``HIGH_AFTER`` sum the bounds
    from this worker on.
    """

    grid: Ints  # (10, layers, workers + 1)
    loads: Floats  # (5, layers, workers)
    peak: Floats  # (workers + 1, 3): highest cost of the workers before, in the last layer
    at: Ints  # layer, worker, nodes, plans, front size, started


class Front(NamedTuple):
    """Costs that no other plan dominates, and one plan for each."""

    cost: Floats  # (capacity, 3)
    plan: Ints  # (capacity, workers, operators), canonical


@inlined
def _forward_load(layers: Layers, grid: Ints, layer: int, worker: int, count: int) -> float:
    """Network load over forward edges to operators already placed: pairs that are not local (Equation 8)."""
    load = 0.0
    for edge in range(layers.first_forward[layer], layers.first_edge[layer + 1]):
        surplus = count - grid[CHOSEN, layers.other[edge], worker]
        load += layers.link[edge] * max(0, surplus if layers.upstream[edge] else -surplus)
    return load


@inlined
def _shuffle_load(layers: Layers, grid: Ints, layer: int, worker: int) -> tuple[float, float]:
    """Network load over shuffled edges to operators already placed, and what each task here adds (Equation 8)."""
    fixed, per_task = 0.0, 0.0
    for edge in range(layers.first_edge[layer], layers.first_forward[layer]):
        there = grid[CHOSEN, layers.other[edge], worker]
        if layers.upstream[edge]:
            per_task += layers.link[edge] * (layers.tasks[layers.other[edge]] - there)
        else:
            fixed += layers.link[edge] * there * layers.tasks[layer]
            per_task -= layers.link[edge] * there
    return fixed, per_task


@inlined
def _loads_with(  # noqa: PLR0917
    layers: Layers, grid: Ints, loads: Floats, layer: int, worker: int, count: int
) -> tuple[float, float, float]:
    """Add up the loads of a worker with `count` tasks of a layer: cpu, io, net."""
    cpu = loads[CPU, layer, worker] + count * layers.load[CPU, layer]
    io = loads[IO, layer, worker] + count * layers.load[IO, layer]
    net = loads[NET, layer, worker] + loads[LINKS, layer, worker] + count * loads[LINKS_PER_TASK, layer, worker]
    return cpu, io, net + _forward_load(layers, grid, layer, worker, count)


@inlined
def _raise_peak(layers: Layers, peak: Floats, worker: int, carried: tuple[float, float, float]) -> None:
    """Note the highest cost of the workers so far (Equation 4), of which this one has loads."""
    for dimension in range(3):
        cost = carried[dimension] / layers.speed[worker] - layers.ideal[dimension]
        peak[worker + 1, dimension] = max(peak[worker, dimension], cost)


@compiled
def _enter_layer(layers: Layers, grid: Ints, loads: Floats, layer: int) -> bool:  # noqa: C901, PLR0912
    """Set up a layer from the choices before it; False if its tasks cannot be placed within the limits."""
    workers = len(layers.speed)
    before = layer - 1
    for worker in range(workers):
        if layer == 0:
            grid[FREE, 0, worker] = layers.slots
            twin = worker > 0 and layers.speed[worker] == layers.speed[worker - 1]
        else:
            chosen = grid[CHOSEN, before, worker]
            grid[FREE, layer, worker] = grid[FREE, before, worker] - chosen
            carried = _loads_with(layers, grid, loads, before, worker, chosen)
            loads[CPU, layer, worker], loads[IO, layer, worker], loads[NET, layer, worker] = carried
            twin = grid[TWIN, before, worker] == 1 and chosen == grid[CHOSEN, before, worker - 1]
        grid[TWIN, layer, worker] = twin
        if twin:
            grid[LOW, layer, worker] = grid[LOW, layer, worker - 1]
            grid[HIGH, layer, worker] = grid[HIGH, layer, worker - 1]
            loads[LINKS, layer, worker] = loads[LINKS, layer, worker - 1]
            loads[LINKS_PER_TASK, layer, worker] = loads[LINKS_PER_TASK, layer, worker - 1]
            continue
        fixed, per_task = _shuffle_load(layers, grid, layer, worker)
        loads[LINKS, layer, worker], loads[LINKS_PER_TASK, layer, worker] = fixed, per_task
        low, high = 0, min(grid[FREE, layer, worker], layers.tasks[layer])
        for dimension in range(2):
            room = layers.limit[dimension, worker] - loads[dimension, layer, worker]
            if room < 0:
                return False
            if layers.load[dimension, layer] * high > room:
                high = math.floor(room / layers.load[dimension, layer])
        if layers.limit[NET, worker] < math.inf:
            room = layers.limit[NET, worker] - loads[NET, layer, worker] - fixed
            while low <= high and low * per_task + _forward_load(layers, grid, layer, worker, low) > room:
                low += 1
            while high > low and high * per_task + _forward_load(layers, grid, layer, worker, high) > room:
                high -= 1
        if low > high:
            return False
        grid[LOW, layer, worker] = low
        grid[HIGH, layer, worker] = high
    grid[LOW_AFTER, layer, workers] = 0
    grid[HIGH_AFTER, layer, workers] = 0
    end = workers - 1
    for worker in range(workers - 1, -1, -1):
        grid[LOW_AFTER, layer, worker] = grid[LOW_AFTER, layer, worker + 1] + grid[LOW, layer, worker]
        grid[HIGH_AFTER, layer, worker] = grid[HIGH_AFTER, layer, worker + 1] + grid[HIGH, layer, worker]
        grid[RUN_END, layer, worker] = end
        if not grid[TWIN, layer, worker]:
            end = worker - 1
    grid[LEFT, layer, 0] = layers.tasks[layer]
    return bool(grid[LOW_AFTER, layer, 0] <= layers.tasks[layer] <= grid[HIGH_AFTER, layer, 0])


@compiled
def _enter_worker(grid: Ints, layer: int, worker: int) -> None:
    """Set the range of counts with which the later workers can take the rest; a twin gets at most its twin's."""
    left, low = grid[LEFT, layer, worker], grid[LOW, layer, worker]
    twins = grid[RUN_END, layer, worker] - worker
    after = worker + twins + 1
    top = min(grid[HIGH, layer, worker], left - twins * low - grid[LOW_AFTER, layer, after])
    if grid[TWIN, layer, worker]:
        top = min(top, grid[CHOSEN, layer, worker - 1])
    rest = left - grid[HIGH_AFTER, layer, after]
    if rest > low * (twins + 1):
        low = rest if twins == 0 else (rest + twins) // (twins + 1)
    grid[TOP, layer, worker] = top
    grid[CHOSEN, layer, worker] = low - 1


@compiled
def _finish(layers: Layers, grid: Ints, loads: Floats, peak: Floats) -> bool:
    """Distribute the last layer's tasks to all free slots, as there are no others; return False if a limit is exceeded.

    The last worker is about to get its tasks.
    """
    last, end = grid.shape[1] - 1, grid.shape[2] - 2
    before = last - 1
    for worker in range(end + 1):
        placed = grid[CHOSEN, before, worker]
        chosen = grid[FREE, before, worker] - placed
        grid[CHOSEN, last, worker] = chosen
        grid[TOP, last, worker] = chosen
        if grid[TWIN, before, worker] and placed == grid[CHOSEN, before, worker - 1] and worker < end:
            peak[worker + 1] = peak[worker]
            continue
        carried = _loads_with(layers, grid, loads, before, worker, placed)
        loads[CPU, last, worker], loads[IO, last, worker], loads[NET, last, worker] = carried
        loads[LINKS, last, worker], loads[LINKS_PER_TASK, last, worker] = _shuffle_load(layers, grid, last, worker)
        carried = _loads_with(layers, grid, loads, last, worker, chosen)
        for dimension in range(3):
            if carried[dimension] > layers.limit[dimension, worker]:
                return False
        _raise_peak(layers, peak, worker, carried)
    grid[CHOSEN, last, end] -= 1
    return True


@compiled
def explore(  # noqa: C901, PLR0912, PLR0915 - a call costs more than what it would do
    layers: Layers, state: State, front: Front, first: bool, nodes: int
) -> int:
    """Search on for at most `nodes` nodes; FRONT_FULL asks for a larger front before the same plan is met again."""
    grid, loads, peak, at = state
    last, end = grid.shape[1] - 1, grid.shape[2] - 2
    full = last > 0 and layers.tasks.sum() == (end + 1) * layers.slots
    row = np.zeros((end + 1, last + 1), dtype=np.int64)
    layer, worker, seen, plans, size, started = at
    stop, rival, result = seen + nodes, 0, DONE
    if not started:
        if _enter_layer(layers, grid, loads, 0):
            _enter_worker(grid, 0, 0)
        else:
            layer = -1
    while layer >= 0:
        if grid[CHOSEN, layer, worker] >= grid[TOP, layer, worker]:
            worker -= 1
            if worker < 0:
                layer, worker = layer - 1, end
            continue
        if seen >= stop:
            result = PAUSED
            break
        chosen = grid[CHOSEN, layer, worker] + 1
        grid[CHOSEN, layer, worker] = chosen
        seen += 1
        if layer == last:
            _raise_peak(layers, peak, worker, _loads_with(layers, grid, loads, last, worker, chosen))
        if worker < end:
            grid[LEFT, layer, worker + 1] = grid[LEFT, layer, worker] - chosen
            worker += 1
            _enter_worker(grid, layer, worker)
        elif layer < last:
            if full and layer == last - 1:
                if _finish(layers, grid, loads, peak):
                    layer, seen, worker = last, seen + end, end
            elif _enter_layer(layers, grid, loads, layer + 1):
                layer, worker = layer + 1, 0
                _enter_worker(grid, layer, 0)
        elif size == len(front.cost):
            grid[CHOSEN, layer, worker] -= 1
            seen -= 1
            result = FRONT_FULL
            break
        else:
            plans += 1
            cost = peak[end + 1]
            if rival >= size or not _covers(front.cost[rival], cost):  # often the same one again
                rival = 0
                while rival < size and not _covers(front.cost[rival], cost):
                    rival += 1
            if rival == size:
                size = _enter_front(front, size, cost)
                _canonical(layers, grid, front.plan[size - 1])
            elif _covers(cost, front.cost[rival]):  # equal: the larger plan stays
                _canonical(layers, grid, row)
                if _larger(row, front.plan[rival]):
                    front.plan[rival] = row
            if first:
                result = FOUND
                break
            if full:
                layer, worker = last - 1, end
    at[:] = layer, worker, seen, plans, size, 1
    return result


@compiled
def _covers(one: Floats, other: Floats) -> bool:
    """Whether one plan's costs dominate or equal another's."""
    return bool(one[CPU] <= other[CPU] + _EQUAL and one[IO] <= other[IO] + _EQUAL and one[NET] <= other[NET] + _EQUAL)


@compiled
def _enter_front(front: Front, size: int, cost: Floats) -> int:
    """Append the costs to the front, remove the members they dominate, and return the new size."""
    kept = 0
    for member in range(size):
        if not _covers(cost, front.cost[member]):
            if kept < member:
                front.cost[kept] = front.cost[member]
                front.plan[kept] = front.plan[member]
            kept += 1
    front.cost[kept] = cost
    return kept + 1


@compiled
def _canonical(layers: Layers, grid: Ints, row: Ints) -> None:
    """Write the plan worker by worker, operators in the problem's order, workers of one speed descending."""
    workers, depth = row.shape
    for worker in range(workers):
        for layer in range(depth):
            row[worker, layers.operator[layer]] = grid[CHOSEN, layer, worker]
    for worker in range(1, workers):
        place = worker
        while (
            place > 0
            and layers.speed[place] == layers.speed[place - 1]
            and _larger(row[place : place + 1], row[place - 1 : place])
        ):
            for operator in range(depth):
                row[place, operator], row[place - 1, operator] = row[place - 1, operator], row[place, operator]
            place -= 1


@compiled
def _larger(one: Ints, other: Ints) -> bool:
    """Whether `one` follows `other` in lexicographic order, row by row."""
    for worker in range(one.shape[0]):
        for operator in range(one.shape[1]):
            if one[worker, operator] != other[worker, operator]:
                return bool(one[worker, operator] > other[worker, operator])
    return False
