"""Runs of a study over time: measured again, resumed when killed, never two at once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from workbench.errors import WorkbenchError
from workbench.study import Study, StudyHistory, read_planned
from workbench.testbed import FluidTestbed

STUDY = Study("nexmark:q1", (2e6,), (2, 4, 8), (512,), testbed="fluid", slot_cpus=1.0, most_runs=3, form="linear")


class Failing(FluidTestbed):
    """Fails at the deployment that is asked for."""

    failing_at = 3

    def deploy(self, *arguments, **options):
        object.__setattr__(self, "deployed", getattr(self, "deployed", 0) + 1)
        if self.deployed == self.failing_at:
            raise WorkbenchError("The disk is full; free some of it.")
        return super().deploy(*arguments, **options)


@pytest.fixture
def history(tmp_path):
    days = (datetime(2026, 1, 31, tzinfo=UTC) + timedelta(days=day) for day in count())
    return StudyHistory(tmp_path / "weekly", clock=lambda: next(days))


def test_every_run_is_measured_afresh_and_knows_the_one_before(history):
    first, before = history.run(STUDY, testbed=FluidTestbed(seed=1))
    assert before is None
    second, before = history.run(STUDY, testbed=FluidTestbed(seed=2))
    assert [path.name for path in history.runs] == ["20260131T000000Z.json", "20260201T000000Z.json"]
    assert read_planned(before).exploration.rates.tolist() == first.exploration.rates.tolist()
    assert first.exploration.rates.tolist() != second.exploration.rates.tolist()
    assert history.measured == ()


def test_its_advice_is_to_run_the_report_again(history):
    planned, _ = history.run(replace(STUDY, file="/home/alice/weekly.yaml"))
    assert planned.exploration.asked.plan("Now").words == "Now run the report again."
    (stored,) = history.runs
    assert read_planned(stored).exploration.asked.plan("Now").words == "Now run the report again."
    assert "alice" not in stored.read_text()


def test_a_run_that_failed_goes_on_from_its_journal(history):
    with pytest.raises(WorkbenchError, match="disk is full"):
        history.run(STUDY, testbed=Failing(seed=1))
    assert len(history.measured) == 2
    assert history.runs == ()
    whole, _ = history.run(STUDY, testbed=FluidTestbed(seed=1))
    deployed = history.runs[0].with_suffix(".jsonl").read_text().count('"kind": "deployed"')
    assert deployed == len(whole.exploration.measurements)


@pytest.mark.fault(
    "two scheduled runs of one study at once",
    sees="Another run of the study is under way; wait for it, or name another history.",
)
def test_two_runs_at_once_are_refused(history):
    with history._locked(), pytest.raises(WorkbenchError, match="is under way; wait for it"):
        history.run(STUDY)


@pytest.mark.fault("a scheduled run is killed before its journal is put away", sees="nothing: the next puts it away")
def test_a_run_killed_before_its_journal_was_put_away_is_not_reused(history, monkeypatch):
    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(StudyHistory, "_archive_journal", kill)
        with pytest.raises(KeyboardInterrupt):
            history.run(STUDY, testbed=FluidTestbed(seed=1))
    assert history.journal.path.exists()
    assert len(history.runs) == 1
    second, before = history.run(STUDY, testbed=FluidTestbed(seed=1))
    assert before == history.runs[0]
    for run in history.runs:
        deployed = run.with_suffix(".jsonl").read_text().count('"kind": "deployed"')
        assert deployed == len(second.exploration.measurements)
    assert not history.journal.path.exists()


def test_two_studies_of_one_name_have_a_folder_each_also_where_all_is_moved(tmp_path, monkeypatch):
    here = tmp_path / "here"
    kept = here / "kept"
    (kept / "weekly").mkdir(parents=True)  # of before there were owners
    one, other = here / "one" / "weekly.yaml", here / "other" / "weekly.yaml"
    assert StudyHistory.of(one, kept).folder == kept / "weekly"
    assert StudyHistory.of(other, kept).folder == kept / "weekly-2"
    assert StudyHistory.of(here / "weekly.yml", kept).folder == kept / "weekly-3"
    one.parent.mkdir()
    monkeypatch.chdir(one.parent)  # found again, however they are named
    assert StudyHistory.of(Path("weekly.yaml"), Path("../kept")).folder.resolve() == kept / "weekly"
    assert StudyHistory.of(Path("../other/weekly.yaml"), kept).folder == kept / "weekly-2"
    there = here.rename(tmp_path / "there")
    assert StudyHistory.of(there / "other" / "weekly.yaml", there / "kept").folder == there / "kept" / "weekly-2"
