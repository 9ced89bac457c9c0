"""``workbench replay``: starts, policies by name, tables, and what it refuses."""

import json
from dataclasses import asdict

import pytest

from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.scaling.elastic import PARADIGMS
from workbench.simulation import CAPSYS_QUERIES, Deployment, capsys_query, preset, steady_state
from workbench.study import NAMES, Study, planned_start, run_study, write_planned
from workbench.study.scenario import measured_model
from workbench.workload import KeyFrequencies

Q11 = ("q11", "rates.csv", "--slots", "9")
PRICES = "name,provider,region,vcpus,memory_mb,price_per_hour,currency,source,date\nbig,X,y,4,8192,0.5,USD,list,2024\n"
HOT = ("keyed", "minute.csv", "--hot-key", "keyed", "0.1", "1")


@pytest.fixture(autouse=True)
def loads(tmp_path):
    rising = "".join(f"{300 * i},{200_000 * (1 + i % 3)}\n" for i in range(9))
    for name, rows in (("rates", rising), ("minute", "0,6000\n30,9000\n60,9000\n"), ("day", "0,6000\n86400,9000\n")):
        (tmp_path / f"{name}.csv").write_text(f"time_s,rate_per_s\n{rows}")


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")
    study = Study("nexmark:q1", (2e6, 1e7), (2, 4, 8), (512,), testbed="fluid", slot_cpus=1.0, most_runs=8)
    planned = run_study(study, Journal(folder / "journal.jsonl"))
    write_planned(planned, folder / "plans.json")
    return folder / "plans.json", planned


@pytest.fixture
def rows_of(prints):
    """Replay; return the rows of the policies."""
    return lambda *arguments: json.loads(prints("replay", *arguments, "--json"))


def test_every_policy_by_name_in_one_table(tmp_path, rows_of):
    out = tmp_path / "steps.csv"
    pool = ("--workers", "6", "--worker-slots", "8")
    rows = rows_of("q11", "rates.csv", "--slots", "12", "--policy", *NAMES, *pool, "--output", str(out))
    assert sorted(rows) == sorted(NAMES)
    assert len({tuple(row) for row in rows.values()}) == 1
    assert rows["static"]["reconfigurations"] == 0 < rows["ds2"]["reconfigurations"]
    header, *steps = out.read_text().splitlines()
    assert header == "policy,time_s,offered_per_s,consumed_per_s,backlog,latency_s,tasks,workers"
    assert len(steps) == len(NAMES) * 540
    assert {line.split(",")[0] for line in steps} == set(NAMES)
    assert set(rows_of("q11", "rates.csv", "--slots", "12")) == {"static", "ds2", "flink"}  # by default
    rows = rows_of("nexmark:q3", "rates.csv", "--slots", "4", "--policy", "static", "ds2")
    assert rows["static"]["at_target"] < rows["ds2"]["at_target"]


def test_whose_latency_the_table_and_the_steps_show_is_said(prints, tmp_path):
    load, out = tmp_path / "load.csv", tmp_path / "steps.csv"
    load.write_text("time_s,rate_per_s\n0,100000\n60,100000\n", encoding="utf-8")
    said = prints("replay", "q11", str(load), "--slots", "12", "--policy", "static", "--output", str(out))
    assert "Latency is over all records: half of them, or 99 %, waited at most that long." in said
    assert f"steps: {out}, where latency_s is how long the last records of each step had waited" in said
    assert "steps:" not in prints("replay", "q11", str(load), "--slots", "12", "--policy", "static")
    said = prints("replay", "keyed", "minute.csv", *KEYED, "--hot-key", "keyed", "0.05", "6", "--output", str(out))
    assert f"steps: {out}, where latency_s is the mean over the records sent in each second" in said


def test_a_planned_deployment_is_the_start(plans, tmp_path, rows_of):
    path, planned = plans
    start = planned_start(path)
    assert start.tasks == planned.plans[-1].allocation.tasks
    assert planned_start(path, 2e6).tasks == planned.plans[0].allocation.tasks
    assert planned_start(path, peak=1.5e6).tasks == planned.plans[0].allocation.tasks  # the lowest that carries it
    assert planned_start(path, peak=1e9).tasks == planned.plans[-1].allocation.tasks
    assert (start.memory_mb, start.slot_cpus) == (512.0, 1.0)
    (tmp_path / "empty.json").write_text(json.dumps(json.loads(path.read_text()) | {"plans": []}), encoding="utf-8")
    with pytest.raises(WorkbenchError, match=r"has no plan: no target could be planned\. Plan again"):
        planned_start(tmp_path / "empty.json")
    load = tmp_path / "load.csv"
    load.write_text("time_s,rate_per_s\n0,10000000\n60,10000000\n", encoding="utf-8")
    rows = rows_of(str(path), str(load), "--policy", "static")
    assert rows["static"]["at_target"] > 0.5  # once its code is compiled
    rows = rows_of(str(path), str(load), "--policy", "static", "--plan-rate", "2e6")
    assert rows["static"]["at_target"] == 0.0


