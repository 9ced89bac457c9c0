"""An estimate from warm-up to bracket, on a run whose truth is known, also next to neighbours; StreamBed's schedule."""

import math
import random
from dataclasses import replace
from types import SimpleNamespace

import pytest
from cold_driver import ColdRun
from refusals import refusals
from simulated_run import SimulatedRun, bracket_of, estimate

from workbench.defaults import PATIENCE_S
from workbench.errors import WorkbenchError
from workbench.measuring import STATEFUL_QUERIES, CapacityEstimator, judge
from workbench.measuring.schedules import AdaptiveSchedule, Grid, StreamBedSchedule
from workbench.metrics import HeldRows
from workbench.records import overrun_s

GRID = Grid(0.01)


def test_bracket_is_two_neighbours_around_the_truth_at_any_interval():
    run = SimulatedRun()
    result = estimate(run)
    assert result.low <= run.truth < result.high
    assert result.high == pytest.approx(result.low * 1.01)
    assert result.rate == pytest.approx(result.low, rel=0.01)
    assert (result.limit, result.steady, result.exhausted) == ("query", True, False)
    assert result.observation is result.probes[1].observation
    # the warm-up and the two ends: the line finds them at once
    assert [probe.number for probe in result.probes] == [0, 1, 2]
    assert result.seconds == pytest.approx(run.now)
    assert result.probes[2].started_s == pytest.approx(result.probes[0].seconds + result.probes[1].seconds)
    run = SimulatedRun(interval_s=10.0)
    result = estimate(run)
    assert result.low <= run.truth < result.high
    assert result.probes[1].observation.elapsed_s <= 60.0


@pytest.mark.parametrize(
    "fields", [{"max_rate": 5.0}, {"max_rate": GRID.rate(100)}, {"min_rate": 500.0, "max_rate": 500.0}]
)
def test_a_highest_rate_far_below_the_warm_ups_is_tried(fields):
    result = estimate(SimulatedRun(), **fields)
    assert [GRID.index(probe.rate) for probe in result.probes[1:]] == [GRID.below(fields["max_rate"])]
    assert (result.low, result.high) == (GRID.rate(GRID.below(fields["max_rate"])), math.inf)
    assert (result.limit, result.exhausted) == ("none", False)


@pytest.mark.parametrize(("fixed_s", "fits"), [(2.6, False), (1.9, True)])
def test_an_estimate_ends_where_a_batch_of_few_rows_takes_longer_than_the_interval(fixed_s, fits):
    run = ColdRun(0, scatter=0.0, warms_in_s=1.0, start=60.0)
    run.fixed_s = fixed_s
    result = estimate(run)
    assert (result.rate is not None) == fits
    if fits:
        assert overrun_s(result.probes, run.interval_s) is None
    else:
        assert len(result.probes) <= 5  # the warm-up, two that give a line, and two at half and a quarter
        assert overrun_s(result.probes, run.interval_s) == pytest.approx(fixed_s, rel=0.1)


@pytest.mark.parametrize(("seconds", "overrun"), [((2.2, 3.8, 4.7), None), ((2.2, 2.3, 2.5), 2.2)])
def test_a_lower_rate_may_fit_where_batches_go_through_a_state_that_grows_with_the_rate(seconds, overrun):
    def probe(rate, took_s):
        batches = [SimpleNamespace(duration_s=took_s)]
        observation = SimpleNamespace(batches=batches, lasting=batches, operators=())
        judgement = SimpleNamespace(disturbed=False)
        return SimpleNamespace(
            phase="probe",
            rate=rate,
            observation=observation,
            judgement=judgement,
            filled=True,
            answered="overloaded".__eq__,
        )

    probes = [probe(rate, took_s) for rate, took_s in zip((850.0, 1_720.0, 3_490.0), seconds, strict=True)]
    assert overrun_s(probes, 2.0) == overrun


class Remembering(ColdRun):
    """A run whose batches go through the state that the highest rate so far has left."""

    left = most = 0.0

    def set_rate(self, rate):
        super().set_rate(rate)
        self.most = max(self.most, 0.0 if math.isinf(rate) else rate)
        self.fixed_s = 0.3 + self.left * self.most

    def empty(self):
        self.most = 0.0
        return super().empty()

    def observe(self, seconds):
        seen = super().observe(seconds)
        return replace(seen, operators=tuple(replace(one, kind="join", state_bytes=1) for one in seen.operators))


