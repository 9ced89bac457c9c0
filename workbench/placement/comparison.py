"""All ways to place side by side, those of chance with several draws, and which sustains most."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from workbench.errors import WorkbenchError
from workbench.placement._odrp import OdrpWeights, Setting
from workbench.placement.given import PlacementInput
from workbench.placement.methods import DEFAULT, DRAWN, METHODS, PROVEN, Placed, check_methods, placed_by
from workbench.placement.plan import CostVector

_AS_FAST = 1e-3
_DECIMALS = 6


@dataclass(frozen=True)
class Compared:
    """A method in a comparison: its plan, or as many as were drawn where chance has a part."""

    plans: tuple[Placed, ...]

    @property
    def placed(self) -> Placed:
        """The first plan."""
        return self.plans[0]

    @property
    def draws(self) -> int:
        """How many plans there are."""
        return len(self.plans)

    @property
    def _rates(self) -> list[float]:
        return [plan.rate.rate for plan in self.plans if plan.rate is not None]

    @property
    def lowest(self) -> float | None:
        """The lowest rate of a plan, records/s; None without the rate of the loads."""
        return min(self._rates, default=None)

    @property
    def median(self) -> float | None:
        """The median rate, as `lowest`."""
        return median(self._rates) if self._rates else None

    @property
    def highest(self) -> float | None:
        """The highest rate, as `lowest`."""
        return max(self._rates, default=None)

    @property
    def costs(self) -> CostVector:
        """The median of each of the plans' costs."""
        return CostVector(*(float(median(costs)) for costs in zip(*(plan.cost for plan in self.plans), strict=True)))


@dataclass(frozen=True)
class Comparison:
    """Rows of the methods that found a plan; `refused` has the others, with the reason."""

    rows: tuple[Compared, ...]
    refused: Mapping[str, str]

    @property
    def best(self) -> Compared:
        """The method that sustains most in the median of its draws, the first of those within a thousandth of it.

        Where nothing is known to limit any rate, costs count in the order of the optimum: CPU, then state access, then
        network, each in the median of the draws. Plans for other numbers of tasks, as ODRP chooses them, answer
        another question and do not compete if they need not.
        """
        rows = [row for row in self.rows if row.placed.method != "odrp"] or self.rows
        most = max(row.median or 0.0 for row in rows)
        if 0 < most < math.inf:
            return next(row for row in rows if (row.median or 0.0) >= most * (1 - _AS_FAST))
        return min(rows, key=lambda row: tuple(round(cost, _DECIMALS) for cost in row.costs))

    @property
    def default(self) -> Compared | None:
        """The default scheduler's row, if it was asked for and found a plan."""
        return next((row for row in self.rows if row.placed.method == DEFAULT), None)


def compare(
    given: PlacementInput,
    methods: Sequence[str] | None = None,
    *,
    thresholds: CostVector | None = None,
    seed: int = 0,
    draws: int = 20,
    timeout_s: float | None = None,
    weights: Setting | OdrpWeights = "default",
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Place by every method, those of chance several times.

    Parameters
    ----------
    given
        What, on which workers.
    methods
        Some of ``METHODS``; all if left out.
    thresholds, weights
        See `place`.
    seed, draws
        Random methods draw this many plans, at least 1, with seeds from `seed` on, which is at least 0.
    timeout_s
        Time limit of every search, seconds above 0; None: as for `place`. The effort of ``PROVEN`` methods is bounded
        otherwise, so that a comparison names the plan that `place` does.
    progress
        Is called with the method that decides now.
    """
    methods = METHODS if methods is None else methods
    check_methods(methods, seed=seed, draws=draws, timeout_s=timeout_s, weights=weights)
    rows: list[Compared] = []
    refused: dict[str, str] = {}
    for number, method in enumerate(methods, start=1):
        if progress is not None:
            progress(f"method {number}/{len(methods)} · {method}")
        times, limit = draws if method in DRAWN else 1, None if method in PROVEN else timeout_s
        try:
            placed = tuple(
                placed_by(given, method, thresholds=thresholds, seed=seed + draw, timeout_s=limit, weights=weights)
                for draw in range(times)
            )
        except WorkbenchError as error:
            refused[method] = str(error)
            continue
        rows.append(Compared(placed))
    if not rows:
        reasons = " ".join(f"{method}: {reason}" for method, reason in refused.items())
        raise WorkbenchError(f"No method found a plan. {reasons or 'Give at least one method.'}")
    return Comparison(tuple(rows), refused)
