"""What every figure must keep: a title that is the finding, a text alternative, named traces, no NaN."""

import html
import math
from collections.abc import Iterable


def check_figure(figure, finding=None):
    """Assert it, and return the figure."""
    meta = figure.layout.meta
    title = html.unescape(figure.layout.title.text.replace("<br>", " ").replace("\u00a0", " "))
    assert title == meta["finding"]
    assert meta["alternative"].startswith(meta["finding"])
    assert finding is None or meta["finding"] == finding
    uids = [trace.uid for trace in figure.data]
    assert None not in uids
    assert len(set(uids)) == len(uids)
    assert all(trace.name for trace in figure.data)
    for trace in figure.data:
        for field in ("x", "y", "z", "customdata"):
            assert not any(
                isinstance(value, float) and not math.isfinite(value)
                for value in _flat(trace.to_plotly_json().get(field))
            )
    return figure


def check_empty(figure):
    """Assert that a figure without data says so."""
    check_figure(figure)
    assert not figure.data
    (note,) = figure.layout.annotations
    assert note.text.startswith("Not enough data: ")
    return note.text


def trace(figure, uid):
    """Find a trace by its uid."""
    (found,) = [one for one in figure.data if one.uid == uid]
    return found


def axis_titles(figure):
    """Titles of all axes that are shown."""
    layout = figure.to_plotly_json()["layout"]
    axes = [axis for key, axis in layout.items() if key.startswith(("xaxis", "yaxis"))]
    return {axis["title"]["text"] for axis in axes if "title" in axis and axis.get("visible", True)}


def _flat(values):
    if values is None or isinstance(values, str):
        return
    if isinstance(values, Iterable):
        for value in values:
            yield from _flat(value) if not isinstance(value, str) else ()
    else:
        yield float(values) if hasattr(values, "dtype") else values
