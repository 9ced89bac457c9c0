"""Estimates on a machine that others use too: what is repeated, what is waited for, what is accepted in the end."""

import math
from dataclasses import replace

import pytest
from simulated_run import SimulatedRun, bracket_of, estimate

from workbench.defaults import PATIENCE_S
from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator
from workbench.measuring.adaptive import AdaptiveSchedule


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


def test_what_is_sustained_next_to_a_neighbour_counts_at_once():
    result = estimate(SimulatedRun(disturbed=lambda _run: 0.4))
    verdicts = [probe.judgement.verdict for probe in result.probes[1:]]
    assert verdicts == ["sustained", "disturbed", "overloaded"]
    assert (result.low, result.high) == bracket_of(SimulatedRun())  # what is always there is the machine


def test_a_disturbance_that_never_ends_is_the_machine():
    # The first rate is far off, so several must be judged; three windows show that it is always there.
    run = SimulatedRun(warm_rows=lambda _n: 100, disturbed=lambda _run: 0.4)
    result = estimate(run)
    verdicts = [probe.judgement.verdict for probe in result.probes[1:]]
    assert verdicts.count("disturbed") <= 1
    assert not result.exhausted


def test_a_neighbour_of_three_probes_is_outlasted():
    # The estimate is as if it had never been there.
    result = estimate(beside_neighbour(lambda run: 1 < len(run.commands) <= 4), max_repeats=3)
    assert (result.low, result.high) == bracket_of(SimulatedRun())
    assert not result.disturbed
    assert [probe.answered("disturbed") for probe in result.probes[1:]].count(True) == 3


def test_after_a_disturbed_probe_it_waits_for_the_neighbour_to_leave():
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


def test_without_disturbance_nobody_waits_nor_does_the_published_schedule():
    quiet, published = SimulatedRun(), SimulatedRun(disturbed=lambda _run: 0.4)
    estimate(quiet)
    estimate(published, schedule="streambed")
    assert quiet.waits == published.waits == []


def test_verify_waits_before_it_repeats():
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
