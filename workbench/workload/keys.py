"""Count the keys of the user's own data: small files in this process, others with Spark, exactly or with a sketch.

`count_keys_here` reads a file or folder with Arrow, in about a second for a million rows. It counts only where it gives
what Spark would: exactly, one column of plain values, of at most `HERE_BYTES` on disk and `MOST_EXACT` keys. Spark
counts everything else (`count_keys`), for which it takes a dozen seconds to start.

The sketch is Spark's ``approx_top_k`` (a frequent-items sketch of DataSketches) for the counts and HyperLogLog++
(``approx_count_distinct``) for the number of keys. Each takes one pass and little memory for any number of keys.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from statistics import linear_regression
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.dataset as pads

from workbench.checks import meant, one_of, require
from workbench.errors import QueryError, WorkbenchError
from workbench.reading import parse_json, read_text
from workbench.records import structure
from workbench.simulation import KeyTrace
from workbench.workload.columns import as_spark, can_hash, spark_hash
from workbench.workload.dataset import bytes_of, check, schema_of
from workbench.workload.query import Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Method = Literal["exact", "sketch"]
MOST_EXACT = 1_000_000  # keys; with more, the shuffle of an exact count is not worth the precision
HERE_BYTES = 1 << 30  # size of the stored files up to which they are counted without Spark
TRACKED = 10_000  # items of the frequent-items sketch
DISTINCT_DEVIATION = 0.02  # relative standard deviation requested from HyperLogLog++
_PLACEMENTS = 33
_LOAD_FACTOR = 0.75  # of the sketch's hash map; its size is a power of two
_ERROR_FACTOR = 3.5  # DataSketches: a count exceeds the true one by at most 3.5 / map size of all records
# A quote within quotes is doubled, and a backslash is literal, as in a replay; Spark's own rule differs.
_CSV = {"header": "true", "inferSchema": "true", "escape": '"'}


@dataclass(frozen=True)
class KeyFrequencies:
    """Frequencies of the keys in one column.

    A count may exceed the true count by `count_error` rows, and is never below it. A key that is not listed has at most
    as many rows more than the last listed key. Without an error and a deviation, counts and keys are exact.
    """

    column: str
    records: int  # rows with a key; exact
    missing: int  # rows without a key (null), which are excluded from everything else; exact
    keys: tuple[str, ...]  # the most frequent keys as text, most frequent first
    counts: tuple[int, ...]  # rows of each of these keys
    distinct: int  # number of different keys
    method: Method = "exact"
    count_error: int = 0
    distinct_deviation: float = 0.0  # relative standard deviation of `distinct`
    # For each requested number of shuffle partitions, the share of `records` in each, exactly as in Spark.
    partition_shares: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    input: str = ""  # input that the column is of, if there are several

    def __post_init__(self) -> None:
        require(
            self.records > 0,
            f"Column {self.column!r} has no key in any row ({self.missing} rows are empty); name another column.",
        )
        require(
            0 < len(self.keys) == len(self.counts) <= self.distinct,
            f"Column {self.column!r} has {len(self.keys)} keys listed, {len(self.counts)} counts and {self.distinct} "
            "keys in all; give one count for each key, and no more keys than there are.",
        )
        require(
            min(self.counts) > 0 and list(self.counts) == sorted(self.counts, reverse=True),
            f"The counts of column {self.column!r} must be above 0 and descend.",
        )
        one_of("method", self.method, get_args(Method))

    @property
    def untracked_keys(self) -> int:
        """Keys that are not listed."""
        return self.distinct - len(self.keys)

    @property
    def untracked_records(self) -> int:
        """Rows of the keys that are not listed; with a sketch, a lower bound."""
        return max(0, self.records - sum(self.counts)) if self.untracked_keys else 0

    @property
    def unlisted_most(self) -> int:
        """Rows that one key that is not listed has at most."""
        if self.method == "exact":
            return min(self.counts[-1], self.untracked_records)
        complete = not (self.untracked_keys or self.count_error)
        return 0 if complete else min(self.records, self.counts[-1] + self.count_error)

    @property
    def hottest_share(self) -> float:
        """Share of the rows with the most frequent key, at most 1; with a sketch, an upper bound."""
        return min(1.0, self.counts[0] / self.records)

    @property
    def useful_tasks(self) -> float:
        """Number of tasks at which the most frequent key alone fills one task; more tasks do not raise the rate."""
        return 1 / self.hottest_share

    @property
    def zipf_exponent(self) -> float:
        """Slope of log count against log rank over the listed keys, by least squares; 0 is no skew, nan for one key."""
        if len(self.counts) < 2:
            return math.nan
        ranks = range(1, len(self.counts) + 1)
        return -linear_regression([*map(math.log, ranks)], [*map(math.log, self.counts)]).slope

    def imbalance(self, partitions: int) -> float:
        """Return the rows of the fullest of `partitions` shuffle partitions, divided by the mean."""
        require(
            partitions in self.partition_shares,
            f"{partitions:,} partitions of column {self.column!r} were not counted; counted are "
            f"{', '.join(map(str, self.partition_shares)) or 'none'}. Count again with partitions=[{partitions}].",
        )
        return max(self.partition_shares[partitions]) * partitions

    def likely_imbalance(self, partitions: int) -> float:
        """Return the rows of the fullest of any number of `partitions`, divided by the mean.

        It is exact where that number was counted. Elsewhere it is the median over random placements of the listed keys,
        always the same ones; the rows of the others are spread evenly.
        """
        require(partitions >= 1, f"partitions is {partitions!r}; it must be at least 1.")
        if partitions in self.partition_shares:
            return self.imbalance(partitions)
        draw = np.random.default_rng(0)
        listed = np.array(self.counts) / self.records
        rest = max(0.0, 1 - float(listed.sum())) / partitions
        fullest = [
            float(np.bincount(draw.integers(partitions, size=len(listed)), listed, partitions).max()) + rest
            for _ in range(_PLACEMENTS)
        ]
        return float(np.median(fullest)) * partitions

    def trace(self, changes_per_minute: float = 0.0, seed: int = 0) -> KeyTrace:
        """Return the popularity of these keys for a simulation; keys that are not listed share their rows evenly."""
        return KeyTrace.from_counts(
            self.counts, self.untracked_keys, self.untracked_records, changes_per_minute, seed=seed
        )


@dataclass(frozen=True)
class JoinedKeys:
    """Bounds of each key's share of the rows of a join; they meet where all keys of every input are counted exactly."""

    least: Mapping[str, float]  # of each key that may be in the join and is listed in an input, the largest first
    most: Mapping[str, float]  # of the same keys
    unlisted: float  # of a key that is listed in no input, at most

    @property
    def exact(self) -> bool:
        """Whether the shares are known."""
        return self.least == self.most


