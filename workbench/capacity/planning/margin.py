"""The margin of a plan: the capacity it takes, over the rate."""

from workbench.capacity.model import MARGIN
from workbench.records import Outage


def margin_of(margin: float | None, risk: float | None, outage: Outage | None) -> float:
    """Give the margin to plan with.

    Parameters
    ----------
    margin
        The one that was asked for; None: 1.1, or 1 where a risk takes its place.
    risk
        Accepted probability of falling short; None: the plan is by margin.
    outage
        An outage to catch up after in time, which may take a larger margin.
    """
    if margin is None:
        margin = MARGIN if risk is None else 1.0
    return margin if outage is None else max(margin, outage.margin)
