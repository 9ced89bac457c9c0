"""What is found while a script runs: its sources with the columns that it declares, its queries and its settings.

Stand-ins for Spark's streams record how they are used, and run nothing.
"""

import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from pyspark import SparkConf
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType, _parse_datatype_string

from workbench.redaction import HIDDEN, is_secret, redacted
from workbench.workload import elsewhere
from workbench.workload.dataset import schema_of
from workbench.workload.query import Dataset
from workbench.workload.script import (
    FILES,
    KAFKA_COLUMNS,
    Recorded,
    Script,
    ScriptQuery,
    ScriptSource,
    grouped_by,
    joined_by,
    sample_of,
    watermarks_of,
)

_POSITIONAL = {
    "load": ("path", "format", "schema"),
    "start": ("path", "format", "outputMode", "partitionBy", "queryName"),
    "toTable": ("tableName", "format", "outputMode", "partitionBy", "queryName"),
    "changes": ("table",),
    **dict.fromkeys(FILES, ("path", "schema")),
}
_ENDS = {"load", "table", "changes", "start", "toTable", *FILES}
_NO_OPTIONS = {
    *("format", "schema", "outputMode", "queryName", "trigger"),
    *("foreach", "foreachBatch", "table", "tableName"),
}


def shown(name: str, value: object) -> str:
    """Write an option's value without a secret."""
    return HIDDEN if is_secret(name) else redacted(str(value))


def nothing(*_: object, **__: object) -> None:
    """Do nothing."""


class Chain:
    """Replaces ``spark.readStream`` and a DataFrame's ``writeStream``: records all calls until its `end`.

    That is called with the last method's name, what was given by the names of parameters, and the options.
    """

    def __init__(self, end: Callable[[str, dict[str, Any], dict[str, str]], Any]) -> None:
        self._end = end
        self._given: dict[str, Any] = {}
        self._options: dict[str, str] = {}

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return partial(self._called, method)

    def _called(self, method: str, *values: Any, **named: Any) -> Any:  # noqa: ANN401 - Spark's
        if method == "option":
            values, named = (), dict([(values or tuple(named.values()))])
        elif method == "trigger":
            named = {"trigger": ", ".join(f"{how}={value}" for how, value in named.items() if value is not None)}
        given = {**dict(zip(_POSITIONAL.get(method, (method,)), values, strict=False)), **named}
        for name, value in given.items():
            if name in _NO_OPTIONS:
                self._given[name] = value or self._given.get(name)
            elif value is not None and name not in {"partitionBy", "clusterBy", "name", "func", "f"}:
                self._options[name] = shown(name, value)
        if "func" in named or "f" in named:
            self._given[method] = named.get("func", named.get("f"))
        return self._end(method, dict(self._given), dict(self._options)) if method in _ENDS else self


class Started:
    """Replaces a ``StreamingQuery``."""

    isActive, lastProgress, status = False, None, {"message": "recorded", "isTriggerActive": False}  # noqa: N815

    def __init__(self, recorder: "Recorder", name: str) -> None:
        self._recorder, self.name = recorder, name or None
        self.id = self.runId = str(uuid.uuid4())
        self.awaitTermination = recorder.wait
        self.stop = self.explain = self.exception = nothing

    def processAllAvailable(self) -> None:  # noqa: N802
        """Note that nothing is processed."""
        self._recorder.note("processAllAvailable() waits for rows, and nothing runs: what it waits for is not there")

    @property
    def recentProgress(self) -> list[object]:  # noqa: N802
        """Progress of the query: none, which is noted."""
        self._recorder.note("recentProgress is empty: nothing runs")
        self._recorder.wait()
        return []


class Streams:
    """Replaces ``spark.streams``."""

    def __init__(self, recorder: "Recorder") -> None:
        self._recorder = recorder
        self.active: list[Started] = []
        self.awaitAnyTermination = recorder.wait
        self.removeListener = self.resetTerminated = nothing

    def addListener(self, listener: object) -> None:  # noqa: N802
        """Note that the listener hears nothing."""
        self._recorder.note(f"the listener {type(listener).__name__} hears nothing: nothing runs")

    def get(self, id: str) -> Started:  # noqa: A002
        """Return a query, whatever its id."""
        return Started(self._recorder, id)


