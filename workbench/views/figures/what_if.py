"""A what-if answer on the capacity curve: the requested rate, what it takes, and what a pinned scenario took."""

import math
from collections.abc import MutableMapping
from dataclasses import dataclass, field, replace

import numpy as np
import plotly.graph_objects as go

from workbench.capacity import Exploration
from workbench.capacity.planning import Answer, IntervalSpeedup, on_cores
from workbench.checks import SLACK
from workbench.measuring import LEVEL
from workbench.views import theme
from workbench.views.figures import traces
from workbench.views.figures.capacity import (
    Capacity,
    Curve,
    capacity_of,
    draw_capacity,
    measured_runs,
    origin_of,
)


@dataclass(frozen=True)
class Curves:
    """The capacity of an exploration at the requested memories and cores; kept, since the curves take long."""

    exploration: Exploration
    kept: MutableMapping[tuple[int, int, float, float, float], Capacity] = field(default_factory=dict)

    def at(self, answer: Answer, finding: str) -> Capacity:
        """Return the data of the figure for `answer`."""
        plan, memory, interval_s = answer.plan, answer.question.memory_mb, answer.plan.budget.interval_s
        model, gain = on_cores(self.exploration, plan.cores, interval_s, answer.question.more_s)
        room = max(int(model.slots_[-1]), 2 ** math.ceil(math.log2(answer.workers * answer.question.worker_slots)))
        key = (memory, room, interval_s, answer.question.more_s, gain.ratio)
        if key not in self.kept:
            runs = measured_runs(self.exploration)
            origin = origin_of(self.exploration) + " on other cores" * plan.on_other_cores
            found = capacity_of(model, runs, (), [memory], "", reach=room, origin=origin)
            self.kept[key] = replace(found, curves=tuple(_times(curve, gain) for curve in found.curves))
        return replace(self.kept[key], targets=((plan.budget.slots, plan.rate, memory),), finding=finding)


def _times(curve: Curve, gain: IntervalSpeedup) -> Curve:
    """Multiply a curve by `gain`; their uncertainties add up as independent ones."""
    if gain == IntervalSpeedup():
        return curve
    rate = gain.ratio * np.maximum(curve.rate, SLACK)

    def end(line: tuple[float, ...], tail: float) -> tuple[float, ...]:
        off = np.hypot(np.log(np.maximum(line, SLACK) * gain.ratio / rate), np.log(gain.quantile(tail) / gain.ratio))
        return tuple((rate * np.exp(math.copysign(1, tail - 0.5) * off)).tolist())

    return replace(
        curve, rate=tuple(rate.tolist()), low=end(curve.low, (1 - LEVEL) / 2), high=end(curve.high, (1 + LEVEL) / 2)
    )


def draw_what_if(data: Capacity, answer: Answer, pinned: Answer | None = None) -> go.Figure:
    """Draw the capacity at the measured skew, the requested one, that of the workers, and that after losing one."""
    figure = draw_capacity(data)
    question = answer.question
    skewed = 1 + question.more_skew
    needed = question.rate * answer.plan.margin * skewed
    across = [data.curves[0].at[0] if data.far else 0, data.last]
    look = {"look": (theme.BLACK, "dot", 1), "hover": "rate, margin and skew ask for %{y:.4~s} records/s"}
    traces.lines(figure, "what-if-needed", "capacity it must have", across, [needed, needed], **look)
    shape = question.worker_slots
    marks = [
        ("paid", "all slots of the workers", answer.workers * shape, answer.paid_rate, theme.GREEN, "circle-open"),
        ("lost", "with one worker lost", (answer.workers - 1) * shape, answer.lost_rate, theme.PURPLE, "square-open"),
    ]
    if pinned is not None:
        plan = pinned.plan
        marks.append(("pinned", "pinned", plan.budget.slots, plan.rate, theme.BLACK, "star-open"))
    for uid, name, slots, rate, colour, symbol in marks:
        scale = skewed if uid != "pinned" else 1.0
        x, y = ([slots], [rate * scale]) if rate else ([], [])
        mark, hover = (colour, symbol, 13), f"{name}, %{{x}} slots: %{{y:.4~s}} records/s"
        wide = {"line": {"width": 2}}
        traces.marks(figure, f"what-if-{uid}", name, x, y, look=mark, hover=hover, marker=wide)
    if question.more_skew:
        figure.update_layout(yaxis_title_text="Capacity at the skew measured (records/s)")
    return theme.room_for_legend(figure)
