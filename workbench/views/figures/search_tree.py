"""The tree of the CAPS search: what it tried, what it pruned and why, and the way to the chosen plan (CAPSys, Fig. 4).

Layers are operators, levels in them workers. A large tree is folded: open stay the way to the chosen plan, then other
plans near its end, in half of the rows, then the rest, the shallow parts first.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from workbench import units
from workbench.placement import Plan, SearchNode, preference
from workbench.views import theme
from workbench.views.theme import Sign

Kind = Literal["choice", "plan", "chosen", "folded", "cpu", "io", "net", "duplicate", "no room"]
THRESHOLDS: tuple[Kind, ...] = ("cpu", "io", "net")

ROWS = 56
_REASONS = 4


@dataclass(frozen=True)
class TreeNode:
    """One mark of the figure: a choice, a plan, a folded subtree, or all siblings pruned for one kind of reason."""

    key: str  # positions among the siblings from the root, joined by dots; identifies an opened or clicked node
    parent: int | None  # its parent's index among the nodes; None for the root
    level: int  # choices from the root
    row: float  # row from the top
    order: int  # step of the search, the root being 0
    kind: Kind
    label: str  # a few characters next to the mark
    text: str  # its hover text
    path: bool  # whether it leads to the chosen plan


@dataclass(frozen=True)
class SearchTree:
    """Data of the figure; `trail` has each choice of the whole search, and the index of the mark that shows it."""

    finding: str
    nodes: tuple[TreeNode, ...]  # the root first, every node after its parent
    layers: tuple[tuple[str, int, int], ...]  # levels shown: operator, first and last level
    workers: tuple[int, ...]  # of every level, from level 1 on
    rows: int  # rows that the tree takes
    trail: tuple[tuple[str, int], ...]

    @property
    def steps(self) -> int:
        """Choices of the whole search, pruned ones included: how far a replay can go."""
        return len(self.trail) - 1


def search_tree(
    root: SearchNode,
    *,
    chosen: Plan | None = None,
    rows: int = ROWS,
    near: int | None = None,
    opened: Collection[str] = (),
) -> SearchTree:
    """Lay the tree of `trace_search` out, and mark the path to a plan, the best one in it if none is `chosen`.

    Beyond about `rows`, all but the nodes `opened` is folded; plans `near` the chosen one take half, or that many.
    """
    numbered = _Numbered(root)
    met = [(key, node.plan) for key, node in numbered.nodes.items() if node.plan is not None]
    if chosen is not None:
        goal = next((key for key, plan in met if np.array_equal(plan.counts, chosen.counts)), None)
    else:
        goal = min(met, key=lambda pair: preference(pair[1]), default=(None, None))[0]
    path = set(_prefixes(goal)) if goal is not None else {""}
    wanted = {prefix for key in opened for prefix in _prefixes(key) if prefix in numbered.nodes}
    open_keys = _open(numbered, path, rows, rows // 2 if near is None else near) | wanted
    nodes, lines, places = _laid_out(numbered, open_keys, path, goal)
    pruned = Counter(_reason(node.pruned) for node in numbered.nodes.values() if node.pruned is not None)
    layers, workers = _levels(numbered, max(node.level for node in nodes))
    finding = _finding(numbered, len(met), pruned, numbered.nodes[goal].plan if goal is not None else None)
    trail = []
    for key, node in numbered.nodes.items():  # folded choices are shown by the mark of their branch
        place = places.setdefault(key, places.get(key.rpartition(".")[0], 0))
        trail.append((choice_words(node), place))
    return SearchTree(finding, nodes, layers, workers, lines, tuple(trail))


def plan_at(root: SearchNode, key: str) -> Plan | None:
    """Return the plan at the end of a branch, by the node's key; None if there is none."""
    node = _Numbered(root).nodes.get(key)
    return None if node is None else node.plan


