"""Data at rest as a workload: replayed in a loop, with new event times.

A data set is copied once into a memory-mapped Arrow file, so that any task can read any row at the cost of a page
fault. A row's *lateness* is the time by which its recorded event time is behind the latest earlier one. On replay, its
event time is its due time minus that lateness.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from workbench.checks import meant
from workbench.errors import QueryError
from workbench.reading import is_there
from workbench.workload.columns import UTC_US, as_spark, check_names, is_event_time, is_text, plain, spark_schema
from workbench.workload.inside import Inside
from workbench.workload.query import ENCODED, Dataset, EventClock

BATCH_ROWS = 20_000
SAMPLE_BYTES = 1 << 30
LATENESS, PLACE = "__lateness_us", "__place"
_HIDDEN = {LATENESS, PLACE}
_US = 10**6
_UNITS = ((10**11, 1), (10**14, 10**3), (10**17, _US))  # below this number, and how many of them make a second
_ZONE = re.compile(r"[T ]\d\d.*(Z|[+-]\d\d(:?\d\d)?)$")
_HEAD_ROWS = 1000
_LONGEST = 500  # characters of Arrow's reasons
_SAME_NAMES = "duplicate field names"


@dataclass(frozen=True)
class Replay:
    """A data set ready to be replayed: a `Generator` over the rows of an Arrow file, in batches of `BATCH_ROWS` rows.

    Row n of the stream is row n modulo `rows`. One of several inputs gives those of rows `first` to `last` of all
    inputs that are its own; their places in the loop over the data are stored with them.
    """

    path: str
    rows: int
    event_time: str | None  # the event-time column, which is replaced; None without
    complete: bool  # whether the file has the complete data set, or only the first `SAMPLE_BYTES`
    per_s: int = _US  # units in a second of an event time that is an integer
    period: int | None = None  # rows of all inputs in one loop over the data; None: there is only one input
    renew: tuple[str, ...] = ()  # columns whose values differ in each pass over the data
    span: int = 0  # by how much they differ, where they are integers
    inside: Inside | None = None  # event time and renewed values inside texts of a column; None: they are columns

    def stored(self) -> pa.Table:
        """All rows of the file, mapped into memory."""
        return pa.ipc.open_file(pa.memory_map(self.path)).read_all()

    def schema(self) -> pa.Schema:
        """Columns of the data set; the event time is a timestamp, or an integer where it was one."""
        stored = self.stored().schema
        columns = pa.schema([field for field in stored if field.name not in _HIDDEN], stored.metadata)
        return columns if self.inside is None else self.inside.schema(columns)

    def batches(self, first: int, last: int, clock: EventClock) -> Iterator[pa.RecordBatch]:
        """Rows `first` to `last` of the endless loop over the data."""
        with pa.memory_map(self.path) as file:
            reader = pa.ipc.open_file(file)
            row, last = self._own(reader, first), self._own(reader, last)
            while row < last:
                place = row % self.rows
                number, start = divmod(place, BATCH_ROWS)
                stored = reader.get_batch(number)
                length = min(stored.num_rows - start, last - row)
                yield self._stamp(stored.slice(start, length), row, clock)
                row += length

    def _own(self, reader: pa.ipc.RecordBatchFileReader, row: int) -> int:
        """Return how many of the first `row` rows of all inputs belong to this one."""
        if self.period is None:
            return row

        loops, rest = divmod(row, self.period)
        numbers = range(reader.num_record_batches)
        begun = bisect_left(numbers, rest, key=lambda number: reader.get_batch(number).column(PLACE)[0].as_py())
        if begun == 0:
            return loops * self.rows
        places = reader.get_batch(begun - 1).column(PLACE).to_numpy()
        return loops * self.rows + (begun - 1) * BATCH_ROWS + int(np.searchsorted(places, rest))

    def _stamp(self, stored: pa.RecordBatch, row: int, clock: EventClock) -> pa.RecordBatch:
        names = [name for name in stored.schema.names if name not in _HIDDEN]
        loop = row // self.rows
        rows = np.arange(row, row + stored.num_rows)
        if self.period is not None:
            rows = loop * self.period + stored.column(PLACE).to_numpy()
        columns = []
        for name in names:
            column = stored.column(name)
            if loop and name in self.renew:
                column = _renewed(column, loop, self.span)
            if name == self.event_time:
                times = clock.times_us(rows) - stored.column(LATENESS).to_numpy()
                kind = column.type
                values = _in_units(times, _US, self.per_s) if pa.types.is_integer(kind) else times
                column = pa.array(values.astype(np.int64)).cast(kind)
            columns.append(column)
        stamped = pa.RecordBatch.from_arrays(columns, names=names)
        return (
            stamped if self.inside is None else self.inside.joined(stamped, pa.array(clock.times_us(rows)).cast(UTC_US))
        )


def _renewed(column: pa.Array, loop: int, span: int) -> pa.Array:
    """Return values that no other pass over the data has."""
    if is_text(column.type):
        return pc.binary_join_element_wise(column, f"~{loop}", "")
    return pc.add(column.cast(pa.int64()), loop * span).cast(column.type, safe=False)


def _per_s(source: pads.Dataset, schema: pa.Schema, event_time: str | None) -> int:
    """Units per second of an integer event time, before 1970 or since; the numbers of digits show the unit."""
    if event_time is None or not pa.types.is_integer(schema.field(event_time).type):
        return _US
    stored = source.schema.names[schema.get_field_index(event_time)]
    times = source.head(BATCH_ROWS, columns=[stored]).column(0)
    ends = pc.min_max(as_spark(times, event_time)).as_py()
    farthest = max(abs(end or 0) for end in ends.values())
    return next((per_s for limit, per_s in _UNITS if farthest < limit), 10**9)


def _in_units(times: npt.NDArray[np.int64], per_s: int, wanted: int) -> npt.NDArray[np.int64]:
    """Convert `times` from units of which a second has `per_s` to those of which it has `wanted`."""
    return times * (wanted // per_s) if wanted >= per_s else times // (per_s // wanted)


def prepare(
    dataset: Dataset, event_time: str | None, folder: Path, most: int = SAMPLE_BYTES, renew: Sequence[str] = ()
) -> Replay:
    """Copy a data set into `folder`, `most` bytes or a little more of it, ready to be replayed."""
    with readable(dataset):
        inside, source = _cut(dataset, event_time, renew)
        schema = _stored_schema(dataset, source.schema, event_time)
        target = folder / "dataset.arrow"
        per_s = _per_s(source, schema, event_time)
        rows, complete = _copy(source, schema, event_time, per_s, target, most=most)
    if rows == 0:
        raise QueryError(f"The dataset {dataset.path!r} is empty; give one with at least one row.")
    return Replay(str(target), rows, event_time, complete, per_s, renew=tuple(renew), inside=inside)


def check(dataset: Dataset, event_time: str | None, renew: Sequence[str] = ()) -> tuple[pads.Dataset, pa.Schema, float]:
    """Refuse a data set that cannot be replayed, or its columns not renewed, before anything starts.

    Returns the data, their columns as they are stored, and the bytes of a row.
    """
    if not is_there(dataset.path):
        raise QueryError(f"The dataset {dataset.path!r} does not exist; check the path.")
    with readable(dataset):
        _, source = _cut(dataset, event_time, renew)
        schema = _stored_schema(dataset, source.schema, event_time)
        head = _typed(source.head(_HEAD_ROWS), schema, event_time)
    if head.num_rows == 0:
        raise QueryError(f"The dataset {dataset.path!r} is empty; give one with at least one row.")
    for name in renew:
        kind = schema.field(name).type if name in schema.names else None
        if name == event_time or kind is None or not (is_text(kind) or pa.types.is_integer(kind)):
            raise QueryError(
                f"renew has {name!r}, {'no column' if kind is None else kind} of {dataset.path!r}; it must be a column "
                f"of texts or whole numbers, of {', '.join(source.schema.names)}, or a field of their JSON, "
                "COLUMN.FIELD, and not the event time.",
                settings=("inputs",),
            )
    return source, schema, head.nbytes / head.num_rows


def schema_of(dataset: Dataset, event_time: str | None) -> pa.Schema:
    """Return the columns that a query is given of a data set."""
    with readable(dataset):
        schema = _opened(dataset).schema
        return _stored_schema(dataset, schema, None if Inside.named(event_time, schema.names) else event_time)


def first_rows(dataset: Dataset, rows: int) -> pa.Table:
    """Return the first rows of a data set, in the types of the file, with the column names that a query gets."""
    with readable(dataset):
        source = _opened(dataset)
        schema = spark_schema(source.schema, dataset.path)
        return source.head(rows).rename_columns(schema.names)


def rows_per_s(sample: pa.Table, event_time: str, *, complete: bool = True) -> float | None:
    """Return the rows in a second of event time; None where it shows none, or a part of the data is in no order."""
    given = Dataset("", "parquet")
    with suppress(QueryError), readable(given):
        source = pads.dataset(sample.select([event_time]))
        times = times_us(source, _stored_schema(given, source.schema, event_time), event_time)
        span = float(np.ptp(times))
        if span > 0:
            first, last = map(np.median, np.array_split(times, 2))  # of rows in order, half of the span is between
            return (len(times) - 1) * _US / span if complete or last - first > span / 4 else None
    return None


@contextmanager
def readable(dataset: Dataset) -> Iterator[None]:
    """Turn Arrow's errors into an error that names the data set and the next step."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        # Arrow's complaint about a file, without the steps that led there
        reason, *_ = str(error).rpartition("Invalid: ")[2].splitlines() or [type(error).__name__]
        raise QueryError(
            f"The dataset {dataset.path!r} cannot be read as {dataset.format}: {reason.rstrip('.')[:_LONGEST]}. "
            "Check the format and the file, or convert it to Parquet."
        ) from error


