"""What a job brings along, and its sink: what is refused, what identifies it, and that no secret is written down."""

import itertools
import json
import re
import shlex
import subprocess
from dataclasses import replace

import pytest
from staged_runs import staged_exploration

from workbench import redaction
from workbench.capacity import plan
from workbench.errors import WorkbenchError
from workbench.records import JOINED, OURS, CapacityPlan, JobSettings, Sink
from workbench.redaction import redacted
from workbench.study import study_from
from workbench.testbed.spark import sink_packages

HIDDEN_KEY = "spark.hadoop.fs.s3a.secret.key"


@pytest.fixture(autouse=True)
def _forget(monkeypatch):
    monkeypatch.setattr(redaction, "_hidden", set())


REFUSED = [
    ({"spark.executor.memory": "4g"}, "spark.executor.memory, which the workbench must set itself: it follows"),
    ({"spark.eventLog.dir": "/x"}, "spark.eventLog.dir, .*: the workbench reads what it writes"),
    ({"spark.jars.packages": "a:b:1"}, "use the study's key 'packages'"),
    ({"spark.sql.shuffle.partitions": "8"}, "partitions are planned"),
    ({"hoodie.x": "1"}, "write Spark's own names"),
    ({HIDDEN_KEY: "hunter2xyz"}, r"looks like a secret.*: '\$\{NAME\}'"),
    ({"spark.my.url": "s3a://AKIA:hunter2xyz@bucket"}, "looks like a secret"),
    ({"spark.driver.extraJavaOptions": "-Dkey=${KEY}"}, "read by all users of a machine"),
    ({"spark.a.b": "two\nlines"}, "a text of one line"),
]


SECRET = {"spark": {HIDDEN_KEY: "${KEY}"}}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *(({"spark": settings}, message) for settings, message in REFUSED),
        ({"packages": ("delta",)}, "write Maven coordinates"),
        ({"packages": ('io:x:1"/>',)}, "write Maven coordinates"),
        ({"jars": ("x.zip",)}, r"files that end in \.jar"),
        ({"py_files": ("x.jar",)}, r"\.py or \.zip or \.egg"),
        ({"jars": ("/nowhere/none.jar",)}, r"jars has '/nowhere/none\.jar', which is not a file here"),
        (SECRET, "The variable KEY is not set, and the study's key 'spark' names it"),
        (SECRET | {"environ": {"KEY": "ab"}}, "The variable KEY has 2 characters"),
    ],
)
def test_what_would_be_kept_or_is_missing_is_refused_before_anything_starts(given, message):
    environ = given.get("environ", {})
    with pytest.raises(WorkbenchError, match=f"(?s){message}") as error:
        JobSettings(**{key: value for key, value in given.items() if key != "environ"}).check_here(environ)
    assert "hunter2xyz" not in str(error.value)


def test_the_identity_is_that_of_names_values_and_contents_and_not_of_secrets(tmp_path, monkeypatch):
    jar = tmp_path / "udf.jar"
    jar.write_bytes(b"one")
    one = JobSettings(spark={"spark.x": "1", HIDDEN_KEY: "${KEY}"}, jars=(str(jar),))
    monkeypatch.setenv("KEY", "hunter2xyz")
    identity = one.identity
    assert re.fullmatch(r"settings of the job [0-9a-f]{8}", identity)
    monkeypatch.setenv("KEY", "another1")
    assert one.identity == identity
    assert replace(one, spark={HIDDEN_KEY: "${KEY}", "spark.x": "1"}).identity == identity
    assert replace(one, spark={"spark.x": "2", HIDDEN_KEY: "${KEY}"}).identity != identity
    assert replace(one, packages=("a:b:1",)).identity != identity
    jar.write_bytes(b"two")
    assert one.identity != identity
    assert JobSettings().identity == ""
    assert one.listed == f"spark.x, {HIDDEN_KEY}, udf.jar"


def test_a_secret_is_never_written_down(tmp_path, journal, monkeypatch):
    monkeypatch.setenv("MY_VALUE", "hunter2xyz")  # its name says nothing
    settings = JobSettings(spark={"spark.my.thing": "${MY_VALUE}", HIDDEN_KEY: "${MY_VALUE}"})
    assert settings.resolved()[HIDDEN_KEY] == "hunter2xyz"
    assert redacted("it failed with hunter2xyz") == "it failed with ***"
    made = replace(plan(staged_exploration(), 2e4, memory_mb=[600]), settings=settings)
    journal.append("plan", "key", {"plan": json.loads(made.to_json()), "error": "hunter2xyz"})
    text = (tmp_path / "journal.jsonl").read_text() + made.to_json()
    assert "hunter2xyz" not in text
    assert f'"{HIDDEN_KEY}": "${{MY_VALUE}}"' in text  # what is not secret stays legible


@pytest.mark.parametrize(
    "text", [f"{HIDDEN_KEY}=${{KEY}}", f'--conf "{HIDDEN_KEY}=${{KEY}}" x', f"{HIDDEN_KEY}: ${{KEY}}"]
)
def test_the_name_of_a_variable_is_no_secret(text):
    assert redacted(text) == text
    assert redacted(text.replace("${KEY}", "${KEY}hunter2")) != text.replace("${KEY}", "${KEY}hunter2")


