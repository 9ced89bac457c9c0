"""How panels are laid out: two sides where there is room, one below the other where not, in the page's own colours."""

import ipywidgets

from workbench.views.parts import style

PANEL, SIDES, CONTROLS, ROW, PAIR, LOOP = (
    f"workbench-{name}" for name in ("panel", "sides", "controls", "row", "pair", "loop")
)


def styled(*parts: ipywidgets.Widget) -> tuple[ipywidgets.Widget, ...]:
    """Give a panel's parts with their style."""
    return (*parts, ipywidgets.HTML(style("panel.css", "dark.css"), layout={"display": "none"}))


def grid(kind: str, *parts: ipywidgets.Widget) -> ipywidgets.Box:
    """Put parts beside each other where there is room: ``SIDES``, ``ROW``, ``PAIR``, or ``LOOP`` (two by two)."""
    return ipywidgets.Box(parts).add_class(kind)


def folded(title: str, *parts: ipywidgets.Widget) -> ipywidgets.Accordion:
    """Put less used parts behind their title."""
    return ipywidgets.Accordion([ipywidgets.VBox(parts)], titles=(title,), selected_index=None)