def test_a_rate_does_not_pay_for_the_state_that_a_far_higher_one_left():
    run = Remembering(0, scatter=0.0, warms_in_s=1.0, start=60.0, row_s=1e-5, first_rows=400_000)
    run.left = 2e-5  # seconds of a batch for each record/s: as much as the rows that arrive in an interval
    result = estimate(run)
    sustained = (run.interval_s - 0.3) / (run.left + run.interval_s * 1e-5)  # records/s
    assert result.low <= 1.05 * sustained
    assert result.low >= 0.7 * sustained


def test_steps_from_an_end_that_the_line_is_near_are_small_on_a_coarse_grid_too():
    run = Remembering(0, scatter=0.0, warms_in_s=1.0, start=60.0, row_s=1e-5, first_rows=60_000)
    run.left = 8e-5
    result = estimate(run, tolerance=0.25)
    sustained = (run.interval_s - 0.3) / (run.left + run.interval_s * 1e-5)
    assert result.low <= sustained <= result.high
    assert min(probe.rate for probe in result.probes) > 0.6 * sustained


class Young(ColdRun):
    """A run whose state is a fraction of what it will be at each rate, and whose batches will be longer with all."""

    lacking = 0.0  # seconds of a batch for each record/s

    def observe(self, seconds):
        seen = super().observe(seconds)
        return seen if math.isinf(self.rate) else replace(seen, lacking_s=self.lacking * self.rate)


def test_a_rate_counts_what_its_state_will_add_once_it_is_full():
    run = Young(0, scatter=0.0, warms_in_s=1.0, start=60.0, row_s=1e-5, first_rows=400_000)
    run.lacking = 1e-4
    result = estimate(run)
    sustained = (run.interval_s - run.fixed_s) / (run.lacking + run.interval_s * 1e-5)
    assert 0.8 * sustained <= result.low <= 1.05 * sustained <= 1.4 * result.low
    assert result.high <= 1.3 * sustained
    assert len(result.probes) <= 10
    run = Young(0, scatter=0.0, warms_in_s=1.0, start=60.0, row_s=1e-5, first_rows=400_000)
    run.lacking = 2e-4
    first, second = sorted({one.rate for one in estimate(run).probes if math.isfinite(one.rate)}, reverse=True)[:2]
    taken_s = run.fixed_s + first * (run.interval_s * 1e-5 + run.lacking)
    assert second == pytest.approx(first * run.interval_s / taken_s, rel=0.02)


class Filled(Young):
    """A run whose rows stay long: its state is that of the rate at which it was filled."""

    def __init__(self, *_, **settings):
        super().__init__(0, scatter=0.0, warms_in_s=1.0, row_s=1e-5, **settings)
        self.filled_at, self.fillings = 0.0, []

    def fill(self, least_s, most_s):
        self.filled_at = max(self.filled_at, self.rate)
        self.fillings.append(self.rate)
        self.fixed_s = 0.3 + 1e-4 * self.filled_at
        return super().fill(least_s, most_s)

    def observe(self, seconds):
        return replace(super().observe(seconds), held=(HeldRows("join", 600 * self.filled_at, 600.0),))


def test_a_far_higher_rate_is_judged_with_a_state_of_its_own():
    run = Filled(start=60.0)
    verdicts = {
        one.rate: one.judgement.verdict
        for one in CapacityEstimator(clock=run.clock).probes_at(run, [5_000.0, 16_000.0])
    }
    assert verdicts == {5_000.0: "sustained", 16_000.0: "overloaded"}
    assert run.fillings == [5_000.0, 16_000.0]


def test_source_limit_is_not_the_querys_mst_and_a_source_bound_probe_never_counts():
    run = SimulatedRun(source_limit=1.2 * 5000.0)
    result = estimate(run)
    assert (result.high, result.limit) == (math.inf, "source")
    assert result.low == GRID.rate(GRID.below(5000.0))
    assert all(rate <= 5000.0 for _, rate in run.commands if math.isfinite(rate))

    class LateProfile(SimulatedRun):
        def observe(self, seconds):
            seen = super().observe(seconds)
            return (
                seen if self.rate > 6000.0 and math.isfinite(self.rate) else replace(seen, source_rate_limit=math.inf)
            )

    result = estimate(LateProfile(source_limit=1.2 * 6000.0))
    assert result.probes[1].judgement.verdict == "source-bound"
    assert (result.low, result.high, result.limit) == (GRID.rate(GRID.below(6000.0)), math.inf, "source")


