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
