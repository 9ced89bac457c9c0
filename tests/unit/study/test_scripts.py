"""Studies of a script's queries, from what it was found to do; nothing is started here."""

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path

import cattrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from workbench import cli, defaults
from workbench.cli.console import BAD_INPUT, DONE
from workbench.errors import WorkbenchError
from workbench.measuring.fingerprint import code_of
from workbench.records import ScriptFacts
from workbench.study import dry_run, find_query, query_of, read_study
from workbench.study import scripts as drafting
from workbench.study.spec import study_from
from workbench.workload import Recorded, Script, ScriptQuery, ScriptSource, first_rows

ROWS = 300
TIMES = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n) for n in range(ROWS)]
TOPIC = ScriptSource("orders", "kafka", {"subscribe": "orders", "kafka.sasl.jaas.config": "***"}, None, 3)
FILES = ScriptSource("clicks", "json", {"path": "/data/clicks"}, json.dumps({"fields": [{"name": "page"}]}), 5)
RATE = ScriptSource("rate", "rate", {}, None, 7)
QUERY = ScriptQuery("", ("orders",), "kafka totals", "processingTime=5 seconds", "update", ("time, 10 seconds",), 9)


@pytest.fixture(autouse=True)
def folder(tmp_path):
    (tmp_path / "job.py").write_text("raise SystemExit('it must not run')\n")
    shops = [f"S{n % 7}" for n in range(ROWS)]
    pq.write_table(pa.table({"time": TIMES, "shop": shops, "_key": [b"k"] * ROWS}), tmp_path / "orders.parquet")
    pq.write_table(pa.table({"at": TIMES, "page": shops}), tmp_path / "clicks.parquet")


@pytest.fixture
def finds(monkeypatch):
    def found(sources, *queries, **more):
        recorded = Recorded(tuple(sources), queries, **more)
        crossed = json.loads(json.dumps(asdict(recorded)))  # to this process
        assert cattrs.structure(crossed, Recorded) == recorded
        monkeypatch.setattr(drafting, "look_at_script", lambda *_: recorded)

    return found


def test_a_sample_of_a_topic_becomes_its_records(prints, finds):
    (Path.cwd() / "here.jar").touch()
    settings = {"spark.sql.ansi.enabled": "false", "spark.jars": "here.jar,/opt/there.jar", "spark.master": "yarn"}
    finds([TOPIC], QUERY, settings=settings | {"spark.my.token": "***"})
    said = prints("init", "job.py", "orders=orders.parquet")
    assert "source orders (line 3): kafka, subscribe=orders, kafka.sasl.jaas.config=***" in said
    assert "query 1 (line 9): reads orders, writes to kafka totals; update mode, trigger processingTime=5" in said
    study = read_study("study.yaml")
    assert (study.query, study.event_time, study.output_mode) == ("job.py#1", "value.time", "update")
    assert (study.interval_s, dict(study.spark)) == (5.0, {"spark.sql.ansi.enabled": "false"})
    records = pq.read_table(study.dataset)
    assert records.schema.names == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert json.loads(records["value"][1].as_py()) == {"time": "2026-01-01T00:00:01Z", "shop": "S1"}
    assert records["key"][0].as_py() == b"k"
    text = Path(study.file).read_text()
    assert study.jars == ("here.jar",)
    assert "Not taken along: /opt/there.jar (not a file here)\n" in text
    assert "Not taken along: spark.master (the study's key 'master' says where Spark runs)\n" in text
    assert "Not taken along: spark.my.token (it holds a secret)\n" in text
    assert "# sink: kafka://HOST:PORT/TOPIC" in text  # its servers are not known