test_a_source_too_slow_for_any_probe_is_refused = refusals(
    lambda limit, lowest: estimate(SimulatedRun(source_limit=limit), min_rate=lowest),
    (0.0, None, r"it could serve 0\.0\. Use a longer trigger interval or more slots"),
    (100.0, 1000.0, r"source alone releases too little .* lower min_rate "),
)


def test_on_probe_comes_before_the_probe_is_used():
    calls = []

    class StopError(Exception):
        pass

    def record(probe):
        calls.append((probe.number, len(run.commands)))
        if probe.number == 1:
            raise StopError

    run = SimulatedRun()
    with pytest.raises(StopError):
        estimate(run, on_probe=record)
    assert calls == [(0, 1), (1, 2)]


class RecordedRun(SimulatedRun):
    """Gives back what was observed at the nth command of a rate; a rate or an attempt that was not is a KeyError."""

    def __init__(self, whole, done):
        super().__init__()
        self.seen = {(probe.rate, probe.attempt): probe.observation for probe in whole.probes}
        self.attempts = {probe.rate: probe.attempt for probe in done if probe.phase == "probe"}

    def settle(self, seconds):
        self.now += seconds

    def observe(self, seconds):
        self.now += seconds
        return self.seen[self.rate, self.attempts[self.rate]]


def noisy(seed):
    def speed(run):  # one speed per probe, so that answers contradict each other
        return random.Random(f"{seed} {run.rate} {run.attempts[run.rate]}").gauss(1, 0.05)

    return SimulatedRun(
        noise=speed, disturbed=lambda run: 0.2 * (hash((seed, run.rate, run.attempts[run.rate])) % 5 == 0)
    )


def outcomes(probes):
    return [(p.number, p.phase, p.rate, p.attempt, p.observation, p.judgement) for p in probes]


@pytest.mark.parametrize("seed", range(40))
def test_resumed_after_every_probe_the_estimate_is_the_same(seed):
    run = noisy(seed)
    whole = estimate(run)
    for length in range(len(whole.probes) + 1):
        done = whole.probes[:length]
        recorded, new = RecordedRun(whole, done), []
        again = estimate(recorded, done, new.append)
        assert outcomes(again.probes) == outcomes(whole.probes)
        assert (again.rate, again.low, again.high, again.limit) == (whole.rate, whole.low, whole.high, whole.limit)
        assert [probe.number for probe in new] == list(range(length, len(whole.probes)))
        if length == len(whole.probes):
            assert recorded.commands == []
        else:
            rates = [math.inf, *(probe.rate for probe in whole.probes[max(1, length) :])]
            assert [rate for _, rate in recorded.commands] == rates


def test_some_of_the_resumed_estimates_repeated_probes():
    assert sum(any(probe.attempt > 1 for probe in estimate(noisy(seed)).probes) for seed in range(40)) >= 10


def test_warm_up_that_is_not_steady_ends_at_its_cap_and_a_resumed_estimate_is_as_warm():
    run = SimulatedRun(warm_rows=lambda n: 200 * n)
    result = estimate(run, warmup_cap_s=60.0)
    assert result.probes[0].seconds == pytest.approx(60.0)
    assert estimate(SimulatedRun(), warmup_min_s=100.0).probes[0].seconds == pytest.approx(100.0)
    assert (result.probes[0].steady, result.steady) == (False, False)
    assert (result.low, result.high) == bracket_of(SimulatedRun())
    short = {"warmup_min_s": 10.0, "warmup_cap_s": 10.0}
    probes = []
    estimate(SimulatedRun(warm_rows=lambda _n: 100), on_probe=probes.append, **short)
    for done, least_s in ((1, 10.0), (3, 30.0)):
        run = SimulatedRun()
        estimate(run, probes[:done], **short)
        (begun, _), (first, _) = run.commands[:2]
        assert least_s <= first - begun < least_s + 10.0


