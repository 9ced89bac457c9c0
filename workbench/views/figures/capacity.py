"""Capacity over slots, with the runs, the targets, and a what-if answer next to what a pinned scenario took."""

import math
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import plotly.graph_objects as go
from scipy.interpolate import PchipInterpolator

from workbench import units
from workbench.capacity import CapacityPlan, Exploration, Model
from workbench.capacity.planning import Answer, IntervalSpeedup, on_cores
from workbench.checks import SLACK
from workbench.measuring import LEVEL
from workbench.records import Measurement
from workbench.views import theme
from workbench.views.findings import beyond
from workbench.views.findings import origin as origin_word

_POINTS = 60
_KNOTS, _FINE = 9, 24  # points at which the model is evaluated, in a hurry and not; curves between are interpolated
_ROOM = 1.15
_FAR = 4.0  # factor over the most slots measured; beyond it, the runs would be a speck on linear axes
_FAR_ROOM = 1.4
_LOW = 0.1  # of the highest rate: a line below it leaves no room for text under it
_RIGHT = 0.75  # of the width: beyond it there is no room for the text of a mark on its right
_WORDS = (0.11, 0.12)  # size of a mark's text, in widths and heights of the plot
_UNDER = 0.95  # of a curve: a mark below it has room for its text under the curve
_CLOSE = 0.08  # of the height: at a smaller distance, the texts of two targets overlap
_SYMBOLS = ("circle", "square", "triangle-up", "star", "hexagon")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")

Properties = dict[str, object]


@dataclass(frozen=True)
class Curve:
    """Capacity, records/s, with its interval: over slots (`at`) at a memory in MB (`of`), or the other way round."""

    of: int
    at: tuple[float, ...]
    rate: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Capacity:
    """Data of the figure."""

    finding: str
    curves: tuple[Curve, ...]
    runs: tuple[tuple[int, int, float, bool], ...]  # memory MB, slots, records/s, fitted
    targets: tuple[tuple[int, float], ...]  # slots, records/s
    most_measured: int
    memory_curves: tuple[Curve, ...] = ()  # where more than one memory was measured
    origin: str = "measured"  # what the runs are

    @property
    def last(self) -> float:
        """Slots at which the curves end."""
        return max(curve.at[-1] for curve in self.curves)

    @property
    def far(self) -> bool:
        """Whether a target is so far beyond the runs that only logarithmic axes show both."""
        positive = all(min(curve.low) > 0 for curve in self.curves)
        return positive and max((slots for slots, _ in self.targets), default=0) > _FAR * self.most_measured