def _opened(dataset: Dataset) -> pads.Dataset:
    """Open the data; refuse columns of one name in a Parquet file, which Arrow's error does not name."""
    place = Path(dataset.path).resolve()  # 'a: b.csv' is not an address
    try:
        return pads.dataset(str(place), format=dataset.format)
    except pa.ArrowInvalid as error:
        if _SAME_NAMES not in str(error):
            raise
        files = [place] if place.is_file() else sorted(one for one in place.rglob("*.parquet") if one.is_file())
        for file in files:
            check_names(pq.read_schema(file).names, dataset.path)
        raise


def _cut(dataset: Dataset, event_time: str | None, renew: Sequence[str]) -> tuple[Inside | None, pads.Dataset]:
    """Open the data, with the event times and renewed values that are inside texts as columns."""
    source = _opened(dataset)
    inside = Inside.named(event_time, source.schema.names, renew)
    if inside is None:
        return None, source
    written, table = inside.cut(source.to_table())
    return written, pads.dataset(table)


def _stored_schema(dataset: Dataset, schema: pa.Schema, event_time: str | None) -> pa.Schema:
    """Return the columns in the types that are stored: Spark's own, and for event times one that can be replaced."""
    held = spark_schema(schema, dataset.path)
    kept = {key: value for key, value in (schema.metadata or {}).items() if key == ENCODED}
    if event_time is None:
        return held.with_metadata(kept)
    if event_time not in held.names:
        raise QueryError(
            f"The dataset {dataset.path!r} has no column {event_time!r} to take the event time from; "
            f"its columns are {', '.join(held.names)}.{meant(event_time, held.names)}"
        )
    place = held.get_field_index(event_time)
    kind = schema.field(place).type
    if not is_event_time(kind):
        raise QueryError(
            f"The event-time column {event_time!r} of {dataset.path!r} is of type {kind}; "
            "it must be a timestamp, a date, ISO text or whole seconds, or milli-, micro- or nanoseconds."
        )
    stored = pa.int64() if pa.types.is_integer(plain(kind)) else UTC_US
    return held.set(place, pa.field(event_time, stored)).with_metadata(kept)


