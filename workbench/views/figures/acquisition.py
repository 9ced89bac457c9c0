"""What the explorer's Gaussian process expects of each budget, and which one it asks for next."""

from collections import Counter
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.capacity.explore import Question
from workbench.views import theme
from workbench.views.figures import traces

_SHOWS = "Left: error the Gaussian process expects. Right: expected improvement. By slots and memory, runs marked."
_GRID = "The budgets of the space by slots and memory, runs marked."


def draw_acquisition(question: Question) -> go.Figure:
    """Draw the expected cost (Equation 9) after a run and its expected improvement, with the runs and the question.

    Where no Gaussian process was asked, there is the grid alone.
    """
    found, space = question.why.acquired, question.space
    nothing = np.zeros((len(space.memory_mb), len(space.slots)))
    sides: tuple[tuple[str, str, Any, str, Any], ...] = (("space", "", nothing, theme.GREY, None),)
    if found is not None:
        sides = (
            ("mean", "expected error", found.mean.T, theme.VERMILLION, found.deviation.T.tolist()),
            ("improvement", "expected improvement", found.improvement.T, theme.BLUE, None),
        )
    runs = Counter((run.budget.slots, run.budget.profile.memory_mb) for run in question.runs)
    measured = [(*place, count) for place, count in runs.items()]
    asked = [(question.why.budget.slots, question.why.budget.profile.memory_mb, 0)]
    figure = theme.figure(question.sentence, 360, _GRID if found is None else _SHOWS)
    panels = make_subplots(cols=len(sides), shared_yaxes=True, horizontal_spacing=0.08, figure=figure)

    def word(value: float) -> str:
        return units.scaled(value, "", 2) if value >= 1 else "< 1"

    slots, memories = ([f"{one:,}" for one in values] for values in (space.slots, space.memory_mb))
    for col, (uid, name, table, colour, doubt) in enumerate(sides, start=1):
        top = 1.6 * float(table.max()) or 1.0  # words stay readable on the darkest cell
        within = " ± %{customdata:.3~s}" * (doubt is not None)
        hover = "%{x} slots of %{y} MB" + f": {name} %{{z:.3~s}}{within} records/s" * bool(name)
        said = [[word(value) if name else "" for value in row] for row in table.tolist()]
        told = {"customdata": doubt, "text": said, "texttemplate": "%{text}", "hover": hover}
        look = {"colorscale": [[0, "#FFFFFF"], [1, colour]], "x": slots, "y": memories, "row": 1, "col": col}
        traces.heat(panels, f"acquisition-{uid}", name or "space", table.tolist(), top, **told, **look)
        marks = (
            ("runs", "measured, and how often", measured, "circle-open", theme.BLACK),
            ("asked", "asked for next", asked, "diamond-open", theme.PURPLE),
        )
        for mark, what, places, symbol, ink in marks:
            x, y, text = ([f"{place[column]:,}" for place in places] for column in range(3))
            shape = {"look": (ink, symbol, 30 if mark == "runs" else 38), "marker": {"line": {"width": 2}}}
            words = {"text": text, "hover": f"{what}: %{{text}}" if mark == "runs" else what, "showlegend": col == 1}
            traces.marks(panels, f"acquisition-{mark}-{uid}", what, x, y, row=1, col=col, **shape, **words)
        title = f"Slots<br>{name}<br>(records/s)" if name else "Slots"
        panels.update_xaxes(title_text=title, categoryorder="array", categoryarray=slots, row=1, col=col)
    panels.update_yaxes(categoryorder="array", categoryarray=memories)
    panels.update_layout(autotypenumbers="strict")  # a live chart's update of data clears an axis type that is set
    panels.update_yaxes(title_text="Memory per slot (MB)", col=1)
    return theme.room_for_legend(panels)
