import ast

import pytest

from workbench.records import JobSettings
from workbench.records.skeleton import ScriptFacts, names_of, script_of, skeleton


@pytest.mark.parametrize(
    ("sink", "written"),
    [
        ("noop", ".writeStream.queryName('jobs:x').format(\"SINK\")"),
        ("parquet /data/out/", ".start('/data/out/TABLE')"),
        ("jobs.py:write", ".writeStream.queryName('jobs:x').foreachBatch(write)"),
        ("kafka://host:9092/out", ".option(\"topic\", 'out')"),
        ("iceberg /data", '.toTable("CATALOG.DATABASE.TABLE")'),
    ],
)
def test_the_exported_job_writes_as_it_was_measured(sink, written):
    text = skeleton("jobs:x", 1e3, 2, 2e3, 1.0, settings=JobSettings(sink=sink, checkpoint="/data/state"))
    ast.parse(text)
    assert written in text
    assert "'/data/state/NAME'" in text


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("jobs:orders_per_minute", ("jobs", "orders_per_minute")),
        ("shop.jobs:orders", ("shop.jobs", "orders")),
        ("nexmark:q5", ("MODULE", "FUNCTION")),
        ("checkout", ("MODULE", "FUNCTION")),
        ("jobs:import", ("MODULE", "FUNCTION")),
        ("jobs:orders; import os", ("MODULE", "FUNCTION")),
        ("jobs:orders\n", ("MODULE", "FUNCTION")),
    ],
)
def test_a_query_of_your_own_is_imported_by_its_name(query, names):
    assert names_of(query) == names
    tree = ast.parse(skeleton(query, 1e6, 8, 1.2e6, 2.0))
    (imported,) = (node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module != "pyspark.sql")
    assert (imported.module, imported.names[1].name) == names


def test_a_script_is_its_own_job_and_is_told_what_to_set():
    inputs = {"orders": 0.75, "payments": 0.25}
    text = skeleton('lib/job.py "two words"#2', 1e6, 8, 1e6, 2.0, inputs=inputs)
    (said,) = ast.parse(text).body
    assert "SparkSession" not in text
    lines = ast.literal_eval(said.value).split("no command can:\n\n")[1].splitlines()
    assert [line.split('Trigger", ')[-1] for line in lines[:2]] == ["1500000)", "500000)"]
    assert lines[2].strip() == 'query: .trigger(processingTime="2000 milliseconds")'
    assert "trigger(" not in skeleton("spark-pipeline.yml#2", 1e6, 8, 1e6, 2.0)
    for other in ("job.py 'a#1", "job.py:keep", "job.py", "jobs:orders"):
        assert script_of(other) is None


def test_a_job_of_several_inputs_reads_a_topic_for_each_with_its_share_of_the_cap():
    for capacity, cap in ((22_422_123.4, 44_800_000), (61.7, 123), (0.2, 0)):  # rounded down
        assert f'"maxOffsetsPerTrigger", {cap})' in skeleton("jobs:orders", 1e6, 8, capacity, 2.0)
    text = skeleton("jobs:revenue", 1e6, 8, 1e6, 2.0, inputs={"orders": 0.75, "payments": 0.25})
    ast.parse(text)
    assert "from jobs import DECODE_ORDERS, DECODE_PAYMENTS, revenue" in text
    assert 'orders_stream = (\n    spark.readStream.format("kafka")' in text
    assert '"subscribe", "PAYMENTS_TOPIC"' in text
    caps = [line.split(", ")[1] for line in text.splitlines() if "maxOffsetsPerTrigger" in line]
    assert caps == ["1500000)", "500000)"]
    assert "revenue(DECODE_ORDERS(orders_stream), DECODE_PAYMENTS(payments_stream))" in text


def test_a_script_is_told_what_its_own_sources_take_and_what_to_take_out():
    facts = ScriptFacts("revenue", ("kafka", "parquet", "rate"), ("spark.sql.shuffle.partitions=8", "spark.other=1"))
    inputs = {"orders": 0.5, "payments": 0.25, "ticks": 0.25}
    planned = {"spark.sql.shuffle.partitions": "10"}
    text = skeleton("job.py#1", 1e6, 8, 1e6, 2.0, inputs=inputs, script=facts, planned=planned)
    assert text.split("no command can:\n\n")[1].splitlines()[:4] == [
        '    source orders: .option("minPartitions", 8).option("maxOffsetsPerTrigger", 1000000)',
        '    source payments, parquet: .option("maxFilesPerTrigger", FILES), as many as have 500,000 rows',
        '    query: .trigger(processingTime="2000 milliseconds")',
        "    take out spark.sql.shuffle.partitions=8: the plan has 10",
    ]
    made = ScriptFacts(reads=("rate",))
    assert ".queryName('job.py#1').trigger(" in skeleton("job.py#1", 1e6, 8, 1e6, 2.0, script=made)
    assert "nothing" in skeleton("a.sql#1", 1e6, 8, 1e6, 2.0, script=made)
