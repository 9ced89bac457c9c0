"""``workbench plan`` says what to deploy, and what that rests on."""

import json
from pathlib import Path

import pytest
from simulated_study import SIMULATED

from workbench import cli
from workbench.answers.planned import cautions
from workbench.cli import console, planning
from workbench.speed import CoreSpeed
from workbench.study import read_planned

STUDY = f"{SIMULATED}most_runs: 4\nform: linear\nprices: prices.csv\n"
PRICES = "name,provider,region,vcpus,memory_mb,price_per_hour,currency,source,date\nlarge,x,y,8,16384,0.5,USD,z,2026\n"


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "prices.csv").write_text(PRICES)

    def call(*arguments):
        code = cli.main(["plan", "study.yaml", "--output", "plan.json", *arguments])
        return code, capsys.readouterr()

    return call


def test_the_recorded_answer_says_how_fast_the_cores_here_are(capsys, monkeypatch):
    recorded = Path(__file__).parents[3] / "data" / "q5.recorded.json"
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(planning, "measure_speed", lambda _: CoreSpeed(0.4e-3, 0.456e-3))
    planning._show_recorded(recorded, here=True)
    shown = capsys.readouterr().out
    assert shown.startswith("nexmark:q5: RECORDED on ")
    assert shown.splitlines()[-1].startswith("This machine's cores are 0.62 times as fast")
    monkeypatch.setattr(planning, "measure_speed", None)  # nothing runs here
    planning._show_recorded(recorded, here=False)
    assert shown.startswith(capsys.readouterr().out)


def test_the_plans_are_read_from_anywhere_and_name_their_study_without_its_folder(run, tmp_path, monkeypatch):
    run()
    (tmp_path / "prices.csv").unlink()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    path = tmp_path / "plan.json"
    document, again = json.loads(path.read_text()), read_planned(path)
    assert [plan.price.per_hour for plan in again.plans] == [plan["price"]["per_hour"] for plan in document["plans"]]
    assert again.study.file == again.exploration.asked.study == "study.yaml"
    assert any(advised.command == "workbench plan study.yaml" for advised in cautions(again.plans).values())
    document["study"]["file"] = "/home/alice/acme/s.yaml"
    path.write_text(json.dumps(document))
    assert read_planned(path).exploration.asked.plan("Now").command == "workbench plan s.yaml"


def test_advice_repeats_the_options_that_decide_where_and_what_is_measured(run, tmp_path):
    code, output = run("--master", "local", "--journal", str(tmp_path / "mine.jsonl"))
    assert code == console.DONE, output.err
    assert "times the 8 slots measured" not in output.out  # a doubt that the verdict has named, with another remedy
    again = "workbench plan study.yaml --master local --journal mine.jsonl"
    assert f"then run: {again}" in output.out
    stored = read_planned(tmp_path / "plan.json")
    assert again.endswith(" ".join(f"--{name} {value}" for name, value in stored.exploration.asked.options.items()))
    assert any(advised.command == again for advised in cautions(stored.plans).values())
    assert str(tmp_path) not in (tmp_path / "plan.json").read_text()
