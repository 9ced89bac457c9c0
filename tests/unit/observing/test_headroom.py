"""The rate that a query sustains, found from batches of a load that may never reach it; and that load."""

from dataclasses import replace

import numpy as np
import pytest
from event_log_lines import BEGIN, committed, job, node, plan_of, stage, state, task
from written_logs import TRUE, a_day, events, progress_of, written

from workbench.capacity.model import fit_micro_batch
from workbench.errors import WorkbenchError
from workbench.observing import as_measurement, headroom, read_log
from workbench.observing.running_query import SeenBatch, block_of, load_of
from workbench.study import observe
from workbench.testbed.spark import EventLog


def test_the_rate_is_told_from_a_load_that_never_reaches_it_and_the_farther_it_is_the_wider_is_its_interval(tmp_path):
    widths = []
    for share in (0.3, 0.5, 0.7):
        found = headroom(read_log(written(tmp_path / "log", events(a_day(share * TRUE), seed=3))).batches, 2.0)
        assert found.rate == pytest.approx(TRUE, rel=0.05)
        assert found.low < TRUE < found.high
        assert found.peak_rate == pytest.approx(share * TRUE, rel=0.05)
        assert found.reach == pytest.approx(1 / share, rel=0.1)
        assert found.left == pytest.approx(1 / share - 1, rel=0.15)
        assert found.fixed_s == pytest.approx(0.22, abs=0.02)
        widths.append(found.high / found.low)
    assert widths == sorted(widths, reverse=True)


def test_batches_of_a_query_that_is_behind_are_maxima_that_were_seen(tmp_path):
    seen = read_log(written(tmp_path / "log", events(a_day(1.4 * TRUE))))
    found = headroom(seen.batches, 2.0)
    assert found.behind > 0.1
    assert found.reach <= 1
    assert found.rate == pytest.approx(TRUE, rel=0.03)


SCATTERED = [0.0005 * TRUE * (1 + place % 9) for place in range(200)]


@pytest.mark.parametrize(
    ("log", "why_not"),
    [
        (events([0.5 * TRUE] * 60), "the load hardly moved"),
        (events(a_day(0.5 * TRUE), driver_s=2.5), "longer than the trigger interval of 2 s, .*; set a longer interval"),
        (events(a_day(0.5 * TRUE, batches=15)), "it takes 20 batches, and the log has 10 on 4 slots"),
        (events(SCATTERED, driver_s=1.0, noise=0.5), "beyond their scatter|no line can be trusted"),
    ],
)
def test_what_shows_no_rate_says_why(tmp_path, log, why_not):
    seen = read_log(written(tmp_path / "log", log))
    found = headroom(seen.batches, 2.0)
    assert (found.rate, found.left) == (None, None)
    with pytest.raises(WorkbenchError, match=f"is not identifiable from its log: .*({why_not})"):
        as_measurement(seen, found)
    one = seen.batches[:1]
    assert headroom([replace(one[0], slots=1)], 2.0).why_not.endswith("the log has 1 on 1 slot")
    assert headroom([replace(one[0], slots=0)], 2.0).why_not.endswith("the log has 1")


def test_a_log_is_a_measurement_whose_batch_is_explained(half):
    seen = read_log(half)
    run = as_measurement(seen, headroom(seen.batches, 2.0))
    parts = fit_micro_batch([run])
    assert parts is not None
    assert parts.explains
    assert parts.rate(4, 4, 2.0) == pytest.approx(TRUE, rel=0.06)
    assert [stage.name for stage in parts.stages] == ["1 scan", "2 aggregate"]
    assert run.estimate.middle == pytest.approx(headroom(seen.batches, 2.0).rate)
    assert run.testbed_kind == "observed"


