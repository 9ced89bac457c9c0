"""The scaling law: what runs at few slots show about many, and with what certainty.

Fits over two to sixty slots look alike for a query that scales on and for one that will level off, so the form that
fits best decides little (on StreamBed's q1, sqrt, which predicts a third of what was then measured at 179 slots). The
law starts from what is known about dataflows instead, and lets the runs correct it:

    ln rate = k + e ln(slots - w) - ln(1 + s slots) + memory + configuration + noise

- ``w``: slots that do not carry load. Where slots are spent on whole tasks, each of N operators but the limiting one
  wastes a part of a slot: evenly between 0 and N - 1, where the fewest slots measured stand for N. BIDS2's objectives
  show these steps, so they cancel in measured / objective (`Steps`). Elsewhere w is what a deployment does once,
  whatever its size: none, 15 or 30 % of the fewest slots.
- ``e``: 1 means that twice the slots carry twice the rate. It may change at a bend. Where slots first share a core or
  two, e and s may begin to count beyond these.
- ``s``: what does not shrink with more slots, over the work of one slot: coordination, and a stateful operator's
  hottest key, which stays on one task. For the prior of e, s and bends see `workbench.capacity.model.growth`.
- ``memory`` acts on the cost of a record, so by a factor at every number of slots: a power of the memory and a smooth
  deviation from it, because caches fill.
- ``configuration``: what all runs at one slot count have in common, such as whole tasks and how nodes are filled;
  repeats do not average it out.
- ``noise``: of one run, in proportion to the rate, its size unknown.

For a given w, shape of growth and noise this is a linear model with normal priors, so its posterior is exact (Gelman et
al., Bayesian Data Analysis, chapter 14). The others lie on a grid whose points are weighted by their evidence. A
prediction is a mixture of normal distributions of ln rate, with the long tails of Student's t where runs are few. Where
runs at few slots cannot distinguish a hot key from a test cluster that fills up, the prior about keys decides, so say
whether a query is stateful.

Where the parts of a batch (`workbench.capacity.model.micro_batch`) explain the runs, it is of what these leave open:

    capacity = what the parts say at as many partitions as slots x the scaling law of (measured / what the parts say)

They say what the driver and the tasks take at any number of slots, not what more workers share: the network, a broker,
a coordinator. The law then needs no slots for work done once, which the parts have measured, and takes growth in
proportion for more credible than in published systems; while slots share a core or two, for more credible still.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from workbench.arrays import Floats
from workbench.capacity.model.growth import LATER, Grid, Prior, Steps, prior_grid, prior_of
from workbench.capacity.model.micro_batch import MicroBatch
from workbench.errors import WorkbenchError

_VAGUE = 10.0  # prior deviation of k: nothing is known about the size of the rates
_NEGLIGIBLE = 1e-9
_HALVINGS = 32
_TAIL = 9.0
# Times the most slots measured, from where fewer slots may carry more; between the counts tried from there; how many.
_FAR, _STEP, _STEPS = 8.0, 1.25, 24

TWICE_LEAST = 1.83  # factor by which twice the slots raise the capacity where it does not level off

IN_PROPORTION = 0.6
"""Probability, before any run, of growth in proportion to what the parts leave, at any number of slots."""
SHARING_IN_PROPORTION = 1 - (1 - IN_PROPORTION) * (1 - LATER)
"""The same for slots that share up to `SHARED_CORES` of one machine."""
_MOST_FIXED = 0.95  # of an interval; beyond it no usable rate is left
_WAYS = 20  # halvings of the law's share of the way to a rate


@dataclass(frozen=True, eq=False)
class Tie:
    """Draws the law to the brackets that it misses: ln of a factor, by slots measured.

    Between these it is interpolated over ln slots; beyond them it fades in proportion to the slots.
    """

    slots: Floats  # measured, ascending
    off: Floats  # ln of the nearest end of the bracket over the law's capacity; 0 if that is within the bracket

    def at(self, slots: Floats) -> Floats:
        """Ln of the factor at each of `slots`."""
        near = np.clip(slots, self.slots[0], self.slots[-1])
        drawn = np.interp(np.log(near), np.log(self.slots), self.off)
        return np.asarray(drawn * np.minimum(near / slots, slots / near))


@dataclass(frozen=True, eq=False)
class ScalingLaw:
    """The posterior: its arrays have one entry per credible grid point."""

    grid: Grid
    # of the coefficients, shapes (points, size) and (points, size, size): k, the effect of each memory measured, and e
    # less its prior mean
    mean: Floats
    covariance: Floats
    pivot: Floats  # mean over the runs of ln busy slots from the fewest, from the start up to the bend
    memory: "MemoryCurve"  # the effects of memory: where they are, how they vary
    log_rate: float  # mean of ln rate over the runs
    fewest_slots: float  # fewest slots measured
    levelling_slots: float  # slots that `levelling` is about: the most measured
    configuration: float  # deviation that all runs at one slot count share
    steps: Steps | None  # of BIDS2's objective; None: unknown
    tie: Tie | None = None  # to the brackets measured; None: the law misses none

    @property
    def expected_exponents(self) -> tuple[float, float]:
        """Expected exponents of memory and of slots."""
        return (
            self.memory.exponent(self.grid.weight @ self.mean[:, 1:-1]),
            float(self.grid.weight @ (self.grid.exponent + self.mean[:, -1])),
        )

    @property
    def levelling(self) -> float:
        """Probability that twice the slots, up to `levelling_slots`, give less than 1.83 times the capacity."""
        slots = np.array([self.levelling_slots / 2, self.levelling_slots])
        before, grown = _grown(self.grid, slots, self.fewest_slots, self.steps)
        grown += (self.grid.exponent + self.mean[:, -1])[:, None] * before
        return float(self.grid.weight[grown[:, 1] - grown[:, 0] < np.log(TWICE_LEAST)].sum())

    def quantile(self, points: Floats, probability: float) -> Floats:
        """Capacity that is not reached with `probability`, at `points` (rows, 2): memory, slots; 0.5 is the median.

        Slots can stay idle, so far from what was measured it is at least that of fewer slots.
        """
        return self._or_of_fewer(points, lambda at: self._quantile(at, probability), np.maximum)

    def _quantile(self, points: Floats, probability: float) -> Floats:
        weight = self.grid.weight[:, None]
        mean, deviation = self._moments(points)
        low, high = (mean - _TAIL * deviation).min(axis=0), (mean + _TAIL * deviation).max(axis=0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            below = (weight * ndtr((middle - mean) / deviation)).sum(axis=0) < probability
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(np.exp((low + high) / 2))

    def below(self, points: Floats, rate: float) -> Floats:
        """Probability that the capacity at `points` (rows, 2) is below `rate`, records/s, as `quantile` has it."""
        return self._or_of_fewer(points, lambda at: self.below_each(at, np.full(len(at), rate)), np.minimum)

    def below_each(self, points: Floats, rates: Floats) -> Floats:
        """Probability that the capacity at `points` (rows, 2) is below `rates` (rows,), if no slot stays idle."""
        mean, deviation = self._moments(points)
        return np.asarray(self.grid.weight @ ndtr((np.log(rates) - mean) / deviation))

    def _or_of_fewer(self, points: Floats, values: Callable[[Floats], Floats], best: np.ufunc) -> Floats:
        """Return the `values` at points; far from what was measured, the `best` of them and those at fewer slots."""
        found, nearest = values(points), _FAR * self.levelling_slots
        far = points[:, 1] > nearest
        for memory in np.unique(points[far, 0]):
            rows = far & (points[:, 0] == memory)
            ladder = nearest * _STEP ** np.arange(_STEPS)
            ladder = ladder[ladder < points[rows, 1].max()]
            fewer = best.accumulate(values(np.stack([np.full(len(ladder), memory), ladder], axis=1)))
            found[rows] = best(found[rows], fewer[np.searchsorted(ladder, points[rows, 1]) - 1])
        return found

    def _moments(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and deviation of ln capacity for each grid point of weight, shapes (grid points, rows)."""
        memory, slots = points.T
        before, grown = _grown(self.grid, slots, self.fewest_slots, self.steps)
        growth = before - self.pivot[:, None]
        effects, unknown = self.memory.interpolate(np.log(memory))
        rows = _rows(effects, growth)
        mean = self.log_rate + self.grid.exponent[:, None] * growth + grown + np.einsum("gtj,gj->gt", rows, self.mean)
        variance = np.einsum("gtj,gjk,gtk->gt", rows, self.covariance, rows) + unknown
        if self.tie is not None:
            mean += self.tie.at(slots)
        return mean, np.sqrt(variance + self.configuration**2)

    def tied(self, points: Floats, low: Floats, high: Floats) -> "ScalingLaw":
        """Draw the law to the brackets from `low` to `high` at `points`, shapes (rows,) and (rows, 2), that it misses.

        Of several at one slot count, it misses what lies beyond all of them.
        """
        middle, (slots, place) = self.quantile(points, 0.5), np.unique(points[:, 1], return_inverse=True)
        least, most = np.full(len(slots), np.inf), np.full(len(slots), -np.inf)
        np.minimum.at(least, place.reshape(-1), np.log(low / middle))
        np.maximum.at(most, place.reshape(-1), np.log(high / middle))
        off = np.maximum(least, 0.0) + np.minimum(most, 0.0)
        return replace(self, tie=Tie(slots, off)) if off.any() else self


