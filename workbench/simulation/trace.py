"""The load over time: a rate that is constant between its times."""

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import median_low

import numpy as np

from workbench import bounds
from workbench.arrays import Floats
from workbench.checks import require
from workbench.reading import finite_cell, read_rows

_EVEN = 0.01  # two spacings of a file that differ by this share are the same, but for rounding
_MOST_STEPS = 10_000_000


@dataclass(frozen=True, eq=False)
class RateTrace:
    """A piecewise constant rate."""

    times_s: Floats  # when each rate begins, seconds, ascending from 0, shape (n,)
    rates_per_s: Floats  # records/s from that time on, at least 0 and at most `bounds.RATE`, shape (n,)
    duration_s: float  # end of the last rate

    def __post_init__(self) -> None:
        times, rates = (np.array(values, dtype=float) for values in (self.times_s, self.rates_per_s))
        require(times.ndim == 1 and times.shape == rates.shape, "A trace needs as many times as rates.")
        require(len(times) > 0, "A trace has no rates; give it at least one.")
        require(
            bool(((rates >= 0) & (rates <= bounds.RATE)).all()),
            f"A trace has rates from {rates.min():g} to {rates.max():g} records/s; all must be at least 0 and at most "
            f"{bounds.RATE:g}.",
        )
        require(
            times[0] == 0 and bool((np.diff(times) > 0).all()) and times[-1] < self.duration_s < math.inf,
            "The times of a trace must ascend from 0 s and lie before its end; "
            f"they run from {times[0]:g} s to {times[-1]:g} s, the end is {self.duration_s:g} s.",
        )
        times.flags.writeable = rates.flags.writeable = False
        object.__setattr__(self, "times_s", times)
        object.__setattr__(self, "rates_per_s", rates)

    @classmethod
    def constant(cls, rate_per_s: float, duration_s: float) -> "RateTrace":
        """One rate all the time."""
        return cls(np.zeros(1), np.array([rate_per_s]), duration_s)

    @classmethod
    def steps(cls, steps: Iterable[tuple[float, float]]) -> "RateTrace":
        """One rate after the other, from pairs (seconds it lasts, records/s)."""
        pairs = [(float(seconds), float(rate)) for seconds, rate in steps]
        require(bool(pairs), "A trace of steps has none; give at least one (seconds, records/s).")
        for seconds, _ in pairs:
            require(
                math.isfinite(seconds) and seconds > 0, f"A step of a trace lasts {seconds:g} s; it must last longer."
            )
        ends = np.cumsum([seconds for seconds, _ in pairs])
        return cls(np.concatenate([[0.0], ends[:-1]]), np.array([rate for _, rate in pairs]), float(ends[-1]))

    @classmethod
    def diurnal(
        cls,
        low_per_s: float,
        peak_per_s: float,
        *,
        duration_s: float = 86_400.0,
        period_s: float = 86_400.0,
        peak_at_s: float = 43_200.0,
        step_s: float = 60.0,
    ) -> "RateTrace":
        """Follow a cosine between `low_per_s` and `peak_per_s`, at its peak `peak_at_s` into each period.

        Each step of `step_s` seconds has the curve's rate at its middle.
        """
        require(
            0 <= low_per_s <= peak_per_s < math.inf,
            f"A day's rates run from {low_per_s:g} to {peak_per_s:g} records/s; the first must be at least 0, the "
            "second no lower.",
        )
        require(
            min(step_s, period_s, duration_s) > 0 and max(period_s, duration_s) < math.inf,
            f"step_s, period_s and duration_s are {step_s:g}, {period_s:g}, {duration_s:g} s; all must be above 0.",
        )
        times = np.arange(math.ceil(duration_s / step_s - 1e-9), dtype=np.float64) * step_s
        swing = (1 + np.cos(2 * np.pi * (times + step_s / 2 - peak_at_s) / period_s)) / 2
        return cls(times, low_per_s + (peak_per_s - low_per_s) * swing, duration_s)

    @classmethod
    def from_csv(
        cls, path: str | os.PathLike[str], time_column: str = "time_s", rate_column: str = "rate_per_s"
    ) -> "RateTrace":
        """Read rates at even times from a CSV file with a header.

        Each row says from which time on (seconds) which rate (records/s) holds; the last one lasts as long as the
        others. Times may begin anywhere; the trace begins at 0. Times are even if every row comes as long after the
        one before as the median row does, but for 1 %. WorkbenchError names the line that is wrong.
        """
        path, names = Path(path), (time_column, rate_column)
        advice = "Name the columns of time (seconds) and rate (records/s)."
        rows = [
            (line, *(finite_cell(row[name], f"Line {line} of {path}", name) for name in names))
            for line, row in read_rows(path, f"The file of rates {path}", names, advice)
        ]
        require(bool(rows), f"{path} has no rows; give at least two below the header.")
        for line, _, rate in rows:
            here = f"Line {line} of {path} has the rate {rate:g} records/s"
            require(rate >= 0, f"{here}; it must be at least 0.")
            require(rate <= bounds.RATE, f"{here}; it must be at most {bounds.RATE:g}.")
        for (_, before, _), (line, time, _) in pairwise(rows):
            here = f"Line {line} of {path}"
            require(time != before, f"{here} repeats the time {time:g} s; give each time once.")
            require(time > before, f"{here} goes back from {before:g} s to {time:g} s; sort the rows by {time_column}.")
        require(
            len(rows) > 1, f"{path} has one row, so it does not say how long the rate lasts; give at least two rows."
        )
        spacing = median_low(time - before for (_, before, _), (_, time, _) in pairwise(rows))
        for (_, before, _), (line, time, _) in pairwise(rows):
            require(
                math.isclose(time - before, spacing, rel_tol=_EVEN),
                f"Line {line} of {path} comes {time - before:g} s after the row before, where most rows are "
                f"{spacing:g} s apart; give the rates at even times, with no row missing.",
            )
        times = np.array([time - rows[0][1] for _, time, _ in rows])
        return cls(times, np.array([rate for _, _, rate in rows]), float(times[-1] + spacing))

    def rate_at(self, time_s: float) -> float:
        """Records/s at `time_s`; 0 outside the trace."""
        if not 0 <= time_s < self.duration_s:
            return 0.0
        return float(self.rates_per_s[np.searchsorted(self.times_s, time_s, side="right") - 1])

    def per_step(self, step_s: float) -> Floats:
        """Count the records that become due in each step of `step_s` seconds, shape (steps,), the last cut short.

        WorkbenchError for more than ten million steps.
        """
        require(
            self.duration_s / step_s <= _MOST_STEPS,
            f"A trace of {self.duration_s:g} s has {self.duration_s / step_s:,.0f} steps of {step_s:g} s, more than "
            f"{_MOST_STEPS:,}. Its times are seconds: are these milliseconds? If not, take longer steps.",
        )
        steps = math.ceil(self.duration_s / step_s - 1e-9)
        ends = np.append(self.times_s, self.duration_s)
        return np.diff(np.interp(np.arange(steps + 1) * step_s, ends, self._due))

    @property
    def mean_per_s(self) -> float:
        """Mean rate, records/s."""
        return float(self._due[-1] / self.duration_s)

    @property
    def peak_per_s(self) -> float:
        """Highest rate, records/s."""
        return float(self.rates_per_s.max())

    @cached_property
    def _due(self) -> Floats:
        lasting = np.diff(np.append(self.times_s, self.duration_s))
        return np.concatenate([[0.0], np.cumsum(self.rates_per_s * lasting)])
