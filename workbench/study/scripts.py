"""Studies of the streaming queries that a script starts: what it was found to do, and a sample for each source."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from workbench import bounds, defaults
from workbench.errors import WorkbenchError
from workbench.files import write_whole
from workbench.reading import is_there
from workbench.records import FUNCTION, MODES, NOOP, JobSettings, why_ours
from workbench.redaction import HIDDEN
from workbench.study.draft import LOOKED_AT, Draft, Found, check_places, drafted, found_in, time_of, with_keys, written
from workbench.testbed.spark import look_at_script, sink_packages
from workbench.workload import Dataset, Recorded, Script, ScriptQuery, ScriptSource, first_rows, kafka, sample_of

RECORDS = Path(".workbench/records")  # of samples in the form of a topic's records, which scripts decode themselves
WRITTEN = ".workbench/written"  # by a script's function for foreachBatch, each run in a folder of its own
_KAFKA, _STORED = "kafka", ("parquet", "delta", "iceberg")
_MADE = {"rate", "rate-micro-batch"}  # sources whose rows need no sample
_KEYS = {
    "spark.jars.packages": "packages",
    "spark.jars": "jars",
    "spark.submit.pyFiles": "py_files",
    "spark.files": "files",
}
_SECONDS = {"millisecond": 1e-3, "second": 1.0, "minute": 60.0, "hour": 3600.0}
_NO_NAME = re.compile(r"\W|^(?=\d)")  # what inputs are not called
_PATIENT_S = (0.5, 10.0)  # trigger intervals that are measured unchanged


@dataclass(frozen=True)
class ScriptDraft:
    """What was found in a script, and a study for each of its queries that can be planned."""

    script: Script
    recorded: Recorded
    studies: Mapping[int, Draft]  # by the number of the query
    left: Mapping[int, str]  # why there is none, by the number of the query


def draft_script(
    script: Script,
    samples: Sequence[str],
    event_times: Sequence[str] = (),
    places: Mapping[str, str] = MappingProxyType({}),
) -> ScriptDraft:
    """Run a script with its streams recorded, and draft a study for each query that it starts.

    `samples` are of each source, in the order in which the script reads them, ``NAME=FILE`` or a file, with their
    `event_times`; none: those that are found. `places` are a study's `sink` and `checkpoint`; without: the script's
    own, or next to them. Raises WorkbenchError when the script starts no query, or a sample is of no source.
    """
    check_places(places, script)
    named = ((one, re.fullmatch(r"([\w-]+)=(.*)", one, re.DOTALL)) for one in samples)
    given = [("", one) if found is None else (found[1], found[2]) for one, found in named]
    for _, path in given:
        Dataset.at(path)  # says what is wrong with it
    found = look_at_script(script, given)
    names = [one.name for one in found.sources]
    for name, path in given:
        if name and name not in names:
            known = ", ".join(names) or "none"
            wide = [one.name for one in found.sources if len(_topics(one)) > 1 and name in _topics(one)]
            one_file = f" Pass one file with a column topic for the topics of {wide[0]}." if wide else ""
            raise WorkbenchError(
                f"{name}={path} is a sample of {name!r}; the sources of {script.call} are {known}.{one_file}"
            )
    studies: dict[int, Draft] = {}
    left: dict[int, str] = {}
    for number, query in enumerate(found.queries, 1):
        if reason := _unplanned(found, query, given):
            left[number] = reason
            continue
        try:
            studies[number] = _drafted(replace(script, number=number), query, found, given, event_times, places)
        except WorkbenchError as error:
            if error.settings != ("inputs",):
                raise
            left[number] = error.message  # of this query's sources, as they are read together
    return ScriptDraft(script, found, studies, left)


def _unplanned(found: Recorded, query: ScriptQuery, given: Sequence[tuple[str, str]]) -> str:
    if query.refusal:
        return f"Spark refuses it: {query.refusal}"
    if not query.sources:
        return "it reads no source that the script reads"
    lacking = [
        f"{source.name}=FILE"
        for place, source in enumerate(found.sources)
        if source.name in query.sources and source.format not in _MADE and sample_of(given, place, source.name) is None
    ]
    return f"it needs samples: add {' '.join(lacking)}" if lacking else ""


def _drafted(  # noqa: PLR0917 - of a study
    script: Script,
    query: ScriptQuery,
    found: Recorded,
    given: Sequence[tuple[str, str]],
    event_times: Sequence[str],
    places: Mapping[str, str],
) -> Draft:
    fed, rows = list[Found](), list[pa.Table]()
    lines: list[str] = []
    for place, source in enumerate(found.sources):
        if source.name in query.sources:
            sample = sample_of(given, place, source.name)
            event_time = event_times[place] if place < len(event_times) else None
            one, decoded = _found(source, query, sample, event_time)
            fed.append(one)
            rows.append(decoded)
            lines += _lines_of(source, sample, one.data)
    topics = {_NO_NAME.sub("_", one.name) for one in found.sources if one.format == _KAFKA}
    fed = [
        replace(one, renew={f"value.{name}": seen for name, seen in one.renew.items()}) if one.name in topics else one
        for one in with_keys(fed, rows)
    ]
    if len(fed) == 1 and not fed[0].renew:
        fed = [replace(fed[0], name="")]
    job, left = _job(found)
    chosen, notes, hints = _places(script, query, job, places)
    if query.trigger.startswith(("continuous", "realTime")):
        notes += (f"The trigger, {query.trigger}, is not measured: batches of {defaults.INTERVAL_S:g} s are.",)
    begins = f"# The query starts in line {query.line} of {query.file or Path(script.file).name}."
    more = [*lines, begins, *(f"# {one}" for one in (*notes, *hints)), *_lines(query, found, job, left)]
    made = drafted(script.name, fed, more=more, places=chosen)
    return replace(made, notes=(*made.notes, *notes))


def _found(
    source: ScriptSource, query: ScriptQuery, sample: str | None, event_time: str | None
) -> tuple[Found, pa.Table]:
    """Return what is found of a source, with a file of its rows, and decoded rows."""
    time: str | None
    if sample is None:
        numbers = range(LOOKED_AT // 2)  # as Spark's rate source makes them
        times = pa.array([1000 * one for one in numbers], pa.timestamp("us", "UTC"))
        decoded = pa.table({"timestamp": times, "value": pa.array(numbers, pa.int64())})
        data, time = _kept("rate", decoded), "timestamp"
    elif source.format == _KAFKA:
        data, time, decoded = _as_records(source, first_rows(Dataset.at(sample), LOOKED_AT), query, event_time)
    else:
        decoded = first_rows(Dataset.at(sample), LOOKED_AT)
        _check_columns(source, decoded, sample)
        data, time = sample, event_time or _marked(query, decoded) or time_of(decoded)
    name, by = _NO_NAME.sub("_", source.name), {"join": query.joins, "state": query.keys}
    found = found_in(name, data, decoded, time, by)
    return (replace(found, counted=sample) if sample else replace(found, pace=None)), decoded


def _kept(name: str, rows: pa.Table) -> str:
    """Write rows into a file of this name, or of a longer one if it has others, which a study may read."""
    pq.write_table(rows, file := BytesIO())
    path = RECORDS / f"{name}.parquet"
    if path.exists() and path.read_bytes() != file.getvalue():
        path = path.with_stem(f"{name}-{sha256(file.getvalue()).hexdigest()[:8]}")
    write_whole(path, file.getvalue())
    return str(path)


def _check_columns(source: ScriptSource, sample: pa.Table, path: str) -> None:
    """Refuse a sample that has none of the columns that the script declares."""
    declared = [] if source.schema is None else [one["name"] for one in json.loads(source.schema)["fields"]]
    there = {name.lower() for name in sample.column_names}
    if declared and not any(name.lower() in there for name in declared):
        raise WorkbenchError(
            f"The sample {path} of the source {source.name} has the columns {', '.join(sample.column_names)}, and "
            f"the script reads {', '.join(declared)}. Name a file with these columns."
        )


def _marked(query: ScriptQuery, sample: pa.Table) -> str | None:
    """Return the column of the sample that the query's watermark names."""
    there = {name.lower(): name for name in sample.column_names}  # Spark ignores case
    columns = (one.partition(",")[0].lower() for one in query.watermarks)
    return next((there[column] for column in columns if column in there), None)


