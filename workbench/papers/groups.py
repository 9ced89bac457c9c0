"""Fast heuristics for near-optimal task allocation (CIKM '14), sections 3, 4 and 7, by the same algorithms.

The jobs have the published topologies and total traffic. How the traffic and the processing cost divide is only drawn
in the paper, so the division here is ours, and only shapes compare. TL is the task-level algorithm, TD the top-down
one; they prioritise by communication (IMC) or by relative significance (RS). The optimum is of small jobs on equal
nodes; a new allocation, when input rates change, is that of sections 6 and 7.4.
"""

import math
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from workbench.arrays import Floats
from workbench.checks import SLACK, require, wholes
from workbench.papers.figure import Number, Panel, Paper, Reproduction, Series, read_figures
from workbench.placement import GroupAllocation, Job, best_allocation, task_level, top_down

MOST_STEPS = 20_000_000  # states x what one node can hold
_Load = tuple[int, ...]  # tasks of every group


def optimal_allocation(job: Job, capacity: Sequence[float]) -> GroupAllocation:
    """Most gain of all allocations, node by node: best[k][v] places the tasks v on k nodes.

    Raises `WorkbenchError` when capacities differ, or the product of the groups' sizes plus one is too large. When the
    tasks do not fit, the allocation has none.
    """
    limits = [float(value) for value in capacity]
    require(
        max(limits) - min(limits) <= SLACK * max(limits),
        f"The capacities are {min(limits):g} to {max(limits):g}; the optimum is computed for equal nodes only. "
        "Use best_allocation.",
    )
    loads = _loads(job, limits[0])
    shape = tuple(size + 1 for size in job.sizes)
    steps = math.prod(shape) * len(loads)
    require(
        steps <= MOST_STEPS,
        f"The optimum needs {steps:.3g} steps per node and {MOST_STEPS:.3g} are allowed; use best_allocation.",
    )
    best: list[Floats] = [np.full(shape, -np.inf)]
    best[0][(0,) * len(shape)] = 0.0
    for _ in limits:
        placed = best[-1].copy()  # an empty node
        for load, gain in loads.items():
            here = tuple(slice(taken, None) for taken in load)
            before = tuple(slice(None, size - taken) for size, taken in zip(shape, load, strict=True))
            np.maximum(placed[here], best[-1][before] + gain, out=placed[here])
        best.append(placed)
    return GroupAllocation.of(job, _followed_back(job, best, loads))


def _loads(job: Job, capacity: float) -> dict[_Load, float]:
    """List what one node can hold, and the communication it then saves."""
    room = capacity * (1 + SLACK)
    most = [
        size if cost == 0 else min(size, math.floor(room / cost))
        for size, cost in zip(job.sizes, job.task_cost, strict=True)
    ]
    require(
        math.prod(number + 1 for number in most) <= MOST_STEPS,
        f"A node can hold the tasks in more than {MOST_STEPS:.3g} ways; use best_allocation.",
    )
    return {
        load: job.gain([(tasks,) for tasks in load])
        for load in product(*(range(number + 1) for number in most))
        if any(load) and sum(n * cost for n, cost in zip(load, job.task_cost, strict=True)) <= room
    }


def _followed_back(job: Job, best: list[Floats], loads: dict[_Load, float]) -> list[list[int]]:
    counts = [[0] * (len(best) - 1) for _ in job.sizes]
    left = job.sizes
    if best[-1][left] == -np.inf:
        return counts
    for node in range(len(best) - 1, 0, -1):
        if best[node][left] == best[node - 1][left]:
            continue
        for load, gain in loads.items():
            before = tuple(have - taken for have, taken in zip(left, load, strict=True))
            if min(before) >= 0 and best[node - 1][before] + gain == best[node][left]:
                for group, taken in enumerate(load):
                    counts[group][node - 1] = taken
                left = before
                break
    return counts


@dataclass(frozen=True)
class Reallocation:
    """The result of a reconfiguration."""

    allocation: GroupAllocation  # the new allocation
    moved: int  # tasks that change their node


