"""Runs a script with its streams recorded instead of carried out.

``spark.readStream`` gives stand-ins without rows, or the rows that are measured; what arrives at ``writeStream`` is
kept and not started. Static data, views and functions are the script's own. What it writes outside of its streams is
left out, and its waiting ends at once.
"""

import re
import runpy
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

from pyspark import SparkConf, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2
from pyspark.sql.types import StructType, _parse_datatype_string
from pyspark.streaming import StreamingContext

from workbench.errors import QueryError
from workbench.redaction import HIDDEN, is_secret, redacted
from workbench.workload import elsewhere
from workbench.workload.dataset import schema_of
from workbench.workload.query import Dataset
from workbench.workload.script import KAFKA_COLUMNS, Recorded, Script, ScriptQuery, ScriptSource, sample_of

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
_FILES = ("csv", "json", "orc", "parquet", "text", "xml")
_NAMING = ("subscribe", "topic", "subscribepattern", "streamname", "eventhubs.name", "table", "path")
_WRITES: dict[type, tuple[str, ...]] = {
    DataFrameWriter: ("save", "saveAsTable", "insertInto", "csv", "json", "orc", "parquet", "text", "xml", "jdbc"),
    DataFrameWriterV2: ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions"),
}
_MOST_WAITS = 500
_PASSES = 3
_LONGEST_S = 180
_SLEEP = time.sleep
_READ_STREAM: Any = SparkSession.__dict__["readStream"].fget
_WRITE_STREAM: Any = ClassicDataFrame.__dict__["writeStream"].fget
_MARK = "workbench_source_"
_WATERMARK = re.compile(r"EventTimeWatermark [^\n]*?(\w+)#\d+[^,\n]*, ([^\n]+)")


class _EndedError(BaseException):
    """Ends the script; nothing in it catches this."""


class LackingError(_EndedError):
    """Ends the script where nothing shows the columns of a source."""


def look(script: Script, spark: SparkSession, samples: Sequence[tuple[str, str]]) -> Recorded:
    """Run a script to its end, and return what was found; `samples` are names, or "", and paths of files."""
    with tempfile.TemporaryDirectory(prefix="workbench-script-") as folder:
        recorder = Recorder(spark, script, Path(folder), samples)

        def end(*_: object) -> None:
            recorder.note(f"still runs after {_LONGEST_S} s; what follows is not looked at")
            raise _EndedError

        signal.signal(signal.SIGALRM, end)
        signal.alarm(_LONGEST_S)
        failure = _run(recorder)
        signal.alarm(0)
        return replace(recorder.found, failure=redacted(failure))