def _as_records(
    source: ScriptSource, sample: pa.Table, query: ScriptQuery, event_time: str | None
) -> tuple[str, str, pa.Table]:
    """Write a sample as records of a topic; return the file, where the event time is, and the decoded columns."""
    own = {new: sample[old] for old, new in kafka.COLUMNS.items() if old in sample.column_names}
    if _raw(sample):
        own |= {name: sample[name] for name in ("topic", *kafka.COLUMNS.values()) if name in sample.column_names}
        values = sample[kafka.VALUE].cast(pa.binary())
        decoded = pa.table({})
        with suppress(pa.ArrowException):  # not JSON
            decoded = pj.read_json(BytesIO(b"\n".join(one for one in values[:1000].to_pylist() if one)))
    else:
        hidden = {*kafka.COLUMNS, kafka.HEADERS}
        decoded = sample.select([name for name in sample.column_names if name not in hidden])
        values = pa.array([json.dumps(row, default=_plain).encode() for row in decoded.to_pylist()], pa.binary())
        if "topic" in decoded.column_names and {*_topics(source)}.issuperset(decoded["topic"].unique().to_pylist()):
            own["topic"] = decoded["topic"]
    rows = sample.num_rows
    columns = {
        "key": own.get("key", pa.nulls(rows, pa.binary())),
        "value": values,
        "topic": own.get("topic", pa.array([_topics(source)[0]] * rows)).cast(pa.string()),
        "partition": own.get("partition", pa.array([0] * rows)).cast(pa.int32()),
        "offset": own.get("offset", pa.array(range(rows))).cast(pa.int64()),
        "timestamp": own.get("timestamp", pa.array([1000 * row for row in range(rows)], pa.timestamp("us", "UTC"))),
        "timestampType": pa.array([0] * rows, pa.int32()),
    }
    return _kept(source.name, pa.table(columns)), _inside(query, decoded, event_time), decoded


