"""Scripts on real Spark: what they read, start and set is found, and nothing of it is carried out."""

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from workbench.dataflow import Budget, SlotProfile
from workbench.records import JobSettings
from workbench.study import find_query
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import look_at_script
from workbench.workload import Script

pytestmark = pytest.mark.spark

JOB = """
import sys
import time

from helper import cleaned
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQueryListener


class Listens(StreamingQueryListener):
    def onQueryStarted(self, event): ...
    def onQueryProgress(self, event): ...
    def onQueryIdle(self, event): ...
    def onQueryTerminated(self, event): ...


sc = SparkContext(conf=SparkConf().setAppName("job").set("spark.executor.cores", "4"))
spark = SparkSession.builder.remote("sc://nowhere").config("spark.jars.password", "hunter22").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", 3)
spark.streams.addListener(Listens())
prices = spark.read.csv("prices.csv", header=True)
prices.write.saveAsTable("prices")

kafka = spark.readStream.format("kafka").option("subscribe", sys.argv[1]).option("kafka.password", "hunter22").load()
value = f.from_json(f.col("value").cast("string"), "shop string, time timestamp")
orders = kafka.select(value.alias("order")).select("order.*", cleaned("order.shop").alias("name"))
files = spark.readStream.schema("shop string, time timestamp").csv("s3://bucket/clicks/*.csv")
table = spark.readStream.table("catalog.sales")
joined = orders.join(prices, "shop").withWatermark("time", "1 minute").groupBy(f.window("time", "1 hour")).count()


def keep(batch, number):
    raise AssertionError


first = joined.writeStream.foreachBatch(keep).outputMode("update").trigger(processingTime="5 seconds").start()
files.groupBy("shop").count().writeStream.format("console").start()
orders.union(files.withColumn("name", f.lit(""))).writeStream.option("path", "out").queryName("both").start()
table.where(table.amount > 1).writeStream.toTable("large")
first.processAllAvailable()
while first.isActive or not first.recentProgress:
    time.sleep(60)
raise AssertionError
"""
FAILS = "spark.readStream.format('rate').load().writeStream.format('noop').start()\n1 / 0\n"

SQL = """
-- each shop; and what it sells
SET spark.sql.ansi.enabled = false;
CREATE TEMPORARY VIEW large AS SELECT 'a' AS shop, ';' AS sign;
CREATE OR REFRESH STREAMING TABLE counts
  COMMENT 'as it is'
AS SELECT sales.shop, count(*) AS n FROM STREAM(shops.sales) JOIN large ON sales.shop = large.shop GROUP BY sales.shop;
/* the rest; */
INSERT INTO rows SELECT * FROM STREAM shops.sales AS s WHERE s.amount > 1;
DROP TABLE old
"""

WRITES = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
numbers = spark.readStream.schema("id long").parquet("in")


def keep(batch, number):
    batch.selectExpr("id * 2 AS twice").write.format("parquet").mode("append").save("production/table")
    batch.write.saveAsTable("rows", mode="append")


numbers.where("id % 2 = 1").writeStream.foreachBatch(lambda batch, number: keep(batch, number)).start()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "helper.py").write_text("from pyspark.sql.functions import lower as cleaned\n")
    (tmp_path / "prices.csv").write_text("shop,price\na,1\n")
    (tmp_path / "fails.py").write_text(FAILS)
    (tmp_path / "job.sql").write_text(SQL)
    pq.write_table(pa.table({"shop": ["a"], "amount": [2.0]}), tmp_path / "sales.parquet")
    return tmp_path


