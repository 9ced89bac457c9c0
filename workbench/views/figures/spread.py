"""What placing at random costs: rates of random placements on workers of several shapes, and the best."""

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from workbench import units
from workbench.placement import Spread
from workbench.views import theme
from workbench.views.figures import traces


def spreads(found: Sequence[Spread]) -> str:
    """Say on which shape most random placements do well; shapes on which nothing limits the rate do not count."""
    kept = _limited(found)
    if not kept:
        return "Nothing limits the rate of any placement"
    safest = max(kept, key=lambda one: one.quantile(0.1))
    least = safest.quantile(0.1)
    lost = round(1 - least / safest.best, 3) if safest.best else 0.0
    below = f"{units.share(lost)} below the best plan" if lost else "as much as the best plan"
    return f"On {_label(safest)} slots nine of ten random placements sustain {units.rate(least)} or more, {below}"


def _limited(found: Sequence[Spread]) -> list[Spread]:
    return [one for one in found if len(one.rates) and math.isfinite(one.best) and np.isfinite(one.rates).all()]


def _label(one: Spread) -> str:
    return f"{one.workers:,} x {one.slots:,}"


def draw_spreads(found: Sequence[Spread]) -> go.Figure:
    """Draw one row per shape: whole range, the middle eight tenths, the median and the best plan."""
    kept = _limited(found)
    shows = "One row per worker shape: range of random placements and the best."
    figure = theme.figure(spreads(found), 190 + 46 * len(kept), shows)
    if not kept:
        return theme.not_enough(figure, "no placement has a limited rate.")
    labels = [_label(one) for one in kept]
    spans = (("spread-range", "all random placements", 0.0, 1.0, 3), ("spread-middle", "eight of ten", 0.1, 0.9, 15))
    for uid, name, low, high, width in spans:
        x, y = traces.broken([(one.quantile(end), _label(one)) for end in (low, high)] for one in kept)
        line = (theme.BLUE if width < 10 else "#8FBFDD", None, width)
        traces.lines(figure, uid, name, x, y, look=line, hover="%{x:.4~s} records/s")
    marks = (
        ("spread-median", "median", [one.quantile(0.5) for one in kept], theme.BLACK, "line-ns-open", 20),
        ("spread-best", "best plan found", [one.best for one in kept], theme.VERMILLION, "diamond", 12),
    )
    for uid, name, values, colour, symbol, size in marks:
        look = {"look": (colour, symbol, size), "hover": name + " on %{y}: %{x:.4~s} records/s", "cliponaxis": False}
        traces.marks(figure, uid, name, values, labels, **look)
    top = max(max(one.best, one.quantile(1.0)) for one in kept)
    figure.update_xaxes(title_text="Sustained rate (records/s)", tickformat="~s", range=[0, 1.06 * top])
    figure.update_yaxes(title_text="Workers x slots", type="category", autorange="reversed", showgrid=False)
    return theme.room_for_legend(figure)
