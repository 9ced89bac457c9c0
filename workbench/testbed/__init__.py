"""Testbeds: where a query is deployed under load and observed."""

from workbench.testbed.base import Run, SharedRun, Sharing, Simulated, Testbed, WarmTestbed
from workbench.testbed.fluid import FluidTestbed
from workbench.testbed.pipelined import RecordedRate, RecordedTestbed
from workbench.testbed.spark import SparkTestbed