def test_an_estimate_without_a_sustained_rate_gets_as_much_time_again():
    run = SimulatedRun(slowdown=lambda rate: 2.0 if 4000 < rate < math.inf else 1.0)  # the warm-up promises too much
    result = estimate(run, warmup_cap_s=20.0, warmup_min_s=20.0, most_s=45.0)
    answers = [probe.judgement.verdict for probe in result.probes[1:]]
    assert (answers[0], answers[-1]) == ("overloaded", "sustained")
    assert result.low == pytest.approx(4000.0, rel=0.5)


def test_noise_seeds_contain_the_truth():
    rate_hits = time_hits = exhausted = 0
    for seed in range(400):
        rng = random.Random(seed)
        run = SimulatedRun(noise=lambda _run, rng=rng: rng.gauss(1, 0.02))
        result = estimate(run)
        exhausted += result.exhausted
        rate_hits += result.low * 0.98 <= run.truth <= result.high * 1.02
        time_hits += (
            batch_s(run, result.low) * 0.98 <= run.interval_s and run.interval_s <= batch_s(run, result.high) * 1.02
        )
    assert rate_hits >= 380
    assert time_hits >= 380
    assert exhausted == 0


def batch_s(run, rate):
    return run.fixed_s + run.per_record_s * rate * run.interval_s


def test_a_history_that_is_not_this_estimates_is_refused():
    warm_up, first, *others = estimate(SimulatedRun()).probes
    message = r"rate 1234\.5, which is not on the grid of tolerance 0\.01; continue with"
    with pytest.raises(WorkbenchError, match=message):
        estimate(SimulatedRun(), [warm_up, replace(first, rate=1234.5)])
    with pytest.raises(WorkbenchError, match="does not begin with its warm-up; give all"):
        estimate(SimulatedRun(), [first, *others])


def test_published_schedule_takes_645_s_and_900_s_for_stateful_queries_and_stops_at_one_percent():
    run = SimulatedRun()
    result = estimate(run, schedule="streambed")
    assert run.now == 645.0
    assert result.seconds == 645.0
    rates = [rate for _, rate in run.commands if rate != 6400.0 and math.isfinite(rate)]
    assert rates == [9000.0, 18000.0, 13500.0, 11250.0, 10125.0, 9562.5, 9281.25]
    assert [at for at, _ in run.commands[:5]] == [0.0, 120.0, 135.0, 195.0, 210.0]
    assert (result.low, result.high, result.limit) == (9000.0, 9281.25, "query")
    assert result.probes[1].observation.elapsed_s <= 30.0
    run = SimulatedRun(per_record_s=5e-5)
    estimate(run, schedule="streambed", published=STATEFUL_QUERIES)
    assert run.now == 900.0
    assert {rate for _, rate in run.commands[1::2]} == {12800.0}
    run = SimulatedRun()
    result = estimate(run, schedule="streambed", tolerance=0.2)
    assert [probe.rate for probe in result.probes[1:]] == [9000.0, 18000.0, 13500.0]
    assert not result.exhausted


def test_published_rule_passes_a_slowly_growing_backlog():
    # The warm-up runs faster and reaches 9,050 records/s, of which 99.5 % are consumed later.
    run = SimulatedRun(warm_rows=lambda _n: 18100, noise=lambda r: 0.9 if math.isinf(r.rate) else 1.0)
    result = estimate(run, schedule="streambed")
    assert result.probes[1].judgement.verdict == "sustained"
    assert judge(result.probes[1].observation).verdict == "overloaded"


@pytest.mark.parametrize("late", [9000.0, 18000.0, 13500.0])
def test_published_schedule_offers_a_rate_again_that_was_not_offered(late):
    run = SimulatedRun()
    run.offered = lambda rate: rate * (0.9 if rate == late and not run.attempts.get(rate) else 1.0)
    result = estimate(run, schedule="streambed")
    rates = [9000.0, 18000.0, 13500.0, 11250.0, 10125.0, 9562.5]
    assert [probe.rate for probe in result.probes[1:]] == sorted([*rates, late], key=rates.index)
    assert [probe.attempt for probe in result.probes[1:] if probe.rate == late] == [1, 2]
    assert (result.low, result.high, result.exhausted) == (9000.0, 9562.5, True)


