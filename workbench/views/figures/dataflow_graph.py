"""The dataflow as a graph: operators with their parallelism, rates and busyness, edges with their partitioning."""

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap

import plotly.graph_objects as go

from workbench import units
from workbench.dataflow import Dataflow, Operator
from workbench.metrics import Observation, OperatorMetrics
from workbench.views import theme

_BOX, _HALF = 0.39, 0.38  # half the width and height of a box; boxes are 1 apart
_ROW = 112  # pixels
_CHARACTERS = 104  # of the boxes of one row on a page


@dataclass(frozen=True)
class DataflowGraph:
    """Data of the figure: the column and the row of every operator, and what was observed of it."""

    finding: str
    dataflow: Dataflow
    places: Mapping[str, tuple[float, float]]
    seen: Mapping[str, OperatorMetrics]
    elapsed_s: float  # of the observation; 0: unknown


def observed_graph(dataflow: Dataflow, observation: Observation | None = None) -> DataflowGraph:
    """Lay the operators out in columns, each right of those that feed it, with what was observed of them."""
    columns: dict[str, int] = {}
    for name in dataflow.topological_order():
        columns[name] = 1 + max((columns[edge.upstream] for edge in dataflow.feeding.get(name, ())), default=-1)
    rows = _rows(dataflow, columns)
    places = {one.name: (float(columns[one.name]), rows[one.name]) for one in dataflow.operators}
    seen = {} if observation is None else {one.operator: one for one in observation.operators}
    finding = f"{dataflow.name}: {units.some(len(places), 'operator')}"
    if tasks := sum(one.tasks for one in seen.values()):
        finding += f" in {units.some(tasks, 'task')}"
    if known := [seen[name] for name in places if name in seen]:
        most = max(known, key=lambda one: one.busyness)
        finding += f"; the busiest is '{most.operator}', {units.share(round(most.busyness, 3))} of its tasks' time"
    return DataflowGraph(finding, dataflow, places, seen, 0.0 if observation is None else observation.elapsed_s)


def draw_dataflow_graph(data: DataflowGraph) -> go.Figure:
    """Draw boxes, fuller for busier operators, and arrows, dashed where records stay on their task."""
    operators = data.dataflow.operators
    x, y = zip(*data.places.values(), strict=True)
    columns, height = 1 + max(x), round(120 + _ROW * (1 + max(y) - min(y)))
    figure = theme.figure(data.finding, height, "Graph of operators from source to sink with tasks, rates, busyness.")
    for uid, kind, dash in (("graph-shuffle", "shuffle", "solid"), ("graph-forward", "forward", "dash")):
        edges = [edge for edge in data.dataflow.edges if edge.partitioning == kind]
        ends = [(*data.places[edge.upstream], *data.places[edge.downstream]) for edge in edges]
        arrows = theme.broken([(x0 + _BOX, y0), (x1 - _BOX - 0.02, y1)] for x0, y0, x1, y1 in ends)
        name = "all to all (shuffle)" if kind == "shuffle" else "one to one (forward)"
        sizes = [0 if place % 3 == 0 else 11 for place in range(len(arrows[0]))]
        arrow = {"color": theme.GREY, "symbol": "arrow", "angleref": "previous", "size": sizes}
        look = {"look": (theme.GREY, dash, 1.6), "mode": "lines+markers", "marker": arrow}
        theme.lines(figure, uid, name, *arrows, showlegend=bool(edges), **look)
    letters = max(4, int(_CHARACTERS / columns))
    facts = [theme.plain(f"{one.name}: {_facts(data, one)}") for one in operators]
    told = {"customdata": list(data.places), "hovertext": facts, "hover": "%{hovertext}"}
    words = {"text": [_label(data, one.name, letters) for one in operators]}
    look = {"mode": "text", "look": (), "textfont": {"size": 12, "color": "#1F1F1F"}}
    theme.marks(figure, "graph-operators", "operators", x, y, showlegend=False, **told, **words, **look)
    figure.update_layout(shapes=[shape for one in operators for shape in _box(data, one)])
    figure.update_xaxes(visible=False, range=[-0.45, columns - 0.55])
    figure.update_yaxes(visible=False, range=[max(y) + 0.5, min(y) - 0.5])
    figure.update_layout(margin={"l": 14, "b": 14})
    return theme.room_for_legend(figure)


def _rows(dataflow: Dataflow, columns: Mapping[str, int]) -> dict[str, float]:
    """Assign every operator a row: near those that feed it, and at least 1 apart within a column."""
    rows: dict[str, float] = {}
    by_column: dict[int, list[str]] = {}
    for one in dataflow.operators:
        by_column.setdefault(columns[one.name], []).append(one.name)
    for _, members in sorted(by_column.items()):
        wanted = {}
        for place, name in enumerate(members):
            fed = [rows[edge.upstream] for edge in dataflow.feeding.get(name, ())]
            wanted[name] = sum(fed) / len(fed) if fed else float(place)
        members.sort(key=lambda name: wanted[name])
        middle = sum(wanted.values()) / len(members)
        for place, name in enumerate(members):
            rows[name] = middle + place - (len(members) - 1) / 2
    return rows


def _label(data: DataflowGraph, name: str, letters: int) -> str:
    lines = [f"<b>{theme.plain(line)}</b>" for line in wrap(name, letters, max_lines=2, placeholder="…")]
    if one := data.seen.get(name):
        rate = [units.scaled(one.records_in / data.elapsed_s, "rec/s")] if data.elapsed_s > 0 else []
        lines += [units.some(one.tasks, "task"), *rate, f"{units.share(round(one.busyness, 3))} busy"]
    return "<br>".join(lines)


def _facts(data: DataflowGraph, operator: Operator) -> str:
    facts = [operator.kind, "keeps state" * operator.stateful]
    if one := data.seen.get(operator.name):
        rate = f"{units.rate(one.records_in / data.elapsed_s)} in" if data.elapsed_s > 0 else ""
        facts += [units.some(one.tasks, "task"), rate, f"{units.share(one.busyness)} busy"]
    return ", ".join(filter(None, facts))


def _box(data: DataflowGraph, operator: Operator) -> list[dict[str, object]]:
    """Draw an operator's frame, thick where it keeps state, filled from below by its busyness."""
    x, y = data.places[operator.name]
    left, right, top, bottom = x - _BOX, x + _BOX, y - _HALF, y + _HALF
    frame = {"line": {"color": theme.BLUE, "width": 3 if operator.stateful else 1.2}}
    shown, seen = theme.box(left, right, top, bottom, fillcolor="white", **frame), data.seen.get(operator.name)
    if seen is None or not seen.busyness:
        return [shown]
    filled = bottom - 2 * _HALF * min(1.0, seen.busyness)
    fill = theme.box(left, right, filled, bottom, line={"width": 0}, fillcolor="#BFDDEF")
    return [shown, fill, theme.box(left, right, top, bottom, fillcolor="rgba(0,0,0,0)", **frame)]
