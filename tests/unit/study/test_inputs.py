"""A study, its plans and a measurement are alike to the commands that follow; another thing is named."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from example_measurement import example_measurement
from placement_file import PROBLEM, written
from staged_runs import seeing, staged_exploration

from workbench import cli, units
from workbench.answers.replayed import answer
from workbench.capacity import plan
from workbench.cli.console import DONE
from workbench.errors import WorkbenchError
from workbench.placement import BATCH, read_placement_input
from workbench.records import InstanceType, PlannedStudy, Price, deployed
from workbench.simulation import RateTrace
from workbench.study import measured_start, planned_start, plans_path, replay_start, resolved
from workbench.study.planned import MEASUREMENT, PLANS

STUDY = "query: jobs:orders\ntargets: [60000]\nslots: [1, 2]\nmemory_mb: [600]\n"
WEEKLY = ".workbench/studies-weekly-plan.json"
DAY = "time_s,rate_per_s\n0,1000\n300,2000\n600,1000\n"


@pytest.fixture(scope="module")
def chosen():
    return plan(staged_exploration(), 60_000.0, memory_mb=[600])


def stored(path, planned, runs=None):
    """Write a study's plan, and the runs that it rests on."""
    PlannedStudy(study={}, reason="", plans=(planned,), runs=runs or staged_exploration().runs).to_json(path)


@pytest.fixture(autouse=True)
def folder(tmp_path, chosen):
    """A study with its plans, the measurement of one run, a load, a problem and counted keys."""
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "weekly.yaml").write_text(STUDY)
    (tmp_path / "day.csv").write_text(DAY)
    (tmp_path / ".workbench").mkdir()
    stored(WEEKLY, chosen)
    replace(example_measurement(), testbed_kind="spark").to_json("run.json")
    written(tmp_path, PROBLEM)
    (tmp_path / "orders.csv").write_text("shop\n" + "a\n" * 3 + "".join(f"s{n}\n" for n in range(7)))
    return chosen


def test_a_study_is_its_plans():
    plans = plans_path(Path("studies/weekly.yaml"))
    assert str(plans) == WEEKLY
    assert resolved("studies/weekly.yaml", "place", "plans") == (PLANS, plans)
    assert resolved(str(plans), "place", "plans") == (PLANS, plans)
    assert resolved("run.json", "place", "plans") == (MEASUREMENT, Path("run.json"))
    plans.unlink()
    with pytest.raises(WorkbenchError, match=r"has no plans of it yet\. Plan it first: workbench plan studies/weekly"):
        resolved("studies/weekly.yaml", "place", "plans")


@pytest.mark.parametrize("given", ["studies/weekly.yaml", WEEKLY, "run.json"])
def test_replay_and_place_take_each_alike(prints, given):
    assert json.loads(prints("replay", given, "day.csv", "--policy", "static", "--json"))["static"]["at_target"] == 1.0
    said = prints("place", given)
    assert said.startswith("Any placement carries ")
    assert "Choose the worker shape: " in said
    assert "w0" not in said  # no table of equal rows
    compared = prints("place", given, "--compare")
    assert compared.startswith(said)
    assert "alike, so they are not compared. --json lists them" in compared[len(said) :]
    rows = json.loads(prints("place", given, "--compare", "--json", "--draws", "2", "--timeout", "1"))
    same = {round(row["rate"]) for row in rows if "rate" in row and row["method"] != "odrp"}
    assert len(same) == 1  # as it says; ODRP chooses other numbers of tasks


@pytest.mark.parametrize("level", ["safe", "verify first", "risky", "don't rely on it yet"])
def test_a_placement_carries_the_rate_only_as_surely_as_its_plan(prints, chosen, level):
    stored(WEEKLY, replace(chosen, verdict=replace(chosen.verdict, level=level)))
    holds = "" if level == "safe" else f" if the plan holds (verdict: {level})"
    assert prints("place", "studies/weekly.yaml").startswith(f"Any placement carries 60 k records/s{holds}: the ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["replay", "problem.json", "day.csv"], "problem.json is a placement problem; workbench replay takes a study"),
        (["place", "keys.json"], "keys.json is frequencies of keys; workbench place takes a placement"),
        (["replay", "run.json", "day.csv", "--plan-rate", "5"], "A target rate is one of several plans'"),
    ],
)
def test_another_thing_is_named(prints, refuses, arguments, said):
    Path("keys.json").write_text(prints("keys", "orders.csv", "shop", "--json"))
    assert said in refuses(*arguments)


def test_where_placements_differ_they_are_compared_and_a_plan_with_prices_names_its_workers(folder):
    assert read_placement_input(WEEKLY).alike
    assert not read_placement_input(WEEKLY, speeds=[1.0] * folder.executors).alike
    assert cli.main(["place", WEEKLY, "--method", "optimal"]) == DONE
    instance = InstanceType("c6i.large", "AWS", "us-east-1", 2, 4096, 0.085, "USD", "list", "2026-01")
    stored("priced.json", replace(folder, price=Price(instance, 3, 2, 0.255, 0)))
    assert read_placement_input("priced.json").alike.endswith("the cheapest of its price list, is 3 x c6i.large.")