def test_settings_and_packages_of_any_text_are_read_back_as_they_are(finds):
    odd = {"spark.master": "local[3]", "spark.driver.memory": "{1g, 'a': 2}", "spark.eventLog.dir": 'a"\n\x07 # b, c'}
    brought = {"spark.jars.packages": "a:b:1,c:d:1.0", "spark.sql.extensions": "x, y: [z] # w"}
    finds([replace(FILES, format="cloud,Files")], replace(QUERY, sources=("clicks",)), settings=odd | brought)
    assert cli.main(["init", "job.py a' '[b]", "clicks=clicks.parquet"]) == DONE
    study = read_study("study.yaml")
    assert study.script_sets == tuple(f"{name}={value}" for name, value in odd.items())
    assert (study.packages, study.reads) == (("a:b:1", "c:d:1.0"), ("cloud,Files",))
    assert (study.query, dict(study.spark)) == ("job.py 'a [b]'#1", {"spark.sql.extensions": "x, y: [z] # w"})


def test_a_study_that_cannot_be_read_is_not_written(finds, refuses, monkeypatch):
    finds([FILES], replace(QUERY, sources=("clicks",)))
    monkeypatch.setattr(drafting, "_interval", lambda _: ["interval_s: [1"])
    assert "The study of job.py#1 cannot be read as YAML" in refuses("init", "job.py", "clicks=clicks.parquet")
    assert not Path("study.yaml").exists()


def test_a_source_whose_name_begins_with_a_digit_or_is_a_word_of_yaml_is_an_input(finds):
    finds(
        [replace(TOPIC, name="2026-orders"), replace(FILES, name="true")],
        replace(QUERY, sources=("2026-orders", "true")),
    )
    assert cli.main(["init", "job.py", "2026-orders=orders.parquet", "true=clicks.parquet"]) == DONE
    assert list(read_study("study.yaml").inputs) == ["_2026_orders", "true"]


THREE = ScriptSource("a_b_c", "kafka", {"subscribe": "a, b,c"}, None, 3)


@pytest.mark.parametrize(
    ("sample", "found"),
    [
        ({"value": [b"{}"] * 3, "topic": ["c", "a", "other"], "offset": [7, 8, 9]}, ["c", "a", "other"]),
        ({"shop": [1, 2, 3], "topic": ["c", "b", "b"]}, ["c", "b", "b"]),
        ({"shop": [1, 2, 3], "topic": ["of", "the", "values"]}, ["a", "a", "a"]),
        ({"shop": [1, 2, 3]}, ["a", "a", "a"]),
    ],
)
def test_records_keep_the_topic_of_their_sample(finds, sample, found):
    pq.write_table(pa.table(sample), "sample.parquet")
    finds([THREE], replace(QUERY, sources=("a_b_c",), watermarks=()))
    made = drafting.draft_script(Script("job.py"), ["a_b_c=sample.parquet"]).studies[1]
    records = pq.read_table(made.found[0].data)
    assert records["topic"].to_pylist() == found
    assert records["offset"].to_pylist() == sample.get("offset", [0, 1, 2])
    assert records.schema.field("topic").type == pa.string()
    assert f"# Their topics are [{', '.join(dict.fromkeys(found))}]: those of" in made.text


def test_the_records_of_another_study_are_not_overwritten(finds):
    finds([TOPIC], QUERY)
    data = ["orders.parquet"] * 2
    before = first_rows(drafting.Dataset.at("orders.parquet"), ROWS)
    pq.write_table(before.slice(0, 5), "few.parquet")
    made = [drafting.draft_script(Script("job.py"), [one]).studies[1].found[0].data for one in (*data, "few.parquet")]
    assert made[0] == made[1] == str(drafting.RECORDS / "orders.parquet")
    assert [pq.read_table(one).num_rows for one in made] == [ROWS, ROWS, 5]


@pytest.mark.parametrize("trigger", ["continuous=1 second", "realTime=5 minutes"])
def test_a_trigger_without_micro_batches_is_named_and_sets_no_interval(prints, finds, trigger):
    finds([FILES], replace(QUERY, sources=("clicks",), trigger=trigger))
    said = prints("init", "job.py", "clicks=clicks.parquet")
    assert f"The trigger, {trigger}, is not measured: batches of 2 s are." in said
    assert f"# The trigger, {trigger}, is not measured" in Path("study.yaml").read_text()
    assert read_study("study.yaml").interval_s == defaults.INTERVAL_S
    assert "interval_s" not in Path("study.yaml").read_text()


