"""Testbeds: where a query is deployed under load and observed."""

from workbench.testbed.base import Run, Testbed

__all__ = ["Run", "Testbed"]
