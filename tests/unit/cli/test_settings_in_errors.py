"""An error names the settings to change, and each edge spells them as its user does."""

import pickle

from workbench.cli import main
from workbench.errors import WorkbenchError

LATE = WorkbenchError("Its batches take too long: give it more slots.", settings=("slots", "interval_s"))


def test_python_and_studies_read_names():
    assert str(LATE) == "Its batches take too long: give it more slots (slots, interval_s)."
    assert str(WorkbenchError("No settings here.")) == "No settings here."


def test_the_error_of_another_process_keeps_its_settings():
    again = pickle.loads(pickle.dumps(LATE))  # noqa: S301 - made here
    assert (str(again), again.settings) == (str(LATE), ("slots", "interval_s"))


def test_a_command_reads_its_options(capsys, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise LATE

    monkeypatch.setattr("workbench.cli.measuring.find_query", refuse)
    assert main(["verify", "nexmark:q1", "--rate", "5"]) == 2
    assert "give it more slots (--slots, --interval).\n" in capsys.readouterr().err
    monkeypatch.setattr("workbench.cli.planning.read_study", refuse)
    assert main(["plan", "study.yaml"]) == 2  # it has no such options, but a study has such keys
    assert "give it more slots (slots, interval_s).\n" in capsys.readouterr().err
