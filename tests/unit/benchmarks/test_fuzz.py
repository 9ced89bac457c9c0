"""What reads withstands wrong input: a few inputs of each reader; benchmarks/fuzz.py tries thousands."""

import ctypes
import random
import subprocess
import sys
from pathlib import Path

import pytest
from benchmark_script import BENCHMARKS
from examples import SHARE

sys.path.insert(0, str(BENCHMARKS))

from fuzzing.mutations import change, mutate
from fuzzing.sandbox import PRINTED, carry_out

INPUTS = round(40 * SHARE)  # of each; the benchmark tries thousands
NAMES = (
    "data set",
    "event log",
    "journal",
    "keys",
    "prices",
    "progress",
    "rates",
    "recorded rates",
    "replay's arguments",
    "report parameters",
    "response",
    "study",
    "user's module",
)
"""Readers that need no compiled placement search: its compilation alone takes half a minute."""


class Asked:
    """An input of the sandbox: what to do."""

    files = {"a.txt": b"content"}  # noqa: RUF012 - nothing changes it

    def __init__(self, do):
        self.arguments = do


def outcome(do):
    return next(carry_out([Asked(do)], lambda asked: asked()))


def test_what_an_input_comes_to_is_told_apart(monkeypatch):
    monkeypatch.setattr("fuzzing.sandbox.CPU_S", 0.3)

    def spin():
        while True:
            pass

    def say(text, code=0):
        def do():
            print(text, file=sys.stderr if code else sys.stdout)
            return code

        return do

    asked = {
        "answered": [say("fine"), say("not sustained", 1), say('{"name": "1e308, nan", "rate": 1e9}')],
        "refused": [
            say("The module raised MemoryError.", 2),
            say(f"{PRINTED}\nNo.", 2),
            say("run 1 of at most 40 · 2 slots\n" * 400 + "No.", 2),
        ],
        "traceback": [lambda: 1 / 0, lambda: 70],
        "hang": [spin],
        "memory": [lambda: len(bytearray(3 << 30))],
        "crash": [lambda: ctypes.string_at(0), lambda: Path("pwned").touch()],
        "exit code": [lambda: sys.exit(7)],
        "no sense": [say("rate: nan"), say('{"rate": 1e300}'), say("9" * 300), say("", 2), say("x" * 9_000, 2)],
    }
    for kind, all_of_them in asked.items():
        assert [outcome(do).kind for do in all_of_them] == [kind] * len(all_of_them)


def test_an_input_that_kills_its_process_does_not_cost_the_next():
    cases = [Asked(lambda: 0), Asked(lambda: sys._exit(3)), Asked(lambda: __import__("os")._exit(3)), Asked(lambda: 0)]
    assert [one.kind for one in carry_out(cases, lambda do: do())] == ["answered", "traceback", "exit code", "answered"]


def test_each_input_has_its_own_module_whatever_its_name():
    def own():
        Path("called.py").write_text(f"PLACE = {str(Path.cwd())!r}")
        sys.path.insert(0, str(Path.cwd()))
        try:
            return 0 if str(Path.cwd()) == __import__("called").PLACE else 1 / 0
        finally:
            del sys.path[0]

    assert [one.kind for one in carry_out([Asked(own)] * 3, lambda do: do())] == ["answered"] * 3


def test_a_value_whose_tag_does_not_fit_it_is_changed_as_bytes():
    content = b"targets: [!!timestamp x]\n"
    assert all(mutate(content, ".yaml", random.Random(seed)) for seed in range(20))


@pytest.mark.parametrize("suffix", [".json", ".yaml", ".jsonl", ".csv", ".py", ".parquet"])
def test_mutations_depend_on_the_seed_and_change_what_they_get(suffix):
    content = {".csv": b"a,b\n1,2\n", ".py": b"def f():\n    return 1\n"}.get(suffix, b'{"a": [1, {"b": "c"}]}')
    made = [mutate(content, suffix, random.Random(seed)) for seed in range(200)]
    assert made == [mutate(content, suffix, random.Random(seed)) for seed in range(200)]
    assert sum(one != content for one in made) > 150


def test_readers_withstand_wrong_input(tmp_path):
    """Always the same inputs; to try others: python benchmarks/fuzz.py all --inputs 10000 --seed 1."""
    command = [sys.executable, str(BENCHMARKS / "fuzz.py"), *NAMES, "--inputs", str(INPUTS), "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr[-3000:]}"
    assert [line[:22].strip() for line in done.stdout.splitlines()] == ["reader", *NAMES]


def test_a_change_leaves_what_it_was_given():
    tree = {"a": [1, 2], "b": {"c": None}}
    for seed in range(50):
        change(tree, random.Random(seed))
    assert tree == {"a": [1, 2], "b": {"c": None}}
