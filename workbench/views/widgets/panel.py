"""Parts of panels: layout, controls, widgets with a script in the page, cards, errors of callbacks, slow drawing.

Only this module touches plotly's private names (plotly 7.1), to redraw a figure in place; the browser tests fail if
they change.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import anywidget
import ipywidgets
import plotly.graph_objects as go
import traitlets
from IPython.core.getipython import get_ipython

from workbench.views.cards import Card, error_card, outputs
from workbench.views.parts import cards_style, part, read, style
from workbench.views.theme import QUIET

PANEL, SIDES, CONTROLS, ROW, PAIR, LOOP = (
    f"workbench-{name}" for name in ("panel", "sides", "controls", "row", "pair", "loop")
)


def grid(kind: str, *parts: ipywidgets.Widget) -> ipywidgets.Box:
    """Put parts next to each other if there is room: ``SIDES``, ``ROW``, ``PAIR``, or ``LOOP`` (two by two)."""
    return ipywidgets.Box(parts).add_class(kind)


def folded(title: str, *parts: ipywidgets.Widget) -> ipywidgets.Accordion:
    """Put less used parts behind their title."""
    return ipywidgets.Accordion([ipywidgets.VBox(parts)], titles=(title,), selected_index=None)


_STYLE = {"description_width": "17rem"}
_WIDE = {"width": "100%", "max_width": "46rem"}


def _wide(kind: Any, description: str, value: object, **more: object) -> Any:  # noqa: ANN401 - a kind of widget
    return kind(description=description, value=value, style=_STYLE, layout=_WIDE, **more)


def slider(description: str, value: float, low: float, high: float, step: float, *, form: str = ".2f") -> Any:  # noqa: ANN401
    """Make a slider of numbers; `form` writes the number next to it."""
    ends = {"min": low, "max": high, "step": step}
    return _wide(ipywidgets.FloatSlider, description, value, readout_format=form, continuous_update=False, **ends)


def whole_slider(description: str, value: int, low: int, high: int, *, step: int = 1) -> Any:  # noqa: ANN401
    """Make a slider of whole numbers."""
    return _wide(ipywidgets.IntSlider, description, value, min=low, max=high, step=step, continuous_update=False)


def choice_slider(description: str, options: Sequence[tuple[str, object]], value: object) -> Any:  # noqa: ANN401
    """Make a slider over named choices."""
    return _wide(ipywidgets.SelectionSlider, description, value, options=list(options), continuous_update=False)


def choice(description: str, options: Sequence[tuple[str, object]], value: object) -> Any:  # noqa: ANN401
    """Make a list to choose from."""
    return _wide(ipywidgets.Dropdown, description, value, options=list(options))


def text_field(description: str, value: str) -> Any:  # noqa: ANN401
    """Make a line to type into; it reports a change at Enter, or when it loses the focus."""
    return _wide(ipywidgets.Text, description, value, continuous_update=False)


def tick(description: str) -> Any:  # noqa: ANN401
    """Make a box to tick."""
    return ipywidgets.Checkbox(description=description, value=False, indent=False, layout={"width": "auto"})


def button(description: str, tooltip: str, icon: str = "") -> Any:  # noqa: ANN401
    """Make a button wide enough for its text."""
    return ipywidgets.Button(description=description, tooltip=tooltip, icon=icon, layout={"width": "auto"})


class FullWidth(anywidget.AnyWidget):
    """Add to a panel: its charts, also in tabs, take the panel's width when first drawn and when it changes.

    plotly draws before the page knows how wide a figure is, and then listens to the window's resize event only.
    """

    _esm = read("full_width.js")


class LiveLog(anywidget.AnyWidget):
    """A log of lines; only new ones are sent and read out. It stays at its end unless its reader scrolls up."""

    lines = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _css = read("log.css")
    _esm = read("live_log.js")


class WhileDragged(anywidget.AnyWidget):
    """Makes a panel's sliders continuous from when one is grabbed until it is released.

    ipywidgets' own ``continuous_update`` also rounds what is set or typed to the slider's step.
    """

    sliders = traitlets.List(traitlets.Instance(ipywidgets.Widget)).tag(sync=True, **ipywidgets.widget_serialization)
    _esm = read("while_dragged.js")

    def __init__(self, controls: Iterable[ipywidgets.Widget]) -> None:
        super().__init__(sliders=[one for one in controls if one.has_trait("continuous_update")])


class Panel(ipywidgets.VBox):  # type: ignore[misc]
    """Parts in the look of a panel; the sliders that are `dragged` are continuous meanwhile."""

    def __init__(self, *parts: ipywidgets.Widget, dragged: Sequence[ipywidgets.Widget] = ()) -> None:
        look = ipywidgets.HTML(style("panel.css", "dark.css"), layout={"display": "none"})
        super().__init__([*parts, *([WhileDragged(dragged)] if dragged else []), FullWidth(), look])
        self.add_class(PANEL)


class ErrorArea:
    """The place for errors of a panel's callbacks: its `widget` in the panel, which is empty if there are none."""

    def __init__(self) -> None:
        self.widget = ipywidgets.HTML()

    def guard(self, callback: Callable[..., object]) -> Callable[..., None]:
        """Wrap `callback`: a call removes the last error's card, and an exception becomes a card."""

        def guarded(*arguments: Any) -> None:  # noqa: ANN401
            self.clear()
            try:
                callback(*arguments)
            except Exception as error:  # noqa: BLE001 - shown, and nobody else would
                self.show(type(error).__name__, str(error))

        return guarded

    def on(self, action: Callable[[], object], *controls: Any) -> None:  # noqa: ANN401
        """Run `action` when a button is clicked, or the value of another control moves; see `guard`."""
        guarded = self.guard(lambda _: action())
        for control in controls:
            if isinstance(control, ipywidgets.Button):
                control.on_click(guarded)
            else:
                control.observe(guarded, names=["value"])

    def show(self, kind: str, message: str) -> None:
        """Show an error; see `error_card`."""
        self.widget.value = cards_style() + part("alert", error_card(kind, message).heading_html())

    def clear(self) -> None:
        """Remove the card."""
        self.widget.value = ""


_PAUSE_S = 0.15


def _kernels() -> asyncio.AbstractEventLoop | None:
    if getattr(get_ipython(), "kernel", None) is None:
        return None  # a loop may run for something else, and no page waits for it
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Throttled:
    """Run the newest of many jobs: at once if the last one is long done, else when the pause is over.

    The pause, `pause_s` seconds, lets the page draw. The `loop` that waits is the kernel's; without one, nothing waits.
    """

    def __init__(
        self, pause_s: float = _PAUSE_S, loop: Callable[[], asyncio.AbstractEventLoop | None] = _kernels
    ) -> None:
        self._pause_s, self._loop = pause_s, loop
        self._newest: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._free_s = 0.0

    def do(self, job: Callable[[], None]) -> None:
        """Run `job` in place of a waiting one."""
        loop = self._loop()
        if loop is None:
            job()
            return
        self._newest = job
        if self._timer is None:
            wait_s = self._free_s - loop.time()
            if wait_s > 0:
                self._timer = loop.call_later(wait_s, self._do_newest)
            else:
                self._do_newest()

    def drop(self) -> None:
        """Drop the waiting job."""
        self._newest = None

    def _do_newest(self) -> None:
        self._timer, job, self._newest = None, self._newest, None
        if job is None:
            return
        try:
            job()
        finally:
            if (loop := self._loop()) is not None:
                self._free_s = loop.time() + self._pause_s


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
        self.alarm = ErrorArea()
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
