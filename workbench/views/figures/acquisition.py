"""What the explorer's Gaussian process expects of each budget, and which one it asks for next."""

from collections import Counter
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.capacity.explore import Question
from workbench.dataflow import Budget
from workbench.views import theme

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
        panels.add_heatmap(
            uid=f"acquisition-{uid}",
            name=name or "space",
            x=slots,
            y=memories,
            z=table,
            customdata=doubt,
            text=[[word(value) if data.mean else "" for value in row] for row in table],
            texttemplate="%{text}",
            colorscale=[[0, "#FFFFFF"], [1, colour]],
            zmin=0,
            zmax=1.6 * max(map(max, table)) or 1.0,  # words stay readable on the darkest cell
            showscale=False,
            xgap=2,
            ygap=2,
            hovertemplate="%{x} slots of %{y} MB"
            + f": {name} %{{z:.3~s}}" * bool(name)
            + " ± %{customdata:.3~s}" * (doubt is not None)
            + " records/s" * bool(name)
            + "<extra></extra>",
            row=1,
            col=col,
        )
        marks = (
            ("runs", "measured, and how often", data.runs, "circle-open", theme.BLACK),
            ("asked", "asked for next", ((*data.asked, 0),), "diamond-open", theme.PURPLE),
        )
        for mark, said, places, symbol, ink in marks:
            panels.add_scatter(
                uid=f"acquisition-{mark}-{uid}",
                name=said,
                x=[f"{place[0]:,}" for place in places],
                y=[f"{place[1]:,}" for place in places],
                text=[f"{place[2]}" for place in places],
                mode="markers",
                marker={"symbol": symbol, "size": 30 if mark == "runs" else 38, "color": ink, "line": {"width": 2}},
                hovertemplate=f"{said}: %{{text}}<extra></extra>" if mark == "runs" else f"{said}<extra></extra>",
                showlegend=col == 1,
                row=1,
                col=col,
            )
        title = f"Slots<br>{name}<br>(records/s)" if name else "Slots"
        panels.update_xaxes(title_text=title, categoryorder="array", categoryarray=slots, row=1, col=col)
    panels.update_yaxes(categoryorder="array", categoryarray=memories)
    panels.update_layout(autotypenumbers="strict")  # a live chart's update of data clears an axis type that is set
    panels.update_yaxes(title_text="Memory per slot (MB)", col=1)
    theme.room_for_legend(panels)
    return panels


def _place(budget: Budget) -> tuple[int, int]:
    return budget.slots, budget.profile.memory_mb
