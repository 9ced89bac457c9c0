"""A paper's figures next to ours, with its queries, jobs and workloads to choose from."""

import ipywidgets

from workbench.papers import Paper, PaperFigure
from workbench.views.paper_cards import figure_cards
from workbench.views.widgets.panel import CardsView, Panel, choice


class PaperFigureView(ipywidgets.VBox):  # type: ignore[misc]
    """One figure; with several inputs, below a list of them that draws it again."""

    def __init__(self, paper: Paper, figure: PaperFigure) -> None:
        self._paper, self._figure = paper, figure
        self.choice = None
        super().__init__()
        if figure.inputs:
            self.choice = choice(f"{figure.number} for", [(one, one) for one in figure.inputs], figure.inputs[0])
            self.choice.observe(self._draw, "value")
        self._draw()

    def _draw(self, _change: object = None) -> None:
        chosen = None if self.choice is None else self.choice.value
        shown = CardsView(figure_cards(self._paper, self._figure, chosen))
        self.children = (shown,) if self.choice is None else (self.choice, shown)


class PaperPanel(Panel):
    """All figures of a paper that are here."""

    def __init__(self, paper: Paper) -> None:
        self.views = {one.number: PaperFigureView(paper, one) for one in paper.figures if one.make is not None}
        super().__init__(*self.views.values())
