"""The line of progress on a terminal: one line, whatever it says."""

import pytest
from terminal_session import CODES

from workbench.cli.progress import progress

SAID = (
    "probe 2 at 7.32 M records/s: overloaded (so far 6.9 M to 7.32 M). Only 98 % of the 117 M due rows were "
    "consumed; 99 % are needed."
)


@pytest.fixture
def terminal(monkeypatch):
    """Make standard error a terminal of 80 columns."""
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "80"}.items():
        monkeypatch.setenv(name, value)


def lines(written):
    return [CODES.sub("", line) for line in written.replace("\r", "\n").split("\n")]


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("columns", [80, 40])
def test_a_long_text_is_cut_and_the_time_left_stays_in_sight(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    with progress(1200.0) as say:
        say(SAID)
    shown = [line for line in lines(capsys.readouterr().err) if line and "starting" not in line]
    assert shown
    for line in shown:
        assert len(line) <= columns
        assert "probe 2" in line
        assert line.endswith("… · about 20 min left")


@pytest.mark.usefixtures("terminal")
def test_a_text_without_a_time_takes_the_whole_line(capsys):
    with progress() as say:
        say(SAID)
    assert {len(line) for line in lines(capsys.readouterr().err) if "probe 2" in line} == {80}


@pytest.mark.usefixtures("terminal")
def test_a_short_text_is_said_as_it_is(capsys):
    with progress(1200.0) as say:
        say("warm-up \x1b[2J")
    assert any(line.endswith("warm-up \\x1b[2J · about 20 min left") for line in lines(capsys.readouterr().err))
