"""A replayed load over time: offered and consumed rates, tasks, backlog, latency, and every reconfiguration."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.scaling import Reconfiguration, Timeline
from workbench.study import Policies
from workbench.views import theme

POINTS = 1200
_DEPLOYED = 2  # the row of the tasks
_MARKED = 80  # most reconfigurations whose downtime is shaded one by one

_MOST_TICKS = 9
_STEPS_S = (60, 300, 600, 900, 1800, 3600, 7200, 10_800, 14_400, 21_600, 43_200, 86_400)
_LOOKS = ((theme.VERMILLION, "dash"), (theme.GREEN, "dot"), (theme.PURPLE, "dashdot"), (theme.BLACK, "longdash"))


@dataclass(frozen=True)
class TimelineSeries:
    """Data of the figure, by bucket of steps."""

    finding: str
    columns: Mapping[str, tuple[float, ...]]  # by field of `Timeline`: means of the rates, maxima of the others
    reconfigurations: tuple[Reconfiguration, ...]
    duration_s: float
    tops: Mapping[str, float]  # highest value of each column in the complete replay, for axes that stay while it plays

    def until(self, time_s: float) -> "TimelineSeries":
        """Return the part before `time_s`, with the same axes."""
        kept = sum(time < time_s for time in self.columns["times_s"])
        changes = tuple(change for change in self.reconfigurations if change.at_s < time_s)
        columns = {name: values[:kept] for name, values in self.columns.items()}
        return replace(self, columns=columns, reconfigurations=changes)


def timeline(line: Timeline, policy: str = "The policy", *, points: int = POINTS) -> TimelineSeries:
    """Collect a replay in at most `points` buckets of steps; the default is what a screen can show."""
    steps = len(line.offered)
    size = math.ceil(steps / points)
    hows = {"times_s": "min", "offered": "mean", "consumed": "mean"}
    hows |= dict.fromkeys(("tasks", "backlog", "latency_s", "paid_memory_mb"), "max")
    columns = {
        name: tuple(getattr(values[start : start + size], how)().item() for start in range(0, steps, size))
        for name, how in hows.items()
        for values in (getattr(line, name),)
    }
    tops = {name: max(values) for name, values in columns.items()}
    return TimelineSeries(_finding(line, policy), columns, line.reconfigurations, steps * line.step_s, tops)


def draw_timeline(data: TimelineSeries) -> go.Figure:
    """Draw four panels over one time axis: rates, tasks, backlog, latency; reconfigurations across all of them."""
    shows = "Four panels over time: rates, tasks, backlog and latency; reconfigurations are marked."
    figure = theme.figure(data.finding, 720, shows)
    sizes = {"vertical_spacing": 0.035, "row_heights": [0.34, 0.22, 0.22, 0.22]}
    specs: list[list[dict[str, bool]]] = [[{}], [{"secondary_y": True}], [{}], [{}]]
    panels = make_subplots(rows=4, shared_xaxes=True, specs=specs, figure=figure, **sizes)
    scale, unit = units.time_scale(data.duration_s)
    seen, tops = data.columns, data.tops
    waited, waited_unit = units.time_scale(tops["latency_s"])
    latency = [seconds / waited for seconds in seen["latency_s"]]
    times = [time / scale for time in seen["times_s"]]
    most_gb = tops["paid_memory_mb"] / 1024
    memory = [megabytes / 1024 for megabytes in seen["paid_memory_mb"]] if most_gb else []
    form = theme.ticks(tops["backlog"])
    rows = (
        (1, "timeline-offered", "offered", seen["offered"], theme.BLACK, "dot", "%{y:.4~s} records/s offered"),
        (1, "timeline-consumed", "consumed", seen["consumed"], theme.BLUE, "solid", "%{y:.4~s} records/s consumed"),
        (2, "timeline-tasks", "tasks", seen["tasks"], theme.BLUE, "solid", "%{y:,} tasks"),
        (2, "timeline-memory", "memory", memory, theme.GREEN, "dash", "%{y:.4~g} GiB paid for"),
        (3, "timeline-backlog", "backlog", seen["backlog"], theme.VERMILLION, "solid", f"%{{y:.4{form}}} records wait"),
        (4, "timeline-latency", "latency", latency, theme.PURPLE, "solid", f"waited %{{y:.4~g}} {waited_unit}"),
    )
    for row, uid, name, values, colour, dash, hover in rows:
        look = {"look": (colour, dash, 1.8), "line": {"shape": "hv" if row == _DEPLOYED else "linear"}}
        where = {"row": row, "col": 1} | ({"secondary_y": name == "memory"} if row == _DEPLOYED else {})
        told = {"hover": f"%{{x:.4~g}} {unit}: {hover}", "showlegend": row == 1}
        theme.lines(panels, uid, name, times, values, **look, **told, **where)
    _changes(panels, data, scale, unit)
    rates_axis = theme.upright(max(tops["offered"], tops["consumed"]))
    panels.update_yaxes(title_text="Rate (records/s)", **rates_axis, row=1, col=1)
    tasks_axis = {**theme.upright(tops["tasks"]), "tickformat": ",d"}
    panels.update_yaxes(title_text="Tasks", **tasks_axis, nticks=5, row=2, col=1, secondary_y=False)
    title = {"text": "Memory (GiB), dashed", "font": {"color": theme.ink(theme.GREEN)}}
    memory_axis = {**theme.upright(most_gb), "tickmode": "auto", "visible": most_gb > 0}
    panels.update_yaxes(title=title, **memory_axis, nticks=5, showgrid=False, row=2, col=1, secondary_y=True)
    backlog_axis = theme.upright(max(tops["backlog"], theme.FEW_RECORDS))
    panels.update_yaxes(title_text="Backlog (records)", **backlog_axis, nticks=5, row=3, col=1)
    latency_axis = theme.upright(tops["latency_s"] / waited)
    panels.update_yaxes(title_text=f"Latency ({waited_unit})", **latency_axis, nticks=5, row=4, col=1)
    panels.update_xaxes(range=[0, data.duration_s / scale])
    panels.update_xaxes(title_text=f"Time ({unit})", row=4, col=1)
    flat = ((3, tops["backlog"], "no backlog at any time"), (4, tops["latency_s"], "no record waits at any time"))
    middle = {"x": 0.5, "y": 0.5, "xref": "x domain", "yref": "y domain", "showarrow": False, "font_color": theme.GREY}
    for row, top, text in flat:
        if not top:  # a line that is always 0 looks like an empty panel
            panels.add_annotation(text=text, **middle, row=row, col=1)
    return theme.room_for_legend(panels)


def _changes(panels: go.Figure, data: TimelineSeries, scale: float, unit: str) -> None:
    """Mark reconfigurations by a triangle in the panel of tasks, and shade their downtime in every panel."""
    changes = data.reconfigurations
    counts = [sum(change.tasks.values()) for change in changes]
    said = [
        f"{units.some(count, 'task')} from here: "
        + ", ".join(f"{theme.plain(name)} {tasks}" for name, tasks in change.tasks.items())
        + f"<br>nothing ran for {units.seconds(change.downtime_s)}, {units.size(change.moved_bytes)} of state moved"
        for change, count in zip(changes, counts, strict=True)
    ]
    mark = {"look": (theme.VERMILLION, "triangle-down", 11), "marker": {"line": {"color": "white", "width": 1}}}
    told = {"text": said, "hover": f"%{{x:.4~g}} {unit}: %{{text}}", "showlegend": bool(changes), "cliponaxis": False}
    uid, times = "timeline-reconfigurations", [change.at_s / scale for change in changes]
    theme.marks(panels, uid, "reconfiguration", times, counts, **mark, **told, row=2, col=1)
    line = {"width": 1, "color": theme.VERMILLION}
    look = {"xref": "x", "yref": "paper", "fillcolor": theme.VERMILLION, "opacity": 0.18, "line": line}
    downtimes = [(one.at_s / scale, (one.at_s + one.downtime_s) / scale) for one in changes[:_MARKED]]
    panels.update_layout(shapes=[theme.box(began, ended, 0, 1, **look) for began, ended in downtimes])


def _finding(line: Timeline, policy: str) -> str:
    row = line.with_driver()
    changes, wait_s = len(line.reconfigurations), row["latency_p99_s"]
    waited = f"99 of 100 records wait at most {units.seconds(wait_s)}"
    if not wait_s:
        waited = "99 of 100 records do not wait" if line.latency_s.any() else "no record waits"
    often = "never reconfigures" if not changes else f"reconfigures {changes} time{'s' if changes > 1 else ''}"
    return (
        f"{policy} {often}: it is at the target {units.share(row['at_target'])} of the time, {waited}, and it "
        f"takes {units.number(row['core_hours'])} core-hours, driver included"
    )


def same_axes(series: Mapping[str, TimelineSeries]) -> dict[str, TimelineSeries]:
    """Return the replays with axes on which all of them fit."""
    all_tops = [one.tops for one in series.values()]
    tops = {name: max(one[name] for one in all_tops) for name in all_tops[0]}
    return {name: replace(one, tops=tops) for name, one in series.items()}


def draw_overlaid(series: Mapping[str, TimelineSeries], policy: str) -> go.Figure:
    """Draw the timeline of `policy`, and the others of the same load and axes as thin lines; time 0 is midnight."""
    shown = series[policy]
    figure = draw_timeline(shown)
    scale, _ = units.time_scale(shown.duration_s)
    waited, _ = units.time_scale(shown.tops["latency_s"])
    for place, (name, other) in enumerate((n, one) for n, one in series.items() if n != policy):
        colour, dash = _LOOKS[place % len(_LOOKS)]
        seen = other.columns
        columns = (seen["tasks"], seen["backlog"], [seconds / waited for seconds in seen["latency_s"]])
        for row, values in enumerate(columns, start=2):
            look = {"look": (colour, dash, 1.1), "line": {"shape": "hv" if row == 2 else "linear"}}
            told = {"legendgroup": f"overlay-{place}", "showlegend": row == 2, "row": row, "col": 1}
            times, said = [time / scale for time in seen["times_s"]], theme.plain(name)
            told["hover"] = f"{said}: %{{y:.4~s}}"
            theme.lines(figure, f"overlay-{place}-{row}", said, times, values, **told, **look)
    step = next((one for one in _STEPS_S if shown.duration_s / one < _MOST_TICKS), _STEPS_S[-1])
    ticks = range(0, int(shown.duration_s) + 1, step)
    figure.update_xaxes(tickvals=[tick / scale for tick in ticks])
    figure.update_xaxes(ticktext=[units.clock(tick) for tick in ticks], title_text="Clock", row=4, col=1)
    figure.update_yaxes(title_font_size=11)
    figure.update_yaxes(title_text="GiB, dashed", row=2, col=1, secondary_y=True)
    return theme.room_for_legend(figure)


_PANEL, _LETTER, _LEAST_ROOM = 160.0, 7.5, 0.24  # pixels of a panel on a narrow page, of a letter; share of a panel


def draw_policies(data: Policies) -> go.Figure:
    """Draw one row of bars per policy, one panel per measure."""
    shows = "Bars per policy: time at target, latency, cost, changes."
    figure = theme.figure(data.finding, 170 + 42 * len(data.rows), shows)
    columns = {
        "at_target": "Keeps up (% of time)",
        "latency_p99_s": "Latency, 99 % (s)",
        data.money: f"{data.price_unit or 'Core-hours'}, with driver",
        "reconfigurations": "Changes",
    }
    colours = [theme.VERMILLION if name == data.best else theme.BLUE for name in data.rows]
    shapes = ["/" if name == data.best else "" for name in data.rows]
    pattern = {"shape": shapes, "bgcolor": colours, "fgcolor": "white", "size": 6}
    measures: list[theme.Measure] = []
    for field, title in columns.items():
        values = [round(100 * row[field], 1) if field == "at_target" else row[field] for row in data.rows.values()]
        labels = [units.seconds(value) if field.endswith("_s") else units.number(value) for value in values]
        finite = [value if math.isfinite(value) else None for value in values]
        ticks = {"tickformat": theme.ticks(max(filter(None, finite), default=1.0)), "nticks": 4}
        room = max(_LEAST_ROOM, _LETTER * max(map(len, labels)) / _PANEL)
        measures.append((f"policies-{field}", title, finite, labels, 1 / (1 - room), ticks))
    look = {"marker": {"color": colours, "pattern": pattern}, "hover": "%{y}: %{x:.4~g}"}
    return theme.room_for_legend(theme.bar_panels(figure, data.rows, measures, 0.035, **look))
