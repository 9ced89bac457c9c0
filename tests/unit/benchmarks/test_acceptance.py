"""The list of promises: well-formed, and the tests it names are there."""

import sys

import benchmark_script
import pytest


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
