"""Errors inside callbacks: a notebook shows them nowhere, so they are shown as a card in the panel."""

from collections.abc import Callable
from typing import Any

import ipywidgets

from workbench.views.cards import error_card
from workbench.views.parts import cards_style, part


class Alarm:
    """Where the errors of a panel's callbacks show: its `widget` in the panel, which is empty while all is well."""

    def __init__(self) -> None:
        self.widget = ipywidgets.HTML()

    def guard(self, callback: Callable[..., object]) -> Callable[..., None]:
        """Wrap `callback`: a call takes the card of the one before away, and what it raises becomes a card."""

        def guarded(*arguments: Any) -> None:  # noqa: ANN401
            self.clear()
            try:
                callback(*arguments)
            except Exception as error:  # noqa: BLE001 - shown, and nobody else would
                self.ring(type(error).__name__, str(error))

        return guarded

    def on(self, action: Callable[[], object], *controls: Any) -> None:  # noqa: ANN401
        """Do `action` when a button is clicked, or the value of another control moves; see `guard`."""
        guarded = self.guard(lambda _: action())
        for control in controls:
            if isinstance(control, ipywidgets.Button):
                control.on_click(guarded)
            else:
                control.observe(guarded, names=["value"])

    def ring(self, kind: str, message: str) -> None:
        """Show an error; see `error_card`."""
        self.widget.value = cards_style() + part("alert", error_card(kind, message).heading_html())

    def clear(self) -> None:
        """Take the card away."""
        self.widget.value = ""