def choice_words(node: SearchNode) -> str:
    """Describe the choice of a node."""
    if node.operator is None:
        return "nothing is placed yet"
    if node.worker is None:
        return f"the whole layer {node.operator}"
    return f"{units.some(node.count or 0, 'task')} of {node.operator} on w{node.worker}"


class _Numbered:
    """All nodes by key, in the order of the search."""

    def __init__(self, root: SearchNode) -> None:
        self.nodes: dict[str, SearchNode] = {}
        self._visit(root, "")
        self.order = {key: number for number, key in enumerate(self.nodes)}

    def _visit(self, node: SearchNode, key: str) -> None:
        self.nodes[key] = node
        for child_key, child in self.children(key):
            self._visit(child, child_key)

    def children(self, key: str) -> Iterator[tuple[str, SearchNode]]:
        prefix = f"{key}." if key else ""
        return ((f"{prefix}{place}", child) for place, child in enumerate(self.nodes[key].children))

    def marks(self, key: str) -> list[list[str]]:
        """Return the keys of the children as drawn: one by one, but those pruned for one kind of reason together."""
        marks: dict[str, list[str]] = {}
        for child_key, child in self.children(key):
            marks.setdefault(child_key if child.pruned is None else _reason(child.pruned), []).append(child_key)
        return list(marks.values())

    def below(self, key: str) -> list[str]:
        """Return the keys of the node and of its descendants."""
        return [key, *(one for child, _ in self.children(key) for one in self.below(child))]

    def lines(self, keys: Collection[str]) -> int:
        """Return the rows that a tree grows by when these nodes are opened."""
        return sum(max(0, len(self.marks(key)) - 1) for key in keys)


def _prefixes(key: str) -> list[str]:
    parts = key.split(".") if key else []
    return [".".join(parts[:length]) for length in range(len(parts) + 1)]


def _open(numbered: _Numbered, path: Collection[str], rows: int, near: int) -> set[str]:
    """Return the keys of the nodes to open: those of the `path`, and others, the shallow first, while rows last."""
    opened = {*path, *_branches_off(numbered, path, near)}
    taken = 1 + numbered.lines(opened)
    waiting = deque([""])
    while waiting:
        key = waiting.popleft()
        if key not in opened:
            more = numbered.lines([key])
            if taken + more > rows:
                continue
            opened.add(key)
            taken += more
        waiting += [child for child, node in numbered.children(key) if node.children]
    return opened


def _branches_off(numbered: _Numbered, path: Collection[str], rows: int) -> set[str]:
    """Return the keys of branches with plans off the path to the chosen plan, the last ones first, while rows last."""
    found: set[str] = set()
    taken = 1 + numbered.lines(path)
    for key in sorted(path, key=len, reverse=True):
        for child, _ in numbered.children(key):
            below = {one: numbered.nodes[one] for one in numbered.below(child)}
            if child in path or not any(node.plan is not None for node in below.values()):
                continue
            branch = [one for one, node in below.items() if node.children]
            more = numbered.lines(branch)
            if taken + more <= rows:
                found.update(branch)
                taken += more
    return found


def _laid_out(
    numbered: _Numbered, opened: Collection[str], path: Collection[str], goal: str | None
) -> tuple[tuple[TreeNode, ...], int, dict[str, int]]:
    """Assign every mark a level and a row, parents amid their children; also return the rows, and each node's mark."""
    made: list[TreeNode] = []
    places: dict[str, int] = {}
    line = 0

    def place(keys: list[str], parent: int | None, level: int) -> float:
        nonlocal line
        key, mine = keys[0], len(made)
        places.update(dict.fromkeys(keys, mine))
        made.append(_mark(numbered, keys, parent, level, key in opened, key in path, key == goal))
        rows = [place(mark, mine, level + 1) for mark in numbered.marks(key)] if key in opened else []
        if rows:
            row = (rows[0] + rows[-1]) / 2
        else:
            row, line = float(line), line + 1
        made[mine] = replace(made[mine], row=row)
        return row

    place([""], None, 0)
    return tuple(made), line, places