def test_full_batches_of_a_backlog_are_no_peak(tmp_path):
    log = list(events(a_day(0.3 * TRUE)))
    for told in progress_of(log)[60:70]:
        told["sources"][0] |= {"numInputRows": int(1.8 * TRUE), "endOffset": {"orders": {"0": int(1.8 * TRUE)}}}
        told["sources"][0]["metrics"] = {"avgOffsetsBehindLatest": "1200.0"}
        told["durationMs"]["triggerExecution"] = 1900
    found = headroom(read_log(written(tmp_path / "log", log)).batches, 2.0)
    assert found.admitted_rate == pytest.approx(0.9 * TRUE, rel=0.01)
    assert found.peak_rate == pytest.approx(0.3 * TRUE, rel=0.1)


def batch(start_s, batch_s, rows, *, slots=4, since_s=2.0, idle_s=1.0, left_rows=False):
    return SeenBatch(start_s, batch_s, rows, slots, since_s, idle_s, left_rows)


def test_a_default_trigger_has_the_peak_of_its_short_batches():
    """Batches follow each other every half second, at 1,000 to 30,000 records/s, judged for an interval of 10 s."""
    rates = a_day(30_000, batches=600, night=1 / 30)
    seen = [batch(0.5 * n, 0.5, round(0.5 * rate), since_s=0.5, idle_s=0.0) for n, rate in enumerate(rates)]
    assert load_of(seen, 10.0).peak_rate == pytest.approx(30_000, rel=0.02)


def test_rows_that_come_after_a_pause_came_within_an_interval():
    """The load comes every fifteen minutes, and the triggers in between are not in the log."""
    seen = [batch(900.0 * n, 1.0, 30_000 + 100 * n, since_s=900.0, idle_s=899.0) for n in range(30)]
    assert load_of(seen, 2.0).peak_rate == pytest.approx(16_400, rel=0.02)


@pytest.mark.parametrize("early", [6, 40])
def test_a_batch_that_is_told_too_late_leaves_the_peak_as_it_is(tmp_path, early):
    """As in a file of progress events that was put together from several."""
    log = list(events(a_day(0.5 * TRUE)))
    told = progress_of(log)
    bare = written(tmp_path / "log", [event for event in log if "progress" not in event])

    def peak(ordered):
        lines = written(tmp_path / "progress.jsonl", ordered)
        return load_of(read_log(bare, progress=lines).batches, 2.0).peak_rate

    late = [*told[: early - 1], *told[early : early + 9], told[early - 1], *told[early + 9 :]]
    assert peak(late) == pytest.approx(peak(told), rel=0.02)


def test_two_inputs_that_release_whole_seconds_have_the_peak_of_their_sum():
    """A batch of a second holds one second of a source or two, and then none."""
    rng = np.random.default_rng(0)
    fires = np.arange(200) + rng.uniform(0, 0.1, 200)
    parts = [np.diff(np.floor(fires + phase), prepend=0.0) * rate for phase, rate in ((0.95, 200), (0.93, 300))]
    seen = [
        replace(batch(at_s, 0.5, int(sum(both)), since_s=at_s - before_s), by_source=tuple(map(int, both)))
        for at_s, before_s, *both in zip(fires, np.roll(fires, 1), *parts, strict=True)
    ][1:]
    assert max(one.rows for one in seen) > 600
    assert load_of(seen, 1.0).peak_rate == pytest.approx(500, rel=0.08)


def test_the_peak_is_that_of_all_slots():
    few = [batch(2.0 * n, 1.0, 8_000 + 50 * n) for n in range(60)]
    many = [batch(200 + 2.0 * n, 1.0, 40_000 + 300 * n, slots=12) for n in range(40)]
    found = headroom([*few, *many], 2.0)
    assert found.peak_rate == pytest.approx(25_800, rel=0.02)
    assert found.left_out == 40
    assert found.batches == 60


