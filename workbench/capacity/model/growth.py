"""How capacity grows with slots: the prior of the scaling law, by what is known of a query before its first run.

A shape has an exponent (1: in proportion), contention (Gunther's universal scalability law: 1 / (1 + s slots)), or a
bend, beyond which growth continues with a smaller exponent, or ends. Shapes come in three ways of growing:

- as published systems did: workers share a broker or coordinate; the cores of one machine share its caches and memory,
  and behind the last core come hyper-threads;
- in proportion (`IN_PROPORTION`);
- towards the limit of one key's task (`KEY`): records of one key meet on one task, whatever the slots.

How credible each way is depends on what is known:

- Of micro-batches, more slots are more workers: the published shapes, unless parts of a batch were measured
  (`workbench.capacity.model.scaling_law`).
- A pipelined engine spends slots on whole tasks of the operators. Stateless ones share nothing: proportion has all of
  the prior but a hundredth (`STATELESS`). With a stateful operator each way has a third.
- Where not even the engine is known, it may be either (`UNKNOWN_ENGINE`), and the runs decide.

The weights of the published shapes are those of greatest likelihood for 79 published curves of eight families of
systems (``python benchmarks/families.py weights``). Each family counts by the square root of its curves; workers and
cores are drawn towards their common weights as much as three curves do. ``python benchmarks/families.py`` reports how
often the intervals hold in unseen families, ``python benchmarks/model.py`` judges the rest on StreamBed's queries and
on random ones. `STATELESS` was set on q1 and is judged on q2; `KEY` was chosen with random queries and the simulated
q5, q8 and q11 at hand, `UNKNOWN_ENGINE` with all of these.

The first slots of a measured deployment, shares of a core or two of one machine, are neither workers nor cores: where
they read no shared topic, they add in proportion in all likelihood, and what the curves lost begins beyond them.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, get_args

import numpy as np

from workbench.arrays import Floats
from workbench.checks import one_of

Growth = Literal["tasks", "workers", "cores"]
"""What more slots are, if a study defines it: whole tasks of a pipelined engine, workers, or cores of one machine."""

STATELESS = 0.99  # probability of growth in proportion where slots are whole tasks of stateless operators
UNKNOWN_ENGINE = 0.25  # probability that slots are whole tasks, where the engine is unknown
_EXPONENTS = ((1.0, 0.02), (0.9, 0.05), (0.7, 0.1), (0.4, 0.12), (0.05, 0.1))  # means and deviations
# what does not shrink with more slots, over the work of one slot, times the fewest slots measured
_CONTENTIONS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_AFTER = (0.6, 0.3, 0.0)  # exponents after a bend
_BENT = 3  # how many of the exponents, from the first, may have a bend; with the others there is little growth anyway
_STEP = math.log(2) / 2  # distance of the positions at which there may be a bend, in ln slots
_POSITIONS = 16  # how many there are: up to 256 times the fewest slots measured


@dataclass(frozen=True)
class Shape:
    """One way of growing."""

    weight: float  # prior probability
    exponent: float  # prior mean of the exponent
    deviation: float  # prior deviation of the exponent
    contention: float = 0.0  # see `_CONTENTIONS`; of the slots at `start`, if there is one
    bend: float = math.inf  # where growth changes, in ln slots from the fewest; inf: nowhere
    after: float = 0.0  # exponent beyond the bend
    start: float = 0.0  # where the shape begins, in ln slots from the fewest; below, growth is in proportion


@dataclass(frozen=True)
class Weights:
    """Prior probabilities: of each of `_EXPONENTS`, of each of `_CONTENTIONS`, and of a bend to each of `_AFTER`.

    The last two add up to 1. A bend is as probable at any of its positions, and only with the first `_BENT` exponents.
    """

    exponents: tuple[float, ...]
    contentions: tuple[float, ...]
    bends: tuple[float, ...]

    def shapes(self, every: int = 1) -> Iterator[Shape]:
        """Yield every shape, always in the same order, with bends at each `every`-th position; weights add up to 1."""
        positions = range(every, _POSITIONS + 1, every)
        for place, ((exponent, deviation), chance) in enumerate(zip(_EXPONENTS, self.exponents, strict=True)):
            steady = chance if place < _BENT else chance / sum(self.contentions)
            for contention, weight in zip(_CONTENTIONS, self.contentions, strict=True):
                yield Shape(steady * weight, exponent, deviation, contention)
            for after, weight in zip(_AFTER, self.bends, strict=True):
                for position in positions if place < _BENT else ():
                    yield Shape(chance * weight / len(positions), exponent, deviation, 0.0, position * _STEP, after)


WEIGHTS: Mapping[str, Weights] = {
    "workers": Weights(
        exponents=(0.096, 0.574, 0.199, 0.045, 0.086),
        contentions=(0.346, 0.057, 0.010, 0.074, 0.055, 0.020, 0.053),
        bends=(0.005, 0.008, 0.372),
    ),
    "cores": Weights(
        exponents=(0.068, 0.477, 0.400, 0.009, 0.046),
        contentions=(0.047, 0.009, 0.003, 0.251, 0.197, 0.074, 0.012),
        bends=(0.002, 0.005, 0.400),
    ),
}
"""Weights of greatest likelihood for all published curves."""

IN_PROPORTION = (Shape(0.75, 1.0, 0.015), Shape(0.25, 1.0, 0.015, contention=5e-4))
"""In proportion except for stragglers, or with coordination, 5 % at 100 slots."""

KEY = tuple(Shape(1 / 9, 0.95, 0.05, contention=0.003 * 1000 ** (step / 8)) for step in range(9))
"""One key's task, which at the fewest slots does .3 to 100 % of what a slot does, all equally credible."""

