"""Logs that real Spark wrote, and what is true of them (`benchmarks/make_logs.py`)."""

import gzip
import json
import re
from pathlib import Path

import pytest

from workbench.observing import read_log
from workbench.study import observe

LOGS = Path(__file__).parents[3] / "data" / "logs"
TRUTH = json.loads((LOGS / "truth.json").read_text())


def test_a_load_that_does_not_move_has_a_bound():
    found = observe(LOGS / "constant.jsonl.gz").headroom
    truth = TRUTH["constant"]
    assert (found.rate, found.interval_s) == (None, 1.0)
    assert found.mean_rate == pytest.approx(truth["load"], rel=0.02)
    assert truth["load"] < found.at_least < truth["sustained"]


def test_a_query_that_was_restarted_sustains_what_its_sink_leaves_room_for():
    found = observe(LOGS / "restart.jsonl.gz")
    truth = TRUTH["restart"]
    assert found.running.starts == truth["starts"]
    assert found.headroom.interval_s == 1.0
    assert found.headroom.low < truth["sustained"] < found.headroom.high
    assert found.headroom.high < 1.5 * found.headroom.low


@pytest.mark.parametrize("kind", sorted(TRUTH))
def test_a_log_shows_its_slots_and_names_no_machine(kind):
    log = LOGS / f"{kind}.jsonl.gz"
    running = read_log(log)
    assert running.slots == 2
    assert running.blocks
    assert 0 < running.cpu_share < 1
    text = gzip.decompress(log.read_bytes()).decode()
    assert not re.findall(r"(?<![\w:/.])/\w+/\w+|(?:\d+\.){3}\d+", text)  # absolute paths and addresses
