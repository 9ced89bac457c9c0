"""Testbeds: where a query is deployed under load and observed."""

from workbench.testbed.base import Run, SharedRun, Sharing, Simulated, Testbed
from workbench.testbed.fluid import FluidTestbed
from workbench.testbed.recorded import RecordedRate, RecordedTestbed
from workbench.testbed.spark import SparkTestbed
from workbench.testbed.warm import WarmTestbed
