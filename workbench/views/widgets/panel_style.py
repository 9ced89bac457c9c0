"""How panels are laid out: two sides where there is room, one below the other where not, in the page's own colours."""

import ipywidgets

from workbench.views.parts import style

PANEL, SIDES, CONTROLS, ROW, PAIR, LOOP = (
    f"workbench-{name}" for name in ("panel", "sides", "controls", "row", "pair", "loop")
)


def styled(*parts: ipywidgets.Widget) -> tuple[ipywidgets.Widget, ...]:
    """Give a panel's parts with their style."""
    return (*parts, ipywidgets.HTML(style("panel.css", "dark.css"), layout={"display": "none"}))


def sides(controls: ipywidgets.Widget, results: ipywidgets.Widget) -> ipywidgets.Box:
    """Put controls to the left of what they change, or above it on a narrow page."""
    return _grid(SIDES, controls.add_class(CONTROLS), results)


def row(*controls: ipywidgets.Widget) -> ipywidgets.Box:
    """Put controls next to each other, as many as there is room for."""
    return _grid(ROW, *controls).add_class(CONTROLS)


def pair(*parts: ipywidgets.Widget) -> ipywidgets.Box:
    """Put two things side by side."""
    return _grid(PAIR, *parts)


def loop(*figures: ipywidgets.Widget) -> ipywidgets.Box:
    """Put figures two by two where each has room for two panels, else one below the other."""
    return _grid(LOOP, *figures)


def folded(title: str, *parts: ipywidgets.Widget) -> ipywidgets.Accordion:
    """Put less used parts behind their title."""
    return ipywidgets.Accordion([ipywidgets.VBox(parts)], titles=(title,), selected_index=None)


def _grid(name: str, *parts: ipywidgets.Widget) -> ipywidgets.Box:
    return ipywidgets.Box(parts).add_class(name)