def test_a_query_without_preset_is_modelled_by_its_run(plans):
    _, planned = plans
    model = measured_model("mine", planned.exploration.measurements, planned.plans[-1])
    assert model.modelled == ("convert", "sink")
    tasks = planned.plans[-1].allocation.tasks
    measured = steady_state(Deployment(model, tasks)).rate
    truth = steady_state(Deployment(preset("q1"), tasks, 512.0)).rate
    assert measured == pytest.approx(truth, rel=0.2)  # the source is not a task, exchanges are those of the run


def test_whole_workers_of_an_instance_type_are_paid(tmp_path, rows_of):
    prices = tmp_path / "prices.csv"
    prices.write_text(PRICES)
    base = ["q11", "rates.csv", "--slots", "5", "--policy", "static"]
    row = rows_of(*base, "--prices", str(prices), "--instance", "big")["static"]
    cores, gigabytes, cost = 2 * 4, 2 * 8, 2 * 0.5
    assert (row["core_hours"], row["cost"]) == pytest.approx((cores * 0.75, cost * 0.75))
    assert row["core_hours_with_driver"] == pytest.approx((cores + 1) * 0.75)
    assert row["gb_hours_with_driver"] == pytest.approx((gigabytes + 1408 / 1024) * 0.75)
    assert row["cost_with_driver"] == pytest.approx(cost * 0.75 * 9 / 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (Q11[:2], "The number of slots for 'q11' is missing; give it, or the JSON file of a plan (--slots)."),
        ([*Q11, "--policy", "capsys"], "'capsys' places tasks on workers; give their number"),
        ([*Q11, "--policy", "magic"], f"no policy 'magic'; use one of {', '.join(NAMES)}, or module:name"),
        ([*Q11, "--managed-mb", "4096"], "does not fit in a slot of 2,048 MB"),
        ([*Q11, "--instance", "big"], "give the list (--prices)."),
        ([*Q11, "--hot-key", "sessions", "much", "1"], "'sessions much 1' must have numbers after the operator"),
        (["q11", "missing.csv", "--slots", "9"], "missing.csv cannot be read"),
        (["q9", "rates.csv", "--slots", "9"], "There is no simulated query 'q9'"),
        ([*Q11[:3], "1"], "slots"),
        ([*Q11, "--seed", "-1"], "The seed is -1; it must be a whole number of at least 0"),
        (
            [*Q11, "--hot-key", "sessions", "0.1", "1", "--shuffle-keys", "sessions", "1", "1"],
            "The keys of 'sessions' are described twice; give one of these for each operator (--hot-key, --shuffle",
        ),
        *(
            ([*Q11, "--policy", "capsys", "--workers", "4", option, value], f" is {value}; it must be above 0 ")
            for option in ("--worker-slots", "--worker-cpus", "--worker-io-mb", "--worker-net-mb")
            for value in ("0", "-1")
        ),
        ([*Q11, "--policy", "capsys", "--workers", "0"], "number of workers is 0; it must be above 0 (--workers)"),
        (["PLANS", "rates.csv", "--plan-rate", "5"], "has no plan for 5 records/s; give one of its rates"),
        # what the fuzzer (benchmarks/fuzz.py) found
        ([*Q11[:3], "100000000"], "number of slots is 1e+08; it must be at most 100,000 (--slots)."),
        ([*Q11, "--memory-mb", "nan"], "The memory of a slot is nan; it must be above 0 (--memory-mb)."),
        ([*Q11, "--restart", "inf"], "restart_s is inf; it must be at least 0 and at most 604,800 (--restart)"),
        ([*Q11, "--hot-key", "sessions", "0.1", "1e300"], "The keys change 1e+300 times a minute; give at"),
        ([*Q11, "--policy", "x" * 5_000], "There is no policy 'xxx"),
        ([*Q11, "--worker-slots", "100000000"], "number of slots of a worker is 1e+08; it must be at most 100,000"),
        ([*Q11, "--response", "sessions", "r.csv", "9" * 900], "The tasks of the measured response are '999"),
        # of a keyed operator
        (["keyed", "minute.csv"], "The keys of 'keyed' are missing; give one of these for the operator 'keyed' ("),
        (["keyed", "minute.csv", "--hot-key", "sessions", "0.1", "1"], "The keys of 'keyed' are missing;"),
        ([*HOT, "--slots", "4"], "slots does not apply to 'keyed'; describe"),
        ([*HOT, "--policy", "ds2"], "There is no paradigm 'ds2'; use one of static"),
        ([*HOT, "--setting", "speed=2"], "has no setting 'speed'; it has cpu_s"),
        ([*HOT, "--workers", "1000", "--worker-slots", "4"], "replayed on at most 2,048. Give fewer workers,"),
        (["keyed", "day.csv", *HOT[2:]], "a keyed operator is replayed for at most 3600 s. Cut the load"),
    ],
)
def test_what_cannot_be_replayed_is_refused(plans, refuses, arguments, message):
    assert message in refuses("replay", *(plans[0] if word == "PLANS" else word for word in arguments))