@dataclass(frozen=True, eq=False)
class MemoryCurve:
    """Prior of the effect of memory on ln rate: a line through the mean of ln memory, and deviations from it."""

    measured: Floats  # distinct ln memory of the runs, ascending
    centre: float  # mean of ln memory over the runs
    exponent_deviation: float  # of the line's slope
    bend: float  # deviation; the bends of two memories that differ by a factor of e are correlated by 1/e

    def covariance(self, left: Floats, right: Floats) -> Floats:
        """Prior covariance of the effects at two lists of ln memory."""
        line = self.exponent_deviation**2 * np.outer(left - self.centre, right - self.centre)
        return np.asarray(line + self.bend**2 * np.exp(-np.abs(np.subtract.outer(left, right))))

    def interpolate(self, asked: Floats) -> tuple[Floats, Floats]:
        """Weights of the measured memories' effects in those at `asked`, and the remaining variance."""
        across = self.covariance(asked, self.measured)
        weights = np.linalg.solve(self.covariance(self.measured, self.measured), across.T).T
        own = (self.exponent_deviation * (asked - self.centre)) ** 2 + self.bend**2
        left: Floats = np.maximum(own - (weights * across).sum(axis=1), 0.0)
        return np.asarray(weights), left

    def exponent(self, effects: Floats) -> float:
        """Slope of the line, given the effects at the measured memories."""
        prior = self.covariance(self.measured, self.measured)
        across = self.exponent_deviation**2 * (self.measured - self.centre)
        return float(across @ np.linalg.solve(prior, effects))