def _mark(  # noqa: PLR0917 - one node and what was determined about it
    numbered: _Numbered, keys: list[str], parent: int | None, level: int, is_open: bool, path: bool, goal: bool
) -> TreeNode:
    node, order = numbered.nodes[keys[0]], numbered.order[keys[0]]
    what = choice_words(node)
    label = "" if node.count is None else str(node.count)
    kind: Kind = "choice"
    if node.pruned is not None:
        kind = _reason(node.pruned)
        label = f"x{len(keys)}" if len(keys) > 1 else ""
        reasons = [f"{choice_words(numbered.nodes[key])}: {numbered.nodes[key].pruned}" for key in keys]
        rest = [f"and {len(reasons) - _REASONS} more"] if len(reasons) > _REASONS else []
        what = "pruned: " + "\n".join(reasons[:_REASONS] + rest)
    elif node.plan is not None:
        kind = "chosen" if goal else "plan"
        cost = node.plan.cost
        label = units.number(cost.worst, digits=2) if goal else ""
        what = f"{what}\na plan: cpu {cost.cpu:.3f}, io {cost.io:.3f}, net {cost.net:.3f}"
    elif node.children and not is_open:
        below = numbered.below(keys[0])[1:]
        kind, label = "folded", f"{label} +{len(below)}"
        plans = sum(numbered.nodes[one].plan is not None for one in below)
        what = f"{what}\nfolded: {units.some(len(below), 'node')}, {units.some(plans, 'plan')}"
    return TreeNode(keys[0], parent, level, 0.0, order, kind, label, what, path)


def _reason(pruned: str | None) -> Kind:
    known: tuple[Kind, ...] = (*THRESHOLDS, "duplicate")
    return next((kind for kind in known if (pruned or "").startswith(kind)), "no room")


def _levels(numbered: _Numbered, deepest: int) -> tuple[tuple[tuple[str, int, int], ...], tuple[int, ...]]:
    """Name the operator and worker of each level that is shown; all nodes of a level share them."""
    names: dict[int, tuple[str, int]] = {}
    for key, node in numbered.nodes.items():
        level = len(_prefixes(key)) - 1
        if node.operator is not None and 0 < level <= deepest and (level not in names or node.worker is not None):
            names[level] = (node.operator, node.worker or 0)
    levels = sorted(names)
    grouped = ((operator, list(own)) for operator, own in groupby(levels, key=lambda level: names[level][0]))
    return tuple((operator, own[0], own[-1]) for operator, own in grouped), tuple(names[level][1] for level in levels)


def _finding(numbered: _Numbered, plans: int, pruned: Mapping[Kind, int], chosen: Plan | None) -> str:
    nodes = len(numbered.nodes) - 1 - sum(pruned.values())
    limits = sum(pruned.get(kind, 0) for kind in THRESHOLDS)
    if len(numbered.nodes) == 1:
        return "The search made no choice"
    if not plans:
        return f"No plan meets the thresholds: the search ends after {units.some(nodes, 'node')}"
    met = f"The search meets {units.some(plans, 'plan')} in {units.some(nodes, 'node')}"
    branches = "branch" if limits == 1 else "branches"
    cut = f"; thresholds prune {units.count(limits)} {branches}" if limits else "; no threshold prunes a branch"
    return met + cut + ("" if chosen is None else f"; the marked plan costs {units.number(chosen.cost.worst)} at worst")


