"""A plan as a job, and as other platforms take it: valid by their public schemas, with its settings and sizes."""

import ast
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from staged_runs import staged_exploration

from workbench.capacity import plan
from workbench.capacity.planning import pack, read_instances, room_for
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.records import CapacityPlan, EndingRun, Executor, JobSettings, ScriptFacts, plan_to_dict
from workbench.records.platforms import EMR_WORKERS, databricks_job, emr_serverless_job, spark_application
from workbench.records.skeleton import names_of, script_of
from workbench.views.findings import deployment

DATA = Path(__file__).parents[3] / "data"
MADE = {
    "spark_application": spark_application,
    "databricks_job": databricks_job,
    "emr_serverless_job": emr_serverless_job,
}
SETTINGS = JobSettings(
    {"spark.hadoop.fs.s3a.secret.key": "${STORE_KEY}", "spark.sql.codegen.wholeStage": "true"},
    packages=("io.delta:delta-spark_2.13:4.0.0",),
    jars=("lib/own.jar",),
    py_files=("lib/shops.zip",),
    files=("lib/names.csv",),
)
FILLED = {  # as a user fills in names in capitals
    "APPLICATION-ID": "00f1abcd",
    "EXECUTION-ROLE-ARN": "arn:aws:iam::123456789012:role/streams",
}


def planned(provider=None, *, cpus=1, memory_mb=1500, rate=20_000, **changed):
    instances = () if provider is None else read_instances(DATA / f"instances-{provider}.csv")
    made = plan(staged_exploration(cpus, memory_mb), rate, memory_mb=[memory_mb], instances=instances)
    return replace(made, testbed_kind="spark", **changed)


PLANS = {
    "streams": planned(),
    "ends": planned(run=EndingRun(4e8, 2700)),
    "brings settings": planned(settings=SETTINGS, environment="packages.tar.gz", query="jobs.shops:per_shop"),
    "a script": planned(query="lib/job.py broker:9092 --day 'a b'#2", settings=SETTINGS),
    "on parts of a core": planned(cpus=0.4),
    "on Databricks": planned("databricks"),
    "on EMR Serverless": planned("emr-serverless", cpus=0.4),
}


def valid(document, name):
    text = json.dumps(document)
    for capital, own in FILLED.items():
        text = text.replace(capital, own)
    schema = json.loads((DATA / "schemas" / f"{name}.json").read_text())
    return [
        f"{list(one.absolute_path)}: {one.message}"
        for one in Draft202012Validator(schema).iter_errors(json.loads(text))
    ]


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("kind", PLANS)
def test_a_plan_is_valid_by_the_public_schema_of_each_platform(kind, name):
    assert valid(MADE[name](PLANS[kind]), name) == []


@pytest.mark.parametrize(
    ("name", "path", "wrong"),
    [
        ("spark_application", ("spec", "executor", "coreRequests"), "1"),
        ("spark_application", ("spec", "executor", "instances"), 0),
        ("spark_application", ("spec", "restartPolicy", "type"), "Sometimes"),
        ("spark_application", ("spec", "sparkConf", "spark.task.cpus"), 1),
        ("databricks_job", ("job_clusters", 0, "new_cluster", "node_type"), "m5.xlarge"),
        ("databricks_job", ("job_clusters", 0, "new_cluster", "num_workers"), "2"),
        ("databricks_job", ("continuous", "pause_status"), "RUNNING"),
        ("emr_serverless_job", ("mode",), "streaming"),
        ("emr_serverless_job", ("jobDriver", "sparkSubmit", "entrypoint"), "s3://BUCKET/job.py"),
    ],
)
def test_the_schemas_refuse_what_the_platforms_refuse(name, path, wrong):
    document = MADE[name](PLANS["streams"])
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = wrong
    assert valid(document, name)


def test_the_document_of_a_plan_has_them_and_reads_back_without():
    made = PLANS["on Databricks"]
    document = plan_to_dict(made)
    assert document["platforms"] == {name: of(made) for name, of in MADE.items()}
    assert CapacityPlan.from_json(json.dumps(document)) == made
    assert "platforms" not in plan_to_dict(replace(made, testbed_kind="fluid"))


