"""The scaling law: what runs at few slots say about many, and how surely.

Fits over two to sixty slots look alike for a query that scales on in proportion and for one that will level off.
Choosing the form that fits best therefore decides little (on StreamBed's q1 it takes sqrt, which predicts a third of
what was then measured at 179 slots). The law starts from what is known about dataflows instead, and lets the runs
correct it:

    ln rate = k + h ln memory + e ln(slots - w) - ln(1 + s slots) + configuration + noise

- ``w``: slots that do not carry load. Slots are spent as the sum of ceil(share_i) over N operators: each of them but
  the limiting one wastes a part of a slot. Evenly between 0 and N - 1; the fewest slots measured stand for N.
- ``e``: 1 means that twice the slots carry twice the rate. Stragglers make it a little less. Some queries level off.
- ``s``: coordination, the contention of Gunther's universal scalability law.
- ``h``: memory acts on the cost of a record, so by a factor at every number of slots.
- ``configuration``: what all runs at one slot count have in common, such as whole tasks and how nodes are filled;
  repeats do not average it out. Without it ten repeats at three slot counts would pass for thirty witnesses.
- ``noise``: of one run, in proportion to the rate, its size unknown.

For given w, s and noise this is a linear model with normal priors, so its posterior is exact (Bayesian linear
regression; Gelman et al., Bayesian Data Analysis, chapter 14). The others lie on a grid whose points are weighted by
their evidence. A prediction is a mixture of normal distributions of ln rate; with few runs it has the long tails of
Student's t, because the noise is uncertain too.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from workbench.capacity.forms import Floats
from workbench.errors import WorkbenchError

_VAGUE = 10.0  # prior deviation of k: nothing is known about the size of the rates
_OVERHEADS = 9
_NOISES = 8
_NEGLIGIBLE = 1e-9
_HALVINGS = 60
_TAIL = 9.0


@dataclass(frozen=True)
class Shape:
    """One way of growing: its prior weight, mean and deviation of the exponent, and contention per slot."""

    weight: float
    exponent: float
    deviation: float
    contention: float = 0.0


@dataclass(frozen=True)
class Beliefs:
    """What is believed before any run.

    Parameters
    ----------
    shapes
        Proportional, with a deviation for stragglers: over 5 times the slots, sqrt(2 ln n) stragglers of 10 % cost
        about 4 %. With coordination: 5 % at 100 slots. Levelling off, as joins on skewed keys do. Hardly growing.
    configuration
        Deviation of what runs at one slot count have in common, as a share of the rate.
    whole_tasks
        Weight of the belief that, besides, whole tasks waste a random part of a slot per operator.
    memory
        Deviation of the memory exponent: 0.15 is 23 % between 1 and 4 GB.
    noise_low, noise_high, noise_typical
        Range and most credible size of the noise of one run, as shares of the rate; repeats of one configuration
        differ by 4 to 31 % (median, largest against smallest, StreamBed's published runs).
    """

    shapes: tuple[Shape, ...] = (
        Shape(0.69, 1.0, 0.015),
        Shape(0.25, 1.0, 0.015, contention=5e-4),
        Shape(0.05, 0.5, 0.1),
        Shape(0.01, 0.1, 0.1),
    )
    configuration: float = 0.055
    whole_tasks: float = 0.3
    drifting: float = 0.5
    memory: float = 0.15
    noise_low: float = 0.01
    noise_high: float = 0.3
    noise_typical: float = 0.05


@dataclass(frozen=True, eq=False)
class ScalingLaw:
    """The posterior: arrays with one entry per credible grid point, and the coefficients (k, h, e - its prior mean).

    Parameters
    ----------
    weight, overhead, exponent, contention, waste
        Weight, w, prior mean of e, s, and variance of the wasted slots.
    mean, covariance
        Of the coefficients, shapes (points, 3) and (points, 3, 3).
    pivot
        Mean of ln(slots - w) over the runs.
    log_memory, log_rate
        Means of ln memory and of ln rate over the runs.
    fewest_slots
        Fewest slots measured.
    configuration
        Deviation of what runs at one slot count have in common.
    """

    weight: Floats
    overhead: Floats
    drift: Floats
    exponent: Floats
    contention: Floats
    waste: Floats
    mean: Floats
    covariance: Floats
    pivot: Floats
    log_memory: float
    log_rate: float
    fewest_slots: float
    configuration: float

    @property
    def expected_overhead(self) -> float:
        """Slots expected not to carry load."""
        return float(self.weight @ self.overhead)

    @property
    def expected_exponents(self) -> tuple[float, float]:
        """Expected exponents of memory and of slots."""
        return float(self.weight @ self.mean[:, 1]), float(self.weight @ (self.exponent + self.mean[:, 2]))

    @property
    def levelling(self) -> float:
        """Probability of a shape that is far from proportional."""
        return float(self.weight[self.exponent < 0.9].sum())

    def quantile(self, points: Floats, probability: float) -> Floats:
        """Capacity that is not reached with `probability`, at `points` (rows, 2): memory, slots; 0.5 is the median."""
        weight = self.weight[:, None]
        mean, deviation = self._moments(points)
        low, high = (mean - _TAIL * deviation).min(axis=0), (mean + _TAIL * deviation).max(axis=0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            below = (weight * ndtr((middle - mean) / deviation)).sum(axis=0) < probability
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(np.exp((low + high) / 2))

    def _moments(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and deviation of ln capacity for each grid point of weight, shapes (grid points, rows)."""
        memory, slots = points.T
        busy = _busy_slots(slots, self.overhead, self.drift, self.fewest_slots)
        growth = np.log(busy) - self.pivot[:, None]
        row = np.stack(np.broadcast_arrays(np.ones(()), np.log(memory) - self.log_memory, growth), axis=-1)
        fixed = self.exponent[:, None] * growth - np.log1p(np.outer(self.contention, slots))
        mean = self.log_rate + fixed + np.einsum("gtj,gj->gt", row, self.mean)
        variance = np.einsum("gtj,gjk,gtk->gt", row, self.covariance, row)
        whole = self.waste[:, None] / np.maximum(busy, self.fewest_slots - self.overhead[:, None]) ** 2
        return mean, np.sqrt(variance + self.configuration**2 + whole)


def fit_scaling_law(points: Floats, rates: Floats, beliefs: Beliefs | None = None) -> ScalingLaw:
    """Fit the law to `rates` at `points`, shape (rows, 2): memory, slots.

    Raises
    ------
    WorkbenchError
        When a rate, a memory or a number of slots is not positive.
    """
    if not ((points > 0).all() and (rates > 0).all()):
        raise WorkbenchError(
            "The scaling law needs positive memory, slots and rates; leave out the runs that sustained nothing."
        )
    beliefs = beliefs or Beliefs()
    memory, slots = points.T
    fewest = float(slots.min())
    grid = _grid(fewest, beliefs)
    weight, overhead, drift, exponent, deviation, contention, waste, noise = grid
    log_memory, log_rate = float(np.log(memory).mean()), float(np.log(rates).mean())

    busy = _busy_slots(slots, overhead, drift, fewest)
    growth = np.log(busy)
    pivot = growth.mean(axis=1)
    growth -= pivot[:, None]
    rows = np.stack(np.broadcast_arrays(np.ones(()), np.log(memory) - log_memory, growth), axis=-1)
    rest = np.log(rates) - log_rate - exponent[:, None] * growth + np.log1p(np.outer(contention, slots))

    # Runs at one slot count share a deviation of variance v: their covariance is noise^2 I + v 1 1'. Its inverse is
    # (I - v / (noise^2 + runs v) 1 1') / noise^2, so sums by slot count are all that is needed.
    _, first, level = np.unique(slots, return_index=True, return_inverse=True)
    member = np.eye(len(first))[level]
    runs = member.sum(axis=0)
    shared = beliefs.configuration**2 + waste[:, None] / busy[:, first] ** 2
    variance = noise[:, None] ** 2
    shrink = shared / (variance + runs * shared)
    row_sums = np.einsum("gnj,nk->gkj", rows, member)
    rest_sums = rest @ member
    square = np.einsum("gnj,gni->gji", rows, rows) - np.einsum("gk,gkj,gki->gji", shrink, row_sums, row_sums)
    cross = np.einsum("gnj,gn->gj", rows, rest) - np.einsum("gk,gkj,gk->gj", shrink, row_sums, rest_sums)
    left_over = (rest**2).sum(axis=1) - (shrink * rest_sums**2).sum(axis=1)
    log_det = ((runs - 1) * np.log(variance) + np.log(variance + runs * shared)).sum(axis=1)

    precision = np.stack([np.full_like(deviation, _VAGUE), np.full_like(deviation, beliefs.memory), deviation], 1) ** -2
    posterior = square / variance[:, :, None] + precision[:, :, None] * np.eye(3)
    covariance = np.linalg.inv(posterior)
    mean = np.einsum("gij,gj->gi", covariance, cross / variance)
    quadratic = left_over / noise**2 - np.einsum("gj,gj->g", mean, cross / variance)
    evidence = -0.5 * (quadratic + log_det + np.linalg.slogdet(posterior)[1] - np.log(precision).sum(axis=1)) + np.log(
        weight
    )
    credible = np.exp(evidence - evidence.max())
    kept = credible > _NEGLIGIBLE
    return ScalingLaw(
        weight=credible[kept] / credible[kept].sum(),
        overhead=overhead[kept],
        drift=drift[kept],
        exponent=exponent[kept],
        contention=contention[kept],
        waste=waste[kept],
        mean=mean[kept],
        covariance=covariance[kept],
        pivot=pivot[kept],
        log_memory=log_memory,
        log_rate=log_rate,
        fewest_slots=fewest,
        configuration=beliefs.configuration,
    )


def _busy_slots(slots: Floats, overhead: Floats, drift: Floats, fewest: float) -> Floats:
    """Slots that carry load, shape (grid points, rows); below the fewest measured in proportion to the slots."""
    share = 1 - overhead[:, None] / fewest
    idle = overhead[:, None] + drift[:, None] * (1 - fewest / np.maximum(slots, fewest))
    return np.where(slots < fewest, slots * share, slots - idle)


def _grid(fewest: float, beliefs: Beliefs) -> tuple[Floats, ...]:
    """Grid points: weight, overhead, exponent, its deviation, contention, variance of wasted slots, noise."""
    # One operator limits; each of the others wastes a part of a slot, evenly between 0 and 1 (variance 1/12).
    others = max(fewest - 1, fewest / 2)
    noises = np.geomspace(beliefs.noise_low, beliefs.noise_high, _NOISES)
    credible = np.exp(-0.5 * np.log(noises / beliefs.noise_typical) ** 2)
    points = [
        (shape.weight * share * chance * drifts, overhead, moves * (others / 2 - overhead), shape.exponent, shape.deviation, shape.contention, waste, noise)
        for overhead in np.linspace(0, others, _OVERHEADS)
        for shape in beliefs.shapes
        for drifts, moves in ((1 - beliefs.drifting, 0.0), (beliefs.drifting, 1.0))
        for share, waste in ((1 - beliefs.whole_tasks, 0.0), (beliefs.whole_tasks, others / 12))
        for noise, chance in zip(noises, credible / credible.sum(), strict=True)
    ]
    return tuple(np.array(points).T)
