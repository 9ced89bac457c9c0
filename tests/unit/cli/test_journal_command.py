"""``workbench journal``: what was measured is listed, shown, compared, and removed only when asked."""

import json
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from example_measurement import example_measurement, on_cores
from terminal_session import CODES, run_in_terminal

from workbench.journal import Journal
from workbench.measuring import Abandoned, Deployed, Finished, LoadProbed, Probed, find_recorded, read_contents, record
from workbench.records import PlannedStudy

COMMAND = ["journal"]
STARTED = "2026-01-31T04:00:00+00:00"
JOURNAL = ".workbench/journal.jsonl"


def finish(journal, key, started_at=STARTED, **changes):
    """Record a whole measurement as a run does: every probe, and then the measurement that holds them."""
    measured = replace(example_measurement(), started_at=started_at, **changes)
    record(journal, Deployed(key, measured.machine, measured.budget))
    for probe in measured.estimate.probes:
        record(journal, Probed(key, probe))
    for probe in measured.load_curve:
        record(journal, LoadProbed(key, probe))
    record(journal, Finished(key, measured))
    return measured


def begin(journal, key, count=2):
    measured = example_measurement()
    record(journal, Deployed(key, measured.machine, measured.budget))
    for probe in measured.estimate.probes[:count]:
        record(journal, Probed(key, probe))


@pytest.fixture
def journal():
    """Three measurements: one finished, one finished by a later version of its code, one not finished."""
    made = Journal(JOURNAL)
    finish(made, "nexmark:q5/aaaa000011112222")
    finish(made, "nexmark:q5/bbbb000011112222", "2026-02-07T04:00:00+00:00")
    begin(made, "nexmark:q8/cccc000011112222")
    return made


def last_of(journal, digest):
    return find_recorded(read_contents(journal), digest).last


def plans_of(measured, path=".workbench/weekly-plan.json"):
    PlannedStudy({}, "enough", (), runs=(measured,)).to_json(path)


@pytest.mark.parametrize("arguments", [(), ("list",)])
def test_the_list_has_every_measurement_with_its_size(journal, prints, arguments):
    output = prints(*arguments)
    assert output.startswith(f"3 measurements in {JOURNAL}, ")
    rows = [line for line in output.splitlines() if line.startswith("nexmark:")]
    assert [row.split()[0] for row in rows] == ["nexmark:q5/aaaa0000", "nexmark:q5/bbbb0000", "nexmark:q8/cccc0000"]
    assert "2026-01-31" in rows[0]
    assert "not finished" in rows[2]
    sizes = [one["bytes"] for one in json.loads(prints(*arguments, "--json"))]
    assert sum(sizes) == journal.path.stat().st_size


@pytest.mark.parametrize("path", [JOURNAL, "else where/runs.jsonl"])
def test_the_command_that_the_list_advises_removes_what_nothing_reads(journal, prints, path):
    Path(path).parent.mkdir(exist_ok=True)
    journal.path.rename(path)
    said = prints("--journal", path)
    assert "that nothing reads" in prints("prune", "--journal", path)
    _, _, advised = said.rpartition("note: ")[2].partition("To remove that, run: workbench ")
    assert "removed from" in prints(*shlex.split(advised)[1:])
    assert "note: " not in prints("--journal", path)


def test_a_journal_that_is_not_there_is_empty(tmp_path, refuses, prints):
    assert prints("--journal", str(tmp_path / "none.jsonl")).startswith("0 measurements in")
    assert "it has nothing" in refuses("show", "q5", "--journal", str(tmp_path / "none.jsonl"))


@pytest.mark.parametrize("name", ["nexmark:q5/aaaa000011112222", "nexmark:q5/a", "aaaa"])
def test_one_is_shown_by_the_beginning_of_its_key_or_digest(journal, prints, name):
    plans_of(last_of(journal, "aaaa"))
    output = prints("show", name)
    assert "nexmark:q5/aaaa000011112222" in output
    assert "weekly-plan.json" in output
    assert "warm-up" in output
    assert json.loads(prints("show", name, "--json"))["used_by"] == ["weekly-plan.json"]
    unfinished = prints("show", "cccc")
    assert unfinished.startswith("nexmark:q8/cccc000011112222 is not finished.")
    assert "note: 2 probes recorded" in unfinished


@pytest.mark.parametrize("slower", [1.1, 2.0])
def test_the_cores_of_two_measurements_are_compared(prints, slower):
    made = Journal(JOURNAL)
    for digest, factor in (("aaaa", 1.0), ("bbbb", slower)):
        measured = on_cores(example_measurement(), factor * 0.25e-3, factor * 0.285e-3)
        record(made, Finished(f"nexmark:q5/{digest}000011112222", measured))
    output = prints("compare", "aaaa", "bbbb")
    assert len(re.findall(rf"cores (?:of the second )?were {1 / slower:.2f} times as fast as", output)) == 1
    found = json.loads(prints("compare", "aaaa", "bbbb", "--json"))
    assert found["cores"]["times"] == pytest.approx(1 / slower)
    assert found["measurements"][0]["core_speed"]["arithmetic_s"] == 0.25e-3
    assert "arithmetic 0.25 ms" in prints("show", "aaaa")


def test_where_nothing_was_sustained_the_rate_is_a_bound(prints):
    made, seen = Journal(JOURNAL), example_measurement()
    finish(made, "nexmark:q5/aaaa000011112222", estimate=replace(seen.estimate, low=0.0, high=8340.0, rate=None))
    finish(made, "nexmark:q5/bbbb000011112222")
    rows = [line for line in prints("list").splitlines() if line.startswith("nexmark:")]
    assert ["< 8.34 k" in row for row in rows] == [True, False]
    compared = prints("compare", "aaaa", "bbbb")
    assert re.search(r"^sustains +< 8\.34 k records/s +12\.9 k records/s", compared, re.MULTILINE)


