"""Key frequencies of a small data set against plain counting in Python."""

import csv
import json
import random
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.errors import WorkbenchError
from workbench.workload import Dataset, count_keys, count_keys_here

pytestmark = pytest.mark.spark

ROWS, KEYS = 20_000, 3000


@pytest.fixture(scope="module")
def auctions():
    rng = random.Random(3)
    weights = [(rank + 1) ** -1.1 for rank in range(KEYS)]
    return rng.choices(range(KEYS), weights, k=ROWS)


@pytest.fixture(scope="module")
def parquet(auctions, tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "bids.parquet"
    values = pa.array([*auctions, None, None], pa.int64())
    pq.write_table(pa.table({"the auction": values, "none": pa.nulls(ROWS + 2, pa.int64())}), path)
    return str(path)


def test_exact_counts_are_those_of_python(spark, parquet, auctions):
    found = count_keys(spark, Dataset.at(parquet), "the auction", top=50, partitions=[1, 7])
    true = Counter(auctions)
    assert (found.records, found.missing, found.distinct, found.method) == (ROWS, 2, len(true), "exact")
    assert (found.count_error, found.distinct_deviation) == (0, 0.0)
    assert list(found.counts) == [count for _, count in true.most_common(50)]
    assert {key: true[int(key)] for key in found.keys} == dict(zip(found.keys, found.counts, strict=True))
    assert found.untracked_keys == len(true) - 50
    assert found.untracked_records == ROWS - sum(found.counts)
    assert found.imbalance(1) == pytest.approx(1.0)
    assert sum(found.partition_shares[7]) == pytest.approx(1.0)
    assert len(found.trace().shares) == len(true)


def test_partitions_are_those_of_a_real_shuffle(spark, parquet):
    found = count_keys(spark, Dataset.at(parquet), "the auction", partitions=[7])
    frame = spark.read.parquet(parquet).where("`the auction` is not null").repartition(7, "`the auction`")
    counted = {row[0]: row[1] for row in frame.selectExpr("spark_partition_id() p").groupBy("p").count().collect()}
    assert found.partition_shares[7] == tuple(counted.get(p, 0) / ROWS for p in range(7))


COLUMNS = {
    "long": pa.array([1, 1, -7, None, 1 << 40]),
    "int": pa.array([1, 1, -7, None, 9], pa.int32()),
    "byte": pa.array([1, 1, -7, None, 9], pa.int8()),
    "unsigned": pa.array([1, 1, 7, None, 9], pa.uint32()),
    "text": pa.array(["Ulm", "Ulm", "Köln am Rhein", None, ""]),
    "flag": pa.array([True, True, False, None, True]),
    "double": pa.array([0.0, -0.0, 1.5, None, -2.25]),
    "float": pa.array([0.0, -0.0, 1.5, None, -2.25], pa.float32()),
    "day": pa.array([1, 1, 20_000, None, -3], pa.int32()).cast(pa.date32()),
    "time": pa.array([1, 1, 10**15, None, -3]).cast(pa.timestamp("us", "UTC")),
    "amount": pa.array(
        [Decimal("1.00"), Decimal("1.00"), Decimal("-7.00"), None, Decimal("9.00")], pa.decimal128(18, 2)
    ),
}


@pytest.mark.parametrize("column", COLUMNS)
def test_arrow_counts_as_spark_does(spark, tmp_path, column):
    pq.write_table(pa.table({"key": COLUMNS[column]}), tmp_path / "x.parquet")
    data = Dataset.at(str(tmp_path / "x.parquet"))
    assert count_keys_here(data, "key", partitions=[1, 5, 200]) == count_keys(
        spark, data, "key", partitions=[1, 5, 200]
    )


@pytest.mark.parametrize("column", ["number", "name", "mixed"])
@pytest.mark.parametrize("ending", ["csv", "json"])
def test_arrow_counts_texts_as_spark_does(spark, tmp_path, auctions, column, ending):
    rows = [{"number": one, "name": f"shop {one % 50}", "mixed": f"{one}x"} for one in auctions]
    path = tmp_path / f"x.{ending}"
    if ending == "csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
            file.write(",,\n")
    else:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    here = count_keys_here(Dataset.at(str(path)), column, partitions=[7])
    assert here == count_keys(spark, Dataset.at(str(path)), column, partitions=[7])
    assert here.missing == (ending == "csv")


def test_a_sketch_stays_within_its_error(spark, parquet, auctions):
    found = count_keys(spark, Dataset.at(parquet), "the auction", method="sketch", top=20, tracked=300)
    true = Counter(auctions)
    assert found.method == "sketch"
    assert found.count_error == -(-35 * ROWS // 5120)  # 3.5 / 512
    assert found.distinct == pytest.approx(len(true), rel=4 * found.distinct_deviation)
    for key, count in zip(found.keys, found.counts, strict=True):
        assert true[int(key)] <= count <= true[int(key)] + found.count_error
    frequent = {key for key, count in true.items() if count > found.counts[-1] + found.count_error}
    assert frequent <= {int(key) for key in found.keys}


def test_a_sketch_that_holds_every_key_is_exact(spark, parquet, auctions):
    found = count_keys(spark, Dataset.at(parquet), "the auction", method="sketch", top=5)
    assert (found.count_error, found.distinct, found.distinct_deviation) == (0, len(set(auctions)), 0.0)
    assert list(found.counts) == [count for _, count in Counter(auctions).most_common(5)]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_text_keys_beside_columns_that_spark_refuses(spark, tmp_path, kind):
    table = pa.table({
        "city": pa.array(["Ulm", "Ulm", None, "Bonn"], kind),
        "at": pa.array([1, 2, 3, 4], pa.timestamp("ns")),
        "id": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)] * 4, pa.binary(16))),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "x.parquet")
    found = count_keys(spark, Dataset.at(str(tmp_path / "x.parquet")), "city")
    assert (found.keys, found.counts, found.missing) == (("Ulm", "Bonn"), (2, 1), 1)


