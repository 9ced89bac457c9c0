"""The tree of the CAPS search: what it tried, what it pruned and why, and the way to the chosen plan (CAPSys, Fig. 4).

Layers are operators, levels in them workers. A large tree is folded: open stay the way to the chosen plan, then other
plans near its end, then the rest, the shallow parts first.
"""

from collections import Counter, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from workbench import units
from workbench.placement import Plan, SearchNode
from workbench.views import theme
from workbench.views.theme import Sign

Kind = Literal["choice", "plan", "chosen", "folded", "cpu", "io", "net", "duplicate", "no room"]
THRESHOLDS: tuple[Kind, ...] = ("cpu", "io", "net")

_ROWS, _NEAR = 16, 20  # of the tree, so that the map above it stays in sight; more are unfolded by hand
_REASONS = 4


@dataclass(frozen=True)
class TreeNode:
    """One mark of the figure: a choice, a plan, a folded subtree, or all siblings pruned for one kind of reason."""

    step: int  # of the search, the root being 0; identifies an opened or clicked node
    parent: int | None  # its parent's index among the nodes; None for the root
    level: int  # choices from the root
    row: float  # row from the top
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


def search_tree(
    root: SearchNode, chosen: Plan | None = None, *, rows: int = _ROWS, opened: Collection[int] = ()
) -> SearchTree:
    """Lay the tree of `trace_search` out, and mark the path to the plan `chosen`.

    Beyond about `rows`, all but the nodes `opened`, by step, and plans near the chosen one is folded.
    """
    tree = _Numbered(root)
    met = {step: node.plan for step, node in enumerate(tree.nodes) if node.plan is not None}
    counts = () if chosen is None else chosen.counts
    goal = next((step for step, plan in met.items() if np.array_equal(plan.counts, counts)), None)
    path = set(tree.way(goal or 0))
    wanted = {one for step in opened for one in tree.way(step)}
    nodes, lines, places = _laid_out(tree, _open(tree, path, rows) | wanted, path, goal)
    pruned = Counter(_reason(node.pruned) for node in tree.nodes if node.pruned is not None)
    layers, workers = _levels(tree, max(node.level for node in nodes))
    finding = _finding(tree, len(met), pruned, None if goal is None else met[goal])
    trail = []
    for step, node in enumerate(tree.nodes):  # folded choices are shown by the mark of their branch
        place = places.setdefault(step, places[tree.parents.get(step, 0)])
        trail.append((choice_words(node), place))
    return SearchTree(finding, nodes, layers, workers, lines, tuple(trail))


def choice_words(node: SearchNode) -> str:
    """Describe the choice of a node."""
    if node.operator is None:
        return "nothing is placed yet"
    if node.worker is None:
        return f"the whole layer {node.operator}"
    return f"{units.some(node.count or 0, 'task')} of {node.operator} on w{node.worker}"


class _Numbered:
    """All nodes by step of the search, with the steps of their children and their parent."""

    def __init__(self, root: SearchNode) -> None:
        self.nodes = list(root.walk())
        steps = {id(node): step for step, node in enumerate(self.nodes)}
        self.children = [[steps[id(child)] for child in node.children] for node in self.nodes]
        self.parents = {child: step for step, children in enumerate(self.children) for child in children}

    def way(self, step: int) -> list[int]:
        """Return the steps from the root to a node."""
        return [*(self.way(self.parents[step]) if step else ()), step]

    def marks(self, step: int) -> list[list[int]]:
        """Return the children as drawn: one by one, but those pruned for one kind of reason together."""
        marks: dict[int | str, list[int]] = {}
        for child in self.children[step]:
            pruned = self.nodes[child].pruned
            marks.setdefault(child if pruned is None else _reason(pruned), []).append(child)
        return list(marks.values())

    def below(self, step: int) -> range:
        """Return the steps of the node and of its descendants."""
        return range(step, step + sum(1 for _ in self.nodes[step].walk()))

    def lines(self, steps: Collection[int]) -> int:
        """Return the rows that a tree grows by when these nodes are opened."""
        return sum(max(0, len(self.marks(step)) - 1) for step in steps)


def _open(tree: _Numbered, path: Collection[int], rows: int) -> set[int]:
    """Return the nodes to open: those of the `path`, and others, the shallow first, while rows last."""
    opened = {*path, *_branches_off(tree, path)}
    taken = 1 + tree.lines(opened)
    waiting = deque([0])
    while waiting:
        step = waiting.popleft()
        if step not in opened:
            more = tree.lines([step])
            if taken + more > rows:
                continue
            opened.add(step)
            taken += more
        waiting += [child for child in tree.children[step] if tree.children[child]]
    return opened


def _branches_off(tree: _Numbered, path: Collection[int]) -> set[int]:
    """Return the branches with plans off the path to the chosen plan, the last ones first, while rows last."""
    found: set[int] = set()
    taken = 1 + tree.lines(path)
    for step in sorted(path, reverse=True):
        for child in tree.children[step]:
            below = tree.below(child)
            if child in path or not any(tree.nodes[one].plan is not None for one in below):
                continue
            branch = [one for one in below if tree.children[one]]
            more = tree.lines(branch)
            if taken + more <= _NEAR:
                found.update(branch)
                taken += more
    return found


