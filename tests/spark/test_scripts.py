"""Scripts on real Spark: what they read, start and set is found, and nothing of it is carried out."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
    assert {one.name for one in folder.iterdir()} == {
        "job.py",
        "helper.py",
        "prices.csv",
        "fails.py",
        "sales.parquet",
        "job.sql",
    }


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
    assert found.notes == ("line 10: DROP TABLE old is left out: it is no view and reads no stream",)


@pytest.mark.usefixtures("folder")
def test_what_is_found_before_a_script_ends_is_kept():
    lacks = look_at_script(Script("job.py", ("orders",)), [])
    assert (lacks.lacking, len(lacks.sources), lacks.queries) == ("sales", 3, ())
    fails = look_at_script(Script("fails.py"), [])
    assert (fails.failure, len(fails.queries)) == ("line 2: ZeroDivisionError: division by zero", 1)
