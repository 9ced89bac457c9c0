"""What can be traded: the risk that a deployment falls short against its price, and latency against capacity."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.capacity import Model
from workbench.capacity.model import MARGIN
from workbench.capacity.planning import InstanceType, IntervalPoint, cheapest, in_executors, interval_points
from workbench.dataflow import SlotProfile
from workbench.errors import WorkbenchError
from workbench.records import Measurement
from workbench.views import theme

_MARGINS = (1.0, MARGIN, 1.25)
_LEAST_RISK = 0.005
_LITTLE_RISK = 0.01
_SHOWN_RISK = 0.001
_DEPLOYMENTS = 48
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_WIDE = 4.0  # factor over the least cost from which on the axis is logarithmic
_STEPS = 4000  # slots at which the search for a safer deployment ends


@dataclass(frozen=True)
class RiskPoint:
    """One deployment: slots, their cost in a month (or slots, without prices), and the risk, a share."""

    slots: int
    cost: float
    risk: float


@dataclass(frozen=True)
class CostRisk:
    """Data of the figure; `marks` are the deployments of margins by label, `currency` None without prices."""

    finding: str
    points: tuple[RiskPoint, ...]
    marks: tuple[tuple[str, RiskPoint], ...]
    currency: str | None


def cost_risk(
    model: Model,
    rate: float,
    profile: SlotProfile,
    instance: InstanceType | None = None,
    *,
    planned: RiskPoint | None = None,
    executor_slots: int | None = None,
) -> CostRisk:
    """Follow the risk of falling short of `rate` (records/s), by the model's interval, over growing slot counts.

    They begin where the median just carries the rate and end at a risk of half a percent. The finding is about what was
    `planned`, or about the usual margin.
    """
    currency = None if instance is None else instance.currency
    memory = profile.memory_mb
    try:
        marks = [(_margin(one), model.slots_for(rate, memory, one, step=executor_slots or 1)) for one in _MARGINS]
    except WorkbenchError as error:
        return CostRisk(str(error).split(":", maxsplit=1)[0], (), (), currency)
    first = marks[0][1]
    last = max(_safest(model, rate, memory, first), *(slots for _, slots in marks))
    between = np.geomspace(first, last, _DEPLOYMENTS).astype(int).tolist()
    counts = sorted({*(in_executors(count, executor_slots) for count in between), *(n for _, n in marks)})
    risks = itertools.accumulate(model.risks(rate, memory, counts), min)  # some slots may stay idle
    costs = list(map(float, counts))
    if instance is not None:
        costs = [cheapest((instance,), count, profile, executor_slots=executor_slots).per_month for count in counts]
    points = tuple(map(RiskPoint, counts, costs, risks))
    by_slots = {point.slots: point for point in points}
    marked = tuple((label, by_slots[slots]) for label, slots in marks)
    usual = next((point for label, point in marked if label == _margin(MARGIN)), marked[0][1])
    return CostRisk(_finding(rate, points, planned or usual, currency), points, marked, currency)


def draw_cost_risk(data: CostRisk) -> go.Figure:
    """Draw risk on a logarithmic axis against cost, or slots where all cost the same; margins are marked."""
    figure = theme.figure(data.finding, 420, "Steps: probability of falling short, over what the deployment costs.")
    if not data.points:
        return theme.not_enough(figure, "the model carries the rate with no number of slots.")
    shown = [max(point.risk, _SHOWN_RISK) for point in data.points]
    priced, title = len({point.cost for point in data.points}) > 1, "Slots"
    if data.currency is not None:
        all_for = f"Slots, all for {units.number(data.points[0].cost)} {data.currency} a month"
        title = f"Cost ({data.currency} a month)" if priced else all_for
    across = [point.cost if priced else point.slots for point in data.points]
    marked = [point.cost if priced else point.slots for _, point in data.marks]
    price = f", %{{customdata[1]:,.4~r}} {theme.plain(data.currency)} a month" if data.currency else ""
    hover = f"%{{customdata[0]}} slots{price}: short with %{{y:.2~g}} %"
    middle = math.sqrt(min(across) * max(across))
    told = {"customdata": [(point.slots, point.cost) for point in data.points], "hover": hover}
    look = {"mode": "lines+markers", "line": {"color": theme.BLUE, "width": 1.5}, "look": (theme.BLUE, None, 5)}
    theme.marks(figure, "risk-curve", "deployments", across, [100 * risk for risk in shown], **look, **told)
    risks = [100 * max(point.risk, _SHOWN_RISK) for _, point in data.marks]
    told = {"customdata": [(point.slots, point.cost) for _, point in data.marks], "hover": hover}
    places = ["top right" if place < middle else "bottom left" for place in marked]
    words = {"mode": "markers+text", "text": _labels(data.marks), "textposition": places, "cliponaxis": False}
    mark = (theme.VERMILLION, "diamond", 12)
    theme.marks(figure, "risk-margins", "deployments by margin", marked, risks, look=mark, **words, **told)
    left, right = 0.96 * min(across), 1.04 * max(across)
    wide = {"type": "log", "range": [math.log10(left), math.log10(right)], **theme.log_ticks(left, right)}
    figure.update_xaxes(
        title_text=theme.plain(title),
        **(wide if right > _WIDE * left else {"range": [left, right]}),
        **({} if priced or right > _WIDE * left else theme.whole_ticks(left, right)),
    )
    low, high = math.log10(100 * min(shown)), math.log10(100 * max(shown))
    ticks = {"tickvals": _TICKS, "ticktext": ["≤ 0.1" if tick == _TICKS[0] else f"{tick:g}" for tick in _TICKS]}
    figure.update_yaxes(title_text="Risk of falling short (%)", type="log", range=[low - 0.35, high + 0.25], **ticks)
    return theme.room_for_legend(figure)


def _margin(margin: float) -> str:
    return f"margin of {units.share(round(margin - 1, 4))}"


def _labels(marks: Sequence[tuple[str, RiskPoint]]) -> list[str]:
    """Return one label for all margins that lead to one deployment, at the first of them."""
    meeting: dict[int, list[str]] = {}
    for label, point in marks:
        meeting.setdefault(point.slots, []).append(label.removeprefix("margin of "))
    return [
        f"margin of {' and '.join(meeting.pop(point.slots))}: {units.some(point.slots, 'slot')}"
        if point.slots in meeting
        else ""
        for _, point in marks
    ]


def _safest(model: Model, rate: float, memory: float, first: int) -> int:
    """Slots at the lowest risk shown, or as many as are reasonable."""
    most = max(_STEPS, 4 * first)
    (least,) = model.risks(rate, memory, [most])
    for risk in (_LEAST_RISK, 0.01, 0.02, 0.05, 0.1, 0.2):
        if risk < least:  # to find that no number of slots has it takes seconds
            continue
        try:
            slots = model.slots_for(rate, memory, 1.0, risk=risk)
        except WorkbenchError:
            continue
        if slots <= most:
            return slots
    return 2 * first


def _finding(rate: float, points: Sequence[RiskPoint], planned: RiskPoint, currency: str | None) -> str:
    def price(point: RiskPoint) -> str:
        return f"{units.number(point.cost)} {currency} a month"

    slots = units.some(planned.slots, "slot")
    deployed = f"{slots} for {price(planned)}" if currency else slots
    text = (
        f"The plan for {units.rate(rate)}, {deployed}, falls short with a probability of {units.chance(planned.risk)}"
    )
    if planned.risk <= _LITTLE_RISK:
        return text
    safe = next((point for point in points if point.risk <= _LITTLE_RISK and point.slots > planned.slots), None)
    if safe is None:
        return f"{text}; no deployment shown brings that to 1 %"
    more = units.some(safe.slots, "slot")
    return f"{text}; to bring that to 1 %, " + (f"pay {price(safe)} ({more})" if currency else f"take {more}")


def _deployments(measurements: Sequence[Measurement]) -> list[tuple[str, tuple[IntervalPoint, ...]]]:
    """Group measurements of one query by slots and profile; leave out those that sustained no rate."""
    groups: dict[str, list[Measurement]] = {}
    for run in measurements:
        slots = units.some(run.budget.slots, "slot")
        label = f"{slots} of {units.number(run.budget.profile.cpus)} cores, {run.budget.profile.memory_mb:,} MB"
        groups.setdefault(label, []).append(run)
    found = ((label, interval_points(runs)) for label, runs in groups.items())
    return [(label, points) for label, points in found if points]


def trigger_intervals(measurements: Sequence[Measurement]) -> str:
    """Describe how capacity and latency grow from the shortest to the longest interval of the widest deployment."""
    deployments = _deployments(measurements)
    widest = max(deployments, key=lambda one: one[1][-1].interval_s / one[1][0].interval_s, default=None)
    if widest is None:
        return "No trigger interval was measured"
    query, (_, points) = measurements[0].query, widest
    first, last = points[0], points[-1]
    if first.interval_s == last.interval_s:
        return f"{query} was measured at one trigger interval only, {units.seconds(first.interval_s)}"
    more, waits = last.rate / first.rate, last.mean_latency_s / first.mean_latency_s
    return (
        f"From {units.seconds(first.interval_s)} to {units.seconds(last.interval_s)} the capacity of {query} grows "
        f"{units.number(more, 2)} times, from {units.rate(first.rate)} to {units.rate(last.rate)}, and the latency "
        f"{units.number(waits, 2)} times"
    )


def draw_trigger_intervals(measurements: Sequence[Measurement]) -> go.Figure:
    """Draw capacity over the interval on the left, over the mean latency on the right, by deployment."""
    deployments = _deployments(measurements)
    shows = "Left: capacity over the trigger interval. Right: capacity over the mean latency."
    figure = theme.figure(trigger_intervals(measurements), 400, shows)
    if not deployments:
        return theme.not_enough(figure, "no interval sustained a rate.")
    panels = make_subplots(cols=2, shared_yaxes=True, horizontal_spacing=0.05, figure=figure)
    for number, (label, points) in enumerate(deployments):
        colour = theme.SEQUENCE[number % len(theme.SEQUENCE)]
        symbol = ("circle", "square", "diamond", "triangle-up", "star")[number % 5]
        above = [max(0.0, point.high - point.rate) if isfinite(point.high) else 0.0 for point in points]
        below = [max(0.0, point.rate - point.low) for point in points]
        error = {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "thickness": 1.2}
        times = [(point.interval_s, point.mean_latency_s) for point in points]
        told = {"customdata": [list(map(units.seconds, pair)) for pair in times], "legendgroup": label}
        look = {"mode": "lines+markers", "line": {"color": colour}, "look": (colour, symbol, 9), "error_y": error}
        hover = "interval %{customdata[0]}, latency %{customdata[1]}: %{y:.4~s} records/s"
        for column, x in enumerate(zip(*times, strict=True), start=1):
            uid, where = f"interval-{number}-{column}", {"showlegend": column == 1, "row": 1, "col": column}
            rates = [point.rate for point in points]
            theme.marks(panels, uid, label, x, rates, hover=hover, **told, **look, **where)
    every = sorted({point.interval_s for _, points in deployments for point in points})
    ticks = {"tickvals": every, "ticktext": [f"{value:g}" for value in every]}
    panels.update_xaxes(title_text="Trigger interval (s)", type="log", **ticks, row=1, col=1)
    panels.update_xaxes(title_text="Mean latency of a record (s)", rangemode="tozero", row=1, col=2)
    panels.update_yaxes(rangemode="tozero", tickformat="~s")
    panels.update_yaxes(title_text="Capacity (records/s)", row=1, col=1)
    return theme.room_for_legend(panels)
