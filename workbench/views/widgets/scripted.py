"""Widgets with a script in the page: charts as wide as their panel, sliders that answer while dragged, a log."""

from collections.abc import Iterable

import anywidget
import ipywidgets
import traitlets

from workbench.views.parts import read


class FullWidth(anywidget.AnyWidget):
    """Put into a panel: its charts get the panel's width when they are first drawn and when that width changes.

    So do those behind a tab, when it is opened. plotly draws a live figure before the page knows how wide it is, and
    its responsive charts listen to the window's resize event only.
    """

    _esm = read("full_width.js")


class LiveLog(anywidget.AnyWidget):
    """Lines as they come. It stays at its end unless its reader has scrolled up; new lines alone are read out.

    A page is sent all lines, and adds those that are new, so that nobody loses their place.
    """

    lines = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _css = read("log.css")
    _esm = read("live_log.js")


class WhileDragged(anywidget.AnyWidget):
    """Put into a panel: those of its controls that are sliders are continuous from when one is grabbed until let go.

    ipywidgets' own ``continuous_update`` would do more: the page then rounds every value that is set or typed to the
    slider's step, and sends that back, so that neither a planned rate nor a price of the list would stay what it is.
    Messages do not pile up: ipywidgets holds a slider's next one back until the kernel is done with the last.
    """

    sliders = traitlets.List(traitlets.Instance(ipywidgets.Widget)).tag(sync=True, **ipywidgets.widget_serialization)
    _esm = read("while_dragged.js")

    def __init__(self, controls: Iterable[ipywidgets.Widget]) -> None:
        super().__init__(sliders=[one for one in controls if one.has_trait("continuous_update")])
