"""A first study for a query and a file of data: what can be determined is filled in, the rest is a comment.

The event time is the column that holds timestamps; of several, and of texts and numbers, the one that is called like a
time. Of the columns that the text of the query groups, joins or deduplicates by, or of all where it does not show them,
the draft names those in which one value has many of the rows. The budgets fit this machine.
"""

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import yaml

from workbench import defaults, units
from workbench.capacity.planning import PRICE_COLUMNS
from workbench.errors import WorkbenchError
from workbench.records import NOOP, JobSettings, Sink
from workbench.study.catalogue import check_sink, find_query, needed_arguments
from workbench.study.local import slot_cpus, slots_here
from workbench.study.own import file_of, mistyped_keys, module_of, state_keys, static_tables
from workbench.study.spec import check_key, study_of
from workbench.testbed.spark import sink_packages
from workbench.workload import Dataset, Script, as_spark, first_rows, is_text, plain, rows_per_s

LOOKED_AT = 200_000  # rows of a sample that are examined
_HOT = 0.05
_UNIQUE = 0.95  # distinct values over rows of a key that is unique, or nearly
_SAME, _MANY = 0.5, 0.1  # share of another key's values, and of a unique one's, that both have where they are one key
_TIMES_FAIR = 2.0  # a hot value's share, over the share it would have if all were equal
_TIMES = ("event_time", "eventtime", "timestamp", "datetime", "time", "date", "ts", "at")
_RATES, _TIMES_PACE = (10_000, 100_000), (2, 5, 20)  # records/s, and times the sample's own pace where it is known
_PRICES = "data/instances.csv"
_NEXT = "workbench plan STUDY --dry-run"
_PLACES = {
    "sink": "# sink: parquet PLACE                # or MODULE:FUNCTION PLACE (foreachBatch); without, rows are dropped",
    "checkpoint": "# checkpoint: PLACE                  # a folder or URI; without it, in memory",
}


@dataclass(frozen=True)
class Found:
    """What was found of an input."""

    name: str  # the argument of the query's function that it feeds; "" for the only one, unless it is renewed
    data: str
    event_time: str | None
    hot: dict[str, float]  # the share of one value, in columns that the state or join goes by, where it is large
    keys: tuple[str, ...] = ()  # these columns; empty where the query's text does not show them
    # those of these columns that are unique in an input, or nearly, each with what the sample shows of its values
    renew: Mapping[str, str] = field(default_factory=dict)
    by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # the columns of the state, and of a join
    pace: float | None = None  # rows in a second of event time
    counted: str = ""  # the file whose keys can be counted, where it is not the data


def _seen(repeats: float) -> str:
    if not repeats:
        return "unique"
    kind = "nearly unique" if repeats < 1 - _UNIQUE else "keys of another input"
    return f"{kind}, {units.chance(repeats)} of the rows repeat one"


@dataclass(frozen=True)
class Draft:
    """A study as YAML text, the name of its query, what was found of its inputs, and the static tables that it reads.

    `notes` say where its sink writes, how it and its checkpoint are measured, and which key is probably mistyped.
    """

    text: str
    query: str
    found: tuple[Found, ...]
    tables: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def text_of(self, file: str) -> str:
        """Return the text for a file of this name, which its next command has."""
        return self.text.replace(_NEXT, f"workbench plan {_quoted(file)} --dry-run", 1)


def draft(
    query: str, data: Sequence[str], event_times: Sequence[str] = (), places: Mapping[str, str] = MappingProxyType({})
) -> Draft:
    """Draft a study of `query`, ``jobs.py:orders`` or ``jobs:orders``.

    `data` are paths, one for each streaming DataFrame that the query takes, in their order, with their `event_times`;
    none: those that are found. `places` are the study's `sink` and `checkpoint`.
    """
    check_places(places)
    module, _, function = query.partition(":")
    name = f"{module_of(module)}:{function}" if function else query
    file = file_of(module_of(module))
    if event_times and len(event_times) != len(data):
        raise WorkbenchError(
            f"{units.some(len(event_times), 'event-time column')} named for {units.some(len(data), 'data set')}. Name "
            "one for each, in their order, or none.",
            settings=("event_time",),
        )
    names = _names(name, data) if len(data) > 1 else ("",)
    samples = [first_rows(Dataset.at(one), LOOKED_AT) for one in data]
    times: Sequence[str | None] = event_times or [time_of(sample) for sample in samples]
    named = None if file is None else state_keys(file, function)
    each = zip(names, data, samples, times, strict=True)
    found = with_keys([found_in(*one, named) for one in each], samples)
    if len(found) == 1 and found[0].renew and len(asked := needed_arguments(name) or ("rows",)) == 1:
        found = [replace(found[0], name=asked[0])]
    made = drafted(name, found, places=places)
    if file is None:
        return made
    columns = [column for sample in samples for column in sample.column_names]
    doubts = (
        f"The query's {what} goes by {key!r}, which no data set has. Did you mean {near!r}?"
        for what, keys in (named or {}).items()
        for key, near in mistyped_keys(file, keys, columns).items()
    )
    return replace(made, tables=static_tables(file, function), notes=(*made.notes, *doubts))