@pytest.mark.parametrize(
    ("more", "sink", "says"),
    [
        ({"sink": "parquet out/"}, "parquet out-measured", "is measured in a place of its own"),
        ({"sink": "iceberg s3a://lake/rows"}, "iceberg s3a://lake/rows-measured", ""),
        ({"sink": "parquet s3a://lake"}, "parquet s3a://lake/measured", ""),
        ({"sink": "kafka://a:1,b:2/totals", "output_mode": "update"}, "kafka://a:1,b:2/totals", ""),
        ({"sink": "foreachBatch keep", "output_mode": "update"}, "job.py:keep .workbench/written", ""),
        ({"sink": "foreachBatch keep", "beyond": "keep (line 2) uses send"}, "noop", "# sink: job.py:keep\n"),
        ({"sink": "parquet out", "output_mode": "update"}, "noop", "it takes append mode, not update"),
        ({"sink": "parquet job.py/out"}, "noop", "job.py is not a folder"),
        ({"sink": "console"}, "noop", "not a sink of production"),
        ({"sink": "table rows as iceberg"}, "noop", "# sink: iceberg PLACE"),
        ({"sink": "csv out"}, "noop", "# sink: parquet PLACE"),
    ],
)
def test_a_scripts_sink_becomes_the_studys_in_a_place_apart(finds, more, sink, says):
    kept = {"output_mode": "append", **more}
    packages = {"spark.jars.packages": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0"}
    finds([FILES], replace(QUERY, sources=("clicks",), checkpoint="state", **kept), settings=packages)
    made = drafting.draft_script(Script("job.py"), ["clicks.parquet"]).studies[1]
    Path("study.yaml").write_text(made.text)
    study = read_study("study.yaml")
    assert (study.sink, study.checkpoint) == (sink, "state-measured")
    assert says in made.text
    assert query_of(study).output_mode == kept["output_mode"]


def test_a_sink_that_is_named_counts_instead_of_the_scripts(finds):
    finds([FILES], replace(QUERY, sources=("clicks",), sink="parquet out", checkpoint="state"))
    given = ["--sink", "parquet elsewhere", "--checkpoint", "memory"]
    assert cli.main(["init", "job.py", "clicks=clicks.parquet", *given]) == DONE
    assert (read_study("study.yaml").sink, read_study("study.yaml").checkpoint) == ("parquet elsewhere", "")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--sink", "paper"), "sink is 'paper'; it must be one of"),
        (("--sink", "parquet job.py/out"), "job.py is not a folder"),
        (("--sink", "not_a_job_here:none"), "The module 'not_a_job_here' of the sink"),
        (("--checkpoint", "job.py"), "job.py is not a folder"),
    ],
)
def test_a_sink_that_no_study_can_have_is_refused_before_the_script_runs(refuses, given, message):
    assert message in refuses("init", "job.py", "clicks=clicks.parquet", *given)  # Spark would say otherwise


def test_records_as_they_are_stay_as_they_are(finds):
    values = [json.dumps({"event": {"time": one.isoformat()}, "n": 1}).encode() for one in TIMES]
    pq.write_table(pa.table({"value": pa.array(values, pa.binary()), "timestamp": TIMES}), "raw.parquet")
    finds([TOPIC], QUERY, replace(QUERY, watermarks=("timestamp, 1 minute",)), replace(QUERY, watermarks=()))
    made = drafting.draft_script(Script("job.py"), ["raw.parquet"])
    assert [one.found[0].event_time for one in made.studies.values()] == ["value.event.time", "timestamp", "timestamp"]
    kept = first_rows(drafting.Dataset.at(str(drafting.RECORDS / "orders.parquet")), ROWS)
    assert kept["value"].to_pylist() == values
    assert kept["timestamp"].to_pylist() == TIMES


