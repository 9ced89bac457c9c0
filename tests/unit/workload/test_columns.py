"""Columns of every type, from the file to the check that Spark makes of the first batch."""

import datetime as dt
from decimal import Decimal
from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from parquet_rows import stored
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import _parse_datatype_json_string
from pyspark.sql.worker.plan_data_source_read import records_to_arrow_batches
from refusals import refusals

from workbench.errors import QueryError
from workbench.workload import Dataset, EventClock, as_spark, prepare, schema_of
from workbench.workload.columns import spark_schema, spark_type
from workbench.workload.dataset import check

UTC_US = pa.timestamp("us", "UTC")
NOON = dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)
DAY = dt.date(2024, 1, 31)
FINE = pa.scalar(1_706_702_400_000_001_999, pa.timestamp("ns", "UTC"))
CUT = NOON + dt.timedelta(microseconds=1)


def listed(kind):
    return pa.list_(pa.field("element", kind))


def extended(kind, storage):
    return pa.ExtensionArray.from_storage(kind, storage)


TEXTS = ["a", None, "b", "a"]
CODES = pa.array(TEXTS).dictionary_encode()
# what a file has, in which type Spark gets it, and as which values; None: the file's own
COLUMNS = {
    "booleans": (pa.array([True, None]), pa.bool_(), None),
    **{str(kind): (pa.array([-1, None], kind), kind, None) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{f"uint{bits}": (pa.array([1, None], f"uint{bits}"), pa.int64(), None) for bits in (8, 16, 32, 64)},
    "uint64, as far as int64 goes": (pa.array([2**63 - 1], pa.uint64()), pa.int64(), None),
    "half floats": (pa.array([1.5, None], pa.float16()), pa.float32(), None),
    "floats": (pa.array([1.5, None], pa.float32()), pa.float32(), None),
    "doubles": (pa.array([1.5, None, float("inf")]), pa.float64(), None),
    "strings": (pa.array(TEXTS), pa.string(), None),
    "large strings": (pa.array(TEXTS, pa.large_string()), pa.string(), None),
    "string views": (pa.array(TEXTS, pa.string_view()), pa.string(), None),
    "binaries": (pa.array([b"a", None]), pa.binary(), None),
    "large binaries": (pa.array([b"a", None], pa.large_binary()), pa.binary(), None),
    "binary views": (pa.array([b"a", None], pa.binary_view()), pa.binary(), None),
    "binaries of one size": (pa.array([b"ab", None], pa.binary(2)), pa.binary(), None),
    "a dictionary": (CODES, pa.string(), None),
    "a dictionary of large strings": (pa.array(TEXTS, pa.large_string()).dictionary_encode(), pa.string(), None),
    "an ordered dictionary": (CODES.cast(pa.dictionary(pa.int8(), pa.string(), ordered=True)), pa.string(), None),
    "a list of a dictionary": (pa.ListArray.from_arrays([0, 3, 4], CODES), listed(pa.string()), None),
    "lists": (pa.array([["a", None], None, []]), listed(pa.string()), None),
    "lists without nulls": (
        pa.array([["a"]], pa.list_(pa.field("item", pa.string(), nullable=False))), listed(pa.string()), None,
    ),
    "large lists": (pa.array([["a", None], None], pa.large_list(pa.large_string())), listed(pa.string()), None),
    "lists of one size": (pa.array([["a", "b"], None], pa.list_(pa.string(), 2)), listed(pa.string()), None),
    "list views": (pa.array([["a"], None], pa.list_view(pa.string_view())), listed(pa.string()), None),
    "large list views": (pa.array([["a"], None], pa.large_list_view(pa.string())), listed(pa.string()), None),
    "structs": (
        pa.array([{"a": "x", "t": FINE}, None], pa.struct([("a", pa.large_string()), ("t", FINE.type)])),
        pa.struct([("a", pa.string()), ("t", UTC_US)]),
        [{"a": "x", "t": CUT}, None],
    ),
    "structs without nulls": (
        pa.array([{"a": 1}], pa.struct([pa.field("a", pa.int8(), nullable=False)])),
        pa.struct([("a", pa.int8())]),
        None,
    ),
    "maps": (
        pa.array([[("a", 1.5)], None], pa.map_(pa.large_string(), pa.float16())),
        pa.map_(pa.string(), pa.float32()),
        None,
    ),
    "maps of sorted keys": (
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8(), keys_sorted=True)),
        pa.map_(pa.string(), pa.int8()),
        None,
    ),
    "lists of structs of maps of lists": (
        pa.array(
            [[{"m": [("k", [DAY, None])]}], None],
            pa.large_list(pa.struct([("m", pa.map_(pa.string_view(), pa.list_(pa.date64(), 2)))])),
        ),
        listed(pa.struct([("m", pa.map_(pa.string(), listed(pa.date32())))])),
        None,
    ),
    **{
        f"{kind}": (pa.array([Decimal("1.25"), None], kind), pa.decimal128(kind.precision, 2), None)
        for kind in (pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(38, 2), pa.decimal256(38, 2))
    },
    "days": (pa.array([DAY, None]), pa.date32(), None),
    "days as milliseconds": (pa.array([DAY, None], pa.date64()), pa.date32(), None),
    "seconds of a day": (pa.array([dt.time(0, 1), None], pa.time32("s")), pa.int64(), [60_000, None]),  # Parquet: in ms
    "milliseconds of a day": (pa.array([dt.time(0, 1), None], pa.time32("ms")), pa.int64(), [60_000, None]),
    "microseconds of a day": (pa.array([dt.time(0, 1), None]), pa.int64(), [60_000_000, None]),
    "nanoseconds of a day": (pa.array([1, None], pa.time64("ns")), pa.int64(), [1, None]),
    "times within lists": (pa.array([[dt.time(0, 1)]], pa.list_(pa.time32("ms"))), listed(pa.int64()), [[60_000]]),
    "durations": (pa.array([1, None], pa.duration("ms")), pa.int64(), [1, None]),
    "times in UTC": (pa.array([NOON, None], UTC_US), UTC_US, None),
    "times elsewhere": (pa.array([NOON, None], pa.timestamp("ms", "America/Lima")), UTC_US, [NOON, None]),
    "times without a zone": (pa.array([NOON.replace(tzinfo=None), None], pa.timestamp("ms")), UTC_US, [NOON, None]),
    "nanoseconds": (pa.array([FINE, None], FINE.type), UTC_US, [CUT, None]),
    "nanoseconds within lists": (pa.array([[FINE], None], pa.list_(FINE.type)), listed(UTC_US), [[CUT], None]),
    "nothing": (pa.nulls(2), pa.string(), None),
    "lists of nothing": (pa.array([[None], []]), listed(pa.string()), None),
    "uuid": (extended(pa.uuid(), pa.array([b"0" * 16, None], pa.binary(16))), pa.binary(), [b"0" * 16, None]),
    "json": (extended(pa.json_(), pa.array(["{}", None])), pa.string(), None),
    "uuid within lists": (
        pa.ListArray.from_arrays([0, 1], extended(pa.uuid(), pa.array([b"0" * 16], pa.binary(16)))),
        listed(pa.binary()),
        [[b"0" * 16]],
    ),
    "booleans as bytes": (extended(pa.bool8(), pa.array([1, None], pa.int8())), pa.int8(), [1, None]),
    "tensors": (
        extended(pa.fixed_shape_tensor(pa.float32(), [2]), pa.array([[1, 2]], pa.list_(pa.float32(), 2))),
        listed(pa.float32()),
        [[1.0, 2.0]],
    ),
}  # fmt: skip


