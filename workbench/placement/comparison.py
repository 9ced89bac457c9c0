"""All ways to place side by side, those of chance with several draws, and which is best."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Self

from workbench.checks import integer, shown
from workbench.errors import WorkbenchError
from workbench.placement._odrp import OdrpWeights, Setting
from workbench.placement.given import PlacementInput
from workbench.placement.methods import DEFAULT, DRAWN, METHODS, Placed, best_method, check_methods, place
from workbench.placement.plan import CostVector

_AS_FAST = 1e-3


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
    def lowest(self) -> float | None:
        """The lowest rate of a plan, records/s; None without the rate of the loads."""
        return min((plan.rate.rate for plan in self.plans if plan.rate is not None), default=None)

    @property
    def median(self) -> float | None:
        """The median rate of the plans, records/s; None without the rate of the loads."""
        rates = [plan.rate.rate for plan in self.plans if plan.rate is not None]
        return median(rates) if rates else None

    @property
    def worst_cost(self) -> float:
        """The median of the plans' worst costs."""
        return float(median(plan.cost.worst for plan in self.plans))

    @property
    def highest(self) -> float | None:
        """The highest rate of a plan, records/s; None without the rate of the loads."""
        return max((plan.rate.rate for plan in self.plans if plan.rate is not None), default=None)


def best_of(rows: Iterable[Compared]) -> Compared:
    """Give the row of the highest median rate; of rates that are alike, of the lowest worst cost; then the first.

    Rates within a thousandth are alike. Without rates only costs count.
    """
    rows = list(rows)
    most = max(row.median or 0.0 for row in rows)
    able = [row for row in rows if (row.median or 0.0) >= most * (1 - _AS_FAST)]
    return min(able, key=lambda row: float(f"{row.worst_cost:.9g}"))


class Comparison(tuple[Compared, ...]):  # noqa: SLOT001 - a tuple takes no slots, and `refused` needs a place
    """Rows of the methods that found a plan; `refused` has the others, with the reason."""

    refused: Mapping[str, str]

    def __new__(cls, rows: Iterable[Compared], refused: Mapping[str, str]) -> Self:
        """Make the rows, and keep what was refused."""
        made = super().__new__(cls, rows)
        made.refused = refused
        return made

    @property
    def best(self) -> Compared:
        """The best method, as `best_of` ranks them.

        Plans for other numbers of tasks, as ODRP chooses them, answer another question and do not compete if they need
        not.
        """
        return best_of([row for row in self if row.placed.method != "odrp"] or self)

    @property
    def default(self) -> Compared | None:
        """The default scheduler's row, if it was asked for and found a plan."""
        return next((row for row in self if row.placed.method == DEFAULT), None)


def compare(
    given: PlacementInput,
    methods: Sequence[str] | None = None,
    *,
    thresholds: CostVector | None = None,
    seed: int = 0,
    draws: int = 20,
    timeout_s: float | None = 10.0,
    weights: Setting | OdrpWeights = "default",
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Place by every method, those of chance several times.

    Parameters
    ----------
    given
        What, on which workers.
    methods
        Some of ``METHODS``; all if left out, ``"fastest"`` only where something limits the rate.
    thresholds, weights
        See `place`.
    seed, draws
        Random methods draw this many plans, at least 1, with seeds from `seed` on, which is at least 0.
    timeout_s
        Time limit of every search, seconds above 0; None: see `place`.
    progress
        Is called with the method that decides now.

    Raises
    ------
    WorkbenchError
        For an unknown method, a number out of its range, or when no method finds a plan.
    """
    if methods is None:
        methods = [method for method in METHODS if method != "fastest" or best_method(given) == "fastest"]
    check_methods(methods, seed, timeout_s)
    if (integer(draws) or 0) < 1:
        raise WorkbenchError(f"draws is {shown(draws)}; it must be a whole number of at least 1.")
    rows: list[Compared] = []
    refused: dict[str, str] = {}
    for number, method in enumerate(methods, start=1):
        if progress is not None:
            progress(f"method {number}/{len(methods)} · {method}")
        times = draws if method in DRAWN else 1
        try:
            placed = tuple(
                place(given, method, thresholds=thresholds, seed=seed + draw, timeout_s=timeout_s, weights=weights)
                for draw in range(times)
            )
        except WorkbenchError as error:
            refused[method] = str(error)
            continue
        rows.append(Compared(placed))
    if not rows:
        reasons = " ".join(f"{method}: {reason}" for method, reason in refused.items())
        raise WorkbenchError(f"No method found a plan. {reasons or 'Give at least one method.'}")
    return Comparison(rows, refused)
