"""Spark as a testbed."""

from workbench.testbed.spark.testbed import SparkRun, SparkTestbed

__all__ = ["SparkRun", "SparkTestbed"]
