"""Which configuration of a budget is measured: the minimal one first, then the one BIDS2 proposes."""

import pytest

from workbench.capacity import ConfigurationOptimizer, Space
from workbench.capacity.allocation import allocate
from workbench.capacity.explore import Configured, overstatement
from workbench.capacity.explore.optimizer import best_layout, settings_of
from workbench.capacity.model import MicroBatch, StageLine
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Concluded, Configuration, Deployed, result_of
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


def test_an_optimised_configuration_is_what_bids2_says_before_the_deployment(tmp_path):
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), Journal(tmp_path / "j.jsonl"))
    events = []
    minimal, best = result_of(optimizer.steps(nexmark.query("q1"), Space((2, 8), (512,)).budget(8, 512)), events.append)
    found = allocate(minimal, 8)
    assert (best.tasks, best.predicted_rate) == (found.tasks, found.source_rate)
    assert overstatement([minimal, best]) == pytest.approx(best.estimate.middle / found.source_rate)
    kinds = [type(event) for event in events if isinstance(event, Concluded | Deployed)]
    assert kinds == [Concluded, Deployed] * 2
    first, second = (event.what for event in events if isinstance(event, Concluded))
    assert (first.layout, first.configuration.tasks) == (None, minimal.tasks)
    assert first.sentence == "One task per operator on 2 slots: BIDS2 needs their rates"
    assert second.layout == found
    assert second.configuration.predicted_rate == best.predicted_rate
    assert second.sentence.startswith("BIDS2 divides 8 slots into ")


def parts(driver_task_s, fixed_s):
    stages = (
        StageLine("scan", fixed_s, 1e-5, 1.0, 1.0, source=True),
        StageLine("count", fixed_s, 4e-5, 1.0, 1.0, stateful=True),
    )
    return MicroBatch(0.2, driver_task_s, stages, 0.0, 5)


def test_partitions_are_set_where_fewer_of_them_promise_clearly_more():
    budget = Space((4,), (1024,), cpus=0.05).budget(4, 1024)
    cheap, costly = parts(0.0, 0.0), parts(0.02, 0.3)
    plain, chosen = best_layout(cheap, budget), best_layout(costly, budget)
    assert set(plain.partitions.values()) == {4}
    assert settings_of(plain, 4) is None
    assert plain.rate == pytest.approx(cheap.rate(4, 4, 2.0))
    assert plain.batch_s[4] == pytest.approx(2.0)
    assert chosen.rate > 1.05 * costly.rate(4, 4, 2.0)
    assert settings_of(chosen, 4) == {"source": chosen.partitions["scan"], "state": chosen.partitions["count"]}
    assert best_layout(None, budget) is None
    query = nexmark.query("q5")
    for layout, said in ((plain, "finds nothing clearly better"), (chosen, "chooses the partitions on 4 slots")):
        asked = Configuration(query, budget, partitions=settings_of(layout, 4), predicted_rate=layout.rate)
        assert said in Configured(asked, layout).sentence


def test_too_few_slots_are_refused_with_the_operators(tmp_path):
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), Journal(tmp_path / "j.jsonl"))
    with pytest.raises(WorkbenchError, match=r"operators apart from its sources \(.*\); 1 slot cannot hold them"):
        optimizer.measure(nexmark.query("q5"), Space((1, 8), (512,)).budget(1, 512))