@pytest.mark.parametrize("probes", [1, 2, 3])
def test_published_schedule_does_not_converge_at_a_rate_that_was_not_offered(probes):
    run = SimulatedRun()
    run.offered = lambda rate: rate * (0.9 if len(run.commands) == 2 * probes else 1.0)
    result = estimate(run, schedule="streambed", tolerance=0.2, published=StreamBedSchedule(probes=probes))
    assert result.probes[-1].answered("not-offered")
    assert result.exhausted


test_settings_are_checked = refusals(
    lambda fields: CapacityEstimator(**fields),
    ({"tolerance": 0.0}, r"tolerance is 0\.0; it must be above 0 and below 1\."),
    ({"success": 1.5}, r"success is 1\.5; it must be above 0 and at most 1"),
    ({"schedule": "fast"}, r"schedule is 'fast'; allowed are adaptive, streambed"),
    ({"max_probes": 0}, r"max_probes is 0; it must be a whole number of at least 1"),
    ({"max_repeats": -1}, r"max_repeats is -1;"),
    ({"max_rate": math.nan}, r"max_rate is nan; it must be a finite number above 0"),
    ({"window_s": -1.0}, r"window_s is -1\.0; it must be"),
    ({"warmup_min_s": 500.0}, r"warmup_min_s is 500\.0, above warmup_cap_s = 100\.0; raise the cap"),
    ({"min_rate": 5.0, "max_rate": 4.0}, r"min_rate is 5\.0, above max_rate = 4\.0; raise max_rate"),
    ({"schedule": "streambed", "max_rate": 4.0}, r"min_rate is None and max_rate 4\.0\. Leave them"),
)


def beside_neighbour(there, **fields):
    """A run that other load disturbs, so that batches take twice as long, while it is `there`."""
    return SimulatedRun(disturbed=lambda run: 0.4 * there(run), noise=lambda run: 2.0 if there(run) else 1.0, **fields)


def test_disturbed_probe_is_repeated_before_its_verdict_counts():
    def first(run):
        return math.isfinite(run.rate) and run.attempts[run.rate] == 1

    run = SimulatedRun(disturbed=lambda r: 0.4 * first(r), noise=lambda r: 3.0 if first(r) else 1.0)
    result = estimate(run)
    assert (result.low, result.high) == bracket_of(SimulatedRun())
    verdicts = [probe.judgement.verdict for probe in result.probes[1:]]
    assert verdicts == ["disturbed", "sustained", "disturbed", "overloaded"]
    assert [probe.attempt for probe in result.probes[1:]] == [1, 2, 1, 2]
    assert not result.disturbed


def test_what_is_always_there_is_the_machine():
    result = estimate(SimulatedRun(disturbed=lambda _run: 0.4))
    verdicts = [probe.judgement.verdict for probe in result.probes[1:]]
    assert verdicts == ["sustained", "disturbed", "overloaded"]
    assert (result.low, result.high) == bracket_of(SimulatedRun())  # what is always there is the machine
    # The first rate is far off, so several must be judged; three windows show that it is always there.
    run = SimulatedRun(warm_rows=lambda _n: 100, disturbed=lambda _run: 0.4)
    result = estimate(run)
    verdicts = [probe.judgement.verdict for probe in result.probes[1:]]
    assert verdicts.count("disturbed") <= 1
    assert not result.exhausted


def test_a_neighbour_of_three_probes_is_outlasted_and_after_a_disturbed_one_it_waits_for_it_to_leave():
    # The estimate is as if it had never been there.
    result = estimate(beside_neighbour(lambda run: 1 < len(run.commands) <= 4), max_repeats=3)
    assert (result.low, result.high) == bracket_of(SimulatedRun())
    assert not result.disturbed
    assert [probe.answered("disturbed") for probe in result.probes[1:]].count(True) == 3
    run = beside_neighbour(lambda run: not run.waits, wait_s=8.0)
    result = estimate(run)
    assert run.waits == [PATIENCE_S]
    assert [probe.judgement.verdict for probe in result.probes[1:3]] == ["disturbed", "sustained"]
    assert result.probes[2].seconds > 8.0
    assert (result.low, result.high) == bracket_of(SimulatedRun())


