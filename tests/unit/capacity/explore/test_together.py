"""Exploring in warm deployments: one for each memory, and budgets apart where sharing is not the same thing."""

import pytest
from warm_machine import WarmMachine

from workbench.capacity import ConfigurationOptimizer, Space
from workbench.capacity.explore import explore_together, groups_of
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Reused, result_of
from workbench.metrics import OperatorMetrics
from workbench.workload import Query

QUERY = Query("mine:counts", len, None)
SPACE = Space((1, 2, 4), (1024, 2048), 0.2)
ESTIMATOR = CapacityEstimator(0.1, patience_s=0, warmup_min_s=10, warmup_cap_s=20)


class Stateful(WarmMachine):
    """One whose query reads state: `hits` of its accesses, by slots, find the cache."""

    def __init__(self, hits, **settings):
        super().__init__(**settings)
        self.hits = hits

    def observe(self, seconds):
        seen = super().observe(seconds)
        own = OperatorMetrics(
            "count",
            "aggregate",
            tasks=1,
            records_in=10,
            records_out=1,
            useful_s=1,
            busyness=0.5,
            true_processing_rate=10.0,
            cpu_s=1,
            shuffle_bytes=0,
            state_bytes=1000,
            cache_hit_rate=self.hits[self.budget.slots],
        )
        return type(seen)(**{**vars(seen), "operators": (own,)})


class Refusing(WarmMachine):
    """One that cannot hold slots."""

    def turn(self, *_):
        raise WorkbenchError("Spark did not give 3 slots.")


def explored(machine, tmp_path, listen=lambda _: None):
    optimizer = ConfigurationOptimizer(machine, ESTIMATOR, Journal(tmp_path / "j.jsonl"))
    return result_of(explore_together(QUERY, groups_of(QUERY, SPACE.budgets), optimizer), listen)


def test_each_memory_has_one_deployment(tmp_path):
    machine = WarmMachine()
    found = explored(machine, tmp_path)
    assert machine.deployments == 2
    assert [run.budget for run in found.runs] == list(SPACE.budgets)
    assert found.reason == "6 budgets were measured in 2 warm deployments"
    assert found.model.predict([[1024, 8]])[0] == pytest.approx(8000, rel=0.15)
    seen, again = [], WarmMachine()
    assert explored(again, tmp_path, seen.append).runs == found.runs
    assert (again.deployments, [type(event) for event in seen]) == (0, [Reused] * 6)


def test_a_state_that_does_not_fit_is_measured_apart(tmp_path):
    machine = Stateful({1: 1.0, 2: 1.0, 4: 0.6})
    found = explored(machine, tmp_path)
    assert machine.deployments == 2 + 6
    assert "at 1,024 MB the state does not fit its cache" in found.reason
    assert found.reason.endswith("so each budget had its own there")


def test_few_accesses_that_miss_bind_nothing(tmp_path):
    machine = Stateful({1: 0.5, 2: 0.6, 4: 0.97})
    assert explored(machine, tmp_path).reason == "6 budgets were measured in 2 warm deployments"


def test_where_sharing_fails_each_budget_is_measured_apart(tmp_path):
    machine = Refusing()
    found = explored(machine, tmp_path)
    assert machine.deployments == 2 + 6
    assert "at 1,024 MB sharing failed (Spark did not give 3 slots.)" in found.reason