def reallocate(job: Job, capacity: Sequence[float], current: Sequence[Sequence[int]]) -> Reallocation:
    """Allocate again and match the result to the nodes so that few tasks move.

    The algorithms do not care which of several equal nodes gets which tasks; the matching does: it gives every node's
    new tasks to the node that already hosts most of them and has the capacity (a linear assignment). `current`: counts,
    shape (groups, nodes), of the same groups. Raises `WorkbenchError` when `current` is not an allocation of this job
    to these nodes.
    """
    limits = [float(value) for value in capacity]
    require(
        len(current) == len(job.sizes) and all(len(row) == len(limits) for row in current),
        f"current must have {len(job.sizes)} rows (groups) of {len(limits)} numbers (nodes).",
    )
    for group, (size, row) in enumerate(zip(job.sizes, current, strict=True)):
        wholes(f"The number of tasks of group {group} on node {{}}", row)
        require(
            sum(row) == size,
            f"current places {sum(row)} tasks of group {group}, which has {size}; "
            "reallocate keeps the number of tasks, so give a complete allocation of the same groups.",
        )
    fresh = top_down(job, capacity)
    old, new = np.asarray(current, dtype=np.int64), np.asarray(fresh.counts)
    cost = np.asarray(job.task_cost)
    fits = (cost @ new)[:, None] <= np.asarray(limits)[None, :] + SLACK * max(limits)
    kept = np.minimum(new[:, :, None], old[:, None, :]).sum(axis=0)  # [new node, old node]
    # a node's own tasks always fit it, so a matching without misfits exists
    rows, columns = linear_sum_assignment(np.where(fits, kept, -old.sum() - 1), maximize=True)
    counts = np.zeros_like(new)
    counts[:, columns] = new[:, rows]
    return Reallocation(GroupAllocation.of(job, counts.tolist()), int(new.sum() - kept[rows, columns].sum()))


NAME = "groups"
SEED = 2014
_TASKS, _COST, _NODES = 17, 500.0, (100.0,) * 8
_GRAPHS = 200

JOBS: Mapping[str, Job] = {
    "Twitter trending topics": Job((8, 16, 8, 1), (600, 800, 300, 40), ((0, 1, 100), (1, 2, 40), (2, 3, 3))),
    "Bargain detection": Job(
        (8, 12, 16, 24, 8, 1),
        (160, 240, 640, 720, 80, 10),
        ((0, 2, 190), (2, 3, 180), (1, 3, 340), (3, 4, 60), (4, 5, 20)),
    ),
}
"""Section 7.4's jobs: 143 MB/s and 790 MB/s in total; costs in % of a core."""

Allocate = Callable[[Job, Sequence[float]], GroupAllocation]
_TL: Allocate = partial(task_level, priority="imc")
_TL_DIAGONAL: Allocate = partial(task_level, priority="imc", order="diagonal")
_TD_IMC: Allocate = partial(top_down, priority="imc")
_CAPACITIES = (160, 180, 200, 250, 320, 400, 500, 640, 800, 1000, 1400, 1900)
_CLUSTER = 12


def random_job(rng: random.Random) -> Job:
    """Draw 3 to 7 groups with 17 tasks and a cost of 500 % in proportion, joined acyclically (section 7.3).

    Every group but the last has 1, 2 or 3 (70, 25, 5 %) later groups behind it; an edge carries 5 to 20 MB/s.
    """
    groups = rng.randint(3, 7)
    sizes = [1] * groups
    for _ in range(_TASKS - groups):
        sizes[rng.randrange(groups)] += 1
    edges = []
    for group in range(groups - 1):
        fan_out = rng.choices((1, 2, 3), weights=(70, 25, 5))[0]
        later = range(group + 1, groups)
        others = sorted(rng.sample(later, min(fan_out, len(later))))
        edges += [(group, other, rng.uniform(5.0, 20.0)) for other in others]
    return Job(tuple(sizes), tuple(_COST * size / _TASKS for size in sizes), tuple(edges))


def random_jobs(count: int, seed: int = SEED) -> tuple[list[Job], tuple[float, ...]]:
    """Draw jobs of section 7.3, see `random_job`; return them and the capacities of their nodes, %."""
    rng = random.Random(seed)
    return [random_job(rng) for _ in range(count)], _NODES


