"""The partitions of a plan whose deployment shrinks and grows."""

import json
from dataclasses import replace

import pytest

from workbench.capacity.costs import OperatorCost
from workbench.capacity.layout import micro_batch_layout
from workbench.capacity.plan import plan, stages_of
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.study.planning import run_study
from workbench.study.spec import Study

STUDY = Study("nexmark:q5", (2e5,), (9, 12, 18), (2048,), testbed="fluid", slot_cpus=1.0, most_runs=4)


def in_stages(run):
    """The same run, had its operators been stages that take turns: the first reads, the rest keep state."""
    seen = run.estimate.observation
    operators = tuple(
        replace(one, state_bytes=None if number < 2 else 1e6) for number, one in enumerate(seen.operators)
    )
    costs = tuple(
        OperatorCost(one.operator, 0.05, 2e-6, 0.0, 1.0, 1e6, 9, 3) for one in operators if one.kind != "source"
    )
    estimate = replace(run.estimate, observation=replace(seen, operators=operators))
    return replace(run, estimate=estimate, costs=costs, tasks=None)


@pytest.fixture(scope="module")
def exploration(tmp_path_factory):
    explored = run_study(STUDY, Journal(tmp_path_factory.mktemp("layout") / "j.jsonl")).exploration
    return replace(explored, measurements=tuple(in_stages(run) for run in explored.measurements))


def test_without_a_lowest_load_the_layout_is_that_of_the_planned_slots(exploration):
    made = plan(exploration, 2e5, memory_mb=(2048,))
    stages = stages_of(exploration.measurements[0])
    assert made.layout == micro_batch_layout(stages, made.budget.slots, 2.0, rate=2e5)
    assert (made.low_slots, made.low_layout) == (None, None)


def test_the_states_partitions_are_those_of_least_regret_and_stay(exploration):
    made = plan(exploration, 2e5, memory_mb=(2048,), low_rate=6e4)
    assert made.low_slots < made.budget.slots
    assert made.layout.stateful_partitions == made.low_layout.stateful_partitions
    assert made.spark_conf()["spark.sql.shuffle.partitions"] == str(made.layout.stateful_partitions)
    stages, low, high = stages_of(exploration.measurements[0]), made.low_slots, made.budget.slots
    load = {n: 6e4 + 1.4e5 * (n - low) / (high - low) for n in range(low, high + 1)}

    def regret(count):
        return micro_batch_layout(stages, load, 2.0, rate=load, stateful_partitions=count)

    def total(count):  # against the best of all counts, not of the same one
        return max(regret(count).batch_s[n] - micro_batch_layout(stages, n, 2.0, rate=load[n]).batch_s[n] for n in load)

    best = min(range(1, 4 * high + 1), key=lambda count: (round(total(count), 9), count))
    assert total(made.layout.stateful_partitions) == pytest.approx(total(best), abs=1e-6)
    written = json.loads(made.to_json())
    assert written["low_slots"] == made.low_slots
    assert written["low_layout"]["partitions"] == dict(made.low_layout.partitions)


@pytest.mark.parametrize("low_rate", [0.0, -5.0, 3e5, float("nan")])
def test_a_lowest_load_that_is_none_is_refused(exploration, low_rate):
    with pytest.raises(WorkbenchError, match=r"low_rate is .* records/s; it must be above 0 and at most the rate"):
        plan(exploration, 2e5, memory_mb=(2048,), low_rate=low_rate)