_MOST_WAITS = 500
_SLEEP = time.sleep
READ_STREAM: Any = SparkSession.__dict__["readStream"].fget
WRITE_STREAM: Any = ClassicDataFrame.__dict__["writeStream"].fget
MARK = "workbench_source_"
_COLUMNS = {
    "kafka": KAFKA_COLUMNS,
    "rate": "timestamp timestamp, value bigint",
    "rate-micro-batch": "timestamp timestamp, value bigint",
    "socket": "value string",
    "text": "value string",
}
_MORE = {
    ("kafka", "includeheaders"): ", headers array<struct<key: string, value: binary>>",
    ("socket", "includetimestamp"): ", timestamp timestamp",
}
_NAMING = ("subscribe", "topic", "subscribepattern", "streamname", "eventhubs.name", "table", "path")
_TARGETS = ("table", "dbtable", "keyspace", "es.resource", "database", "collection")  # of sinks without a path
_COMMON = {"csv", "json", "parquet", "orc", "txt", "gz"}


class EndedError(BaseException):
    """Ends the script; nothing in the script catches it."""


class LackingError(EndedError):
    """Ends the script if nothing shows the columns of a source."""


@dataclass
class Recorder:
    """What is found while a script runs.

    Without `streams` all sources are stand-ins. With them, the sources in `feeds` have their rows, and so have those,
    in turn, whose columns nothing else shows; the script ends where the query starts that is wanted.
    """

    spark: SparkSession
    script: Script
    folder: Path
    samples: Sequence[tuple[str, str]]
    streams: Sequence[DataFrame] = ()
    feeds: Mapping[int, int] = field(default_factory=dict)
    found: Recorded = field(default_factory=Recorded)
    frames: list[DataFrame | None] = field(default_factory=list)
    reads: list[list[int]] = field(default_factory=list)
    columns: list[StructType] = field(default_factory=list)
    file: Path | None = None  # the present file, in a project
    fed: dict[int, int] = field(default_factory=dict)
    waits: int = 0
    at: int = 0
    ours: Mapping[str, str] = field(default_factory=lambda: dict(SparkConf().getAll()))  # a SparkConf has them, too

    def line(self) -> int:
        """Line of the script that is running; 0 outside of it."""
        if self.at:  # in SQL
            return self.at
        frame: FrameType | None = sys._getframe()  # noqa: SLF001 - where the script is
        here = str(self.file or self.script.path)
        while frame is not None and frame.f_code.co_filename != here:
            frame = frame.f_back
        return frame.f_lineno if frame else 0

    @property
    def place(self) -> str:
        """Name of the project's file that is running, as a prefix of a line; "" in a script."""
        return "" if self.file in {None, self.script.path} else f"{self.file.name}, "

    def note(self, text: str) -> None:
        """Note once what is left out."""
        note = f"{self.place}{f'line {at}: ' if (at := self.line()) else ''}{text}"
        if note not in self.found.notes:
            self.found = replace(self.found, notes=(*self.found.notes, note))

    def setting(self, name: str, value: object) -> None:
        """Keep a setting, and analyse the rest with it."""
        if name == "spark.remote":
            self.note("Spark Connect is not used: the script runs in a session of this machine")
            return
        text = shown(name, str(value).lower() if isinstance(value, bool) else value)
        if self.ours.get(name) == text or name == "spark.app.name":
            return
        self.found = replace(self.found, settings={**self.found.settings, name: text})
        if not self.streams and name.startswith("spark.sql.") and "catalog" not in name.lower():
            with suppress(Exception):  # static settings of the session
                self.spark._jsparkSession.conf().set(name, text)  # noqa: SLF001 - the session's door is recorded

    def wait(self, *_: object, **__: object) -> bool:
        """Wait for no time; end a script that keeps waiting."""
        self.waits += 1
        if self.waits > _MOST_WAITS:
            self.note("waits in a loop; what follows is not looked at")
            raise EndedError
        return True

    def session(self, builder: Any) -> SparkSession:  # noqa: ANN401 - pyspark's Builder
        """Keep the settings of a session, and return the existing one."""
        for name, value in builder._options.items():  # noqa: SLF001 - its only door
            self.setting(name, value)
        return self.spark

    def context(self, *given: object) -> None:
        """Keep the settings of a context."""
        for one in given:
            for name, value in one.getAll() if isinstance(one, SparkConf) else ():
                self.setting(name, value)

    def older(self, *_: object, **__: object) -> None:
        """End where DStreams begin."""
        self.note("DStreams begin, which are not Structured Streaming; what follows is not looked at")
        raise EndedError

    def sleep(self, seconds: float) -> None:
        """Skip a sleep of the script; let other threads sleep."""
        if threading.current_thread() is threading.main_thread() and self.line():
            self.wait()
        else:
            _SLEEP(seconds)

    def write(self, name: str, *_: object, **__: object) -> None:
        """Leave out a method that writes static data."""
        self.note(f"{name}() is left out: it writes outside of a stream")

    def read(self, method: str, given: dict[str, Any], options: dict[str, str]) -> DataFrame:
        """Return the rows of a source."""
        kind = method if method in FILES else (given.get("format") or "parquet").lower()
        if "table" in given:
            kind, options = "table", {**options, "table": given["table"]}
        columns = columns_of(kind, options, given.get("schema"))
        told = None if columns is None else columns.json()
        same = ((one.format, one.options, one.schema) == (kind, options, told) for one in self.found.sources)
        number = next((place for place, is_it in enumerate(same) if is_it), len(self.found.sources))
        if number == len(self.found.sources):
            name = name_of_source(kind, options, [one.name for one in self.found.sources])
            source = ScriptSource(name, kind, options, told, self.line())
            self.found = replace(self.found, sources=(*self.found.sources, source))
            if number in self.feeds or (self.streams and columns is None):
                self.fed[number] = self.feeds.get(number, min(len(self.fed), len(self.streams) - 1))
                columns = columns or self.streams[self.fed[number]].schema
            if not columns and (given_sample := sample_of(self.samples, number, name)) is not None:
                columns = from_arrow_schema(schema_of(Dataset.at(given_sample), None))
            self.columns.append(columns or StructType())  # empty where nothing shows them
        if not self.columns[number].fields:
            self.found = replace(self.found, lacking=self.found.sources[number].name)
            raise LackingError
        if number in self.fed:
            rows = as_declared(self.streams[self.fed[number]], self.columns[number])
        else:
            empty = self.folder / f"{MARK}{number}"
            empty.mkdir(exist_ok=True)
            rows = READ_STREAM(self.spark).schema(self.columns[number]).format("parquet").load(str(empty))
        return rows.alias(f"{MARK}{number}")

    def writer(self, frame: DataFrame) -> "Chain":
        """Return a recorder of how a DataFrame is written; refuse a static one."""
        WRITE_STREAM(frame)
        return Chain(partial(self.start, frame))

    def start(self, frame: DataFrame, method: str, given: dict[str, Any], options: dict[str, str]) -> "Started":  # noqa: ARG002
        """Keep a query, and end the script at the wanted one."""
        plan = str(frame._jdf.queryExecution().analyzed().toString())  # noqa: SLF001 - py4j's only door
        reads = sorted({int(number) for number in re.findall(rf"{MARK}(\d+)", plan)})
        mode = str(given.get("outputMode") or "append").lower()
        refusal = "" if self.streams else _refusal(frame, mode, self.folder / f"checkpoint-{len(self.frames)}")
        self.keep(frame, reads, given, options, plan=plan, refusal=refusal)
        if self.streams and len(self.frames) == self.script.number:
            elsewhere.hand_over(self.script.name, given.get("foreachBatch"))
            raise EndedError
        return Started(self, given.get("queryName") or "")

    def keep(
        self,
        frame: DataFrame | None,
        reads: list[int],
        given: Mapping[str, Any],
        options: Mapping[str, str],
        *,
        plan: str = "",
        refusal: str = "",
    ) -> None:
        """Keep a query and its analysed `plan`; `frame` is None for a query that is only counted."""
        self.frames.append(frame)
        self.reads.append(reads)
        query = ScriptQuery(
            given.get("queryName") or "",
            tuple(self.found.sources[number].name for number in reads),
            _sink(given, options),
            given.get("trigger") or "",
            str(given.get("outputMode") or "append").lower(),
            watermarks_of(plan),
            self.line(),
            redacted(refusal),
            options.get("checkpointLocation", ""),
            "" if self.streams else elsewhere.beyond(given.get("foreachBatch")),
            self.place.removesuffix(", "),
            grouped_by(plan),
            joined_by(plan),
        )
        self.found = replace(self.found, queries=(*self.found.queries, query))