def arriving(script: Script, streams: Sequence[DataFrame]) -> DataFrame:
    """Run a script until the query that is wanted starts, with `streams` as its sources; return what it would write.

    It runs once to see which sources are the query's, and again where these were not fed.

    Raises
    ------
    QueryError
        When it does not get there, or the query reads another number of sources.
    """
    feeds: dict[int, int] = {}
    for _ in range(_PASSES):
        with tempfile.TemporaryDirectory(prefix="workbench-script-") as folder:
            recorder = Recorder(streams[0].sparkSession, script, Path(folder), (), streams, feeds)
            failure = _run(recorder)
        if len(recorder.frames) < script.number:
            reason = failure or f"it starts {len(recorder.frames)}"
            raise QueryError(
                f"The script {script.call} does not start its query {script.number}: {reason}. See what it starts: "
                f"workbench init {script.call!r}"
            )
        reads = recorder.reads[-1]
        if len(reads) != len(streams):
            names = ", ".join(recorder.found.sources[number].name for number in reads) or "none"
            raise QueryError(
                f"The query {script.name} reads {len(reads)} of the script's sources ({names}), and is fed "
                f"{len(streams)}. Write its study again: workbench init {script.call!r}"
            )
        wanted = {number: place for place, number in enumerate(reads)}
        frame = recorder.frames[-1]
        if frame is not None and wanted.items() <= recorder.fed.items():
            return frame
        feeds = wanted
    raise QueryError(f"The script {script.call} reads other sources each time it runs, so none of them can be fed.")


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
    file: Path | None = None  # of a project's
    fed: dict[int, int] = field(default_factory=dict)
    waits: int = 0
    at: int = 0
    ours: Mapping[str, str] = field(default_factory=lambda: dict(SparkConf().getAll()))  # a SparkConf has them, too

    def line(self) -> int:
        """Line of the script that is carried out; 0 outside of it."""
        if self.at:  # of SQL
            return self.at
        frame: FrameType | None = sys._getframe()  # noqa: SLF001 - where the script is
        here = str(self.file or self.script.path)
        while frame is not None and frame.f_code.co_filename != here:
            frame = frame.f_back
        return frame.f_lineno if frame else 0

    @property
    def place(self) -> str:
        """Name of the project's file that is carried out, before a line; "" of a script."""
        return "" if self.file in {None, self.script.path} else f"{self.file.name}, "

    def note(self, text: str) -> None:
        """Note once what is not carried out."""
        note = f"{self.place}line {self.line()}: {text}"
        if note not in self.found.notes:
            self.found = replace(self.found, notes=(*self.found.notes, note))

    def setting(self, name: str, value: object) -> None:
        """Keep a setting, and analyse what follows with it."""
        text = _shown(name, str(value).lower() if isinstance(value, bool) else value)
        if self.ours.get(name) == text or name == "spark.app.name":
            return
        self.found = replace(self.found, settings={**self.found.settings, name: text})
        if not self.streams and name.startswith("spark.sql.") and "catalog" not in name.lower():
            with suppress(Exception):  # of the session's start
                self.spark._jsparkSession.conf().set(name, text)  # noqa: SLF001 - the session's door is recorded

    def wait(self, *_: object, **__: object) -> bool:
        """Wait no time; a script that goes on waiting is at its end."""
        self.waits += 1
        if self.waits > _MOST_WAITS:
            self.note("waits in a loop; what follows is not looked at")
            raise _EndedError
        return True

    def session(self, builder: Any) -> SparkSession:  # noqa: ANN401 - pyspark's Builder
        """Keep the settings of a session, and give the one that is there."""
        for name, value in builder._options.items():  # noqa: SLF001 - its only door
            if name == "spark.remote":
                self.note("Spark Connect is not used: the script runs in a session of this machine")
            else:
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
        raise _EndedError

    def sleep(self, seconds: float) -> None:
        """Wait no time if the script waits, and not another thread."""
        if threading.current_thread() is threading.main_thread() and self.line():
            self.wait()
        else:
            _SLEEP(seconds)

    def write(self, name: str, *_: object, **__: object) -> None:
        """Leave out what writes static data."""
        self.note(f"{name}() is left out: it writes outside of a stream")

    def read(self, method: str, given: dict[str, Any], options: dict[str, str]) -> DataFrame:
        """Give the rows of a source."""
        kind = method if method in _FILES else given.get("format") or "parquet"
        if "table" in given:
            kind, options = "table", {**options, "table": given["table"]}
        columns = _columns_of(kind, options, given.get("schema"))
        told = None if columns is None else columns.json()
        same = ((one.format, one.options, one.schema) == (kind, options, told) for one in self.found.sources)
        number = next((place for place, is_it in enumerate(same) if is_it), len(self.found.sources))
        if number == len(self.found.sources):
            name = _name(kind, options, [one.name for one in self.found.sources])
            source = ScriptSource(name, kind, options, told, self.line())
            self.found = replace(self.found, sources=(*self.found.sources, source))
            if number in self.feeds or (self.streams and columns is None):
                self.fed[number] = self.feeds.get(number, min(len(self.fed), len(self.streams) - 1))
                columns = columns or self.streams[self.fed[number]].schema
            self.columns.append(columns or self._of_sample(number, name))
        if not self.columns[number].fields:
            self.found = replace(self.found, lacking=self.found.sources[number].name)
            raise LackingError
        if number in self.fed:
            rows = _as_declared(self.streams[self.fed[number]], self.columns[number])
        else:
            empty = self.folder / f"{_MARK}{number}"
            empty.mkdir(exist_ok=True)
            rows = _READ_STREAM(self.spark).schema(self.columns[number]).format("parquet").load(str(empty))
        return rows.alias(f"{_MARK}{number}")

    def _of_sample(self, number: int, name: str) -> StructType:
        """Give the columns of a source that the script does not declare; none where no sample shows them."""
        given = sample_of(self.samples, number, name)
        if given is None:
            return StructType()
        return from_arrow_schema(schema_of(Dataset.at(given), None))

    def writer(self, frame: DataFrame) -> "Chain":
        """Give what keeps how a DataFrame is written; a static one is refused."""
        _WRITE_STREAM(frame)
        return Chain(partial(self.start, frame))

    def start(self, frame: DataFrame, method: str, given: dict[str, Any], options: dict[str, str]) -> "_Started":  # noqa: ARG002
        """Keep a query, and end the script at the one that is wanted."""
        plan = str(frame._jdf.queryExecution().analyzed().toString())  # noqa: SLF001 - py4j's only door
        reads = sorted({int(number) for number in re.findall(rf"{_MARK}(\d+)", plan)})
        watermarks = tuple(dict.fromkeys(f"{column}, {delay.strip()}" for column, delay in _WATERMARK.findall(plan)))
        mode = str(given.get("outputMode") or "append").lower()
        refusal = "" if self.streams else _refusal(frame, mode, self.folder / f"checkpoint-{len(self.frames)}")
        self.keep(frame, reads, given, options, watermarks=watermarks, refusal=refusal)
        if self.streams and len(self.frames) == self.script.number:
            elsewhere.hand_over(self.script.name, given.get("foreachBatch"))
            raise _EndedError
        return _Started(self, given.get("queryName") or "")

    def keep(
        self,
        frame: DataFrame | None,
        reads: list[int],
        given: Mapping[str, Any],
        options: Mapping[str, str],
        *,
        watermarks: tuple[str, ...] = (),
        refusal: str = "",
    ) -> None:
        """Keep a query; its `frame` is None where it is only counted."""
        self.frames.append(frame)
        self.reads.append(reads)
        query = ScriptQuery(
            given.get("queryName") or "",
            tuple(self.found.sources[number].name for number in reads),
            _sink(given, options),
            given.get("trigger") or "",
            str(given.get("outputMode") or "append").lower(),
            watermarks,
            self.line(),
            redacted(refusal),
            options.get("checkpointLocation", ""),
            "" if self.streams else elsewhere.beyond(given.get("foreachBatch")),
            self.place.removesuffix(", "),
        )
        self.found = replace(self.found, queries=(*self.found.queries, query))

    @property
    def wanted(self) -> bool:
        """Whether the query that comes next is the one to be fed."""
        return len(self.frames) + 1 == self.script.number