def test_a_script_is_recorded_and_not_carried_out(folder):
    before = set(folder.iterdir())
    found = look_at_script(Script("job.py", ("orders",)), [("sales", "sales.parquet")])
    assert not found.failure
    assert [(one.name, one.format) for one in found.sources] == [
        ("orders", "kafka"),
        ("clicks", "csv"),
        ("sales", "table"),
    ]
    assert found.sources[0].options == {"subscribe": "orders", "kafka.password": "***"}
    assert [(one.name, one.sources, one.sink, one.output_mode) for one in found.queries] == [
        ("", ("orders",), "foreachBatch keep", "update"),
        ("", ("clicks",), "console", "append"),
        ("both", ("orders", "clicks"), "parquet out", "append"),
        ("", ("sales",), "table large", "append"),
    ]
    assert (set(found.queries[0].joins), found.queries[0].keys) == ({"shop"}, ())  # windows are not keys
    assert (found.queries[0].trigger, found.queries[0].watermarks) == ("processingTime=5 seconds", ("time, 1 minutes",))
    assert [bool(one.refusal) for one in found.queries] == [False, True, False, False]
    assert "watermark" in found.queries[1].refusal
    assert found.settings == {
        "spark.executor.cores": "4",
        "spark.jars.password": "***",
        "spark.sql.shuffle.partitions": "3",
    }
    for word in ("saveAsTable", "Connect", "Listens", "processAllAvailable", "recentProgress", "waits in a loop"):
        assert any(word in note for note in found.notes), word
    assert set(folder.iterdir()) == before


@pytest.mark.usefixtures("folder")
def test_a_file_of_sql_is_recorded():
    found = look_at_script(Script("job.sql"), [("", "sales.parquet")])
    assert not found.failure
    assert [(one.name, one.options) for one in found.sources] == [("sales", {"table": "shops.sales"})]
    assert [(one.sink, one.line, bool(one.refusal)) for one in found.queries] == [
        ("table counts", 5, True),  # in append mode, without a watermark
        ("table rows", 9, False),
    ]
    assert found.settings == {"spark.sql.ansi.enabled": "false"}
    assert found.notes == ("line 10: DROP TABLE old is left out: it is not a view and reads no stream",)


@pytest.mark.long
@pytest.mark.usefixtures("folder")
def test_what_is_found_before_a_script_ends_is_kept():
    lacks = look_at_script(Script("job.py", ("orders",)), [])
    assert (lacks.lacking, len(lacks.sources), lacks.queries) == ("sales", 3, ())
    fails = look_at_script(Script("fails.py"), [])
    assert (fails.failure, len(fails.queries)) == ("line 2: ZeroDivisionError: division by zero", 1)


@pytest.mark.long
def test_what_a_function_for_batches_writes_is_written_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "writes.py").write_text(WRITES)
    pq.write_table(pa.table({"id": range(1000)}), tmp_path / "in.parquet")
    (found,) = look_at_script(Script("writes.py"), []).queries
    assert (found.sink, found.beyond) == ("foreachBatch foreachBatch", "")
    settings = JobSettings(sink=f"writes.py:foreachBatch {tmp_path / 'written'}")
    query = find_query("writes.py#1", "in.parquet", sink=settings.writes)
    testbed = SparkTestbed(slot_cpus="cores", warmup_cap_s=4, settings=settings)
    with testbed.deploy(query, Budget(1, SlotProfile(1.0, 1200), 1.0)) as run:
        run.set_rate(500.0)
        run.observe(4)
        run.set_rate(0.0)
        run.settle(3)
        (own,) = (tmp_path / "written").iterdir()
        written = ds.dataset(own / "query" / "production_table", format="parquet").to_table()
        rows = ds.dataset(own / "query" / "rows", format="parquet").to_table()
    assert {one % 4 for one in written["twice"].to_pylist()} == {2}
    assert sorted(2 * one for one in rows["id"].to_pylist()) == sorted(written["twice"].to_pylist())
    assert {one.name for one in tmp_path.iterdir()} == {"writes.py", "in.parquet"}


