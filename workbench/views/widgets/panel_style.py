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
    """Put parts next to each other where there is room, else one below the other.

    ``SIDES`` has controls to the left of what they change, ``ROW`` as many parts as there is room for, ``PAIR`` two
    things, and ``LOOP`` figures two by two where each has room for two panels.
    """
    return ipywidgets.Box(parts).add_class(kind)


def folded(title: str, *parts: ipywidgets.Widget) -> ipywidgets.Accordion:
    """Put less used parts behind their title."""
    return ipywidgets.Accordion([ipywidgets.VBox(parts)], titles=(title,), selected_index=None)
