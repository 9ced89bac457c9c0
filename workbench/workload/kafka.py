"""Kafka as a workload: addresses of topics, the client's settings, schemas of values, and the columns of a sample.

The client's secrets come from a file and go nowhere else. Settings are given in the names of the Java client or of
librdkafka. Certificates and keys are handed over as text: a file of them would be a copy of the key, and executors
elsewhere have none of this machine's files.
"""

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from workbench import bounds
from workbench.checks import require, shown
from workbench.errors import WorkbenchError
from workbench.reading import parse_json, read_text

SCHEME = "kafka://"
CLIENT_CONFIG = "WORKBENCH_KAFKA_CONFIG"
"""Environment variable with the path of a file of client settings, one ``name=value`` a line; see `java_settings`."""

_ADDRESS = re.compile(r"kafka://(?P<servers>[^/@?#\s]+)/(?P<name>[A-Za-z0-9._-]{1,249})")
_SERVER = re.compile(r"[A-Za-z0-9_.-]+:\d{1,5}|\[[0-9A-Fa-f:.]+\]:\d{1,5}")
_OURS = frozenset({"bootstrap.servers", "group.id", "enable.auto.commit", "auto.offset.reset", "debug", "log_level"})
_JAAS = "org.apache.kafka.common.security"
_LOGINS = {"PLAIN": f"{_JAAS}.plain.PlainLoginModule"} | dict.fromkeys(
    ("SCRAM-SHA-256", "SCRAM-SHA-512"), f"{_JAAS}.scram.ScramLoginModule"
)
_OWN_LOGIN = "sasl.jaas.config"
_SAME_NAME = frozenset(
    {"security.protocol", "client.id", "client.rack", "fetch.min.bytes", "fetch.max.bytes", "max.request.size",
     "sasl.kerberos.service.name", "sasl.login.callback.handler.class", "sasl.oauthbearer.token.endpoint.url",
     _OWN_LOGIN}
)  # fmt: skip
_AUTHORITY = "ssl.ca.location"
_KEY, _CERTIFICATE, _PASSWORD = "ssl.key.location", "ssl.certificate.location", "ssl.key.password"
_PEM = re.compile(r"-----BEGIN (?P<what>[A-Z0-9 ]{1,40})-----.*?-----END (?P=what)-----", re.DOTALL)
_CONVERT = "openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES -in FILE -out NEW"
_PBES2 = bytes.fromhex("2a864886f70d01050d")  # its name in a key, 1.2.840.113549.1.5.13
_READ, _ENCRYPTED = "PRIVATE KEY", "ENCRYPTED PRIVATE KEY"


@dataclass(frozen=True)
class Topic:
    """A topic of a Kafka cluster: `servers` as ``host:port``, separated by commas, and its `name`."""

    servers: str
    name: str

    @property
    def url(self) -> str:
        """The address of the topic, which contains no secret."""
        return f"{SCHEME}{self.servers}/{self.name}"

    @classmethod
    def parse(cls, url: str) -> "Topic":
        """Read ``kafka://host:port[,host:port]/topic``."""
        if "@" in url:
            raise WorkbenchError(
                "The address of a topic must not hold a user or a password, because addresses are written to journals "
                f"and reports. Put them into a file of client settings, and name that in {CLIENT_CONFIG}."
            )
        found = _ADDRESS.fullmatch(url)
        if found is None or not all(_SERVER.fullmatch(server) for server in found["servers"].split(",")):
            shown = re.split(r"[?#]", url, maxsplit=1)[0]  # the rest could be a secret
            raise WorkbenchError(
                f"{shown!r} is not an address of a topic; it must be kafka://HOST:PORT/TOPIC, such as "
                "kafka://localhost:9092/orders. Several servers are separated by commas."
            )
        return cls(found["servers"], found["name"])