@pytest.mark.parametrize(("kind", "interval"), [("spark", " at 2 s"), ("fluid", "")])
def test_what_was_simulated_has_no_trigger_interval(prints, kind, interval):
    finish(Journal(JOURNAL), "nexmark:q5/aaaa000011112222", testbed_kind=kind)
    output = prints("show", "nexmark:q5")
    on = next(line for line in output.splitlines() if line.startswith("on "))
    assert on.rstrip().endswith(f" MB{interval}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "q7"), "no measurement whose key begins with 'q7'; it has nexmark:q5/aaaa000011112222, "),
        (("show", "nexmark:q5"), "'nexmark:q5' means 2 measurements: "),
        (("compare", "aaaa"), "nexmark:q5/aaaa000011112222 has 1 finished measurement; it takes two to compare"),
        (("compare", "aaaa", "cccc"), "nexmark:q8/cccc000011112222 has 0 finished measurements"),
        (("compare", "aaaa", "bbbb", "cccc"), "3 keys are given; two measurements can be compared"),
        (("prune", "q7"), "no measurement whose key begins with 'q7'"),
        (("prune", ""), "no measurement whose key begins with ''"),
        (("prune", "--plans", "none.json"), "'none.json' do not exist; check the path (--plans)"),
    ],
)
def test_what_cannot_be_done_is_one_line(journal, refuses, arguments, message):
    before = journal.path.read_bytes()
    assert message in f"{refuses(*arguments, lines=1)} "
    assert journal.path.read_bytes() == before


def test_two_are_compared_with_a_judgement(journal, prints):
    output = prints("compare", "aaaa", "bbbb")
    assert output.startswith("The capacity of q5 did not change beyond the noise since 2026-01-31")
    measured = next(line for line in output.splitlines() if line.startswith("measured"))
    assert re.split(r"\s{2,}", measured.strip()) == ["measured", "2026-01-31 04:00 UTC", "2026-02-07 04:00 UTC"]
    found = json.loads(prints("compare", "aaaa", "bbbb", "--json"))
    assert found["changes"][0]["judgement"] == "within noise"
    assert found["why_not"] is None
    finish(journal, "nexmark:q5/aaaa000011112222", "2026-03-01T04:00:00+00:00")
    found = json.loads(prints("compare", "aaaa", "--json"))  # its last two
    assert [one["started_at"][:10] for one in found["measurements"]] == ["2026-01-31", "2026-03-01"]


def test_other_budgets_are_shown_side_by_side_without_a_judgement(journal, prints):
    budget = replace(example_measurement().budget, slots=7)
    finish(journal, "nexmark:q5/dddd000011112222", budget=budget)
    output = prints("compare", "aaaa", "dddd")
    assert output.startswith("Side by side, without a judgement: The two runs cannot be compared: the budget was")
    assert "7 slots of" in output
    assert json.loads(prints("compare", "aaaa", "dddd", "--json"))["changes"] is None


def test_pruning_says_what_it_would_do_and_does_it_only_when_told(journal, prints):
    record(journal, Abandoned("nexmark:q8/cccc000011112222", "other code"))
    begin(journal, "nexmark:q8/cccc000011112222", 1)
    before = journal.path.read_bytes()
    assert "Nothing is removed yet: add --yes." in prints("prune")
    assert journal.path.read_bytes() == before

    told = json.loads(prints("prune", "--json"))
    assert "removed from" in prints("prune", "--yes")
    assert len(before) - journal.path.stat().st_size == told["bytes"]
    kinds = [f"{entry.kind} {entry.key[8:15]}" for entry in journal.entries()]
    begun = ["given up q8/cccc", "deployed q8/cccc", "probe q8/cccc"]
    assert kinds == ["finished q5/aaaa", "finished q5/bbbb", *begun]
    assert prints("prune", "--yes") == f"Nothing to remove from {JOURNAL}.\n"


def test_what_plans_refer_to_stays_and_is_named(journal, prints, tmp_path):
    plans_of(last_of(journal, "aaaa"))
    elsewhere = tmp_path / "elsewhere.json"
    plans_of(last_of(journal, "bbbb"), elsewhere)
    output = prints("prune", "nexmark:", "--plans", str(elsewhere), "--yes")
    assert "kept: nexmark:q5/aaaa0000: weekly-plan.json refers to it; remove that file first" in output
    assert "kept: nexmark:q5/bbbb0000: elsewhere.json refers to it" in output
    assert [entry.key[8:15] for entry in journal.entries()] == ["q5/aaaa", "q5/bbbb"]
    plans_of(last_of(journal, "aaaa"), ".workbench/b.json")
    output = prints("prune", "aaaa")
    assert "kept: nexmark:q5/aaaa0000: b.json, weekly-plan.json refer to it; remove those files first" in output


def test_old_ones_are_removed_by_their_day(journal, run):
    run("prune", "--before", "2026-02-01", "--yes")
    assert {entry.key[8:15] for entry in journal.entries()} == {"q5/bbbb", "q8/cccc"}


@pytest.mark.usefixtures("journal")
@pytest.mark.parametrize("action", [(), ("show", "aaaa"), ("compare", "aaaa", "bbbb"), ("prune", "bbbb")])
def test_a_terminal_of_80_columns_has_no_line_that_is_too_wide(tmp_path, action):
    text = run_in_terminal([sys.executable, "-m", "workbench.cli", "journal", *action], tmp_path, 80)
    shown = CODES.sub("", text)
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
