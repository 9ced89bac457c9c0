"""Testbeds: where a query is deployed under load and observed."""

from workbench.testbed.base import Run, Testbed
from workbench.testbed.fluid import FluidTestbed
from workbench.testbed.recorded import RecordedRate, RecordedTestbed

__all__ = ["FluidTestbed", "RecordedRate", "RecordedTestbed", "Run", "Testbed"]
