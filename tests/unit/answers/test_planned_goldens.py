"""What people see of plans, kept whole: from a recorded journal of Spark, and from the simulator."""

import json
from pathlib import Path

import faces
import pytest

from workbench.answers.planned import cards
from workbench.cli import main, planning
from workbench.cli.console import NOT_SUSTAINED
from workbench.study import read_planned
from workbench.study.planned import plan_targets

RECORDED = Path(__file__).parents[3] / "data" / "q5.recorded.json"
STUDY = """
query: nexmark:q1
targets: [2000000, 20000000, 1.0e+15]
slots: [2, 4, 8]
memory_mb: [512]
testbed: fluid
slot_cpus: 1
most_runs: 4
outage_s: 600
catch_up_s: 1200
low_rate: 100000
prices: prices.csv
"""
PRICES = "name,provider,region,vcpus,memory_mb,price_per_hour,currency,source,date\nlarge,x,y,8,16384,0.5,USD,z,2026\n"


def of_spark():
    """Plan again from what a journal recorded on Spark."""
    stored = read_planned(RECORDED)
    return plan_targets(stored.study, stored.exploration, (), stored.instances)


def test_a_simulated_plan(tmp_path, capsys, monkeypatch, snapshot):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "prices.csv").write_text(PRICES)
    assert main(["plan", "study.yaml", "--json"]) == NOT_SUSTAINED  # one target has no plan
    document = json.loads(capsys.readouterr().out)
    told = {name: document[name] for name in ("plans", "refused", "forms")}
    assert faces.lines(faces.rounded(told)) == snapshot(name="json")
    faces.check_terminals(["plan", "study.yaml"], capsys, monkeypatch, snapshot, faces.undated)
    shown = faces.page(cards(read_planned(tmp_path / ".workbench/study-plan.json")))
    assert faces.undated(shown) == snapshot(name="page")


@pytest.mark.parametrize("columns", [80, 120])
def test_a_plan_from_a_recorded_journal(columns, capsys, monkeypatch, snapshot):
    monkeypatch.setattr(faces, "main", lambda _: planning._show(of_spark()))
    assert faces.terminal([], capsys, monkeypatch, columns) == snapshot


def test_the_page_of_a_plan_from_a_recorded_journal(snapshot):
    assert faces.page(cards(of_spark())) == snapshot