def test_the_operator_gets_the_containers_and_settings_of_the_plan():
    made = PLANS["brings settings"]
    spec, conf = spark_application(made)["spec"], made.spark_conf()
    assert spec["executor"]["instances"] * made.executor.slots >= made.budget.slots
    assert spec["executor"]["coreRequest"] == spec["executor"]["coreLimit"] == f"{made.executor.millicores}m"
    assert spec["executor"]["memory"] == conf["spark.executor.memory"]
    left = set(conf) - set(spec["sparkConf"])
    assert all(re.match(r"spark\.(driver|executor|kubernetes\.executor)\.", name) for name in left)
    assert spec["sparkConf"]["spark.hadoop.fs.s3a.secret.key"] == "${STORE_KEY}"
    assert spec["deps"]["jars"] == ["FOLDER/own.jar"]
    assert spec["deps"]["pyFiles"] == ["FOLDER/jobs.zip", "FOLDER/shops.zip"]
    assert spec["restartPolicy"] == {"type": "Always"}
    assert spark_application(PLANS["ends"])["spec"]["restartPolicy"] == {"type": "Never"}


def test_a_script_is_started_with_its_arguments_and_imports_no_query():
    made, given = PLANS["a script"], ["broker:9092", "--day", "a b"]
    assert made.command().endswith("lib/job.py broker:9092 --day 'a b'")
    assert "MODULE" not in made.command()
    spec = spark_application(made)["spec"]
    assert (spec["mainApplicationFile"], spec["arguments"]) == ("FOLDER/job.py", given)
    assert spec["deps"]["pyFiles"] == ["FOLDER/shops.zip"]
    task = databricks_job(made)["tasks"][0]["spark_python_task"]
    assert task == {"python_file": "/Workspace/FOLDER/job.py", "parameters": given}
    submitted = emr_serverless_job(made)["jobDriver"]["sparkSubmit"]
    assert submitted == {"entryPoint": "s3://BUCKET/job.py", "entryPointArguments": given}


@pytest.mark.parametrize(
    ("query", "started"),
    [
        ("rows.sql#1", ("spark-sql", "-f rows.sql")),
        ("spark-pipeline.yml#3", ("spark-pipelines", "--spec spark-pipeline.yml")),
    ],
)
def test_what_is_no_python_is_started_by_its_own_command(query, started):
    command = replace(PLANS["streams"], query=query).command()
    assert (command.split()[0], " ".join(command.split()[-2:])) == started
    assert {"job", "platforms"} <= plan_to_dict(replace(PLANS["a script"], testbed_kind="recorded")).keys()
    assert plan_to_dict(replace(PLANS["streams"], query=query))["platforms"] == {}


@pytest.mark.parametrize("query", ["nexmark:q5", "Größe_1:" + "x" * 80, "///"])
def test_a_name_in_kubernetes_is_a_label(query):
    name = spark_application(replace(PLANS["streams"], query=query))["metadata"]["name"]
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name)


def test_databricks_gets_workers_of_its_list_and_secrets_from_a_scope():
    made = PLANS["on Databricks"]
    cluster = databricks_job(made)["job_clusters"][0]["new_cluster"]
    assert cluster["node_type_id"] == made.price.instance.name
    assert cluster["num_workers"] == made.price.workers == made.executors
    assert int(cluster["spark_conf"]["spark.executor.cores"]) <= made.price.instance.vcpus
    assert cluster["spark_conf"]["spark.sql.streaming.stateStore.providerClass"].startswith("com.databricks.")
    job = databricks_job(PLANS["brings settings"])
    conf = job["job_clusters"][0]["new_cluster"]["spark_conf"]
    assert conf["spark.hadoop.fs.s3a.secret.key"] == "{{secrets/SCOPE/STORE_KEY}}"
    assert not [name for name in conf if name.startswith(("spark.kubernetes.", "spark.driver."))]
    assert {"jar": "/Volumes/FOLDER/own.jar"} in job["tasks"][0]["libraries"]
    assert "continuous" in job
    assert "continuous" not in databricks_job(PLANS["ends"])


@pytest.mark.parametrize("kind", PLANS)
def test_workers_of_emr_serverless_are_of_its_sizes_and_hold_the_slots(kind):
    made = PLANS[kind]
    request = emr_serverless_job(made)
    (given,) = request["configurationOverrides"]["applicationConfiguration"]
    conf = given["properties"]
    vcpus, each = int(conf["spark.executor.cores"]), int(conf["spark.task.cpus"])
    megabytes = sum(int(conf[f"spark.executor.{one}"].rstrip("m")) for one in ("memory", "memoryOverhead"))
    least, most, step = EMR_WORKERS[vcpus]
    assert least * 1024 <= megabytes <= most * 1024
    assert megabytes % (step * 1024) == 0
    slots = vcpus // each
    assert slots * each == vcpus
    assert each >= made.budget.profile.cpus
    assert slots * int(conf["spark.executor.instances"]) >= made.budget.slots
    assert megabytes >= Executor(slots, made.budget.profile).memory_mb
    assert request["mode"] == ("BATCH" if kind == "ends" else "STREAMING")
    if made.price is not None and made.price.instance.provider == "EMR Serverless":
        assert (vcpus, megabytes) == (made.price.instance.vcpus, made.price.instance.memory_mb)
        assert int(conf["spark.executor.instances"]) == made.price.workers


