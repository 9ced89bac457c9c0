"""The mechanism behind a pipelined query's capacity, learned from its operators and extrapolated to more slots.

A run shows more than its rate: of each operator the seconds per record, the fullest task's share, the cache's hits.
So capacity need not be continued as a curve over slots: what it is made of is continued, each part by what is known
about it. With p tasks, x = 1 - 1/p, memory m per slot, and u the run effect:

    seconds per record = a ((1 + b x) (1 + g / m) + w (1 - hits)) exp(-u)
    hits               = min(1, (p m / working set) ** k)
    fullest task       = (p h + (1 - h) (1 + d z(p))) x the mean one
    work of a phase    = largest over its operators of records x seconds x fullest share
    seconds per source record = sum over phases of their work, over an efficiency that may change with the slots

- ``b``: of p tasks behind a shuffle, x of the records come from another task and cost more; ``g``: garbage is collected
  more often in less memory; ``w``: what a miss of the cache costs.
- ``h``: share of the hottest key, ``d``: imbalance of the others, ``z(p)``: how far the largest of p normal draws lies
  above their mean. One slot count cannot separate h from d, so three must be measured.
- Phases: if even the hottest task stands still at the highest sustainable rate, operators take turns: one that holds
  results back takes no input while it emits them. So a phase may end at any operator that keeps state; all ways to do
  so, with up to three phases, are weighted by how well they explain the runs.
- Run effect: one deployment is faster than another as a whole, so the operators of a run share it. Ratios are therefore
  known far better than rates, and only what all operators have in common must be averaged over the runs.
- What slows all operators alike the more slots there are (a shared network, full nodes) looks like a run effect and
  is not extrapolated: between runs of few slots it cannot be seen. What idles them instead is seen, as a falling
  efficiency.
- Tasks are BIDS2's, from the minimal configuration at the nearest memory: as a plan deals them out.

The posterior is sampled: costs by a normal approximation around the most credible ones, the rest from grids. The
beliefs below are the same for every query.

What it rests on: StreamBed, sections V and VI, for the measurements; shares of records that change tasks, extreme
values and cache curves are common knowledge. The model itself is ours.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
from scipy.optimize import least_squares
from scipy.special import ndtri

from workbench.capacity.allocation import bids2
from workbench.capacity.model.forms import Floats
from workbench.capacity.model.operators import Evidence, MinimalProfile, read_evidence
from workbench.records import Measurement

SAMPLES = 600

_PRECISION = 0.01  # of the ratio of two operators' costs within a run
_EXCHANGE, _GARBAGE_MB, _WAIT = (0.05, 2.0), (10.0, 1.5), (0.3, 1.5)  # b, g, w: median, deviation of the logarithm
_EFFECT, _EFFECT_RUNS = 0.07, 1.0  # prior deviation of run effects, and how many runs that prior is worth
_MISSES = 0.99  # hits below this say something about the working set
_HITS = 0.03  # precision of the logarithm of the hits
_LOCALITY = 0.3  # deviation of k from 1
_IMBALANCE = np.linspace(0.0, 0.4, 161)
_TYPICAL_IMBALANCE = 0.1
_LEAST_KEY = 1e-4
_SKEW = 0.01  # precision of the fullest task's excess
_PHASES = 3
_ONE_MORE = 0.3  # credibility of one more phase
_MISFITS = np.array([0.004, 0.008, 0.016, 0.032, 0.064, 0.128])
_EFFICIENCY, _EFFICIENCY_TREND = 0.05, 0.02
_DRIFT = 0.006  # of what is not modelled, when slots grow by a factor of e beyond those measured
_EXPLAINED = 0.05
_TEN_TIMES, _KEPT = 10, 0.9


@dataclass(frozen=True, eq=False)
class Mechanism:
    """Samples of the posterior: shape (samples, operators), or (samples,) for what all operators share.

    Parameters
    ----------
    base, exchange, wait, working_set, locality, hot, imbalance, phase
        a, b, w, working set (MB), k, h, d and the number of the phase, of each operator.
    garbage, efficiency, trend, drift
        g (MB), ln of the efficiency at the largest slot count, how it and what is not modelled change with ln slots.
    ratio
        Records of each operator per source record, shape (operators,).
    run_effect
        Deviation of run effects.
    misfit
        Relative error with which the phases explain the runs.
    most_slots
        Most slots measured.
    profiles
        What BIDS2 distributes slots by.
    """

    base: Floats
    exchange: Floats
    wait: Floats
    working_set: Floats
    locality: Floats
    hot: Floats
    imbalance: Floats
    phase: Floats
    garbage: Floats
    efficiency: Floats
    trend: Floats
    drift: Floats
    ratio: Floats
    run_effect: float
    misfit: float
    most_slots: float
    profiles: tuple[MinimalProfile, ...]

    grows_steadily: ClassVar[bool] = False  # tasks are whole: with one slot more the limiting operator may get none

    @property
    def expected_exponents(self) -> tuple[float, float]:
        """Exponents of memory and of slots at the largest slot count measured, from there to twice as much."""
        memory, slots = self.profiles[0].memory_mb, self.most_slots
        here, more_memory, more_slots = self.quantile(
            np.array([[memory, slots], [2 * memory, slots], [memory, 2 * slots]]), 0.5
        )
        return math.log2(more_memory / here), math.log2(more_slots / here)

    @property
    def levelling_slots(self) -> float:
        """Slots that `levelling` is about: ten times the most measured."""
        return _TEN_TIMES * self.most_slots

    @property
    def levelling(self) -> float:
        """Probability that each of that many slots carries a tenth less than each of the most slots measured."""
        memory, most = self.profiles[0].memory_mb, self.most_slots
        few, many = self.rates(memory, most), self.rates(memory, self.levelling_slots)
        return float(np.mean(many < _KEPT * _TEN_TIMES * few))

    def quantile(self, points: Floats, probability: float) -> Floats:
        """Capacity that is not reached with `probability`, at `points` (rows, 2): memory, slots; 0.5 is the median."""
        return np.array([np.quantile(self.rates(memory, slots), probability) for memory, slots in points])

    def below(self, points: Floats, rates: Floats) -> Floats:
        """Probability that the capacity at `points` (rows, 2) is below `rates` (rows,), records/s."""
        return np.array([(self.rates(*there) < rate).mean() for there, rate in zip(points, rates, strict=True)])

    def rates(self, memory: float, slots: float) -> Floats:
        """Give samples of the capacity; below one slot per operator in proportion to the slots."""
        least = self.base.shape[1]
        if slots < least:
            return np.asarray(self.rates(memory, least) * (slots / least))
        whole = math.floor(slots)
        rates = self._rates(memory, whole)
        if slots == whole:
            return rates
        return np.asarray(rates + (slots - whole) * (self._rates(memory, whole + 1) - rates))

    def tasks(self, memory: float, slots: int) -> Floats:
        """Tasks of each operator."""
        profile = min(self.profiles, key=lambda one: abs(one.memory_mb - memory))
        return np.array(list(bids2(profile.true_rates, profile.ratios, slots).tasks.values()), dtype=float)

    def _rates(self, memory: float, slots: int) -> Floats:
        tasks = self.tasks(memory, slots)
        skew = tasks * self.hot + (1 - self.hot) * (1 + self.imbalance * largest_draw(tasks))
        hits = np.minimum(1.0, (tasks * memory / skew / self.working_set) ** self.locality)  # of the fullest task
        garbage = 1 + self.garbage[:, None] / memory
        record = self.base * ((1 + self.exchange * (1 - 1 / tasks)) * garbage + self.wait * (1 - hits))
        grown = math.log(slots / self.most_slots)
        efficiency = self.efficiency + self.trend * grown + self.drift * max(0.0, grown)
        return np.asarray(np.exp(efficiency) / _in_turn(self.ratio * record * skew / tasks, self.phase))


def largest_draw(tasks: Floats) -> Floats:
    """Return by how many deviations the largest of `tasks` normal draws exceeds their mean (Blom 1958)."""
    # (tasks - 0.375) / (tasks + 0.25), from the other end: it would be 1, whose draw is inf, for very many tasks.
    return np.asarray(np.where(tasks > 1, -ndtri(0.625 / (tasks + 0.25)), 0.0))


def fit_mechanism(runs: Sequence[Measurement], seed: int = 0) -> Mechanism | None:
    """Fit the mechanism to `runs`.

    Parameters
    ----------
    runs
        Measurements of one query that sustained a rate.
    seed
        Of the samples.

    Returns
    -------
    Mechanism or None
        None where the runs do not show enough (no tasks were distributed, no operator metrics, no minimal
        configuration, one slot count only), or where the mechanism does not explain their rates to within 5 %.
    """
    seen = read_evidence(runs)
    if seen is None:
        return None
    random = np.random.default_rng(seed)
    working_set, locality = _sample_caches(seen, random)
    hot, imbalance = _sample_skew(seen, random)
    base, exchange, garbage, wait, run_effect = _sample_costs(seen, random)
    full = _fullest_over_mean(seen, (exchange, garbage, wait), (working_set, locality))
    work = seen.ratio * seen.cost * full * seen.skew / seen.tasks
    phase, efficiency, trend, misfit = _sample_phases(seen, work, random)
    if misfit > _EXPLAINED:
        return None
    return Mechanism(
        base,
        exchange,
        wait,
        working_set,
        locality,
        hot,
        imbalance,
        phase,
        garbage,
        efficiency,
        trend,
        (_DRIFT + misfit / 2) * random.standard_normal(SAMPLES),
        seen.ratio,
        run_effect,
        misfit,
        float(seen.slots.max()),
        seen.profiles,
    )


def _in_turn(work: Floats, phase: Floats) -> Floats:
    """Seconds per source record: the phases' largest work added up, over the last axis."""
    return np.asarray(sum(np.where(phase == number, work, 0.0).max(axis=-1) for number in range(_PHASES)))