def rows(replay, count):
    """The batches that Spark's worker lets pass: it compares the first with the schema that the JVM sends it."""
    schema = _parse_datatype_json_string(from_arrow_schema(replay.schema()).json())
    batches = replay.batches(0, count, EventClock(0, 0, 1.0))
    return pa.Table.from_batches(list(records_to_arrow_batches(batches, 10_000, schema, DataSource({}))))


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_a_parquet_file_is_what_spark_expects(tmp_path, name):
    column, kept, values = COLUMNS[name]
    data = stored(tmp_path, {"x": column})
    check(data, None)
    replay = prepare(data, None, tmp_path)
    assert replay.schema() == schema_of(data, None) == pa.schema([("x", kept)])
    assert spark_type(column.type) == spark_type(kept) == kept
    got = rows(replay, len(column)).column("x")
    assert got.type == kept
    assert got.to_pylist() == (column.to_pylist() if values is None else values)


@pytest.mark.parametrize("pair", list(combinations(["large strings", "durations", "maps", "uuid"], 2)))
def test_columns_beside_an_event_time_are_what_spark_expects(tmp_path, pair):
    first, second = (COLUMNS[name][0][:1] for name in pair)
    at = pa.array([FINE], FINE.type).dictionary_encode()
    replay = prepare(stored(tmp_path, {"a": first, "at": at, "b": second}), "at", tmp_path)
    assert rows(replay, 3).column("at").cast(pa.int64()).to_pylist() == [0, 1, 2]


