"""Results inside a live panel: cards, at once or when long work is done."""

from collections.abc import Callable, Iterable
from typing import Any

import ipywidgets

from workbench.views.cards import Card, outputs
from workbench.views.parts import cards_style
from workbench.views.widgets import panel


class CardsView(ipywidgets.Output):  # type: ignore[misc]
    """Cards as a widget: their figures are plain, so the page carries the chart library once."""

    def __init__(self, cards: Iterable[Card]) -> None:
        bundles = [{"text/html": cards_style()}, *(bundle for card in cards for bundle in outputs(card))]
        shown = ({"output_type": "display_data", "data": bundle, "metadata": {}} for bundle in bundles)
        super().__init__(outputs=tuple(shown))


class Deferred(ipywidgets.VBox):  # type: ignore[misc]
    """A place for cards or a widget that `build` makes from a result; until then a card announces it."""

    def __init__(self, title: str, build: Callable[[Any], Any]) -> None:
        self._build = build
        self.alarm = panel.ErrorArea()
        waiting = Card("later", title, "It appears here when the work above is done.", kind="not-yet")
        super().__init__([ipywidgets.HTML(cards_style() + waiting.heading_html())])

    def fill(self, result: object) -> None:
        """Show `result`; an error while building shows as a card."""
        self.alarm.guard(self._fill)(result)
        if self.alarm.widget.value:
            self.children = (self.alarm.widget,)

    def _fill(self, result: object) -> None:
        made = self._build(result)
        self.children = (made if isinstance(made, ipywidgets.Widget) else CardsView(made),)
