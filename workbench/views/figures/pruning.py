"""What a threshold of the CPU cost prunes: plans that remain and nodes that are searched, against the threshold."""

from collections.abc import Iterable
from dataclasses import dataclass

import plotly.graph_objects as go

from workbench import units
from workbench.placement import CostVector, SearchResult
from workbench.views import theme
from workbench.views.figures import traces


@dataclass(frozen=True)
class Pruning:
    """What the figure shows, by ascending threshold; `exhausted` says whether a search was finished."""

    finding: str
    thresholds: tuple[float, ...]
    plans: tuple[int, ...]
    nodes: tuple[int, ...]
    exhausted: tuple[bool, ...]

    @property
    def tightest(self) -> float | None:
        """The lowest threshold that some plan met; None if none did."""
        return next((limit for limit, plans in zip(self.thresholds, self.plans, strict=True) if plans), None)


def pruning(searches: Iterable[tuple[CostVector, SearchResult]]) -> Pruning:
    """Collect searches under several thresholds of the CPU cost; one that is off counts as 1, the worst."""
    found = sorted(((min(1.0, limits.cpu), result) for limits, result in searches), key=lambda pair: pair[0])
    thresholds = tuple(limit for limit, _ in found)
    plans = tuple(result.count for _, result in found)
    nodes = tuple(result.nodes for _, result in found)
    exhausted = tuple(result.exhausted for _, result in found)
    tightest = next((place for place, count in enumerate(plans) if count), None)
    if not found:
        finding = "No search was made"
    elif tightest is None:
        finding = f"No plan meets a threshold of the CPU cost up to {units.number(thresholds[-1])}"
    else:
        most = max(nodes)
        share = nodes[tightest] / most if most else 1.0
        saved = (
            f"{units.share(share)} of the nodes of the widest search" if share < 1 else "as many nodes as the widest"
        )
        finding = (
            f"A threshold of {units.number(thresholds[tightest])} on the CPU cost leaves "
            f"{units.count(plans[tightest])} of {units.count(max(plans))} plans, at {saved}"
        )
    return Pruning(finding, thresholds, plans, nodes, exhausted)


def draw_pruning(data: Pruning) -> go.Figure:
    """Draw plans and nodes on a logarithmic axis, and shade where no plan is left."""
    figure = theme.figure(data.finding, 400, "Two lines over the threshold: plans that meet it and nodes searched.")
    if not data.thresholds:
        return theme.not_enough(figure, "no search was made.")
    series = (
        ("pruning-nodes", "nodes searched", data.nodes, theme.VERMILLION, "square", "dash"),
        ("pruning-plans", "plans within the threshold", data.plans, theme.BLUE, "circle", "solid"),
    )
    for uid, name, values, colour, symbol, dash in series:
        counts = [value or None for value in values]  # a logarithmic axis has no zero
        late = ["" if done else " (not finished: at least)" for done in data.exhausted]
        look = {"mode": "lines+markers", "line": {"color": colour, "dash": dash}, "look": (colour, symbol, 8)}
        hover = "threshold %{x:.3f}: %{y:,} " + name.split()[0] + "%{customdata}"
        traces.marks(figure, uid, name, data.thresholds, counts, customdata=late, hover=hover, **look)
    tightest = data.tightest
    right = max(data.thresholds)
    if tightest is None or tightest > data.thresholds[0]:
        words = {"text": "no plan", "font": {"size": 12, "color": theme.GREY}}
        shade = {"fillcolor": theme.GREY, "opacity": 0.1, "line_width": 0, "layer": "below"}
        end = right if tightest is None else tightest
        figure.add_vrect(x0=0, x1=end, annotation=words, annotation_position="top left", **shade)
    figure.update_xaxes(title_text="Threshold of the CPU cost (0 ideal, 1 worst)", range=[0, 1.02 * right])
    figure.update_yaxes(title_text="Plans, nodes", type="log", dtick=1, exponentformat="none", tickformat=",")
    return theme.room_for_legend(figure)