def _inside(query: ScriptQuery, decoded: pa.Table, event_time: str | None) -> str:
    """Name the place of the event time in a topic's records: a field of their values, or their own timestamp."""
    watermark = query.watermarks[0].partition(",")[0] if query.watermarks else ""
    field = event_time if event_time in decoded.column_names else _marked(query, decoded)
    if event_time is not None and field != event_time:
        return event_time
    if field is None and watermark != "timestamp":
        field = _nested(decoded.schema, watermark) or time_of(decoded)
    return "timestamp" if field is None else f"value.{field}"


def _topics(source: ScriptSource) -> list[str]:
    subscribed = next((value for name, value in source.options.items() if name.lower() == "subscribe"), source.name)
    return [one.strip() for one in subscribed.split(",")]


def _raw(sample: pa.Table) -> bool:
    kafkas = {*kafka.COLUMNS, *kafka.COLUMNS.values(), kafka.VALUE, kafka.HEADERS, "headers", "topic", "timestampType"}
    return kafka.VALUE in sample.column_names and kafkas.issuperset(sample.column_names)


def _nested(fields: Any, name: str) -> str | None:  # noqa: ANN401 - a schema or a struct of Arrow's
    for one in fields:
        if pa.types.is_struct(one.type):
            if one.type.get_field_index(name) >= 0:
                return f"{one.name}.{name}"
            if (inside := _nested(one.type, name)) is not None:
                return f"{one.name}.{inside}"
    return None


def _plain(value: object) -> str:
    if isinstance(value, date | datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _lines_of(source: ScriptSource, sample: str | None, data: str) -> Iterator[str]:
    """Yield the lines of a study on how the rows of a source arrive."""
    if source.format == _KAFKA:
        yield f"# Rows of {source.name} come as Kafka gives them, from {written(str(sample))}; your query decodes them."
        if len(_topics(source)) > 1:
            there = pq.read_table(data, columns=["topic"])["topic"].unique().drop_null().to_pylist()
            yield f"# Their topics are {written(there)}: those of the sample's column topic, or else the first."
        yield "# An event time in their values is replaced, as a column is: by the due time and the row's own lateness."
    elif source.format not in _MADE | {"table"}:
        yield f"# Rows of {source.name} come parsed: reading {written(source.format)} is not measured."


def _lines(query: ScriptQuery, found: Recorded, job: JobSettings, left: Mapping[str, str]) -> Iterator[str]:
    if query.name:
        yield f"query_name: {written(query.name)}"
    reads = [one.format for one in found.sources if one.name in query.sources]
    yield f"reads: {written(reads)}             # by the script: what the plan's command and text are for"
    sets = (f"{name}={found.settings[name]}" for name in left if name in found.settings)
    if shown := [one for one in sets if HIDDEN not in one and len(one) <= bounds.TEXT][: bounds.GRID]:
        yield f"script_sets: {written(shown)}"
    yield f"output_mode: {written(query.output_mode)}"
    yield from _interval(query.trigger)
    for key in _KEYS.values():
        if kept := getattr(job, key):
            yield f"{key}: {written(kept)}"
    if job.spark:
        yield "spark:"
        yield from (f"  {name}: {written(value)}" for name, value in job.spark.items())
    yield from (f"# Not taken along: {written(one)} ({why})" for one, why in left.items())
    if any(HIDDEN in value for value in found.settings.values()):
        yield "# A secret is named by a variable of the environment: '${NAME}'"


def _job(found: Recorded) -> tuple[JobSettings, dict[str, str]]:
    """Return what the script brings along, and why a study cannot take the rest: settings, and files missing here."""
    settings = dict(found.settings)
    brought, left = dict[str, Any](), dict[str, str]()
    for name, key in _KEYS.items():
        these = [one.strip() for one in settings.pop(name, "").split(",") if one.strip()]
        ours = [one for one in these if "spark-sql-kafka" not in one]  # the workbench has its own
        brought[key] = tuple(one for one in ours if key == "packages" or is_there(one))
        left |= {one: "not a file here" for one in ours if one not in brought[key]}
    taken = dict[str, str]()
    for name, value in settings.items():
        try:
            JobSettings(spark={name: value})
            reason = "it holds a secret" * (HIDDEN in value)
        except WorkbenchError as error:
            reason = why_ours(name) or ("it holds a secret" if HIDDEN in value else written(error.message))
        (left if reason else taken)[name] = reason or value
    return JobSettings(spark=taken, **brought), left


def _places(
    script: Script, query: ScriptQuery, job: JobSettings, given: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, ...], list[str]]:
    """Return a study's sink and checkpoint, `given` or from the script, how they are measured, and hints."""
    sink, why = _sink_of(script, query)
    chosen, notes, hints = dict(given), list[str](), list[str]()
    for key, own, text, reason in (
        ("sink", query.sink, sink, why),
        ("checkpoint", query.checkpoint, query.checkpoint and _measured_place(query.checkpoint), ""),
    ):
        if key in given or not own:
            continue
        if not (reason := reason or (text and _refused(query, job, key, text))):
            chosen[key] = text
            notes.append(f"The {key}, {written(own)}, is measured in a place of its own: {text}")
            continue
        notes.append(f"The {key}, {written(own)}, is not measured: {reason}")
        hints += [f"{key}: {written(text)}"] * (text not in {"", "parquet PLACE"})  # which every study has
    return chosen, tuple(notes), hints