def test_a_cap_bounds_what_the_query_carries():
    """A cap of 5,000 records/s, and a load that asks for up to 6,000: what waits is let in later."""
    rates = np.minimum(5_000, a_day(6_000, batches=200))
    noise = np.random.default_rng(0).normal(0, 0.002, 200)
    seen = [
        batch(2.0 * n, 0.2 + 2 * rate / 5e4 + noise[n], round(2 * rate), left_rows=rate == 5_000)
        for n, rate in enumerate(rates)
    ]
    found = headroom(seen, 2.0)
    assert found.admitted_rate == pytest.approx(5_000, rel=0.01)
    assert found.rate > 30_000
    assert found.capped
    assert found.left == found.admitted_rate / found.peak_rate - 1 < 0.05


@pytest.mark.parametrize("batches", [60, 120, 1200])
@pytest.mark.parametrize("most", [5_000, 6_000])  # the load stays for a while where it would rise above 5,000
def test_a_load_that_rises_and_falls_or_stays_is_no_cap(batches, most):
    rates = np.minimum(5_000, a_day(most, batches=batches))
    found = load_of([batch(2.0 * n, 1.0, round(2 * rate)) for n, rate in enumerate(rates)], 2.0)
    assert found.admitted_rate is None
    if most > 5_000:
        assert found.peak_rate == pytest.approx(5_000)


def test_a_cap_that_held_every_batch_is_named():
    full = [batch(2.0 * n, 1.0 + 0.01 * (n % 3), 20_000, left_rows=True) for n in range(60)]
    assert headroom(full, 2.0).why_not.startswith("a cap held the batches (maxOffsetsPerTrigger): nine in ten batches")


def test_few_larger_batches_show_what_rows_cost_where_batches_scatter_little():
    """One catch-up among batches of one size."""
    rows = [32_000] * 70 + [60_000] * 10 + [32_000] * 70
    for scatter, shows in ((0.01, True), (4.0, False)):
        noise = np.random.default_rng(0).normal(0, scatter, len(rows))
        seen = [batch(2.0 * n, max(0.1, 0.4 + one / 25_000 + noise[n]), one) for n, one in enumerate(rows)]
        found = headroom(seen, 2.0)
        assert (found.rate is not None) == shows
        if shows:
            assert found.low < (2 - 0.4) * 25_000 / 2 < found.high
        else:
            assert "or there are too few of them; give a log with more batches of both kinds" in found.why_not


def test_no_plan_where_the_driver_takes_the_batch_is_not_to_be_mended_by_more_budgets(tmp_path):
    log = written(tmp_path / "log", events(a_day(6_000), driver_s=1.9))
    found = observe(log, targets=[1e6])
    assert found.headroom.rate is not None
    assert "the driver takes almost all of it" in found.unplanned
    assert "Explore more budgets" not in found.unplanned


def test_a_clock_that_is_set_back_leaves_the_load_as_it_is():
    usual = [batch(2.0 * place, 1.0, 1000) for place in range(100)]
    back = [replace(one, start_s=one.start_s - 3600.0 * (one.start_s >= 100.0)) for one in usual]
    assert load_of(back, 2.0).mean_rate == pytest.approx(load_of(usual, 2.0).mean_rate, rel=0.02)


def test_jobs_on_a_tables_log_are_a_part_of_a_batch_and_no_operator(tmp_path):
    (tmp_path / "log").touch()
    inner = {"spark.sql.execution.root.id": "3"}
    events = [BEGIN[0], job(1), task(1, 0, scanned=100), stage(1), plan_of(4, node("Scan json file:/lake/_delta_log"))]
    events += [job(2, execution=4, **inner), *(task(2, number, read=9) for number in range(4)), stage(2)]
    batch = committed(EventLog(tmp_path / "log"), events, state(9, 1_500))
    batches = [replace(batch, progress=batch.progress | {"timestamp": f"2026-11-30T12:00:0{n}Z"}) for n in range(4)]
    seen = block_of(batches, 2).observation
    assert [one.operator for one in seen.operators] == ["1 scan"]
    assert (seen.writes.jobs_s, seen.writes.jobs_at_once) == pytest.approx((0.4, 4.0))
    assert seen.busy_s == pytest.approx(3 * (0.1 + 0.4))
    assert block_of([replace(one, jobs=()) for one in batches], 2).observation.writes is None
