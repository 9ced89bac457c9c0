"""What ``make demo`` runs, with commands in place of .venv's that say how they were called, and what may be skipped."""

import os
import re
import subprocess
import sys
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


SKIPPED = """
import published_runs, pytest

@pytest.fixture
def lacking(): pytest.skip("no small disk")

def test_fixture(lacking): pass
def test_body(): pytest.skip("no broker")

@pytest.mark.skipif(True, reason="no quota")
def test_mark(): pass

@published_runs.needed("no such file")
def test_published(): pass

@pytest.mark.xfail(strict=True)
def test_expected(): raise AssertionError
"""


@pytest.mark.parametrize(
    ("ci", "counted"), [("false", "5 skipped, 1 xfailed"), ("true", "1 failed, 1 skipped, 1 xfailed, 3 errors")]
)
def test_only_published_runs_may_be_missing_in_ci(tmp_path, ci, counted):
    (tmp_path / "test_skipped.py").write_text(SKIPPED)
    (tmp_path / "test_whole.py").write_text("import pytest\npytest.skip('no library', allow_module_level=True)\n")
    ours = {"CI": ci, "PYTEST_ADDOPTS": "", "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    options = ["-p", "conftest", "-p", "no:cacheprovider", "--color=no", "--continue-on-collection-errors", "--rootdir"]
    command = [sys.executable, "-m", "pytest", *options, tmp_path, tmp_path]
    done = subprocess.run(command, env=os.environ | ours, capture_output=True, text=True, check=False)
    assert re.search(r"=+ (.+) in ", done.stdout.splitlines()[-1])[1] == counted, done.stdout
    assert ("In CI nothing may be skipped." in done.stdout) == (ci == "true")
