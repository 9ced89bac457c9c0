"""Reports: a notebook, its parameters, one HTML file that opens offline.

Names are imported when first used: notebook tools take seconds that commands without a report need not wait for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.report._render import Report, export_executed, fetched_urls, render
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

_NAMES = {
    "_render": "Report export_executed fetched_urls render",
    "parameters": "Parameter parameters_of",
    "steps": "ask check_capacity find_template measure_study show_capacity show_measurement show_observed show_papers "
    "show_placement show_planned show_scaling",
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name represents
    """Import what `name` represents."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
