"""A live figure: a ``FigureWidget`` that is redrawn in place, and what plotly leaves to be done by hand.

Only this module touches plotly's private names (plotly 7.1); the browser tests fail if they change.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import ipywidgets
import plotly.graph_objects as go

from workbench.views.parts import part, style
from workbench.views.theme import QUIET

Clicked = Callable[[object], None]

_UNSEEN = "workbench-unseen"


class LiveChart:
    """A live plotly `widget`, and its `parts` for a panel; a click calls `on_click` with a mark's ``customdata``."""

    def __init__(self, figure: go.Figure, on_click: Clicked | None = None) -> None:
        self._on_click = on_click
        self.widget = go.FigureWidget(figure)
        self.widget.layout.autosize = True  # not from the template: else it stays 700 pixels wide
        self.widget._config = {**self.widget._config, **QUIET}  # noqa: SLF001
        self._words = ipywidgets.HTML().add_class(_UNSEEN)
        self.parts = (self._words, self.widget)
        self._describe()
        self._listen()

    @property
    def finding(self) -> str:
        """The finding of the figure."""
        return str((self.widget.layout.meta or {}).get("finding", ""))

    def show(self, figure: go.Figure) -> None:
        """Redraw: only differences travel to the page, in one message if the traces are of the same kinds."""
        if [trace.type for trace in figure.data] == [trace.type for trace in self.widget.data]:
            with self.widget.batch_update():
                for mine, other in zip(self.widget.data, figure.data, strict=True):
                    mine.update(_changes(mine.to_plotly_json(), other.to_plotly_json()), overwrite=True)
                self._lay_out(figure)
        else:
            self.widget.data = ()
            self._lay_out(figure)
            self.widget.add_traces(list(figure.data))
            self._listen()
        self.widget._repr_mimebundle_()
        self._describe()

    def click(self, trace: int, point: int) -> None:
        """Run the action of a click on a mark."""
        data = self.widget.data[trace].customdata
        if self._on_click is not None and data is not None:
            self._on_click(data[point])

    def _describe(self) -> None:
        said = (self.widget.layout.meta or {}).get("alternative", self.finding)
        self._words.value = style("unseen.css") + part("chart", said)

    def _lay_out(self, figure: go.Figure) -> None:
        now, wanted = self.widget.layout.to_plotly_json(), figure.layout.to_plotly_json()
        wanted["autosize"] = True
        self.widget.layout.update(_changes(now, wanted), overwrite=True)

    def _listen(self) -> None:
        for number, trace in enumerate(self.widget.data if self._on_click else ()):
            trace.on_click(partial(self._clicked, number))

    def _clicked(self, number: int, _trace: object, points: Any, _state: object) -> None:  # noqa: ANN401
        for point in points.point_inds[:1]:
            self.click(number, point)


def _changes(now: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Properties that turn `now` into `wanted`; those to remove are None, lists empty."""
    gone: dict[str, Any] = {
        key: [] if isinstance(now[key], list | tuple) else None for key in now.keys() - wanted.keys()
    }
    changed = {key: value for key, value in wanted.items() if key not in now or _plain(now[key]) != _plain(value)}
    return {key: value for key, value in (gone | changed).items() if key not in {"uid", "type"}}


def _plain(values: Any) -> object:  # noqa: ANN401
    """Return arrays and tuples as lists, since arrays compare element by element."""
    return values.tolist() if hasattr(values, "tolist") else list(values) if isinstance(values, tuple) else values
