"""Estimates on a driver that is still cold, on slow cores, and next to a neighbour: none excludes the truth."""

import pytest
from cold_driver import ColdRun

from workbench.measuring import CapacityEstimator, mst_interval
from workbench.testbed import SharedRun

RUNS, WARM = 150, 1.0


def estimates(**fields):
    for seed in range(RUNS):
        run = ColdRun(seed, **fields)
        yield run, CapacityEstimator(0.1, clock=run.clock, most_s=90.0).estimate(run)


@pytest.mark.parametrize("speed", [0.3, 0.6, 1.0])
@pytest.mark.parametrize("bursts", [False, True])
@pytest.mark.parametrize("warms_in_s", [WARM, 15.0, 30.0])
def test_no_answer_excludes_the_truth_more_often_than_it_says(speed, bursts, warms_in_s):
    held, off = 0, []
    for run, found in estimates(speed=speed, bursts=bursts, warms_in_s=warms_in_s):
        assert isinstance(run, SharedRun)
        interval = mst_interval(found)
        if interval is None:  # a bound and no point
            held += found.low <= 1.1 * run.truth
            continue
        held += interval.low <= run.truth <= interval.high
        off.append(abs(found.middle / run.truth - 1))
    assert held >= 0.9 * RUNS
    assert max(off, default=0.0) <= 0.3
    if warms_in_s == WARM:  # an answer, and not only bounds
        assert len(off) > (0.5 if bursts else 0.95) * RUNS
