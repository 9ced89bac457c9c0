"""What the benchmarks list, run and make of what they measured."""

import json
import math
import sys

import benchmark_script
import pytest

from workbench.dataflow import Budget, SlotProfile
from workbench.defaults import LEAST_HEAP_MB
from workbench.testbed.spark.driver.session import divide_memory


@pytest.fixture(scope="module")
def acceptance():
    return benchmark_script.load("acceptance")


def test_every_part_has_promises_with_unique_names(acceptance):
    found = list(acceptance.promises())
    assert {promise.about for promise in found} == set(acceptance.ABOUT)
    assert len({promise.name for promise in found}) == len(found)


def test_tests_that_are_named_are_there(acceptance):
    missing = [file for promise in acceptance.promises() for file in promise.missing if file.startswith("tests/")]
    assert missing == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("-c 'print(1); print(2.5)'", ("shown", ["2.5"])),
        ("-c 'print(1); raise SystemExit(3)'", ("FAILED", ["1"])),
        ("benchmarks/none.py", ("MISSING", ["missing: benchmarks/none.py"])),
    ],
)
def test_a_promise_is_shown_with_its_figure(acceptance, monkeypatch, tmp_path, command, expected):
    monkeypatch.setattr(acceptance, "KEPT", tmp_path)
    promise = acceptance.Promise("look", "Something Good", (command,), "minutes", None)
    assert acceptance.show(promise)[::2] == expected
    if expected[0] != "MISSING":
        assert (tmp_path / "look-something-good.txt").read_text().startswith("$ python -c")


def test_all_is_shown_unless_a_part_is_asked_for(acceptance, monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(acceptance, "show", lambda one: ran.append(one) or ("shown", 0.0, []))
    monkeypatch.setattr(sys, "argv", ["acceptance"])
    assert acceptance.main() == 0
    assert ran == list(acceptance.promises())
    ran.clear()
    monkeypatch.setattr(sys, "argv", ["acceptance", "--needs", "browser"])
    assert acceptance.main() == 0
    assert {one.needs for one in ran} == {"browser"}
    assert f"{len(ran)} shown, 0 FAILED, 0 MISSING" in capsys.readouterr().out


def test_nothing_of_the_list_runs_when_it_is_listed(acceptance, monkeypatch, capsys):
    monkeypatch.setattr(acceptance, "show", None)
    monkeypatch.setattr(sys, "argv", ["acceptance", "--list", "--about", "look"])
    assert acceptance.main() == 0
    assert "axe-core" in capsys.readouterr().out


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


@pytest.fixture(scope="module")
def growth():
    return benchmark_script.load("growth")


@pytest.fixture(scope="module")
def soak():
    return benchmark_script.load("soak")


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_is_that_of_the_last_sizes(growth, power):
    rows = [{"size": size, "cpu_s": 1.0 if size < 100 else (size / 100) ** power} for size in (1, 10, 100, 1000, 10000)]
    assert growth.exponent(rows, "cpu_s", 0.01) == pytest.approx(power)


@pytest.mark.parametrize(("leak_mb", "flat"), [(0.0, True), (0.2, False)])
def test_memory_that_grows_in_the_second_half_is_seen(soak, capsys, leak_mb, flat):
    seen = [{"memory, MB": 100.0 + min(number, 20) + leak_mb * number, "threads": 4} for number in range(100)]
    assert soak.judged("work", 100, seen)["flat"] == {"memory, MB": flat, "threads": True}
    assert ("GROWS" in capsys.readouterr().out) != flat


def test_what_is_too_small_to_be_seen_has_no_exponent(growth):
    assert math.isnan(growth.exponent([{"size": size, "cpu_s": 1e-3} for size in (1, 10, 100)], "cpu_s", 0.01))


def test_a_size_that_takes_too_long_or_fails_ends_its_series_with_the_reason(growth, monkeypatch, capsys):
    answers = {1_000: {"size": 1_000, "cpu_s": 1.0, "peak_mb": 9.0, "added_mb": 5.0}, 3_000: "more than 7 s"}
    monkeypatch.setattr(growth, "grown", lambda _name, size, _limit: answers[size])
    found = growth.measure("append", 10**9, 7)
    assert (len(found["rows"]), found["ended"]) == (1, "3,000: more than 7 s")
    assert "WORSE than n log n" in capsys.readouterr().out


def test_every_budget_of_the_extrapolation_leaves_spark_its_heap():
    extrapolation = benchmark_script.load("extrapolation")
    for cpus, large in extrapolation.LARGE.items():
        profile = SlotProfile(cpus, extrapolation.MEMORY_MB[cpus])
        assert divide_memory(Budget(max(large), profile, 2.0)).heap_mb >= LEAST_HEAP_MB


def test_sixteen_budgets_of_streambeds_check_leave_spark_its_heap():
    budgets = benchmark_script.load("streambed_check").spark_budgets()
    assert len(set(budgets)) == 16
    assert all(divide_memory(budget).heap_mb >= LEAST_HEAP_MB for budget in budgets)