def _laid_out(
    tree: _Numbered, opened: Collection[int], path: Collection[int], goal: int | None
) -> tuple[tuple[TreeNode, ...], int, dict[int, int]]:
    """Assign every mark a level and a row, parents amid their children; also return the rows, and each node's mark."""
    made: list[TreeNode] = []
    places: dict[int, int] = {}
    line = 0

    def place(steps: list[int], parent: int | None, level: int) -> float:
        nonlocal line
        step, mine = steps[0], len(made)
        places.update(dict.fromkeys(steps, mine))
        kind, label, text = _mark(tree, steps, step in opened, step == goal)
        made.append(TreeNode(step, parent, level, 0.0, kind, label, text, step in path))
        rows = [place(mark, mine, level + 1) for mark in tree.marks(step)] if step in opened else []
        if rows:
            row = (rows[0] + rows[-1]) / 2
        else:
            row, line = float(line), line + 1
        made[mine] = replace(made[mine], row=row)
        return row

    place([0], None, 0)
    return tuple(made), line, places


def _mark(tree: _Numbered, steps: list[int], is_open: bool, goal: bool) -> tuple[Kind, str, str]:
    """Return the kind of a mark, its label and its hover text."""
    node = tree.nodes[steps[0]]
    what, label = choice_words(node), "" if node.count is None else str(node.count)
    if node.pruned is not None:
        reasons = [f"{choice_words(tree.nodes[step])}: {tree.nodes[step].pruned}" for step in steps]
        rest = [f"and {len(reasons) - _REASONS} more"] if len(reasons) > _REASONS else []
        label = f"x{len(steps)}" if len(steps) > 1 else ""
        return _reason(node.pruned), label, "pruned: " + "\n".join(reasons[:_REASONS] + rest)
    if node.plan is not None:
        cost = node.plan.cost
        said = f"{what}\na plan: cpu {cost.cpu:.3f}, io {cost.io:.3f}, net {cost.net:.3f}"
        return ("chosen", units.number(cost.worst, digits=2), said) if goal else ("plan", "", said)
    if node.children and not is_open:
        below = tree.below(steps[0])[1:]
        plans = sum(tree.nodes[one].plan is not None for one in below)
        said = f"{what}\nfolded: {units.some(len(below), 'node')}, {units.some(plans, 'plan')}"
        return "folded", f"{label} +{len(below)}", said
    return "choice", label, what


def _reason(pruned: str | None) -> Kind:
    known: tuple[Kind, ...] = (*THRESHOLDS, "duplicate")
    return next((kind for kind in known if (pruned or "").startswith(kind)), "no room")


def _levels(tree: _Numbered, deepest: int) -> tuple[tuple[tuple[str, int, int], ...], tuple[int, ...]]:
    """Name the operator and worker of each level that is shown; all nodes of a level share them."""
    names: dict[int, tuple[str, int]] = {}
    for step, node in enumerate(tree.nodes):
        level = len(tree.way(step)) - 1
        if node.operator is not None and 0 < level <= deepest and (level not in names or node.worker is not None):
            names[level] = (node.operator, node.worker or 0)
    levels = sorted(names)
    grouped = ((operator, list(own)) for operator, own in groupby(levels, key=lambda level: names[level][0]))
    return tuple((operator, own[0], own[-1]) for operator, own in grouped), tuple(names[level][1] for level in levels)


def _finding(tree: _Numbered, plans: int, pruned: Mapping[Kind, int], chosen: Plan | None) -> str:
    nodes = len(tree.nodes) - 1 - sum(pruned.values())
    limits = sum(pruned.get(kind, 0) for kind in THRESHOLDS)
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

_LINE, _MOST_HEIGHT, _MARGINS, _NAMES = 12, 1000, 190, 20  # pixels
_WIDTH, _LETTER = 860, 7.0  # pixels of a plot on a page, and of a letter
_LEAST_LABELLED = 12  # pixels of a row; labels overlap in a lower one
_COLUMNS = 26  # with more levels, labels overlap


def draw_search_tree(data: SearchTree, step: int | None = None) -> go.Figure:
    """Draw the tree from left to right, its rows lower where the height does not suffice.

    At a `step` of the search later nodes are pale, and the mark that shows the present one is ringed.
    """
    height = min(_MOST_HEIGHT, _MARGINS + _LINE * (data.rows + 2))
    seen = [node for node in data.nodes if step is None or node.step <= step]
    chosen, place = (data.finding, None) if step is None else data.trail[step]
    title = chosen if step is None else f"Step {step} of {len(data.trail) - 1}: {chosen}"
    present = [] if place is None else [data.nodes[place]]
    shows = "Tree of the search from left to right: operators as bands, workers as columns."
    figure = theme.figure(title, height, shows)
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
    later = [node for node in data.nodes if step is not None and node.step > step]
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
    told = {"customdata": [node.step for node in nodes], "hovertext": said, "hover": "%{hovertext}"}
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
