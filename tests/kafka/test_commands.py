"""``workbench fill`` and ``workbench capture`` against a real broker, and a topic as a study's data set."""

import json
import time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kafka_records import framed, sent_to, text, union

from workbench.cli import main
from workbench.study import find_query

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.usefixtures("connector")]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "myjobs.py").write_text("def all_of(rows):\n    return rows\n")


def test_events_go_to_a_topic_and_come_back(broker, capsys):
    url = broker.url("bids")
    assert main(["fill", url, "nexmark", "--rows", "20000", "--partitions", "2", "--json"]) == 0
    sent = json.loads(capsys.readouterr().out)
    assert (sent["rows"], sent["partitions"]) == (20_000, 2)
    assert main(["capture", url, "bids.parquet"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("20,000 records of bids, ")
    assert "data set: " in said
    assert pq.read_table("bids.parquet").num_rows == 20_000


@pytest.mark.long
def test_a_file_goes_to_a_topic_with_its_keys(broker, capsys, tmp_path):
    (tmp_path / "orders.csv").write_text("shop,amount\n" + "".join(f"s{n % 3},{n}\n" for n in range(30)))
    url = broker.url("shops")
    assert main(["fill", url, "orders.csv", "--rows", "90", "--key", "shop", "--partitions", "3"]) == 0
    assert main(["capture", url, "shops.parquet", "--json"]) == 0
    told = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert told["rows"] == 90
    table = pq.read_table("shops.parquet")
    places = {
        (key, place) for key, place in zip(table["_key"].to_pylist(), table["_partition"].to_pylist(), strict=True)
    }
    assert len(places) == 3  # a key is in one partition


@pytest.mark.alone
@pytest.mark.long
def test_avro_values_in_a_registry_s_wire_format_become_columns(broker, capsys):
    money = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    fields = [{"name": "shop", "type": "string"}, {"name": "amount", "type": ["null", money]}]
    order = {"type": "record", "name": "Order", "fields": fields}
    records, now_ms = [], int(1000 * time.time())
    for number in range(300):
        amount = union(1, text(number.to_bytes(2, "big"))) if number % 2 else union(0)
        records.append((now_ms + number, framed(7, text(f"s{number % 3}") + amount)))
    sent_to(broker, "avro", records)
    url = broker.url("avro")
    for number in (8, 7):
        Path("order.json").write_text(json.dumps({"id": number, "schema": json.dumps(order)}))
        assert main(["capture", url, "avro.parquet", "--schema", "order.json"]) == (2 if number == 8 else 0)
    told = capsys.readouterr()
    assert "300 of 300 values of" in told.err
    assert "with the schema id 7. Name the schema" in told.err
    table = pq.read_table("avro.parquet")
    assert (table["amount"].type, table["amount"].null_count) == (pa.decimal128(9, 2), 150)
    assert max(filter(None, table["amount"].to_pylist())) == Decimal("2.99")
    query = find_query("myjobs:all_of", url, "_timestamp", schema="order.json")
    assert pq.read_table(query.dataset.path)["shop"].to_pylist() == table["shop"].to_pylist()
    assert main(["fill", url, "avro.parquet", "--rows", "1"]) == 2
    assert "whose values are Avro, which is not written here" in capsys.readouterr().err


@pytest.mark.long
def test_a_topic_is_a_data_set_that_is_captured_once(broker):
    url = broker.url("data")
    assert main(["fill", url, "nexmark", "--rows", "500"]) == 0
    query = find_query("myjobs:all_of", url, "_timestamp")
    assert pq.read_table(query.dataset.path).num_rows == 500
    assert main(["fill", url, "nexmark", "--rows", "500"]) == 0
    assert pq.read_table(find_query("myjobs:all_of", url, "_timestamp").dataset.path).num_rows == 500


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (["capture", "kafka://localhost/orders", "x.parquet"], "it must be kafka://HOST:PORT/TOPIC"),
        (["capture", "kafka://h:1/orders", "x.parquet", "--rows", "0"], "rows is 0"),
        (["fill", "kafka://h:1/orders", "none.csv"], "'none.csv' does not exist"),
    ],
)
def test_bad_input_is_named(command, text, capsys):
    assert main(command) == 2
    assert text in capsys.readouterr().err
