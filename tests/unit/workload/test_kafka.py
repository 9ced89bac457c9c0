"""Addresses of topics, client settings, whose secrets are never shown, and schemas of values."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from refusals import refusals

from workbench.cli import topics
from workbench.doctor import examine
from workbench.errors import WorkbenchError
from workbench.redaction import is_secret, redacted
from workbench.study import find_query, read_query
from workbench.testbed.spark.driver.session import AUTHENTICATED
from workbench.testbed.spark.kafka import Captured
from workbench.workload.kafka import (
    CLIENT_CONFIG,
    Schema,
    Topic,
    client_settings,
    field_of,
    java_settings,
    named,
    read_schema,
)


def test_an_address_and_client_settings(tmp_path, monkeypatch):
    topic = Topic.parse("kafka://a.example:9092,[::1]:9093/orders.v1-x_y")
    assert topic == Topic("a.example:9092,[::1]:9093", "orders.v1-x_y")
    assert Topic.parse(topic.url) == topic
    monkeypatch.delenv(CLIENT_CONFIG, raising=False)
    assert client_settings() == {}
    file = tmp_path / "client.properties"
    file.write_text("# ours\n\nsecurity.protocol = SSL\nsasl.password=a=b\n")
    assert client_settings(file) == {"security.protocol": "SSL", "sasl.password": "a=b"}
    monkeypatch.setenv(CLIENT_CONFIG, str(file))
    assert client_settings()["security.protocol"] == "SSL"


NONE = ("localhost/orders", "localhost:9092", ":9092/x", "h:1/a/b", "h:1/a b", "h:1/t?sasl.password=hunter2")


test_what_is_no_address_is_refused_and_no_password_told = refusals(
    lambda address: Topic.parse(f"kafka://{address}"),
    *((address, "it must be kafka://HOST:PORT/TOPIC") for address in NONE),
    ("me:hunter2@localhost:9092/orders", "must not hold a user or a password"),
)


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


# --- in the Java client's names

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----"
KEY = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----"
ENCRYPTED = KEY.replace("PRIVATE", "ENCRYPTED PRIVATE")
OPENSSL_ONE = "-----BEGIN RSA PRIVATE KEY-----\nDEK-Info: AES-256-CBC,hunter2\n\nhunter2\n-----END RSA PRIVATE KEY-----"


def test_the_settings_of_sparks_source_have_its_names_and_a_login_of_your_own_stays_as_java_has_it(tmp_path):
    (tmp_path / "ca.pem").write_bytes(f"subject=\xfcs\n{CERTIFICATE}\n".encode("latin-1"))
    mine = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "me"}
    found = java_settings(mine | {"sasl.password": 'a"b\\c', "ssl.ca.location": str(tmp_path / "ca.pem")})
    assert found == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="me" password="a\\"b\\\\c";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": CERTIFICATE,  # executors elsewhere have no such file
    }
    own = {"sasl.mechanism": "GSSAPI", "sasl.jaas.config": "a.b.Login required;", "sasl.kerberos.service.name": "kafka"}
    assert java_settings(own) == own


test_a_setting_without_a_counterpart_is_refused_without_its_value = refusals(
    java_settings,
    ({"ssl.keystore.password": "hunter2"}, "ssl.keystore.password has"),
    ({"sasl.mechanism": "GSSAPI"}, "GSSAPI has"),
    ({"sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER has no counterpart in the Java client .* name what Java has"),
    ({"sasl.oauthbearer.client.secret": "hunter2"}, "sasl.oauthbearer.client.secret has"),
)


@pytest.fixture
def files(tmp_path):
    """Settings with a certificate and a key, whose files hold what is given."""

    def of(certificate=CERTIFICATE, key=KEY, word=None):
        (tmp_path / "me.crt").write_text(certificate)
        (tmp_path / "me.key").write_text(key)
        places = {"ssl.certificate.location": str(tmp_path / "me.crt"), "ssl.key.location": str(tmp_path / "me.key")}
        return places | ({} if word is None else {"ssl.key.password": word})

    return of


def test_a_certificate_and_its_key_are_handed_over_as_text(files, tmp_path):
    other = CERTIFICATE.replace("QUJD", "REVG")
    found = java_settings(files(f"subject=me\n{CERTIFICATE}\n{other}\n", f"Bag Attributes\n{KEY}\n", word="x"))
    assert found == {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": f"{CERTIFICATE}\n{other}",
        "ssl.keystore.key": KEY,  # and no password, with which Java would decrypt what is not encrypted
    }
    found = java_settings(files(CERTIFICATE + KEY, ENCRYPTED, word="hunter3"))
    assert (found["ssl.keystore.key"], found["ssl.key.password"]) == (ENCRYPTED, "hunter3")
    assert found["ssl.keystore.certificate.chain"] == CERTIFICATE
    assert {path.name for path in tmp_path.iterdir()} == {"me.crt", "me.key"}  # no copy of the key


test_files_that_java_does_not_read_are_refused_with_the_next_step = refusals(
    lambda files, given: java_settings(files(**given)),
    ({"certificate": "hunter2"}, r"ssl.certificate.location names has no certificate in PEM .*openssl x509"),
    ({"key": "hunter2"}, r"ssl.key.location names has no private key in PEM .*must have one"),
    ({"key": KEY + KEY}, r"ssl.key.location names has 2 private keys in PEM"),
    ({"key": OPENSSL_ONE}, r"names has 'RSA PRIVATE KEY'; .* openssl pkcs8 -topk8 -v1 .* NEW and its password"),
    ({"key": ENCRYPTED}, r"is encrypted. Add ssl.key.password to the client settings"),
    fixture="files",
)


@pytest.mark.parametrize(
    ("text", "advice"),
    [("hunter2", r"x509 -inform der -in"), (CERTIFICATE.replace("CERT", "TRUSTED CERT") + "hunter2", r"x509 -in FILE")],
)
def test_an_authority_without_a_certificate_is_refused(tmp_path, text, advice):
    (tmp_path / "ca.pem").write_text(text)
    with pytest.raises(WorkbenchError, match=rf"ssl.ca.location names has no certificate in PEM .*{advice}") as error:
        java_settings({"ssl.ca.location": str(tmp_path / "ca.pem")})
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("name", ["ssl.certificate.location", "ssl.key.location"])
def test_half_of_a_pair_and_a_missing_file_are_refused(files, name, tmp_path):
    given = files()
    (tmp_path / "me.key").unlink()
    with pytest.raises(WorkbenchError, match=r"me.key of the client setting ssl.key.location cannot be read: No such"):
        java_settings(given)
    del given[name]
    with pytest.raises(WorkbenchError, match=f"is given without {name}. .* Add it, or remove the other"):
        java_settings(given)


def test_the_key_is_secret_for_spark_and_here(files):
    for name in java_settings(files(key=ENCRYPTED, word="x")).keys() - {"ssl.keystore.type"}:
        if name != "ssl.keystore.certificate.chain":  # which every server that is asked shows
            assert re.search(AUTHENTICATED["spark.redaction.regex"], f"kafka.{name}")
            assert is_secret(f"kafka.{name}")
    for key in (KEY, ENCRYPTED, OPENSSL_ONE, repr(KEY), KEY.partition("-----END")[0]):
        assert "hunter2" not in redacted(f"options: {key} and more")


@pytest.mark.parametrize("find", [find_query, read_query])
def test_settings_that_spark_cannot_use_are_refused_before_a_sample_is_captured(tmp_path, monkeypatch, find):
    (tmp_path / "client.properties").write_text("sasl.mechanism=OAUTHBEARER\n")
    monkeypatch.setenv(CLIENT_CONFIG, str(tmp_path / "client.properties"))
    with pytest.raises(WorkbenchError, match=r"sasl\.mechanism=OAUTHBEARER has no counterpart"):
        find("nexmark:q1", "kafka://localhost:1/bids", source="kafka")


def test_the_doctor_says_whether_spark_can_use_them(tmp_path, monkeypatch):
    monkeypatch.delenv(CLIENT_CONFIG, raising=False)
    assert "Kafka" not in {finding.thing for finding in examine()}
    monkeypatch.setenv(CLIENT_CONFIG, str(tmp_path / "client.properties"))
    for text, fit in (("client.id=me", True), ("sasl.mechanism=OAUTHBEARER", False)):
        (tmp_path / "client.properties").write_text(text)
        (found,) = (finding for finding in examine() if finding.thing == "Kafka")
        assert (found.fit, found.needed) == (fit, False)
        assert fit or "OAUTHBEARER has no counterpart" in found.fix


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a key with")
def test_a_key_that_openssl_makes_is_read(tmp_path):
    subject = ["-newkey", "rsa:2048", "-nodes", "-subj", "/CN=me", "-days", "1"]
    out = ["-keyout", tmp_path / "me.key", "-out", tmp_path / "me.crt"]
    subprocess.run(["openssl", "req", "-x509", *subject, *out], check=True, capture_output=True)
    given = {"ssl.certificate.location": str(tmp_path / "me.crt"), "ssl.key.location": str(tmp_path / "me.key")}
    assert re.fullmatch(r"-+BEGIN PRIVATE KEY-+\n[^-]+\n-+END PRIVATE KEY-+", java_settings(given)["ssl.keystore.key"])
    encrypt = ["openssl", "pkcs8", "-topk8", "-passout", "pass:hunter2", "-in", tmp_path / "me.key", "-out"]
    given |= {"ssl.key.location": str(tmp_path / "locked.key"), "ssl.key.password": "hunter2"}
    subprocess.run([*encrypt, tmp_path / "locked.key", "-v2", "aes256"], check=True, capture_output=True)
    with pytest.raises(WorkbenchError, match=r"is encrypted by PBES2, .* -v1 PBE-SHA1-3DES"):
        java_settings(given)
    subprocess.run([*encrypt, tmp_path / "locked.key", "-v1", "PBE-SHA1-3DES"], check=True, capture_output=True)
    assert java_settings(given)["ssl.key.password"] == "hunter2"


ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "order", "type": "long"}, {"name": "shop", "type": ["null", "string"], "default": None}],
}


def avro(definition=ORDER, number=None):
    return Schema(Path("order.avsc"), "AVRO", definition, number)


def test_what_a_registry_hands_out_is_read_and_fields_with_a_name_that_is_ours_get_another(tmp_path):
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
    found = named(["order", "_key", "_key_", "value"])
    assert found == {"order": "order", "_key_": "_key", "_key__": "_key_", "value_": "value"}
    assert [*map(field_of, ("order", "_key_", "value_", "_offset"))] == ["order", "_key", "value", "_offset"]


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
def test_a_file_that_is_no_schema_is_refused_with_the_next_step(refuses, content, said):
    if content is not None:
        Path("s.json").write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(WorkbenchError, match=said):
        read_schema("s.json")
    assert "The schema s.json" in refuses("capture", "kafka://h:1/orders", "x.parquet", "--schema", "s.json")


def test_the_command_says_what_did_not_decode_and_which_ids_there_are(monkeypatch, prints):
    Path("order.avsc").write_text(json.dumps(ORDER))
    found = Captured(Path("orders.parquet"), 200, 3, ("order", "shop", "_key"), 1.5, not_decoded=1, schema_ids=(7, 8))
    monkeypatch.setattr(topics, "capture", lambda *_, **__: found)
    asked = ["capture", "kafka://h:1/orders", "orders.parquet", "--schema", "order.avsc"]
    said = " ".join(prints(*asked).split())
    assert "columns: order, shop, _key" in said
    assert "note: values that do not decode with the schema: 1" in said
    assert "note: the values have the schema ids 7, 8; all were read with the Avro schema order.avsc" in said
    told = json.loads(prints(*asked, "--json"))
    assert (told["rows"], told["not_decoded"], told["schema_ids"]) == (200, 1, [7, 8])
