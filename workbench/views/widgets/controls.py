"""Sliders and their kin with their whole description, all of one width; `WhileDragged` has them answer meanwhile."""

from collections.abc import Sequence
from typing import Any

import ipywidgets

_STYLE = {"description_width": "17rem"}
_WIDE = {"width": "100%", "max_width": "46rem"}


def _wide(kind: Any, description: str, value: object, **more: object) -> Any:  # noqa: ANN401 - a kind of widget
    return kind(description=description, value=value, style=_STYLE, layout=_WIDE, **more)


def slider(description: str, value: float, low: float, high: float, step: float, *, form: str = ".2f") -> Any:  # noqa: ANN401
    """Give a slider of numbers; `form` writes the number next to it."""
    ends = {"min": low, "max": high, "step": step}
    return _wide(ipywidgets.FloatSlider, description, value, readout_format=form, continuous_update=False, **ends)


def whole_slider(description: str, value: int, low: int, high: int, *, step: int = 1) -> Any:  # noqa: ANN401
    """Give a slider of whole numbers."""
    return _wide(ipywidgets.IntSlider, description, value, min=low, max=high, step=step, continuous_update=False)


def choice_slider(description: str, options: Sequence[tuple[str, object]], value: object) -> Any:  # noqa: ANN401
    """Give a slider over named choices."""
    return _wide(ipywidgets.SelectionSlider, description, value, options=list(options), continuous_update=False)


def choice(description: str, options: Sequence[tuple[str, object]], value: object) -> Any:  # noqa: ANN401
    """Give a list to choose from."""
    return _wide(ipywidgets.Dropdown, description, value, options=list(options))


def text_field(description: str, value: str) -> Any:  # noqa: ANN401
    """Give a line to type into; it answers at Enter, or when it is left."""
    return _wide(ipywidgets.Text, description, value, continuous_update=False)


def tick(description: str) -> Any:  # noqa: ANN401
    """Give a box to tick."""
    return ipywidgets.Checkbox(description=description, value=False, indent=False, layout={"width": "auto"})


def button(description: str, tooltip: str, icon: str = "") -> Any:  # noqa: ANN401
    """Give a button wide enough for its text."""
    return ipywidgets.Button(description=description, tooltip=tooltip, icon=icon, layout={"width": "auto"})