SPEC = """
name: shops
storage: state
libraries:
  - glob: {include: ./flows/**}
configuration: {spark.sql.ansi.enabled: "false"}
"""
FLOWS = """
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()


@dp.table(name="lake.orders", format="delta")
def from_topic() -> DataFrame:
    value = f.from_json(f.col("value").cast("string"), "shop string, amount double, time timestamp")
    return spark.readStream.format("kafka").option("subscribe", "orders").load().select(value.alias("o")).select("o.*")


@dp.temporary_view
def large():
    return spark.readStream.table("orders").where("amount > 1")


@dp.materialized_view
def shops():
    return spark.table("lake.orders").select("shop").distinct()


dp.create_streaming_table("both")
dp.create_sink("out", "kafka", {"kafka.bootstrap.servers": "a:9092", "topic": "large"})


@dp.append_flow(target="both", name="named")
def first():
    return spark.readStream.table("large").join(spark.read.table("shops"), "shop")


@dp.append_flow(target="out")
def second():
    return spark.sql("SELECT shop AS value FROM STREAM(large)")


@dp.table
def fails():
    return spark.readStream.table("orders").select("nothing")


@dp.table
def at_rest():
    return spark.range(3)


@dp.table
def unknown():
    return spark.readStream.table("elsewhere.rows")
"""
SQL_FLOWS = """
CREATE STREAMING TABLE hourly COMMENT 'as select' AS SELECT window.start, shop, count(*) AS n
FROM STREAM(orders) WATERMARK time DELAY OF INTERVAL 1 MINUTE GROUP BY window(time, '1 hour'), shop;
CREATE STREAMING TABLE late USING parquet;
CREATE FLOW fill AS INSERT INTO late BY NAME SELECT n FROM STREAM hourly JOIN shops ON hourly.shop = shops.shop;
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spark-pipeline.yml").write_text(SPEC)
    (tmp_path / "flows" / "more").mkdir(parents=True)
    (tmp_path / "flows" / "a.py").write_text(FLOWS)
    (tmp_path / "flows" / "more" / "b.sql").write_text(SQL_FLOWS)
    return tmp_path


@pytest.mark.usefixtures("project")
def test_each_flow_of_a_pipeline_is_a_query():
    found = look_at_script(Script("spark-pipeline.yml"), [])
    assert (found.failure, found.lacking) == ("", "")
    assert [(one.name, one.file, one.sources, one.sink) for one in found.queries] == [
        ("lake.orders", "a.py", ("orders",), "table lake.orders as delta"),
        ("named", "a.py", ("orders_2",), "table both"),
        ("second", "a.py", ("orders_2",), "kafka://a:9092/large"),
        ("fails", "a.py", (), "table fails"),
        ("at_rest", "a.py", (), "table at_rest"),
        ("unknown", "a.py", ("rows",), "table unknown"),
        ("hourly", "b.sql", ("orders_2",), "table hourly"),
        ("fill", "b.sql", ("hourly",), "table late as parquet"),
    ]
    assert {one.name: one.refusal.partition(" ")[0] for one in found.queries if one.refusal} == {
        "fails": "AnalysisException:",
        "at_rest": "[WRITE_STREAM_NOT_ALLOWED]",
    }
    assert {(one.trigger, one.checkpoint, one.output_mode) for one in found.queries} == {
        ("availableNow=True", "state", "append")
    }
    assert found.queries[6].watermarks == ("time, 1 minutes",)
    assert found.settings == {"spark.sql.ansi.enabled": "false"}
    assert any("shops is a materialized view" in note for note in found.notes)


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.usefixtures("project")
def test_a_flow_of_a_pipeline_runs_on_the_rows_of_its_source():
    rows = pa.table({"shop": ["a", "b"] * 50, "amount": [float(one) for one in range(100)]})
    pq.write_table(rows, "orders.parquet")
    query = find_query("spark-pipeline.yml#3", "orders.parquet")
    assert {one.name for one in query.build.files} == {"spark-pipeline.yml", "a.py", "b.sql"}
    testbed = SparkTestbed(slot_cpus="cores", warmup_cap_s=4)
    with testbed.deploy(query, Budget(1, SlotProfile(1.0, 1200), 1.0)) as run:
        run.set_rate(500.0)
        seen = run.observe(4)
    assert seen.consumed_rate > 0
    assert sum(one.records_out or 0 for one in seen.operators) > 0