def _sink(given: Mapping[str, Any], options: Mapping[str, str]) -> str:
    """Say where a query writes."""
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
    return f"{given.get('format') or 'parquet'} {options.get('path', topic)}".strip()


def _columns_of(kind: str, options: Mapping[str, str], schema: object) -> StructType | None:
    """Give the columns of a source where its kind or the script says them."""
    if schema is None:
        asked = {name.lower() for name, value in options.items() if value.lower() == "true"}
        more = "".join(text for (of, option), text in _MORE.items() if of == kind and option in asked)
        schema = _COLUMNS[kind] + more if kind in _COLUMNS else None
    if isinstance(schema, str):
        schema = _parse_datatype_string(schema)
    return schema if isinstance(schema, StructType) else None


def _as_declared(stream: DataFrame, columns: StructType) -> DataFrame:
    """Give the columns that a source declares, new ones at each call; those that a sample lacks are empty."""
    there = {name.lower() for name in stream.columns}
    return stream.select(
        *(
            (f.col(f"`{one.name}`") if one.name.lower() in there else f.lit(None)).cast(one.dataType).alias(one.name)
            for one in columns.fields
        )
    )


def _refusal(frame: DataFrame, mode: str, checkpoint: Path) -> str:
    """Say why Spark refuses to start a query; it has no rows, and no sink."""
    try:
        writer = _WRITE_STREAM(frame).format("noop").outputMode(mode)
        writer.option("checkpointLocation", str(checkpoint)).start().stop()
    except Exception as error:  # noqa: BLE001 - whatever Spark says
        return redacted(first_line(error))
    return ""


def _run(recorder: Recorder) -> str:
    """Run the script; return why it ended early, or ""."""
    script = recorder.script
    known = set(sys.modules)
    names = {"spark": recorder.spark, "sc": recorder.spark.sparkContext}  # as shells and notebooks have them
    try:
        with _recorded(recorder), redirect_stdout(sys.stderr):
            if script.path.suffix != ".py":
                from workbench.workload.pipelines import Pipeline  # noqa: PLC0415 - which records with this

                Pipeline(recorder).carry_out()
            else:
                runpy.run_path(str(script.path), names, "__main__")
    except _EndedError:
        return ""
    except KeyboardInterrupt:
        raise
    except SystemExit as error:
        if not error.code:
            return ""
        return f"it exits with {error.code}; if it takes arguments, write them: '{script.file} ARGUMENT'"
    except BaseException as error:  # noqa: BLE001 - whatever a script does
        lines = [line for frame, line in _frames(error) if frame == str(script.path)]
        at = f"line {lines[-1]}: " if lines else ""
        return f"{at}{type(error).__name__}: {first_line(error)}"
    finally:  # its own modules may hold streams of this run
        for name in sys.modules.keys() - known:
            file = Path(getattr(sys.modules[name], "__file__", None) or "/")
            if script.path.parent in file.parents and "site-packages" not in file.parts:
                del sys.modules[name]
    return ""


def _frames(error: BaseException) -> Iterator[tuple[str, int]]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next


def first_line(error: BaseException) -> str:
    """Give the first line of what an error says."""
    return str(error).strip().split("\n", 1)[0].rstrip(".")[:500]


