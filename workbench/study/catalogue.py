"""Find the query a user names: ``nexmark:q5`` or ``module:function``."""

import hashlib
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from workbench.errors import WorkbenchError
from workbench.records import Sink
from workbench.study import own
from workbench.testbed.spark.kafka import Limits, capture
from workbench.workload import (
    Dataset,
    Input,
    OutputMode,
    Query,
    Script,
    ScriptBatches,
    Unread,
    check_dataset,
    check_inputs,
    kafka,
    nexmark,
    schema_of,
)

SOURCES = ("replay", "kafka")  # of a query's rows
CAPTURES = Path(".workbench/captured")  # folder for samples of topics that are named as a data set
COLUMNS_ROWS = 10_000  # rows of a sample from which only the columns are used
Inputs = Mapping[str, Mapping[str, Any]]
"""Data sets of a query of several inputs, by the arguments that they feed, as `Input` has them."""


@dataclass(frozen=True)
class GivenRows:
    """The rows that a query reads; see `find_query`."""

    dataset: str | None = None
    event_time: str | None = None
    source: str = SOURCES[0]
    schema: str | None = None
    inputs: Inputs = field(default_factory=dict)
    progress: Callable[[str], None] = lambda _: None

    def check(self) -> None:
        """Refuse fields that exclude each other."""
        topic = (self.dataset or "").startswith(kafka.SCHEME)
        if self.inputs and (self.dataset, self.event_time) != (None, None):
            given = "dataset" if self.dataset is not None else "event_time"
            raise WorkbenchError(
                f"{given} is given, and inputs too, which have their own. Remove {given}.", settings=(given,)
            )
        if self.inputs and self.source == "kafka":
            raise WorkbenchError(
                f"source is 'kafka', and there are {len(self.inputs)} inputs: Spark divides no rate among topics, so "
                "their event times would drift apart. Use source: replay, which replays captured samples of the topics "
                "together.",
                settings=("source",),
            )
        for key, usual, instead in (
            ("source", SOURCES[0], "use source: replay"),
            ("schema", None, "remove the schema"),
        ):
            if (given := getattr(self, key)) != usual and not topic:
                raise WorkbenchError(
                    f"{key} is {given!r}, but the data set is {self.dataset!r}, which is not a topic. Name one, such "
                    f"as kafka://localhost:9092/orders, or {instead}.",
                    settings=("dataset",),
                )
        if self.schema is not None and self.source == "kafka":
            raise WorkbenchError(
                f"schema is {self.schema!r}, but source is 'kafka': Spark's Kafka source decodes no Avro by itself. "
                "Remove the schema: your query then gets the bytes in the column value, and decodes them as in "
                "production. Or use source: replay.",
                settings=("source",),
            )

    def require_captured(self) -> None:
        """Refuse a topic without a sample here, where none may be captured."""
        for url in self.datasets:
            if url.startswith(kafka.SCHEME) and not any(map(Path.exists, self._samples(url)[0])):
                raise WorkbenchError(
                    f"No sample of {kafka.Topic.parse(url).url} is in {CAPTURES}. Run workbench plan, which captures "
                    "one, or workbench capture, and name its file as the data set."
                )

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of the data sets, in the order of the inputs."""
        return (*([self.dataset] if self.dataset else []), *(one["dataset"] for one in self.inputs.values()))

    @property
    def data(self) -> Dataset | tuple[Input, ...]:
        """The data sets, which are there and can be read."""
        if not self.inputs:
            return self.one(self.event_time)
        found = []
        for name, one in self.inputs.items():
            data = Dataset.at(self._place(one["dataset"]), one.get("event_time"))
            found.append(Input(name, data, one.get("share"), tuple(one.get("renew", ()))))
        check_inputs(found)
        return tuple(found)

    def one(self, event_time: str | None) -> Dataset:
        """Return the data set with this event-time column."""
        data = Dataset.at(self._place(self.dataset or ""), event_time)
        check_dataset(data, event_time)
        return data

    def _place(self, dataset: str) -> str:
        """Return the path of a data set; for a topic, that of its sample, captured at its first use."""
        if not dataset.startswith(kafka.SCHEME):
            return dataset
        samples, decoded = self._samples(dataset)
        found = next((sample for sample in samples if sample.exists()), None)
        if found is None:
            topic, found = kafka.Topic.parse(dataset), samples[-1]
            limits = Limits(rows=COLUMNS_ROWS) if self.source == "kafka" else Limits()
            self.progress(f"capturing a sample of at most {limits.rows:,} records of {topic.url}")
            capture(topic, found, limits, kafka.client_settings(), schema=decoded, progress=self.progress)
        return str(found)

    def _samples(self, url: str) -> tuple[list[Path], kafka.Schema | None]:
        """Return the samples of a topic, the one to capture last, and the schema of its values.

        Of a topic that Spark reads itself, a small sample is enough, because it gives the columns only.
        """
        decoded = None if self.schema is None else kafka.read_schema(self.schema)
        topic = kafka.Topic.parse(url)
        name = f"{topic.name}-{hashlib.sha256(topic.url.encode()).hexdigest()[:8]}"
        name += "" if decoded is None else f"-{decoded.digest}"
        kinds = ("", "-columns") if self.source == "kafka" else ("",)
        return [CAPTURES / f"{name}{kind}.parquet" for kind in kinds], decoded


def find_query(
    name: str,
    dataset: str | None = None,
    event_time: str | None = None,
    output_mode: OutputMode | None = None,
    source: str = SOURCES[0],
    *,
    schema: str | None = None,
    sink: Sink | None = None,
    inputs: Inputs = MappingProxyType({}),
    progress: Callable[[str], None] = lambda _: None,
    imports: bool = True,
) -> Query:
    """Return the query called `name`, fed from `dataset` or `inputs` where they are given.

    `name` is ``"nexmark:QUERY"``; ``"module:name"`` of a `Query`, or of a function of streaming DataFrames, which needs
    data, looked for in the current folder first, and read again there; or ``"job.py#1"``, the first streaming query
    that a script starts: see `workbench.workload.Script`.

    `dataset` is a path, or ``kafka://HOST:PORT/TOPIC``, of which a sample is captured once, with a line to `progress`;
    `event_time` its column, by default the query's own; `schema` a file with that of the topic's values, see
    `workbench.workload.kafka.read_schema`. The `source` ``"replay"`` replays the data at a controlled rate; with
    ``"kafka"`` Spark reads the topic itself. A function of several DataFrames has `inputs` instead. ``foreachBatch``
    calls the function of `sink`: that of a script as the script's query does. For `imports` see `read_query`.
    """
    rows = GivenRows(dataset, event_time, source, schema, inputs, progress)
    rows.check()
    if source == "kafka":  # Spark's source does not use some settings: refuse them before anything is deployed
        kafka.java_settings(kafka.client_settings())
    if not imports:
        rows.require_captured()
    module, _, attribute = name.partition(":")
    script = None if module == "nexmark" else Script.named(name)
    if script is not None:
        if imports and (folder := str(script.path.parent)) not in sys.path:  # for the modules next to it, in Spark
            sys.path.insert(0, folder)
        query = _started_by(script, rows)
    elif not module or not attribute:
        raise WorkbenchError(
            f"The query {name!r} is not of the form nexmark:QUERY or module:function; "
            "for example nexmark:q5, or jobs:orders for the function orders in jobs.py; or job.py#1 for the first "
            "streaming query that the script job.py starts."
        )
    else:
        query = _found(name, rows, imports=imports)
        query = replace(query, topic=dataset) if source == "kafka" else query
    if sink is not None:
        query = replace(query, sink=check_sink(sink, script, imports=imports))
    return replace(query, output_mode=output_mode) if output_mode else query


read_query = partial(find_query, imports=False)
"""Finds a query without importing a module of the user's: it cannot run. No topic is read either: a sample of it must
be here. A name that its module's text does not define as a function may be a `Query`, of which nothing else is known.
"""


def check_sink(sink: Sink, script: Script | None = None, *, imports: bool = False) -> Callable[..., object]:
    """Return what ``foreachBatch`` calls: of `script`, which does not run yet, or of a module, read or imported."""
    file, _, function = sink.function.rpartition(":")
    if script is not None and file.endswith(".py") and Path(file).resolve() == script.path:
        return ScriptBatches(script, function)
    called: Callable[..., object]
    if imports:
        called = _loaded(sink.function, "the sink")
        signature = own.signature_of(called)
    else:
        called = found = own.read_own(sink.function, "the sink")
        signature = own.written_signature(found.file, function)
    own.check_batch_function(_named(sink.function), signature, placed=bool(sink.place))
    return called


def _named(name: str) -> str:
    """Return ``module:name`` for a name that may begin with a file."""
    module, _, attribute = name.partition(":")
    return f"{own.module_of(module)}:{attribute}"


def _loaded(name: str, kind: str) -> Any:  # noqa: ANN401 - what can be called, or a `Query`
    """Load what users name, from a module that finishes when it is imported."""
    name = _named(name)
    module, _, attribute = name.partition(":")
    if (file := own.file_of(module)) is not None:
        own.check_module(name, file)
    found: Any = own.load_own(name, kind)
    if not callable(found.build if kind == "query" and isinstance(found, Query) else found):
        raise own.missing(module, attribute, sys.modules[module])
    return found


def needed_arguments(name: str) -> tuple[str, ...] | None:
    """Names of the arguments that the query called `name`, a user's function, must be given; None: any."""
    found = _loaded(name, "query")
    signature = own.signature_of(found.build if isinstance(found, Query) else found)
    return None if signature is None else own.needed(signature)


