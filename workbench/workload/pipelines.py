"""The flows of a Declarative Pipelines project, or of a file of SQL, each recorded as a streaming query.

Definitions run with a stand-in for ``pyspark.pipelines``. Then each flow's function is called, as Spark does, in the
order in which they are defined. Its reads of the project's own tables are sources, with the columns that their flows
write; views are part of the flows that read them, as they are in Spark.
"""

import re
import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.types import StructField, StructType

from workbench.errors import QueryError
from workbench.workload.recorder import Chain, LackingError, Recorder, first_line
from workbench.workload.script import Project

_PARTS = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|;|\s+|[^\s;]", re.DOTALL)
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_SET = re.compile(r"set\s+([\w.]+)\s*=\s*(.*)", re.IGNORECASE | re.DOTALL)
_CREATE = re.compile(
    r"create\s+(?:or\s+(?:refresh|replace)\s+)?"
    r"(?P<kind>streaming\s+table|materialized\s+view|temp(?:orary)?\s+view|flow)\s+"
    r"(?:if\s+not\s+exists\s+)?(?P<name>[\w.`]+)",
    re.IGNORECASE,
)
_INTO = re.compile(r"insert\s+into\s+(?:table\s+)?(?P<name>[\w.`]+)\s+(?:by\s+name\s+)?", re.IGNORECASE)
_SELECT = re.compile(r"(?:\bas\s+|\A\s*)(?=with\b|select\b)", re.IGNORECASE)
_USING = re.compile(r"\busing\s+(\w+)", re.IGNORECASE)
_READ = re.compile(r"\b(from|join)\s+(?:stream\s*\(\s*([\w.`]+)\s*\)|stream\s+([\w.`]+)|([\w.`]+))", re.IGNORECASE)
_FUNCTION = re.compile(r"create\s+(?:or\s+replace\s+)?temp(?:orary)?\s+function\b", re.IGNORECASE)
_TABLE, _VIEW, _STORED, _ANY = "streaming table", "view", "materialized view", ""
_KINDS = {"streaming table": _TABLE, "flow": _TABLE, "materialized view": _STORED}
_SQL, _READ_TABLE, _TABLE_OF = SparkSession.sql, DataFrameReader.table, SparkSession.table


@dataclass(frozen=True)
class Flow:
    """The definition that writes into a dataset, or is a view."""

    name: str  # name of the flow
    target: str  # name of the dataset
    kind: str  # kind of the dataset
    make: Callable[[], DataFrame]  # returns the rows
    file: Path
    line: int


