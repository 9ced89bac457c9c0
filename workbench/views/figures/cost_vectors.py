"""Cost vectors of plans as parallel coordinates and as a scatter; the points' ``customdata`` is the plan's number."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from workbench import units
from workbench.placement import DIMENSIONS, CostVector, Plan
from workbench.views import theme

COST_NAMES = {"cpu": "CPU cost", "io": "State access cost", "net": "Network cost"}
_NAMES = {"cpu": "CPU", "io": "state access", "net": "network"}
_SAME = 1e-9
_SHOWN = 400


Points = Sequence[tuple[int, CostVector]]
"""Numbers of plans in the sequence they came from, and their costs."""


@dataclass(frozen=True)
class CostVectors:
    """Data of the figures."""

    finding: str
    points: Points  # in the given order; of too many a sample, with the front and the chosen one
    front: frozenset[int]  # numbers of the plans that no other dominates
    chosen: int | None  # number of the chosen plan; None without plans
    thresholds: CostVector  # inf where off
    axes: tuple[str, str]  # of the scatter: those in which the plans have most different costs
    trade: str  # exchange of the two costs on the front: the finding of the scatter


def cost_vectors(
    plans: Sequence[Plan],
    *,
    chosen: int = 0,
    thresholds: CostVector | None = None,
    axes: tuple[str, str] | None = None,
) -> CostVectors:
    """Collect the cost vectors of `plans`; `SearchResult.pareto` comes best first, so 0 is its best plan."""
    thresholds = thresholds or CostVector()
    if not plans:
        none = "No plan meets the thresholds"
        return CostVectors(none, (), frozenset(), None, thresholds, axes or ("cpu", "net"), none)
    costs = [tuple(plan.cost) for plan in plans]
    front = _front(costs)
    kept = sorted({*front, chosen, *range(0, len(plans), -(-len(plans) // _SHOWN))})
    points = tuple((number, plans[number].cost) for number in kept)
    values = [len({round(value, 9) for value in column}) for column in zip(*costs, strict=True)]
    first, second = sorted(sorted(range(3), key=lambda place: -values[place])[:2])
    axes = axes or (DIMENSIONS[first], DIMENSIONS[second])
    finding, trade = _finding(plans, chosen, len(front)), _trade([plans[n].cost for n in sorted(front)], axes)
    return CostVectors(finding, points, front, chosen, thresholds, axes, trade)


def draw_cost_vectors(data: CostVectors) -> go.Figure:
    """Draw one line per plan over the three costs: parallel coordinates."""
    shows = "Parallel coordinates: one line per plan over its CPU, state access and network cost."
    figure = theme.figure(data.finding, 400, shows)
    if not data.points:
        return theme.not_enough(figure, "there are no plans; loosen the thresholds.")
    looks = (("#A8A8A8", 1), (theme.BLUE, 1.5), (theme.VERMILLION, 3.5))
    for (uid, name, points, symbol), (colour, width) in zip(_groups(data), looks, strict=True):
        x, y = theme.broken(list(zip(COST_NAMES.values(), cost, strict=True)) for _, cost in points)
        numbers = [one for number, _ in points for one in (*[number] * 3, None)]
        told = {"customdata": numbers, "hover": "plan %{customdata}: %{x} %{y:.3f}"}
        line = {"look": (colour, symbol, 9 if width > 2 else 6), "line": {"color": colour, "width": width}}
        shown = {"mode": "lines+markers", "cliponaxis": False, "showlegend": bool(points)}
        theme.marks(figure, f"vectors-{uid}", name, x, y, **told, **line, **shown)
    limits = [limit if limit <= 1 else None for limit in data.thresholds]
    words, known = list(COST_NAMES.values()), any(limit is not None for limit in limits)
    look = {"look": (theme.BLACK, "line-ew-open", 46), "marker": {"line": {"width": 2.5}}, "showlegend": known}
    theme.marks(figure, "vectors-thresholds", "threshold", words, limits, hover="%{x}: at most %{y:.3f}", **look)
    short = [word.removesuffix(" cost") for word in words]  # the other axis names them
    figure.update_xaxes(type="category", categoryarray=words, range=[-0.35, 2.35])
    figure.update_xaxes(tickvals=words, ticktext=short, tickangle=0)
    figure.update_yaxes(title_text="Cost (1: worst)", range=[-0.02, _top(data)])
    return theme.room_for_legend(figure)


def draw_pareto(data: CostVectors) -> go.Figure:
    """Draw two costs of every plan against each other, with the thresholds as lines."""
    across, up = data.axes
    figure = theme.figure(data.trade, 440, f"Scatter of plans: {COST_NAMES[across]} across, {COST_NAMES[up]} up.")
    if not data.points:
        return theme.not_enough(figure, "there are no plans; loosen the thresholds.")
    looks = ((theme.GREY, 8), (theme.BLUE, 9), (theme.VERMILLION, 15))
    for (uid, name, points, symbol), (colour, size) in zip(_groups(data), looks, strict=True):
        x, y = ([getattr(cost, name) for _, cost in points] for name in data.axes)
        said = [f"plan {number}<br>{cost_words(cost)}" for number, cost in points]
        told = {"customdata": [number for number, _ in points], "hovertext": said}
        look = {"look": (colour, symbol, size), "hover": "%{hovertext}", "cliponaxis": False}
        theme.marks(figure, f"pareto-{uid}", name, x, y, showlegend=bool(points), **told, **look)
    tops = [_top(data, name) for name in data.axes]
    for axis, name, add in (("x", across, figure.add_vline), ("y", up, figure.add_hline)):
        limit = getattr(data.thresholds, name)
        if limit <= 1:
            add(
                **{axis: limit},
                line={"color": theme.BLACK, "width": 1, "dash": "dash"},
                annotation={"text": f"threshold {units.number(limit)}", "font": {"size": 12}},
                annotation_position="top right" if axis == "x" and limit < tops[0] / 2 else "top left",
            )
    figure.update_xaxes(title_text=f"{COST_NAMES[across]} (0 ideal, 1 worst)", range=[-0.03 * tops[0], tops[0]])
    figure.update_yaxes(title_text=COST_NAMES[up], range=[-0.03 * tops[1], tops[1]])
    return theme.room_for_legend(figure)


def cost_words(cost: CostVector) -> str:
    """Write a cost vector."""
    return f"CPU {cost.cpu:.3f}, state access {cost.io:.3f}, network {cost.net:.3f}"


def _groups(data: CostVectors) -> tuple[tuple[str, str, Points, str], ...]:
    """Return plans off the front, on it, and the chosen one, with their names and shapes."""
    off, on = ([point for point in data.points if (point[0] in data.front) == front] for front in (False, True))
    name = "chosen" if data.chosen is None else f"chosen: plan {data.chosen}"
    chosen = ("chosen", name, [point for point in data.points if point[0] == data.chosen], "diamond")
    return ("others", "other plans", off, "circle-open"), ("front", "on the Pareto front", on, "circle"), chosen


def _top(data: CostVectors, dimension: str | None = None) -> float:
    """Return the end of an axis: a little above the highest cost or threshold."""
    names = DIMENSIONS if dimension is None else (dimension,)
    shown = [cost for _, cost in data.points] + [CostVector(*(v if v <= 1 else 0.0 for v in data.thresholds))]
    return 1.08 * max(0.05, *(float(getattr(cost, name)) for cost in shown for name in names))


def _front(costs: Sequence[tuple[float, ...]]) -> frozenset[int]:
    """Numbers of the plans that no other dominates; of equal ones the first."""
    front: set[int] = set()
    for number in sorted(range(len(costs)), key=lambda place: (costs[place], place)):
        cost = costs[number]
        if not any(all(a <= b + _SAME for a, b in zip(costs[other], cost, strict=True)) for other in front):
            front.add(number)
    return frozenset(front)


def _finding(plans: Sequence[Plan], chosen: int, front: int) -> str:
    cost = plans[chosen].cost
    worst = max(DIMENSIONS, key=lambda name: getattr(cost, name))
    if len(plans) == 1:
        return f"The only plan is {units.share(cost.worst)} of the way from ideal to worst in {_NAMES[worst]}"
    be = "is" if front == 1 else "are"
    among = (
        f"None of {units.count(len(plans))} plans is better than another in every cost"
        if front == len(plans)
        else f"{units.count(front)} of {units.count(len(plans))} plans {be} on the Pareto front"
    )
    if cost.worst < _SAME:
        return f"{among}; the chosen one is ideally balanced in every dimension"
    return f"{among}; the chosen one is furthest from ideal in {_NAMES[worst]}, by {units.share(cost.worst)}"


def _trade(front: Sequence[CostVector], axes: tuple[str, str]) -> str:
    """Describe what the front's ends in the two dimensions cost in each other."""
    one, other = axes
    pairs = [(float(getattr(cost, one)), float(getattr(cost, other))) for cost in front]
    left, low = min(pairs), min(pairs, key=lambda pair: pair[::-1])
    if left == low:
        return f"One plan has the least {_NAMES[one]} cost, {units.number(left[0])}, and the least {_NAMES[other]} cost"
    return (
        f"Lowering the {_NAMES[one]} cost from {units.number(low[0])} to {units.number(left[0])} raises the "
        f"{_NAMES[other]} cost from {units.number(low[1])} to {units.number(left[1])}"
    )