@pytest.mark.parametrize(
    ("given", "found"),
    [(None, "value.timestamp"), ("timestamp", "value.timestamp"), ("at", "value.at"), ("value.x.y", "value.x.y")],
)
def test_the_event_time_of_records_is_in_their_values_where_these_have_it(finds, monkeypatch, given, found):
    pq.write_table(pa.table({"timestamp": TIMES, "at": TIMES}), "stamped.parquet")
    finds([TOPIC], replace(QUERY, watermarks=("timestamp, 1 minute",)))
    finding = import_module("workbench.study.draft")
    monkeypatch.setattr(finding, "find_query", lambda *_, **__: None)  # which would miss a field
    made = drafting.draft_script(Script("job.py"), ["stamped.parquet"], [given] if given else [])
    assert f"event_time: {found}\n" in made.studies[1].text


def test_each_query_that_can_be_planned_has_a_study_and_the_others_a_reason(prints, finds):
    finds(
        [TOPIC, FILES, RATE],
        QUERY,
        replace(QUERY, sources=("clicks",), trigger="availableNow=True", watermarks=()),
        replace(QUERY, sources=("orders", "clicks")),
        replace(QUERY, sources=("rate",), trigger="processingTime=1 minute"),
        replace(QUERY, refusal="it is not supported"),
        notes=("line 4: saveAsTable() is left out: it writes outside of a stream",),
        failure="line 9: KeyError: 'A'",
    )
    said = prints("init", "job.py", "clicks=clicks.parquet")
    assert "query 1 gets no study: it needs samples: add orders=FILE" in said
    assert "query 5 gets no study: Spark refuses it: it is not supported" in said
    assert "not recorded: line 4: saveAsTable() is left out" in said
    assert "ended early: line 9: KeyError" in said
    assert (read_study("study.yaml").query, read_study("study.yaml").dataset) == ("job.py#2", "clicks.parquet")
    made = read_study("study-4.yaml")
    assert (made.query, made.event_time, made.interval_s) == ("job.py#4", "timestamp", 2.0)


def test_a_query_of_several_sources_has_inputs(finds):
    finds([TOPIC, RATE, FILES], replace(QUERY, sources=("orders", "clicks")))
    assert cli.main(["init", "job.py", "orders=orders.parquet", "clicks=clicks.parquet"]) == DONE
    study = read_study("study.yaml")
    assert {name: one["event_time"] for name, one in study.inputs.items()} == {"orders": "value.time", "clicks": "at"}
    query = find_query(study.query, inputs=study.inputs)
    assert [one.name for one in query.inputs] == ["orders", "clicks"]
    assert "# one for each source that the script's query reads, in their order" in Path("study.yaml").read_text()


def test_a_query_whose_sources_have_no_time_in_common_gets_no_study(prints, finds):
    finds([TOPIC, RATE], replace(QUERY, sources=("orders", "rate")), QUERY)
    said = prints("init", "job.py", "orders=orders.parquet")
    assert "query 1 gets no study: The inputs have 0 s of event time in common" in said
    assert read_study("study.yaml").query == "job.py#2"


def test_the_keys_of_a_join_are_found_in_the_samples_and_renewed_if_they_are_unique(prints, finds):
    customers = ["c0" if n % 5 == 0 else f"c{n}" for n in range(ROWS)]
    pq.write_table(pa.table({"time": TIMES, "order_id": range(ROWS), "customer": customers}), "orders.parquet")
    pq.write_table(pa.table({"at": TIMES, "paid": range(ROWS), "page": ["a", "b", "c"] * 100}), "clicks.parquet")
    finds([TOPIC, FILES], replace(QUERY, sources=("orders", "clicks"), joins=("ORDER_ID", "paid"), keys=("order_id",)))
    said = prints("init", "job.py", "orders.parquet", "clicks.parquet")
    assert "orders: join: by 'order_id'\norders: state: by 'order_id'" in said
    assert "clicks: state" not in said
    assert "'customer'" not in said  # no key
    inputs = read_study("study.yaml").inputs
    assert {name: one["renew"] for name, one in inputs.items()} == {"orders": ("value.order_id",), "clicks": ("paid",)}
    find_query("job.py#1", inputs=inputs)
    finds([TOPIC], replace(QUERY, keys=("order_id",)))
    alone = drafting.draft_script(Script("job.py"), ["orders.parquet"]).studies[1]
    assert [list(one.renew) for one in alone.found] == [["value.order_id"]]
    assert "inputs:" in alone.text