def _copy(
    source: pads.Dataset, schema: pa.Schema, event_time: str | None, per_s: int, target: Path, *, most: int
) -> tuple[int, bool]:
    """Write batches of exactly `BATCH_ROWS` rows; return the number of rows and whether the copy is complete."""
    stored = schema.append(pa.field(LATENESS, pa.int64())) if event_time else schema
    latest_us, rows, written, left = -(1 << 62), 0, 0, stored.empty_table()
    complete = True
    with pa.OSFile(str(target), "wb") as file, pa.ipc.new_file(file, stored) as writer:
        for batch in source.to_batches(batch_size=BATCH_ROWS):
            if not batch.num_rows:
                continue
            if written >= most:
                complete = False
                break
            table = _typed(pa.Table.from_batches([batch]), schema, event_time)
            if event_time:
                times = event_times_us(table.column(event_time), per_s)
                running = np.maximum(np.maximum.accumulate(times), latest_us)
                latest_us = int(running[-1])
                table = table.append_column(stored.field(LATENESS), pa.array(running - times))
            rows += table.num_rows
            written += table.nbytes
            joined = pa.concat_tables([left, table])
            whole = joined.num_rows // BATCH_ROWS * BATCH_ROWS
            writer.write_table(joined.slice(0, whole).combine_chunks(), BATCH_ROWS)
            left = joined.slice(whole)
        writer.write_table(left.combine_chunks())
    return rows, complete


