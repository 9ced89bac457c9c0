"""How far a repeat of a measurement may be from it: an interval for the maximum, in addition to the bracket.

The bracket of an estimate is what one deployment was seen to do. Another one is compiled, laid out and disturbed
differently. The interval says where the maximum of the next one lies.

Repeats scatter log-normally with an unknown deviation. The conjugate prior of it is five percent, as the published
repeats of StreamBed's queries scatter on machines of their own, and six percent on a virtual machine, where repeats of
q1 and q5 scattered by .04 to .055; both weigh eight observations, less than what was seen. Earlier measurements of the
same configuration add what they show. The next one then follows Student's distribution.

The next deployment may meet more or fewer neighbours. So what disturbed the probes of this one beyond what is always
there is expected as well, up to five percent: a neighbour that takes all cores for 20 of each 45 s moved the median of
six deployments by 2 %.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import t as student

from workbench.errors import WorkbenchError
from workbench.records import Machine, MstEstimate, MstInterval

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


def scatter(groups: Sequence[Sequence[float]], expected: float = EXPECTED_DEVIATION) -> tuple[float, int]:
    """Deviation of the logarithms within `groups` of repeated rates, and its degrees of freedom, prior included."""
    squares, freedom = 0.0, 0
    for group in groups:
        if len(group) > 1:
            logarithms = np.log(group)
            squares += float(((logarithms - logarithms.mean()) ** 2).sum())
            freedom += len(group) - 1
    return with_prior(squares, freedom, expected)


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
    if not 0 < level < 1:
        raise WorkbenchError(f"level is {level!r}; it must be between 0 and 1, both excluded. Use 0.9.")
    if not _bounded(estimate):
        return None
    every = [*(one for one in earlier if _bounded(one)), estimate]
    expected = math.hypot(expected, disturbance_of(estimate))
    deviation, freedom = scatter([[one.middle for one in every]], expected)
    centre = float(np.mean([math.log(one.middle) for one in every]))
    reach = float(student.ppf((1 + level) / 2, freedom)) * deviation * math.sqrt(1 + 1 / len(every))
    reach += float(np.mean([math.log(one.high / one.low) for one in every])) / 2  # the maximum is anywhere in a bracket
    return MstInterval(math.exp(centre - reach), math.exp(centre + reach), level, math.expm1(deviation), len(every))


def _bounded(estimate: MstEstimate) -> bool:
    return estimate.limit == "query" and estimate.low > 0 and math.isfinite(estimate.high)
