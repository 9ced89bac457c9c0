"""Capacity from the parts of a batch, and the scaling law for what they do not determine.

    capacity = what the parts say at as many partitions as slots x the scaling law of (measured / what the parts say)

The parts (`workbench.capacity.model.micro_batch`) say what the driver and the tasks take at any number of slots, and
leave open what more workers share: the network, a broker, a coordinator. The law needs no slots for work done once,
which the parts have measured, and takes growth in proportion for more credible than in published systems; while slots
share a core or two, for more credible still (`workbench.capacity.model.growth`).
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from workbench.arrays import Floats
from workbench.capacity.model.growth import LATER, Prior
from workbench.capacity.model.micro_batch import MicroBatch
from workbench.capacity.model.scaling_law import TWICE_LEAST, ScalingLaw, fit_scaling_law

IN_PROPORTION = 0.6
"""Probability, before any run, of growth in proportion to what the parts leave, at any number of slots."""
SHARING_IN_PROPORTION = 1 - (1 - IN_PROPORTION) * (1 - LATER)
"""The same for slots that share up to `SHARED_CORES` of one machine."""
_MOST_FIXED = 0.95  # of an interval; beyond it no usable rate is left
_HALVINGS = 20


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
        last = float(self.rest.start.max())
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
        for _ in range(_HALVINGS):  # the law's share of the way to the rate
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
