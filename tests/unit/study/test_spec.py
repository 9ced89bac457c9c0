from dataclasses import replace

import pytest
from cluster_examples import MASTER, SHARED, STANDALONE
from refusals import refusals

from workbench import cli
from workbench.cli import planning
from workbench.defaults import MAX_REPEATS, PATIENCE_S, SLOT_CPUS
from workbench.errors import WorkbenchError
from workbench.study import Study, read_planned, read_study, run_study, study_from, write_planned
from workbench.study.prepared import estimator_of
from workbench.study.prepared import testbed_of as asked_testbed

GIVEN = {"query": "nexmark:q1", "targets": [1000], "slots": [2, 4], "memory_mb": [512]}
STUDY = Study("nexmark:q1", (2e6, 2e7), (2, 4, 8, 16), (512, 1024), testbed="fluid", slot_cpus=1.0, most_runs=9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": []}, r"targets is \[\]; it must be a list of rates above 0"),
        ({"targets": [1, 2, 1e300]}, r"targets\[2\] is 1e\+300; .* at least 0.001 and at most 1e\+15 \(records/s\)"),
        ({"slots": [2, 4, 100_000_000]}, r"slots\[2\] is 100,000,000; it must be at most 100,000"),
        ({"targets": [1] * 10_001}, r"targets has 10,001 entries; it must have at most 10,000"),
        ({"query": "q" * 5_000}, r"query is 'q+\.\.\.; it must be a text .*, of at most 4,096 characters"),
        ({"interval_s": 1e9}, r"interval_s is 1,000,000,000.0; .* at least 0.001 and at most 604800 \(seconds\)"),
        ({"targets": [-5]}, r"targets\[0\] is -5; it must be at least 0.001"),
        ({"targets": ["sixty"]}, r"targets\[0\] is 'sixty'; write records/s above 0, such as 60000 or 60k"),
        ({"targets": ["2000000 G"]}, r"targets\[0\] is 2,000,000,000,000,000.0; it must be .* at most 1e\+15"),
        ({"slots": [4, 2]}, r"slots of the space is \[4, 2\].*ascending"),
        ({"testbed": "flink"}, r"testbed is 'flink'; it must be one of spark, fluid, recorded"),
        ({"testbed": "recorded"}, r"The recorded testbed needs a table of measurements\. Add 'table: FILE'"),
        ({"table": "rates.csv"}, r"table is 'rates.csv', which the spark testbed does not read"),
        ({"plan_memory_mb": [1024, 512]}, r"plan_memory_mb is \[1024, 512\]; it must ascend"),
        ({"targets": [10**5000]}, r"targets\[0\] is a number of thousands of digits; it must be"),
        ({"patience_s": -1}, r"patience_s is -1; it must be at least 0 and at most 604800 \(seconds\)"),
        ({"max_repeats": 1.5}, r"max_repeats is 1.5; it must be a whole number of at least 0"),
        ({"seed": True}, r"seed is True; it must be a whole number"),
        ({"risk": 2}, r"risk is 2; it must be at least 1e-06 and below 1"),
        ({"targets": 1e6}, r"targets is 1,000,000.0; it must be a list of rates above 0, records/s.$"),
        ({"form": "loq"}, r"form is 'loq'; it must be one of linear"),
        ({"outage_s": 600}, r"outage_s is given without catch_up_s\. Add it, or leave both out"),
        ({"catch_up_s": 600}, "catch_up_s is given without outage_s"),
        ({"outage_s": -1, "catch_up_s": 1}, r"outage_s is -1; it must be at least 0.001 and at most 604800 .seconds."),
        ({"intervals": [1, 5]}, r"intervals is \[1.0, 5.0\] without the interval_s of 2 s"),
        ({"intervals": [1, 2], "testbed": "fluid"}, r".*but the fluid testbed has no trigger interval. Remove it"),
        ({"latency_s": 4}, r"latency_s is 4, but there are no intervals to choose from. Add"),
        ({"latency_s": 4, "intervals": [2]}, r"latency_s is 4, but there are no intervals to choose from. Add"),
        ({"intervals": [0, 2]}, r"intervals\[0\] is 0; it must be at least 0.001 and at most 604800"),
    ],
)
def test_a_wrong_study_is_refused_with_how_to_fix_it(change, message):
    wrong = GIVEN | change
    with pytest.raises(WorkbenchError, match=message):
        study_from(wrong)
    with pytest.raises(WorkbenchError, match=rf"^{message}"):  # before anything is measured
        Study(**wrong)


