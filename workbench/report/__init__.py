"""Reports: a notebook, its parameters, one HTML file that opens offline."""

from workbench.report._render import Report, export_executed, render
from workbench.report.html import fetched_urls
from workbench.report.parameters import Parameter, parameters_of
from workbench.report.templates import find_template

__all__ = ["Parameter", "Report", "export_executed", "fetched_urls", "find_template", "parameters_of", "render"]
