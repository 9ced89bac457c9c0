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
from workbench.metrics import SOURCE_MARGIN, Batch, Observation
from workbench.records import MstEstimate, Probe
from workbench.speed import slowness

_ERRORS = 1.5
_UNSTEADY, _COLD = 0.3, 0.15
_TOO_WIDE = 1.5  # times the precision: a rate that is known no better is doubtful


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
        Largest change from one half of a reading to the next at which it is steady, in addition to what the scatter of
        its batches explains.
    most_windows
        Windows after which a reading ends although it is not steady.
    """

    least: int = 2
    most: int = 3
    precision: float = 0.12
    change: float = 0.05
    most_windows: int = 2

    def __post_init__(self) -> None:
        whole("least", self.least, 1)
        whole("most", self.most, self.least)
        whole("most_windows", self.most_windows, 1)
        within("precision", self.precision, 0.0, 1.0)
        within("change", self.change, 0.0, 1.0)


def filling_rate(batches: Sequence[Batch]) -> float:
    """Rate at which `batches` last one interval on average, records/s; 0 without a batch with rows.

    Sums are taken and no median: a batch that is slow because a store compacts comes again and again, and costs its
    time. The seconds of a batch that no row adds to are not separated from the others: batches fill the interval, so
    that hardly matters, and those that do not yet are thought slower than they will be.
    """
    counted = [batch for batch in batches if batch.records]
    seconds = sum(batch.duration_s for batch in counted)
    return sum(batch.records for batch in counted) / seconds if seconds > 0 else 0.0


def steady(observation: Observation, change: float) -> bool:
    """Whether the second half of the batches is as fast as the first, as far as their scatter shows."""
    logs = [
        math.log(batch.records / batch.duration_s)
        for batch in observation.batches[1:]
        if batch.records and batch.duration_s > 0
    ]
    half = len(logs) // 2
    if half < 1:
        return False
    first, second = np.array(logs[:half]), np.array(logs[-half:])
    error = math.hypot(*(float(part.std()) / math.sqrt(half) for part in (first, second)))
    return abs(float(second.mean() - first.mean())) <= math.log1p(change) + _ERRORS * error


def rates_of(readings: Sequence[Probe]) -> dict[int, float]:
    """Rate of each round's reading, records/s, by the number of the round."""
    return {probe.number: filling_rate(probe.observation.batches[1:]) for probe in readings}


def weights_of(readings: Sequence[Probe], deviation: float) -> dict[int, float]:
    """Weight of each round's reading: 1 on a quiet machine, less the more its cores were slowed or shared.

    A disturbance adds its own size to the deviation of a reading, so it lowers the weight and never the rate. So does
    a reading that was not steady, or whose state was not filled where that of another reading was.
    """
    some_filled = any(probe.filled for probe in readings)
    shares = {
        probe.number: max(
            probe.observation.disturbance.worst,
            _UNSTEADY * (probe.steady is False or (some_filled and probe.filled is False)),
        )
        for probe in readings
    }
    return {number: deviation**2 / (deviation**2 + share**2) for number, share in shares.items()}


@dataclass(frozen=True)
class Levels:
    """What complete rounds say.

    Parameters
    ----------
    rates
        Of every budget, records/s, in order.
    half_widths
        Of the 90 % interval of each rate relative to the others, as a share.
    rounds
        How many were made, a cold first one apart.
    drift
        Relative deviation of the rounds from each other, all budgets together.
    """

    rates: tuple[float, ...]
    half_widths: tuple[float, ...]
    rounds: int
    drift: float