def test_a_measured_response_feeds_the_replay(tmp_path, rows_of, refuses):
    table = tmp_path / "response.csv"
    table.write_text("memory_mb,hit_rate,latency_s,true_rate\n100,0.1,0.002,20000\n900,0.95,0.0001,60000\n")
    base = ["q11", "rates.csv", "--slots", "16", "--policy", "static", "justin"]
    measured = rows_of(*base, "--response", "sessions", str(table), "8")
    assert measured != rows_of(*base)
    said = refuses("replay", *base, "--response", "join", str(table), "8")
    assert "for 'join', which is not an operator of q11; use one of filter, sessions" in said
    for tasks, said in (
        ("few", "response are 'few'"),
        ("²", "response are '²'"),
        ("0", "with 0 tasks; it needs at least 1"),
    ):
        assert said in refuses("replay", *base, "--response", "sessions", str(table), tasks)


def test_an_autoscalers_settings_are_options(rows_of, refuses):
    base = ["q11", "rates.csv", "--slots", "12", "--policy", "ds2"]
    quick = ["--setting", "policy_interval_s=30", "metrics_window_s=30", "utilization_min=0.5"]
    calm = rows_of(*base, *quick, "scale_down_interval_s=7200", "max_parallelism=20")["ds2"]
    hasty = rows_of(*base, *quick, "scale_down_interval_s=0")["ds2"]
    assert calm["reconfigurations"] < hasty["reconfigurations"]
    said = refuses("replay", *base, "--setting", "speed=2")
    assert "An autoscaler has no setting 'speed'; it has activation_s" in said
    assert "--setting activation_s is not NAME=VALUE" in refuses("replay", *base, "--setting", "activation_s")


@pytest.mark.parametrize("policies", [["ds2", "justin"], ["justin", "ds2", "static"]])
def test_a_policys_row_does_not_depend_on_the_others(rows_of, policies):
    together = rows_of("q11", "rates.csv", "--slots", "12", "--policy", *policies)
    for name in policies:
        assert rows_of("q11", "rates.csv", "--slots", "12", "--policy", name) == {name: together[name]}
    split = rows_of("q11", "rates.csv", "--slots", "12", "--policy", "ds2", "--managed-mb", "400")
    assert split["ds2"] != together["ds2"]  # for every policy, on request


@pytest.mark.parametrize("name", CAPSYS_QUERIES)
def test_capsys_queries_begin_as_published(tmp_path, rows_of, name):
    published = capsys_query(name)
    load = tmp_path / "load.csv"
    load.write_text(f"time_s,rate_per_s\n0,{published.rate}\n300,{published.rate}\n", encoding="utf-8")
    rows = rows_of(name, str(load), "--policy", "static", "--restart", "0")
    assert rows["static"]["at_target"] == 1.0
    assert rows["static"]["task_hours"] == pytest.approx(sum(published.tasks.values()) / 6)
    rows = rows_of(name, str(load), "--slots", "40", "--policy", "ds2")
    assert rows["ds2"]["at_target"] == 1.0


KEYED = ["--workers", "2", "--worker-slots", "8", "--setting", "shards=64"]


def test_paradigms_are_policies_of_a_keyed_operator(tmp_path, rows_of):
    out = tmp_path / "seconds.csv"
    command = ["keyed", "minute.csv", *KEYED, "--hot-key", "keyed", "0.05", "6", "--output", str(out)]
    rows = rows_of(*command)
    assert sorted(rows) == sorted(PARADIGMS)
    assert rows["static"]["shard_moves"] == 0 < rows["executor-centric"]["shard_moves"]
    assert rows["executor-centric"]["p99_latency_s"] < rows["static"]["p99_latency_s"]
    header, *seconds = out.read_text().splitlines()
    assert header == "paradigm,time_s,throughput_per_s,latency_s"
    assert len(seconds) == 90 * len(PARADIGMS)


def test_your_own_keys_are_replayed(tmp_path, rows_of, refuses):
    counted = KeyFrequencies("user", 1000, 0, ("a", "b"), (700, 100), 22)
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({**asdict(counted), "advice": {}}), encoding="utf-8")
    keyed = rows_of("keyed", "minute.csv", *KEYED, "--keys", "keyed", str(path), "0", "--policy", "static")
    assert keyed["static"]["throughput_per_s"] < 1.05 * 1000 / 0.7  # the hottest key fills a core
    base = ["q11", "rates.csv", "--slots", "30", "--policy", "static"]
    skewed = rows_of(*base, "--keys", "sessions", str(path), "0")
    assert skewed["static"]["at_target"] < rows_of(*base)["static"]["at_target"]
    path.write_text('{"column": "user"}', encoding="utf-8")
    said = refuses("replay", *base, "--keys", "sessions", str(path), "0")
    assert "does not contain frequencies of keys. Write it with: workbench keys" in said
