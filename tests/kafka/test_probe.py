"""A broker that stops within a probe of Spark's own Kafka source, and is started again."""

import itertools

import pytest

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator, Configuration, Deployed, Probed, measure, result_of
from workbench.study import find_query
from workbench.testbed import SparkTestbed
from workbench.testbed.spark.kafka import fill
from workbench.workload import nexmark
from workbench.workload.kafka import Topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.alone, pytest.mark.rare]

ROWS, MOST_RATE = 4_000_000, 20_000.0  # records, of which a warm-up at all that fits leaves most; records/s
BUDGET = Budget(1, SlotProfile(1.0, 1024), 1.0)
LOOKS = 20  # of the owner at its deployment, between the end of the warm-up and the broker's


@pytest.mark.fault("a broker stops within a probe of Spark's Kafka source")
@pytest.mark.usefixtures("connector")
def test_the_broker_is_named_and_the_measurement_goes_on(broker, tmp_path, journal, monkeypatch, injected):
    monkeypatch.chdir(tmp_path)
    url = broker.url("bids-probed")
    fill(Topic.parse(url), nexmark.query("q1").dataset, ROWS, partitions=2, event_rate=20_000)
    configuration = Configuration(find_query("nexmark:q1", url, "dateTime", source="kafka"), BUDGET)
    estimator = CapacityEstimator(
        0.9, max_probes=2, max_rate=MOST_RATE, warmup_min_s=3.0, warmup_cap_s=5.0, chunk_s=3.0, patience_s=0.0
    )
    looks, armed = itertools.count(), []

    def stop():
        if armed and next(looks) == LOOKS:
            broker.stop()

    def measured(check_owner):
        testbed = SparkTestbed(slot_cpus="cores", warmup_cap_s=5.0, check_owner=check_owner)
        return measure(configuration, testbed, estimator, journal, costs=False)

    probed = []

    def listen(event):
        if isinstance(event, Deployed):  # the first probe begins: the state is filled at its rate
            armed.append(True)
        if isinstance(event, Probed):
            probed.append(event.probe)

    with pytest.raises(WorkbenchError, match=r"^No broker of kafka://.+ answers any longer\. Start it, then") as told:
        result_of(measured(stop), listen)
    injected.seen(str(told.value))
    assert next(looks) > LOOKS
    assert len(journal.entries("probe")) == len(probed)  # of the interrupted probe nothing is counted

    broker.start()
    again = result_of(measured(lambda: None)).estimate
    judged = [probe for probe in again.probes if probe.phase == "probe"]
    assert [probe.number for probe in judged] == list(range(1, 1 + len(judged)))
    assert 0 < again.low <= MOST_RATE
    assert all(probe.observation.consumed_records > 0 for probe in judged)