def test_patience_is_that_of_the_whole_estimate():
    def now_and_then(run):
        return math.isfinite(run.rate) and run.attempts[run.rate] <= 2 and len(run.commands) % 3 > 0

    run = beside_neighbour(now_and_then, wait_s=7.0)
    estimate(run, max_repeats=5, patience_s=10.0)
    assert run.waits[0] == 10.0
    assert sum(run.waits) < 2 * 10.0


def test_only_a_disturbed_estimate_waits_and_so_does_verify_but_not_the_published_schedule():
    quiet, published = SimulatedRun(), SimulatedRun(disturbed=lambda _run: 0.4)
    estimate(quiet)
    estimate(published, schedule="streambed")
    assert quiet.waits == published.waits == []
    run = beside_neighbour(lambda run: not run.waits)
    *_, answer = CapacityEstimator(clock=run.clock).probes_at(run, [0.9 * run.truth])
    assert run.waits == [PATIENCE_S]
    assert answer.judgement.verdict == "sustained"


def test_a_failure_that_only_a_disturbed_machine_saw_is_asked_for_again():
    # The other load lasts five probes: three are repeated, the next is judged in spite of it.
    result = estimate(beside_neighbour(lambda run: 1 < len(run.commands) <= 6), max_repeats=3)
    assert (result.low, result.high) == bracket_of(SimulatedRun())
    assert result.disturbed
    failed = next(n for n, probe in enumerate(result.probes) if probe.answered("overloaded"))
    quiet = next(n for n, probe in enumerate(result.probes) if n > failed and probe.answered("sustained"))
    assert result.probes[failed].judgement.disturbed
    again = [probe for probe in result.probes[quiet:] if probe.rate == result.probes[failed].rate]
    assert [probe.answered("sustained") for probe in again] == [True]


def test_an_upper_end_that_only_a_disturbed_machine_failed_at_is_raised():
    def there(run):  # whenever the rate is the truth's or more
        return 9000 < run.rate < math.inf

    def quick_at_first(run):
        return 0.7 if math.isinf(run.rate) else 1.0

    result = estimate(SimulatedRun(disturbed=lambda run: 0.4 * there(run), noise=quick_at_first), max_repeats=0)
    low, high = bracket_of(SimulatedRun())
    assert (result.low, result.high) == (low, pytest.approx(high / (1 - 0.4)))  # what the neighbour took is in doubt
    assert result.limit == "none"
    failed = [probe.rate for probe in result.probes if probe.answered("overloaded")]
    assert 2 in {failed.count(rate) for rate in failed} <= {1, 2}
    assert not result.exhausted


def test_a_batch_without_rows_takes_no_time_and_raises_nothing():
    result = estimate(SimulatedRun(disturbed=lambda run: 0.4 * (9000 < run.rate < math.inf)), max_repeats=0)
    steps = AdaptiveSchedule(tolerance=0.01, max_repeats=0)

    def begun_empty(seen):
        return replace(seen, batches=(replace(seen.batches[0], duration_s=0.0, records=0), *seen.batches))

    known = [replace(one, observation=begun_empty(one.observation)) for one in result.probes]
    assert steps.conclude(known, 1.0).high == steps.conclude(result.probes, 1.0).high < math.inf


@pytest.mark.parametrize(("schedule", "commands"), [("adaptive", 4), ("streambed", 7)])
def test_rate_that_is_never_offered_is_an_error_after_repeats(schedule, commands):
    run = SimulatedRun(offered=lambda rate: min(rate, 7000.0))
    with pytest.raises(WorkbenchError, match=r"was not offered in 3 attempts: 7,000 records/s became due .* limiter"):
        estimate(run, schedule=schedule)
    assert len(run.commands) == commands


@pytest.mark.parametrize("max_repeats", [0, 3])
def test_rate_that_was_once_not_offered_is_repeated(max_repeats):
    run = SimulatedRun()
    run.offered = lambda rate: rate * (0.9 if run.attempts.get(rate, 0) == 0 else 1.0)
    result = estimate(run, max_repeats=max_repeats)
    assert (result.low, result.high) == bracket_of(SimulatedRun())
    assert result.probes[1].judgement.verdict == "not-offered"
