"""The fault table: one row per fault, from what the tests recorded."""

import json

import benchmark_script
import pytest

FAULT = {"fault": "the disk is full", "times": 3, "sees": ["No space left"], "lost": "nothing", "left": "nothing"}


@pytest.fixture(scope="module")
def faults():
    return benchmark_script.load("faults")


def case(name, inner="", **changes):
    text = json.dumps(FAULT | changes).replace('"', "&quot;")
    return f'<testcase name="{name}"><properties><property name="fault" value="{text}"/></properties>{inner}</testcase>'


def rows(faults, tmp_path, *cases):
    file = tmp_path / "results.xml"
    file.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    return faults.results(file)


def test_tests_of_one_fault_are_one_row(faults, tmp_path):
    (row,) = rows(faults, tmp_path, case("a"), case("b", times=2, sees=["No space left", "Make room"]))
    assert (row["times"], row["sees"], row["result"]) == (5, ["No space left", "Make room"], "as it must")


def test_a_test_that_failed_or_was_skipped_says_so(faults, tmp_path, capsys):
    failed, skipped = rows(
        faults,
        tmp_path,
        case("a", '<failure message="assert"/>'),
        case("b", '<skipped message="may not mount"/>', fault="small disk"),
    )
    assert failed["result"] == "FAILED"
    assert (skipped["times"], skipped["result"]) == (0, "skipped: may not mount")
    faults.show([failed, skipped])
    shown = capsys.readouterr().out
    assert "2 faults, injected 3 times" in shown
    assert shown.count("?") == 2  # nothing is said of what a failed one lost and left


def test_every_file_with_a_fault_is_run(faults):
    names = {file.rpartition("/")[2] for file in faults.marked()}
    assert {"test_command.py", "test_simulated.py", "test_journal.py"} <= names
    assert "test_checks.py" not in names
