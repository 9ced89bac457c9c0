"""Spark as a testbed."""

from workbench.testbed.spark.cluster import LOCAL, Cluster
from workbench.testbed.spark.driver.feed import TopicRows
from workbench.testbed.spark.driver.live import Meter
from workbench.testbed.spark.driver.queries import Queries
from workbench.testbed.spark.driver.session import batch_session
from workbench.testbed.spark.driver.source_and_sink import write_cost
from workbench.testbed.spark.log.event_log import BatchLog, EventLog, Events, is_topic, rows_of, seconds_of
from workbench.testbed.spark.log.operators import SourceCost, alike, executor_paces, operator_edges, operator_metrics
from workbench.testbed.spark.look import Finding, look_at
from workbench.testbed.spark.machine.java import WITHOUT_FORKS, compile_into, connector_jars, find_java, sink_packages
from workbench.testbed.spark.machine.quota import CpuQuota, left_over, quota_permitted, removal, usable_cores
from workbench.testbed.spark.scripted import look_at_script
from workbench.testbed.spark.testbed import SLOT_SHARE, SparkTestbed, cores_for_slots