def capacity(exploration: Exploration, plans: Sequence[CapacityPlan]) -> Capacity:
    """Collect the curves at the memories of the plans, or at all measured ones if nothing was planned."""
    measured = sorted({run.budget.profile.memory_mb for run in exploration.runs})
    memories = sorted({plan.budget.profile.memory_mb for plan in plans}) or measured
    runs = measured_runs(exploration)
    targets = tuple((plan.budget.slots, plan.rate) for plan in plans)
    query = exploration.runs[0].query
    if plans:
        largest = max(plans, key=lambda plan: plan.rate)
        finding = (
            f"{query} at {units.rate(largest.rate)} needs {units.some(largest.budget.slots, 'slot')}, "
            f"{beyond(largest) or 'within what was measured'}"
        )
    else:
        finding = f"Capacity of {query} over {units.some(len(runs), 'run')}; no target could be planned"
    model, origin = exploration.model, origin_of(exploration)
    found = capacity_of(model, runs, targets, memories, finding, knots=_FINE, origin=origin)
    if len(model.memory_) == 1:
        return found
    grid = np.geomspace(float(model.memory_[0]), float(model.memory_[-1]), _POINTS // 2)
    measured = [int(slots) for slots in model.slots_]
    across = sorted({measured[0], measured[len(measured) // 2], measured[-1]})
    return replace(found, memory_curves=tuple(_predicted(model, grid, _FINE, slots=one) for one in across))


def origin_of(exploration: Exploration) -> str:
    """Name the origin of its runs: measured, simulated, recorded or observed."""
    runs = exploration.measurements
    return origin_word(runs[0].testbed_kind if runs else "").lower()


def measured_runs(exploration: Exploration) -> tuple[tuple[int, int, float, bool], ...]:
    """Collect the runs that sustained a rate, as in `Capacity`: at the middle of its bracket, as the model is."""
    return tuple(
        (run.budget.profile.memory_mb, run.budget.slots, run.estimate.middle, row in exploration.fitted)
        for row, run in enumerate(exploration.runs)
        if isinstance(run, Measurement) and run.estimate.rate
    )


def capacity_of(
    model: Model,
    runs: Sequence[tuple[int, int, float, bool]],
    targets: Sequence[tuple[int, float]],
    memories: Sequence[int],
    finding: str,
    *,
    reach: int = 0,
    knots: int = _KNOTS,
    origin: str = "measured",
) -> Capacity:
    """Collect the curves of a fitted model over slots, up to the targets, and up to `reach` slots at least.

    The model is asked at `knots` points of a curve, which takes the time. Where model and memory stay, replace targets
    and finding.
    """
    most = int(model.slots_[-1])
    last = max([most, reach, *(slots for slots, _ in targets)]) * _ROOM
    grid = np.linspace(float(model.slots_[0]), last, _POINTS)
    if last / _ROOM > _FAR * most:  # in equal ratios, or a logarithmic axis would show one straight line
        grid = np.unique(np.geomspace(float(model.slots_[0]), math.ceil(last), _POINTS).round())
    curves = tuple(_predicted(model, grid, knots, memory=one) for one in memories)
    return Capacity(finding, curves, tuple(runs), tuple(targets), most, origin=origin)


def draw_capacity(data: Capacity) -> go.Figure:
    """Draw points, curves with their intervals, target lines, and the extrapolated part shaded; memory on the right.

    Far beyond the runs, axes are logarithmic. Plain dictionaries take a quarter of the time: sliders wait for this.
    """
    shows = "Capacity over slots: measured points, model with its interval, targets; and over memory."
    figure = theme.figure(data.finding, 470, shows)
    two = bool(data.memory_curves)
    traces: list[Properties] = []
    for number, curve in enumerate(data.curves):
        traces += _curve(f"memory-{curve.of}", f"model, {curve.of:,} MB per slot", number, curve, "x")
    for place, across in enumerate(data.memory_curves):
        label = f"model, {units.some(across.of, 'slot')}"
        traces += _curve(f"slots-{place}", label, len(data.curves) + place, across, "x2")
    axes = ("x", "x2")[: 1 + two]
    traces += [_runs(data, axis, memory) for memory in _memories(data) for axis in axes]
    traces += [_runs(data, axis, None) for axis in axes]
    traces.append(_targets(data))
    figure.add_traces(traces)
    shapes, notes = _marks(data)
    across_axis: Properties = {"type": "linear", "rangemode": "tozero"}
    up_axis = across_axis
    if data.far:
        low, high = _far_ends(data)
        across_axis = {"type": "log", "range": [math.log10(low), math.log10(high)], **theme.log_ticks(low, high)}
        up_axis = {"type": "log", "dtick": 1 if theme.many_decades(*_rates(data)) else "D2"}
    figure.update_layout(shapes=shapes, annotations=notes, legend_traceorder="normal")
    figure.update_layout(xaxis={"title_text": "Slots", "domain": [0, 0.6 if two else 1], **across_axis})
    figure.update_layout(yaxis={"title_text": "Capacity (records/s)", "tickformat": "~s", **up_axis})
    if two:
        ticks = sorted({memory for memory, _, _, _ in data.runs})
        words = {"tickvals": ticks, "ticktext": [f"{tick:,g}" for tick in ticks]}
        memory = {"title_text": "Memory per slot (MB)", "type": "log", "domain": [0.71, 1], "anchor": "y2", **words}
        rates = {"title_text": "Capacity (records/s)", "tickformat": "~s", "rangemode": "tozero", "anchor": "x2"}
        figure.update_layout(xaxis2=memory, yaxis2=rates)
    return theme.room_for_legend(figure)


def _far_ends(data: Capacity) -> tuple[float, float]:
    return 0.85 * data.curves[0].at[0], data.last * _FAR_ROOM / _ROOM


def _predicted(model: Model, grid: np.ndarray, knots: int, *, memory: int = 0, slots: int = 0) -> Curve:
    """Predict the curve over slots at a memory, or over memories at a number of slots."""
    at = np.geomspace(grid[0], grid[-1], knots)
    of = memory or slots
    fixed = np.full_like(at, of)
    points = np.column_stack([fixed, at] if memory else [at, fixed])
    lines = [model.predict(points), *model.interval(points, LEVEL)]
    where, asked = np.log(at), np.log(grid)
    if all(bool((line > 0).all()) for line in lines):
        found = [np.exp(PchipInterpolator(where, np.log(line))(asked)) for line in lines]
    else:  # a straight line may begin below 0
        found = [PchipInterpolator(where, line)(asked) for line in lines]
    return Curve(of, *(tuple(line.tolist()) for line in (grid, *found)))


def _curve(uid: str, label: str, number: int, curve: Curve, axis: str) -> list[Properties]:
    where = {"x": curve.at, "xaxis": axis, "yaxis": axis.replace("x", "y"), "type": "scatter"}
    band = {**where, "hoverinfo": "skip", "mode": "lines", "line": {"width": 0}}
    fill = {"fill": "tonexty", "fillcolor": theme.BAND, "showlegend": number == 0}
    hover = f"{label}, %{{x:.0f}} {'slots' if axis == 'x' else 'MB'}: %{{y:.4~s}} records/s<extra></extra>"
    line = {"color": theme.SEQUENCE[number % len(theme.SEQUENCE)], "dash": _DASHES[number % len(_DASHES)]}
    look = {"mode": "lines", "line": line, "hovertemplate": hover}
    return [
        {**band, "uid": f"capacity-high-{uid}", "name": "interval's high end", "y": curve.high, "showlegend": False},
        {**band, "uid": f"capacity-low-{uid}", "name": f"{units.percent(LEVEL)} interval", "y": curve.low, **fill},
        {**where, "uid": f"capacity-model-{uid}", "name": label, "y": curve.rate, **look},
    ]


def _memories(data: Capacity) -> list[int]:
    return sorted({memory for memory, _, _, fitted in data.runs if fitted})


def _runs(data: Capacity, axis: str, memory: int | None) -> Properties:
    """Make the points of the runs with a memory, each with its own shape; None: crosses for those not fitted."""
    across = {curve.of for curve in data.memory_curves}
    runs = [
        run
        for run in data.runs
        if (run[0] == memory if run[3] else memory is None) and (axis == "x" or run[1] in across)
    ]
    memories = _memories(data)
    of = f", {memory:,} MB" if memory is not None and len(memories) > 1 else ""
    hover = "%{customdata[1]} slots of %{customdata[0]} MB: %{y:.4~s} records/s, the bracket's middle<extra></extra>"
    symbol = "x" if memory is None else _SYMBOLS[memories.index(memory) % len(_SYMBOLS)]
    where = {"xaxis": axis, "yaxis": axis.replace("x", "y"), "showlegend": bool(runs) and axis == "x"}
    told = {"customdata": [[memory, slots] for memory, slots, _, _ in runs], "hovertemplate": hover}
    return {
        "type": "scatter",
        "uid": f"capacity-runs-{'left-out' if memory is None else memory}-{'1' if axis == 'x' else '2'}",
        "name": f"{data.origin}, not fitted" if memory is None else f"{data.origin}{of}",
        "x": [run[1] if axis == "x" else run[0] for run in runs],
        "y": [rate for _, _, rate, _ in runs],
        "mode": "markers",
        "marker": {"color": theme.BLACK, "symbol": symbol, "size": 8},
        **where,
        **told,
    }


def _targets(data: Capacity) -> Properties:
    highest = dict(sorted(data.targets, key=lambda one: one[1]))
    return {
        "type": "scatter",
        "uid": "capacity-targets",
        "name": "planned for a target",
        "x": [slots for slots, _ in data.targets],
        "y": [rate for _, rate in data.targets],
        "text": ["" if rate < highest[slots] else units.some(slots, "slot") for slots, rate in data.targets],
        "mode": "markers+text",
        "textposition": [_text_position(data, slots, rate) for slots, rate in data.targets],
        "marker": {"color": theme.VERMILLION, "symbol": "diamond", "size": 12},
        "hovertemplate": "%{y:.4~s} records/s: %{x:,} slots<extra></extra>",
        "cliponaxis": False,
        "showlegend": bool(data.targets),
    }


def _text_position(data: Capacity, slots: float, rate: float) -> str:
    """Return where a mark's text neither leaves the plot nor covers its axis; else below the curve and its points."""
    if _across(data, slots) > _RIGHT:
        curve = data.curves[0]
        under = not data.far and rate < _UNDER * float(np.interp(slots, curve.at, curve.rate))
        return "bottom left" if under else "top left"
    low = _LOW / 2 if data.far else _LOW  # a logarithmic axis has room under its lowest mark
    if _up(data, rate) >= low:
        return "bottom right"
    return "middle right" if _covered(data, slots, rate) else "top right"


def _covered(data: Capacity, slots: float, rate: float) -> bool:
    """Whether text over a mark, on its right, would cover a run's point."""
    wide, tall = _WORDS
    return any(
        0 < _across(data, at) - _across(data, slots) < wide and 0 < _up(data, found) - _up(data, rate) < tall
        for _, at, found, _ in data.runs
    )


def _across(data: Capacity, slots: float) -> float:
    """Horizontal position of a number of slots: 0 to 1."""
    if not data.far:
        return slots / data.last
    low, high = _far_ends(data)
    return math.log(slots / low) / math.log(high / low)


def _up(data: Capacity, rate: float) -> float:
    """Vertical position of a rate, roughly: 0 to 1."""
    lowest, highest = _rates(data)
    return math.log(rate / lowest) / math.log(highest / lowest) if data.far else rate / highest


def _rates(data: Capacity) -> tuple[float, float]:
    """Lowest and highest rate drawn, records/s."""
    rates = [rate for curve in data.curves for rate in (*curve.low, *curve.high)] + [one for _, one in data.targets]
    return min(one for one in rates if one > 0), max(rates)  # tasks that fill the driver leave no rate


def _marks(data: Capacity) -> tuple[list[Properties], list[Properties]]:
    """Make the shading of the extrapolated part and the lines of the targets, with their text."""
    shapes: list[Properties] = []
    notes: list[Properties] = []

    def noted(value: float) -> float:
        """Annotations, unlike shapes, take the logarithm on a logarithmic axis."""
        return math.log10(value) if data.far else value

    if data.last > data.most_measured:
        end = data.last * (_FAR_ROOM / _ROOM if data.far else 1.0)
        beyond = {"x0": data.most_measured, "x1": end, "y0": 0, "y1": 1, "yref": "paper", "layer": "below"}
        shapes.append({"type": "rect", **beyond, "fillcolor": theme.GREY, "opacity": 0.1, "line_width": 0})
        where = {"x": noted(data.most_measured), "y": 1, "yref": "paper", "xanchor": "left", "yanchor": "top"}
        notes.append({**where, "text": "extrapolated", "showarrow": False})
    highest = max(max(curve.rate) for curve in data.curves)
    lowest = min(max(curve.rate[0], 1.0) for curve in data.curves)
    close = _CLOSE * (noted(highest) - (noted(lowest) if data.far else 0.0))
    before, was_left, was_below = -math.inf, False, True
    for rate, slots in sorted({rate: slots for slots, rate in data.targets}.items()):
        line = {"color": theme.VERMILLION, "width": 1, "dash": "dash"}
        shapes.append({"type": "line", "xref": "x domain", "x0": 0, "x1": 1, "y0": rate, "y1": rate, "line": line})
        left = _across(data, slots) > 0.5  # on the side without the curve and the text of its mark
        below = data.far or rate > _LOW * highest
        room = close * (1 + (below and not was_below))  # both stand between the two lines
        left ^= left == was_left and noted(rate) - before < room
        before, was_left, was_below = noted(rate), left, below
        across = {"xref": "x domain", "x": 0 if left else 1, "xanchor": "left" if left else "right"}
        up = {"y": noted(rate), "yanchor": "top" if below else "bottom"}
        look = {"font": {"size": 12, "color": theme.ink(theme.VERMILLION)}, "showarrow": False}
        notes.append({**across, **up, **look, "text": f"target {units.rate(rate)}"})
    return shapes, notes


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
        return replace(self.kept[key], targets=((plan.budget.slots, plan.rate),), finding=finding)


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
    theme.lines(figure, "what-if-needed", "capacity it must have", across, [needed, needed], **look)
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
        theme.marks(figure, f"what-if-{uid}", name, x, y, look=mark, hover=hover, marker=wide)
    if question.more_skew:
        figure.update_layout(yaxis_title_text="Capacity at the skew measured (records/s)")
    return theme.room_for_legend(figure)