LATER = 0.5
"""Probability that the losses of more workers or cores begin beyond the slots that share `SHARED_CORES`.

With an `in_proportion` of .6 these slots add in proportion with .8, which is less than the measurements say: in all
eleven (seven queries, on machines of two cores) they did, to about a tenth, up to eight times beyond the runs.
"""

SHARED_CORES = 1.6  # cores of one machine on which slots were measured to add in proportion; more were not tried


def shapes_of(
    growth: Growth | None,
    fewest_slots: float,
    *,
    weights: Weights | None = None,
    in_proportion: float = 0.0,
    key: float = 0.0,
    sharing: float = 0.0,
    every: int = 1,
) -> tuple[Shape, ...]:
    """Return the ways of growing, with weights that add up to 1.

    `weights`, by default those of all curves, are of the published shapes: of cores of one machine where `growth` says
    so, else of workers; bends are at each `every`-th position. With the probabilities `in_proportion` and `key` slots
    add as `IN_PROPORTION` or as `KEY` instead. `sharing` slots share `SHARED_CORES` of one machine; no more than the
    fewest measured: none, or unknown.
    """
    if growth is not None:
        one_of("The growth", growth, get_args(Growth))
    published = weights or WEIGHTS["cores" if growth == "cores" else "workers"]
    start = math.log(max(1.0, sharing / fewest_slots))
    later = LATER if start > 0 else 0.0
    return tuple(
        replace(shape, weight=chance * shape.weight, contention=scale * shape.contention, start=begins)
        for chance, scale, begins, shapes in (
            ((1 - in_proportion - key) * (1 - later), 1.0, 0.0, published.shapes(every)),
            ((1 - in_proportion - key) * later, 1.0, start, published.shapes(every=2)),  # no run can have shown it
            (in_proportion, fewest_slots, 0.0, IN_PROPORTION),
            (key, 1.0, 0.0, KEY),
        )
        for shape in shapes
        if chance > 0
    )


_OVERHEADS = 7
_NOISES = 7
_CHEAP = 0.08  # configurations of stateless tasks: their records are so cheap that their sources matter, too (q1)


@dataclass(frozen=True, eq=False)
class Steps:
    """Growth of BIDS2's objective with the slots, which replaces the prior of slots that carry no load."""

    slots: Floats  # measured with an objective, ascending
    heights: Floats  # ln objective there, less that of the most slots

    def busy(self, slots: Floats, busy: Floats, most: Floats) -> Floats:
        """Replace the `busy` slots, shape (grid points, rows), in the range measured; `most` are busy at its end."""
        within = most * np.exp(np.interp(np.log(slots), np.log(self.slots), self.heights))
        return np.where((slots >= self.slots[0]) & (slots <= self.slots[-1]), within, busy)


