"""How long records wait at the sources: the horizontal distance between cumulative arrivals and consumption.

Both curves are piecewise linear over the steps, and records are consumed first in, first out. Between two break points
of either curve the wait is linear in the record's number, so means and quantiles over records are exact.
"""

from dataclasses import dataclass

import numpy as np

from workbench.arrays import Floats, Ints

_HALVINGS = 60
_EVEN = 1e-6  # share of the trigger interval below which a cohort's own waits are one
_ROUNDING = 1e-13  # share of all records


@dataclass(frozen=True, eq=False)
class Waits:
    """Waits of records in cohorts, shape (cohorts,).

    Their number, the waits of the first and of the last (seconds), and the step in which they are consumed. Each waits
    for the next trigger as well, evenly up to `trigger_s` seconds.
    """

    records: Floats
    first_s: Floats
    last_s: Floats
    steps: Ints
    trigger_s: float = 0.0

    @classmethod
    def of(cls, arrivals: Floats, consumed: Floats, step_s: float) -> "Waits":
        """Calculate the waits of all records; a record not consumed by the end has waited until then, at least.

        `arrivals` and `consumed` are the records of each step, shape (steps,), spread evenly over the step.
        """
        times: Floats = np.arange(len(arrivals) + 1, dtype=np.float64) * step_s
        came = np.concatenate([[0.0], np.cumsum(arrivals)])
        went = np.minimum(np.concatenate([[0.0], np.cumsum(consumed)]), came)
        went, ends = np.append(went, came[-1]), np.append(times, times[-1])  # the rest, at the end
        breaks = np.unique(np.concatenate([came, went]))
        apart = np.diff(breaks) > _ROUNDING * came[-1]
        begin, end = breaks[:-1][apart], breaks[1:][apart]
        middle = (begin + end) / 2
        first_s, last_s = (
            np.maximum(0.0, _time_of(at, middle, went, ends) - _time_of(at, middle, came, times)) for at in (begin, end)
        )
        steps = np.minimum(np.searchsorted(went, middle, side="right") - 1, len(arrivals) - 1)
        return cls(end - begin, first_s, last_s, steps)

    def in_batches(self, batch_s: float, busy: Floats) -> "Waits":
        """Add the wait for the next trigger, evenly up to `batch_s`, and for the end of a batch: `busy` of it."""
        ends_s = batch_s * busy[self.steps]
        return Waits(self.records, self.first_s + ends_s, self.last_s + ends_s, self.steps, batch_s)

    @property
    def mean_s(self) -> float:
        """Mean over records, seconds; 0 without records."""
        total = float(self.records.sum())
        if total <= 0:
            return 0.0
        return float(self.records @ (self.first_s + self.last_s) / 2 / total) + self.trigger_s / 2

    def quantile_s(self, share: float) -> float:
        """Return the least wait that this share of the records does not exceed; 0 without records."""
        if not self.records.size:
            return 0.0
        shortest, longest = np.minimum(self.first_s, self.last_s), np.maximum(self.first_s, self.last_s)
        wanted = share * float(self.records.sum()) * (1 - 1e-12)
        records = self.records
        low, high = 0.0, float(longest.max()) + self.trigger_s
        if not self.trigger_s and float(records @ (longest <= low)) >= wanted:
            return 0.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            within = _within(middle, shortest, longest, self.trigger_s)
            low, high = (low, middle) if float(records @ within) >= wanted else (middle, high)
            ended = longest + self.trigger_s
            below, between = ended <= low, (ended > low) & (shortest <= high)
            wanted -= float(records[below].sum())  # they are within at any later middle, and those above at none
            records, shortest, longest = (one[between] for one in (records, shortest, longest))
        return high


def _within(wait_s: float, shortest: Floats, longest: Floats, trigger_s: float) -> Floats:
    """Share of each cohort that waits at most `wait_s`: evenly from shortest to longest, and for the trigger."""
    wide, narrow = np.maximum(longest - shortest, trigger_s), np.minimum(longest - shortest, trigger_s)
    steep = narrow <= _EVEN * wide  # evenly over the wider of the two, from the middle of the other
    late: Floats = np.minimum(wait_s - shortest, wide + narrow)  # squares of more would lose it all to rounding
    whole = np.where(wide > 0, wide, 1.0)
    flat = np.where(wide > 0, np.clip((late - narrow / 2) / whole, 0.0, 1.0), late >= 0)
    narrow = np.where(steep, 1.0, narrow)
    squares = [np.maximum(0.0, late - shift) ** 2 for shift in (0.0, narrow, wide, narrow + wide)]
    both = (squares[0] - squares[1] - squares[2] + squares[3]) / (2 * narrow * whole)
    return np.where(steep, flat, np.clip(both, 0.0, 1.0))


def waited(arrivals: Floats, consumed: Floats, step_s: float) -> Floats:
    """Return the seconds since the arrival of the last record consumed in each step: first in, first out."""
    ends = np.arange(len(arrivals) + 1) * step_s
    arrived = np.concatenate([[0.0], np.cumsum(arrivals)])
    # The curve is flat while nothing arrives: take the earliest time with as many arrivals.
    rising = np.concatenate([[True], np.diff(arrived) > 0])
    since = np.interp(np.cumsum(consumed), arrived[rising], ends[rising])
    seconds: Floats = np.maximum(0.0, ends[1:] - since)
    return seconds


def _time_of(records: Floats, inside: Floats, curve: Floats, times: Floats) -> Floats:
    """Return when a cumulative curve reaches these record numbers, on the piece that contains `inside`."""
    piece = np.searchsorted(curve, inside, side="right") - 1
    height = curve[piece + 1] - curve[piece]
    share = np.clip((records - curve[piece]) / height, 0.0, 1.0)
    seconds: Floats = times[piece] + share * (times[piece + 1] - times[piece])
    return seconds