def _sink_of(script: Script, query: ScriptQuery) -> tuple[str, str]:
    """Return a query's sink as a study has it, and why it is not measured; "" for what does not apply."""
    kind, _, place = query.sink.partition(" ")
    if kind == FUNCTION:
        why = f"{query.beyond}, which no run can put elsewhere. The line 'sink' has it write where it always does."
        return (f"{script.file}:{place}", why) if query.beyond else (f"{script.file}:{place} {WRITTEN}", "")
    if kind in _STORED and place:
        return f"{kind} {_measured_place(place)}", ""
    if kind.startswith(kafka.SCHEME):
        return query.sink, ""
    if kind in {"console", "memory", NOOP}:
        return "", "it is not a sink of production. Spark's noop sink is measured."
    stored = next((one for one in (kind, place.rpartition(" as ")[2]) if one in _STORED), "parquet")
    text = "kafka://HOST:PORT/TOPIC" if kind == _KAFKA else f"{stored} PLACE"
    return text, "Spark's noop sink is. Name a place that runs may write to, in the line 'sink'."


def _measured_place(place: str) -> str:
    """Return a place on the same storage that production neither reads nor writes."""
    path = place.rstrip("/")
    return f"{path}-measured" if re.search(r"[^:/]/+[^/]", path) or "://" not in path else f"{path}/measured"


def _refused(query: ScriptQuery, job: JobSettings, key: str, text: str) -> str:
    """Explain why a place of the script cannot be measured here; "" if it can."""
    place: dict[str, Any] = {key: text}
    try:
        here = JobSettings(**place)
        here.check_here()
        sink_packages(replace(job, **place))
    except WorkbenchError as error:
        return error.message
    modes = MODES[here.writes.kind]
    return "" if query.output_mode in modes else f"it takes {' or '.join(modes)} mode, not {query.output_mode}."


def _interval(trigger: str) -> Iterator[str]:
    """Yield the line of the trigger interval, if a measurement with it ends in reasonable time."""
    how, _, text = trigger.partition("=")
    seconds = math.nan
    every = re.fullmatch(r"(?:interval\s+)?(\d+(?:\.\d+)?)\s*([a-z]+?)s?", text.strip().lower())
    if every and how == "processingTime":
        seconds = float(every[1]) * _SECONDS.get(every[2], math.nan)
    if how in {"availableNow", "once"}:
        yield "# The query ends when it has read what is there. To plan for such a run, write this in place of targets:"
        yield "# rows: 10000000"
        yield "# deadline_s: 600"
    elif _PATIENT_S[0] <= seconds <= _PATIENT_S[1]:
        yield f"interval_s: {seconds:g}"
    elif seconds > 0:
        yield f"# Batches of {defaults.INTERVAL_S:g} s are measured. The script's are interval_s: {seconds:g}"
