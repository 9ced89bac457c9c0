"""A quantity before and now, and whether noise alone explains the difference.

Two measurements of one thing differ, because a deployment is faster or slower than the last one by chance. A change is
called one only if it is larger than chance makes it in 19 of 20 cases; of several things compared one by one, none is
called one by chance in 19 of 20 cases. Rates are compared as ratios, on the logarithmic scale.
"""

import math
from dataclasses import dataclass
from typing import Literal

from scipy.stats import t as student

from workbench.measuring import EXPECTED_DEVIATION, EXPECTED_WEIGHT

LEVEL = 0.95
"""Share of changes by chance that are not to be called changes."""

Judgement = Literal["lower", "higher", "within noise", "unknown"]


@dataclass(frozen=True)
class Scatter:
    """Relative standard deviation of one measurement, and the degrees of freedom that it is known with."""

    deviation: float = EXPECTED_DEVIATION
    freedom: int = EXPECTED_WEIGHT

    def quantile(self, comparisons: int = 1) -> float:
        """How many standard deviations chance makes in all but one of twenty cases.

        With several `comparisons`, chance makes any of them a change in at most one of twenty cases (Bonferroni).
        """
        return float(student.ppf(1 - (1 - LEVEL) / (2 * comparisons), self.freedom))


@dataclass(frozen=True)
class Change:
    """One quantity before and now, compared on the logarithmic scale.

    `least` and `most` are ends of ln(now / before): of the brackets' middles for a rate, and equal then; infinite where
    one is open. `before` and `now` are geometric means of several runs; None where there was none.
    """

    thing: str
    unit: str
    before: float | None
    now: float | None
    least: float
    most: float
    tolerated: float  # largest abs(ln(now / before)) that chance explains

    @property
    def ratio(self) -> float | None:
        """How many times as large it is; None where that is not known to a point."""
        return math.exp(self.most) if self.least == self.most else None

    @property
    def bounds(self) -> tuple[float, float]:
        """At least and at most how many times as large it is; 0 and inf where nothing is known."""
        return math.exp(self.least), math.exp(self.most)

    @property
    def fall_by_chance(self) -> float:
        """Largest relative fall that chance explains."""
        return -math.expm1(-self.tolerated)

    @property
    def rise_by_chance(self) -> float:
        """Largest relative rise that chance explains; more than the fall, as a rise to twice undoes a fall to half."""
        return math.expm1(self.tolerated)

    @property
    def judgement(self) -> Judgement:
        """Whether it changed beyond the noise; ``"unknown"`` where a bracket is open on the side that decides."""
        if self.most < -self.tolerated:
            return "lower"
        if self.least > self.tolerated:
            return "higher"
        if -self.tolerated <= self.least and self.most <= self.tolerated:
            return "within noise"
        return "unknown"
