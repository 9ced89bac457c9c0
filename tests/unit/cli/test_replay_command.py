"""``workbench replay``: starts, policies by name, tables, and what it refuses."""

import json

import pytest

from workbench.cli import main
from workbench.journal import Journal
from workbench.simulation import Deployment, preset, steady_state
from workbench.study import NAMES, Study, planned_start, run_study, write_planned
from workbench.study.scaling import measured_model


@pytest.fixture
def rates(tmp_path):
    path = tmp_path / "rates.csv"
    path.write_text(
        "time_s,rate_per_s\n" + "".join(f"{300 * i},{200_000 * (1 + i % 3)}\n" for i in range(9)), encoding="utf-8"
    )
    return str(path)


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")
    study = Study("nexmark:q1", (2e6, 1e7), (2, 4, 8), (512,), testbed="fluid", slot_cpus=1.0, most_runs=8)
    planned = run_study(study, Journal(folder / "journal.jsonl"))
    write_planned(planned, folder / "plans.json")
    return folder / "plans.json", planned


def rows_of(arguments, capsys):
    assert main(["replay", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_policy_by_name_in_one_table(rates, tmp_path, capsys):
    out = tmp_path / "steps.csv"
    rows = rows_of(
        [
            "q11",
            rates,
            "--slots",
            "12",
            "--policy",
            *NAMES,
            "--workers",
            "6",
            "--worker-slots",
            "8",
            "--output",
            str(out),
        ],
        capsys,
    )
    assert list(rows) == list(NAMES)
    assert len({tuple(row) for row in rows.values()}) == 1
    assert rows["static"]["reconfigurations"] == 0 < rows["ds2"]["reconfigurations"]
    header, *steps = out.read_text().splitlines()
    assert header == "policy,time_s,offered_per_s,consumed_per_s,backlog,latency_s,tasks,workers"
    assert len(steps) == len(NAMES) * 540
    assert {line.split(",")[0] for line in steps} == set(NAMES)


def test_a_planned_deployment_is_the_start(plans, tmp_path, capsys):
    path, planned = plans
    start = planned_start(path)
    assert start.tasks == planned.plans[-1].allocation.tasks
    assert planned_start(path, 2e6).tasks == planned.plans[0].allocation.tasks
    assert (start.memory_mb, start.slot_cpus) == (512.0, 1.0)
    load = tmp_path / "load.csv"
    load.write_text("time_s,rate_per_s\n0,10000000\n60,10000000\n", encoding="utf-8")
    rows = rows_of([str(path), str(load), "--policy", "static"], capsys)
    assert rows["static"]["at_target"] > 0.5  # once its code is compiled
    rows = rows_of([str(path), str(load), "--policy", "static", "--plan-rate", "2e6"], capsys)
    assert rows["static"]["at_target"] == 0.0


def test_a_query_without_preset_is_modelled_by_its_run(plans):
    _, planned = plans
    model = measured_model("mine", planned.exploration.measurements, planned.plans[-1])
    assert model.modelled == ("convert", "sink")
    tasks = planned.plans[-1].allocation.tasks
    measured = steady_state(Deployment(model, tasks)).rate
    truth = steady_state(Deployment(preset("q1"), tasks, 512.0)).rate
    assert measured == pytest.approx(truth, rel=0.2)  # the source is no task, exchanges are those of the run


def test_whole_workers_of_an_instance_type_are_paid(rates, tmp_path, capsys):
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "name,provider,region,vcpus,memory_mb,price_per_hour,currency,source,date\nbig,X,y,4,8192,0.5,USD,list,2024\n",
        encoding="utf-8",
    )
    rows = rows_of(
        ["q11", rates, "--slots", "5", "--policy", "static", "--prices", str(prices), "--instance", "big"], capsys
    )
    assert rows["static"]["core_hours"] == pytest.approx(2 * 4 * 0.75)
    assert rows["static"]["cost"] == pytest.approx(2 * 0.5 * 0.75)


def test_a_hot_key_costs_throughput(rates, capsys):
    calm = rows_of(["q11", rates, "--slots", "30", "--policy", "static"], capsys)["static"]
    command = ["q11", rates, "--slots", "30", "--policy", "static", "--hot-key", "sessions", "0.5", "2"]
    assert rows_of(command, capsys)["static"]["at_target"] < calm["at_target"]
    assert rows_of(command, capsys) == rows_of(command, capsys)


def test_the_table_is_readable(rates, capsys):
    assert main(["replay", "q11", rates, "--slots", "12", "--policy", "static", "justin"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(word in lines[1] for word in ("justin", "at target", "p99 latency", "GB-hours", "moved"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["q11", "RATES"], "How many slots does 'q11' begin with? Give --slots, or a plan's JSON file."),
        (["q11", "RATES", "--slots", "9", "--policy", "capsys"], "'capsys' places tasks on workers; give their number"),
        (["q11", "RATES", "--slots", "9", "--policy", "magic"], f"no policy 'magic'; use one of {', '.join(NAMES)}."),
        (["q11", "RATES", "--slots", "9", "--managed-mb", "4096"], "is no part of a slot of 2048 MB"),
        (["q11", "RATES", "--slots", "9", "--instance", "big"], "give the list with --prices"),
        (
            ["q11", "RATES", "--slots", "9", "--hot-key", "sessions", "much", "1"],
            "sessions much 1 has what is no",
        ),
        (["q11", "RATES", "--slots", "9", "--hot-key", "join", "0.1", "1"], "keys for join, no operator with tasks"),
        (["missing.json", "RATES"], "missing.json cannot be read"),
        (["q11", "RATES", "--slots", "9", "--seed", "-1"], "--seed is -1; give a whole number of at least 0."),
        (["q11", "RATES", "--slots", "9", "--plan-rate", "5"], "a plan's JSON file, but 'q11' is a query."),
        (
            [
                "q11",
                "RATES",
                "--slots",
                "9",
                "--hot-key",
                "sessions",
                "0.1",
                "1",
                "--shuffle-keys",
                "sessions",
                "1",
                "1",
            ],
            "--hot-key and --shuffle-keys both say how 'sessions' gets its records; give one.",
        ),
        (
            ["q11", "RATES", "--slots", "9", "--policy", "ds2", "--setting", "utilization_min=0.95"],
            "utilization_min is 0.95, above utilization_max, 0.9;",
        ),
        (
            [
                "q11",
                "RATES",
                "--slots",
                "9",
                "--policy",
                "ds2",
                "--setting",
                "max_parallelism=1e9",
                "utilization_target=1e-9",
            ],
            "a replay takes at most 100,000. Lower the rates, or limit the policy",
        ),
        (["q11", "RATES", "--slots", "9", "--worker-cpus", "0"], "--worker-cpus is 0; it must be above 0."),
        *(
            (
                ["q11", "RATES", "--slots", "9", "--policy", "capsys", "--workers", "4", option, value],
                f"{option} is {value}; it must be above 0.",
            )
            for option in ("--worker-slots", "--worker-cpus", "--worker-io-mb", "--worker-net-mb")
            for value in ("0", "-1")
        ),
        (
            ["q11", "RATES", "--slots", "9", "--policy", "capsys", "--workers", "0"],
            "--workers is 0; it must be above 0.",
        ),
        (["PLANS", "RATES", "--plan-rate", "5"], "has no plan for 5.0 records/s; there are plans for 2e+06, 1e+07."),
    ],
)
def test_what_cannot_be_replayed_is_refused(rates, plans, capsys, arguments, message):
    known = {"RATES": rates, "PLANS": str(plans[0])}
    assert main(["replay", *(known.get(word, word) for word in arguments)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0,1\n1e12,1\n", "more than 10,000,000. Its times are seconds: are these milliseconds?"),
        ("0,1\n60,1e308\n", "Line 3 of"),
        ("", "has no rows"),
        ("0,1\n60,2\n180,3\n", "Line 4 of"),
        ("0,1\n60,2\n60,3\n", "Line 4 of"),
        ("60,1\n0,2\n", "Line 3 of"),
        ("0,1\n60,-2\n", "Line 3 of"),
        ("0,1\n60,x\n", "Line 3 of"),
    ],
)
def test_a_faulty_load_is_refused_with_its_line(tmp_path, capsys, rows, message):
    path = tmp_path / "faulty.csv"
    path.write_text("time_s,rate_per_s\n" + rows, encoding="utf-8")
    assert main(["replay", "q11", str(path), "--slots", "9"]) == 2
    assert message in capsys.readouterr().err


def test_a_measured_response_feeds_the_replay(rates, tmp_path, capsys):
    table = tmp_path / "response.csv"
    table.write_text("memory_mb,hit_rate,latency_s,true_rate\n100,0.1,0.002,20000\n900,0.95,0.0001,60000\n")
    base = ["q11", rates, "--slots", "16", "--policy", "static", "justin"]
    measured = rows_of([*base, "--response", "sessions", str(table), "8"], capsys)
    assert measured != rows_of(base, capsys)
    assert main(["replay", *base, "--response", "join", str(table), "8"]) == 2
    assert "measured for 'join', no operator of q11; there are filter, sessions" in capsys.readouterr().err
    for tasks in ("few", "²"):
        assert main(["replay", *base, "--response", "sessions", str(table), tasks]) == 2
        assert f"measured with {tasks!r} tasks" in capsys.readouterr().err
    assert main(["replay", *base, "--response", "sessions", str(table), "0"]) == 2
    assert "with 0 tasks; it needs at least 1" in capsys.readouterr().err


def test_an_autoscalers_settings_are_options(rates, capsys):
    base = ["q11", rates, "--slots", "12", "--policy", "ds2"]
    calm = rows_of([*base, "--setting", "scale_down_interval_s=7200", "max_parallelism=20"], capsys)["ds2"]
    hasty = rows_of([*base, "--setting", "scale_down_interval_s=0"], capsys)["ds2"]
    assert calm["reconfigurations"] < hasty["reconfigurations"]
    assert main(["replay", *base, "--setting", "speed=2"]) == 2
    assert "no setting 'speed' of an autoscaler; there are activation_s" in capsys.readouterr().err
    assert main(["replay", *base, "--setting", "activation_s"]) == 2
    assert "--setting activation_s is not NAME=VALUE" in capsys.readouterr().err
    assert main(["replay", *base, "--setting", "utilization_target=0"]) == 2
    assert "utilization_target" in capsys.readouterr().err
