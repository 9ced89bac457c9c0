"""The sink of a job, and its checkpoint, as a study names them in one text each.

``noop``, ``parquet PLACE``, ``delta PLACE``, ``iceberg PLACE``, ``kafka://HOST:PORT/TOPIC``, or ``module:function`` for
``foreachBatch``, with a place that it takes as its argument `place` or without one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from workbench.checks import shown
from workbench.errors import WorkbenchError

NOOP, FUNCTION = "noop", "foreachBatch"
_ALL = ("append", "update", "complete")
MODES: Mapping[str, tuple[str, ...]] = {
    NOOP: _ALL,
    "parquet": ("append",),
    "delta": ("append", "complete"),
    "iceberg": ("append", "complete"),
    "kafka": _ALL,
    FUNCTION: _ALL,
}
"""Output modes that a sink allows, by its kind."""

SETTINGS: Mapping[str, Mapping[str, str]] = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
}
"""Settings of Spark without which a sink is not found, by its kind; a job's own replace them."""

_PLACED = ("parquet", "delta", "iceberg")
_TOPIC = re.compile(r"kafka://[^/\s]+/[\w.\-]+")
_OWN = re.compile(r"[\w.]+:[^\W\d]\w*|[^\s:]+\.py:[^\W\d]\w*")
_SCHEME = re.compile(r"([a-z][a-z0-9+.\-]+):/")
_EXAMPLES = (
    "noop, parquet PLACE, delta PLACE, iceberg PLACE, kafka://HOST:PORT/TOPIC, or module:function for foreachBatch"
)


@dataclass(frozen=True)
class Sink:
    """Where a query writes."""

    kind: str = NOOP
    # a folder, as a path or the URI of a file system of Spark's; of Kafka a topic, ``kafka://HOST:PORT/TOPIC``. Runs
    # write to places of their own in it, or next to it. "": nowhere, or where its function writes
    place: str = ""
    function: str = ""  # ``module:function`` that ``foreachBatch`` calls; "" for another kind

    @classmethod
    def parse(cls, text: str) -> "Sink":
        """Read the text of a study.

        Raises `WorkbenchError` when it names no sink, or lacks or has too much of a place.
        """
        first, _, place = text.strip().partition(" ")
        place = place.strip()
        if _TOPIC.fullmatch(text.strip()):
            return cls("kafka", text.strip())
        check_place("sink", place)
        if first in _PLACED and place:
            return cls(first, place)
        if first == NOOP and not place:
            return cls()
        if _OWN.fullmatch(first):
            return cls(FUNCTION, place, first)
        lacks = " It lacks its place, a folder." if first in _PLACED else ""
        raise WorkbenchError(f"sink is {shown(text)}; it must be one of {_EXAMPLES}.{lacks}", settings=("sink",))

    @property
    def words(self) -> str:
        """The sink's kind for a reader, without its place: reports show no paths."""
        return self.function or self.kind

    @property
    def warning(self) -> str:
        """Warning for users that each run writes for real; "" if it does not."""
        if self.kind == "kafka":
            return f"every batch is written for real, to a topic of its own next to {self.place}, deleted afterwards"
        if self.place:
            return f"every batch is written for real, to a folder of its own in {self.place}, removed afterwards"
        return self.function and (
            f"every batch goes to {self.function} for real, which writes where it always does: name a place after it, "
            "and it gets a folder of its own there as its argument 'place'"
        )


def is_uri(place: str) -> bool:
    """Whether a place begins with its file system, and so may be on another machine."""
    found = _SCHEME.match(place)
    return found is not None and found[1] != "file"


def path_of(place: str) -> str:
    """Return the path of a place on this machine."""
    return urlsplit(place).path if place.startswith("file:") else place


def check_place(name: str, place: str) -> None:
    """Refuse a place that would keep a secret."""
    try:
        password = urlsplit(place).password
    except ValueError as error:  # its text may show a password
        raise WorkbenchError(
            f"{name} is {place.rpartition('@')[2]!r}, which is not a URI. Correct it.", settings=(name,)
        ) from error
    if password:
        raise WorkbenchError(
            f"{name} has a password in its address, which would be kept in journals and plans. Put credentials into "
            "your spark-defaults.conf, or into the study's key 'spark' as ${NAME}, a variable of the environment.",
            settings=(name,),
        )
