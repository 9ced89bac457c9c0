"""What an estimate guarantees: equality with a linear scan without noise, the truth within the noise otherwise."""

import math
import random

from examples import examples
from hypothesis import assume, event, example, given
from hypothesis import strategies as st
from simulated_run import SimulatedRun

from workbench.measuring import CapacityEstimator, judge
from workbench.measuring.schedules import Grid

# Share of the interval by which a batch may exceed it unseen: the verdict's slack and a late start hide that much of
# it in one window.
HIDDEN = 5e-3


def linear_scan(make, grid, lowest, highest):
    """Probe every rate of the grid on a fresh run; the index of the last sustained, `lowest` - 1 if none was."""
    answers = []
    for index in range(lowest, highest + 1):
        run = make()
        run.set_rate(grid.rate(index))
        run.observe(max(2 * run.interval_s, 1.0))
        seen = run.observe(max(run.interval_s * (10 if run.interval_s <= 2 else 6), 12.0))
        answers.append(judge(seen).verdict == "sustained")
    passed = answers.index(False) if False in answers else len(answers)
    assert not any(answers[passed:])
    return lowest + passed - 1


@examples(150)
@given(
    fixed=st.floats(0.0, 0.8),
    truth=st.floats(500.0, 200_000.0),
    interval=st.sampled_from([0.5, 1.0, 2.0, 5.0]),
    tolerance=st.sampled_from([0.01, 0.02, 0.05, 0.2]),
    below=st.integers(-20, 40),
    above=st.integers(-20, 40),
    warm=st.floats(0.05, 20.0),
)
# The window begins while the run catches up and ends when it falls behind.
@example(fixed=0.001, truth=700.375, interval=5.0, tolerance=0.01, below=0, above=1, warm=9.5)
@example(fixed=0.001, truth=805.5, interval=5.0, tolerance=0.01, below=0, above=1, warm=9.5)
def test_without_noise_the_bracket_is_the_linear_scans(*, fixed, truth, interval, tolerance, below, above, warm):
    grid = Grid(tolerance)
    middle = grid.below(truth)
    lowest, highest = sorted((middle - below, middle + above))
    assume(grid.rate(lowest) > 200.0)  # whole rows matter below
    per_record = interval * (1 - fixed) / (truth * interval)

    def make():
        rows = max(1, round(warm * truth * interval))
        return SimulatedRun(
            fixed_s=fixed * interval, per_record_s=per_record, interval_s=interval, warm_rows=lambda _n: rows
        )

    assume(grid.position(truth) - middle > 1e-3)  # else the rounding of rows decides
    first_over = middle + 1
    while fixed + (1 - fixed) * grid.rate(first_over) / truth <= 1 + HIDDEN:
        first_over += 1
    run = make()
    result = CapacityEstimator(
        tolerance=tolerance, min_rate=grid.rate(lowest), max_rate=grid.rate(highest), clock=run.clock
    ).estimate(run)
    low = grid.index(result.low) if result.low else lowest - 1
    high = grid.index(result.high) if math.isfinite(result.high) else highest + 1
    # All rates up to the truth are sustained, all from `first_over` on are not; rates between are in doubt.
    last_sustained = min(max(middle, lowest - 1), highest)
    assert last_sustained <= low < high <= min(max(first_over, lowest), highest + 1)
    event("exact" if first_over == middle + 1 else "rates in doubt")
    if first_over == middle + 1:
        assert (low, high) == (last_sustained, last_sustained + 1)
        assert linear_scan(make, grid, lowest, highest) == last_sustained
    assert not result.exhausted
    assert (result.rate is None) == (low < lowest)
    assert result.limit == ("none" if high > highest else "query")


@examples(150)
@given(
    seed=st.integers(0, 10**9),
    noise=st.floats(0.0, 0.3),
    fixed=st.floats(0.0, 0.8),
    warm=st.floats(0.2, 5.0),
    steps=st.booleans(),
)
def test_with_bounded_noise_the_widened_bracket_contains_the_truth(seed, noise, fixed, warm, steps):
    rng = random.Random(seed)

    def draw(_run):
        return 1 + noise * (rng.choice((-1, 1)) if steps else rng.uniform(-1, 1))

    per_record = (1 - fixed) / 9000.0
    run = SimulatedRun(
        fixed_s=2.0 * fixed, per_record_s=per_record, noise=draw, warm_rows=lambda _n: round(warm * 18_000)
    )
    result = CapacityEstimator(clock=run.clock).estimate(run)

    def batch_s(rate):
        return run.fixed_s + per_record * 2.0 * rate

    # A sustained rate consumed 99 % of its rows, so not every batch took more than interval / 0.99; an overloaded
    # one had a batch that took more than the interval.
    assert batch_s(result.low) * (1 - noise) * 0.99 <= 2.0 * 1.002
    assert batch_s(result.high) * (1 + noise) > 2.0 * 0.998
    assert result.low < result.high
    assert len(result.probes) <= 21


@examples(60)
@given(seed=st.integers(0, 10**9), probes=st.integers(1, 6))
def test_an_exhausted_budget_gives_an_honest_bracket(seed, probes):
    rng = random.Random(seed)
    run = SimulatedRun(warm_rows=lambda _n: rng.randint(100, 100_000))
    result = CapacityEstimator(max_probes=probes, clock=run.clock).estimate(run)
    assert result.low <= run.truth * 1.0013
    assert result.high > run.truth
    assert len(result.probes) <= probes + 1
    assert result.exhausted == (result.high > result.low * 1.0101)
