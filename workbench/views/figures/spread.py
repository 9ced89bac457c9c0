"""What placing at random costs: rates of random placements on workers of several shapes, and the best."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from workbench import units
from workbench.placement import Spread
from workbench.views import theme
from workbench.views.figures import traces

_QUANTILES = (0.0, 0.1, 0.5, 0.9, 1.0)


@dataclass(frozen=True)
class ShapeRates:
    """Rates on one shape, records/s: quantiles 0, 10, 50, 90, 100 % of random placements, and the best plan's."""

    label: str
    quantiles: tuple[float, ...]
    best: float


@dataclass(frozen=True)
class Spreads:
    """What the figure shows, in the order given; `samples` is the number of random placements per shape."""

    finding: str
    shapes: tuple[ShapeRates, ...]
    samples: int


def spreads(found: Sequence[Spread]) -> Spreads:
    """Collect the spreads of rates; shapes on which nothing limits the rate are left out."""
    kept = [one for one in found if len(one.rates) and math.isfinite(one.best) and np.isfinite(one.rates).all()]
    shapes = tuple(
        ShapeRates(f"{one.workers:,} x {one.slots:,}", tuple(one.quantile(q) for q in _QUANTILES), one.best)
        for one in kept
    )
    if not shapes:
        return Spreads("Nothing limits the rate of any placement", (), 0)
    safest = max(shapes, key=lambda shape: shape.quantiles[1])
    lost = round(1 - safest.quantiles[1] / safest.best, 3) if safest.best else 0.0
    finding = (
        f"On {safest.label} slots nine of ten random placements sustain {units.rate(safest.quantiles[1])} or more, "
        + (f"{units.share(lost)} below the best plan" if lost else "as much as the best plan")
    )
    return Spreads(finding, shapes, max(len(one.rates) for one in kept))


def draw_spreads(data: Spreads) -> go.Figure:
    """Draw one row per shape: whole range, the middle eight tenths, the median and the best plan."""
    shows = "One row per worker shape: range of random placements and the best."
    figure = theme.figure(data.finding, 190 + 46 * len(data.shapes), shows)
    if not data.shapes:
        return theme.not_enough(figure, "no placement has a limited rate.")
    labels = [shape.label for shape in data.shapes]
    spans = (("spread-range", "all random placements", 0, 4, 3), ("spread-middle", "eight of ten", 1, 3, 15))
    for uid, name, low, high, width in spans:
        x, y = traces.broken([(one.quantiles[end], one.label) for end in (low, high)] for one in data.shapes)
        line = (theme.BLUE if width < 10 else "#8FBFDD", None, width)
        traces.lines(figure, uid, name, x, y, look=line, hover="%{x:.4~s} records/s")
    marks = (
        ("spread-median", "median", [shape.quantiles[2] for shape in data.shapes], theme.BLACK, "line-ns-open", 20),
        ("spread-best", "best plan found", [shape.best for shape in data.shapes], theme.VERMILLION, "diamond", 12),
    )
    for uid, name, values, colour, symbol, size in marks:
        look = {"look": (colour, symbol, size), "hover": name + " on %{y}: %{x:.4~s} records/s", "cliponaxis": False}
        traces.marks(figure, uid, name, values, labels, **look)
    top = max(max(shape.best, shape.quantiles[-1]) for shape in data.shapes)
    figure.update_xaxes(title_text="Sustained rate (records/s)", tickformat="~s", range=[0, 1.06 * top])
    figure.update_yaxes(title_text="Workers x slots", type="category", autorange="reversed", showgrid=False)
    return theme.room_for_legend(figure)
