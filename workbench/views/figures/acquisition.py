"""What the explorer's Gaussian process expects of each budget, and which one it asks for next."""

from collections import Counter
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.capacity.explore import Question
from workbench.dataflow import Budget
from workbench.views import theme
from workbench.views.figures import traces

Table = tuple[tuple[float, ...], ...]
_SHOWS = "Left: error the Gaussian process expects. Right: expected improvement. By slots and memory, runs marked."
_GRID = "The budgets of the space by slots and memory, runs marked."


@dataclass(frozen=True)
class Acquisition:
    """What the figure shows.

    `mean`, `deviation` and `improvement` are of the cost (Equation 9) after a run, records/s: a row per memory, a
    column per number of slots; empty where no Gaussian process was asked.
    """

    finding: str
    slots: tuple[int, ...]
    memory_mb: tuple[int, ...]
    mean: Table
    deviation: Table
    improvement: Table
    asked: tuple[int, int]  # slots and memory (MiB) of the budget asked for
    runs: tuple[tuple[int, int, int], ...]  # so far, by slots and memory


def acquisition(question: Question) -> Acquisition:
    """Collect the posterior and the expected improvement behind a question."""
    found, space = question.why.acquired, question.space
    tables = () if found is None else (found.mean, found.deviation, found.improvement)
    mean, deviation, improvement = (tuple(map(tuple, one.T.tolist())) for one in tables) if tables else ((), (), ())
    counts = Counter(_place(run.budget) for run in question.runs)
    return Acquisition(
        question.sentence,
        space.slots,
        space.memory_mb,
        mean,
        deviation,
        improvement,
        _place(question.why.budget),
        tuple((*place, count) for place, count in counts.items()),
    )


def draw_acquisition(data: Acquisition) -> go.Figure:
    """Draw the expected error on the left and the expected improvement on the right, with the runs and the question.

    Where no Gaussian process was asked, there is the grid alone.
    """
    sides: tuple[tuple[str, str, Table, str, Table | None], ...] = (
        ("mean", "expected error", data.mean, theme.VERMILLION, data.deviation),
        ("improvement", "expected improvement", data.improvement, theme.BLUE, None),
    )
    if not data.mean:
        nothing = tuple((0.0,) * len(data.slots) for _ in data.memory_mb)
        sides = (("space", "", nothing, theme.GREY, None),)
    figure = theme.figure(data.finding, 360, _SHOWS if data.mean else _GRID)
    panels = make_subplots(cols=len(sides), shared_yaxes=True, horizontal_spacing=0.08, figure=figure)

    def word(value: float) -> str:
        return units.scaled(value, "", 2) if value >= 1 else "< 1"

    slots, memories = ([f"{one:,}" for one in values] for values in (data.slots, data.memory_mb))
    for col, (uid, name, table, colour, doubt) in enumerate(sides, start=1):
        top = 1.6 * max(map(max, table)) or 1.0  # words stay readable on the darkest cell
        within = " ± %{customdata:.3~s}" * (doubt is not None)
        where = {"x": slots, "y": memories, "row": 1, "col": col}
        traces.heat(
            panels,
            f"acquisition-{uid}",
            name or "space",
            table,
            top,
            customdata=doubt,
            text=[[word(value) if data.mean else "" for value in row] for row in table],
            texttemplate="%{text}",
            colorscale=[[0, "#FFFFFF"], [1, colour]],
            hover="%{x} slots of %{y} MB" + f": {name} %{{z:.3~s}}{within} records/s" * bool(name),
            **where,
        )
        marks = (
            ("runs", "measured, and how often", data.runs, "circle-open", theme.BLACK),
            ("asked", "asked for next", ((*data.asked, 0),), "diamond-open", theme.PURPLE),
        )
        for mark, said, places, symbol, ink in marks:
            x, y, text = ([f"{place[column]:,}" for place in places] for column in range(3))
            look = {"look": (ink, symbol, 30 if mark == "runs" else 38), "marker": {"line": {"width": 2}}}
            told = {"text": text, "hover": f"{said}: %{{text}}" if mark == "runs" else said, "showlegend": col == 1}
            traces.marks(panels, f"acquisition-{mark}-{uid}", said, x, y, row=1, col=col, **look, **told)
        title = f"Slots<br>{name}<br>(records/s)" if name else "Slots"
        panels.update_xaxes(title_text=title, categoryorder="array", categoryarray=slots, row=1, col=col)
    panels.update_yaxes(categoryorder="array", categoryarray=memories)
    panels.update_layout(autotypenumbers="strict")  # a live chart's update of data clears an axis type that is set
    panels.update_yaxes(title_text="Memory per slot (MB)", col=1)
    return theme.room_for_legend(panels)


def _place(budget: Budget) -> tuple[int, int]:
    return budget.slots, budget.profile.memory_mb
