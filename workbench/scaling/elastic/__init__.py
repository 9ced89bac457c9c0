"""Elastic executors (Elasticutor): how many cores, which ones, and how shards spread over them."""

from workbench.scaling.elastic._controllers import ElasticSettings
from workbench.scaling.elastic._queues import ElasticCluster, KeyedOperator
from workbench.scaling.elastic.assignment import Assignment, assign_cores
from workbench.scaling.elastic.jackson import CoreAllocation, allocate_cores, erlang_c, jackson_latency
from workbench.scaling.elastic.paradigms import PARADIGMS, Paradigm, ParadigmRun, compare_paradigms, simulate_paradigm
from workbench.scaling.elastic.shards import ExecutorAdvice, ShardPlan, advise_executors, rebalance_shards