def _sample_caches(seen: Evidence, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Working set and exponent of the hits: ln hits = k (ln(p m) - ln working set), k near 1; tiny where all fits."""
    shape = (SAMPLES, seen.cost.shape[1])
    working_set, locality = np.full(shape, 1e-9), np.ones(shape)
    cache = np.log(seen.tasks * seen.memory[:, None])
    for i in np.flatnonzero((seen.hits < _MISSES).any(axis=0)):
        few = seen.hits[:, i] < _MISSES
        rows = np.column_stack([cache[few, i], -np.ones(np.count_nonzero(few))]) / _HITS
        precision = rows.T @ rows + np.diag([_LOCALITY**-2, 1e-4])
        target = np.log(np.maximum(seen.hits[few, i], 1e-3)) / _HITS
        covariance = np.linalg.inv(precision)
        mean = covariance @ (rows.T @ target + [_LOCALITY**-2, 0.0])
        k, scaled = random.multivariate_normal(mean, covariance, SAMPLES).T
        locality[:, i] = np.maximum(k, 0.05)
        working_set[:, i] = np.exp(np.clip(scaled / locality[:, i], -20, 40))
    return working_set, locality


def _sample_skew(seen: Evidence, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Share of the hottest key, and imbalance of the others.

    Given d, the fullest task's share is linear in h. Without a hottest key and without an imbalance have half the
    credibility each; hottest keys are equally credible on a logarithmic scale.
    """
    shape = (SAMPLES, seen.cost.shape[1])
    hot, imbalance = np.zeros(shape), np.zeros(shape)
    prior = np.exp(-0.5 * (_IMBALANCE / _TYPICAL_IMBALANCE) ** 2)
    prior[0] = prior[1:].sum()
    for i in range(shape[1]):
        tasks, first = np.unique(seen.tasks[:, i], return_index=True)
        skew = seen.skew[first, i][tasks > 1]
        tasks = tasks[tasks > 1]
        if not len(tasks):
            continue
        precision = _SKEW * (skew - 1) + 1e-3
        others = 1 + np.outer(_IMBALANCE, largest_draw(tasks))
        slope, rest = (tasks - others) / precision, (skew - others) / precision
        deviation = (slope**2).sum(axis=1) ** -0.5
        share = np.clip((slope * rest).sum(axis=1) * deviation**2, _LEAST_KEY, 1.0)
        density = np.minimum(1.0, deviation * math.sqrt(2 * math.pi) / (share * -math.log(_LEAST_KEY)))
        misfits = np.concatenate([(rest**2).sum(axis=1), ((rest - slope * share[:, None]) ** 2).sum(axis=1)])
        weight = np.concatenate([prior, prior * density]) * np.exp(-0.5 * (misfits - misfits.min()))
        chosen = random.choice(len(weight), SAMPLES, p=weight / weight.sum())
        which = chosen % len(prior)
        drawn = share[which] + deviation[which] * random.standard_normal(SAMPLES)
        hot[:, i] = np.where(chosen < len(prior), 0.0, np.clip(drawn, 0.0, 1.0))
        imbalance[:, i] = _IMBALANCE[which]
    return hot, imbalance


def _sample_costs(seen: Evidence, random: np.random.Generator) -> tuple[Floats, Floats, Floats, Floats, float]:
    """Give a, b, g, w and the deviation of run effects."""
    runs, count = seen.cost.shape
    cached = np.flatnonzero((seen.hits < _MISSES).any(axis=0))
    miss, x, logs = 1 - seen.hits[:, cached], 1 - 1 / seen.tasks, np.log(seen.cost)
    ends = np.cumsum([count, count, 1, len(cached)])
    medians = np.log(np.repeat([_EXCHANGE[0], _GARBAGE_MB[0], _WAIT[0]], [count, 1, len(cached)]))
    deviations = np.repeat([_EXCHANGE[1], _GARBAGE_MB[1], _WAIT[1]], [count, 1, len(cached)])

    def growth(b: Floats, g: Floats, w: Floats) -> Floats:
        """Ln of the cost over a exp(-u), shape (..., runs, operators)."""
        record = (1 + np.exp(b)[..., None, :] * x) * (1 + np.exp(g)[..., None, :] / seen.memory[:, None])
        record[..., cached] += np.exp(w)[..., None, :] * miss
        return np.asarray(np.log(record))

    # The search is for the mean ln cost over the runs instead of ln a: that hardly depends on b, g and w. The effect u
    # of a run is shared by its operators, so what they leave over on average has the deviation `shared`, and what is
    # left of each beyond that the precision: u itself need not be searched for, and the work grows with the runs alone.
    def residuals(values: Floats, shared: float) -> Floats:
        level, b, g, w = np.split(values, ends[:-1])
        grown = growth(b, g, w)
        left = logs - level - (grown - grown.mean(axis=0))
        common = left.mean(axis=1, keepdims=True)
        weighed = (left - common) / _PRECISION + common / shared
        return np.concatenate([weighed.ravel(), (values[count:] - medians) / deviations])

    values = np.concatenate([logs.mean(axis=0), medians])
    run_effect = _EFFECT
    for _ in range(4):
        shared = math.sqrt(_PRECISION**2 + count * run_effect**2)
        fit = least_squares(residuals, values, args=(shared,), x_scale="jac")
        values = fit.x
        covariance = np.linalg.inv(fit.jac.T @ fit.jac)
        of_runs = np.column_stack([fit.fun, fit.jac])[: runs * count].reshape(runs, count, -1).mean(axis=1) * shared
        own = (run_effect * _PRECISION / shared) ** 2  # variance of u, were all else known
        square = (of_runs[:, 0] ** 2).sum() + np.einsum("ni,ij,nj->", of_runs[:, 1:], covariance, of_runs[:, 1:])
        square = (count * run_effect**2 / shared**2) ** 2 * square + runs * own
        run_effect = math.sqrt((square + _EFFECT_RUNS * _EFFECT**2) / (runs + _EFFECT_RUNS))
    freedom = runs - 1 + _EFFECT_RUNS
    stretch = np.sqrt(freedom / random.chisquare(freedom, SAMPLES))
    normal = random.standard_normal((SAMPLES, len(values) + runs))[:, : len(values)]  # the rest would give u
    drawn = normal @ np.linalg.cholesky(covariance).T
    level, b, g, w = np.split(values + stretch[:, None] * drawn, ends[:-1], axis=1)
    wait = np.zeros((SAMPLES, count))
    wait[:, cached] = np.exp(w)
    # Run effects multiply the speed, and the mean speed is asked for, not the median.
    base = np.exp(level - growth(b, g, w).mean(axis=1) - run_effect**2 / 2)
    return base, np.exp(b), np.exp(g[:, 0]), wait, run_effect


def _fullest_over_mean(seen: Evidence, costs: tuple[Floats, ...], caches: tuple[Floats, ...]) -> Floats:
    """Cost of a record on the fullest task over that on the mean one: its share of the state is larger, too."""
    b, g, w, whole, k = (np.median(one, axis=0) for one in (*costs, *caches))
    record = (1 + b * (1 - 1 / seen.tasks)) * (1 + g / seen.memory[:, None])
    hits = np.minimum(1.0, (seen.tasks * seen.memory[:, None] / seen.skew / whole) ** k)
    return np.asarray((record + w * (1 - hits)) / (record + w * (1 - seen.hits)))


def _sample_phases(seen: Evidence, work: Floats, random: np.random.Generator) -> tuple[Floats, Floats, Floats, float]:
    """Phase of each operator, ln of the efficiency at the largest slot count, its trend over ln slots, and the misfit.

    For given phases and misfit, ln of the efficiency is a line over ln slots: Bayesian linear regression.
    """
    count = work.shape[1]
    ends = [i + 1 for i in range(count - 1) if seen.stateful[i]]
    cuts = [cut for many in range(_PHASES) for cut in combinations(ends, many)]
    phases = np.array([[sum(i >= end for end in cut) for i in range(count)] for cut in cuts], dtype=float)
    prior = np.array([_ONE_MORE ** len(cut) / math.comb(len(ends), len(cut)) for cut in cuts])
    left = np.log(np.array([_in_turn(work, phase) for phase in phases]) / seen.seconds)
    rows = np.column_stack([np.ones(len(seen.slots)), np.log(seen.slots / seen.slots.max())])
    variance = _MISFITS[:, None, None] ** 2
    covariance = np.linalg.inv(rows.T @ rows / variance + np.diag([_EFFICIENCY**-2, _EFFICIENCY_TREND**-2]))
    mean = np.einsum("sij,cj->sci", covariance, left @ rows) / variance  # misfits, cuts, 2
    quadratic = (left**2).sum(axis=1) / variance[:, :, 0] - np.einsum("sci,cj,ji->sc", mean, left, rows) / variance[
        :, :, 0
    ]
    evidence = (
        np.log(prior)
        - 0.5 * quadratic
        - len(seen.slots) * np.log(_MISFITS)[:, None]
        + 0.5 * np.linalg.slogdet(covariance)[1][:, None]
    )
    weight = np.exp(evidence - evidence.max())
    weight /= weight.sum()
    size, which = np.unravel_index(random.choice(weight.size, SAMPLES, p=weight.ravel()), weight.shape)
    root = np.linalg.cholesky(covariance)[size]
    drawn = mean[size, which] + np.einsum("nij,nj->ni", root, random.standard_normal((SAMPLES, 2)))
    return phases[which], drawn[:, 0], drawn[:, 1], float(_MISFITS @ weight.sum(axis=1))