@contextmanager
def _recorded(recorder: Recorder) -> Iterator[None]:
    """Replace what a script would carry out."""
    active = recorder.spark.sparkContext
    with ExitStack() as patches:
        for owner, name, new in (
            (SparkSession.Builder, "getOrCreate", lambda builder: recorder.session(builder)),  # noqa: PLW0108 - its self
            (SparkSession.Builder, "create", lambda builder: recorder.session(builder)),  # noqa: PLW0108
            (SparkContext, "__new__", lambda *_, **__: active),
            (SparkContext, "__init__", lambda _, *given, **named: recorder.context(*given, *named.values())),
            (StreamingContext, "__init__", recorder.older),
            (SparkContext, "stop", _nothing),
            (SparkContext, "setLogLevel", _nothing),
            (SparkSession, "stop", _nothing),
            (SparkSession, "readStream", property(lambda _: Chain(recorder.read))),
            (SparkSession, "streams", property(lambda _: _Streams(recorder))),
            (ClassicDataFrame, "writeStream", property(recorder.writer)),
            (RuntimeConfig, "set", lambda _, name, value: recorder.setting(name, value)),
            (time, "sleep", recorder.sleep),
            (sys, "argv", [recorder.script.file, *recorder.script.arguments]),
            (sys, "path", [str(recorder.script.path.parent), *sys.path]),
            *((owner, name, partial(recorder.write, name)) for owner, names in _WRITES.items() for name in names),
        ):
            patches.enter_context(patch.object(owner, name, new))
        yield


def _nothing(*_: object, **__: object) -> None:
    """Do nothing."""


_POSITIONAL = {
    "load": ("path", "format", "schema"),
    "start": ("path", "format", "outputMode", "partitionBy", "queryName"),
    "toTable": ("tableName", "format", "outputMode", "partitionBy", "queryName"),
    "changes": ("table",),
    **dict.fromkeys(_FILES, ("path", "schema")),
}
_ENDS = {"load", "table", "changes", "start", "toTable", *_FILES}
_NO_OPTIONS = {
    "format",
    "schema",
    "outputMode",
    "queryName",
    "trigger",
    "foreach",
    "foreachBatch",
    "table",
    "tableName",
}


class Chain:
    """In place of ``spark.readStream`` and of a DataFrame's ``writeStream``: keeps what is asked for until its end.

    Parameters
    ----------
    end
        Called with the last method's name, what was given by the names of parameters, and the options.
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
                self._options[name] = HIDDEN if is_secret(name) else redacted(str(value))
        if "func" in named or "f" in named:
            self._given[method] = named.get("func", named.get("f"))
        return self._end(method, dict(self._given), dict(self._options)) if method in _ENDS else self


class _Started:
    """In place of a ``StreamingQuery``."""

    isActive, lastProgress, status = False, None, {"message": "recorded", "isTriggerActive": False}  # noqa: N815

    def __init__(self, recorder: Recorder, name: str) -> None:
        self._recorder, self.name = recorder, name or None
        self.id = self.runId = str(uuid.uuid4())
        self.awaitTermination = recorder.wait
        self.stop = self.explain = self.exception = _nothing

    def processAllAvailable(self) -> None:  # noqa: N802
        self._recorder.note("processAllAvailable() waits for rows, and nothing runs: what it waits for is not there")

    @property
    def recentProgress(self) -> list[object]:  # noqa: N802
        self._recorder.note("recentProgress is empty: nothing runs")
        self._recorder.wait()
        return []


class _Streams:
    """In place of ``spark.streams``."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.active: list[_Started] = []
        self.awaitAnyTermination = recorder.wait
        self.removeListener = self.resetTerminated = _nothing

    def addListener(self, listener: object) -> None:  # noqa: N802
        self._recorder.note(f"the listener {type(listener).__name__} hears nothing: nothing runs")

    def get(self, id: str) -> _Started:  # noqa: A002
        return _Started(self._recorder, id)


def _shown(name: str, value: object) -> str:
    """Write an option's value without a secret."""
    return HIDDEN if is_secret(name) else redacted(str(value))


def _name(kind: str, options: Mapping[str, str], known: Sequence[str]) -> str:
    """Name a source by its topic, table or path."""
    lower = {key.lower(): value for key, value in options.items()}
    place = next((lower[key] for key in _NAMING if lower.get(key)), kind)
    parts = [part for part in re.split(r"[/\\.,]", place) if re.search(r"\w", part) and part.lower() not in _COMMON]
    name = re.sub(r"[^\w-]+", "_", parts[-1] if parts else kind).strip("_") or kind
    return name if name not in known else f"{name}_{len(known) + 1}"


_COMMON = {"csv", "json", "parquet", "orc", "txt", "gz"}