@pytest.mark.parametrize("cpus", [0.4, 1, 2, 3])
@pytest.mark.parametrize("memory_mb", [600, 2048, 6000, 14000])
@pytest.mark.parametrize("provider", ["databricks", "emr-serverless"])
def test_what_a_worker_holds_is_what_enumeration_finds(provider, memory_mb, cpus):
    profile = SlotProfile(cpus, memory_mb)
    for instance in read_instances(DATA / f"instances-{provider}.csv"):
        free = instance.memory_mb - (0.03 * instance.memory_mb + 4800) * (provider == "databricks")
        fits = [
            slots
            for slots in range(1, 17)
            if slots * math.ceil(cpus) <= instance.vcpus and Executor(slots, profile).memory_mb <= free
            if provider == "databricks" or instance.vcpus % slots == 0
        ]
        assert room_for(instance, profile) == max(fits, default=0)
        for size in (1, 2, 3):
            assert room_for(instance, profile, executor_slots=size) == (size if size in fits else 0)


@pytest.mark.parametrize("provider", ["databricks", "emr-serverless"])
def test_plans_do_not_share_workers_that_hold_one_executor(provider):
    with pytest.raises(WorkbenchError, match="one executor of one job each"):
        pack([PLANS["streams"]], read_instances(DATA / f"instances-{provider}.csv"))


def test_a_price_list_names_the_unit_that_its_platform_charges_for(tmp_path):
    made = PLANS["on Databricks"]
    assert made.price.units == f"{made.price.workers * made.price.instance.units_per_hour:,.4g} DBU/h"
    assert f"({made.price.units})" in deployment(made)
    path = tmp_path / "prices.csv"
    lines = (DATA / "instances-databricks.csv").read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1].replace(",DBU,", ",,")]))
    with pytest.raises(WorkbenchError, match="unit and units_per_hour"):
        read_instances(path)


@pytest.mark.parametrize(
    ("reads", "sink", "kafka"),
    [
        (("parquet", "rate"), "parquet out", False),
        (("parquet", "rate"), "noop", True),  # what the script writes was not measured
        (("parquet", "kafka"), "parquet out", True),
        ((), "parquet out", True),
    ],
)
def test_kafkas_package_comes_with_a_script_that_reads_it_or_may_write_it(reads, sink, kafka):
    made = replace(PLANS["a script"], script=ScriptFacts("revenue", reads), settings=JobSettings(sink=sink))
    for written in (made.command(), *(json.dumps(of(made)) for of in (spark_application, emr_serverless_job))):
        assert ("spark-sql-kafka" in written) == kafka
    assert "spark-sql-kafka" in replace(made, settings=JobSettings(sink="kafka://b:9092/out")).command()
    assert CapacityPlan.from_json(made.to_json()).script == made.script


def skeleton(query, rate, slots, capacity, interval_s, **known):
    """The job of a plan."""
    budget = Budget(slots, SlotProfile(1.0, 1024), interval_s)
    rates = (capacity,) * 3
    return CapacityPlan(query, rate, 1.0, budget, *rates, "scaling", "here", "spark", 3, 1.0, **known).job()


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
    facts = ScriptFacts("revenue", ("kafka", "parquet", "rate"), ("spark.sql.shuffle.partitions=9", "spark.other=1"))
    inputs = {"orders": 0.5, "payments": 0.25, "ticks": 0.25}
    text = skeleton("job.py#1", 1e6, 8, 1e6, 2.0, inputs=inputs, script=facts)
    assert text.split("no command can:\n\n")[1].splitlines()[:4] == [
        '    source orders: .option("minPartitions", 8).option("maxOffsetsPerTrigger", 1000000)',
        '    source payments, parquet: .option("maxFilesPerTrigger", FILES), as many as have 500,000 rows',
        '    query: .trigger(processingTime="2000 milliseconds")',
        "    take out spark.sql.shuffle.partitions=9: the plan has 8",
    ]
    made = ScriptFacts(reads=("rate",))
    assert ".queryName('job.py#1').trigger(" in skeleton("job.py#1", 1e6, 8, 1e6, 2.0, script=made)
    assert "nothing" in skeleton("a.sql#1", 1e6, 8, 1e6, 2.0, script=made)
