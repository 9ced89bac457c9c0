"""How slots are used: by operators at the maximum rate, by those of a plan, or by the stages of a micro-batch."""

import math

import plotly.graph_objects as go

from workbench import units
from workbench.capacity import Allocation, BatchLayout
from workbench.capacity.explore import Configured
from workbench.metrics import Observation, OperatorMetrics
from workbench.views import theme


def _own(observation: Observation) -> list[OperatorMetrics]:
    return [one for one in observation.operators if one.kind != "source"]  # the source, which is shown apart


def _slot_time(one: OperatorMetrics) -> float:
    return one.busyness * one.tasks


def busiest_operator(observation: Observation) -> OperatorMetrics | None:
    """Find the operator with the most slot time; None where only the source was observed."""
    return max(_own(observation), key=_slot_time, default=None)


def operators(query: str, observation: Observation) -> str:
    """Name the operator that takes most of the slot time at the maximum."""
    busiest = busiest_operator(observation)
    if busiest is None:
        return f"{query} has no operators apart from its source"
    total = sum(map(_slot_time, _own(observation)))
    part = units.share(_slot_time(busiest) / total) if total else "none"
    return f"Operator '{busiest.operator}' takes {part} of the slot time that {query} uses at its maximum rate"


def draw_operators(observation: Observation, finding: str) -> go.Figure:
    """Draw three bars per operator, most upstream first: busyness, true processing rate, CPU."""
    own, elapsed = _own(observation), observation.elapsed_s
    shows = "Bars per operator: busyness, true processing rate, CPU used."
    figure = theme.figure(finding, 170 + 42 * len(own), shows)
    rates = [metrics.true_processing_rate for metrics in own]
    words = ["no records" if rate is None else units.scaled(rate, "") for rate in rates]
    busy = [100 * metrics.busyness for metrics in own]
    cores = [metrics.cpu_s / elapsed if elapsed > 0 else 0.0 for metrics in own]  # CPU seconds per second
    shares, used = [units.share(metrics.busyness) for metrics in own], [units.number(one, 2) for one in cores]
    plain, short = {"tickformat": ".3~f", "nticks": 5}, {"tickformat": "~s", "nticks": 5}
    measures: tuple[theme.Measure, ...] = (
        ("operators-1", "Busyness of its tasks (%)", busy, shares, 1.28, plain),
        ("operators-2", "True rate (records/s per task)", rates, words, 1.28, short),
        ("operators-3", "CPU used (cores)", cores, used, 1.28, plain),
    )
    labels = [f"{metrics.operator} ({units.some(metrics.tasks, 'task')})" for metrics in own]
    look = {"marker": {"color": theme.BLUE}, "hover": "%{y}: %{x:.4~s}"}
    return theme.bar_panels(figure, labels, measures, 0.045, **look).update_layout(margin_t=50)


_CUT = 2.0  # multiple of the source rate at which longer bars are cut


def slot_shares(allocation: Allocation, capacity: float | None = None) -> str:
    """Name the operator with most slots, and the one that fills up first; the runs predict `capacity`, records/s."""
    total = sum(allocation.tasks.values())
    largest = max(allocation.tasks, key=lambda name: allocation.tasks[name])
    finding = f"'{largest}' takes {units.share(allocation.tasks[largest] / total)} of {units.some(total, 'slot')}"
    if allocation.bottleneck is None:
        return finding
    finding += (
        f"; if tasks did not disturb each other, '{allocation.bottleneck}' would be the first to fill up, at "
        f"{units.rate(allocation.source_rate)}"
    )
    lower = capacity is not None and capacity < allocation.source_rate
    return f"{finding}; the measured capacity is lower" if lower else finding


def draw_slot_shares(allocation: Allocation, finding: str) -> go.Figure:
    """Draw tasks per operator, and the rate that they sustain with the source rate as a line."""
    tasks = allocation.tasks
    shows = "Bars per operator: tasks, and the source rate that they sustain."
    figure = theme.figure(finding, 180 + 34 * len(tasks), shows)
    rate = None if allocation.bottleneck is None else allocation.source_rate
    capacities = [allocation.capacities.get(name, math.inf) for name in tasks]
    most = _CUT * rate if rate else max(filter(math.isfinite, capacities), default=1.0)
    total = sum(tasks.values())
    counts, cut = list(tasks.values()), [min(value, most) for value in capacities]
    parts = [f"{n} ({units.share(n / total)})" for n in counts]
    words = ["any rate" if value == math.inf else units.scaled(value, "") for value in capacities]
    title, ticks = "Sustains (source records/s;<br>long bars are cut)", {"tickformat": "~s", "nticks": 5}
    measures: tuple[theme.Measure, ...] = (
        ("shares-tasks", "Slots (tasks at once)", counts, parts, 1.5, theme.whole_ticks(0, 1.5 * max(counts))),
        ("shares-capacities", title, cut, words, 1.5, ticks),
    )
    look = {"marker": {"color": theme.BLUE}, "hover": "%{y}: %{text}"}
    panels = theme.bar_panels(figure, tasks, measures, 0.05, **look)
    if rate is not None:
        panels.add_vline(x=rate, line={"color": theme.BLACK, "width": 1, "dash": "dash"}, row=1, col=2)
    return theme.room_for_legend(panels)


def stage_layout(layout: BatchLayout, *, timed: bool = True) -> str:
    """Describe what of a micro-batch layout is frozen, and how long batches take if they are `timed` by the layout."""
    worst = max(sorted(layout.batch_s), key=lambda count: layout.batch_s[count])
    late = f"late at {len(layout.late)} of {len(layout.batch_s)} slot counts" if layout.late else "within the interval"
    frozen = layout.stateful_partitions
    state = (
        "No state, so all partitions may change later"
        if frozen is None
        else f"{units.some(frozen, 'state partition')}, frozen by the checkpoint"
    )
    longest = f"batches take at most {units.seconds(layout.batch_s[worst])}, " if timed else ""
    return f"{state}; {longest}{late}"


def draw_stage_layout(layout: BatchLayout, finding: str) -> go.Figure:
    """Draw partitions per stage."""
    stages = layout.stages
    partitions = [layout.partitions[stage.name] for stage in stages]
    figure = theme.figure(finding, 150 + 46 * len(stages), "Bars: partitions per stage.")
    words = [f"{count:,}{', frozen' * stage.stateful}" for count, stage in zip(partitions, stages, strict=True)]
    names, hover = [theme.plain(stage.name) for stage in stages], "%{y}: %{x:,} partitions"
    look = {"color": [theme.VERMILLION if stage.stateful else theme.BLUE for stage in stages]}
    theme.bars(figure, "layout-partitions", "partitions", partitions, words, y=names, marker=look, hover=hover)
    most = 1.3 * max(partitions)
    figure.update_xaxes(title_text="Partitions", range=[0, most], **theme.whole_ticks(0, most))
    figure.update_yaxes(autorange="reversed", ticks="", showgrid=False, type="category")
    figure.update_layout(bargap=0.35)
    return theme.room_for_legend(figure)


def draw_configured(asked: Configured) -> go.Figure:
    """Draw how a budget is divided: tasks by operator, or partitions by stage; without BIDS2, what it waits for."""
    match asked.layout:
        case Allocation():
            return draw_slot_shares(asked.layout, asked.sentence)
        case BatchLayout():
            return draw_stage_layout(asked.layout, asked.sentence)
    return theme.not_enough(theme.figure(asked.sentence), "no run has shown yet what a task costs.")