def check_places(places: Mapping[str, str], script: Script | None = None) -> None:
    """Refuse a `sink` or `checkpoint` that no study allows; a `script` brings its packages."""
    given: dict[str, Any] = {key: check_key(key, text) for key, text in places.items()}
    job = JobSettings(**given)
    job.check_here()
    if script is None:
        sink_packages(job)
    if job.writes.function:
        check_sink(job.writes, script)


def drafted(
    name: str, found: Sequence[Found], *, more: Iterable[str] = (), places: Mapping[str, str] = MappingProxyType({})
) -> Draft:
    """Draft a study of the query called `name`, whose inputs are `found`, with `more` lines."""
    sink = Sink.parse(places.get("sink", NOOP))
    calls = sink if sink.function else None
    inputs = {one.name: {"dataset": one.data, "event_time": one.event_time} for one in found}
    rows: dict[str, Any] = {"inputs": inputs} if found[0].name else inputs[""]
    find_query(name, **rows, sink=calls)
    keys = [line for one in found for line in _hot_keys(one)]
    notes = (sink.warning,) if calls and not sink.place else ()  # it writes into the user's real place
    text = "\n".join((*_lines(name, found, places, notes), *more, *keys)) + "\n"
    study_of(text, f"The study of {name}")  # which can be read
    return Draft(text, name, tuple(found), notes=notes)


def with_keys(found: Sequence[Found], samples: Sequence[pa.Table]) -> list[Found]:
    """Add the keys that are unique in an input, or nearly, and those of other inputs that have the same values."""
    values = {
        (one.name, key): pc.unique(as_spark(sample.column(key), key).cast(pa.string()).drop_null())
        for one, sample in zip(found, samples, strict=True)
        for key in one.keys
        if _counted(sample.schema.field(key).type)
    }
    tables = {one.name: sample for one, sample in zip(found, samples, strict=True)}
    unique = {(name, key): own for (name, key), own in values.items() if len(own) > _UNIQUE * tables[name].num_rows}

    def shared(name: str, own: pa.Array) -> bool:
        common = ((pc.sum(pc.is_in(own, of)).as_py() or 0, of) for (other, _), of in unique.items() if other != name)
        return any(both >= max(_SAME * len(own), _MANY * len(of)) for both, of in common)

    renew: dict[str, dict[str, str]] = {one.name: {} for one in found}
    for (name, key), own in values.items():
        if (name, key) in unique or shared(name, own):
            column = tables[name].column(key)
            renew[name][key] = _seen(1 - len(own) / max(1, len(column) - column.null_count))
    return [replace(one, renew=renew[one.name]) for one in found]


def _names(query: str, data: Sequence[str]) -> Sequence[str]:
    asked = needed_arguments(query)
    if asked is None:  # any
        return [f"input{number}" for number in range(1, len(data) + 1)]
    if len(asked) != len(data):
        takes = f"{units.some(len(asked), 'DataFrame')} ({', '.join(asked)})" if asked else "no DataFrame"
        raise WorkbenchError(
            f"The query {query!r} takes {takes}, and {len(data)} data sets are given: {', '.join(data)}. Give one for "
            "each argument of its function, in their order."
        )
    return asked


def found_in(
    name: str, data: str, sample: pa.Table, event_time: str | None, named: Mapping[str, Iterable[str]] | None
) -> Found:
    """Find the columns that the query's state or join goes by, as its text has `named` them for each, and hot ones.

    None is named where the text does not show them; an empty mapping, where the query has neither state nor join.
    """
    columns = [one for one in sample.column_names if event_time not in {one, f"value.{one}"}]
    lower = {what: {one.lower() for one in these} for what, these in (named or {}).items()}  # Spark ignores case
    by = {what: tuple(one for one in columns if one.lower() in these) for what, these in lower.items()}
    keys = tuple(one for one in columns if any(one in these for these in by.values()))
    goes = named is None or bool(named)
    hot = {column: share for column, share in hot_columns(sample, event_time) if (column in keys if keys else goes)}
    pace = rows_per_s(sample, (event_time or "").removeprefix("value."), complete=sample.num_rows < LOOKED_AT)
    return Found(name, data, event_time, hot, keys, by=by, pace=pace)


def time_of(sample: pa.Table) -> str | None:
    """Find the column of event times: a timestamp, else a text or whole number whose name suggests a time."""

    def called(name: str) -> int:
        words = name.lower().replace("-", "_")
        return next((n for n, word in enumerate(_TIMES) if words == word or words.endswith(f"_{word}")), len(_TIMES))

    stamps: list[str] = [field.name for field in sample.schema if pa.types.is_timestamp(plain(field.type))]
    named = (field.name for field in sample.schema if called(field.name) < len(_TIMES) and _counted(field.type))
    return min(stamps or named, key=called, default=None)


