"""Shard balance: the work of every task of an executor before and after shards move."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from workbench import units
from workbench.scaling import ShardPlan
from workbench.views import theme


@dataclass(frozen=True)
class ShardBalance:
    """What the figure shows: loads of the tasks as multiples of the mean, and shards per task, before and after."""

    finding: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    shards_before: tuple[int, ...]
    shards_after: tuple[int, ...]
    threshold: float


def shard_balance(
    loads: Sequence[float], assignment: Sequence[int], plan: ShardPlan, tasks: int, threshold: float = 1.2
) -> ShardBalance:
    """Add up the loads of the shards of every task; takes the arguments and the result of `rebalance_shards`."""
    if not len(loads) or sum(loads) <= 0:
        return ShardBalance("The shards have no load", (), (), (), (), threshold)
    mean = sum(loads) / tasks

    def per_task(owners: Sequence[int]) -> tuple[tuple[float, ...], tuple[int, ...]]:
        sums = np.bincount(np.asarray(owners), weights=np.asarray(loads, dtype=float), minlength=tasks) / mean
        return tuple(sums.tolist()), tuple(np.bincount(np.asarray(owners), minlength=tasks).tolist())

    before, shards_before = per_task(assignment)
    after, shards_after = per_task(plan.assignment)
    if not plan.moves:
        finding = f"No shard needs to move: the fullest task has {units.number(max(before))} times the mean load"
    else:
        finding = (
            f"Moving {units.count(len(plan.moves))} of {units.count(len(loads))} shards lowers the fullest task from "
            f"{units.number(max(before))} to {units.number(max(after))} times the mean load"
        )
    return ShardBalance(finding, before, after, shards_before, shards_after, threshold)


def draw_shard_balance(data: ShardBalance) -> go.Figure:
    """Draw two bars per task, the mean and the threshold."""
    figure = theme.figure(data.finding, 400, "Bars: load of every task before and after, as a multiple of the mean.")
    if not data.before:
        return theme.not_enough(figure, "the shards have no load.")
    tasks = list(range(len(data.before)))
    series = (
        ("shards-before", "before", data.before, data.shards_before, "#B9B9B9", "/"),
        ("shards-after", "after", data.after, data.shards_after, theme.BLUE, ""),
    )
    hatching = {"fgcolor": theme.GREY, "size": 5, "fillmode": "overlay"}
    for uid, name, loads, shards, colour, shape in series:
        hover = "task %{x} " + name + ": %{y:.3f} times the mean, %{customdata} shards<extra></extra>"
        look = {"marker": {"color": colour, "pattern": {**hatching, "shape": shape}}, "hovertemplate": hover}
        figure.add_bar(uid=uid, name=name, x=tasks, y=loads, customdata=shards, **look)
    beside = {"font": {"size": 12}, "x": 1, "xanchor": "left", "yanchor": "middle", "xshift": 4}
    limit = f"threshold {units.number(data.threshold)}"
    for level, word, dash in ((1.0, "mean", "dot"), (data.threshold, limit, "dash")):
        line = {"color": theme.BLACK, "width": 1, "dash": dash}
        figure.add_hline(y=level, line=line, annotation={"text": word, **beside})
    ticks = {"tickformat": ",d", "dtick": 1 if len(tasks) <= 24 else None, "showgrid": False}
    figure.update_xaxes(title_text="Task", range=[-0.6, len(tasks) - 0.4], **ticks)
    figure.update_yaxes(title_text="Load (x mean)", rangemode="tozero")
    figure.update_layout(bargap=0.25, bargroupgap=0.05, margin_r=96)
    return theme.room_for_legend(figure)
