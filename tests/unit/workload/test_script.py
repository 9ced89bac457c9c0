"""Specifications of pipelines, what plans show of state and joins, and functions of ``foreachBatch``."""

import runpy
from types import SimpleNamespace

import pytest

from workbench.errors import WorkbenchError
from workbench.measuring.fingerprint import code_of
from workbench.study import find_query
from workbench.workload import Script
from workbench.workload.elsewhere import beyond, name_of
from workbench.workload.recorder import Recorder, _sink, first_line, name_of_source
from workbench.workload.script import Project, grouped_by, joined_by, watermarks_of

SPEC = """
name: shops
storage: s3a://lake/state
libraries:
  - glob: {include: ./flows/**}
  - glob: {include: more.sql}
configuration: {spark.sql.ansi.enabled: "false", spark.sql.shuffle.partitions: 4}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "flows" / "deep" / "__pycache__").mkdir(parents=True)
    for name in ("flows/b.py", "flows/a.sql", "flows/deep/c.py", "flows/deep/__pycache__/d.py", "more.sql", "other.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "flows" / "readme.md").touch()
    (tmp_path / "spark-pipeline.yml").write_text(SPEC)
    (tmp_path / "rows.csv").write_text("a\n1\n")
    return tmp_path


def test_a_specification_names_its_files_in_a_stated_order(folder):
    found = Project.read(folder / "spark-pipeline.yml")
    assert [str(one.relative_to(folder)) for one in found.files] == [
        "flows/a.sql",
        "flows/b.py",
        "flows/deep/c.py",
        "more.sql",
    ]
    assert found.storage == "s3a://lake/state"
    assert found.settings == {"spark.sql.ansi.enabled": "false", "spark.sql.shuffle.partitions": "4"}


@pytest.mark.usefixtures("folder")
def test_a_flow_is_named_by_its_number_and_is_another_when_a_file_of_the_project_changes(folder):
    assert Script.named("spark-pipeline.yml#2") == Script("spark-pipeline.yml", (), 2)
    query = find_query("spark-pipeline.yml#2", "rows.csv")
    before = code_of(query)
    assert before == code_of(find_query("spark-pipeline.yml#2", "rows.csv"))
    (folder / "flows" / "deep" / "c.py").write_text("changed = True\n")
    assert before != code_of(query)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("query: nexmark:q5\n", "has the libraries None"),
        ("libraries: [flows]\n", "a pipeline's name its files"),
        ("[1]\n", "has the libraries None"),
        ("libraries: 5\n", "has the libraries 5"),
        ("libraries: [{glob: {include: none/**}}]\n", "no .py or .sql file is there"),
        ("libraries: [\n", "cannot be read as YAML"),
    ],
)
def test_what_is_no_specification_is_refused(tmp_path, text, says):
    (tmp_path / "spark-pipeline.yml").write_text(text)
    with pytest.raises(WorkbenchError, match=says):
        Project.read(tmp_path / "spark-pipeline.yml")


PLAN = """
Aggregate [window#40-T5000ms, upper(kind#42)], [window#40-T5000ms AS window#44-T5000ms, count(1) AS n#43L]
+- Deduplicate [id#50L]
   +- Join Inner, (((a#12L = paid_order#34L) AND (tag#9 <=> mark#8)) AND (paid_at#36-T5000ms >= at#15-T5000ms))
      :- EventTimeWatermark 3e51f0cc-8f1c-4c19-9a73-0b5f6a9a1111, at#15: timestamp, 5 seconds
      :  +- Project [row#5.order_id AS a#12L, row#5.place.mark AS mark#8, row#5.at AS at#15, id#50L]
      :     +- Project [from_json(StructField(order_id,LongType,true), cast(value#1 as string)) AS row#5]
      :        +- SubqueryAlias workbench_source_0
      +- EventTimeWatermark 3e51f0cc-8f1c-4c19-9a73-0b5f6a9a2222, paid_at#36: timestamp, 10 seconds
         +- Project [number#30L AS paid_order#34L, lower(label#31) AS tag#9, paid_at#36]
            +- SubqueryAlias workbench_source_1
"""


def test_keys_have_each_name_from_the_source_on_if_there_is_state_and_watermarks_their_delays():
    assert set(grouped_by(PLAN)) == {"kind", "id"}
    assert set(joined_by(PLAN)) == {*("a", "order_id", "paid_order", "number"), *("tag", "label", "mark", "place.mark")}
    plan = "Project [a#1, b#2 AS c#3]\n+- Filter (a#1 = 2)"
    assert grouped_by(plan) == joined_by(plan) == ()
    assert watermarks_of(PLAN) == ("at, 5 seconds", "paid_at, 10 seconds")


HEAD = """
import json, os, logging
from datetime import datetime
from functools import partial
from pyspark.sql import functions as f
import client
from client import send
PLACE, PROPERTIES = "/data/out", {"user": "a"}
producer = client.Producer()
log = logging.getLogger("job")
def helper(batch):
    batch.withColumn("at", f.lit(datetime.now())).write.format("delta").mode("append").save(PLACE)
def reaches(batch):
    return [send(row) for row in batch.collect()]
class Job:
    def keep(self, batch, number):
        self.connection.commit()
class Settings:
    def __init__(self, table): self.table = table
class Own:
    kind = "delta"
    def __init__(self, client=None):
        self._config, self._settings, self._client = {"table": "shops"}, Settings("shops"), client
    @property
    def place(self): return self._config["table"] + self._settings.table
    @staticmethod
    def count(batch): return batch.count()
    def keep(self, batch, number):
        if self.count(batch):
            self.save(batch.withColumn("number", f.lit(number)))
    def save(self, batch):
        batch.write.format(self.kind).save(self.place)
        again = lambda one: one.write.saveAsTable(self._config["table"])
        again(batch)
    def merge(self, batch, number):
        if batch.sparkSession.catalog.tableExists(self._config["table"]):
            batch.mergeInto(self.place, f.lit(True)).whenMatched().updateAll().merge()
    def send(self, batch, number): self._client.send(batch.count())
    def made(self): return lambda batch, number: self.send(batch, number)
"""
STAYS = {
    "path": "def keep(b, n): b.write.mode('append').partitionBy('day').parquet(PLACE)",
    "helper": "def keep(b, n):\n  if b.count() > 0:\n    helper(b)\n    log.info('{}'.format(n), json.dumps({}))",
    "partial": "keep = partial(lambda to, b, n: b.write.parquet(to), PLACE)",
    "closure": "def made(to):\n  def keep(b, n): b.distinct().write.saveAsTable(to)\n  return keep\nkeep = made('t')",
    "method": "keep = Own().keep",
    "lambda": "own = Own()\ndef made(one): return lambda b, n: one.keep(b, n)\nkeep = made(own)",
    "import": "def keep(b, n):\n  from pyspark.sql.window import Window\n  b.write.json(str(n))",
}
GOES = {
    "client": ("def keep(b, n): producer.flush()", "uses Producer"),
    "module": ("def keep(b, n): client.send(n)", "uses client"),
    "called": ("def keep(b, n):\n  helper(b)\n  reaches(b)", "send (line 3) calls open"),
    "inner": (
        "def keep(b, n):\n  def each(rows): send(rows)\n  b.mapInPandas(each, 'a int').count()",
        "send (line 3) calls open",
    ),
    "default": ("def keep(b, n, p=producer): b.count()", "Producer"),
    "imports": ("def keep(b, n):\n  import psycopg2", "imports psycopg2"),
    "file": ("def keep(b, n): open('x', 'w')", "calls open"),
    "system": ("def keep(b, n): os.remove(PLACE)", "uses os"),
    "hidden": ("def keep(b, n): getattr(b, 'rdd')", "calls getattr"),
    "partitions": ("def keep(b, n): b.foreachPartition(print)", "uses foreachPartition"),
    "sql": ("def keep(b, n): b.sparkSession.sql('MERGE INTO t')", "uses sql"),
    "java": ("def keep(b, n): b._jdf.count()", "uses _jdf"),
    "jdbc": ("def keep(b, n): b.write.jdbc('u', 't')", "uses jdbc"),
    "format": ("def keep(b, n): b.write.format('mongodb').save()", "writes to mongodb"),
    "method": ("keep = Job().keep", "uses connection"),
    "merge": ("keep = Own().merge", "merge (line 37) uses mergeInto"),
    "own": ("keep = Own(producer).send", "send (line 38) uses send"),
    "library": ("import sqlite3\nkeep = Own(sqlite3.connect(':memory:')).send", "send (line 38) uses send"),
    "inherited": ("class Mine(client.Sender): ...\nkeep = Mine().save", "calls open"),
    "whole": ("def made(one): return lambda b, n: one(b, n)\nkeep = made(Own())", "uses Own"),
    "inside": ("keep = Own(producer).made()", "send (line 38) uses send"),
    "into": ("def keep(b, n): b.write.insertInto('t')", "uses insertInto"),
    "v2": ("keep = partial(lambda b, n: b.writeTo('t').append())", "uses writeTo"),
}


@pytest.fixture
def made(tmp_path, monkeypatch):
    sender = "class Sender:\n    def save(self, batch, number): send(number)\n"
    (tmp_path / "client.py").write_text(
        f"class Producer:\n    def flush(self): ...\ndef send(row): open(row)\n{sender}"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def run(text):
        (tmp_path / "job.py").write_text(HEAD + text)
        return runpy.run_path(str(tmp_path / "job.py"), run_name="__main__")["keep"]

    yield run
    monkeypatch.delitem(__import__("sys").modules, "client", raising=False)


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_what_only_its_batches_write_can_be_put_elsewhere(made, text):
    assert beyond(made(text)) == ""


@pytest.mark.parametrize(("text", "says"), GOES.values(), ids=GOES)
def test_what_reaches_another_system_is_named_with_its_line(made, text, says):
    assert says in beyond(made(text))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"subscribe": "ad_events,shop.clicks, sales"}, "ad_events_clicks_sales"),
        ({"subscribe": "shop.orders"}, "orders"),
        ({"subscribePattern": "shop.orders.*"}, "orders"),
        ({"path": "s3://lake/clicks/*.csv"}, "clicks"),
        ({"subscribe": ",".join(f"topic{n}" for n in range(99))}, "_".join(f"topic{n}" for n in range(99))[:100]),
        ({}, "kafka"),
    ],
)
def test_a_source_is_named_by_all_its_topics(options, name):
    assert name_of_source("kafka", options, []) == name
    assert name_of_source("kafka", options, [name]) == f"{name}_2"


@pytest.mark.parametrize(
    ("given", "options", "sink"),
    [
        ("bigquery", {"table": "shop.sales", "password": "***"}, "bigquery table=shop.sales"),
        ("jdbc", {"url": "jdbc:x", "user": "me", "dbTable": "sales"}, "jdbc dbtable=sales"),
        ("org.apache.spark.sql.cassandra", {"table": "t", "keyspace": "k"}, "table=t, keyspace=k"),
        ("org.elasticsearch.spark.sql", {"es.resource": "sales"}, "org.elasticsearch.spark.sql es.resource=sales"),
        ("iceberg", {"table": "not_a_place"}, "iceberg"),
        ("parquet", {"path": "out", "table": "other"}, "parquet out"),
        ("console", {"truncate": "false"}, "console"),
    ],
)
def test_a_sink_without_a_path_is_named_by_its_table(given, options, sink):
    said = _sink({"format": given}, options)
    assert said == (sink if sink.startswith(given) else f"{given} {sink}")


def test_spark_connect_is_noted_wherever_it_is_set(tmp_path):
    (tmp_path / "job.py").touch()
    made = [Recorder(None, Script("job.py"), tmp_path, (), ours={}) for _ in range(2)]
    made[0].session(SimpleNamespace(_options={"spark.remote": "sc://here"}))
    made[1].setting("spark.remote", "sc://here")
    assert made[0].found == made[1].found
    assert not made[0].found.settings
    assert made[0].found.notes == ("Spark Connect is not used: the script runs in a session of this machine",)


def test_what_spark_says_is_a_sentence_without_its_end():
    assert first_line(ValueError("Use append instead.;\nJoin")) == "Use append instead"


def test_a_function_without_a_name_is_called_as_what_calls_it():
    assert name_of(lambda _, __: None) == "foreachBatch"
    assert name_of(test_a_function_without_a_name_is_called_as_what_calls_it).startswith("test_a_function")