def _typed(table: pa.Table, schema: pa.Schema, event_time: str | None) -> pa.Table:
    """Convert the columns to the types of `schema`; times are cut to microseconds."""
    columns = []
    for field, column in zip(schema, table.columns, strict=True):
        typed = as_spark(column, field.name)
        if field.name == event_time:
            if typed.null_count:
                raise QueryError(
                    f"The event-time column {event_time!r} has {typed.null_count} empty values; fill or drop those "
                    "rows."
                )
            typed = _parsed(typed, field.name) if pa.types.is_string(typed.type) else typed
            typed = typed.cast(options=pc.CastOptions(field.type, allow_time_truncate=True))
        columns.append(typed)
    return pa.Table.from_arrays(columns, schema=schema)


def _parsed(texts: pa.ChunkedArray, event_time: str) -> pa.ChunkedArray:
    """Read ISO times, all with a zone or all without, as the first one shows; without a zone they are UTC."""
    zone = "UTC" if len(texts) and _ZONE.search(texts[0].as_py()) else None
    try:
        try:
            return texts.cast(pa.timestamp("us", zone))
        except pa.ArrowInvalid:  # finer than microseconds, for a smaller range of years
            return texts.cast(pa.timestamp("ns", zone))
    except pa.ArrowInvalid as error:
        reason = str(error).partition(". ")[0].rstrip(".")
        raise QueryError(
            f"The event-time column {event_time!r} is text, but not all of it ISO times of one kind: {reason}. Write "
            "all of them as 2024-01-31T12:00:00.5Z, or all without the zone, which is UTC then."
        ) from error


def event_times_us(column: pa.ChunkedArray, per_s: int) -> npt.NDArray[np.int64]:
    """Return event times, as they are stored, in microseconds since 1970."""
    if pa.types.is_integer(column.type):
        values: npt.NDArray[np.int64] = column.to_numpy()
        return _in_units(values, per_s, _US)
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)


@dataclass(frozen=True)
class Shipped:
    """On a cluster, replays `replay` from the copy of its file that ``SparkContext.addFile`` has made."""

    replay: Replay  # with the file's name in place of its path
    columns: pa.Schema  # as a field, so that only executors need the file

    def schema(self) -> pa.Schema:
        """Columns of the data set."""
        return self.columns

    def batches(self, first: int, last: int, clock: EventClock) -> Iterator[pa.RecordBatch]:
        """Rows `first` to `last` of the endless loop over the data."""
        from pyspark import SparkFiles  # noqa: PLC0415 - in the executors

        return replace(self.replay, path=SparkFiles.get(self.replay.path)).batches(first, last, clock)


def bytes_of(dataset: Dataset) -> int:
    """Return the size of the stored files."""
    place = Path(dataset.path)
    files = [place] if place.is_file() else place.rglob("*")
    return sum(one.stat().st_size for one in files if one.is_file())


def times_us(source: pads.Dataset, schema: pa.Schema, event_time: str) -> npt.NDArray[np.int64]:
    """Read the event times of a data set, in microseconds since 1970; `schema` has its columns as stored."""
    at = schema.get_field_index(event_time)
    times = source.to_table(columns=[source.schema.names[at]])
    typed = _typed(times, pa.schema([schema.field(at)]), event_time)
    return event_times_us(typed.column(0), _per_s(source, schema, event_time))