def _sink(given: Mapping[str, Any], options: Mapping[str, str]) -> str:
    """Describe where a query writes."""
    if (function := given.get("foreachBatch")) is not None:
        return f"foreachBatch {elsewhere.name_of(function)}"
    if (function := given.get("foreach")) is not None:
        return f"foreach {getattr(function, '__name__', type(function).__name__)}"
    if "tableName" in given:
        stored = given.get("format")
        return f"table {given['tableName']}{f' as {stored}' if stored else ''}"
    servers, topic = (options.get(name, "") for name in ("kafka.bootstrap.servers", "topic"))
    if given.get("format") == "kafka" and servers and topic:
        return f"kafka://{servers}/{topic}"
    kind, lower = given.get("format") or "parquet", {name.lower(): value for name, value in options.items()}
    placed = kind in {*FILES, "delta", "iceberg"}
    named = ", ".join(f"{name}={lower[name]}" for name in _TARGETS if lower.get(name) and not placed)
    return f"{kind} {options.get('path') or topic or named}".strip()


def _refusal(frame: DataFrame, mode: str, checkpoint: Path) -> str:
    """Return why Spark refuses to start a query, which has no rows and no sink here."""
    try:
        writer = WRITE_STREAM(frame).format("noop").outputMode(mode)
        writer.option("checkpointLocation", str(checkpoint)).start().stop()
    except Exception as error:  # noqa: BLE001 - whatever Spark says
        return redacted(first_line(error))
    return ""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return str(error).strip().split("\n", 1)[0].rstrip(".;")[:500]


