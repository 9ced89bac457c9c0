"""Spark's own Kafka source on executors that do not have the connector."""

import pytest
from standalone_cluster import standalone

from workbench.dataflow import Budget, SlotProfile
from workbench.study import find_query
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import Cluster
from workbench.testbed.spark.kafka import fill
from workbench.workload import nexmark
from workbench.workload.kafka import Topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.alone, pytest.mark.long]

ROWS, RATE = 60_000, 1_000.0  # so few that they run out while the code is warmed up
BUDGET = Budget(1, SlotProfile(1.0, 1024), 1.0)


@pytest.mark.usefixtures("connector")
def test_a_topic_is_read_at_the_rate_that_is_commanded(broker, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = broker.url("bids-on-a-cluster")
    fill(Topic.parse(url), nexmark.query("q1").dataset, ROWS, partitions=2, event_rate=20_000)
    query = find_query("nexmark:q1", url, "dateTime", source="kafka")
    (tmp_path / "workers").mkdir()
    with standalone(tmp_path / "workers") as workers:
        cluster = Cluster(workers.master, (tmp_path / "checkpoints").as_uri(), allocation_s=300.0)
        with SparkTestbed(cluster=cluster, warmup_cap_s=5.0).deploy(query, BUDGET) as run:
            for rate in (RATE, 2 * RATE):
                run.set_rate(rate)
                run.settle(3)
                assert run.observe(8).consumed_rate == pytest.approx(rate, rel=0.2)
        assert "Spark's Kafka source, connector" in run.machine.facts["source"]
        assert workers.executors() == []