def fit_scaling_law(points: Floats, rates: Floats, prior: Prior | None = None) -> ScalingLaw:
    """Fit the law to `rates` at `points` (rows, 2): memory, slots, all positive; by default with the general prior."""
    if not ((points > 0).all() and (rates > 0).all()):
        raise WorkbenchError(
            "The scaling law needs positive memory, slots and rates; leave out the runs that sustained nothing."
        )
    points, repeats, log_rates, within = _repeated(points, np.log(rates))
    share = repeats / repeats.sum()
    log_memory, slots = np.log(points[:, 0]), points[:, 1]
    fewest = float(slots.min())
    prior = prior or prior_of(fewest, stateful=None)
    grid = prior_grid(fewest, prior)

    measured, of_memory = np.unique(log_memory, return_inverse=True)
    memory = MemoryCurve(measured, float(share @ log_memory), prior.memory, prior.bend)
    growth, grown = _grown(grid, slots, fewest, prior.steps)
    pivot = growth @ share
    growth -= pivot[:, None]
    rows = _rows(np.eye(len(measured))[of_memory], growth)
    log_rate = float(share @ log_rates)
    rest = log_rates - log_rate - grid.exponent[:, None] * growth - grown

    # Runs at one slot count share a deviation of variance v: their covariance is noise^2 I + v 1 1'. Its inverse is
    # (I - v / (noise^2 + runs v) 1 1') / noise^2, so sums by slot count are all that is needed: of every budget its
    # mean, as often as it was measured, and the square of what its repeats differ by. Budgets are ordered by slots.
    first = np.flatnonzero(np.diff(slots, prepend=0.0))
    runs = np.add.reduceat(repeats, first)
    shared = prior.configuration**2
    variance = grid.noise[:, None] ** 2
    shrink = shared / (variance + runs * shared)
    counted, rest_counted = np.swapaxes(rows * repeats[:, None], 1, 2), rest * repeats
    row_sums, rest_sums = np.add.reduceat(counted, first, axis=2), np.add.reduceat(rest_counted, first, axis=1)
    square = counted @ rows - (row_sums * shrink[:, None, :]) @ np.swapaxes(row_sums, 1, 2)
    cross = np.einsum("gjn,gn->gj", counted, rest) - np.einsum("gjk,gk,gk->gj", row_sums, shrink, rest_sums)
    left_over = within + (rest_counted * rest).sum(axis=1) - (shrink * rest_sums**2).sum(axis=1)
    log_det = ((runs - 1) * np.log(variance) + np.log(variance + runs * shared)).sum(axis=1)

    size = len(measured) + 2
    precision = np.zeros((len(grid.weight), size, size))
    precision[:, 0, 0] = _VAGUE**-2
    precision[:, 1:-1, 1:-1] = np.linalg.inv(memory.covariance(measured, measured))
    precision[:, -1, -1] = grid.deviation**-2
    posterior = square / variance[:, :, None] + precision
    covariance = np.linalg.inv(posterior)
    mean = np.einsum("gij,gj->gi", covariance, cross / variance)
    # ln of the marginal likelihood, without the terms that all grid points share
    quadratic = left_over / grid.noise**2 - np.einsum("gj,gj->g", mean, cross / variance)
    widths = np.linalg.slogdet(posterior)[1] + 2 * np.log(grid.deviation)
    evidence = np.log(grid.weight) - 0.5 * (quadratic + log_det + widths)
    credible = np.exp(evidence - evidence.max())
    kept = credible > _NEGLIGIBLE
    return ScalingLaw(
        grid=Grid(credible[kept] / credible[kept].sum(), *(part[kept] for part in grid[1:])),
        mean=mean[kept],
        covariance=covariance[kept],
        pivot=pivot[kept],
        memory=memory,
        log_rate=log_rate,
        fewest_slots=fewest,
        levelling_slots=float(slots.max()),
        configuration=prior.configuration,
        steps=prior.steps,
    )


