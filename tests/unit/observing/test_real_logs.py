"""Logs that real Spark wrote (`benchmarks/make_logs.py`), what people published of theirs, and what is true of them."""

import csv
import gzip
import json
import re
from pathlib import Path

import pytest
from published_runs import CASES, cases_needed
from written_logs import BEGUN, progress, written

from workbench.answers.observed import answer
from workbench.answers.observed_changes import changes
from workbench.cli import main
from workbench.observing import headroom, read_log
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


@cases_needed
def test_an_event_log_of_spark_3_1_has_no_trigger_interval():
    found = observe(CASES / "01-spark31-kafka-wordcount" / "local-1596020211915")
    assert found.running.name == "8d268dc2-bc9c-4be8-97a9-b135d2943028"
    assert found.running.triggers == found.running.with_rows == 8
    assert found.running.at_once
    assert not found.running.ends
    assert (found.headroom.rate, found.headroom.interval_s) == (None, 0.0)
    assert "runs as fast as it can: there is no trigger interval" in found.headroom.why_not
    assert "it takes 20 batches, and the log has 3" in found.headroom.why_not


@cases_needed
def test_a_log_of_the_driver_of_spark_2_4_is_read_as_progress(capsys):
    log = CASES / "03-driver-log-spark24" / "driver.log"
    running = read_log(log)
    assert (running.name, running.triggers, running.with_rows) == ("agg_query", 150, 1)
    assert running.batches == ()
    assert running.runs[0].largest == 1
    assert main(["observe", str(log)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "1 of 150 batches holds rows, so no capacity can be given" in said
    assert "left out as start-up" in said
    assert "--slots" in said


@cases_needed
def test_a_line_through_batches_whose_time_hardly_depends_on_rows_is_carried_nowhere(tmp_path):
    """The largest batch that was published took 800,000 rows in 17.67 s; those before it hold 25,000 at most."""
    with (CASES / "04-sfcrime-tuning-tables" / "rates.csv").open() as lines:
        told = [one for one in csv.DictReader(lines) if "27218395398" in one["source"]]
    sizes = [int(one["num_input_rows"]) for one in told]
    lasted = [int(one["num_input_rows"]) / float(one["processed_rows_per_s"]) for one in told]
    (largest_s,) = (seconds for rows, seconds in zip(sizes, lasted, strict=True) if rows == 800_000)
    truth = 800_000 / largest_s
    for known in (2, 4):
        log = [
            progress(number, sizes[number % known], BEGUN + 20 * number, batch_s=lasted[number % known])["progress"]
            for number in range(120)
        ]
        found = headroom(read_log(written(tmp_path / "log", log)).batches, largest_s)
        assert found.rate is None
        assert "that far no line can be trusted" in found.why_not
        assert 0.01 * truth < found.at_least < truth
