"""How slots are used: shares of slot time by operator, or the stages of a micro-batch and their partitions."""

import math
from dataclasses import dataclass, replace

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.capacity import Allocation, BatchLayout
from workbench.capacity.explore import Configured
from workbench.views import theme
from workbench.views.figures import traces

_CUT = 2.0  # multiple of the source rate at which longer bars are cut


@dataclass(frozen=True)
class SlotShares:
    """What the figure of an allocation shows: tasks by operator, and the source rate they sustain (None: any rate)."""

    finding: str
    operators: tuple[str, ...]
    tasks: tuple[int, ...]
    capacities: tuple[float | None, ...]
    source_rate: float | None


@dataclass(frozen=True)
class StageLayout:
    """What the figure of a layout shows: by stage, its partitions, and whether it shares the frozen count."""

    finding: str
    stages: tuple[str, ...]
    partitions: tuple[int, ...]
    stateful: tuple[bool, ...]


def slot_shares(allocation: Allocation | None, capacity: float | None = None) -> SlotShares:
    """Collect an allocation; None for an engine without tasks per operator.

    `capacity` is what the runs predict for it, records/s, if that is known.
    """
    if allocation is None or not allocation.tasks:
        return SlotShares("No slots were assigned to operators", (), (), (), None)
    operators = tuple(allocation.tasks)
    known = (allocation.capacities.get(name, math.inf) for name in operators)
    capacities = tuple(rate if rate < math.inf else None for rate in known)
    total = sum(allocation.tasks.values())
    largest = max(operators, key=lambda name: allocation.tasks[name])
    part = units.share(allocation.tasks[largest] / total)
    finding = f"'{largest}' takes {part} of {units.some(total, 'slot')}"
    rate = None if allocation.bottleneck is None else allocation.source_rate
    if rate is not None:
        finding += (
            f"; if tasks did not disturb each other, '{allocation.bottleneck}' would be the first to fill up, at "
            f"{units.rate(rate)}"
        )
        if capacity is not None and capacity < rate:
            finding += "; the measured capacity is lower"
    return SlotShares(finding, operators, tuple(allocation.tasks.values()), capacities, rate)


def draw_slot_shares(data: SlotShares) -> go.Figure:
    """Draw tasks per operator, and the rate that they sustain with the source rate as a line."""
    figure = theme.figure(
        data.finding, 180 + 34 * len(data.operators), "Bars per operator: tasks, and the source rate that they sustain."
    )
    if not data.operators:
        return theme.not_enough(figure, "no slots were assigned to operators.")
    panels = make_subplots(cols=2, shared_yaxes=True, horizontal_spacing=0.05, figure=figure)
    names = [theme.plain(name) for name in data.operators]
    total = sum(data.tasks)
    most = (
        _CUT * data.source_rate if data.source_rate else max((c for c in data.capacities if c is not None), default=1.0)
    )
    columns = (
        ("shares-tasks", "Slots (tasks at once)", data.tasks, [f"{n} ({units.share(n / total)})" for n in data.tasks]),
        (
            "shares-capacities",
            "Sustains (source records/s;<br>long bars are cut)",
            [most if value is None else min(value, most) for value in data.capacities],
            ["any rate" if value is None else units.scaled(value, "") for value in data.capacities],
        ),
    )
    for column, (uid, title, values, texts) in enumerate(columns, start=1):
        look = {"marker": {"color": theme.BLUE}, "hover": "%{y}: %{text}", "row": 1, "col": column}
        traces.bars(panels, uid, title, values, texts, y=names, **look)
        top = max(values) or 1.0
        ticks = {"tickformat": "~s", "nticks": 5} if column > 1 else theme.whole_ticks(0, 1.5 * top)
        panels.update_xaxes(title_text=title, range=[0, 1.5 * top], **ticks, row=1, col=column)
    if data.source_rate is not None:
        panels.add_vline(
            x=data.source_rate, line={"color": theme.BLACK, "width": 1, "dash": "dash"}, row=1, col=2,
        )  # fmt: skip
    panels.update_yaxes(autorange="reversed", ticks="", showgrid=False, type="category")
    panels.update_layout(bargap=0.35)
    return theme.room_for_legend(panels)


def stage_layout(layout: BatchLayout | None, *, timed: bool = True) -> StageLayout:
    """Collect a micro-batch layout; None if the costs of the stages were not measured.

    The finding leaves out how long batches take where that is not `timed` by the layout: what a batch is made of gives
    it more exactly.
    """
    if layout is None or not layout.stages:
        return StageLayout("There is no layout: the costs of the stages are unknown", (), (), ())
    slots = tuple(sorted(layout.batch_s))
    frozen = layout.stateful_partitions
    worst = max(slots, key=lambda count: layout.batch_s[count])
    late = f"late at {len(layout.late)} of {len(slots)} slot counts" if layout.late else "within the interval"
    state = (
        "No state, so all partitions may change later"
        if frozen is None
        else f"{units.some(frozen, 'state partition')}, frozen by the checkpoint"
    )
    longest = f"batches take at most {units.seconds(layout.batch_s[worst])}, " if timed else ""
    finding = f"{state}; {longest}{late}"
    return StageLayout(
        finding,
        tuple(stage.name for stage in layout.stages),
        tuple(layout.partitions[stage.name] for stage in layout.stages),
        tuple(stage.stateful for stage in layout.stages),
    )


def draw_stage_layout(data: StageLayout) -> go.Figure:
    """Draw partitions per stage."""
    figure = theme.figure(data.finding, 150 + 46 * len(data.stages), "Bars: partitions per stage.")
    if not data.stages:
        return theme.not_enough(figure, "the costs of the stages are unknown.")
    traces.bars(
        figure,
        "layout-partitions",
        "partitions",
        data.partitions,
        [f"{count:,}{', frozen' * kept}" for count, kept in zip(data.partitions, data.stateful, strict=True)],
        y=[theme.plain(name) for name in data.stages],
        marker={"color": [theme.VERMILLION if kept else theme.BLUE for kept in data.stateful]},
        hover="%{y}: %{x:,} partitions",
    )
    most = 1.3 * max(data.partitions)
    figure.update_xaxes(title_text="Partitions", range=[0, most], **theme.whole_ticks(0, most))
    figure.update_yaxes(autorange="reversed", ticks="", showgrid=False, type="category")
    figure.update_layout(bargap=0.35)
    return theme.room_for_legend(figure)


def draw_configured(asked: Configured) -> go.Figure:
    """Draw how a budget is divided: tasks by operator, or partitions by stage; without BIDS2 say what it waits for."""
    match asked.layout:
        case Allocation():
            return draw_slot_shares(replace(slot_shares(asked.layout), finding=asked.sentence))
        case BatchLayout():
            return draw_stage_layout(replace(stage_layout(asked.layout), finding=asked.sentence))
    return theme.not_enough(theme.figure(asked.sentence), "no run has shown yet what a task costs.")
