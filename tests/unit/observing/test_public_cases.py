"""What people published of their streaming jobs, and what is true of it; skipped where the cases are absent."""

import csv

from published_runs import CASES, cases_needed
from written_logs import BEGUN, progress, written

from workbench.cli import main
from workbench.observing import headroom, read_log
from workbench.study import observe

pytestmark = cases_needed


def test_an_event_log_of_spark_3_1_has_no_trigger_interval():
    found = observe(CASES / "01-spark31-kafka-wordcount" / "local-1596020211915")
    assert found.running.name == "8d268dc2-bc9c-4be8-97a9-b135d2943028"
    assert found.running.triggers == found.running.with_rows == 8
    assert found.running.at_once
    assert not found.running.ends
    assert (found.headroom.rate, found.headroom.interval_s) == (None, 0.0)
    assert "runs as fast as it can: there is no trigger interval" in found.headroom.why_not
    assert "it takes 20 batches, and the log has 3" in found.headroom.why_not


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