@pytest.mark.parametrize("kind", [pa.uint8(), pa.uint32(), pa.uint64()])
def test_keys_without_a_sign(spark, tmp_path, kind):
    pq.write_table(pa.table({"n": pa.array([7, 7, 200], kind)}), tmp_path / "x.parquet")
    found = count_keys(spark, Dataset.at(str(tmp_path / "x.parquet")), "n")
    assert (found.keys, found.counts) == (("7", "200"), (2, 1))


def test_text_keys_of_a_csv(spark, tmp_path):
    path = tmp_path / "orders.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["product", "price"])
        writer.writerows([[name, 1] for name in ("tea", "tea", "coffee", "", "tea")])
    found = count_keys(spark, Dataset.at(str(path)), "product")
    assert (found.keys, found.counts, found.missing) == (("tea", "coffee"), (3, 1), 1)
    assert found.hottest_share == 0.75
    assert found.useful_tasks == pytest.approx(4 / 3)


def test_bad_input_is_named(spark, parquet, tmp_path):
    data = Dataset.at(parquet)
    for call, text in (
        (
            lambda: count_keys(spark, data, "auction"),
            "The data has no column 'auction'; its columns are the auction, none. Did you mean 'the auction'?",
        ),
        (
            lambda: count_keys(spark, data, "none"),
            f"Column 'none' has no key in any of its {ROWS + 2} rows; name another column.",
        ),
        (
            lambda: count_keys(spark, data, "the auction", top=5).imbalance(9),
            (
                "9 partitions of column 'the auction' were not counted; counted are none. "
                "Count again with partitions=[9]."
            ),
        ),
        (
            lambda: count_keys(spark, data, "the auction", top=20, tracked=10),
            "tracked is 10 and top is 20; the sketch must track at least the keys listed.",
        ),
        (
            lambda: count_keys(spark, data, "the auction", method="rough"),
            "method is 'rough'; use one of 'auto', 'exact', 'sketch'.",
        ),
    ):
        with pytest.raises(WorkbenchError) as error:
            call()
        assert str(error.value) == text
    (tmp_path / "broken.parquet").write_text("no parquet")
    with pytest.raises(WorkbenchError, match=r"broken\.parquet' cannot be read as parquet: "):
        count_keys(spark, Dataset.at(str(tmp_path / "broken.parquet")), "x")