@dataclass(frozen=True)
class Prior:
    """The prior of the law, before any run."""

    growth: Growth | None = None  # published curves that the shapes come from
    tasks: float = 0.0  # probability that slots are spent on whole tasks of a pipelined engine
    tasks_in_proportion: float = 1.0  # probability that whole tasks add in proportion
    key: float = 0.0  # probability that whole tasks add towards the limit of one key's task
    steps: Steps | None = None  # of BIDS2's objective; None: unknown
    weights: Weights | None = None  # of the published shapes; None: those of the published curves
    # probability that other slots add in proportion, because what published systems lose is measured here
    in_proportion: float = 0.0
    # slots that share a core or two of one machine, so that they very probably add in proportion (`once` is 0); 0: none
    sharing: float = 0.0
    # slots for what a deployment does once, as shares of the fewest, equally credible; only where slots are not tasks
    once: tuple[float, ...] = (0.0, 0.15, 0.3)
    configuration: float = 0.055  # deviation that all runs at one slot count share, as a share of the rate
    memory: float = 0.15  # deviation of the memory exponent: 0.15 is 23 % between 1 and 4 GB
    bend: float = 0.05  # deviation of single memories from that power, as a share of the rate
    # range and most credible size of the noise of one run, as shares of the rate; repeats of one configuration differ
    # by 4 to 31 % (median, largest against smallest, StreamBed's published runs)
    noise_low: float = 0.01
    noise_high: float = 0.3
    noise_typical: float = 0.05


def prior_of(
    fewest_slots: float, *, stateful: bool | None, growth: Growth | None = None, tasks: float = UNKNOWN_ENGINE
) -> Prior:
    """Return the prior for a query whose slots are whole tasks with the probability `tasks`.

    If it is unknown whether it has a stateful operator, the probability of one grows with the operators, estimated by
    the fewest slots; it is 0 for two operators, one of which is a sink.
    """
    state = 0.5 * max(0.0, 1 - 2 / fewest_slots) if stateful is None else float(stateful)
    prior = Prior(growth, tasks, tasks_in_proportion=(1 - state) * STATELESS + state / 3, key=state / 3)
    return replace(prior, configuration=_CHEAP) if tasks and not state else prior


def read_steps(points: Floats, objectives: Floats) -> Steps | None:
    """Fit the steps to objectives (records/s or nan), with a power of memory taken out; None below two slot counts."""
    known = np.isfinite(objectives) & (objectives > 0)
    memory, slots = points[known].T
    counts, place = np.unique(slots, return_inverse=True)
    if len(counts) < 2:
        return None
    of_memory = np.log(memory) - np.log(memory).mean()
    design = np.column_stack([np.eye(len(counts))[place.reshape(-1)], of_memory])
    heights = np.linalg.lstsq(design, np.log(objectives[known]), rcond=None)[0][:-1]
    return Steps(counts, heights - heights[-1])


class Grid(NamedTuple):
    """Points of the law's grid: arrays with one entry each. What is not described here is as of a `Shape`."""

    weight: Floats
    overhead: Floats  # w
    noise: Floats  # deviation of one run, as a share of the rate
    exponent: Floats
    deviation: Floats
    contention: Floats
    bend: Floats
    after: Floats
    start: Floats


def prior_grid(fewest: float, prior: Prior) -> Grid:
    """Return the grid before any run."""
    shapes = partial(shapes_of, prior.growth, fewest, weights=prior.weights)
    # One operator limits; each of the others wastes a part of a slot.
    of_tasks = np.linspace(0, max(fewest - 1, fewest / 2), _OVERHEADS)
    noises = np.geomspace(prior.noise_low, prior.noise_high, _NOISES)
    credible = np.exp(-0.5 * np.log(noises / prior.noise_typical) ** 2)
    grids = []
    for chance, overheads, likely in (
        (prior.tasks, of_tasks, shapes(in_proportion=prior.tasks_in_proportion, key=prior.key, every=2)),
        (
            1 - prior.tasks,
            fewest * np.array(prior.once),
            shapes(in_proportion=prior.in_proportion, sharing=prior.sharing),
        ),
    ):
        if chance > 0:
            sure = np.tile(chance / len(overheads) * credible / credible.sum(), len(overheads))
            ways = np.column_stack([sure, np.repeat(overheads, _NOISES), np.tile(noises, len(overheads))])
            kinds = np.array([astuple(shape) for shape in likely])
            left, right = np.repeat(ways, len(kinds), axis=0), np.tile(kinds, (len(ways), 1))
            grids.append(np.column_stack([left[:, 0] * right[:, 0], left[:, 1:], right[:, 1:]]))
    return Grid(*np.concatenate(grids).T)