def round_robin(job: Job, nodes: int) -> list[list[int]]:
    """Assign tasks in turn, as Storm does by default; counts of shape (groups, nodes)."""
    ends = np.cumsum((0, *job.sizes))
    return [np.bincount(np.arange(*span) % nodes, minlength=nodes).tolist() for span in pairwise(ends)]


_PRIORITIES: Mapping[Literal["imc", "rs"], str] = {
    "imc": "prioritised by communication",
    "rs": "prioritised by relative significance",
}


def _figure_2(_: str) -> Reproduction:
    job = Job((10, 20, 10, 10), (40,) * 4, ((0, 1, 10), (1, 2, 9.9), (2, 3, 1)))
    found = {"TD": top_down, "TL": _TL_DIAGONAL, "TL, row by row": _TL}
    links = {}
    for name, allocate in found.items():
        first, second, *_rest = allocate(job, (40,) * 4).counts
        links[name] = sum(a * b for a, b in zip(first, second, strict=True))
    panel = Panel("Links", "Algorithm", "Links of the first pair on one node", "bars")
    return panel.beside({"TD": 100.0, "TL": 84.0}, links)


def _figure_4a(_: str) -> Reproduction:
    shrinking = tuple(range(200, 90, -20))
    # at twice the traffic the second pair, and at any less the first, is the more significant one (Equation 2)
    jobs = [Job((10, 10, 10), (100, 100, 290), ((0, 1, 100), (1, 2, edge))) for edge in shrinking]
    panel = Panel("Gain", "Communication of the second pair (MB/s; the first: 100)", "Gain (MB/s)")
    gains = {
        name: [task_level(one, (100,) * 8, priority, "diagonal").gain for one in jobs]
        for priority, name in _PRIORITIES.items()
    }
    return Reproduction((panel,), tuple(panel.series(name, shrinking, each) for name, each in gains.items()))


def _figure_4b(_: str) -> Reproduction:
    factors = tuple(range(1, 8))
    jobs = [Job((10, 10 * factor), (200, 200), ((0, 1, 100),)) for factor in factors]
    panel = Panel("Gain", "Tasks of the second group, in tens (the first: 10)", "Gain (MB/s)")
    gains = {"TD": [top_down(one, (80,) * 6).gain for one in jobs]}
    gains["TL"] = [_TL_DIAGONAL(one, (80,) * 6).gain for one in jobs]
    return Reproduction((panel,), tuple(panel.series(name, factors, each) for name, each in gains.items()))


def four_groups() -> tuple[Job, tuple[float, ...]]:
    """Return the job of section 7.2, four groups of 100 tasks, and its nodes."""
    return Job((100,) * 4, (200,) * 4, ((0, 1, 10.2), (1, 2, 10.1), (2, 3, 10.0))), (100.0,) * 10


def _figure_5(_: str) -> Reproduction:
    job, capacity = four_groups()
    rates = {}
    for name, allocate, repeats in (("TD", top_down, 200), ("TL", _TL, 2)):
        begun = time.process_time()
        for _repeat in range(repeats):
            allocate(job, capacity)
        rates[name] = repeats / max(time.process_time() - begun, 1e-6)
    panel = Panel("Speed", "Algorithm", "Allocations per second", "bars", log_y=True)
    return panel.beside({"TD": 264.0, "TL": None}, rates)


def _optimality(_: str) -> Reproduction:
    jobs, capacity = random_jobs(_GRAPHS)
    best = sum(optimal_allocation(job, capacity).gain for job in jobs)
    algorithms = {"TD": top_down, "TL": _TL, "best_allocation (ours)": best_allocation}
    shares = {name: 100 * sum(use(job, capacity).gain for job in jobs) / best for name, use in algorithms.items()}
    panel = Panel("Gain", "Algorithm", "Gain (% of the optimum)", "bars")
    return panel.beside({"TD": 93.1, "TL": 85.9}, shares)


_GAIN = Panel("Gain", "Capacity of a node (% of a core)", "Gain (MB/s)")


