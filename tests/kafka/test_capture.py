"""A topic of a real broker, filled and captured."""

import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from workbench.errors import WorkbenchError
from workbench.workload import Dataset, prepare
from workbench.workload.kafka import Limits, Topic, capture, fill

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    """A data set of 120,000 orders."""
    rows = 120_000
    table = pa.table(
        {
            "order": pa.array(range(rows)),
            "shop": pa.array([f"shop-{number % 97}" for number in range(rows)]),
            "amount": pa.array([number % 1000 / 10 for number in range(rows)]),
        }
    )
    folder = tmp_path_factory.mktemp("orders")
    pq.write_table(table, folder / "orders.parquet")
    return prepare(Dataset(str(folder / "orders.parquet"), "parquet"), None, folder)


@pytest.fixture(scope="module")
def filled(broker, orders):
    topic = Topic.parse(broker.url("orders"))
    sent = fill(topic, orders, 120_000, key="shop", partitions=3)
    assert (sent.rows, sent.partitions) == (120_000, 3)
    return topic


def sent_to(broker, name, messages):
    producer = Producer({"bootstrap.servers": broker.servers})
    for message in messages:
        producer.produce(name, **message)
    producer.flush()
    return Topic.parse(broker.url(name))


def test_what_was_sent_is_captured_once(filled, tmp_path):
    found = capture(filled, tmp_path / "orders.parquet")
    table = pq.read_table(found.path)
    assert (found.rows, found.partitions, found.not_json) == (120_000, 3, 0)
    assert Counter(table["order"].to_pylist()) == Counter(range(120_000))
    assert table["amount"].type == pa.float64()
    assert table["_key"].to_pylist() == table["shop"].to_pylist()
    assert table["_timestamp"].to_pylist() == sorted(table["_timestamp"].to_pylist())
    assert [one.name for one in tmp_path.iterdir()] == ["orders.parquet"]


def test_the_newest_rows_are_captured(filled, tmp_path):
    found = capture(filled, tmp_path / "some.parquet", Limits(rows=3000))
    table = pq.read_table(found.path)
    assert 2900 <= found.rows <= 3000  # records of one millisecond come together
    assert min(table["order"].to_pylist()) > 116_000  # since one moment in all partitions
    assert set(table["_partition"].to_pylist()) == {0, 1, 2}


def test_bytes_bound_a_capture(filled, tmp_path):
    found = capture(filled, tmp_path / "small.parquet", Limits(megabytes=1))
    assert 5_000 < found.rows < 120_000
    assert max(pq.read_table(found.path)["order"].to_pylist()) == 119_999


def test_seconds_bound_a_capture(filled, tmp_path):
    assert capture(filled, tmp_path / "all.parquet", Limits(seconds=3600)).rows == 120_000
    with pytest.raises(WorkbenchError, match="has no records in what was asked for"):
        capture(filled, tmp_path / "none.parquet", Limits(seconds=1e-3))


def test_headers_keys_and_values_that_are_no_json_are_kept(broker, orders, tmp_path):
    topic = Topic.parse(broker.url("mixed"))
    fill(topic, orders, 1, partitions=1)
    sent_to(broker, "mixed", [{"value": b"plain", "key": b"\xff", "headers": [("trace", b"7")]}, {"value": None}])
    found = capture(topic, tmp_path / "mixed.parquet")
    table = pq.read_table(found.path)
    assert found.not_json == 1  # a record without a value is no wrong one
    assert table["value"].to_pylist()[1:] == ["plain", None]
    assert table["_key"].to_pylist() == [None, b"\xff", None]
    assert json.loads(table["_headers"].to_pylist()[1]) == [["trace", "7"]]


def test_few_values_that_are_no_json_leave_their_columns_empty(broker, orders, tmp_path):
    topic = Topic.parse(broker.url("nearly"))
    fill(topic, orders, 500, partitions=1)
    sent_to(broker, "nearly", [{"value": b"{broken"}])
    found = capture(topic, tmp_path / "nearly.parquet")
    assert (found.rows, found.not_json) == (501, 1)
    assert pq.read_table(found.path)["order"].null_count == 1


@pytest.mark.fault("a broker is away when a capture begins", sees="the broker is named, with what to do")
def test_a_broker_that_is_away_is_named_and_a_capture_can_be_repeated(broker, filled, tmp_path):
    target = tmp_path / "orders.parquet"
    broker.stop()
    try:
        with pytest.raises(WorkbenchError, match=r"Check the servers, .*then run the same again"):
            capture(filled, target)
    finally:
        broker.start()
    assert list(tmp_path.iterdir()) == []
    assert capture(filled, target).rows == 120_000


def test_a_topic_that_there_is_not(broker, tmp_path):
    with pytest.raises(WorkbenchError, match=r"/none does not exist.*Check its name"):
        capture(Topic.parse(broker.url("none")), tmp_path / "none.parquet")


def test_a_cluster_that_does_not_answer_is_told_without_the_password(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.workload.kafka._newest.ASK_S", 1.0)
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me"}
    secret = login | {"sasl.password": "hunter2"}
    with pytest.raises(WorkbenchError) as error:
        capture(Topic("127.0.0.1:1", "orders"), tmp_path / "none.parquet", settings=secret)
    assert "Kafka does not give the topic kafka://127.0.0.1:1/orders" in str(error.value)
    assert "hunter2" not in str(error.value)


def test_settings_that_the_client_refuses_are_told_without_secrets(broker, tmp_path):
    with pytest.raises(WorkbenchError) as error:
        capture(
            Topic.parse(broker.url("orders")), tmp_path / "x.parquet", settings={"ssl.key.password": 1, "no.such": "x"}
        )
    assert "The Kafka client refuses its settings: " in str(error.value)
    assert "no.such" in str(error.value)


def test_a_key_that_is_no_column(broker, orders):
    with pytest.raises(WorkbenchError, match="'region' is no column; the columns are order, shop, amount"):
        fill(Topic.parse(broker.url("orders")), orders, 1, key="region")