def _counted(kind: pa.DataType) -> bool:
    return is_text(kind) or pa.types.is_integer(plain(kind))


def hot_columns(sample: pa.Table, event_time: str | None) -> Iterator[tuple[str, float]]:
    """Yield the columns that may be keys and in which one value of several has many of the rows."""
    for kept in sample.schema:
        if kept.name == event_time or not _counted(kept.type) or not sample.num_rows:
            continue
        keys = as_spark(sample.column(kept.name), kept.name)
        counts = pc.value_counts(keys.drop_null()).field("counts")
        share = (pc.max(counts).as_py() or 0) / sample.num_rows
        if len(counts) and share >= max(_HOT, _TIMES_FAIR / len(counts)):
            yield kept.name, share


def _fed(one: Found) -> Iterator[str]:
    yield f"dataset: {written(one.data)}"
    none = "# event_time: COLUMN               # none was found; a query with a watermark needs it"
    yield none if one.event_time is None else f"event_time: {written(one.event_time)}"
    if one.renew:
        kinds = dict.fromkeys(one.renew.values())
        seen = "; ".join("unique keys" if kind == "unique" else kind for kind in kinds)
        yield f"renew: {written([*one.renew])}             # {seen}: others in each pass over the data, as new ones are"


def _lines(name: str, found: Sequence[Found], places: Mapping[str, str], notes: Iterable[str]) -> Iterator[str]:
    scripted = Script.named(name) is not None
    room = max(1, slots_here())
    slots = sorted({1, max(1, room // 2), room})
    shown = name if name.isprintable() else written(name)
    yield f"# What does {shown} need? Next: {_NEXT} says what is measured, and how long it takes."
    yield f"query: {written(name)}"
    if not found[0].name:
        yield from _fed(found[0])
    else:
        feeds = "source that the script's query reads" if scripted else "argument of the function"
        yield f"inputs:                           # one for each {feeds}, in their order"
        for one in found:
            yield f"  {written(one.name)}:"
            yield from (f"    {line}" for line in _fed(one))
        if len(found) > 1:
            yield "    # share: 0.5                  # of the rate, for each or for none: without, as their rows are"
    rates, of = _rates(found), " of all inputs together" * (len(found) > 1)
    pace = sum(one.pace or 0.0 for one in found)
    paced = f" (the sample's own rate is {units.scaled(pace, '')})" * (rates != list(_RATES))
    yield f"targets: {rates}        # records/s{of}: put your rates here{paced}"
    yield f"slots: {slots}                    # slot counts to measure; all of them fit this machine"
    yield f"memory_mb: [{defaults.MEMORY_MB}]               # MB per slot"
    yield f"slot_cpus: {slot_cpus():g}"
    if not scripted:  # a script sets its own
        yield f"interval_s: {defaults.INTERVAL_S:g}                   # trigger interval, seconds: put yours here"
    yield from (f"# {one}" for one in notes)
    yield from (f"{key}: {written(places[key])}" if key in places else hint for key, hint in _PLACES.items())
    if Path(_PRICES).exists():
        yield f"# prices: {_PRICES}      # instance types, for the cost"
    else:
        yield f"# For the cost, list instance types in a CSV file ({', '.join(PRICE_COLUMNS)}), and add: prices: FILE"
    yield "# outage_s: 600                   # make up for an outage of 10 minutes ..."
    yield "# catch_up_s: 1200                # ... within 20 minutes"


def _rates(found: Sequence[Found]) -> list[int]:
    """Return rates around those of the sample, as 1, 2 or 5 times a power of ten; `_RATES` where it shows none."""
    paces = [one.pace for one in found if one.pace is not None]
    asked = [times * sum(paces) for times in _TIMES_PACE if len(paces) == len(found)]
    if not asked or asked[0] < 1:
        return list(_RATES)
    steps = [step * 10**power for power in range(math.ceil(math.log10(asked[-1])) + 1) for step in (1, 2, 5)]
    return [min(steps, key=lambda step: abs(math.log(step / rate))) for rate in asked]


def _hot_keys(one: Found) -> Iterator[str]:
    for column, share in one.hot.items():
        what = " and ".join(what for what, keys in one.by.items() if column in keys)
        goes = f"The query's {what} goes by it: count it" if what else "If a join or state goes by it, count it"
        yield f"# One value of {written(column)} has {units.percent(share)} of the rows. {goes}:"
        yield f"#   workbench keys {_quoted(one.counted or one.data)} {_quoted(column)} --json > keys.json"
        yield "# keys: keys.json"


def _quoted(text: str) -> str:
    return shlex.quote(text if text.isprintable() else written(text))


def written(value: str | Sequence[str]) -> str:
    """Write a text, or a list of texts, which are quoted as a list needs it, as YAML in one line."""
    style = None if "".join(value).isprintable() else '"'
    text: str = yaml.safe_dump(value, default_style=style, default_flow_style=True, width=math.inf)
    return text.removesuffix("...\n").strip()
