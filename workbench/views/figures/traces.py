"""Traces as all figures draw them: marks, lines, and horizontal bars with text at their ends."""

from collections.abc import Iterable, Sequence
from typing import Any

import plotly.graph_objects as go


def marks(drawn: go.Figure, uid: str, name: str, x: Any, y: Any, **more: Any) -> None:  # noqa: ANN401 - plotly's
    """Add marks; `look` is their colour, symbol and size, and `hover` their hover text."""
    _scatter(drawn, "marker", ("color", "symbol", "size"), {"mode": "markers", **more}, uid=uid, name=name, x=x, y=y)


def lines(drawn: go.Figure, uid: str, name: str, x: Any, y: Any, **more: Any) -> None:  # noqa: ANN401
    """Add a line; `look` is its colour, dash and width, and `hover` its hover text, if any."""
    _scatter(drawn, "line", ("color", "dash", "width"), {"mode": "lines", **more}, uid=uid, name=name, x=x, y=y)


def _scatter(drawn: go.Figure, what: str, names: Sequence[str], more: dict[str, Any], **given: Any) -> None:  # noqa: ANN401
    look = {name: one for name, one in zip(names, more.pop("look"), strict=False) if one is not None}
    hover = more.pop("hover", None)
    said = {"hoverinfo": "skip"} if hover is None else {"hovertemplate": f"{hover}<extra></extra>"}
    drawn.add_scatter(**given, **said, **{**more, what: look | more.get(what, {})})


def bars(drawn: go.Figure, uid: str, name: str, values: Sequence[Any], words: Sequence[str], **more: Any) -> None:  # noqa: ANN401
    """Add horizontal bars with text at their ends, one for each of the names `y`; `hover` as for `marks`."""
    more |= {"orientation": "h", "textposition": "outside", "cliponaxis": False, "showlegend": False}
    said = f"{more.pop('hover')}<extra></extra>"
    drawn.add_bar(uid=uid, name=name, x=values, text=words, hovertemplate=said, **more)


def heat(drawn: go.Figure, uid: str, name: str, cells: Any, top: float, **more: Any) -> None:  # noqa: ANN401
    """Add a heat map from 0 to `top`, without a scale, with gaps between its cells; `hover` as for `marks`."""
    more |= {"zmin": 0, "zmax": top, "showscale": False, "xgap": 2, "ygap": 2}
    drawn.add_heatmap(uid=uid, name=name, z=cells, hovertemplate=f"{more.pop('hover')}<extra></extra>", **more)


def box(x0: float, x1: float, y0: float, y1: float, **more: object) -> dict[str, object]:
    """Make a box below the traces, a shape of a layout."""
    return {"type": "rect", "layer": "below", "x0": x0, "x1": x1, "y0": y0, "y1": y1, **more}


def broken(pieces: Iterable[Sequence[tuple[Any, Any]]]) -> tuple[list[Any], list[Any]]:
    """Join lines of points (x, y), with gaps between them, into one trace."""
    points = [point for piece in pieces for point in (*piece, (None, None))]
    return [x for x, _ in points], [y for _, y in points]
