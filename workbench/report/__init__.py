"""Reports: a notebook, its parameters, one HTML file that opens offline.

Names are imported when first used: notebook tools take seconds that commands without a report need not wait for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.report._render import Report, export_executed, render
    from workbench.report.html import fetched_urls
    from workbench.report.parameters import Parameter, parameters_of
    from workbench.report.steps import (
        ask,
        check_capacity,
        find_template,
        measure_study,
        show_capacity,
        show_measurement,
        show_observed,
        show_papers,
        show_placement,
        show_planned,
        show_scaling,
    )

_PLACES = {"Parameter": "parameters", "parameters_of": "parameters", "fetched_urls": "html"}  # the others are steps
_PLACES |= dict.fromkeys(("Report", "export_executed", "render"), "_render")


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name represents
    """Import what `name` represents."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES.get(name, 'steps')}"), name)
