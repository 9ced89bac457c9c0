"""Topics outside of a query: a bounded sample of one as a data set, and one filled from a data set."""

from workbench.testbed.spark.kafka.filling import Filled, fill
from workbench.testbed.spark.kafka.sample import Captured, Limits, capture
