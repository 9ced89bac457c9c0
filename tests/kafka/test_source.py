"""Spark's own Kafka source on a real broker, here and on a cluster: its rates, offsets and columns."""

import itertools
import os
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from one_slot import one_slot
from standalone_cluster import standalone
from topic_session import topic_session

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.study import find_query
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import Cluster
from workbench.testbed.spark.driver.feed import TopicRows, _decoded, _offsets
from workbench.testbed.spark.driver.live import Meter
from workbench.testbed.spark.driver.queries import Queries
from workbench.testbed.spark.kafka import fill
from workbench.testbed.spark.log.event_log import EventLog
from workbench.testbed.spark.machine.broker import offsets_of
from workbench.workload import ENCODED, nexmark, schema_of
from workbench.workload.kafka import HEADERS, Topic, client_settings, java_settings

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.alone, pytest.mark.long]

ROWS, SHORT = 200_000, 12_000
SECRET = "hunter2-in-no-file"  # noqa: S105 - it must be found nowhere


@pytest.fixture(scope="module")
def topics(broker, connector):
    assert connector.exists()
    events = nexmark.query("q1").dataset
    urls = {}
    for name, rows in (("long", ROWS), ("short", SHORT)):
        urls[name] = broker.url(f"bids-{name}")
        fill(Topic.parse(urls[name]), events, rows, partitions=3, event_rate=2_000)
    return urls


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with client settings whose password must go nowhere."""
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / "client.properties"
    for what, name in (("CERTIFICATE", "me.crt"), ("PRIVATE KEY", "me.key")):
        (tmp_path / name).write_text(f"-----BEGIN {what}-----\n{SECRET}\n-----END {what}-----\n")
    settings.write_text(
        f"sasl.mechanism=PLAIN\nsasl.username=me\nsasl.password={SECRET}\nclient.id=workbench\n"
        f"ssl.certificate.location={tmp_path / 'me.crt'}\nssl.key.location={tmp_path / 'me.key'}\n"
    )
    monkeypatch.setenv("WORKBENCH_KAFKA_CONFIG", str(settings))
    return tmp_path


@pytest.fixture(scope="module")
def spark(connector, tmp_path_factory):
    assert connector.exists()
    with topic_session(tmp_path_factory.mktemp("spark"), slots=2, shuffles=2) as opened:
        yield opened


def rows_of(query):
    columns = [column for column in schema_of(query.dataset, query.event_time) if column.name != HEADERS]
    return TopicRows(query.topic, pa.schema(columns))


@pytest.fixture
def running(spark, topics, folder):
    """Start a query on a topic; give it, all queries, and the batches that were committed."""
    session, log = spark
    queries = Queries(session, EventLog(log), Meter(None, os.getpid()), lambda: time.sleep(0.05))

    def start(name):
        query = find_query("nexmark:q1", topics[name], "dateTime", source="kafka")
        spec = replace(one_slot(folder), generator=rows_of(query), build=query.build, output_mode="append")
        live = queries.start(spec, "live", interval_s=1.0)
        live.expect(50_000)
        committed, release = [], live.feed.release

        def noting(log):
            committed.append(log.progress)
            return release(log)

        live.feed.release = noting
        return live, queries, committed

    yield start
    queries.stop()


def offsets(progresses):
    """Pairs (first, last) by partition, in the order of commit."""
    found = defaultdict(list)
    for progress in progresses:
        first = _offsets(progress, "startOffset")
        for part, last in _offsets(progress, "endOffset").items():
            found[part].append((first.get(part, 0), last))
    return found


def test_rates_change_without_a_record_lost_or_read_twice(running, spark):
    live, queries, committed = running("long")
    for rate in (1_000.0, 4_000.0, 500.0):
        live.command(rate)
        done = queries.batches(live, 4)
        assert all(rate - 3 <= one.batch.records <= rate + 3 for one in done)  # a partition rounds
        assert all(one.release.epoch == live.epoch for one in done)
    for pairs in offsets(committed).values():
        assert all(last == following for (_, last), (following, _) in itertools.pairwise(pairs))
    assert SECRET not in spark[1].read_text(encoding="utf-8")


def test_a_topic_that_runs_out_is_read_again_from_its_earliest_offset(running):
    live, queries, committed = running("short")
    live.command(2_000.0)
    epoch = live.epoch
    queries.batches(live, 3)
    while live.epoch == epoch:
        queries.tick()
    assert [one.batch.records >= 1_997 for one in queries.batches(live, 2)] == [True, True]
    assert sum(not _offsets(progress, "startOffset") for progress in committed) == 2


@pytest.mark.usefixtures("folder")
def test_the_columns_are_those_of_the_sample(spark, topics):
    query = find_query("nexmark:q1", topics["short"], "dateTime", source="kafka")
    topic, schema = Topic.parse(query.topic), rows_of(query).schema
    reader = spark[0].read.format("kafka").option("kafka.bootstrap.servers", topic.servers)
    read = reader.option("subscribe", topic.name).load().select(*_decoded(schema))
    assert read.columns == schema.names
    sampled = spark[0].read.parquet(str(Path(query.dataset.path).resolve()))
    chosen = ["_partition", "_offset", "event_type", "bid.price", "bid.bidder", "bid.extra"]
    whole, some = ({tuple(row) for row in rows.select(*chosen).collect()} for rows in (read, sampled))
    assert some <= whole
    assert len(whole) == SHORT
    assert len(some) > 100
    assert read.where("dateTime is null").count() == 0


def test_a_broker_that_asks_for_a_certificate_is_shown_ours(certified_broker, spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = certified_broker.url("bids")
    settings = tmp_path / "client.properties"
    settings.write_text("".join(f"{name}={value}\n" for name, value in certified_broker.client.items()))
    monkeypatch.setenv("WORKBENCH_KAFKA_CONFIG", str(settings))
    topic, ours = Topic.parse(url), client_settings()
    fill(topic, nexmark.query("q1").dataset, SHORT, partitions=1, settings=ours)
    reader = spark[0].read.format("kafka").option("kafka.bootstrap.servers", topic.servers)
    for name, value in java_settings(ours).items():
        reader = reader.option(f"kafka.{name}", value)
    query = find_query("nexmark:q1", url, "dateTime", source="kafka")  # of which a sample is captured
    known = {"security.protocol", "ssl.ca.location"}
    stranger = {name: value for name, value in ours.items() if name in known}
    with pytest.raises(WorkbenchError, match=r"The topic .* cannot be used"):
        offsets_of(topic, stranger)
    for name in ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location"):
        Path(ours[name]).unlink()  # executors elsewhere have none of these files
    read = reader.option("subscribe", topic.name).load().select(*_decoded(rows_of(query).schema))
    assert read.where("dateTime is not null").count() == SHORT


def test_json_behind_a_registry_s_wire_format_is_decoded(spark):
    schema = pa.schema([("a", pa.int64())], {ENCODED: b"framed"})
    values = [b'\0\0\0\0\7{"a": 1}', b'{"a": 2}', None]
    read = spark[0].createDataFrame([(value and bytearray(value),) for value in values], "value binary")
    assert [row.a for row in read.select(*_decoded(schema)).collect()] == [1, 2, None]


FEW, RATE = 60_000, 1_000.0  # so few that they run out while the code is warmed up


@pytest.mark.usefixtures("connector")
def test_executors_of_a_cluster_without_the_connector_read_a_topic_at_the_rate_that_is_commanded(
    broker, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    url = broker.url("bids-on-a-cluster")
    fill(Topic.parse(url), nexmark.query("q1").dataset, FEW, partitions=2, event_rate=20_000)
    query = find_query("nexmark:q1", url, "dateTime", source="kafka")
    (tmp_path / "workers").mkdir()
    with standalone(tmp_path / "workers") as workers:
        cluster = Cluster(workers.master, (tmp_path / "checkpoints").as_uri(), allocation_s=300.0)
        budget = Budget(1, SlotProfile(1.0, 1024), 1.0)
        with SparkTestbed(cluster=cluster, warmup_cap_s=5.0).deploy(query, budget) as run:
            for rate in (RATE, 2 * RATE):
                run.set_rate(rate)
                run.settle(3)
                assert run.observe(8).consumed_rate == pytest.approx(rate, rel=0.2)
        assert "Spark's Kafka source, connector" in run.machine.facts["source"]
        assert workers.executors() == []