def recorded(_: object) -> NoReturn:
    """Fail: of a recorded query only the measured rates are known."""
    raise WorkbenchError("A recorded query has rates but no code, so it cannot be run.")


def _found(name: str, rows: GivenRows, *, imports: bool) -> Query:
    """Find a query that no script starts, and feed it; a user's in the text of its module, unless it `imports` that."""
    found: Any
    if name.startswith("nexmark:"):
        found = nexmark.query(name.removeprefix("nexmark:"))
        if not rows.inputs:
            return _fed(found, rows)
    else:
        found = _loaded(name, "query") if imports else own.read_own(name, "query")
    name, inputs = _named(name), tuple(rows.inputs)
    module, _, function = name.partition(":")
    if isinstance(found, Query):
        own.check_loaded(name, found.build, inputs or (() if rows.dataset else tuple(one.name for one in found.inputs)))
        return _fed(found, rows)
    if not isinstance(found, Unread):
        own.check_loaded(name, found, inputs)
    else:
        own.check_function(name, found.file, function, inputs)
        if not found.is_function and not rows.datasets:  # it may be a query, which has its own
            return Query(name, found, Dataset(str(found.file), "csv"), rows.event_time)
    if not rows.datasets:
        raise WorkbenchError(
            f"The query {name!r} is a function, so it needs data to read. Give the path of a data set, and its "
            "event-time column if the query uses event time.",
            settings=("dataset", "event_time"),
        )
    data = rows.data
    if rows.source != "kafka" and (file := own.file_of(module)) is not None:  # else a sample has other columns
        each = {"": data} if isinstance(data, Dataset) else {one.name: one.dataset for one in data}
        columns = {argument: schema_of(one, one.event_time).names for argument, one in each.items()}
        own.check_watermarks(name, file, function, columns)
    return Query(name, found, data, rows.event_time)


def _started_by(script: Script, rows: GivenRows) -> Query:
    if not rows.datasets:
        raise WorkbenchError(
            f"The query {script.name} needs rows of its source. See which it reads, and write a study: workbench init "
            f"{shlex.quote(script.call)}",
            settings=("dataset", "event_time"),
        )
    if rows.source == "kafka":
        raise WorkbenchError(
            f"source is 'kafka', but {script.name} gets records of a sample, as Kafka gives them. Use source: replay, "
            "and name the sample that workbench init made.",
            settings=("source",),
        )
    return Query(script.name, script, rows.data, rows.event_time)


def _fed(query: Query, rows: GivenRows) -> Query:
    if rows.inputs:
        return replace(query, dataset=rows.data, event_time=None)
    if rows.dataset:
        return query.reading(rows.one(rows.event_time or query.event_time))
    if rows.event_time:
        raise WorkbenchError(
            f"The event time {rows.event_time!r} is a column of a data set, and none is given: the query "
            f"{query.name!r} feeds itself. Give a data set, or leave out the event time.",
            settings=("dataset", "event_time"),
        )
    if isinstance(query.dataset, Dataset):
        check_dataset(query.dataset, query.event_time)
    check_inputs(query.inputs)
    return query
