"""Sliders and their kin with their whole description, all of one width; they work from the keyboard.

`WhileDragged` makes them answer while they are dragged.
"""

from collections.abc import Sequence
from typing import Any

import ipywidgets

_STYLE = {"description_width": "17rem"}
_WIDE = {"width": "100%", "max_width": "46rem"}


def slider(description: str, value: float, low: float, high: float, step: float, *, form: str = ".2f") -> Any:  # noqa: ANN401
    """Give a slider of numbers; `form` writes the number next to it."""
    return ipywidgets.FloatSlider(
        description=description,
        value=value,
        min=low,
        max=high,
        step=step,
        readout_format=form,
        continuous_update=False,
        style=_STYLE,
        layout=_WIDE,
    )


def whole_slider(description: str, value: int, low: int, high: int, *, step: int = 1) -> Any:  # noqa: ANN401
    """Give a slider of whole numbers."""
    return ipywidgets.IntSlider(
        description=description,
        value=value,
        min=low,
        max=high,
        step=step,
        continuous_update=False,
        style=_STYLE,
        layout=_WIDE,
    )


def choice_slider(description: str, options: Sequence[tuple[str, object]], value: object) -> Any:  # noqa: ANN401
    """Give a slider over named choices."""
    return ipywidgets.SelectionSlider(
        description=description,
        options=list(options),
        value=value,
        continuous_update=False,
        style=_STYLE,
        layout=_WIDE,
    )


def choice(description: str, options: Sequence[tuple[str, object]], value: object) -> Any:  # noqa: ANN401
    """Give a list to choose from."""
    return ipywidgets.Dropdown(description=description, options=list(options), value=value, style=_STYLE, layout=_WIDE)


def text_field(description: str, value: str) -> Any:  # noqa: ANN401
    """Give a line to type into; it answers at Enter, or when it is left."""
    return ipywidgets.Text(description=description, value=value, continuous_update=False, style=_STYLE, layout=_WIDE)


def tick(description: str, value: bool = False) -> Any:  # noqa: ANN401
    """Give a box to tick."""
    return ipywidgets.Checkbox(description=description, value=value, indent=False, layout={"width": "auto"})


def button(description: str, tooltip: str, icon: str = "") -> Any:  # noqa: ANN401
    """Give a button wide enough for its text."""
    return ipywidgets.Button(description=description, tooltip=tooltip, icon=icon, layout={"width": "auto"})