def test_a_study_holds_the_values_its_types_promise_and_reads_rates_as_an_option_does(tmp_path):
    study = Study("nexmark:q1", [1000], [2, 4], [512], interval_s=2)
    assert study == Study("nexmark:q1", (1000.0,), (2, 4), (512,), interval_s=2.0)
    assert (study.targets, repr(study.interval_s)) == ((1000.0,), "2.0")  # numbers go into a journal's keys
    path = tmp_path / "study.yaml"
    rest = "query: nexmark:q1\nslots: [2, 4]\nmemory_mb: [512]\n"
    path.write_text(f"{rest}targets: [60k, 1.5 M, '2,000,000 records/s', 1e6, 2.5E+5, 1_000]\nlow_rate: 6k\n")
    study = read_study(path)
    assert (study.targets, study.low_rate) == ((6e4, 1.5e6, 2e6, 1e6, 2.5e5, 1e3), 6e3)
    assert study_from(GIVEN | {"intervals": [1, 2, 5], "latency_s": 4}).intervals == (1.0, 2.0, 5.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("event_time: 2024-13-45\n", r"cannot be read as YAML: month must be in 1..12"),
        ("[" * 3000, r"cannot be read as YAML: it is nested more than 64 deep"),
        ("a: &a [*a]", r"it is nested more than 64 deep"),
        (
            "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9 if n else ['x'])}]" for n in range(30)),
            r"more than 1,000,000 values",
        ),
        ("# " + "x" * 600_000, r"is larger than 0.5 MiB"),
        (None, r"cannot be read"),
        ("query: [", r"cannot be read as YAML"),
        ("query: nexmark:q1\n targets: [1]\n", r"mapping values are not allowed here in line 2, column 9"),
        ("", r"^The study .* is empty; begin with a line such as"),
        ("- a\n", r"not a mapping of keys"),
        ("slotz: [1]\n", r"unknown key 'slotz'; did you mean 'slots'\?"),
        ("query: nexmark:q1\nfile: other.yaml\n", r"unknown key 'file'"),
        ("query: nexmark:q1\n", r"lacks 'targets'; add it. For example: targets: \[100000, 200000\]"),
    ],
)
def test_a_file_that_is_no_study_is_refused(tmp_path, text, message):
    path = tmp_path / "study.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(WorkbenchError, match=message):
        read_study(path)


def test_a_short_warm_up_is_short_in_both_places():
    study = replace(STUDY, testbed="spark", warmup_s=20.0)
    assert asked_testbed(study, print).warmup_cap_s == 20.0
    assert (estimator_of(study).warmup_min_s, estimator_of(study).warmup_cap_s) == (20.0, 20.0)
    assert asked_testbed(replace(study, warmup_s=180.0), print).warmup_cap_s == 100.0
    assert estimator_of(replace(study, warmup_s=90.0)).warmup_min_s == 30.0


OF_A_TOPIC = GIVEN | {"source": "kafka", "dataset": "kafka://localhost:9092/bids"}
test_a_study_that_cannot_read_a_topic_is_refused = refusals(
    lambda change: study_from(OF_A_TOPIC | change),
    ({"source": "Kafka"}, r"source is 'Kafka'; it must be one of replay, kafka"),
    ({"dataset": "orders.parquet"}, r"the data set is 'orders.parquet', which is not a topic. Name one"),
    ({"testbed": "fluid"}, r"source is 'kafka', but the fluid testbed reads no topic"),
    ({"deployment": "shared"}, r"with source: kafka each budget needs its own"),
    ({"schema": "a.avsc"}, r"schema is 'a.avsc', but source is 'kafka'.*Remove the schema: your query"),
    ({"schema": "a.avsc", "source": "replay", "dataset": "a.csv"}, r"but the data set is 'a.csv'"),
    ({"schema": 7}, r"schema is 7; it must be the path of a file"),
)


def test_a_study_says_how_long_to_wait_for_neighbours_and_how_often_to_repeat():
    for more, expected in (({}, (PATIENCE_S, MAX_REPEATS)), ({"patience_s": 0, "max_repeats": 1}, (0.0, 1))):
        made = estimator_of(study_from(GIVEN | more))
        assert (made.patience_s, made.max_repeats) == expected


FLUID = {"query": "nexmark:q1", "slots": [2, 3, 4], "memory_mb": [2048], "testbed": "fluid"}


