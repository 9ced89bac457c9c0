"""Widgets with a script in the page: charts as wide as their panel, sliders that answer while dragged, a log."""

from collections.abc import Iterable

import anywidget
import ipywidgets
import traitlets

from workbench.views.parts import read


class FullWidth(anywidget.AnyWidget):
    """Put into a panel: its charts, also behind tabs, take the panel's width when first drawn and when that changes.

    plotly draws before the page knows how wide a figure is, and then listens to the window's resize event only.
    """

    _esm = read("full_width.js")


class LiveLog(anywidget.AnyWidget):
    """Lines as they come; new ones alone are sent and read out. It stays at its end unless its reader scrolls up."""

    lines = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _css = read("log.css")
    _esm = read("live_log.js")


class WhileDragged(anywidget.AnyWidget):
    """Put into a panel: its sliders are continuous from when one is grabbed until let go.

    ipywidgets' own ``continuous_update`` also rounds what is set or typed to the slider's step.
    """

    sliders = traitlets.List(traitlets.Instance(ipywidgets.Widget)).tag(sync=True, **ipywidgets.widget_serialization)
    _esm = read("while_dragged.js")

    def __init__(self, controls: Iterable[ipywidgets.Widget]) -> None:
        super().__init__(sliders=[one for one in controls if one.has_trait("continuous_update")])
