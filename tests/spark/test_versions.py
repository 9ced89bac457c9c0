"""What is promised of other versions of Spark than the installed one: a plan is made there, and its log is observed."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.long]

ABSENT = 3  # what the benchmark ends with where no package index is reached
LONGEST_S = 1200
VERSIONS = "4.0.1", "4.1.1", "4.3.0"
DAY = datetime.now(UTC).toordinal() % len(VERSIONS)


@pytest.mark.parametrize("version", VERSIONS[DAY : DAY + 1] if os.environ.get("CI") else VERSIONS)  # CI: one a day
def test_plan_and_observe_run_on_another_version(version):
    ran = subprocess.run(
        [sys.executable, "benchmarks/versions.py", version, "--steps", "plan", "log", "observe"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
    )
    if ran.returncode == ABSENT:
        pytest.skip(ran.stderr.strip())
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "plan: 0" in ran.stdout
    assert "observe: 0" in ran.stdout
