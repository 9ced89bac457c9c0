"""Reports: a notebook, its parameters, one HTML file that opens offline.

Names are imported when first used: notebook tools take seconds that commands without a report need not wait for.
"""

from workbench.report._render import Report, export_executed, render
from workbench.report.html import fetched_urls
from workbench.report.parameters import Parameter, parameters_of
from workbench.report.steps import (
    ask,
    check_capacity,
    measure_study,
    show_capacity,
    show_measurement,
    show_placement,
    show_planned,
    show_scaling,
)
from workbench.report.templates import find_template

__all__ = [
    "Parameter",
    "Report",
    "ask",
    "check_capacity",
    "export_executed",
    "fetched_urls",
    "find_template",
    "measure_study",
    "parameters_of",
    "render",
    "show_capacity",
    "show_measurement",
    "show_placement",
    "show_planned",
    "show_scaling",
]
