"""What a threshold of the CPU cost prunes: plans that remain and nodes that are searched, against the threshold."""

from collections.abc import Sequence

import plotly.graph_objects as go

from workbench import units
from workbench.placement import CostVector, SearchResult
from workbench.views import theme
from workbench.views.figures import traces

Searches = Sequence[tuple[CostVector, SearchResult]]


def _ordered(searches: Searches) -> list[tuple[float, SearchResult]]:
    """Order searches by their threshold of the CPU cost; one that is off counts as 1, the worst."""
    return sorted(((min(1.0, limits.cpu), result) for limits, result in searches), key=lambda pair: pair[0])


def pruning(searches: Searches) -> str:
    """Say what the tightest threshold leaves that some plan meets."""
    found = _ordered(searches)
    if not found:
        return "No search was made"
    met = next(((limit, result) for limit, result in found if result.count), None)
    if met is None:
        return f"No plan meets a threshold of the CPU cost up to {units.number(found[-1][0])}"
    tightest, result = met
    most = max(one.nodes for _, one in found)
    share = result.nodes / most if most else 1.0
    widest = f"{units.share(share)} of the nodes of the widest search" if share < 1 else "as many nodes as the widest"
    left = f"{units.count(result.count)} of {units.count(max(one.count for _, one in found))} plans"
    return f"A threshold of {units.number(tightest)} on the CPU cost leaves {left}, at {widest}"


def draw_pruning(searches: Searches) -> go.Figure:
    """Draw plans and nodes on a logarithmic axis, and shade where no plan is left."""
    found = _ordered(searches)
    shows = "Two lines over the threshold: plans that meet it and nodes searched."
    figure = theme.figure(pruning(searches), 400, shows)
    if not found:
        return theme.not_enough(figure, "no search was made.")
    limits = [limit for limit, _ in found]
    series = (
        ("pruning-nodes", "nodes searched", [one.nodes for _, one in found], theme.VERMILLION, "square", "dash"),
        ("pruning-plans", "plans within the threshold", [one.count for _, one in found], theme.BLUE, "circle", "solid"),
    )
    for uid, name, values, colour, symbol, dash in series:
        counts = [value or None for value in values]  # a logarithmic axis has no zero
        late = ["" if one.exhausted else " (not finished: at least)" for _, one in found]
        look = {"mode": "lines+markers", "line": {"color": colour, "dash": dash}, "look": (colour, symbol, 8)}
        hover = "threshold %{x:.3f}: %{y:,} " + name.split()[0] + "%{customdata}"
        traces.marks(figure, uid, name, limits, counts, customdata=late, hover=hover, **look)
    tightest = next((limit for limit, one in found if one.count), None)
    right = limits[-1]
    if tightest is None or tightest > limits[0]:
        words = {"text": "no plan", "font": {"size": 12, "color": theme.GREY}}
        shade = {"fillcolor": theme.GREY, "opacity": 0.1, "line_width": 0, "layer": "below"}
        end = right if tightest is None else tightest
        figure.add_vrect(x0=0, x1=end, annotation=words, annotation_position="top left", **shade)
    figure.update_xaxes(title_text="Threshold of the CPU cost (0 ideal, 1 worst)", range=[0, 1.02 * right])
    figure.update_yaxes(title_text="Plans, nodes", type="log", dtick=1, exponentformat="none", tickformat=",")
    return theme.room_for_legend(figure)
