"""Addresses of topics, names of a sample's columns, and client settings whose secrets are never shown."""

import pytest

from workbench.errors import WorkbenchError
from workbench.workload.kafka import CLIENT_CONFIG, Topic, client_settings, field_of, named


def test_an_address():
    topic = Topic.parse("kafka://a.example:9092,[::1]:9093/orders.v1-x_y")
    assert topic == Topic("a.example:9092,[::1]:9093", "orders.v1-x_y")
    assert Topic.parse(topic.url) == topic


NONE = ("localhost/orders", "localhost:9092", ":9092/x", "h:1/a/b", "h:1/a b", "h:1/t?sasl.password=hunter2")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        *((address, "it must be kafka://HOST:PORT/TOPIC") for address in NONE),
        ("me:hunter2@localhost:9092/orders", "must not hold a user or a password"),
    ],
)
def test_what_is_no_address_is_refused_and_no_password_told(address, said):
    with pytest.raises(WorkbenchError, match=said) as error:
        Topic.parse(f"kafka://{address}")
    assert "hunter2" not in str(error.value)


def test_client_settings(tmp_path, monkeypatch):
    monkeypatch.delenv(CLIENT_CONFIG, raising=False)
    assert client_settings() == {}
    file = tmp_path / "client.properties"
    file.write_text("# ours\n\nsecurity.protocol = SSL\nsasl.password=a=b\n")
    assert client_settings(file) == {"security.protocol": "SSL", "sasl.password": "a=b"}
    monkeypatch.setenv(CLIENT_CONFIG, str(file))
    assert client_settings()["security.protocol"] == "SSL"


@pytest.mark.parametrize(
    ("text", "said"),
    [("hunter2", "Line 1 .* is not of the form name=value"), ("\ngroup.id=x", "Line 2 .* sets group.id, which")],
)
def test_bad_client_settings_are_named_by_line(tmp_path, text, said):
    file = tmp_path / "client.properties"
    file.write_text(text)
    with pytest.raises(WorkbenchError, match=said) as error:
        client_settings(file)
    assert "hunter2" not in str(error.value)
    with pytest.raises(WorkbenchError, match="cannot be read: No such file"):
        client_settings(tmp_path / "none")


def test_fields_with_a_name_that_is_ours_get_another():
    found = named(["order", "_key", "_key_", "value"])
    assert found == {"order": "order", "_key_": "_key", "_key__": "_key_", "value_": "value"}
    assert [*map(field_of, ("order", "_key_", "value_", "_offset"))] == ["order", "_key", "value", "_offset"]