def test_what_is_missing_is_asked_for(prints, refuses, finds):
    finds([TOPIC], QUERY)
    assert "add orders=FILE" in prints("init", "job.py", code=BAD_INPUT)
    for arguments, message in (
        (["none.py"], "The script 'none.py' is not there"),
        (["job.py", "payments=orders.parquet"], "the sources of job.py are orders"),
        (["job.py", "none.parquet"], "'none.parquet' does not exist"),
        (["job.py 'a"], "No closing quotation"),
    ):
        assert message in refuses("init", *arguments)
    finds([replace(TOPIC, name="a_b", options={"subscribe": "a, b"})], replace(QUERY, sources=("a_b",)))
    said = refuses("init", "job.py", "b=orders.parquet")
    assert "the sources of job.py are a_b. Pass one file with a column topic for the topics of a_b" in said
    finds([])
    assert "no streaming query was started" in prints("init", "job.py", code=BAD_INPUT)
    finds([], failure="line 9: KeyError: 'A'")
    said = prints("init", "job.py", code=BAD_INPUT)
    assert "ended early: line 9: KeyError: 'A'" in said
    assert "no streaming query was started" not in said  # which is a result of the failure
    finds([FILES], replace(QUERY, sources=("clicks",)))
    assert "has the columns time, shop, _key, and the script reads page" in refuses("init", "job.py", "orders.parquet")


def test_a_study_of_a_script_runs_nothing_until_it_is_measured_and_scripts_have_names(tmp_path):
    assert Script.named("job.py") == Script("job.py", (), 1)
    found = Script.named("job.py host:9092 'two words'#3")
    assert found == Script("job.py", ("host:9092", "two words"), 3)
    assert Script.named(found.name) == found
    assert found.path == tmp_path / "job.py"
    assert Script.named("job.py:function") is None
    assert Script.named("nexmark:q5") is None
    (tmp_path / "s.yaml").write_text(
        "query: job.py#2\ndataset: clicks.parquet\nevent_time: at\ntargets: [100]\nslots: [1, 2]\nmemory_mb: [1024]\n"
    )
    assert "job.py was not run" in dry_run(read_study("s.yaml")).read
    query = find_query("job.py#2", "clicks.parquet", "at")
    before = code_of(query)
    assert before != code_of(find_query("job.py#1", "clicks.parquet", "at"))
    (tmp_path / "job.py").write_text("print()\n")
    assert before != code_of(query)
    with pytest.raises(WorkbenchError, match=r"needs rows of its source.*workbench init 'job\.py 5'"):
        find_query("job.py 5#1")


def test_a_study_has_what_its_plan_must_know_of_the_script(finds):
    settings = {"spark.sql.shuffle.partitions": "8", "spark.authenticate.secret": "***"}
    both = replace(QUERY, name="revenue", sources=("orders", "clicks"))
    finds([TOPIC, FILES], both, replace(QUERY, name=""), settings=settings)
    made = drafting.draft_script(Script("job.py"), ["orders.parquet", "clicks.parquet"]).studies
    facts = [study_from(yaml.safe_load(one.text)).script for one in made.values()]
    sets = ("spark.sql.shuffle.partitions=8",)
    assert facts == [ScriptFacts("revenue", ("kafka", "json"), sets), ScriptFacts("", ("kafka",), sets)]
