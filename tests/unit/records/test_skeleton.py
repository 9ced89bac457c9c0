"""The job and the command that start a plan."""

import ast

import pytest

from workbench.records.skeleton import names_of, script_of, skeleton


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


@pytest.mark.parametrize(("capacity", "cap"), [(22_422_123.4, 44_800_000), (61.7, 123), (0.2, 0)])
def test_the_cap_is_rounded_down(capacity, cap):
    assert f'"maxOffsetsPerTrigger", {cap})' in skeleton("jobs:orders", 1e6, 8, capacity, 2.0)


def test_a_script_is_its_own_job_and_is_told_what_to_set():
    inputs = {"orders": 0.75, "payments": 0.25}
    text = skeleton('lib/job.py "two words"#2', 1e6, 8, 1e6, 2.0, inputs=inputs)
    (said,) = ast.parse(text).body
    assert "SparkSession" not in text
    lines = ast.literal_eval(said.value).split("no command can:\n\n")[1].splitlines()
    assert [line.split('Trigger", ')[-1] for line in lines[:2]] == ["1500000)", "500000)"]
    assert lines[2].strip() == 'query: .trigger(processingTime="2000 milliseconds")'
    assert "trigger(" not in skeleton("spark-pipeline.yml#2", 1e6, 8, 1e6, 2.0)


@pytest.mark.parametrize("query", ["job.py 'a#1", "job.py:keep", "job.py", "jobs:orders"])
def test_other_names_are_no_scripts(query):
    assert script_of(query) is None


def test_a_job_of_several_inputs_reads_a_topic_for_each_with_its_share_of_the_cap():
    text = skeleton("jobs:revenue", 1e6, 8, 1e6, 2.0, inputs={"orders": 0.75, "payments": 0.25})
    ast.parse(text)
    assert "from jobs import DECODE_ORDERS, DECODE_PAYMENTS, revenue" in text
    assert 'orders_stream = (\n    spark.readStream.format("kafka")' in text
    assert '"subscribe", "PAYMENTS_TOPIC"' in text
    caps = [line.split(", ")[1] for line in text.splitlines() if "maxOffsetsPerTrigger" in line]
    assert caps == ["1500000)", "500000)"]
    assert "revenue(DECODE_ORDERS(orders_stream), DECODE_PAYMENTS(payments_stream))" in text
