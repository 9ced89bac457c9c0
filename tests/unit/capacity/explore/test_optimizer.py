"""Which configuration of a budget is measured: the minimal one first, then the one BIDS2 proposes."""

import pytest

from workbench.capacity import ConfigurationOptimizer, Space
from workbench.capacity.allocation import allocate
from workbench.capacity.explore import overstatement
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, result_of
from workbench.testbed import FluidTestbed
from workbench.workload import nexmark


def test_a_minimal_budget_that_is_asked_for_again_is_measured_again(tmp_path):
    journal, query, budget = Journal(tmp_path / "j.jsonl"), nexmark.query("q1"), Space((2, 8), (512,)).budget(2, 512)
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), journal)
    first, again = (optimizer.measure(query, budget) for _ in range(2))
    assert first.estimate.rate != again.estimate.rate
    resumed = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), journal)
    found = [resumed.measure(query, budget).estimate.rate for _ in range(2)]
    assert found == [first.estimate.rate, again.estimate.rate]
    assert len(journal.entries("finished")) == 2


def test_a_minimal_budget_that_was_measured_on_the_way_is_measured_when_it_is_asked_for(tmp_path):
    journal, query, space = Journal(tmp_path / "j.jsonl"), nexmark.query("q1"), Space((2, 8), (512,))
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), journal)
    minimal, _ = result_of(optimizer.steps(query, space.budget(8, 512)))
    (asked,) = result_of(optimizer.steps(query, space.budget(2, 512)))
    assert asked.budget == minimal.budget
    assert asked.estimate != minimal.estimate
    assert len(journal.entries("finished")) == 3


def test_an_optimised_configuration_follows_bids2(tmp_path):
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), Journal(tmp_path / "j.jsonl"))
    budget = Space((2, 8), (512,)).budget(12, 512)
    minimal, best = result_of(optimizer.steps(nexmark.query("q5"), budget))
    found = allocate(minimal, 12)
    assert best.tasks == found.tasks
    assert best.predicted_rate == found.source_rate
    assert overstatement([minimal, best]) == pytest.approx(best.estimate.middle / found.source_rate)


def test_too_few_slots_are_refused_with_the_operators(tmp_path):
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), Journal(tmp_path / "j.jsonl"))
    with pytest.raises(WorkbenchError, match=r"operators apart from its sources \(.*\); 1 slot cannot hold them"):
        optimizer.measure(nexmark.query("q5"), Space((1, 8), (512,)).budget(1, 512))