SIGNS: Mapping[Kind, Sign] = {
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

_LINE, _MOST_HEIGHT, _MARGINS, _NAMES = 16, 1000, 190, 20  # pixels
_WIDTH, _LETTER = 860, 7.0  # pixels of a plot on a page, and of a letter
_LEAST_LABELLED = 12  # pixels of a row; labels overlap in a lower one
_COLUMNS = 26  # with more levels, labels overlap


def draw_search_tree(data: SearchTree, step: int | None = None, *, line: int = _LINE) -> go.Figure:
    """Draw the tree from left to right, each row `line` pixels high as far as the height allows.

    At a `step` of the search later nodes are pale, and the mark that shows the present one is ringed.
    """
    height = min(_MOST_HEIGHT, _MARGINS + line * (data.rows + 2))
    seen = [node for node in data.nodes if step is None or node.order <= step]
    chosen, place = (data.finding, None) if step is None else data.trail[step]
    title = chosen if step is None else f"Step {step} of {data.steps}: {chosen}"
    present = [] if place is None else [data.nodes[place]]
    shows = "Tree of the search from left to right: operators as bands, workers as columns."
    figure = theme.figure(title, height, shows)
    if len(data.nodes) <= 1:
        return theme.not_enough(figure, "the search made no choice.")
    room = (height - _MARGINS) / (data.rows + 2)
    levels = len(data.workers)
    labelled = room >= _LEAST_LABELLED and levels <= _COLUMNS
    size = max(3.0, min(14.0, 0.85 * room, 0.7 * _WIDTH / (levels + 2)))
    for uid, path, colour, width in (("tree-edges", False, "#C4C4C4", 1.0), ("tree-path", True, theme.VERMILLION, 3.0)):
        ends = [(data.nodes[one.parent], one) for one in seen if one.parent is not None and one.path == path]
        x, y = theme.broken([(parent.level, parent.row), (node.level, node.row)] for parent, node in ends)
        name, drawn = "way to the marked plan" if path else "edges", path and bool(x)
        theme.lines(figure, uid, name, x, y, look=(colour, None, width), showlegend=drawn)
    for kind, sign in SIGNS.items():
        nodes = [node for node in seen if node.kind == kind]
        _marks(figure, f"tree-{kind.replace(' ', '-')}", sign, nodes, size=size, labelled=labelled)
    later = [node for node in data.nodes if step is not None and node.order > step]
    _marks(figure, "tree-later", Sign("#DDDDDD", "circle", "not reached yet"), later, size=size / 2, labelled=False)
    here = Sign(theme.BLACK, "circle-open", "the search is here")
    _marks(figure, "tree-present", here, present, size=size + 8, labelled=False)
    _bands(figure, data)
    every = max(1, -(-levels // 40))
    words = [f"w{worker}" for worker in data.workers[::every]]
    ticks = {"tickvals": list(range(1, levels + 1, every)), "ticktext": words, "tickangle": 0, "showgrid": False}
    figure.update_xaxes(title_text="Worker, for one operator after the other", range=[-0.6, levels + 1.2], **ticks)
    figure.update_yaxes(range=[data.rows - 0.2, -1 - _NAMES / room], visible=False)
    return theme.room_for_legend(figure)


def _marks(figure: go.Figure, uid: str, sign: Sign, nodes: list[TreeNode], *, size: float, labelled: bool) -> None:
    """Draw marks of one kind; choices carry their label inside, others outside."""
    inside = sign.symbol == "circle"
    x, y = [node.level for node in nodes], [node.row for node in nodes]
    said = [theme.plain(node.text).replace("\n", "<br>") for node in nodes]
    told = {"customdata": [node.key for node in nodes], "hovertext": said, "hover": "%{hovertext}"}
    font = {"size": 10 if inside else 11, "color": "white" if inside else theme.GREY}
    words = {"textposition": "middle center" if inside else "middle right", "textfont": font}
    mode, text = ("markers+text", [node.label for node in nodes]) if labelled else ("markers", None)
    look = {"look": (sign.colour, sign.symbol, size), "marker": {"line": {"width": 1.5, "color": sign.colour}}}
    shown = {"mode": mode, "text": text, "showlegend": bool(nodes), "cliponaxis": False}
    theme.marks(figure, uid, sign.word, x, y, **told, **words, **look, **shown)


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
            shapes.append(theme.box(first - 0.5, last + 0.5, 0, 1, **look))
    figure.update_layout(shapes=shapes, annotations=notes)