def test_rows_and_a_deadline_are_a_rate_and_the_plan_ends_in_time_and_is_read_again(tmp_path, journal):
    study = study_from(FLUID | {"rows": "400M", "deadline_s": 900, "start_s": 60})
    assert study.targets == (pytest.approx(400e6 / 840),)
    assert study.run.lasts_s(study.targets[0]) == pytest.approx(900)
    planned = run_study(study, journal)
    (plan,) = planned.plans
    assert plan.run.lasts_s(plan.expected_rate) < 900
    write_planned(planned, tmp_path / "plans.json")
    again = read_planned(tmp_path / "plans.json")
    assert again.plans[0].run == plan.run
    assert again.study.run == study.run


test_what_is_asked_is_checked = refusals(
    lambda keys: study_from(FLUID | keys),
    ({"rows": 4e8, "targets": [1e3]}, "rows is given without deadline_s"),
    ({"deadline_s": 60, "targets": [1e3]}, "deadline_s is given without rows"),
    ({"rows": 4e8}, "lacks 'targets'"),
    ({"rows": 4e8, "deadline_s": 60}, "start_s is 60; it must be at least 0 and below the deadline of 60 s"),
    ({"rows": 4e8, "deadline_s": 600, "targets": [1e3]}, "Leave targets out"),
    ({"rows": "many", "deadline_s": 600}, "rows is 'many'; write a number above 0"),
    ({"targets": [1e3], "start_s": 30}, "start_s is given without rows and deadline_s"),
    ({"rows": 4e8, "deadline_s": 600, "outage_s": 60, "catch_up_s": 60}, "of a query that goes on"),
)


ON_CLUSTER = {"query": "nexmark:q1", "targets": [1e6], "slots": [1, 2, 4], "memory_mb": [1024], "master": MASTER}


def test_a_study_moves_to_a_cluster_by_its_master():
    study = study_from(ON_CLUSTER | {"checkpoint": SHARED, "executor_slots": 1})
    assert study.cluster == STANDALONE
    assert (study.slot_cpus, study.shared) == (1.0, False)
    assert study_from({key: value for key, value in ON_CLUSTER.items() if key != "master"}).cluster is None


@pytest.mark.parametrize(("given", "cpus"), [("", SLOT_CPUS), ("slot_cpus: 1\n", 1.0)])
def test_a_study_of_a_cluster_moves_to_this_machine_by_its_master(given, cpus, tmp_path, monkeypatch):
    (tmp_path / "study.yaml").write_text(
        f"query: nexmark:q1\ntargets: [1000]\nslots: [1, 2]\nmemory_mb: [1024]\n{given}"
        f"master: {MASTER}\ncheckpoint: {SHARED}\nexecutor_slots: 2\nallocation_s: 60\n"
    )
    found = []
    monkeypatch.setattr(planning, "dry_run", lambda study, _: found.append(study))
    monkeypatch.setattr(planning, "_show_dry_run", lambda *_, **__: 0)
    assert cli.main(["plan", "study.yaml", "--dry-run", "--master", "local"]) == 0
    assert (found[0].master, found[0].cluster, found[0].slot_cpus) == ("local", None, cpus)
    assert cli.main(["plan", "study.yaml", "--dry-run", "--allocation-s", "90"]) == 0
    assert (found[1].cluster.allocation_s, found[1].slot_cpus) == (90, 1)


test_a_study_that_no_cluster_can_carry_out_is_refused = refusals(
    lambda change: study_from(ON_CLUSTER | change),
    ({}, "checkpoints need a folder"),
    ({"checkpoint": SHARED, "deployment": "shared"}, "on a cluster each budget is deployed apart"),
    ({"checkpoint": SHARED, "testbed": "fluid"}, "the fluid testbed starts no Spark"),
    ({"executor_slots": 2, "master": "local"}, "executor_slots is given, but the master is 'local'"),
    ({"checkpoint": SHARED, "executor_slots": 0}, "executor_slots is 0; it must be a whole number of at least 1"),
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--master", MASTER], "(--checkpoint)"),
        (["--checkpoint", SHARED], "is given without a cluster. Give the master"),
        (["--master", MASTER, "--checkpoint", SHARED, "--slot-cpus", "0.4"], "whole cores"),
        (["--master", MASTER, "--checkpoint", SHARED, "--slots", "3", "--executor-slots", "2"], "(--slots, --executor"),
    ],
)
def test_the_command_line_names_its_own_options(options, message, refuses):
    assert message in refuses("measure", "nexmark:q1", *options)