def joined_shares(inputs: Sequence[KeyFrequencies]) -> JoinedKeys:
    """Bound the share of the rows of a join for each key that is listed, the largest first.

    A key gives as many pairs as its counts multiply to, so one that is hot in two inputs is hotter in their join. The
    join has at least the pairs of the keys that are listed in every input, and at most those that the others may add.
    """
    counted = [dict(zip(one.keys, one.counts, strict=True)) for one in inputs]
    unlisted = [one.unlisted_most for one in inputs]
    bounds = dict[str, tuple[int, int]]()
    for key in dict.fromkeys(key for one in counted for key in one):
        high = math.prod(one.get(key, most) for one, most in zip(counted, unlisted, strict=True))
        if high:
            low = math.prod(max(0, one.get(key, 0) - of.count_error) for one, of in zip(counted, inputs, strict=True))
            bounds[key] = (low, high)
    if not bounds:
        columns = ", ".join(dict.fromkeys(repr(one.column) for one in inputs))
        raise WorkbenchError(f"No key of {columns} is in every input, so nothing is joined by it. Name another column.")
    other = math.prod(unlisted)  # pairs of one key that is listed nowhere, at most
    rest = min(_unlisted_rows(one) * other // most if most else 0 for one, most in zip(inputs, unlisted, strict=True))
    surely, perhaps = (sum(pairs) for pairs in zip(*bounds.values(), strict=True))
    ordered = sorted(bounds.items(), key=lambda one: (-one[1][0], -one[1][1], one[0]))
    return JoinedKeys(
        {key: low / (perhaps + rest - high + low) if low else 0.0 for key, (low, high) in ordered},
        {key: high / (surely - low + high) for key, (low, high) in ordered},
        other / (surely + other) if other else 0.0,
    )


def _unlisted_rows(found: KeyFrequencies) -> int:
    """Return how many rows the keys that are not listed have at most."""
    return found.records - sum(max(0, count - found.count_error) for count in found.counts)


def read_key_frequencies(path: str | Path) -> KeyFrequencies:
    """Read the frequencies that ``workbench keys DATA COLUMN --json`` printed."""
    try:
        document = parse_json(read_text(path, f"The keys file {path}"))
        known = {one.name: document[one.name] for one in fields(KeyFrequencies) if one.name != "input"}
        known["input"] = document.get("input", "")
    except (ValueError, TypeError, LookupError) as error:
        raise WorkbenchError(
            f"The file {path} does not contain frequencies of keys. Write it with: workbench keys DATA COLUMN --json."
        ) from error
    return structure(known, KeyFrequencies, f"The keys file {path}")


def count_keys(
    spark: "SparkSession",
    data: "Dataset | DataFrame",
    column: str,
    *,
    method: Method | Literal["auto"] = "auto",
    top: int = 1000,
    every: bool = False,
    tracked: int = TRACKED,
    partitions: Sequence[int] = (),
) -> KeyFrequencies:
    """Count the keys of a column of `data`, at rest or a batch DataFrame, and list the `top` ones.

    With `every`, all that are counted are listed: up to a million of an exact count, and those that a sketch tracks.
    The method ``"exact"`` groups by the key; ``"sketch"`` takes one pass and bounded memory; ``"auto"`` counts exactly
    if HyperLogLog++ finds at most a million keys. The error of a sketch of `tracked` items is at most 3.5 / n of the
    rows, where n is the size of its hash map (the next power of two above ``tracked / 0.75``). The rows are distributed
    over each of the numbers of shuffle `partitions` by Spark's own hash.
    """
    _check_counting(method, top, tracked, partitions)
    frame = _keys(spark, data, column)
    from pyspark.sql import functions as sql  # noqa: PLC0415 - importing the workbench must not import pyspark

    key = frame["key"]
    rows, records, about = frame.agg(
        sql.count(sql.lit(1)), sql.count(key), sql.approx_count_distinct(key, DISTINCT_DEVIATION)
    ).first() or (0, 0, 0)
    present = frame.where(key.isNotNull())
    require(records > 0, f"Column {column!r} has no key in any of its {rows} rows; name another column.")
    shares = {count: _spread(present, count, records) for count in partitions}
    method = "sketch" if method == "sketch" or (method == "auto" and about > MOST_EXACT) else "exact"
    if method == "sketch":
        listed, distinct, error, deviation = _sketched(
            present, column, tracked if every else top, tracked, int(about), records
        )
    else:
        counted = present.groupBy("key").count()
        ordered = counted.orderBy(sql.desc("count"), sql.col("key").cast("string"))
        listed = [(str(row[0]), int(row[1])) for row in ordered.limit(MOST_EXACT if every else top).collect()]
        distinct, error, deviation = counted.count(), 0, 0.0
    keys, counts = zip(*listed, strict=True)
    return KeyFrequencies(column, records, rows - records, keys, counts, distinct, method, error, deviation, shares)


def _check_counting(method: str, top: int, tracked: int, partitions: Sequence[int]) -> None:
    require(top >= 1, f"top is {top!r}; list at least one key.")
    require(
        tracked >= top, f"tracked is {tracked!r} and top is {top!r}; the sketch must track at least the keys listed."
    )
    require(all(p >= 1 for p in partitions), f"partitions is {list(partitions)!r}; each must be at least 1.")
    one_of("method", method, ("auto", *get_args(Method)))


def count_keys_here(
    data: Dataset,
    column: str,
    *,
    method: Method | Literal["auto"] = "auto",
    top: int = 1000,
    every: bool = False,
    tracked: int = TRACKED,
    partitions: Sequence[int] = (),
) -> KeyFrequencies | None:
    """Count the keys of a column as `count_keys` does, with Arrow, in this process; None where Spark must."""
    _check_counting(method, top, tracked, partitions)
    check(data, None)
    kept = schema_of(data, None)
    _require_column(column, kept.names)
    kind = kept.field(column).type
    if method == "sketch" or not can_hash(kind) or bytes_of(data) > HERE_BYTES:
        return None
    try:
        counted, missing = _counted(data, kept.names.index(column), column, kind)
    except (pa.ArrowException, QueryError):  # a value that another reader may accept
        return None
    if counted is None:
        return None
    records = pc.sum(counted["n"]).as_py() or 0
    require(records > 0, f"Column {column!r} has no key in any of its {missing} rows; name another column.")
    key, rows = counted["key"].combine_chunks(), counted["n"].combine_chunks().to_numpy()
    order = pc.sort_indices(
        pa.table({"n": counted["n"], "text": counted["key"].cast(pa.string())}),
        [("n", "descending"), ("text", "ascending")],
    )[: None if every else top]
    hashed = spark_hash(key)
    shares = {
        many: tuple((np.bincount(hashed % many, rows, many).astype(int) / records).tolist()) for many in partitions
    }
    return KeyFrequencies(
        column,
        records,
        missing,
        tuple(_as_text(one) for one in key.take(order).to_pylist()),
        tuple(int(one) for one in rows[order.to_numpy()]),
        len(key),
        partition_shares=shares,
    )


def _counted(data: Dataset, place: int, column: str, kind: pa.DataType) -> tuple[pa.Table | None, int]:
    """Count each key of the column at `place`, None if there are too many; and the rows without a key."""
    source = pads.dataset(str(Path(data.path).resolve()), format=_reader(data, column, kind))
    whole = pa.schema([("key", kind), ("n", pa.int64())])
    counted, waiting, rows, missing = whole.empty_table(), list[pa.Table](), 0, 0
    for batch in source.to_batches(columns={"key": pads.field(source.schema.names[place])}):
        keys = as_spark(pa.chunked_array([batch.column(0)]), column)
        if pa.types.is_floating(kind):  # one zero, and one NaN
            keys = pc.if_else(pc.is_nan(keys), pa.scalar(math.nan, kind), pc.add(keys, pa.scalar(0.0, kind)))
        missing += keys.null_count
        found = pc.value_counts(keys.drop_null())
        waiting.append(pa.table({"key": found.field("values"), "n": found.field("counts")}))
        rows += len(found)
        if rows > MOST_EXACT:
            counted, waiting, rows = _summed([counted, *waiting], whole), [], 0
            if counted.num_rows > MOST_EXACT:
                return None, missing
    counted = _summed([counted, *waiting], whole)
    return (None if counted.num_rows > MOST_EXACT else counted), missing


def _summed(parts: Sequence[pa.Table], whole: pa.Schema) -> pa.Table:
    table = pa.concat_tables(part.cast(whole) for part in parts).group_by("key", use_threads=False)
    return table.aggregate([("n", "sum")]).rename_columns({"n_sum": "n"}).select(["key", "n"])


def _reader(data: Dataset, column: str, kind: pa.DataType) -> str | pads.FileFormat:
    """Read empty texts of a CSV file as missing, as Spark does; quoted ones are keys."""
    if data.format != "csv" or not pa.types.is_string(kind):
        return data.format
    options = pcsv.ConvertOptions(
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False, column_types={column: pa.string()}
    )
    return pads.CsvFileFormat(convert_options=options)


def _as_text(key: object) -> str:
    """Write a key as Spark shows it: times in this machine's zone."""
    return str(key.astimezone().replace(tzinfo=None) if isinstance(key, datetime) else key)


def _keys(spark: "SparkSession", data: "Dataset | DataFrame", column: str) -> "DataFrame":
    """Return the column, named key."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    quoted = f"`{column.replace('`', '``')}`"
    if not isinstance(data, Dataset):
        _require_column(column, data.columns)
        return data.selectExpr(f"{quoted} AS key")
    check(data, None)
    kept = schema_of(data, None)
    _require_column(column, kept.names)
    field, reader = kept.field(column), spark.read.format(data.format)
    converted = data.format == "csv" and field.type == pa.int64()  # Spark's hash of a shorter one differs
    if data.format == "csv":
        reader = reader.options(**_CSV)
    elif data.format == "parquet":  # the column alone: Spark refuses a file for types of others, such as nanoseconds
        stored = pads.dataset(str(Path(data.path).resolve()), format=data.format).schema.field(column).type
        converted = stored == pa.uint64()  # Spark reads it only as a decimal
        asked = field.with_type(pa.decimal128(20, 0)) if converted else field
        reader = reader.schema(from_arrow_schema(pa.schema([asked])))
    return reader.load(data.path).selectExpr(f"{f'CAST({quoted} AS BIGINT)' if converted else quoted} AS key")


def _require_column(column: str, names: Sequence[str]) -> None:
    if column not in names:
        listed = ", ".join(names)
        raise WorkbenchError(f"The data has no column {column!r}; its columns are {listed}.{meant(column, names)}")


def _spread(present: "DataFrame", partitions: int, records: int) -> tuple[float, ...]:
    """Return each partition's share under Spark's hash partitioning: Murmur3 of the key, modulo."""
    from pyspark.sql import functions as sql  # noqa: PLC0415

    counted = present.groupBy(sql.expr(f"pmod(hash(key), {partitions})").alias("partition")).count().collect()
    found = {int(row[0]): int(row[1]) for row in counted}
    return tuple(found.get(partition, 0) / records for partition in range(partitions))


def _sketched(  # noqa: PLR0917 - what was counted before
    present: "DataFrame", column: str, top: int, tracked: int, about: int, records: int
) -> tuple[list[tuple[str, int]], int, int, float]:
    """Return the most frequent keys with their counts, the number of keys, and how far both may be off."""
    row = present.selectExpr(f"approx_top_k(key, {tracked}, {tracked})").first()
    items = row[0] if row else []
    places = 2 ** math.ceil(math.log2(math.ceil(tracked / _LOAD_FACTOR)))
    complete = sum(int(item[1]) for item in items) == records  # no count is too low, so none is too high
    error = 0 if complete else min(records, math.ceil(_ERROR_FACTOR / places * records))
    listed = sorted(((str(item[0]), int(item[1])) for item in items), key=lambda pair: (-pair[1], pair[0]))[:top]
    if not listed:
        raise WorkbenchError(
            f"No key of column {column!r} is frequent enough for a sketch of {tracked} items; "
            "count exactly (method='exact') or track more."
        )
    if complete:
        return listed, len(items), error, 0.0
    return listed, max(about, len(listed)), error, DISTINCT_DEVIATION
