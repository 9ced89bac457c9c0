"""Kafka as the sink of a deployment: a topic of its own gets the rows, and is deleted."""

from dataclasses import replace

import job_with_sinks
import pytest
from toy_query import query

from workbench.dataflow import Budget, SlotProfile
from workbench.doctor import quota_permitted
from workbench.errors import QueryError
from workbench.records import JobSettings
from workbench.testbed import SparkTestbed
from workbench.testbed.spark.machine.broker import offsets_of, reached, topic_next_to
from workbench.workload.kafka import Topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

FRACTIONS = quota_permitted()
BUDGET = Budget(2, SlotProfile(0.4, 600), 1.0) if FRACTIONS else Budget(1, SlotProfile(1.0, 1200), 1.0)
PARTITIONS = 3


@pytest.mark.alone
@pytest.mark.long
def test_rows_go_to_a_topic_of_their_own_which_is_deleted(broker, connector):
    assert connector.exists()
    asked = Topic.parse(broker.url("out"))
    with reached(asked, {}) as there:
        there.made(PARTITIONS)

        def topics():
            return set(there.consumer.listTopics().keySet())

        testbed = SparkTestbed(
            slot_cpus="auto" if FRACTIONS else "cores", warmup_cap_s=4, settings=JobSettings(sink=asked.url)
        )
        with testbed.deploy(replace(query(job_with_sinks.texts), name="texts"), BUDGET) as run:
            (own,) = (name for name in topics() if name.startswith("out-workbench-"))
            before = offsets_of(replace(asked, name=own), {}, there.jvm)
            run.set_rate(2_000.0)
            seen = run.observe(4)
            after = offsets_of(replace(asked, name=own), {}, there.jvm)
        assert own not in topics()
    assert len(after) == PARTITIONS
    written = sum(end for _, end in after.values()) - sum(end for _, end in before.values())
    assert written >= seen.consumed_records > 0
    assert sum(end for _, end in offsets_of(asked, {}).values()) == 0
    assert run.machine.facts["sink"] == "kafka"


def test_a_sink_that_no_budget_can_reach_is_named_as_the_study_names_it(connector):
    assert connector.exists()
    refused = r"The topic kafka://localhost:1/out cannot be used"
    with pytest.raises(QueryError, match=refused), topic_next_to(Topic.parse("kafka://localhost:1/out"), "own", {}):
        pass
