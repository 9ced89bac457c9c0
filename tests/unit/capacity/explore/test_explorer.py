"""Which budgets the explorer measures, and when it stops."""

import numpy as np
import pytest

from workbench.capacity import ConfigurationOptimizer, ResourceExplorer, Space
from workbench.capacity.explore.exploration import stopping_row
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, result_of
from workbench.testbed import FluidTestbed
from workbench.workload import nexmark


@pytest.mark.parametrize(
    ("costs", "row"),
    [
        ([9, 9, 9, 9, 9, 9, 9], None),  # seven runs are kept whatever their cost
        ([9, 9, 9, 9, 9, 9, 1, 1.09], None),
        ([9, 9, 9, 9, 9, 9, 1, 1.11], 7),
        ([9, 9, 9, 9, 9, 9, 1, 1.09, 1.3], 8),
        ([1, 2, 4, 8, 16, 32, 64], None),
    ],
)
def test_the_exploration_stops_when_the_cost_grows_by_a_tenth(costs, row):
    assert stopping_row(costs) == row


def explorer_in(folder, space, **settings):
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(tolerance=0.04), Journal(folder / "j.jsonl"))
    return ResourceExplorer(optimizer, space, **settings)


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({"most_runs": 9}, "answers"),
        ({"choice": "edge", "most_calls": 6, "estimates": 2}, "steps"),
        ({"most_runs": 8, "estimates": 2}, "steps"),
        pytest.param({"most_runs": 9}, "steps", marks=pytest.mark.long),
        pytest.param({"choice": "edge", "most_calls": 6, "estimates": 2}, "answers", marks=pytest.mark.long),
        pytest.param({"most_runs": 8, "estimates": 2}, "answers", marks=pytest.mark.long),
    ],
)
def test_a_loop_of_the_user_makes_the_runs_of_explore(tmp_path, settings, given):
    query, space = nexmark.query("q1"), Space((4, 6, 9), (512, 1024, 2048))  # two slots would do: runs on the way
    alone = explorer_in(tmp_path / "alone", space, **settings).run(query)
    explorer = explorer_in(tmp_path / "own", space, **settings)
    while (budget := explorer.ask()) is not None:
        assert explorer.ask() == budget
        if given == "answers":
            explorer.tell(explorer.optimizer.measure(query, budget))
        else:
            for run in result_of(explorer.optimizer.steps(query, budget)):
                explorer.tell(run)
    assert [run.estimate for run in explorer.runs] == [run.estimate for run in alone.measurements]
    assert explorer.reason() == alone.reason
    np.testing.assert_array_equal(
        explorer.conclude().model.predict([[512, 40]]), explorer.explore(query).predict([[512, 40]])
    )
    assert explorer.ask() is None


def test_no_more_runs_are_made_than_asked_for(tmp_path):
    explorer = explorer_in(tmp_path, Space((4, 8), (512, 1024)), most_runs=4)
    found = explorer.run(nexmark.query("q1"))
    assert [run.budget.slots for run in found.measurements] == [2, 4, 8]  # at 1024 MB two more would be needed
    assert found.reason == "3 runs were made, and the next budget takes 2 of at most 4"


def test_the_space_is_filled_while_there_is_no_cost_to_improve(tmp_path):
    found = explorer_in(tmp_path, Space((2, 4, 8, 16, 32), (512,)), most_runs=3).run(nexmark.query("q1"))
    assert [run.budget.slots for run in found.measurements] == [2, 32, 8]


def test_the_corners_of_most_slots_come_first_where_a_warm_deployment_is_made_for_them():
    space = Space((2, 4, 8), (512, 1024), largest_first=True)
    assert [(one.slots, one.profile.memory_mb) for one in space.corners] == [(8, 512), (8, 1024), (2, 512), (2, 1024)]
    assert set(space.corners) == set(Space((2, 4, 8), (512, 1024)).corners)


def test_no_run_begins_that_would_end_after_the_time(tmp_path):
    passed = [0.0]
    explorer = ResourceExplorer(
        ConfigurationOptimizer(Timed(passed), CapacityEstimator(), Journal(tmp_path / "j.jsonl")),
        Space((2, 4, 8), (512,)),
        most_s=250.0,
        clock=lambda: passed[0],
    )
    found = explorer.run(nexmark.query("q1"))
    assert [run.budget.slots for run in found.measurements] == [2, 8]  # 200 s, and a third would end at 300 s
    assert found.reason == "its 4.16667 minutes were over after 2 runs"


class Timed(FluidTestbed):
    """A testbed on which each deployment takes 100 s of those `passed`."""

    def __init__(self, passed):
        super().__init__(noise=0.0)
        object.__setattr__(self, "passed", passed)

    def deploy(self, *arguments, **fields):
        self.passed[0] += 100.0
        return super().deploy(*arguments, **fields)


def asked_for(tmp_path, **settings):
    """Explore q2 and give the budgets of all runs."""
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), Journal(tmp_path / "j.jsonl"))
    explorer = ResourceExplorer(optimizer, Space((2, 4, 6), (512, 1024, 2048)), choice="edge", **settings)
    found = explorer.run(nexmark.query("q2"))
    return found, [(run.budget.slots, run.budget.profile.memory_mb) for run in found.measurements]


def test_the_edge_is_measured_after_the_corners_and_the_middle(tmp_path):
    found, budgets = asked_for(tmp_path, most_calls=9)
    assert budgets == [(2, 512), (6, 512), (2, 2048), (6, 2048), (4, 512), (4, 2048), (6, 512), (6, 2048), (6, 512)]
    assert found.reason == "9 budgets were asked for"
    assert found.fitted == tuple(range(9))  # no run ends it, so none is left out
    assert len({run.estimate.rate for run in found.measurements}) == 9


def test_calls_may_make_several_runs_after_the_corners(tmp_path):
    _, budgets = asked_for(tmp_path, most_calls=6, estimates=2)
    assert budgets[4:] == [(4, 512), (4, 512), (4, 2048), (4, 2048)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"most_calls": 3}, r"most_calls is 3; the corners of the space alone are 4 calls\. Raise it\."),
        ({"estimates": 0}, r"estimates is 0; a call of the optimizer takes at least 1 run\."),
        ({"choice": "edges"}, r"The choice is 'edges'; use one of improvement, edge\."),
    ],
)
def test_a_wrong_way_to_explore_is_refused(tmp_path, settings, message):
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), Journal(tmp_path / "j.jsonl"))
    with pytest.raises(WorkbenchError, match=message):
        ResourceExplorer(optimizer, Space((2, 4), (512, 1024)), **settings)