class Pipeline:
    """The datasets and flows of a script: a specification, whose flows process the available rows and end, or SQL."""

    def __init__(self, recorder: Recorder) -> None:
        path = recorder.script.path
        self._ends = path.suffix != ".sql"
        self._recorder, self._project = recorder, Project.read(path) if self._ends else Project((path,))
        self._flows: list[Flow] = []
        self._outputs: dict[str, tuple[dict[str, Any], dict[str, str]]] = {}
        self._made: dict[int, DataFrame] = {}
        self._making: list[Flow] = []

    def carry_out(self) -> None:
        """Run the definitions, and record each flow that streams."""
        recorder = self._recorder
        for name, value in self._project.settings.items():
            recorder.setting(name, value)
        with self._stand_in():
            for file in self._project.files:
                recorder.file = file
                if file.suffix == ".sql":
                    self._define_sql(file)
                else:
                    runpy.run_path(str(file), {"spark": recorder.spark}, file.stem)
            for flow in self._flows:
                self._record(flow)

    def _record(self, flow: Flow) -> None:
        """Record a flow as a query; only count it if another one is wanted."""
        recorder = self._recorder
        if flow.kind == _STORED:
            with self._at(flow, flow.line):
                recorder.note(f"{flow.name} is a materialized view: it is made again in each run, and is not a stream")
        if flow.kind in {_VIEW, _STORED}:
            return
        bare: dict[str, Any] = {"tableName": flow.target} if flow.target else {"format": "console"}
        given, options = self._outputs.get(_key(flow.target), (bare, {}))
        given = {**given, "queryName": flow.name, **({"trigger": "availableNow=True"} if self._ends else {})}
        if self._project.storage:
            options = {**options, "checkpointLocation": self._project.storage}
        before, frame, reason = len(recorder.found.sources), None, ""
        wanted = len(recorder.frames) + 1 == recorder.script.number
        if flow.kind == _ANY or not recorder.streams or wanted:
            frame, reason = self._tried(flow)
        with self._at(flow, flow.line):
            if frame is not None and (frame.isStreaming or flow.kind != _ANY):
                recorder.start(frame, "start", given, options)
            elif flow.kind != _ANY:
                reads = [] if reason else [*range(before, len(recorder.found.sources))]
                recorder.keep(None, reads, given, options, refusal=reason)

    def _tried(self, flow: Flow) -> tuple[DataFrame | None, str]:
        """Return the rows of a flow, or None with the reason, which is "" if a source of it lacks its columns."""
        recorder = self._recorder
        try:
            return self._frame(flow), ""
        except LackingError:
            if flow.kind == _ANY:
                raise
            recorder.found = replace(recorder.found, lacking="")
            return None, ""
        except Exception as error:
            if recorder.streams or flow.kind == _ANY:
                raise
            return None, f"{type(error).__name__}: {first_line(error)}"

    def _frame(self, flow: Flow) -> DataFrame:
        if id(flow) not in self._made:
            if flow in self._making:
                raise QueryError(f"{flow.name} reads itself.")
            self._making.append(flow)
            try:
                with self._at(flow, flow.line if flow.file.suffix == ".sql" else 0):  # a function's own lines are found
                    self._made[id(flow)] = flow.make()
            finally:
                self._making.remove(flow)
        return self._made[id(flow)]

    @contextmanager
    def _at(self, flow: Flow, line: int) -> Iterator[None]:
        """Attribute what is found to the file of a flow, and to a line of it."""
        recorder = self._recorder
        before = recorder.file, recorder.at
        recorder.file, recorder.at = flow.file, line
        try:
            yield
        finally:
            recorder.file, recorder.at = before

    def _columns(self, table: str) -> StructType | None:
        """Return the columns of the project's own table, which keeps no watermark; None if nothing shows them."""
        try:
            frame = next((self._tried(flow)[0] for flow in self._into(table)), None)
        except Exception:  # noqa: BLE001 - the rows that are fed show them
            frame = None
        bare = [] if frame is None else [StructField(one.name, one.dataType, one.nullable) for one in frame.schema]
        return None if frame is None else StructType(bare)

    def _view(self, table: str) -> Flow | None:
        """Return the view of this name, materialized or not: its flow is part of the one that reads it."""
        return next((flow for flow in self._into(table) if flow.kind in {_VIEW, _STORED}), None)

    def _into(self, table: str) -> list[Flow]:
        """Return the flows that write the project's own dataset of this name; empty for other datasets."""
        return [flow for flow in self._flows if _key(flow.target) == _key(table)]

    def _stream(self, method: str, given: dict[str, Any], options: dict[str, str]) -> DataFrame:
        """Return the rows of a source, of a view, or of the project's own table."""
        table = given.get("table")
        if table is None or not self._into(table):
            return self._recorder.read(method, given, options)
        view = self._view(table)
        if view is not None and view.kind == _VIEW:
            return self._frame(view)
        return self._recorder.read(method, {**given, "schema": None if view else self._columns(table)}, options)

    def _static(self, table: str) -> DataFrame | None:
        """Return the rows of the project's own dataset at rest, empty for a table; None for other datasets."""
        if not self._into(table):
            return None
        if (view := self._view(table)) is not None:
            return self._frame(view)
        columns = self._columns(table)
        return None if columns is None else self._recorder.spark.createDataFrame([], columns)

    def _query(self, text: str, *given: Any, **named: Any) -> DataFrame:  # noqa: ANN401 - Spark's
        """Run a query of SQL: what it reads of the project, or as a stream, becomes a view of that name."""

        def read(found: re.Match[str]) -> str:
            table = (found[2] or found[3] or found[4]).replace("`", "")
            frame = self._static(table) if found[4] else self._stream("table", {"table": table}, {})
            if frame is None:
                return found[0]
            frame.createOrReplaceTempView(view := _key(table))
            return f"{found[1]} `{view}`"

        return _SQL(self._recorder.spark, _READ.sub(read, text), *given, **named)

    def _define_sql(self, file: Path) -> None:
        recorder = self._recorder
        for line, statement in _statements(file.read_text(encoding="utf-8")):
            bare = _QUOTED.sub(lambda found: "'" * len(found[0]), statement)  # comments may contain anything
            created, into = _CREATE.match(bare), _INTO.search(bare)
            kind = _KINDS.get(" ".join(created["kind"].lower().split()), _VIEW) if created else _ANY
            named = into or created
            rest = bare[named.end() :] if named else bare
            select = _SELECT.search(rest)
            target = (named["name"] if named else "").replace("`", "")
            recorder.at = line
            if created and kind == _TABLE and not into:
                using = _USING.search(rest, 0, select.start() if select else len(rest))
                self._output(target, format=using and using[1])
            if (setting := _SET.fullmatch(statement)) is not None:
                recorder.setting(setting[1], setting[2].strip())
            elif _FUNCTION.match(statement):
                _SQL(recorder.spark, statement)
            elif select is not None:
                name = created["name"].replace("`", "") if created else target
                make = partial(self._query, statement[len(bare) - len(rest) + select.end() :])
                self._flows.append(Flow(name, target, kind, make, file, line))
            elif not created:
                recorder.note(f"{' '.join(statement.split()[:3])} is left out: it is not a view and reads no stream")
        recorder.at = 0

    def _output(self, name: str, *, format: str | None = None, **_: object) -> None:  # noqa: A002 - Spark's
        self._outputs[_key(name)] = {"tableName": name, "format": format}, {}

    def _sink(self, name: str, format: str, options: dict[str, str] | None = None) -> None:  # noqa: A002
        self._outputs[_key(name)] = {"format": format}, options or {}

    def _dataset(
        self,
        kind: str,
        make: Callable[[], DataFrame] | None = None,
        *,
        name: str | None = None,
        **given: Any,  # noqa: ANN401
    ) -> Callable[[Callable[[], DataFrame]], None] | None:
        """Note a dataset with the flow of its name, as a decorator."""

        def defined(decorated: Callable[[], DataFrame]) -> None:
            named = name or decorated.__name__
            self._output(named, format=given.get("format"))
            self._append(target=named, name=named, kind=kind)(decorated)

        if make is None:
            return defined
        defined(make)
        return None

    def _append(
        self, *, target: str, name: str | None = None, kind: str = _TABLE, **_: object
    ) -> Callable[[Callable[[], DataFrame]], None]:
        """Note a flow, as a decorator."""

        def defined(make: Callable[[], DataFrame]) -> None:
            code = make.__code__
            self._flows.append(
                Flow(name or make.__name__, target, kind, make, Path(code.co_filename), code.co_firstlineno)
            )

        return defined

    def _changes(self, target: str, *_: object, **__: object) -> None:
        self._recorder.note(f"the changes of {target} are left out: Spark merges them without a query")

    @contextmanager
    def _stand_in(self) -> Iterator[None]:
        """Replace ``pyspark.pipelines``, and return what the project reads of itself."""
        module = ModuleType("pyspark.pipelines")
        vars(module).update(
            table=partial(self._dataset, _TABLE),
            materialized_view=partial(self._dataset, _STORED),
            temporary_view=partial(self._dataset, _VIEW),
            append_flow=self._append,
            create_streaming_table=self._output,
            create_sink=self._sink,
            create_auto_cdc_flow=self._changes,
        )
        with ExitStack() as patches:
            patches.enter_context(patch.dict(sys.modules, {module.__name__: module}))
            patches.enter_context(patch.object(pyspark, "pipelines", module, create=True))
            for owner, name, new in (
                (SparkSession, "readStream", property(lambda _: Chain(self._stream))),
                (SparkSession, "sql", lambda _, *given, **named: self._query(*given, **named)),
                (SparkSession, "table", lambda spark, name: self._static(name) or _TABLE_OF(spark, name)),
                (DataFrameReader, "table", lambda reader, name: self._static(name) or _READ_TABLE(reader, name)),
            ):
                patches.enter_context(patch.object(owner, name, new))
            yield


def _key(name: str) -> str:
    """Return the name of a dataset without its catalog and database."""
    return name.replace("`", "").rpartition(".")[2].lower()


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line in which each statement of SQL begins, and the statement without comments."""
    begun, line, said = 0, 1, ""
    for part in (*_PARTS.findall(text), ";"):
        if part == ";" and said.strip():
            yield begun, said.strip()
            said = ""
        elif part != ";" and not part.startswith(("--", "/*")):
            begun = begun if said.strip() else line
            said += part
        line += part.count("\n")
