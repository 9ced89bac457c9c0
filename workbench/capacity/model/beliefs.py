"""The prior of the scaling law: grid points with their weights, by what is known of a query before any of its runs."""

from dataclasses import astuple, dataclass, replace
from functools import partial

import numpy as np

from workbench.arrays import Floats
from workbench.capacity.model.growth import STATELESS, UNKNOWN_ENGINE, Growth, Weights, shapes_of

_OVERHEADS = 7
_NOISES = 7
_CHEAP = 0.08  # configurations of stateless tasks: their records are so cheap that their sources matter, too (q1)


@dataclass(frozen=True, eq=False)
class Steps:
    """Growth of BIDS2's objective with the slots, in whose place the slots that carry no load are not asked for."""

    slots: Floats  # measured with an objective, ascending
    heights: Floats  # ln objective there, less that of the most slots

    def busy(self, slots: Floats, busy: Floats, most: Floats) -> Floats:
        """Replace `busy` slots, shape (grid points, rows), within those measured; of the last of these, `most` are."""
        within = most * np.exp(np.interp(np.log(slots), np.log(self.slots), self.heights))
        return np.where((slots >= self.slots[0]) & (slots <= self.slots[-1]), within, busy)


@dataclass(frozen=True)
class Beliefs:
    """The prior, before any run."""

    growth: Growth | None = None  # whose curves the published shapes are
    tasks: float = 0.0  # probability that slots are spent on whole tasks of a pipelined engine
    tasks_in_proportion: float = 1.0  # probability that they then add in proportion
    key: float = 0.0  # probability that they add towards the limit of one key's task
    steps: Steps | None = None  # of BIDS2's objective; None: unknown
    weights: Weights | None = None  # of the published shapes; None: those of the published curves
    # probability that other slots add in proportion, because what published systems lose is measured here
    in_proportion: float = 0.0
    # slots that share a core or two of one machine and so add in proportion in all likelihood, for `once` of 0; 0: none
    sharing: float = 0.0
    # slots for what a deployment does once, as shares of the fewest, all equally credible; where slots are no tasks
    once: tuple[float, ...] = (0.0, 0.15, 0.3)
    configuration: float = 0.055  # deviation of what runs at one slot count have in common, as a share of the rate
    memory: float = 0.15  # deviation of the memory exponent: 0.15 is 23 % between 1 and 4 GB
    bend: float = 0.05  # deviation from that power of the memory, as a share of the rate
    # range and most credible size of the noise of one run, as shares of the rate; repeats of one configuration differ
    # by 4 to 31 % (median, largest against smallest, StreamBed's published runs)
    noise_low: float = 0.01
    noise_high: float = 0.3
    noise_typical: float = 0.05

    def with_noise(self, deviation: float) -> "Beliefs":
        """Believe in runs that are known with this relative deviation at best."""
        typical = max(self.noise_typical, deviation)
        return replace(self, noise_typical=typical, noise_high=max(self.noise_high, 2 * typical))


def believe(
    fewest_slots: float, *, stateful: bool | None, growth: Growth | None = None, tasks: float = UNKNOWN_ENGINE
) -> Beliefs:
    """Give the beliefs for a query whose slots are whole tasks with the probability `tasks`.

    Where it is not known whether it has a stateful operator, that gets a probability that grows with the operators, for
    which the fewest slots stand; two operators, one of them a sink, have none.
    """
    state = 0.5 * max(0.0, 1 - 2 / fewest_slots) if stateful is None else float(stateful)
    beliefs = Beliefs(growth, tasks, tasks_in_proportion=(1 - state) * STATELESS + state / 3, key=state / 3)
    return replace(beliefs, configuration=_CHEAP) if tasks and not state else beliefs


def read_steps(points: Floats, objectives: Floats) -> Steps | None:
    """Read the steps from BIDS2's objective of each run, records/s, nan where there is none.

    Memory is taken out by a power. None unless two slot counts have an objective.
    """
    known = np.isfinite(objectives) & (objectives > 0)
    memory, slots = points[known].T
    counts, place = np.unique(slots, return_inverse=True)
    if len(counts) < 2:
        return None
    of_memory = np.log(memory) - np.log(memory).mean()
    design = np.column_stack([np.eye(len(counts))[place.reshape(-1)], of_memory])
    heights = np.linalg.lstsq(design, np.log(objectives[known]), rcond=None)[0][:-1]
    return Steps(counts, heights - heights[-1])


def prior_grid(fewest: float, beliefs: Beliefs) -> Floats:
    """Grid points, one per row: weight, overhead, noise, and the numbers of a `Shape`."""
    shapes = partial(shapes_of, beliefs.growth, fewest, weights=beliefs.weights)
    # One operator limits; each of the others wastes a part of a slot.
    of_tasks = np.linspace(0, max(fewest - 1, fewest / 2), _OVERHEADS)
    noises = np.geomspace(beliefs.noise_low, beliefs.noise_high, _NOISES)
    credible = np.exp(-0.5 * np.log(noises / beliefs.noise_typical) ** 2)
    grids = []
    for chance, overheads, likely in (
        (beliefs.tasks, of_tasks, shapes(in_proportion=beliefs.tasks_in_proportion, key=beliefs.key, every=2)),
        (
            1 - beliefs.tasks,
            fewest * np.array(beliefs.once),
            shapes(in_proportion=beliefs.in_proportion, sharing=beliefs.sharing),
        ),
    ):
        if chance > 0:
            sure = np.tile(chance / len(overheads) * credible / credible.sum(), len(overheads))
            ways = np.column_stack([sure, np.repeat(overheads, _NOISES), np.tile(noises, len(overheads))])
            kinds = np.array([astuple(shape) for shape in likely])
            left, right = np.repeat(ways, len(kinds), axis=0), np.tile(kinds, (len(ways), 1))
            grids.append(np.column_stack([left[:, 0] * right[:, 0], left[:, 1:], right[:, 1:]]))
    return np.concatenate(grids)
