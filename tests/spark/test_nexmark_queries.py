"""Every Nexmark query on a real Spark stream, against plain Python.

The stream: 6,000 events over a minute of event time, out of order within groups of 100 and a tenth of them up to 3 s
late, all within the watermark's 4 s. Then 300 events of other people and auctions, a minute behind the watermark:
queries with windows drop them, the others keep them. Last, two files of sentinels hours later that close all windows.
"""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import nexmark_models as models
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.workload import EventClock
from workbench.workload.nexmark import BASE_TIME_US, NexmarkGenerator, NexmarkSettings, query

pytestmark = pytest.mark.spark

SETTINGS = NexmarkSettings(group_size=100, late_probability=0.1, late_delay_s=3.0, active_people=20, hot_batch=10)
SPACING_US = 10_000.0
# one file a batch; the two small ones let Spark's watermark catch up with the first, so that a row 3 s late that still
# belongs to the first window arrives when a shorter watermark delay than 4 s would have closed that window
CUTS = (0, 1100, 1110, 1120, 3000, 4500, 6000)
LATE_ID, SENTINEL_ID = 50 * 10_000, 50 * 10_000_000
SENTINELS_FROM = 10_000_000  # ids of sentinels' people and auctions


def table(first, last, settings, seconds=0):
    clock = EventClock(BASE_TIME_US + seconds * 1_000_000, 0, SPACING_US)
    generator = NexmarkGenerator(settings)
    return pa.Table.from_batches(generator.batches(first, last, clock), generator.schema())


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nexmark")
    files = [table(first, last, SETTINGS) for first, last in pairwise(CUTS)]
    late = table(0, 300, NexmarkSettings(first_event_id=LATE_ID, active_people=20))
    sentinel = NexmarkSettings(first_event_id=SENTINEL_ID)
    tail = [late, table(0, 100, sentinel, 3600), table(0, 100, replace(sentinel, seed=1), 7200)]
    for place, rows in enumerate([*files, *tail]):
        pq.write_table(rows, folder / f"{place:03}.parquet")
    in_time = pa.concat_tables(files).to_pylist()
    return str(folder), in_time, late.to_pylist()


def run(spark, folder, name, tmp_path):
    """Rows of the query over the folder's files, one file a batch, as tuples."""
    rows = spark.readStream.schema(spark.read.parquet(folder).schema).option("maxFilesPerTrigger", 1).parquet(folder)
    chosen = query(name)
    sink = "sink_" + name.replace(":", "_")
    running = (
        chosen.build(rows)
        .writeStream.format("memory")
        .queryName(sink)
        .outputMode(chosen.output_mode)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert running.awaitTermination(300), f"{name} did not finish"
    finally:
        running.stop()
    result = [tuple(row) for row in spark.table(sink).collect()]
    spark.catalog.dropTempView(sink)
    return result


def long(*cases):
    """Cases that ``make test`` leaves out: other queries go the same way."""
    return [pytest.param(*case, marks=pytest.mark.long) for case in cases]


def without_sentinels(rows, place):
    return [row for row in rows if row[place] < SENTINELS_FROM]


def same(got, expected):
    assert expected, "the model found nothing: the test would pass on an empty answer"
    missing, surplus = Counter(expected) - Counter(got), Counter(got) - Counter(expected)
    assert not missing and not surplus, (  # noqa: PT018
        len(expected),
        len(got),
        missing.most_common(5),
        surplus.most_common(5),
    )


@pytest.mark.parametrize(("name", "id_column"), [*long(("q1", 0), ("q2", 0)), ("q3", 3)])
def test_queries_without_windows_keep_late_rows(spark, stream, tmp_path, name, id_column):
    folder, in_time, late = stream
    got = without_sentinels(run(spark, folder, name, tmp_path), id_column)
    same(got, getattr(models, name)([*in_time, *late]))


@pytest.mark.parametrize(
    ("name", "id_column"), [("q5", 0), ("q8", 0), *long(("q6", 0), ("q11", 0), ("q11:tumbling", 0))]
)
def test_queries_with_windows_drop_rows_beyond_the_watermark(spark, stream, tmp_path, name, id_column):
    folder, in_time, late = stream
    model = getattr(models, name.replace(":", "_"))
    got = without_sentinels(run(spark, folder, name, tmp_path), id_column)
    same(got, model(in_time))
    assert Counter(model([*in_time, *late])) != Counter(model(in_time)), "the late rows would not be missed"


def test_q6_meets_a_seller_with_more_than_ten_winning_bids(stream):
    _, in_time, _ = stream
    sellers = Counter(seller for _, seller, _ in models.q6(in_time))
    assert max(sellers.values()) > 10


@pytest.mark.parametrize(("name", "scans"), [("q1", 1), ("q5", 1), ("q8", 1), ("q11", 1), ("q3", 2), ("q6", 2)])
def test_number_of_scans_is_as_documented(spark, stream, name, scans):
    folder, _, _ = stream
    rows = spark.readStream.schema(spark.read.parquet(folder).schema).parquet(folder)
    plan = query(name).build(rows)._jdf.queryExecution().analyzed().toString()
    assert plan.count("FileSource[") == scans


@pytest.mark.long
def test_inference_reads_digits(spark, tmp_path):
    from workbench.workload.nexmark.inference import ImageGenerator

    generator = ImageGenerator()
    clock = EventClock(BASE_TIME_US, 0, SPACING_US)
    folder = tmp_path / "images"
    folder.mkdir()
    for place, first in enumerate((0, 200)):
        rows = pa.Table.from_batches(generator.batches(first, first + 200, clock), generator.schema())
        pq.write_table(rows, folder / f"{place:03}.parquet")
    got = run(spark, str(folder), "inference", tmp_path)
    assert sorted(row[0] for row in got) == list(range(400))
    right = sum(label == prediction for _, label, prediction, _, _ in got)
    assert right / len(got) > 0.85
    assert all(0 < confidence <= 1 for _, _, _, confidence, _ in got)
