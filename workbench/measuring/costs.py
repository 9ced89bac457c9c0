"""What probes add up to: costs, fitted by least squares, and an interval for the maximum of the next deployment.

Costs are fixed and per record: seconds = a + b x records. Every task of every micro-batch pays a fixed part. Only
batches of several sizes, at least three, separate it.

The bracket of an estimate is what one deployment was seen to do. Another one is compiled, laid out and disturbed
differently, so an interval says where its maximum lies. Repeats scatter log-normally with an unknown deviation. The
conjugate prior of it is five percent, as the published repeats of StreamBed's queries scatter on machines of their own,
and six percent on a virtual machine, where repeats of q1 and q5 scattered by .04 to .055; both weigh eight
observations, less than what was seen. Earlier measurements of the same configuration add what they show. The next one
then follows Student's distribution. It may meet more or fewer neighbours: so what disturbed these probes beyond what is
always there is expected as well, up to five percent. (A neighbour that takes all cores for 20 of each 45 s moved the
median of six deployments by 2 %.)
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from workbench.checks import within
from workbench.metrics import Batch, TaskSample
from workbench.records import Machine, MstEstimate, MstInterval, OperatorCost, Probe

MIN_LEVELS = 3
_SAME_LEVEL = 1.02


@dataclass(frozen=True)
class Line:
    """``y = fixed + slope x``, both at least 0, with the standard error of the slope (None below three points)."""

    fixed: float
    slope: float
    slope_error: float | None


def fit_line(points: Iterable[tuple[float, float]]) -> Line | None:
    """Fit ``(x, y)`` by least squares under ``fixed >= 0`` and ``slope >= 0``; None without a point of ``x > 0``."""
    pairs = list(points)
    count = len(pairs)
    total = sum(x for x, _ in pairs)
    if total <= 0:
        return None
    mean_x, mean_y = total / count, sum(y for _, y in pairs) / count
    spread = sum((x - mean_x) ** 2 for x, _ in pairs)
    if spread > 0:
        slope = sum((x - mean_x) * (y - mean_y) for x, y in pairs) / spread
        fixed = mean_y - slope * mean_x
        if slope < 0:  # on the edge slope = 0 the best fixed part is the mean
            fixed, slope = max(0.0, mean_y), 0.0
        if fixed >= 0:
            return Line(fixed, slope, _error(pairs, fixed, slope, count - 2, spread))
    squares = sum(x * x for x, _ in pairs)  # on the edge fixed = 0, or with one size only: through the origin
    slope = max(0.0, sum(x * y for x, y in pairs) / squares)
    return Line(0.0, slope, _error(pairs, 0.0, slope, count - 1, squares))


def _error(
    pairs: Sequence[tuple[float, float]], fixed: float, slope: float, freedom: int, spread: float
) -> float | None:
    if freedom < 1:
        return None
    return math.sqrt(sum((y - fixed - slope * x) ** 2 for x, y in pairs) / freedom / spread)


_COUNTED = frozenset({"sustained", "overloaded", "lower load", "reading"})
"""Verdicts of valid probes, and observations at lower rates."""


def judged_batches(estimate: MstEstimate, load_curve: Sequence[Probe] = ()) -> list[tuple[Batch, str]]:
    """Return the batches of the probes and of `load_curve`, with the verdict on their probe, or else its phase."""
    judged: list[tuple[Probe, str]] = [
        (probe, probe.phase if probe.judgement is None else probe.judgement.verdict)
        for probe in estimate.probes
        if probe.phase != "warm-up"
    ]
    judged += [(probe, "lower load") for probe in load_curve]
    return [(batch, verdict) for probe, verdict in judged for batch in probe.observation.batches[1:]]


def batch_line(estimate: MstEstimate, load_curve: Sequence[Probe] = ()) -> Line | None:
    """Fit batch time to rows, by the batches of valid probes; None if they are too few or too similar."""
    batches = judged_batches(estimate, load_curve)
    counted = [(float(batch.records), batch.duration_s) for batch, verdict in batches if verdict in _COUNTED]
    return fit_line(counted) if count_levels(sorted(records for records, _ in counted)) >= MIN_LEVELS else None


def fit_costs(samples: Iterable[TaskSample]) -> tuple[OperatorCost, ...]:
    """Fit every operator of `samples`, in order of appearance."""
    grouped: dict[str, list[tuple[float, float]]] = {}
    for sample in samples:
        grouped.setdefault(sample.operator, []).append((sample.records, sample.seconds))
    costs = []
    for operator, points in grouped.items():
        records = sorted(x for x, _ in points)
        levels = count_levels(records)
        line = fit_line(points) if levels >= MIN_LEVELS else None
        fixed, slope, error = (line.fixed, line.slope, line.slope_error) if line else (None, None, None)
        costs.append(OperatorCost(operator, fixed, slope, error, records[0], records[-1], len(points), levels))
    return tuple(costs)


def count_levels(ordered: Sequence[float]) -> int:
    """Count the levels of ascending values; one level spans at most 2 %."""
    levels, start = 0, -math.inf
    for value in ordered:
        if levels == 0 or value > start * _SAME_LEVEL:
            levels, start = levels + 1, value
    return levels


EXPECTED_DEVIATION = 0.05
EXPECTED_DEVIATION_VIRTUAL = 0.06
EXPECTED_WEIGHT = 8
MOST_DISTURBED = 0.05
LEVEL = 0.9


def expected_deviation(machine: Machine) -> float:
    """Return the relative deviation of repeats that is expected on `machine` before any are made."""
    return EXPECTED_DEVIATION if machine.virtual is False else EXPECTED_DEVIATION_VIRTUAL


def disturbance_of(estimate: MstEstimate) -> float:
    """Deviation due to temporary disturbance of the probes, at most `MOST_DISTURBED`; 0 without."""
    shares = [probe.observation.disturbance.worst for probe in estimate.probes]
    return min(MOST_DISTURBED, float(np.std(shares))) if shares else 0.0


def with_prior(squares: float, freedom: int, expected: float = EXPECTED_DEVIATION) -> tuple[float, int]:
    """Return the deviation and its degrees of freedom, from the prior and `squares` of logarithms with `freedom`."""
    whole = EXPECTED_WEIGHT + freedom
    return math.sqrt((EXPECTED_WEIGHT * expected**2 + squares) / whole), whole


def mst_interval(
    estimate: MstEstimate,
    earlier: Sequence[MstEstimate] = (),
    level: float = LEVEL,
    expected: float = EXPECTED_DEVIATION,
) -> MstInterval | None:
    """Return the interval of the next deployment's maximum; None if `estimate` has no bracket set by the query.

    Parameters
    ----------
    earlier
        Earlier ones of the same configuration; those not bounded by the query are left out.
    expected
        Relative deviation of repeats before any is seen; see `expected_deviation`. What disturbed probes is added.
    """
    within("level", level, 0, 1)
    if not _bounded(estimate):
        return None
    every = [*(one for one in earlier if _bounded(one)), estimate]
    expected = math.hypot(expected, disturbance_of(estimate))
    logarithms = np.log([one.middle for one in every])
    squares = float(((logarithms - logarithms.mean()) ** 2).sum())
    deviation, freedom = with_prior(squares, len(every) - 1, expected)
    centre = float(np.mean([math.log(one.middle) for one in every]))
    reach = float(student.ppf((1 + level) / 2, freedom)) * deviation * math.sqrt(1 + 1 / len(every))
    reach += float(np.mean([math.log(one.high / one.low) for one in every])) / 2  # the maximum is anywhere in a bracket
    return MstInterval(math.exp(centre - reach), math.exp(centre + reach), level, math.expm1(deviation), len(every))


def _bounded(estimate: MstEstimate) -> bool:
    return estimate.limit == "query" and estimate.low > 0 and math.isfinite(estimate.high)