def client_settings(path: str | Path | None = None) -> dict[str, Any]:
    """Read client settings from `path`, or from the file that the environment names; empty if there is neither."""
    named = path or os.environ.get(CLIENT_CONFIG)
    if not named:
        return {}
    settings: dict[str, Any] = {}
    for number, line in enumerate(read_text(named, f"The client settings {named}").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not name:
            raise WorkbenchError(f"Line {number} of the client settings {named} is not of the form name=value.")
        if name in _OURS:
            raise WorkbenchError(
                f"Line {number} of the client settings {named} sets {name}, which is not yours to set here. Remove it."
            )
        settings[name] = value
    return settings


def java_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return client settings in the names of the Java client, which Spark uses.

    A login of your own, such as Kerberos or OAuth, is given as Java has it: ``sasl.jaas.config`` with its mechanism.
    """
    left = {name: str(value) for name, value in settings.items()}
    found = {name: left.pop(name) for name in _SAME_NAME & left.keys()}
    mechanism = left.pop("sasl.mechanism", None) or left.pop("sasl.mechanisms", None)
    user, password = left.pop("sasl.username", None), left.pop("sasl.password", None)
    authority = left.pop(_AUTHORITY, None)
    own = {name: left.pop(name) for name in (_CERTIFICATE, _KEY, _PASSWORD) if name in left}
    if _OWN_LOGIN in found and mechanism is not None:
        found, mechanism = found | {"sasl.mechanism": mechanism}, None
    if left or (mechanism is not None and mechanism not in _LOGINS):
        wrong = min(left) if left else f"sasl.mechanism={mechanism}"
        raise WorkbenchError(
            f"The client setting {wrong} has no counterpart in the Java client here; known are "
            f"{', '.join(sorted(_SAME_NAME))}, sasl.mechanism ({', '.join(_LOGINS)}, or any with {_OWN_LOGIN}), "
            f"sasl.username, sasl.password, {_AUTHORITY}, {_CERTIFICATE}, {_KEY} and {_PASSWORD}. Remove it, or name "
            "what Java has for it."
        )
    if mechanism is not None:
        login = f'{_LOGINS[mechanism]} required username="{_quoted(user)}" password="{_quoted(password)}";'
        found |= {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
    if authority is not None:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _certificates(_AUTHORITY, authority)}
    return found | (_keystore(own) if own else {})


def _keystore(own: Mapping[str, str]) -> dict[str, str]:
    for name in (_CERTIFICATE, _KEY):
        if name not in own:
            raise WorkbenchError(
                f"The client setting {min(own)} is given without {name}. The Java client needs the certificate "
                "and its key. Add it, or remove the other."
            )
    certificates = _certificates(_CERTIFICATE, own[_CERTIFICATE])
    keys = [(what, text) for what, text in _blocks(_KEY, own[_KEY]) if what.endswith(_READ)]
    if len(keys) != 1:
        raise WorkbenchError(
            f"The file that {_KEY} names has {len(keys) or 'no'} private key{'s' * (len(keys) > 1)} in PEM (BEGIN "
            f"{_READ}); it must have one. Name another file."
        )
    ((what, key),) = keys
    if what not in {_READ, _ENCRYPTED}:
        raise WorkbenchError(
            f"The file that {_KEY} names has {what!r}; the Java client, which Spark uses, reads {_READ!r} or "
            f"{_ENCRYPTED!r} (PKCS#8). Convert it with {_CONVERT}, and name NEW and its "
            f"password ({_PASSWORD})."
        )
    if what == _ENCRYPTED and not own.get(_PASSWORD):
        raise WorkbenchError(f"The key that {_KEY} names is encrypted. Add {_PASSWORD} to the client settings.")
    if what == _ENCRYPTED and _PBES2 in _bytes(key):
        raise WorkbenchError(
            f"The key that {_KEY} names is encrypted by PBES2, as openssl does by itself; Java 17, which Spark may "
            f"run on, reads only PBES1. Convert it with {_CONVERT}, and name NEW; or use a key without a password that "
            "only you can read."
        )
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": certificates,
        "ssl.keystore.key": key,
        # Java would take a password for that of an encrypted key.
        **({_PASSWORD: own[_PASSWORD]} if what == _ENCRYPTED else {}),
    }


def _certificates(name: str, path: str) -> str:
    blocks = _blocks(name, path)
    found = [text for what, text in blocks if what == "CERTIFICATE"]
    if not found:
        binary = "" if blocks else "-inform der "  # another kind, such as TRUSTED CERTIFICATE
        raise WorkbenchError(
            f"The file that {name} names has no certificate in PEM (BEGIN CERTIFICATE). Convert it: openssl x509 "
            f"{binary}-in FILE -out NEW."
        )
    return "\n".join(found)


def _blocks(name: str, path: str) -> list[tuple[str, str]]:
    what = f"The file {Path(path).name} of the client setting {name}"
    text = read_text(path, what, bounds.SCHEMA_BYTES, errors="replace")  # comments between blocks are in any encoding
    return [(found["what"], found[0]) for found in _PEM.finditer(text)]


def _bytes(pem: str) -> bytes:
    """Return the content of a block; empty if it is not base64, which Java will report."""
    try:
        return base64.b64decode("".join(pem.splitlines()[1:-1]))
    except ValueError:
        return b""


def _quoted(text: str | None) -> str:
    return (text or "").replace("\\", "\\\\").replace('"', '\\"')


Kind = Literal["AVRO", "JSON"]
_AS_BYTES = "Leave it out: values are captured as bytes then, in the column value, and your query decodes them itself."
_EXAMPLES = (
    'an Avro record ({"type": "record", ...}), or a schema registry\'s answer ({"schema": "...", "schemaType": "AVRO"})'
)
HEADERS, VALUE = "_headers", "value"
COLUMNS: Mapping[str, str] = MappingProxyType(
    {"_key": "key", "_timestamp": "timestamp", "_partition": "partition", "_offset": "offset"}
)
"""Columns of a sample that come from the record itself, and their names in Spark's Kafka source."""

_TAKEN = frozenset({*COLUMNS, HEADERS, VALUE})


@dataclass(frozen=True)
class Schema:
    """The schema of a topic's values, as its file at `path` has it; of a JSON Schema only `number` is used."""

    path: Path
    kind: Kind
    definition: Mapping[str, Any]
    number: int | None = None  # its id in the registry; None if the file has none

    @property
    def said(self) -> str:
        """Kind, file and id of the schema, for a message."""
        number = "" if self.number is None else f" (id {self.number})"
        return f"the {'Avro' if self.kind == 'AVRO' else 'JSON'} schema {self.path.name}{number}"

    @property
    def digest(self) -> str:
        """Short name of the schema's content, whatever its file is called."""
        text = json.dumps([self.kind, self.number, self.definition], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def read_schema(path: str | Path) -> Schema:
    """Read an Avro schema, or a schema registry's answer."""
    what = f"The schema {path}"
    data = _json(read_text(path, what, bounds.SCHEMA_BYTES), what)
    if not isinstance(data.get("schema"), str):
        return Schema(Path(path), "AVRO", _record(data, what))
    kind, number = data.get("schemaType", "AVRO"), data.get("id")
    if kind == "PROTOBUF":
        raise WorkbenchError(f"{what} has the schemaType PROTOBUF, which is not read here. {_AS_BYTES}")
    allowed = " or ".join(get_args(Kind))
    require(kind in get_args(Kind), f"{what} has the schemaType {shown(kind)}; it must be {allowed}. {_AS_BYTES}")
    require(
        not data.get("references"),
        f"{what} refers to other schemas of the registry, which are not in the file. Write their definitions in "
        "place of their names, and save that as the schema.",
    )
    whole = number is None or (isinstance(number, int) and not isinstance(number, bool))
    require(whole, f"{what} has the id {shown(number)}; it must be a whole number. Correct it or remove it.")
    inside = _json(data["schema"], f"{what} has a text 'schema' that")
    return Schema(Path(path), kind, _record(inside, what) if kind == "AVRO" else inside, number)


def _json(text: str, what: str) -> dict[str, Any]:
    try:
        data = parse_json(text)
    except ValueError as error:
        raise WorkbenchError(f"{what} is not JSON: {error}. It must be {_EXAMPLES}.") from error
    if not isinstance(data, dict):
        raise WorkbenchError(f"{what} is {shown(data)}; it must be {_EXAMPLES}. Save that.")
    return data


def _record(definition: dict[str, Any], what: str) -> dict[str, Any]:
    """Return a definition if it is an Avro record whose values can become columns; refuse others."""
    if definition.get("type") == "object" or "$schema" in definition:
        raise WorkbenchError(
            f"{what} is a JSON Schema. JSON values become columns without one: leave it out, or save the registry's "
            'answer with "schemaType": "JSON".'
        )
    if definition.get("type") != "record":
        raise WorkbenchError(
            f"{what} has the type {shown(definition.get('type'))}; it must be a record, whose fields become columns: "
            f"{_EXAMPLES}. {_AS_BYTES}"
        )
    fields = definition.get("fields")
    require(bool(fields), f"{what} is a record without fields; it must have one at least. Correct it.")
    known = isinstance(fields, list) and all(isinstance(one, dict) and {"name", "type"} <= one.keys() for one in fields)
    named = known and "name" in definition
    require(named, f"{what} is not Avro schema: it and its fields need a name and a type. Correct it.")
    return definition


def named(fields: Iterable[str]) -> dict[str, str]:
    """Return the columns of a sample for the fields of its values; a field with a reserved name gets a "_"."""
    found: dict[str, str] = {}
    for name in fields:
        free = name
        while free in _TAKEN or free in found:
            free += "_"
        found[free] = name
    return found


def field_of(column: str) -> str:
    """Return the name of the field behind a sample's `column`; see `named`."""
    return column.removesuffix("_") if column.removesuffix("_") in _TAKEN else column