def _repeated(points: Floats, values: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Distinct points by slots, how often each occurs, its mean of `values`, and the sum of squares within points."""
    found, place, repeats = np.unique(points[:, ::-1], axis=0, return_inverse=True, return_counts=True)
    place = place.reshape(-1)
    means = np.bincount(place, values) / repeats
    return found[:, ::-1], repeats.astype(float), means, float(((values - means[place]) ** 2).sum())


def _rows(effects: Floats, growth: Floats) -> Floats:
    """Design for each grid point: 1, the effects of memory (rows, memories), growth (grid points, rows)."""
    grid, count = growth.shape
    ones = np.ones((grid, count, 1))
    return np.concatenate([ones, np.broadcast_to(effects, (grid, *effects.shape)), growth[:, :, None]], axis=2)


def _grown(grid: Grid, slots: Floats, fewest: float, steps: Steps | None) -> tuple[Floats, Floats]:
    """Return the factor of the exponent, from the start of a shape to its bend, and all other growth of ln rate.

    Their shapes are (grid points, rows). Below the `fewest` measured, in proportion to the `slots` carry load.
    """
    _, idle, _, _, _, contention, bend, after, start = (part[:, None] for part in grid)
    busy: Floats = np.where(slots < fewest, slots * (1 - idle / fewest), slots - idle)
    if steps is not None:
        busy = steps.busy(slots, busy, steps.slots[-1] - idle)
    of_busy: Floats = np.log(busy / (fewest - idle))
    in_proportion: Floats = np.minimum(of_busy, start) * (start > 0)
    growth = of_busy - in_proportion
    before: Floats = np.minimum(growth, bend)
    shared = np.maximum(slots / fewest * np.exp(-start), start > 0)  # up to its start, the same at any slots
    grown = in_proportion + after * (growth - before) - np.log1p(contention * shared)
    return before, grown


@dataclass(frozen=True, eq=False)
class PartsLaw:
    """The parts of a batch, with the law of what they do not determine."""

    parts: MicroBatch  # of a batch
    rest: ScalingLaw  # of capacity / `share`
    interval_s: float  # trigger interval of the runs
    at_s: float | None = None  # trigger interval to predict for; None: that of the runs

    @property
    def expected_exponents(self) -> tuple[float, float]:
        """Expected exponents of memory and of slots."""
        return self.rest.expected_exponents

    @property
    def levelling(self) -> float:
        """Probability that twice the slots, up to `levelling_slots`, give less than 1.83 times the capacity."""
        half, whole = share(self.parts, np.array([self.levelling_slots / 2, self.levelling_slots]), self._asked_s)
        return 1.0 if 2 * whole < TWICE_LEAST * half else self.rest.levelling

    @property
    def levelling_slots(self) -> float:
        """The most slots measured."""
        return self.rest.levelling_slots

    @property
    def sharing_slots(self) -> float:
        """Slots up to which `SHARING_IN_PROPORTION` holds; 0 if there are none, or it is unknown."""
        last = float(self.rest.grid.start.max())
        return self.rest.fewest_slots * math.exp(last) if last > 0 else 0.0

    def tied(self, points: Floats, low: Floats, high: Floats) -> "PartsLaw":
        """Draw the law to the brackets from `low` to `high` at `points` that it misses; see `ScalingLaw.tied`."""
        each = share(self.parts, points[:, 1], self.interval_s)
        return replace(self, rest=self.rest.tied(points, low / each, high / each))

    def quantile(self, points: Floats, probability: float) -> Floats:
        """Capacity that is not reached with `probability`, at `points` (rows, 2): memory, slots."""
        middle, found = self.rest.quantile(points, 0.5), self.rest.quantile(points, probability)
        reach = float(ndtri(probability)) * self._deviation(points)
        off = np.copysign(np.hypot(np.log(found / middle), reach), probability - 0.5)
        return np.asarray(middle * np.exp(off) * share(self.parts, points[:, 1], self._asked_s))

    def below(self, points: Floats, rate: float) -> Floats:
        """Probability that the capacity at `points` (rows, 2) is below `rate`, records/s."""
        middle, deviation = self.rest.quantile(points, 0.5), self._deviation(points)
        with np.errstate(divide="ignore"):  # where the fixed parts leave no rate, it is certainly below
            off = np.log(rate / (middle * share(self.parts, points[:, 1], self._asked_s)))
        low, high = np.zeros_like(off), np.abs(off)
        for _ in range(_WAYS):  # the law's share of the way to the rate
            ours = (low + high) / 2
            found = self.rest.below_each(points, middle * np.exp(np.copysign(ours, off)))
            less = np.hypot(ours, ndtri(found) * deviation) < np.abs(off)
            low, high = np.where(less, ours, low), np.where(less, high, ours)
        return found

    def _deviation(self, points: Floats) -> Floats:
        """Return the deviation of ln capacity that is due to the error of the parts.

        An error in the seconds of a batch is one in the rate, times what fixed parts leave of the interval; the runs
        have set the proportional part right.
        """
        slots = points[:, 1]
        fixed = np.minimum(self.parts.fixed_share(slots, slots, self._asked_s), _MOST_FIXED)
        return np.asarray(self.parts.error * fixed / (1 - fixed))

    @property
    def _asked_s(self) -> float:
        return self.interval_s if self.at_s is None else self.at_s


def carries(parts: MicroBatch, slots: Floats, interval_s: float) -> bool:
    """Whether the fixed parts leave time in the interval at each of `slots`, so that there is a rate."""
    return bool((parts.fixed_share(slots, slots, interval_s) < _MOST_FIXED).all())


def share(parts: MicroBatch, slots: Floats, interval_s: float) -> Floats:
    """Return the rate for each slot by the parts, with as many partitions as slots."""
    return parts.rates(slots, slots, interval_s) / slots


def fit_parts_law(points: Floats, rates: Floats, parts: MicroBatch, interval_s: float, prior: Prior) -> PartsLaw:
    """Fit the law of what `parts` leave undetermined in `rates` at `points`, shape (rows, 2): memory, slots."""
    rest = rates / share(parts, points[:, 1], interval_s)
    return PartsLaw(
        parts, fit_scaling_law(points, rest, replace(prior, once=(0.0,), in_proportion=IN_PROPORTION)), interval_s
    )