@pytest.mark.parametrize(
    ("given", "cost"),
    [
        ((), 3 * 0.1),
        (("--instance", "own"), 3 * 0.1),
        (("--prices", "prices.csv"), 3 * 0.2),  # the plan's type, as another list prices it
        (("--prices", "prices.csv", "--instance", "big"), 1.0),
        (("--prices", "other.csv"), None),
        (("--workers", "2"), None),
    ],
)
def test_a_plan_with_a_price_is_replayed_on_its_workers(prints, refuses, folder, given, cost):
    slots = folder.budget.slots
    instance = InstanceType("own", "AWS", "us-east-1", 16, 65536, 0.1, "USD", "list", "2026-01")
    price = Price(instance, 3, math.ceil(slots / 3), 0.3, 0)  # more would fit by cores and memory alone
    stored("priced.json", replace(folder, price=price))
    columns = "name,provider,region,vcpus,memory_mb,price_per_hour,currency,source,date\n"
    big = "big,AWS,us-east-1,64,262144,1,USD,list,2026-01\n"
    Path("other.csv").write_text(columns + big)
    Path("prices.csv").write_text(f"{columns}{big}own,AWS,us-east-1,16,65536,0.2,USD,list,2026-01\n")
    call = ("replay", "priced.json", "day.csv", "--policy", "static", *given)
    row = json.loads(prints(*call, "--json"))["static"]
    assert row.get("cost") == (None if cost is None else pytest.approx(cost / 4))
    assert ("No worker is priced" in prints(*call)) == (cost is None)
    assert "The instance type 'big' is of a price list; give the list" in refuses(*call[:5], "--instance", "big")


def test_a_measurement_is_replayed_on_its_slots_at_the_capacity_that_it_found():
    measured, start = example_measurement(), measured_start(Path("run.json"))
    assert (dict(start.tasks), start.batch_s) == ({BATCH: measured.budget.slots}, measured.budget.interval_s)
    assert deployed(measured).expected_rate == measured.estimate.middle
    assert deployed(measured, 5.0).rate == 5.0
    with pytest.raises(WorkbenchError, match="sustained no rate, so its operators' costs are unknown"):
        deployed(replace(measured, estimate=replace(measured.estimate, rate=None, low=0.0, observation=None)))


def test_a_replay_keeps_the_doubts_of_what_it_begins_with():
    measured = example_measurement()
    probes = tuple(replace(one, filled=False) for one in measured.estimate.probes)
    young = replace(measured, estimate=replace(measured.estimate, high=math.inf, limit="none", probes=probes))
    young.to_json("young.json")
    start = measured_start(Path("young.json"))
    peaks = [replay_start(start, RateTrace.constant(times * start.known_per_s, 600.0), ["static"]) for times in (1, 9)]
    said = [list(answer(found).cautions) for found in peaks]
    assert said[0][:2] == list(start.doubts)
    bound, young = said[0][:2]
    assert bound.startswith("The capacity measured is a lower bound:")
    assert young.startswith("The capacity measured is that of a young state,")
    assert not any("times the highest capacity" in text for text in said[0])
    assert "is 9 times the highest capacity that is known" in said[1][2]


@pytest.mark.parametrize(("limit", "advice"), [("source", "that the source keeps busy"), ("none", "a higher rate")])
def test_what_bounded_a_measurement_decides_what_a_replay_advises(limit, advice):
    measured = example_measurement()
    replace(measured, estimate=replace(measured.estimate, high=math.inf, limit=limit)).to_json("bound.json")
    (said,) = measured_start(Path("bound.json")).doubts.values()
    assert advice in str(said)


def test_a_replay_of_a_plan_that_is_not_safe_says_so(chosen):
    (path,) = Path(".workbench").glob("*-plan.json")
    verdict = chosen.verdict
    assert verdict.level != "safe"
    doubt = f"The verdict on the plan is: {verdict.level}. {verdict.reason}"
    assert planned_start(path).doubts == {doubt: verdict.advised}


def skewed(**shows):
    """Runs that show the skew of keys where state is kept, and what else is given."""
    runs = []
    for run in staged_exploration().measurements:
        seen = run.estimate.observation.operators
        operators = (replace(one, key_skew=2.1, **shows) if one.keeps_state else one for one in seen)
        runs.append(seeing(run, operators=tuple(operators)))
    return tuple(runs)


def test_keys_say_what_the_hottest_takes_in_the_plan(prints, refuses, folder):
    stored(WEEKLY, folder, skewed())
    said = prints("keys", "orders.csv", "shop", "--plan", "studies/weekly.yaml", "--rate", "6k")
    assert said.startswith(f"At {units.rate(6000)} the key 'a' needs ")
    assert "; more than 4 tasks do not raise the rate." in said
    assert "--rate is given without --plan" in refuses("keys", "orders.csv", "shop", "--rate", "6k")


@pytest.mark.parametrize("keys", [("number",), ("Shop",)])
def test_of_a_planned_study_keys_say_where_no_operator_goes_by_the_column(prints, folder, keys):
    stored(WEEKLY, folder, skewed(keys=keys))
    Path("studies/weekly.yaml").write_text(f"{STUDY}dataset: orders.csv\n")
    said = prints("keys", "studies/weekly.yaml", "shop")
    within = keys == ("Shop",)
    elsewhere = "No operator whose tasks were compared goes by 'shop': "
    assert said.startswith("Where a row goes to the task of its key, " if within else elsewhere)
    assert ("shuffle" in said) == within
    if not within:
        assert said == prints("keys", "orders.csv", "shop", "--plan", "studies/weekly.yaml")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            lambda run: replace(seeing(run, operators=()), testbed_kind="recorded"),
            "p.json rests on recorded rates, which show no operators",
        ),
        (
            lambda run: replace(run, estimate=replace(run.estimate, observation=None)),
            "No run of p.json shows its operators",
        ),
    ],
)
def test_runs_that_show_no_operators_say_nothing_of_a_key(refuses, folder, change, why):
    stored("p.json", folder, tuple(map(change, staged_exploration().measurements)))
    said = refuses("keys", "orders.csv", "shop", "--plan", "p.json")
    advice = "Plan on measured runs, or leave it out (--plan)."
    assert f"{why}, so whether one task has all rows of a key is not known. {advice}" in said
    assert "no key is kept" not in said
