"""How slots are used: shares of slot time by operator, or the stages of a micro-batch and their partitions."""

from collections.abc import Mapping
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.capacity import Allocation, BatchLayout
from workbench.views import theme

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
    """What the figure of a layout shows.

    Parameters
    ----------
    stages, partitions
        Labels in order, and partitions of each.
    stateful
        Whether the stage shares the frozen count.
    slots
        Slot counts, ascending.
    seconds
        Seconds of a batch by slot count.
    best
        Seconds of a batch with a layout made for that slot count alone.
    """

    finding: str
    stages: tuple[str, ...]
    partitions: tuple[int, ...]
    stateful: tuple[bool, ...]
    slots: tuple[int, ...]
    seconds: tuple[float, ...]
    best: tuple[float, ...]
    interval_s: float


def slot_shares(allocation: Allocation | None, capacity: float | None = None) -> SlotShares:
    """Collect an allocation; None for an engine without tasks per operator.

    `capacity` is what the runs predict for it, records/s, if that is known.
    """
    if allocation is None or not allocation.tasks:
        return SlotShares("No slots were assigned to operators", (), (), (), None)
    operators = tuple(allocation.tasks)
    capacities = tuple(_finite(allocation.capacities, name) for name in operators)
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
            "Sustains (records/s of the source; long bars are cut)",
            [most if value is None else min(value, most) for value in data.capacities],
            ["any rate" if value is None else units.scaled(value, "") for value in data.capacities],
        ),
    )
    for column, (uid, title, values, texts) in enumerate(columns, start=1):
        panels.add_bar(
            uid=uid,
            name=title,
            x=values,
            y=names,
            orientation="h",
            text=texts,
            textposition="outside",
            cliponaxis=False,
            marker={"color": theme.BLUE},
            hovertemplate="%{y}: %{text}<extra></extra>",
            showlegend=False,
            row=1,
            col=column,
        )
        top = max(values) or 1.0
        ticks = {"tickformat": "~s", "nticks": 5} if column > 1 else theme.whole_ticks(0, 1.3 * top)
        panels.update_xaxes(title_text=title, range=[0, 1.3 * top], **ticks, row=1, col=column)
    if data.source_rate is not None:
        panels.add_vline(
            x=data.source_rate, line={"color": theme.BLACK, "width": 1, "dash": "dash"}, row=1, col=2,
        )  # fmt: skip
    panels.update_yaxes(autorange="reversed", ticks="", showgrid=False, type="category")
    panels.update_layout(bargap=0.35)
    theme.room_for_legend(panels)
    return panels


def stage_layout(layout: BatchLayout | None, *, timed: bool = True) -> StageLayout:
    """Collect a micro-batch layout; None if the costs of the stages were not measured.

    The finding leaves out how long batches take where that is not `timed` by the layout: what a batch is made of gives
    it more exactly.
    """
    if layout is None or not layout.stages:
        return StageLayout("There is no layout: the costs of the stages are unknown", (), (), (), (), (), (), 0.0)
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
        slots,
        tuple(layout.batch_s[count] for count in slots),
        tuple(layout.best_s[count] for count in slots),
        layout.interval_s,
    )


def draw_stage_layout(data: StageLayout) -> go.Figure:
    """Draw partitions per stage on the left; for several slot counts, draw the batch time over them on the right."""
    several = len(data.slots) > 1
    figure = theme.figure(
        data.finding,
        max(320, 200 + 34 * len(data.stages)) if several else 150 + 46 * len(data.stages),
        "Left: partitions per stage. Right: batch time over slots." if several else "Bars: partitions per stage.",
    )
    if not data.stages:
        return theme.not_enough(figure, "the costs of the stages are unknown.")
    panels = make_subplots(cols=1 + several, horizontal_spacing=0.12, figure=figure)
    panels.add_bar(
        uid="layout-partitions",
        name="partitions",
        x=data.partitions,
        y=[theme.plain(name) for name in data.stages],
        orientation="h",
        text=[
            f"{count:,}, frozen" if kept else f"{count:,}"
            for count, kept in zip(data.partitions, data.stateful, strict=True)
        ],
        textposition="outside",
        cliponaxis=False,
        marker={"color": [theme.VERMILLION if kept else theme.BLUE for kept in data.stateful]},
        hovertemplate="%{y}: %{x:,} partitions<extra></extra>",
        showlegend=False,
        row=1,
        col=1,
    )
    panels.update_xaxes(title_text="Partitions", range=[0, 1.3 * max(data.partitions)], tickformat=",d", row=1, col=1)
    panels.update_yaxes(autorange="reversed", ticks="", showgrid=False, type="category", row=1, col=1)
    if several:
        _batch_times(panels, data)
    else:
        panels.update_layout(bargap=0.35)
    theme.room_for_legend(panels)
    return panels


def _batch_times(panels: go.Figure, data: StageLayout) -> None:
    """Draw the batch time over the slot counts, and with a layout made for each of them alone."""
    series = (
        ("layout-batch", "with this layout", data.seconds, theme.BLUE, "circle", "solid"),
        ("layout-best", "laid out for each slot count alone", data.best, theme.GREEN, "diamond-open", "dot"),
    )
    for uid, name, values, colour, symbol, dash in series:
        panels.add_scatter(
            uid=uid,
            name=name,
            x=data.slots,
            y=values,
            mode="lines+markers",
            line={"color": colour, "dash": dash},
            marker={"color": colour, "symbol": symbol, "size": 9},
            hovertemplate="%{x:,} slots: %{y:.3f} s<extra></extra>",
            row=1,
            col=2,
        )
    panels.add_hline(
        y=data.interval_s,
        line={"color": theme.BLACK, "width": 1, "dash": "dash"},
        annotation={"text": f"interval {units.seconds(data.interval_s)}", "font": {"size": 12}},
        annotation_position="bottom right",
        row=1,
        col=2,
    )
    panels.update_xaxes(title_text="Slots", tickformat=",d", dtick=1 if len(data.slots) <= 12 else None, row=1, col=2)
    panels.update_yaxes(title_text="Batch time (s)", range=[0, 1.2 * max(*data.seconds, data.interval_s)], row=1, col=2)


def _finite(capacities: Mapping[str, float], name: str) -> float | None:
    value = capacities.get(name, float("inf"))
    return value if value < float("inf") else None
