"""The dataflow as a graph: operators with their parallelism, rates and busyness, edges with their partitioning."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from textwrap import wrap

import plotly.graph_objects as go

from workbench import units
from workbench.dataflow import Dataflow, Operator
from workbench.metrics import Observation
from workbench.views import theme

_BOX, _HALF = 0.39, 0.38  # half the width and height of a box; boxes are 1 apart
_ROW = 112  # pixels
_CHARACTERS = 104  # of the boxes of one row on a page


@dataclass(frozen=True)
class GraphNode:
    """One operator: its position, its tasks, records/s and busyness (share); None where unknown."""

    operator: Operator
    column: float
    row: float
    tasks: int | None = None
    records_per_s: float | None = None
    busyness: float | None = None


@dataclass(frozen=True)
class DataflowGraph:
    """Data of the figure; `edges` are (upstream, downstream, partitioning) by index of the nodes."""

    finding: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[tuple[int, int, str], ...]


def observed_graph(dataflow: Dataflow, observation: Observation | None = None) -> DataflowGraph:
    """Lay the operators out in columns, each right of those that feed it, with what was observed of them."""
    columns: dict[str, int] = {}
    for name in dataflow.topological_order():
        columns[name] = 1 + max((columns[edge.upstream] for edge in dataflow.feeding.get(name, ())), default=-1)
    rows = _rows(dataflow, columns)
    metrics = {} if observation is None else {one.operator: one for one in observation.operators}
    elapsed_s = 0.0 if observation is None else observation.elapsed_s
    nodes = []
    for one in dataflow.operators:
        node = GraphNode(one, float(columns[one.name]), rows[one.name])
        if seen := metrics.get(one.name):
            rate = seen.records_in / elapsed_s if elapsed_s > 0 else None
            node = replace(node, tasks=seen.tasks, records_per_s=rate, busyness=seen.busyness)
        nodes.append(node)
    place = {one.name: number for number, one in enumerate(dataflow.operators)}
    edges = tuple((place[e.upstream], place[e.downstream], e.partitioning) for e in dataflow.edges)
    finding = f"{dataflow.name}: {units.some(len(nodes), 'operator')}"
    if tasks := sum(one.tasks for one in metrics.values()):
        finding += f" in {units.some(tasks, 'task')}"
    known = [(node.busyness, node.operator.name) for node in nodes if node.busyness is not None]
    if known:
        share, name = max(known, key=lambda one: one[0])
        finding += f"; the busiest is '{name}', {units.share(round(share, 3))} of its tasks' time"
    return DataflowGraph(finding, tuple(nodes), edges)


def draw_dataflow_graph(data: DataflowGraph) -> go.Figure:
    """Draw boxes, fuller for busier operators, and arrows, dashed where records stay on their task."""
    rows = [node.row for node in data.nodes]
    columns = 1 + max((node.column for node in data.nodes), default=0)
    height = round(120 + _ROW * (1 + max(rows, default=0) - min(rows, default=0)))
    figure = theme.figure(data.finding, height, "Graph of operators from source to sink with tasks, rates, busyness.")
    if not data.nodes:
        return theme.not_enough(figure, "the dataflow has no operators.")
    for uid, kind, dash in (("graph-shuffle", "shuffle", "solid"), ("graph-forward", "forward", "dash")):
        ends = [(data.nodes[up], data.nodes[down]) for up, down, partitioning in data.edges if partitioning == kind]
        x, y = theme.broken([(up.column + _BOX, up.row), (down.column - _BOX - 0.02, down.row)] for up, down in ends)
        name = "all to all (shuffle)" if kind == "shuffle" else "one to one (forward)"
        sizes = [0 if place % 3 == 0 else 11 for place in range(len(x))]
        arrow = {"color": theme.GREY, "symbol": "arrow", "angleref": "previous", "size": sizes}
        look = {"look": (theme.GREY, dash, 1.6), "mode": "lines+markers", "marker": arrow}
        theme.lines(figure, uid, name, x, y, showlegend=bool(x), **look)
    letters = max(4, int(_CHARACTERS / columns))
    x, y = [node.column for node in data.nodes], [node.row for node in data.nodes]
    facts = [theme.plain(f"{node.operator.name}: {_facts(node)}") for node in data.nodes]
    told = {"customdata": [node.operator.name for node in data.nodes], "hovertext": facts, "hover": "%{hovertext}"}
    words = {"text": [_label(node, letters) for node in data.nodes], "textfont": {"size": 12, "color": "#1F1F1F"}}
    theme.marks(figure, "graph-operators", "operators", x, y, mode="text", look=(), showlegend=False, **told, **words)
    figure.update_layout(shapes=[shape for node in data.nodes for shape in _box(node)])
    figure.update_xaxes(visible=False, range=[-0.45, columns - 0.55])
    figure.update_yaxes(visible=False, range=[max(rows) + 0.5, min(rows) - 0.5])
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


def _label(node: GraphNode, letters: int) -> str:
    lines = [f"<b>{theme.plain(line)}</b>" for line in wrap(node.operator.name, letters, max_lines=2, placeholder="…")]
    if node.tasks is not None:
        lines.append(units.some(node.tasks, "task"))
    if node.records_per_s is not None:
        lines.append(units.scaled(node.records_per_s, "rec/s"))
    if node.busyness is not None:
        lines.append(f"{units.share(round(node.busyness, 3))} busy")
    return "<br>".join(lines)


def _facts(node: GraphNode) -> str:
    facts = [node.operator.kind, "keeps state" if node.operator.stateful else ""]
    facts.append("" if node.tasks is None else units.some(node.tasks, "task"))
    facts.append("" if node.records_per_s is None else f"{units.rate(node.records_per_s)} in")
    facts.append("" if node.busyness is None else f"{units.share(node.busyness)} busy")
    return ", ".join(fact for fact in facts if fact)


def _box(node: GraphNode) -> list[dict[str, object]]:
    """Draw an operator's frame, thick where it keeps state, filled from below by its busyness."""
    left, right, top, bottom = node.column - _BOX, node.column + _BOX, node.row - _HALF, node.row + _HALF
    frame = {"line": {"color": theme.BLUE, "width": 3 if node.operator.stateful else 1.2}}
    shown = theme.box(left, right, top, bottom, fillcolor="white", **frame)
    if not node.busyness:
        return [shown]
    filled = bottom - 2 * _HALF * min(1.0, node.busyness)
    fill = theme.box(left, right, filled, bottom, line={"width": 0}, fillcolor="#BFDDEF")
    return [shown, fill, theme.box(left, right, top, bottom, fillcolor="rgba(0,0,0,0)", **frame)]
