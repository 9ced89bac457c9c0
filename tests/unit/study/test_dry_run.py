"""What a dry run says is what is then measured."""

from dataclasses import replace

import pytest
from refusals import refusals
from simulated_study import SIMULATED

from workbench import cli
from workbench.errors import WorkbenchError
from workbench.study import Study, dry_run, prepared, run_study
from workbench.testbed import FluidTestbed

FLUID = Study("nexmark:q1", (2e6,), (4, 6, 9), (512, 1024), testbed="fluid", slot_cpus=1.0)
SPARK = Study("nexmark:q1", (2e4,), (1, 2, 3), (1024,), slot_cpus=0.4, most_runs=3, deployment="separate")


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr("workbench.testbed.spark.testbed.usable_cores", lambda: 2)


def shapes(budgets):
    return [(budget.slots, budget.profile.memory_mb) for budget in budgets]


@pytest.mark.parametrize(
    "settings",
    [
        {"most_runs": 4},
        {"slots": (2, 6, 9), "memory_mb": (512,), "most_calls": 5},
        {"choice": "edge", "most_calls": 6, "estimates": 2},
        pytest.param({}, marks=pytest.mark.long),
        pytest.param({"most_runs": 9}, marks=pytest.mark.long),
        pytest.param({"most_calls": 6, "estimates": 2}, marks=pytest.mark.long),
        pytest.param({"choice": "edge", "most_runs": 12}, marks=pytest.mark.long),
        pytest.param({"choice": "edge", "most_runs": 13, "estimates": 2, "memory_mb": (512,)}, marks=pytest.mark.long),
    ],
)
def test_a_dry_run_lists_what_is_measured_first_and_holds_the_number_of_runs(journal, settings):
    study = replace(FLUID, **settings)
    would = dry_run(study)
    made = run_study(study, journal).exploration.measurements
    assert shapes(would.first) == shapes(run.budget for run in made)[: len(would.first)]
    assert would.runs[0] <= len(made) <= would.runs[1]
    assert would.seconds[0] <= would.seconds[1] <= study.most_runs
    assert would.recorded == 0
    if study.choice == "edge":
        assert len(would.first) == len(made)  # nothing is left open


def test_minimal_configurations_are_listed_once_per_memory():
    assert shapes(dry_run(FLUID).first) == [(2, 512), (4, 512), (9, 512), (2, 1024), (4, 1024), (9, 1024)]
    assert dry_run(FLUID).runs == (8, 20)  # the first run that may end it is the eighth
    assert dry_run(replace(FLUID, most_calls=4)).runs == (6, 6)
    assert dry_run(replace(FLUID, most_calls=5, estimates=3)).runs == (8, 9)
    assert dry_run(replace(FLUID, memory_mb=(512, 1024, 2048), most_calls=5)).runs == (7, 8)


def test_what_the_journal_has_is_not_measured_again(journal):
    study = replace(FLUID, choice="edge", most_calls=7)
    fresh, deployed = dry_run(study, journal), []

    class Cut(FluidTestbed):
        def deploy(self, *arguments, **options):
            deployed.append(1)
            if len(deployed) > 4:
                raise KeyboardInterrupt
            return super().deploy(*arguments, **options)

    with pytest.raises(KeyboardInterrupt):
        run_study(study, journal, testbed=Cut(seed=study.seed))
    rest = dry_run(study, journal)
    assert (rest.recorded, rest.first, rest.runs) == (4, fresh.first[4:], fresh.runs)
    assert rest.seconds < fresh.seconds
    made = run_study(study, journal)
    done = dry_run(study, journal)
    assert (done.recorded, done.first, done.seconds) == (len(made.exploration.measurements), (), (0, 0))


def test_the_next_budget_of_an_exploration_under_way_is_listed(journal):
    study = replace(FLUID, slots=(2, 6, 9), most_runs=5)
    run_study(study, journal)
    more = replace(study, most_runs=6)
    would = dry_run(more, journal)
    made = run_study(more, journal).exploration.measurements
    assert would.recorded == 5
    assert shapes(would.first) == shapes([made[5].budget])