def columns_of(kind: str, options: Mapping[str, str], schema: object) -> StructType | None:
    """Return the columns of a source if its kind or the script defines them."""
    if schema is None:
        asked = {name.lower() for name, value in options.items() if value.lower() == "true"}
        more = "".join(text for (of, option), text in _MORE.items() if of == kind and option in asked)
        schema = _COLUMNS[kind] + more if kind in _COLUMNS else None
    if isinstance(schema, str):
        schema = _parse_datatype_string(schema)
    return schema if isinstance(schema, StructType) else None


def as_declared(stream: DataFrame, columns: StructType) -> DataFrame:
    """Return a stream with the columns that a source declares, new at each call; those not in a sample are empty."""
    there = {name.lower() for name in stream.columns}
    return stream.select(
        *(
            (f.col(f"`{one.name}`") if one.name.lower() in there else f.lit(None)).cast(one.dataType).alias(one.name)
            for one in columns.fields
        )
    )


def name_of_source(kind: str, options: Mapping[str, str], known: Sequence[str]) -> str:
    """Name a source by its topics, table or path."""
    lower = {key.lower(): value for key, value in options.items()}
    place = next((lower[key] for key in _NAMING if lower.get(key)), kind)
    each = (re.findall(r"[^/\\.]*\w[^/\\.]*", one) for one in place.split(","))  # of topics
    last = [part for parts in each for part in [one.strip() for one in parts if one.lower() not in _COMMON][-1:]]
    name = re.sub(r"[^\w-]+", "_", "_".join(last))[:100].strip("_") or kind
    return name if name not in known else f"{name}_{len(known) + 1}"
