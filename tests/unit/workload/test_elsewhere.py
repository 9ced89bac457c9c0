"""Functions of ``foreachBatch``: those whose writing is redirected, and those that reach what cannot be."""

import runpy

import pytest

from workbench.workload.elsewhere import beyond, name_of

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
"""
STAYS = {
    "path": "def keep(b, n): b.write.mode('append').partitionBy('day').parquet(PLACE)",
    "helper": "def keep(b, n):\n  if b.count() > 0:\n    helper(b)\n    log.info('{}'.format(n), json.dumps({}))",
    "partial": "keep = partial(lambda to, b, n: b.write.parquet(to), PLACE)",
    "closure": "def made(to):\n  def keep(b, n): b.distinct().write.saveAsTable(to)\n  return keep\nkeep = made('t')",
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
    "into": ("def keep(b, n): b.write.insertInto('t')", "uses insertInto"),
    "v2": ("keep = partial(lambda b, n: b.writeTo('t').append())", "uses writeTo"),
}


@pytest.fixture
def made(tmp_path, monkeypatch):
    (tmp_path / "client.py").write_text("class Producer:\n    def flush(self): ...\ndef send(row): open(row)\n")
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


def test_a_function_without_a_name_is_called_as_what_calls_it():
    assert name_of(lambda _, __: None) == "foreachBatch"
    assert name_of(test_a_function_without_a_name_is_called_as_what_calls_it).startswith("test_a_function")
