"""Drawing of the search tree: operators as bands, workers as columns, one mark per node."""

from collections.abc import Mapping
from types import MappingProxyType

import plotly.graph_objects as go

from workbench.views import theme
from workbench.views.figures import traces
from workbench.views.figures.search_tree import Kind, SearchTree, TreeNode
from workbench.views.theme import Sign

SIGNS: Mapping[Kind, Sign] = MappingProxyType(
    {
        "choice": Sign(theme.BLUE, "circle", "choice: tasks on a worker"),
        "plan": Sign(theme.GREEN, "square", "complete plan"),
        "chosen": Sign(theme.VERMILLION, "diamond", "marked plan"),
        "folded": Sign(theme.GREY, "triangle-right", "folded: + nodes inside"),
        "cpu": Sign(theme.VERMILLION, "x-thin-open", "pruned by CPU threshold"),
        "io": Sign(theme.PURPLE, "cross-thin-open", "pruned by state threshold"),
        "net": Sign(theme.BLACK, "asterisk-open", "pruned by network threshold"),
        "duplicate": Sign(theme.GREY, "circle-open", "pruned as duplicate"),
        "no room": Sign(theme.GREY, "triangle-down-open", "pruned for lack of room"),
    }
)

_LINE, _MOST_HEIGHT, _MARGINS, _NAMES = 16, 1000, 190, 20  # pixels
_WIDTH, _LETTER = 860, 7.0  # pixels of a plot on a page, and of a letter
_LEAST_LABELLED = 12  # pixels of a line below which labels would overlap
_COLUMNS = 26  # levels above which labels would overlap


def draw_search_tree(data: SearchTree, step: int | None = None, *, line: int = _LINE) -> go.Figure:
    """Draw the tree from left to right, a line of it in `line` pixels as far as the greatest height allows.

    At a `step` of the search later nodes are pale, and the mark that shows the present one is ringed, that of its
    branch where it is folded. None: the search is over.
    """
    height = min(_MOST_HEIGHT, _MARGINS + line * (data.rows + 2))
    seen = [node for node in data.nodes if step is None or node.order <= step]
    chosen, place = (data.finding, None) if step is None else data.trail[step]
    title = chosen if step is None else f"Step {step} of {data.steps}: {chosen}"
    present = [] if place is None else [data.nodes[place]]
    figure = theme.figure(
        title, height, "Tree of the search from left to right: operators as bands, workers as columns."
    )
    if len(data.nodes) <= 1:
        return theme.not_enough(figure, "the search made no choice.")
    room = (height - _MARGINS) / (data.rows + 2)
    levels = len(data.workers)
    labelled = room >= _LEAST_LABELLED and levels <= _COLUMNS
    size = max(3.0, min(14.0, 0.85 * room, 0.7 * _WIDTH / (levels + 2)))
    _edges(figure, data, seen)
    for kind, sign in SIGNS.items():
        nodes = [node for node in seen if node.kind == kind]
        _marks(figure, f"tree-{kind.replace(' ', '-')}", sign, nodes, size=size, labelled=labelled)
    later = [node for node in data.nodes if step is not None and node.order > step]
    _marks(figure, "tree-later", Sign("#DDDDDD", "circle", "not reached yet"), later, size=size / 2, labelled=False)
    here = Sign(theme.BLACK, "circle-open", "the search is here")
    _marks(figure, "tree-present", here, present, size=size + 8, labelled=False)
    _bands(figure, data)
    every = max(1, -(-levels // 40))
    figure.update_xaxes(
        title_text="Worker, for one operator after the other",
        tickvals=list(range(1, levels + 1, every)),
        ticktext=[f"w{worker}" for worker in data.workers[::every]],
        tickangle=0,
        range=[-0.6, levels + 1.2],
        showgrid=False,
    )
    figure.update_yaxes(range=[data.rows - 0.2, -1 - _NAMES / room], visible=False)
    return theme.room_for_legend(figure)


def _edges(figure: go.Figure, data: SearchTree, seen: list[TreeNode]) -> None:
    for uid, path, colour, width in (("tree-edges", False, "#C4C4C4", 1.0), ("tree-path", True, theme.VERMILLION, 3.0)):
        ends = [(data.nodes[one.parent], one) for one in seen if one.parent is not None and one.path == path]
        x, y = traces.broken([(parent.level, parent.row), (node.level, node.row)] for parent, node in ends)
        name, shown = "way to the marked plan" if path else "edges", path and bool(x)
        traces.lines(figure, uid, name, x, y, look=(colour, None, width), showlegend=shown)


def _marks(figure: go.Figure, uid: str, sign: Sign, nodes: list[TreeNode], *, size: float, labelled: bool) -> None:
    """Draw marks of one kind; choices carry their label inside, others outside."""
    inside = sign.symbol == "circle"
    traces.marks(
        figure,
        uid,
        sign.word,
        [node.level for node in nodes],
        [node.row for node in nodes],
        customdata=[node.key for node in nodes],
        text=[node.label for node in nodes] if labelled else None,
        hovertext=[theme.plain(node.text).replace("\n", "<br>") for node in nodes],
        mode="markers+text" if labelled else "markers",
        textposition="middle center" if inside else "middle right",
        textfont={"size": 10 if inside else 11, "color": "white" if inside else theme.GREY},
        look=(sign.colour, sign.symbol, size),
        marker={"line": {"width": 1.5, "color": sign.colour}},
        hover="%{hovertext}",
        showlegend=bool(nodes),
        cliponaxis=False,
    )


def _bands(figure: go.Figure, data: SearchTree) -> None:
    """Shade every second operator's levels, with its name on top."""
    width = _WIDTH / (len(data.workers) + 1.8)
    shapes, notes = [], []
    for number, (operator, first, last) in enumerate(data.layers):
        room = max(1, int((last - first + 1) * width / _LETTER))
        name = operator if len(operator) <= room else operator[: max(1, room - 1)] + "…"
        above = {"x": (first + last) / 2, "y": 1, "yref": "paper", "yanchor": "top", "showarrow": False}
        notes.append({**above, "text": theme.plain(name), "hovertext": theme.plain(operator), "font": {"size": 13}})
        if number % 2 == 0:
            look = {"yref": "paper", "fillcolor": "#F3F6F9", "line": {"width": 0}}
            shapes.append(traces.box(first - 0.5, last + 0.5, 0, 1, **look))
    figure.update_layout(shapes=shapes, annotations=notes)
