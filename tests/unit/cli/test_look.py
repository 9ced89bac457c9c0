"""Tables in narrow terminals: names stay whole, and nothing is lost without a word."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from workbench.advice import Advice
from workbench.cli import look

PLANS = ("target", "verdict", "deploy", ">capacity,\nrecords/s", ">USD\na month")
PLAN = (
    "60 M records/s",
    "don't rely on it yet",
    "3,670 slots of 1 core and 1,024 MB on 245 x c6i.4xlarge",
    "66.1 M (17.0 M to 92.3 M)",
    "121,618",
)


def printed(table, columns):
    console = Console(file=io.StringIO(), width=columns, markup=False, highlight=False, emoji=False)
    console.print(table)
    text = console.file.getvalue()
    assert all(len(line) <= columns for line in text.splitlines())
    return text


def test_no_word_is_broken_that_has_room_and_what_is_too_wide_is_stacked():
    table = look.Columns(*PLANS)
    table.add_row(*PLAN)
    words = printed(table, 80).split()
    for whole in ("records/s", "verdict", "c6i.4xlarge", "rely", "3,670", "121,618"):
        assert whole in words
    lines = [line.rstrip() for line in printed(table, 60).splitlines()]
    assert lines[:2] == ["60 M records/s", "  verdict: don't rely on it yet"]
    assert "  capacity, records/s: 66.1 M (17.0 M to 92.3 M)" in lines
    assert lines[-1] == "  USD a month: 121,618"


def test_spare_columns_go_first_and_are_named():
    table = look.Columns("method", ">cpu\ncost", ">rate", spare=[1])
    table.add_row("flink-default", "0.839", "10.6 k")
    assert "0.839" in printed(table, 60)
    narrow = printed(table, 24)
    assert ("flink-default" in narrow, "10.6 k" in narrow, "0.839" in narrow) == (True, True, False)
    assert "shows: cpu cost)" in " ".join(narrow.split())


def test_a_word_that_no_terminal_has_room_for_is_folded():
    table = look.Columns("what", "seen")
    table.add_row("log", "a/" * 60)
    text = printed(table, 60)
    assert text.count("a/") == 60
    assert "what" in text


def test_a_number_stays_with_its_unit():
    table = look.Columns(*PLANS)
    table.add_row("2 M records/s", *PLAN[1:])
    table.add_row("250 records/s", *PLAN[1:])
    for columns in (72, 80, 100):
        lines = printed(table, columns).splitlines()
        assert any("2 M records/s" in line for line in lines), columns
        assert any("250 records/s" in line for line in lines), columns
        assert not any(line.rstrip().endswith(" 1") for line in lines), columns
        assert look._GAP not in "".join(lines)


REASON = "60 M records/s: risky."
REMEDY = Advice("Add larger counts to slots, then run", "workbench plan 'my folder/study.yaml'")

OTHERWISE = Advice("Or slow the scale-down. Run", "workbench report scaling scaling.html")
PLAN_AGAIN, RUN = "  workbench plan 'my folder/study.yaml'", "Or slow the scale-down. Run:"
COMMANDS = [PLAN_AGAIN, RUN, "  workbench report scaling scaling.html"]


@pytest.mark.parametrize(
    ("advised", "commands"), [(REMEDY, COMMANDS[:1]), (replace(REMEDY, otherwise=OTHERWISE), COMMANDS)]
)
def test_a_command_is_never_broken_on_a_terminal_and_in_a_file_the_sentence_is_one_line(monkeypatch, advised, commands):
    options = {"width": 40, "color_system": None}
    terminal, file = (Console(file=io.StringIO(), force_terminal=one, **options) for one in (True, None))
    monkeypatch.setattr(look, "console", lambda: terminal)
    look.advice(REASON, advised)
    *said, last = terminal.file.getvalue().splitlines()[: -len(commands) + 1 or None]
    assert last == commands[0]
    assert said[-1].endswith("then run:")
    assert terminal.file.getvalue().splitlines()[-len(commands) :] == commands
    monkeypatch.setattr(look, "console", lambda: file)
    look.advice(REASON, advised)
    assert file.file.getvalue() == f"{REASON} {advised}\n"