def test_runs_are_what_they_repeat():
    column = pa.chunked_array([pc.run_end_encode(pa.array(["a", "a", None], pa.large_string()))])
    assert spark_type(column.type) == pa.string()
    assert as_spark(column, "x") == pa.chunked_array([["a", "a", None]])


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.large_string())])
def test_a_file_of_pandas_3_is_read(tmp_path, kind):
    table = pa.table({
        "year": pa.array([2024, 2025]),
        "city": pa.array(["Ulm", None], kind),
        "at": pa.array([FINE, FINE], FINE.type),
        "__index_level_0__": pa.array([7, 9]),
    })  # fmt: skip
    pandas = b'{"index_columns": ["__index_level_0__"], "columns": [], "pandas_version": "3.0.1"}'
    replay = prepare(stored(tmp_path, table.replace_schema_metadata({b"pandas": pandas})), "at", tmp_path)
    got = rows(replay, 2)
    assert got.column("city").to_pylist() == ["Ulm", None]
    assert got.column("__index_level_0__").to_pylist() == [7, 9]  # as Spark's own reader has it


def test_what_is_inferred_from_csv_and_json_is_read_and_a_column_without_a_name_may_be_the_event_time(tmp_path):
    (tmp_path / "x.csv").write_text(
        ",clock,day,at,flag,price,none\n0,12:34:56,2024-01-31,2024-01-31 12:00:00,true,1.5,\n1,00:00:01,,,,,\n"
    )
    replay = prepare(Dataset.at(str(tmp_path / "x.csv")), None, tmp_path)
    assert rows(replay, 2).to_pydict() == {
        "_c0": [0, 1],
        "clock": [45_296, 1],
        "day": [DAY, None],
        "at": [NOON, None],
        "flag": [True, None],
        "price": [1.5, None],
        "none": [None, None],
    }
    text = '{"a": {"at": "2024-01-31 12:00:00", "n": null, "none": {}}, "l": [{"z": [1.5]}], "e": []}\n{"a": null}\n'
    (tmp_path / "x.json").write_text(text)
    replay = prepare(Dataset.at(str(tmp_path / "x.json")), None, tmp_path)
    assert rows(replay, 2).to_pylist() == [
        {"a": {"at": NOON, "n": None, "none": {}}, "l": [{"z": [1.5]}], "e": []},
        {"a": None, "l": None, "e": None},
    ]
    replay = prepare(stored(tmp_path, {"": pa.array([5, 4], pa.uint32()), "n": [1, 2]}), "_c0", tmp_path)
    assert rows(replay, 2).column("_c0").to_pylist() == [0, -1]


REFUSED = (
    (pa.decimal256(39, 2), r"decimal256\(39, 2\), because its decimals have at most 38 digits"),
    (pa.list_(pa.struct([("d", pa.decimal256(76, 0))])), r"decimal256\(76, 0\), because its decimals"),
    (pa.month_day_nano_interval(), "month_day_nano_interval"),
    (pa.dense_union([pa.field("a", pa.int8())]), "dense_union<a: int8=0>"),
    (pa.map_(pa.string(), pa.sparse_union([pa.field("a", pa.int8())])), "sparse_union<a: int8=0>"),
)
test_what_spark_cannot_hold_is_refused_with_the_column_and_the_type = refusals(
    lambda kind: spark_schema(pa.schema([("n", pa.int8()), ("x", kind)]), "f"),
    *((kind, rf"^The column 'x' of 'f' has type .*, and Spark cannot hold {why}.*leave it") for kind, why in REFUSED),
    error=QueryError,
)


def test_a_value_that_does_not_fit_is_refused_with_the_column_also_further_down(tmp_path):
    with pytest.raises(QueryError, match=r"^The column 'x' has type uint64, .* as int64, .* 9223372036854775808"):
        check(stored(tmp_path, {"n": [1], "x": pa.array([2**63], pa.uint64())}), None)
    late = stored(tmp_path, {"x": pa.array([1] * 2000 + [2**64 - 1], pa.uint64())})
    check(late, None)
    with pytest.raises(QueryError, match=r"^The column 'x' has type uint64"):
        prepare(late, None, tmp_path)


@pytest.mark.parametrize("names", [("Id", "id"), ("a", "a"), ("", "_C0")])
def test_names_that_are_the_same_for_spark_are_refused_with_both(tmp_path, names):
    data = stored(tmp_path, pa.Table.from_arrays([pa.array([n]) for n in range(2)], names))
    first, second = (name or "_c0" for name in names)
    with pytest.raises(QueryError, match=rf"takes the columns '{first}' and '{second}' of .* for the same. Rename one"):
        check(data, None)
    (tmp_path / "x.csv").write_text("a,a\n1,2\n")
    with pytest.raises(QueryError, match=r"CSV file contained multiple columns named a\. "):
        check(Dataset.at(str(tmp_path / "x.csv")), None)
