"""Capacity against the trigger interval, that is, against latency, relative to that measured.

A stateful query pays for every distinct key of every batch, so it carries more when its batches are larger, and its
records wait longer: at most a whole interval for the next trigger, and then as long as the slowest batch takes. One
budget is measured at several intervals; the ratio of its capacities, the *gain*, is taken to hold at other budgets too,
which a plan says. It is as uncertain as the two measurements.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t as student

from workbench.arrays import Floats
from workbench.checks import SLACK
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.journal import Journal, JournalError
from workbench.measuring import (
    EXPECTED_DEVIATION,
    CapacityEstimator,
    Configuration,
    Event,
    Failed,
    expected_deviation,
    failed,
    measure,
    with_prior,
)
from workbench.records import FailedRun, Run
from workbench.testbed import Testbed
from workbench.workload import Query


@dataclass(frozen=True)
class IntervalPoint:
    """Capacity and latency at one trigger interval."""

    interval_s: float  # trigger interval, seconds
    rate: float  # MST: the middle of its bracket, records/s
    # low, high: ends of the bracket, records/s
    low: float
    high: float
    latency_s: float  # longest time from when a record is due to the end of its batch, at that rate, seconds
    mean_latency_s: float  # average of that time, seconds: half an interval, and a batch
    deviation: float = EXPECTED_DEVIATION  # relative deviation expected between repeats on the testbed


@dataclass(frozen=True)
class IntervalSpeedup:
    """Capacity at a trigger interval relative to that at the explored one; by default that of the explored one itself.

    The capacity on other cores than those measured is relative to these in the same way.
    """

    ratio: float = 1.0  # of the two measured capacities
    bracket: float = 0.0  # possible error of the ratio's logarithm, as each capacity may be anywhere in its bracket
    deviation: float = 0.0  # standard deviation of the ratio's logarithm from one deployment to the next
    freedom: int = 1  # degrees of freedom that it is known with

    @property
    def uncertain(self) -> bool:
        """Whether the ratio may be off: the explored interval's ratio to itself is exact."""
        return self.bracket > 0 or self.deviation > 0

    def together(self, other: "IntervalSpeedup") -> "IntervalSpeedup":
        """Return the product of two independent ratios, with the degrees of freedom of the less certain one."""
        deviation = math.hypot(self.deviation, other.deviation)
        freedom = min(one.freedom for one in (self, other) if one.uncertain or not (self.uncertain or other.uncertain))
        return IntervalSpeedup(self.ratio * other.ratio, self.bracket + other.bracket, deviation, freedom)

    def quantile(self, probability: float) -> float:
        """Return the ratio that is missed with `probability`, at the worse end of the brackets."""
        side = (probability > 0.5) - (probability < 0.5)
        reach = float(student.ppf(probability, self.freedom)) * self.deviation
        return self.ratio * math.exp(reach + side * self.bracket)

    def below(self, ratios: Floats) -> Floats:
        """Return the probability that the ratio is below each of `ratios`."""
        off = np.log(ratios / self.ratio)
        reach = np.copysign(np.maximum(np.abs(off) - self.bracket, 0.0), off)
        return np.asarray(student.cdf(reach / max(self.deviation, SLACK), self.freedom))


def sweep(
    query: Query,
    budget: Budget,
    intervals: Sequence[float],
    *,
    testbed: Testbed,
    estimator: CapacityEstimator,
    journal: Journal,
) -> Generator[Event, None, tuple[Run, ...]]:
    """Measure `budget` at each of `intervals` (seconds), ascending; do not repeat what the journal has finished.

    It yields what happens and returns the runs. What cannot be measured is a failed run.
    """
    distinct = sorted(set(intervals))
    if len(distinct) < 2:
        raise WorkbenchError(
            f"The trigger intervals to compare are {list(intervals)!r}; give at least two different ones, in seconds."
        )
    if testbed.operators(query):
        raise WorkbenchError(
            f"The testbed {testbed.identity!r} runs its operators side by side and has no trigger interval. Compare "
            "intervals on Spark, or leave them out."
        )
    made = list[Run]()
    for interval in distinct:
        each = Configuration(query, replace(budget, interval_s=interval))
        try:
            made.append((yield from measure(each, testbed, estimator, journal, costs=False, reuse=True)))
        except JournalError:
            raise
        except WorkbenchError as error:
            failure = failed(each, testbed, error)
            made.append(failure)
            yield Failed(failure)
    return tuple(made)


def interval_points(runs: Sequence[Run]) -> tuple[IntervalPoint, ...]:
    """Return capacity and latency of every run that sustained a rate, by interval; of repeats the last counts."""
    points = {}
    for one in runs:
        if isinstance(one, FailedRun):
            continue
        seen, interval = one.estimate.observation, one.budget.interval_s
        if seen is None or not one.estimate.rate:
            continue
        durations = [batch.duration_s for batch in seen.lasting[1:]]
        points[interval] = IntervalPoint(
            interval,
            one.estimate.middle,
            one.estimate.low,
            one.estimate.high,
            interval + max(durations),
            interval / 2 + sum(durations) / len(durations),
            expected_deviation(one.machine),
        )
    return tuple(points[interval] for interval in sorted(points))


def interval_speedups(
    points: Sequence[IntervalPoint], base_s: float, latency_s: float | None = None
) -> Mapping[float, IntervalSpeedup]:
    """Return the capacity at each interval, relative to that at `base_s`, for the intervals that keep `latency_s`."""
    base = next((point for point in points if point.interval_s == base_s), None)
    if base is None:
        compared = ", ".join(f"{point.interval_s:g} s" for point in points) or "none"
        raise WorkbenchError(
            f"Nothing was sustained at the trigger interval {base_s:g} s that the model rests on; the intervals "
            f"compared must include it (compared: {compared})."
        )
    kept = {
        point.interval_s: _speedup(point, base) for point in points if latency_s is None or point.latency_s <= latency_s
    }
    if not kept:
        fastest = min(points, key=lambda point: point.latency_s)
        raise WorkbenchError(
            f"No trigger interval keeps a latency of {latency_s:g} s: the least was {fastest.latency_s:.2f} s at "
            f"{fastest.interval_s:g} s. Allow more latency, or compare shorter intervals."
        )
    return kept


def _speedup(point: IntervalPoint, base: IntervalPoint) -> IntervalSpeedup:
    if point is base:
        return IntervalSpeedup()
    expected = max(point.deviation, base.deviation)
    deviation, freedom = with_prior(0.0, 0, expected)  # the runs of a sweep are not repeated
    bracket = _half_bracket(point) + _half_bracket(base)
    return IntervalSpeedup(point.rate / base.rate, bracket, math.sqrt(2) * deviation, freedom)


def _half_bracket(point: IntervalPoint) -> float:
    """Half of ln(high / low); 0 if there is no upper end."""
    return math.log(point.high / point.low) / 2 if math.isfinite(point.high) else 0.0
