"""What ``make demo`` runs, with commands in place of .venv's that say how they were called, and ``make test``."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def demo(tmp_path):
    def run(*, quota, code=0):
        for name, ends in (("python", int(not quota)), ("workbench", code)):
            command = tmp_path / name
            command.write_text(f'#!/bin/sh\n[ {name} = python ] || echo "ran $1"\nexit {ends}\n')
            command.chmod(0o755)
        (tmp_path / "ready").touch()
        given = [f"BIN={tmp_path}", f"READY={tmp_path / 'ready'}"]
        done = subprocess.run(["make", "demo", *given], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.returncode, [line for line in done.stdout.splitlines() if line.startswith("ran ")]

    return run


def test_the_demo_plans_where_quotas_are_permitted_and_measures_one_run_elsewhere(demo):
    assert demo(quota=True) == (0, ["ran plan"])
    assert demo(quota=False) == (0, ["ran measure"])


@pytest.mark.parametrize("quota", [True, False])
def test_a_demo_that_fails_does_nothing_else_instead(demo, quota):
    code, ran = demo(quota=quota, code=2)
    assert code != 0
    assert len(ran) == 1


def test_what_needs_the_machine_for_itself_is_where_make_looks_for_it():
    folders = re.search(r"^MEASURED := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if "pytest.mark.alone" in path.read_text()]
    here = Path(__file__)
    assert {path.parent for path in marked if path != here} == {ROOT / folder for folder in folders}