def _gains(job: Job, algorithms: Mapping[str, Allocate]) -> list[Series]:
    """Gain of each algorithm over the capacities of nodes, none where tasks are left over; Storm uses TD's nodes."""
    clusters = [(float(capacity),) * _CLUSTER for capacity in _CAPACITIES]
    used = [sum(any(node) for node in zip(*top_down(job, one).counts, strict=True)) for one in clusters]
    storm = tuple(job.gain(round_robin(job, nodes)) for nodes in used)
    found = {name: [allocate(job, one) for one in clusters] for name, allocate in algorithms.items()}
    gains = {name: [None if one.unplaced else one.gain for one in allocations] for name, allocations in found.items()}
    return [
        *(_GAIN.series(name, _CAPACITIES, values) for name, values in gains.items()),
        _GAIN.series("Storm", _CAPACITIES, storm),
    ]


def _most(above: Iterable[Number], below: Iterable[Number]) -> float:
    """By how many percent one series is above another at most."""
    return max(100 * (a / b - 1) for a, b in zip(above, below, strict=True) if a is not None and b)


_LABELS = ("Storm", "TL", "network load saved")
_ADVANTAGES: Mapping[str, tuple[float, float, float]] = {
    "Twitter trending topics": (91.0, 79.0, 13.0),
    "Bargain detection": (89.0, 31.0, 22.0),
}
"""What TD gains at most in the paper, %, by job (section 7.4)."""


def _job(name: str) -> Reproduction:
    job = JOBS[name]
    gains = Panel("Advantage of TD", "Compared with", "At most (%)", "bars")
    td, tl, default = _gains(job, {"TD": top_down, "TL": _TL})
    total = sum(edge[2] for edge in job.edges)
    # what TD saves of the traffic, beyond Storm
    more = max(100 * (a - b) / total for a, b in zip(td.y, default.y, strict=True) if a is not None and b is not None)
    ours = (_most(td.y, default.y), _most(td.y, tl.y), more)
    paper = gains.series("paper", _LABELS, _ADVANTAGES[name], published=True)
    return Reproduction((_GAIN, gains), (td, tl, default, paper, gains.series("ours", _LABELS, ours)))


def _figure_8(name: str) -> Reproduction:
    algorithms = {"TL": _TL, "TD-IMC": _TD_IMC, "TD-RS": top_down, "best_allocation (ours)": best_allocation}
    return Reproduction((_GAIN,), tuple(_gains(JOBS[name], algorithms)))


_MOVING = "TD with reconfiguration"
_CHANGING = (0.6, 0.8, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2, 0.2, 0.5)  # shares of the peak


def _figure_9(name: str) -> Reproduction:
    peak = JOBS[name]
    capacity = (400.0,) * 6
    fixed, storm = top_down(peak, capacity).counts, round_robin(peak, len(capacity))
    current: Sequence[Sequence[int]] = fixed
    moving, moved = [], []
    for share in _CHANGING:
        change = reallocate(peak.scaled(share), capacity, current)
        current = change.allocation.counts
        moving.append(change.allocation.gain)
        moved.append(change.moved)
    steps = tuple(range(1, len(_CHANGING) + 1))
    gain = Panel("Gain", "Step", "Gain (MB/s)")
    rate = Panel("Input rate", "Step", "Input rate (% of the peak)")
    moves = Panel("Moves", "Step", "Tasks that move", "bars")
    gains = [gain.series(_MOVING, steps, moving)]
    for label, counts in (("TD at the peak", fixed), ("Storm", storm)):
        gains.append(gain.series(label, steps, (peak.scaled(share).gain(counts) for share in _CHANGING)))
    rates = rate.series("rate", steps, (100 * share for share in _CHANGING))
    return Reproduction((gain, rate, moves), (*gains, rates, moves.series("moved tasks", steps, moved)))


def _steady(made: Reproduction) -> float:
    return 100 * min(made.named(_MOVING).values) / max(made.named(_MOVING).values)


PAPER = Paper(
    NAME,
    "Fast heuristics for near-optimal task allocation in data stream processing over clusters (CIKM '14)",
    read_figures(
        NAME,
        {
            "Figure 2": _figure_2,
            "Figure 4a": _figure_4a,
            "Figure 4b": _figure_4b,
            "Figure 5": _figure_5,
            "Section 7.3": _optimality,
            "Figure 6": lambda _: _job("Twitter trending topics"),
            "Figure 7": lambda _: _job("Bargain detection"),
            "Figure 8": _figure_8,
            "Figure 9": _figure_9,
        },
        {"steady": _steady},
    ),
)
