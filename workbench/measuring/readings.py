"""Readings: how fast a budget is while its source offers all that fits, and what several rounds of them say.

Budgets that share a warm deployment take turns, round after round. What drifts (compiler, other load, clock) makes a
whole round faster or slower, so it cancels in the ratios between budgets:

    ln reading = budget + round + noise

A budget's rate is the mean of its readings' logarithms over complete rounds. The noise, what is left of the readings
once budget and round are taken out, says how well the ratios are known; the rounds are over when that is enough.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from workbench.checks import whole, within
from workbench.measuring.repeatability import EXPECTED_DEVIATION, LEVEL, with_prior
from workbench.measuring.verdict import SOURCE_MARGIN
from workbench.metrics import Batch, Observation
from workbench.records import MstEstimate, Probe

_SPREAD = 1.2  # batch sizes that differ by this factor show the part of a batch that no record adds to
_MOST_FIXED = 0.7  # of a batch's time
_LEAST_BATCHES = 3


@dataclass(frozen=True)
class Rounds:
    """How budgets take turns.

    Parameters
    ----------
    least, most
        Rounds.
    precision
        Half-width of the 90 % interval of a rate, relative, at which the rounds are over.
    change
        Largest change from one window of a reading to the next at which it is steady.
    most_windows
        Windows after which a reading ends although it is not steady.
    """

    least: int = 2
    most: int = 4
    precision: float = 0.08
    change: float = 0.05
    most_windows: int = 3

    def __post_init__(self) -> None:
        whole("least", self.least, 1)
        whole("most", self.most, self.least)
        whole("most_windows", self.most_windows, 1)
        within("precision", self.precision, 0.0, 1.0)
        within("change", self.change, 0.0, 1.0)


def fixed_seconds(batches: Sequence[Batch]) -> float:
    """Seconds of a batch that no record adds to, by least squares; 0 if the sizes do not differ enough to show it."""
    rows = np.array([batch.records for batch in batches], dtype=float)
    seconds = np.array([batch.duration_s for batch in batches])
    if len(rows) < _LEAST_BATCHES or rows.min() <= 0 or rows.max() < _SPREAD * rows.min():
        return 0.0
    slope, fixed = np.polyfit(rows, seconds, 1)
    return float(min(max(0.0, fixed), _MOST_FIXED * seconds.min())) if slope > 0 else 0.0


def filling_rate(batches: Sequence[Batch], interval_s: float, fixed_s: float = 0.0) -> float:
    """Rate at which batches last one interval, records/s: the median over `batches`; 0 without a batch with rows.

    A batch of r rows that took d seconds, f of them whatever its size, would have held r (I - f) / (d - f) rows.
    """
    full = [
        batch.records * (interval_s - fixed_s) / (batch.duration_s - fixed_s) / interval_s
        for batch in batches
        if batch.records and batch.duration_s > fixed_s
    ]
    return max(0.0, float(np.median(full))) if full else 0.0


def steady(before: Observation | None, last: Observation, interval_s: float, change: float) -> bool:
    """Whether batches hold no more and no fewer rows than a window before, or half a window if there is none."""
    if before is None:
        batches = last.batches[1:]
        first, second = batches[: len(batches) // 2], batches[len(batches) // 2 :]
        allowed = 2 * change  # of few batches
    else:
        first, second, allowed = before.batches[1:], last.batches[1:], change
    rates = filling_rate(first, interval_s), filling_rate(second, interval_s)
    return min(rates) > 0 and abs(math.log(rates[1] / rates[0])) <= math.log1p(allowed)


def rates_of(readings: Sequence[Probe], interval_s: float) -> dict[int, float]:
    """Rate of each round's reading, records/s, by the number of the round; the fixed part is that of all of them."""
    fixed = fixed_seconds([batch for probe in readings for batch in probe.observation.batches[1:]])
    return {probe.number: filling_rate(probe.observation.batches[1:], interval_s, fixed) for probe in readings}


@dataclass(frozen=True)
class Levels:
    """What complete rounds say.

    Parameters
    ----------
    rates
        Of every budget, records/s, in order.
    half_width
        Of the 90 % interval of each rate relative to the others, as a share.
    rounds
        How many there are.
    drift
        Relative deviation of the rounds from each other, all budgets together.
    """

    rates: tuple[float, ...]
    half_width: float
    rounds: int
    drift: float


def levels(readings: Sequence[Mapping[int, float]], deviation: float) -> Levels | None:
    """Fit budget and round to the readings of complete rounds.

    Parameters
    ----------
    readings
        Rates by round, of each budget.
    deviation
        Relative deviation of one reading that is expected before any is seen, with the weight of four readings.

    Returns
    -------
    Levels or None
        None without a complete round in which every budget consumed something.
    """
    complete = sorted(set.intersection(*(set(rates) for rates in readings))) if readings else []
    complete = [number for number in complete if all(rates[number] > 0 for rates in readings)]
    if not complete:
        return None
    logs = np.log([[rates[number] for number in complete] for rates in readings])  # (budgets, rounds)
    budget = logs.mean(axis=1)
    left = logs - budget[:, None] - logs.mean(axis=0) + logs.mean()
    freedom = (logs.shape[0] - 1) * (logs.shape[1] - 1)
    seen, degrees = with_prior(float((left**2).sum()), freedom, deviation)
    half = float(student.ppf((1 + LEVEL) / 2, degrees)) * seen / math.sqrt(len(complete))
    drift = float(logs.mean(axis=0).std(ddof=1)) if len(complete) > 1 else 0.0
    return Levels(tuple(np.exp(budget).tolist()), half, len(complete), drift)


def enough(found: Levels | None, rounds: Rounds) -> bool:
    """Whether no further round is needed."""
    if found is None or found.rounds < rounds.least:
        return False
    return found.half_width <= rounds.precision or found.rounds >= rounds.most


def reading_estimate(readings: Sequence[Probe], interval_s: float) -> MstEstimate | None:
    """Make the estimate of one budget from its readings alone; None if they consumed nothing."""
    found = levels([rates_of(readings, interval_s)], EXPECTED_DEVIATION)
    return None if found is None else estimate(readings, found.rates[0], found, Rounds())


def estimate(readings: Sequence[Probe], rate: float, found: Levels, rounds: Rounds) -> MstEstimate:
    """Make the estimate of one budget: its rate with the half-width of the ratios on either side."""
    last = readings[-1].observation
    bound = last.source_rate_limit < SOURCE_MARGIN * rate
    return MstEstimate(
        rate=rate,
        low=rate * math.exp(-found.half_width),
        high=rate * math.exp(found.half_width),
        probes=tuple(readings),
        observation=last,
        limit="source" if bound else "query",
        seconds=sum(probe.seconds for probe in readings),
        steady=all(probe.steady is not False for probe in readings),
        exhausted=found.half_width > rounds.precision,
    )
