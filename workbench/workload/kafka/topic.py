"""A topic's address, and the settings of the client, whose secrets come from a file and go nowhere else."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.reading import read_text

SCHEME = "kafka://"
CLIENT_CONFIG = "WORKBENCH_KAFKA_CONFIG"
"""Environment variable with the path of a file of client settings, one ``name=value`` a line; see `java_settings`."""

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
