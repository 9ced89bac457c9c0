"""``make demo``: what it runs, with commands in place of those of .venv that only say how they were called."""

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
