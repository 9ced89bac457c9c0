"""``workbench cluster``: plans of their own rates on one priced cluster."""

import json
from dataclasses import replace

import pytest
from example_measurement import on_cores
from simulated_study import PRICES
from staged_runs import staged_exploration

from workbench.capacity import plan
from workbench.capacity.explore import conclude
from workbench.capacity.planning import read_instances
from workbench.records import PlannedStudy
from workbench.speed import REFERENCE
from workbench.study import Study, write_planned
from workbench.study.planned import plan_targets

COMMAND = ["cluster"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "prices.csv").write_text(PRICES)
    found = staged_exploration()
    for name, rates in (("orders", (6_000, 12_000)), ("clicks", (9_000,))):
        plans = tuple(replace(plan(found, rate, memory_mb=[600]), query=f"mine:{name}") for rate in rates)
        PlannedStudy({"query": f"mine:{name}"}, "done", plans).to_json(tmp_path / f"{name}.json")


@pytest.mark.usefixtures("folder")
def test_it_names_workers_cost_and_what_each_holds(prints):
    output = prints("orders.json@6000", "clicks.json", "--prices", "prices.csv")
    said = (
        "1 x large at 0.50 USD/h holds both plans with their drivers; on workers of their own they cost 1.00 USD/h. Of "
    )
    assert output.startswith(f"{said}this type, fewer cannot hold them.")
    assert "driver of A" in output
    alone = prints("orders.json@6000", "--prices", "prices.csv")
    assert "0.50 USD/h holds the plan with its driver; on workers of its own it costs 0.50 USD/h. Of" in alone


@pytest.mark.parametrize("core_speed", ["", "1", "0.5", "2"])
def test_it_counts_the_cores_of_the_type(prints, tmp_path, core_speed):
    made = [on_cores(run, REFERENCE.arithmetic_s, REFERENCE.reads_s) for run in staged_exploration().measurements]
    found = conclude(made, "done", growth="tasks")
    study = Study("mine:orders", (2e4,), (2, 4), (600,), testbed="fluid", growth="tasks")
    write_planned(plan_targets(study, found), tmp_path / "orders.json")
    head, row = PRICES.splitlines()
    (tmp_path / "prices.csv").write_text(f"{head},core_speed\n{row},{core_speed}\n")
    (packed,) = json.loads(prints("orders.json", "--prices", "prices.csv", "--json"))["plans"]
    there = plan(found, 2e4, memory_mb=[600], instances=read_instances(tmp_path / "prices.csv"))
    assert 0 <= packed["executors"] * packed["slots_each"] - there.least_slots < packed["slots_each"]
    assert "note: It assumes" in prints("orders.json", "--prices", "prices.csv")


@pytest.mark.usefixtures("folder")
def test_json_has_the_same(prints):
    found = json.loads(prints("orders.json", "clicks.json", "--prices", "prices.csv", "--json"))
    assert [one["rate"] for one in found["plans"]] == [12_000, 9_000]
    assert found["per_hour"] == 0.5 * len(found["workers"])


@pytest.mark.usefixtures("folder")
def test_a_plan_is_named_by_its_rate_as_it_is_listed(prints, refuses, tmp_path):
    stored = PlannedStudy.from_json(tmp_path / "orders.json")
    uneven = replace(stored.plans[0], rate=1e6 / 3)
    replace(stored, plans=(uneven,)).to_json(tmp_path / "uneven.json")
    listed = refuses("uneven.json@1", "--prices", "prices.csv").split("it has them for ")[1].split(". ")[0]
    assert "holds the plan" in prints(f"uneven.json@{listed}", "--prices", "prices.csv")


@pytest.mark.usefixtures("folder")
def test_what_cannot_be_packed_is_said_in_one_line(refuses):
    for arguments, text in (
        (["orders.json@7000", "--prices", "prices.csv"], "no plan for '7000' records/s; it has them for 6000, 12000"),
        (["orders.json@fast", "--prices", "prices.csv"], "has no plan for 'fast' records/s"),
        (["orders.json"], "There is no price list"),
        (["missing.json", "--prices", "prices.csv"], "cannot be read"),
    ):
        output = refuses(*arguments)
        assert text in output
        assert "Traceback" not in output