def levels(readings: Sequence[Sequence[Probe]], deviation: float) -> Levels | None:
    """Fit budget and round to the readings of complete rounds, by weighted least squares.

    Left out are a cold first round, and rounds that began before the state had its working size, if others did not.

    Rates are those of cores as fast as in the median reading: what a core's speed did to a reading is taken out.

    Parameters
    ----------
    readings
        Of each budget.
    deviation
        Relative deviation of one reading that is expected before any is seen, with the weight of four readings.

    Returns
    -------
    Levels or None
        None without a complete round in which every budget consumed something.
    """
    slower = iter(slowness([probe.observation.cores for own in readings for probe in own]))
    factors = [{probe.number: next(slower) for probe in own} for own in readings]
    rates = [
        {number: rate * factor[number] for number, rate in rates_of(own).items()}
        for own, factor in zip(readings, factors, strict=True)
    ]
    weights = [weights_of(own, deviation) for own in readings]
    complete = sorted(set.intersection(*(set(own) for own in rates))) if rates else []
    complete = [number for number in complete if all(own[number] > 0 for own in rates)]
    if not complete:
        return None
    if _was_cold(rates, complete):
        complete = complete[1:]
    made, complete = len(complete), _filled(readings, complete) or complete
    budgets, rounds = len(rates), len(complete)
    logs = np.array([[math.log(own[number]) for number in complete] for own in rates]).ravel()
    weight = np.array([[own[number] for number in complete] for own in weights]).ravel()
    by_round = weight.reshape(budgets, rounds).sum(axis=0)
    last = -by_round[:-1] / by_round[-1]  # the weighted effects of the rounds add up to 0: a disturbed one counts less
    design = np.zeros((budgets * rounds, budgets + rounds - 1))
    for row, (budget, place) in enumerate((b, r) for b in range(budgets) for r in range(rounds)):
        design[row, budget] = 1.0
        design[row, budgets:] = last if place == rounds - 1 else np.eye(rounds - 1)[place]
    spread = np.linalg.inv(design.T @ (weight[:, None] * design))
    found = spread @ (design.T @ (weight * logs))
    left = logs - design @ found
    seen, degrees = with_prior(float(weight @ left**2), (budgets - 1) * (rounds - 1), deviation)
    reach = float(student.ppf((1 + LEVEL) / 2, degrees)) * seen
    effects = [*found[budgets:], last @ found[budgets:]]
    return Levels(
        tuple(np.exp(found[:budgets]).tolist()),
        tuple((reach * np.sqrt(np.diag(spread)[:budgets])).tolist()),
        made,
        float(np.std(effects, ddof=1)) if rounds > 1 else 0.0,
    )


def _filled(readings: Sequence[Sequence[Probe]], complete: Sequence[int]) -> list[int]:
    """Give the rounds in which the state of every budget had its working size."""
    filled = [{probe.number for probe in own if probe.filled} for own in readings]
    return [number for number in complete if all(number in own for own in filled)]


def _was_cold(rates: Sequence[Mapping[int, float]], complete: Sequence[int]) -> bool:
    """Whether the first round was clearly slower than the later ones for every budget.

    Then the driver and its compiler were still cold, which slows the budget that is read first most: it has had 7 % of
    its later rate. So the round says nothing about the ratios either.
    """
    first, *later = complete
    rises = [math.log(own[number] / own[first]) for own in rates for number in later]
    return bool(rises) and min(rises) > _COLD


def enough(found: Levels | None, rounds: Rounds) -> bool:
    """Whether no further round is needed."""
    if found is None or found.rounds < rounds.least:
        return False
    return max(found.half_widths) <= rounds.precision or found.rounds >= rounds.most


def reading_estimate(readings: Sequence[Probe]) -> MstEstimate | None:
    """Make the estimate of one budget from its readings alone; None if they consumed nothing."""
    found = levels([readings], EXPECTED_DEVIATION)
    return None if found is None else estimate(readings, found, 0, Rounds())


def estimate(readings: Sequence[Probe], found: Levels, place: int, rounds: Rounds) -> MstEstimate:
    """Make the estimate of the budget at `place` of `found`: its rate with its half-width on either side."""
    rate, half = found.rates[place], found.half_widths[place]
    last = readings[-1].observation
    bound = last.source_rate_limit < SOURCE_MARGIN * rate
    return MstEstimate(
        rate=rate,
        low=rate * math.exp(-half),
        high=rate * math.exp(half),
        probes=tuple(readings),
        observation=last,
        limit="source" if bound else "query",
        seconds=sum(probe.seconds for probe in readings),
        steady=all(probe.steady is not False for probe in readings[1:] or readings),
        exhausted=half > _TOO_WIDE * rounds.precision,
    )
