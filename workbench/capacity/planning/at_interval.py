"""Capacity and risk at a trigger interval: the model's at the explored one, times the measured gain of the other.

Model and gain err independently of each other, so both doubts are in the ends and in the risk.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from workbench.arrays import Floats
from workbench.capacity.explore import Exploration
from workbench.capacity.model import Law, Model
from workbench.capacity.planning.intervals import IntervalSpeedup
from workbench.checks import SLACK
from workbench.dataflow import Budget
from workbench.measuring import LEVEL

_NODES, _SHARES = np.polynomial.legendre.leggauss(16)  # on (-1, 1); Gauss's rule reaches into both tails
_CHANCES = np.concatenate([_NODES + 1, _NODES + 3]) / 4  # of capacities, each half of them by the rule
_WEIGHTS = np.tile(_SHARES / 4, 2)
_FAINT = 1e-4  # probability beyond the ends of what is searched


def capacity_at(exploration: Exploration, budget: Budget, gain: IntervalSpeedup) -> tuple[float, float, float]:
    """Give the lower end, the expected capacity and the upper end at the trigger interval of `budget`, records/s.

    Beyond each end is 5 % of what `risks_at` considers.
    """
    model, slots, memory = exploration.model, budget.slots, budget.profile.memory_mb
    (middle,), (low,), (high,) = model.predict([[memory, slots]]), *model.interval([[memory, slots]], LEVEL)
    expected = gain.ratio * float(middle)
    if model.law_ is None or not gain.uncertain:
        return gain.ratio * float(low), expected, gain.ratio * float(high)
    capacities = _capacities(model.law_, memory, [slots])
    least = max(float(capacities.min()), SLACK * float(middle)) * gain.quantile(_FAINT)
    most = capacities.max() * gain.quantile(1 - _FAINT)

    def end(tail: float) -> float:
        if _below(least, capacities, gain)[0] >= tail:
            return 0.0  # some of the capacities are none
        found = brentq(lambda at: float(_below(math.exp(at), capacities, gain)[0]) - tail, *np.log([least, most]))
        return math.exp(found)

    return min(expected, end((1 - LEVEL) / 2)), expected, max(expected, end((1 + LEVEL) / 2))


def risks_at(model: Model, rate: float, gain: IntervalSpeedup, memory_mb: float, counts: Sequence[int]) -> list[float]:
    """Give the probability that the capacity at a trigger interval is below `rate`, by number of slots.

    The `model` is of the explored interval, and `gain` is the capacity at the other one relative to that.
    """
    law = model.law_
    if law is None or not gain.uncertain:
        return model.risks(rate / gain.ratio, memory_mb, counts)
    risks = _below(rate, _capacities(law, memory_mb, counts), gain)
    return [float(risk) for risk in risks]


def _capacities(law: Law, memory_mb: float, counts: Sequence[int]) -> Floats:
    """Give the capacities that are not reached with each of `_CHANCES`, shape (chances, counts)."""
    points = np.array([[memory_mb, count] for count in counts], dtype=float)
    return np.array([law.quantile(points, float(chance)) for chance in _CHANCES])


def _below(rate: float, capacities: Floats, gain: IntervalSpeedup) -> Floats:
    """Give the probability that capacity x gain is below `rate`, shape (counts,)."""
    with np.errstate(divide="ignore"):  # where there is no capacity, it is certainly below
        return np.asarray(_WEIGHTS @ gain.below(rate / capacities))
