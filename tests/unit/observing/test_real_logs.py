"""Logs that real Spark wrote, and what is true of them (`benchmarks/make_logs.py`)."""

import gzip
import json
import re
from pathlib import Path

import pytest

from workbench.answers.observed import answer
from workbench.answers.observed_changes import changes
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


def test_a_cap_that_the_source_does_not_tell_of_is_not_taken_for_the_load():
    found = observe(LOGS / "capped.jsonl.gz")
    room, truth = found.headroom, TRUTH["capped"]
    assert room.may_be_held
    assert room.mean_rate == pytest.approx(truth["admitted"], rel=0.05)
    assert truth["admitted"] < room.at_least < truth["sustained"]
    (row,) = answer(found, 0.0).rows
    assert row[0].value == "not identifiable"  # and not safe: it admits less than the load


def test_runs_that_take_what_is_available_are_summed_up():
    found = observe(LOGS / "available-now.jsonl.gz")
    truth = TRUTH["available-now"]
    assert [run.rows for run in found.running.runs] == truth["rows"]
    assert (found.ending.runs, found.ending.largest) == (truth["runs"], truth["largest"])
    assert answer(found, 0.0).about["trigger interval"] == "none: its runs end"


def test_a_join_of_two_inputs_keeps_all_of_them_on_disk():
    found = observe(LOGS / "two-inputs.jsonl.gz")
    (state,), truth = found.running.states, TRUTH["two-inputs"]
    assert not found.running.ends  # it was stopped
    assert found.headroom.peak_rate == pytest.approx(truth["load"], rel=0.1)  # two grains in 20
    assert state.instances == truth["instances"]
    assert state.rows_per_day == pytest.approx(truth["state_per_day"], rel=0.05)
    assert state.memory_per_day == 0 < state.disk_per_day
    said = " ".join(changes(found))
    assert "on disk a day" in said
    assert "meets the" not in said


def test_rows_that_the_watermark_dropped_are_counted():
    found = observe(LOGS / "late-rows.jsonl.gz")
    (state,) = found.running.states
    assert (state.dropped, state.rows_per_day) == (TRUTH["late-rows"]["late"], 0.0)
    assert 9 < state.lag_s < 12
    assert f"dedupe dropped {TRUTH['late-rows']['late']} rows that came after the watermark." in changes(found)


def test_a_table_that_is_never_compacted_is_a_drift_and_no_cost_of_rows():
    found, truth = observe(LOGS / "growing-table.jsonl.gz"), TRUTH["growing-table"]
    drift = found.headroom.drift
    assert found.headroom.mean_rate == pytest.approx(truth["load"], rel=0.03)
    assert drift.per_batch_s == pytest.approx(truth["per_batch_s"], rel=0.3)
    assert drift.low_s < truth["per_batch_s"] < drift.high_s
    assert "longer after each batch" in " ".join(changes(found))


@pytest.mark.parametrize("flow", TRUTH["pipeline"]["flows"])
def test_each_flow_of_a_pipeline_is_a_query_whose_run_ends(flow):
    found = observe(LOGS / "pipeline.jsonl.gz", query=f"spark_catalog.default.{flow}")
    assert [run.rows for run in found.running.runs] == [TRUTH["pipeline"]["rows"]]
    assert answer(found, 0.0).about["trigger interval"] == "none: its runs end"


@pytest.mark.parametrize("kind", sorted(TRUTH))
def test_a_log_shows_its_slots_and_names_no_machine(kind):
    log = LOGS / f"{kind}.jsonl.gz"
    running = read_log(log, query="spark_catalog.default.orders" if kind == "pipeline" else None)
    assert running.slots == 2
    assert running.blocks or running.ends
    assert 0 < running.cpu_share < 1
    text = gzip.decompress(log.read_bytes()).decode()
    assert not re.findall(r"(?<![\w:/.])/\w+/\w+|(?:\d+\.){3}\d+", text)  # absolute paths and addresses
