"""Topics outside of a query: a bounded sample of a topic as a data set, and a topic filled from a data set."""

from workbench.testbed.spark.kafka.topics import Captured, Limits, capture, fill
