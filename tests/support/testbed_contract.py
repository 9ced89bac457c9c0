"""What every testbed owes those who measure on it: a testbed's test class inherits `ContractTests` and gives a `case`.

The rates probed come from the run itself, so the contract needs no knowledge of the capacity. For a testbed that is
slow to deploy, override the fixture `run` with a wider scope: no test relies on a fresh deployment.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import pytest

from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator, judge
from workbench.testbed import Testbed

RANGES = {"tasks": (1, math.inf), "busyness": (0, 1), "cache_hit_rate": (0, 1), "key_skew": (1, math.inf)}
"""Ranges of an operator's metrics; others are at least 0."""


@dataclass(frozen=True)
class Case:
    """A testbed with something to deploy; seconds are the testbed's own."""

    testbed: Testbed
    query: Any
    budget: Budget
    refused: Budget
    refusal: str
    clock: Callable[[], float]
    warm_s: float = 60.0
    settle_s: float = 4.0
    window_s: float = 20.0
    noise: float = 0.05
    max_disturbance: float = 0.05
    operators: bool = True
    windows: int = 1  # observed for an answer: a real machine may have other things to do in one of them
    estimator: CapacityEstimator = field(default_factory=CapacityEstimator)


def warm_capacity(case, run):
    """Highest rate of a run that is offered all it can take, once it no longer grows: slow machines warm up longer."""
    run.set_rate(math.inf)
    run.settle(case.warm_s)
    rates = [run.observe(case.window_s).consumed_rate]
    while len(rates) < 2 or rates[-1] > 1.2 * rates[-2]:
        assert len(rates) < 20, f"still growing: {rates}"
        rates.append(run.observe(case.window_s).consumed_rate)
    return max(rates)


def windows_at(case, run, capacity):
    """One window at each of three shares of the capacity, for the tests of what holds for all windows."""
    seen = {}
    for share in (0.3, 0.8, 2.0):
        run.set_rate(share * capacity)
        run.settle(case.settle_s)
        seen[share] = run.observe(case.window_s)
    return seen


class ContractTests:
    @pytest.fixture
    def case(self) -> Case:
        raise NotImplementedError

    @pytest.fixture
    def run(self, case):
        with case.testbed.deploy(case.query, case.budget) as run:
            yield run

    @pytest.fixture
    def capacity(self, case, run):
        return warm_capacity(case, run)

    @pytest.fixture
    def windows(self, case, run, capacity):
        return windows_at(case, run, capacity)

    def seen_as(self, verdict, case, run, rate):
        """What was observed at `rate` once it is judged as `verdict`."""
        run.set_rate(rate)
        reasons = []
        for _ in range(case.windows):
            run.settle(case.settle_s)
            seen = run.observe(case.window_s)
            judgement = judge(seen, max_disturbance=case.max_disturbance)
            if judgement.verdict == verdict:
                return seen
            reasons.append(judgement.reason)
        raise AssertionError(f"never {verdict} at {rate:,.0f} records/s: {reasons}")

    def test_a_run_knows_its_budget(self, case, run):
        assert run.budget == case.budget

    def test_a_budget_it_cannot_serve_is_refused_with_the_reason(self, case):
        with pytest.raises(WorkbenchError, match=case.refusal), case.testbed.deploy(case.query, case.refused):
            pass

    def test_as_much_as_fits_is_due_when_it_is_consumed(self, case, run, capacity):
        assert capacity > 0
        run.set_rate(math.inf)
        seen = run.observe(case.window_s)
        assert seen.commanded_rate == math.inf
        assert seen.consumed_records == pytest.approx(seen.due_records, abs=len(seen.batches))

    def test_a_low_rate_is_sustained(self, case, run, capacity):
        seen = self.seen_as("sustained", case, run, 0.5 * capacity)
        assert seen.commanded_rate == 0.5 * capacity
        assert seen.offered_rate == pytest.approx(0.5 * capacity, rel=0.01)
        assert seen.consumed_rate == pytest.approx(0.5 * capacity, rel=0.02)

    def test_overload_is_seen_and_forgotten_at_the_next_rate(self, case, run, capacity):
        seen = self.seen_as("overloaded", case, run, 3 * capacity)
        assert seen.batches[-1].backlog > seen.batches[0].backlog
        self.seen_as("sustained", case, run, 0.5 * capacity)

    def test_after_waiting_for_quiet_a_rate_is_seen_as_ever(self, case, run, capacity):
        run.set_rate(0.5 * capacity)
        run.await_quiet(0.0)
        run.await_quiet(5.0)
        self.seen_as("sustained", case, run, 0.5 * capacity)

    def test_batches_are_whole_and_add_up(self, windows):
        for seen in windows.values():
            batches = seen.batches
            assert len(batches) >= 4
            starts = [batch.start_s for batch in batches]
            assert starts == sorted(set(starts))
            assert seen.elapsed_s == pytest.approx(starts[-1] - starts[0])
            assert [batch.due for batch in batches] == sorted(batch.due for batch in batches)
            assert all(batch.duration_s >= 0 and batch.records >= 0 and batch.backlog >= 0 for batch in batches)
            growth = batches[-1].backlog - batches[0].backlog
            assert seen.due_records - seen.consumed_records == pytest.approx(growth, abs=len(batches))

    def test_batches_take_longer_the_more_rows_they_have(self, windows):
        low, high = (median(batch.duration_s for batch in windows[share].batches) for share in (0.3, 0.8))
        assert low < high

    def test_operators_obey_the_identity_of_ds2_and_the_ranges_of_the_vocabulary(self, case, windows):
        seen = windows[0.8]
        assert bool(seen.operators) == case.operators  # else what follows would hold of nothing
        names = [one.operator for one in seen.operators]
        assert len(names) == len(set(names))
        for one in seen.operators:
            for name, value in vars(one).items():
                low, high = RANGES.get(name, (0, math.inf))
                assert not isinstance(value, int | float) or low <= value <= high, (one.operator, name)
            if one.true_processing_rate is not None:
                rate = one.busyness * one.true_processing_rate * one.tasks
                assert rate == pytest.approx(one.records_in / seen.elapsed_s, rel=1e-6)
        assert {sample.operator for sample in seen.samples} <= set(names)

    def test_settling_lets_time_pass(self, case, run):
        before = case.clock()
        run.settle(case.settle_s)
        assert case.clock() - before == pytest.approx(case.settle_s, rel=0.2)

    def test_the_estimator_brackets_what_fits(self, case, run):
        found = case.estimator.estimate(run)
        run.set_rate(math.inf)  # again, for code goes on compiling on a real machine
        fits = []
        for _ in range(case.windows):
            run.settle(case.settle_s)
            fits.append(run.observe(case.window_s).consumed_rate)
            if found.low <= max(fits) * (1 + case.noise) and found.high >= min(fits) * (1 - case.noise):
                break
        else:
            raise AssertionError(f"{found.low:,.0f} to {found.high:,.0f} records/s were found, but {fits} fit")
        # Where answers are noisy the probes may run out first; the estimate has to say so.
        short = case.noise > 0.05 and (found.exhausted or found.contradictions)
        assert found.limit == "query" or (short and found.limit == "none")
        assert found.high <= found.low * 1.05 * (1 + 1e-9) or short  # a step of the grid is 1.05, but for rounding
