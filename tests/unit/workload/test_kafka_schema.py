"""Values that have a schema: the file of it, and what the command says of values that do not decode."""

import json
from pathlib import Path

import pytest

from workbench.cli import main, topics
from workbench.errors import WorkbenchError
from workbench.testbed.spark.kafka import Captured
from workbench.workload.kafka import Schema, field_of, named, read_schema

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "order", "type": "long"}, {"name": "shop", "type": ["null", "string"], "default": None}],
}


def avro(definition=ORDER, number=None):
    return Schema(Path("order.avsc"), "AVRO", definition, number)


def test_what_a_registry_hands_out_is_read(tmp_path):
    file = tmp_path / "s.json"
    for content, kind, number in (
        (ORDER, "AVRO", None),
        ({"schema": json.dumps(ORDER)}, "AVRO", None),
        ({"subject": "orders-value", "version": 2, "id": 7, "schema": json.dumps(ORDER)}, "AVRO", 7),
        ({"schema": json.dumps(ORDER), "schemaType": "AVRO", "id": 7}, "AVRO", 7),
        ({"schema": '{"type": "object"}', "schemaType": "JSON"}, "JSON", None),
    ):
        file.write_text(json.dumps(content))
        found = read_schema(file)
        assert (found.kind, found.number) == (kind, number)
        assert found.definition == (ORDER if kind == "AVRO" else {"type": "object"})
    digests = {avro().digest, avro(number=7).digest, avro({**ORDER, "name": "Bid"}).digest}
    assert len(digests) == 3
    assert Schema(Path("other.avsc"), "AVRO", dict(reversed(ORDER.items()))).digest == avro().digest


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, r"The schema s.json cannot be read: No such file or directory. Check the path"),
        ("{", r"The schema s.json is not JSON: .*It must be an Avro record"),
        ("[1]", r"is \[1\]; it must be an Avro record"),
        ({"type": "enum", "name": "E", "symbols": []}, r"has the type 'enum'; it must be a record"),
        ({}, r"has the type None; it must be a record"),
        ({"type": "object"}, r"is a JSON Schema. JSON values become columns without one: leave it out"),
        ({"schema": "{"}, r"has a text 'schema' that is not JSON: "),
        ({"schema": '"string"'}, r"has a text 'schema' that is 'string'; it must be an Avro record"),
        ({"schema": "syntax", "schemaType": "PROTOBUF"}, r"has the schemaType PROTOBUF, .* Leave it out: values are"),
        ({"schema": "{}", "schemaType": "XML"}, r"has the schemaType 'XML'; it must be AVRO or JSON"),
        ({"schema": "{}", "references": [{"name": "x"}]}, r"refers to other schemas .* Write their definitions"),
        ({"schema": "{}", "schemaType": "JSON", "id": "7"}, r"has the id '7'; it must be a whole number"),
        ({"type": "record", "name": "R", "fields": []}, r"is a record without fields; it must have one at least"),
        ({"type": "record", "fields": [{"name": "a", "type": "int"}]}, r"is not Avro schema: it .* fields need a name"),
        ({"type": "record", "name": "R", "fields": [{"name": "a"}]}, r"is not Avro schema: .* a name and a type"),
    ],
)
def test_a_file_that_is_no_schema_is_refused_with_the_next_step(tmp_path, monkeypatch, capsys, content, said):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("s.json").write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(WorkbenchError, match=said):
        read_schema("s.json")
    assert main(["capture", "kafka://h:1/orders", "x.parquet", "--schema", "s.json"]) == 2
    assert "The schema s.json" in capsys.readouterr().err


def test_the_command_says_what_did_not_decode_and_which_ids_there_are(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("order.avsc").write_text(json.dumps(ORDER))
    found = Captured(Path("orders.parquet"), 200, 3, ("order", "shop", "_key"), 1.5, not_decoded=1, schema_ids=(7, 8))
    monkeypatch.setattr(topics, "capture", lambda *_, **__: found)
    asked = ["capture", "kafka://h:1/orders", "orders.parquet", "--schema", "order.avsc"]
    assert main(asked) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "columns: order, shop, _key" in said
    assert "note: values that do not decode with the schema: 1" in said
    assert "note: the values have the schema ids 7, 8; all were read with the Avro schema order.avsc" in said
    assert main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["not_decoded"], told["schema_ids"]) == (200, 1, [7, 8])


def test_fields_with_a_name_that_is_ours_get_another():
    found = named(["order", "_key", "_key_", "value"])
    assert found == {"order": "order", "_key_": "_key", "_key__": "_key_", "value_": "value"}
    assert [*map(field_of, ("order", "_key_", "value_", "_offset"))] == ["order", "_key", "value", "_offset"]
