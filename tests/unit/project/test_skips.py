"""What is skipped where `CI` is set has failed: everything is installed and permitted there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    ("ci", "module", "counted"),
    [
        ("", "", "4 skipped, 1 xfailed"),
        ("false", "", "4 skipped, 1 xfailed"),
        ("true", "", "1 failed, 1 skipped, 1 xfailed, 2 errors"),
        ("true", "pytest.skip('no library', allow_module_level=True)", "1 error"),
    ],
)
def test_only_published_runs_may_be_missing_in_ci(tmp_path, ci, module, counted):
    (tmp_path / "test_skipped.py").write_text(SKIPPED + module)
    ours = {"CI": ci, "PYTEST_ADDOPTS": "", "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    alone = ("-p", "conftest", "-p", "no:cacheprovider", "--color=no", "--rootdir", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *alone, tmp_path],
        env=os.environ | ours,
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.search(r"=+ (.+) in ", done.stdout.splitlines()[-1])[1] == counted, done.stdout
    assert ("In CI nothing may be skipped." in done.stdout) == (ci == "true")
