"""A topic's address, and the settings of the client, whose secrets come from a file and go nowhere else."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError

SCHEME = "kafka://"
CLIENT_CONFIG = "WORKBENCH_KAFKA_CONFIG"
"""Environment variable with the path of a file of client settings, one ``name=value`` a line, in librdkafka's names."""

_JAAS = "org.apache.kafka.common.security"
_LOGINS = {"PLAIN": f"{_JAAS}.plain.PlainLoginModule"} | dict.fromkeys(
    ("SCRAM-SHA-256", "SCRAM-SHA-512"), f"{_JAAS}.scram.ScramLoginModule"
)
_SAME_NAME = frozenset({"security.protocol", "client.id", "client.rack", "fetch.min.bytes", "fetch.max.bytes"})
_ADDRESS = re.compile(r"kafka://(?P<servers>[^/@?#\s]+)/(?P<name>[A-Za-z0-9._-]{1,249})")
_SERVER = re.compile(r"[A-Za-z0-9_.-]+:\d{1,5}|\[[0-9A-Fa-f:.]+\]:\d{1,5}")
_OURS = frozenset({"bootstrap.servers", "group.id", "enable.auto.commit", "auto.offset.reset", "debug", "log_level"})


@dataclass(frozen=True)
class Topic:
    """A topic of a Kafka cluster: `servers` as ``host:port``, separated by commas, and its `name`."""

    servers: str
    name: str

    @property
    def url(self) -> str:
        """Its address, which has no secret in it."""
        return f"{SCHEME}{self.servers}/{self.name}"

    @classmethod
    def parse(cls, url: str) -> "Topic":
        """Read ``kafka://host:port[,host:port]/topic``.

        Raises
        ------
        WorkbenchError
            When it is not of that form, or has a user or a password in it.
        """
        if "@" in url:
            raise WorkbenchError(
                "The address of a topic must not hold a user or a password, because addresses are written to journals "
                f"and reports. Put them into a file of client settings, and name that in {CLIENT_CONFIG}."
            )
        found = _ADDRESS.fullmatch(url)
        if found is None or not all(_SERVER.fullmatch(server) for server in found["servers"].split(",")):
            shown = re.split(r"[?#]", url, maxsplit=1)[0]  # what follows could be a secret
            raise WorkbenchError(
                f"{shown!r} is no address of a topic; it must be kafka://HOST:PORT/TOPIC, such as "
                "kafka://localhost:9092/orders. Several servers are separated by commas."
            )
        return cls(found["servers"], found["name"])


def client_settings(path: str | Path | None = None) -> dict[str, Any]:
    """Read client settings from `path`, or from the file that the environment names; none where there is neither.

    Raises
    ------
    WorkbenchError
        When the file cannot be read, or a line is no setting or one that the workbench makes. Values are never quoted.
    """
    named = path or os.environ.get(CLIENT_CONFIG)
    if not named:
        return {}
    try:
        lines = Path(named).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise WorkbenchError(f"The client settings {named} cannot be read: {reason}. Check the path.") from error
    settings: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
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
    """Return client settings in librdkafka's names in those of the Java client, which Spark uses.

    Raises
    ------
    WorkbenchError
        When a setting has no counterpart. Values are never quoted.
    """
    left = {name: str(value) for name, value in settings.items()}
    found = {name: left.pop(name) for name in _SAME_NAME & left.keys()}
    mechanism = left.pop("sasl.mechanism", None) or left.pop("sasl.mechanisms", None)
    user, password = left.pop("sasl.username", None), left.pop("sasl.password", None)
    authority = left.pop("ssl.ca.location", None)
    if left or (mechanism is not None and mechanism not in _LOGINS):
        wrong = min(left) if left else f"sasl.mechanism={mechanism}"
        raise WorkbenchError(
            f"The client setting {wrong} has no counterpart for Spark's Kafka source here; known are "
            f"{', '.join(sorted(_SAME_NAME))}, sasl.mechanism ({', '.join(_LOGINS)}), sasl.username, sasl.password and "
            "ssl.ca.location. Remove it, or measure on a sample with source: replay."
        )
    if mechanism is not None:
        login = f'{_LOGINS[mechanism]} required username="{_quoted(user)}" password="{_quoted(password)}";'
        found |= {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
    if authority is not None:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": authority}
    return found


def _quoted(text: str | None) -> str:
    return (text or "").replace("\\", "\\\\").replace('"', '\\"')
