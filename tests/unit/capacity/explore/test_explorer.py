"""Which budgets the explorer measures, why each, and when it stops; which configuration of a budget is measured."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refusals
from scipy.stats import norm

from workbench import units
from workbench.capacity import ConfigurationOptimizer, ResourceExplorer, Space
from workbench.capacity.allocation import allocate
from workbench.capacity.explore import Question, overstatement, reasons
from workbench.capacity.explore.exploration import costs_of, stopping_row
from workbench.capacity.explore.optimizer import best_layout, settings_of
from workbench.capacity.explore.questions import acquire, edge, farthest, nearest, next_question
from workbench.capacity.model import MicroBatch, StageLine
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Concluded, Deployed, result_of
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


SPACE = Space((4, 6, 9), (512, 1024, 2048))  # q1 has two operators: runs on the way


def explorer_in(folder, space, tolerance=0.04, **settings):
    estimator, journal = CapacityEstimator(tolerance=tolerance), Journal(folder / "j.jsonl")
    optimizer = ConfigurationOptimizer(FluidTestbed(), estimator, journal)
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
    query = nexmark.query("q1")
    alone = explorer_in(tmp_path / "alone", SPACE, **settings).run(query)
    explorer = explorer_in(tmp_path / "own", SPACE, **settings)
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


def test_the_corners_of_most_slots_come_first_where_a_warm_deployment_is_made_for_them():
    space = Space((2, 4, 8), (512, 1024), largest_first=True)
    assert [(one.slots, one.profile.memory_mb) for one in space.corners] == [(8, 512), (8, 1024), (2, 512), (2, 1024)]
    assert set(space.corners) == set(Space((2, 4, 8), (512, 1024)).corners)


@pytest.mark.parametrize(
    ("run_s", "most_s", "slots"),  # each takes 100 s
    [(None, 240.0, [2, 8]), (None, 60.0, [2]), (90.0, 150.0, [2]), (90.0, 210.0, [2, 8])],
)
def test_no_run_begins_that_would_end_after_the_time_and_one_is_enough(journal, run_s, most_s, slots):
    explorer = ResourceExplorer(
        ConfigurationOptimizer(FluidTestbed(noise=0.0), CapacityEstimator(most_s=run_s), journal),
        Space((2, 4, 8), (512,)),
        most_s=most_s,
        clock=lambda: 100.0 * len(journal.entries("finished")),
    )
    found = explorer.run(nexmark.query("q1"))
    assert [run.budget.slots for run in found.measurements] == slots
    assert found.reason == f"its {most_s / 60:g} minutes were over after {units.some(len(slots), 'run')}"


def test_the_edge_is_measured_after_the_corners_and_the_middle(tmp_path):
    explorer = explorer_in(tmp_path, Space((2, 4, 6), (512, 1024, 2048)), 0.01, choice="edge", most_calls=9)
    found = explorer.run(nexmark.query("q2"))
    budgets = [(run.budget.slots, run.budget.profile.memory_mb) for run in found.measurements]
    assert budgets == [(2, 512), (6, 512), (2, 2048), (6, 2048), (4, 512), (4, 2048), (6, 512), (6, 2048), (6, 512)]
    assert found.reason == "9 budgets were asked for"
    assert found.fitted == tuple(range(9))  # no run ends it, so none is left out
    assert len({run.estimate.rate for run in found.measurements}) == 9


test_a_wrong_way_to_explore_is_refused = refusals(
    lambda settings: explorer_in(Path("unused"), Space((2, 4), (512, 1024)), **settings),
    ({"most_calls": 3}, r"most_calls is 3; the corners of the space alone are 4 calls\. Raise it\."),
    ({"estimates": 0}, r"estimates is 0; a call of the optimizer takes at least 1 run\."),
    ({"choice": "edges"}, r"The choice is 'edges'; use one of 'improvement', 'edge'\."),
)


@pytest.mark.parametrize(
    ("settings", "causes"),
    [
        ({"most_runs": 9}, {"corner": 4, "minimal": 2, "improvement": 3}),
        ({"choice": "edge", "most_calls": 6, "estimates": 2}, {"corner": 4, "minimal": 2, "edge": 2, "again": 2}),
    ],
)
def test_reasons_are_those_for_which_the_explorer_asked(tmp_path, settings, causes):
    query, explorer = nexmark.query("q1"), explorer_in(tmp_path, SPACE, seed=3, **settings)
    known = {name: settings[name] for name in ("choice",) if name in settings}
    answers = []
    while (budget := explorer.ask()) is not None:
        if not explorer._given:
            why = next_question(explorer.runs, answers, SPACE, 3, calls=explorer.calls, **known)
            assert why.budget == budget
        for run in result_of(explorer.optimizer.steps(query, budget)):
            explorer.tell(run)
        answers.append(len(explorer.runs) - 1)
    estimates = {name: settings[name] for name in ("estimates",) if name in settings}
    found = reasons(explorer.runs, SPACE, 3, **known, **estimates)
    assert [why.budget for why in found] == [run.budget for run in explorer.runs]
    said = [why.cause for why in found]
    assert {cause: said.count(cause) for cause in dict.fromkeys(said)} == causes
    for row, why in enumerate(found):
        assert (why.acquired is not None) == (why.cause == "improvement")
        if why.acquired is not None:
            at = SPACE.slots.index(why.budget.slots), SPACE.memory_mb.index(why.budget.profile.memory_mb)
            assert why.improvement == why.acquired.improvement[at] >= 0
            assert math.isfinite(costs_of(explorer.runs[:row])[-1])


def test_every_question_is_an_event_with_what_was_known(tmp_path):
    asked, explorer = [], explorer_in(tmp_path, SPACE, seed=3, most_runs=9)

    def listen(event):
        if isinstance(event, Concluded) and isinstance(event.what, Question):
            asked.append(event.what)

    runs = result_of(explorer.steps(nexmark.query("q1")), listen).runs
    whys = [why for why in reasons(runs, SPACE, 3) if why.cause != "minimal"]
    assert [(one.why.budget, one.why.cause, one.why.improvement) for one in asked] == [
        (why.budget, why.cause, why.improvement) for why in whys
    ]
    for question in asked:
        assert question.runs == runs[: len(question.runs)]
        assert question.lines == (question.sentence,)


def test_budgets_that_no_explorer_asked_for_are_said_to_be_all(tmp_path):
    runs = list(explorer_in(tmp_path, SPACE, seed=3, most_runs=7).run(nexmark.query("q1")).runs)
    assert {why.cause for why in reasons([runs[0], runs[2], runs[1], *runs[3:]], SPACE)} == {"grid"}


def test_the_space_is_filled_while_no_cost_is_defined(tmp_path):
    runs = explorer_in(tmp_path, SPACE, seed=3, most_runs=9).run(nexmark.query("q1")).runs
    space, few = replace(SPACE, memory_mb=(512,)), runs[1:3]  # the corners at 512 MB
    why = next_question(few, [0, 1], space)
    assert (why.cause, why.budget) == ("farthest", space.budget(6, 512))
    assert [one.cause for one in reasons(runs[:3], space)] == ["minimal", "corner", "corner"]
    assert next_question(runs[:3], [1, 2], space).cause == "improvement"  # two of three runs determine a form


def test_the_expected_improvement_is_that_of_the_posterior():
    points, costs = [(0, 0), (3, 0), (0, 4), (3, 4), (1, 2), (2, 2)], [500.0, 500.0, 500.0, 500.0, 300.0, 350.0]
    found = acquire(points, costs, (4, 5), seed=3)
    assert found.mean.shape == found.deviation.shape == found.improvement.shape == (4, 5)
    gain = min(costs) - 0.01 * max(costs) - found.mean  # scikit-optimize asks for an improvement by 0.01 at least
    z = gain / found.deviation
    expected = gain * norm.cdf(z) + found.deviation * norm.pdf(z)
    np.testing.assert_allclose(found.improvement, expected, atol=1e-6 * max(costs))
    assert acquire([(0, 0), (3, 0)], [1.0, 1.0], (4, 1), seed=0).mean.shape == (4, 1)


GRID = [(i, j) for i in range(5) for j in range(2)]


def test_the_edge_follows_the_middle_at_both_ends_of_the_memory_and_only_what_is_allowed_is_chosen():
    assert [edge((5, 3), number) for number in range(6)] == [(2, 0), (2, 2), (4, 0), (4, 2), (4, 0), (4, 2)]
    assert [edge((4, 1), number) for number in range(3)] == [(2, 0), (3, 0), (3, 0)]
    assert edge((2, 1), 0) == (1, 0)  # no middle
    assert farthest([(0, 0), (4, 0)], (5, 2), [(1, 0), (2, 0)]) == (2, 0)
    assert nearest((2, 0), GRID) == (2, 0)
    assert nearest((2, 0), [(0, 0), (3, 0), (2, 1)]) == (2, 1)


@pytest.mark.parametrize(
    ("points", "found"),
    [
        ([(0, 0), (4, 0), (0, 1), (4, 1)], (2, 1)),
        ([(0, 0), (4, 0)], (2, 1)),
        ([(0, 0), (2, 0), (4, 0), (0, 1), (2, 1), (4, 1)], (3, 1)),  # (1, 1) is as far, on fewer slots
        (GRID, (4, 1)),
        ([], (4, 1)),
    ],
)
def test_the_farthest_point_fills_the_grid(points, found):
    assert farthest(points, (5, 2), GRID) == found


@pytest.mark.parametrize("seed", [2, 11, 25])
def test_the_point_asked_for_has_the_highest_expected_improvement_of_the_grid(seed):
    rng, corners = np.random.default_rng(seed), [(0, 0), (4, 0), (0, 2), (4, 2)]
    points = corners + [divmod(int(place), 3) for place in rng.choice(15, 9)]
    costs = [30 + 2 * (slots - 2) ** 2 + rng.normal() for slots, _ in points]  # a valley, where points are repeated
    found = acquire(points, costs, (5, 3), seed)
    assert found.improvement[found.point] == found.improvement.max()
    assert found.point == acquire(points, costs, (5, 3), seed).point


@pytest.mark.parametrize("seed", [2**32 - 1, 202601311200, 10**30])
def test_any_seed_that_a_study_may_have_proposes_a_point(seed):
    assert acquire([(0, 0), (3, 0)], [1.0, 1.0], (4, 1), seed=seed).point[1] == 0


def test_a_minimal_budget_is_measured_as_often_as_it_is_asked_for_and_on_the_way_to_another(journal):
    query, space = nexmark.query("q1"), Space((2, 8), (512,))
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), journal)
    minimal, _ = result_of(optimizer.steps(query, space.budget(8, 512)))
    assert minimal.budget == space.budget(2, 512)
    made = [minimal.estimate, *(optimizer.measure(query, minimal.budget).estimate for _ in range(2))]
    assert len({one.rate for one in made}) == 3
    resumed = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), journal)
    assert [resumed.measure(query, minimal.budget).estimate for _ in range(3)] == made
    assert len(journal.entries("finished")) == 4


def test_an_optimised_configuration_is_what_bids2_says_before_the_deployment(journal):
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), journal)
    events = []
    minimal, best = result_of(optimizer.steps(nexmark.query("q1"), Space((2, 8), (512,)).budget(8, 512)), events.append)
    found = allocate(minimal, 8)
    assert (best.tasks, best.predicted_rate) == (found.tasks, found.source_rate)
    assert overstatement([minimal, best]) == pytest.approx(best.estimate.middle / found.source_rate)
    kinds = [type(event) for event in events if isinstance(event, Concluded | Deployed)]
    assert kinds == [Concluded, Deployed] * 2
    first, second = (event.what for event in events if isinstance(event, Concluded))
    assert (first.layout, first.configuration.tasks) == (None, minimal.tasks)
    assert second.layout == found
    assert second.configuration.predicted_rate == best.predicted_rate


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


def test_too_few_slots_are_refused_with_the_operators(journal):
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), journal)
    with pytest.raises(WorkbenchError, match=r"operators apart from its sources \(.*\); 1 slot cannot hold them"):
        optimizer.measure(nexmark.query("q5"), Space((1, 8), (512,)).budget(1, 512))