def test_time_on_spark_follows_from_the_interval_and_a_shared_deployment_is_minutes_for_all_budgets():
    would = dry_run(SPARK)
    assert would.runs == (3, 3)
    assert 3 * 100 < would.seconds[0] < would.seconds[1] < 3 * 600
    slow = dry_run(replace(SPARK, interval_s=30.0))
    assert slow.seconds[0] > 3 * (150 + 4 * 240)  # a chunk of five intervals, probes of two and six
    assert slow.seconds[1] > 6 * would.seconds[1]
    swept = dry_run(replace(SPARK, intervals=(1.0, 2.0, 5.0)))
    assert [(one.slots, one.interval_s) for one in swept.sweep] == [(3, 1.0), (3, 5.0)]
    assert swept.runs == (5, 5)
    assert swept.seconds[0] > would.seconds[0]
    shared, apart = dry_run(replace(SPARK, deployment="shared")), dry_run(replace(SPARK, deployment="separate"))
    assert shapes(shared.first) == [(3, 1024), (1, 1024)]  # the corners; what follows depends on them
    assert shared.runs == apart.runs == (3, 3)
    assert dry_run(replace(SPARK, deployment="shared", most_runs=20)).runs == (4, 4)  # three budgets, one of them again
    assert shared.seconds[1] < apart.seconds[1]
    two = replace(SPARK, deployment="shared", most_runs=20, memory_mb=(1024, 2048), intervals=(2.0, 5.0))
    more = dry_run(replace(two, minutes=120.0))
    assert (len(more.first), more.runs, len(more.sweep)) == (4, (9, 21), 1)
    assert more.seconds[0] > 2 * 100
    bound = dry_run(replace(SPARK, deployment="shared", minutes=5.0))
    assert bound.seconds[1] <= 300


def test_runs_that_the_minutes_may_not_reach_are_not_promised():
    shared = replace(SPARK, deployment="shared", slots=(1, 2, 4), most_runs=3)
    for minutes, sure in ((5.0, 1), (10.0, 2), (60.0, 3)):
        would = dry_run(replace(shared, minutes=minutes))
        assert would.runs == (sure, 3)
        assert shapes(would.first) == [(4, 1024), (1, 1024)]
        assert (would.short == "") == (sure == 3)
        assert sure == 3 or f" {minutes:g} min may be over after {sure} run" in would.short
    assert dry_run(replace(shared, most_runs=20, memory_mb=(1024, 2048), minutes=12.0)).runs[0] == 1
    assert dry_run(replace(shared, most_runs=20, memory_mb=(1024, 2048), minutes=15.0)).runs[0] == 2
    assert dry_run(replace(SPARK, minutes=15.0)).runs == (2, 3)  # a deployment of its own for each


test_a_dry_run_refuses_what_the_study_would_be_refused_for = refusals(
    lambda changes: dry_run(replace(SPARK, **changes)),
    ({"query": "nexmark:q77"}, "q77"),
    ({"dataset": "/nowhere.csv"}, "does not exist"),
    ({"query": "textwrap:dedent"}, r"so it needs data to read\. Give the path of a data set"),
    ({"prices": "/nowhere/prices.csv"}, r"/nowhere/prices\.csv"),
    ({"slots": (1, 9)}, r"need 3\.6 cores; .* Use 4 slots or fewer, or smaller slots \(slots, slot_cpus\)"),
    ({"testbed": "fluid"}, r"has 2 operators apart from its sources .*; 1 slot cannot hold them"),
    ({"memory_mb": (1024, 2048)}, r"most_runs is 3; the corners of the space alone are 4 runs\. Raise it\."),
)


def test_the_command_tells_short_times_in_seconds_and_a_plan_looks_for_its_query_once(prints, tmp_path, monkeypatch):
    (tmp_path / "study.yaml").write_text(f"{SIMULATED}most_runs: 9\n")
    first, *_, last = prints("plan", "study.yaml", "--dry-run").splitlines()
    assert (first, last) == ("measure 2 slots of 512 MB", "about 8 to 9 seconds")
    assert list(tmp_path.iterdir()) == [tmp_path / "study.yaml"]
    found, usual = [], prepared.query_of
    monkeypatch.setattr(prepared, "query_of", lambda *given: found.append(given) or usual(*given))
    prints("plan", "study.yaml")
    assert len(found) == 1
    said = prints("plan", "study.yaml", "--dry-run").splitlines()
    assert said[0].endswith("runs are recorded and are not repeated")
    assert said[-1] == "about 0 seconds"