def test_a_plan_exports_what_was_measured():
    settings = JobSettings(
        spark={"spark.x": "a b", HIDDEN_KEY: "${MY_KEY}/$HOME`ls`\\"}, packages=("io.delta:delta-spark_2.13:4.0.0",),
        jars=("my udf.jar",), py_files=("lib.zip",), files=("rates.csv",),
    )  # fmt: skip
    made = replace(plan(staged_exploration(), 2e4, memory_mb=[600]), settings=settings)
    command = made.command()
    found = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {command.removeprefix('spark-submit')}"],
        env={"MY_KEY": "hunter2", "HOME": "/h"}, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    words = dict(itertools.pairwise(found))
    kafka = "org.apache.spark:spark-sql-kafka-0-10_2.13:SPARK-VERSION"
    assert words["--packages"] == f"{kafka},io.delta:delta-spark_2.13:4.0.0"
    assert (words["--jars"], words["--files"]) == ("my udf.jar", "rates.csv")
    assert words["--py-files"].split(",")[1:] == ["lib.zip"]
    assert "spark.x=a b" in found
    assert f"{HIDDEN_KEY}=hunter2/$HOME`ls`\\" in found
    assert command.count("--packages") == command.count("--py-files") == 1
    assert CapacityPlan.from_json(made.to_json()) == made
    assert "--jars" not in replace(made, settings=None).command()


def test_yours_follow_the_testbeds_where_a_jvm_starts():
    yours = JobSettings(spark={"spark.driver.extraJavaOptions": "-Dx=1", "spark.y": "2"})
    assert yours.conf({"spark.driver.extraJavaOptions": "-Dours=1"}) == {
        "spark.driver.extraJavaOptions": "-Dours=1 -Dx=1",
        "spark.y": "2",
    }
    assert not OURS.keys() & JOINED.keys()
    assert shlex.split(JobSettings(files=("a b",)).options()[0]) == ["--files", "a b"]


# --- the sink and the checkpoint

BASE = {"query": "jobs:x", "targets": [1000], "slots": [1, 2], "memory_mb": [512], "slot_cpus": 1}


@pytest.mark.parametrize(
    ("text", "sink"),
    [
        ("noop", Sink()),
        ("parquet /data/out", Sink("parquet", "/data/out")),
        ("delta s3a://bucket/out", Sink("delta", "s3a://bucket/out")),
        ("kafka://host:9092/out", Sink("kafka", "kafka://host:9092/out")),
        ("jobs:write", Sink("foreachBatch", "", "jobs:write")),
        ("jobs.py:write /data/out", Sink("foreachBatch", "/data/out", "jobs.py:write")),
    ],
)
def test_a_sink_is_read_from_one_text(text, sink):
    assert study_from(BASE | {"sink": text}).job_settings.writes == sink


def test_users_are_warned_of_what_is_written_for_real():
    said = {text: Sink.parse(text).warning for text in ("noop", "jobs:write", "jobs:write /x", "kafka://h:9092/t")}
    assert said["noop"] == ""
    assert "writes where it always does" in said["jobs:write"]
    assert "a folder of its own in /x" in said["jobs:write /x"]
    assert "a topic of its own next to kafka://h:9092/t" in said["kafka://h:9092/t"]


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        *(("sink", text, "sink is") for text in ("parquet", "parqet /data", "noop /data", "kafka:/x", "jobs:", "")),
        ("sink", "parquet s3a://me:hunter2@bucket/x", "password"),
        ("checkpoint", "s3a://me:hunter2@bucket/x", "password"),
    ],
)
def test_what_is_no_sink_and_a_password_in_a_place_is_refused(key, text, message):
    with pytest.raises(WorkbenchError, match=message) as error:
        study_from(BASE | {key: text})
    assert "hunter2" not in str(error.value)


def test_another_sink_or_checkpoint_is_another_measurement():
    plain = study_from(BASE).job_settings
    assert study_from(BASE | {"sink": "noop", "checkpoint": "memory"}).job_settings == plain
    assert (bool(plain), plain.identity) == (False, "")
    kinds = [plain, *(JobSettings(sink=f"parquet /{name}") for name in "ab"), JobSettings(checkpoint="/a")]
    assert len({one.identity for one in kinds}) == len(kinds)


def test_a_place_that_cannot_be_written_is_refused_before_anything_starts(tmp_path):
    (file := tmp_path / "file").touch()
    for key, value in {"sink": f"parquet {file}/out", "checkpoint": f"{file}/out"}.items():
        with pytest.raises(WorkbenchError, match="is not a folder") as error:
            JobSettings(**{key: value}).check_here()
        assert error.value.settings == (key,)
    JobSettings(sink=f"parquet {tmp_path}/new", checkpoint="hdfs://far/away").check_here()
    assert not (tmp_path / "new").exists()


def test_a_format_without_a_release_for_this_spark_says_which_spark_has_one(monkeypatch):
    from workbench.testbed.spark.machine import java as connector

    for here, found in (("4.1.2", "iceberg-spark-runtime-4.1_2.13"), ("9.9.0", None)):
        monkeypatch.setattr(connector, "version", lambda _, here=here: here)
        asked = JobSettings(sink="iceberg /x")
        if found:
            assert found in sink_packages(asked)[0]
            continue
        with pytest.raises(WorkbenchError, match=r"no release for Spark 9\.9\.0 .* is for Spark 4\.1"):
            sink_packages(asked)
        own = JobSettings(sink="iceberg /x", packages=("org.apache.iceberg:iceberg-spark-runtime-9.9_2.13:2.0",))
        assert sink_packages(own) == ()


def test_the_exported_settings_have_what_the_sink_needs():
    conf = JobSettings(sink="delta /x", spark={"spark.sql.extensions": "mine.Own"}).conf({})
    assert conf["spark.sql.extensions"] == "mine.Own"
    assert conf["spark.sql.catalog.spark_catalog"].endswith("DeltaCatalog")
