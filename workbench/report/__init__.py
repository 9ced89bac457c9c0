"""Reports: a notebook, its parameters, one HTML file that opens offline."""

from workbench.report._render import Report, render
from workbench.report.html import fetched_urls
from workbench.report.templates import find_template

__all__ = ["Report", "fetched_urls", "find_template", "render"]