@pytest.mark.parametrize("deployment", ["shared", "separate"])
def test_minutes_that_are_over_before_the_first_run_ends_are_said(tmp_path, monkeypatch, capfd, deployment):
    would = dry_run(replace(SPARK, deployment=deployment, minutes=1.0))
    assert (len(would.first), would.runs) == (1, (1, 1))
    assert 60 < would.seconds[0] < would.seconds[1]
    assert would.short.startswith("The study's 60 s are over before its first run ends, which takes about ")
    (tmp_path / "study.yaml").write_text(
        "query: nexmark:q1\ntargets: [2.0e+4]\nslots: [1, 2, 3]\nmemory_mb: [1024]\nslot_cpus: 0.4\nminutes: 1\n"
        f"deployment: {deployment}\n"
    )
    assert cli.main(("plan", "study.yaml", "--dry-run")) == 0
    assert would.short in capfd.readouterr().out
    monkeypatch.setattr("workbench.cli.planning.run_study", lambda *_, **__: 1 / 0)
    cli.main(("plan", "study.yaml"))
    assert would.short in capfd.readouterr().err


@pytest.fixture
def jobs(tmp_path):
    """A module of the user's that must not be imported, and data for it."""
    (tmp_path / "jobs.py").write_text("raise SystemExit('imported')\n\n\ndef orders(rows):\n    return rows\n")
    (tmp_path / "orders.csv").write_text("time,shop\n2026-01-01T00:00:00,a\n")
    return replace(SPARK, query="jobs:orders", dataset="orders.csv", slots=(1, 2, 3))


def test_the_module_of_a_query_is_read_and_not_imported(jobs, tmp_path):
    assert (dry_run(jobs).runs, dry_run(jobs).doubt) == ((3, 3), "")
    assert dry_run(replace(jobs, query="jobs.py:orders")).runs == (3, 3)
    (tmp_path / "jobs.py").write_text("raise SystemExit('imported')\nfrom elsewhere import orders\n")
    assert dry_run(jobs).doubt.startswith("jobs:orders is not defined as a function in jobs.py, and a dry run imports")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("jobs:order", r"'jobs' has no function 'order'\. Did you mean jobs:orders\? Its functions are orders\."),
        ("job:orders", r"The module 'job' of query 'job:orders' is not found without importing anything\. Run the"),
        ("torn:orders", r"The module 'torn' of query 'torn:orders' cannot be read: SyntaxError: .*\. Fix it\."),
    ],
)
def test_what_the_text_of_a_module_lacks_is_said(jobs, tmp_path, query, message):
    (tmp_path / "torn.py").write_text("def orders(")
    with pytest.raises(WorkbenchError, match=message):
        dry_run(replace(jobs, query=query))


def test_a_topic_without_a_sample_is_refused():
    with pytest.raises(WorkbenchError, match=r"No sample of kafka://localhost:1/orders is in"):
        dry_run(replace(SPARK, dataset="kafka://localhost:1/orders"))


def test_slot_counts_that_this_machine_cannot_provide_are_left_out(monkeypatch):
    monkeypatch.setattr("workbench.testbed.spark.testbed.usable_cores", lambda: 1.2)
    study = replace(SPARK, slots=(1, 2, 3, 4), slot_cpus=0.25, deployment=None)
    would = dry_run(study)
    assert {budget.slots for budget in would.first} <= {1, 2, 3}
    assert would.smaller.startswith("leaving out 4 slots: this machine provides 3 slots of 0.25 core")
    assert dry_run(replace(study, slots=(1, 2, 3))).smaller == ""
    with pytest.raises(WorkbenchError, match="Use 3 slots or fewer"):
        dry_run(replace(study, slots=(4, 5)))
