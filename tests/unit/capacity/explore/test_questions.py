"""Which point of a grid to measure next, and why each budget of an exploration was asked for."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from workbench.capacity import ConfigurationOptimizer, ResourceExplorer, Space
from workbench.capacity.explore import Question, reasons
from workbench.capacity.explore.acquisition import acquire, edge, farthest, nearest
from workbench.capacity.explore.exploration import costs_of
from workbench.capacity.explore.questions import Why, next_question
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Concluded, result_of
from workbench.testbed import FluidTestbed
from workbench.workload import nexmark

SPACE = Space((4, 6, 9), (512, 1024, 2048))  # q1 has two operators: runs on the way


def explorer_in(folder, **settings):
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(tolerance=0.04), Journal(folder / "j.jsonl"))
    return ResourceExplorer(optimizer, SPACE, seed=3, **settings)


@pytest.mark.parametrize(
    ("settings", "causes"),
    [
        ({"most_runs": 9}, {"corner": 4, "minimal": 2, "improvement": 3}),
        ({"choice": "edge", "most_calls": 6, "estimates": 2}, {"corner": 4, "minimal": 2, "edge": 2, "again": 2}),
    ],
)
def test_reasons_are_those_for_which_the_explorer_asked(tmp_path, settings, causes):
    query, explorer = nexmark.query("q1"), explorer_in(tmp_path, **settings)
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
    asked, explorer = [], explorer_in(tmp_path, most_runs=9)

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
    assert asked[0].sentence == "At first the explorer asks for 4 slots of 512 MB: a corner of the space"
    assert asked[-1].sentence.startswith(f"After {len(asked[-1].runs)} runs the explorer asks for ")


@pytest.mark.parametrize(
    ("slots", "memory_mb", "chooses"),
    [((1, 2, 4), (512,), False), ((1, 2, 3, 4), (512,), True), ((1, 4), (512, 1024), False)],
)
def test_a_space_that_is_measured_before_anything_can_be_chosen_is_called_so(slots, memory_mb, chooses):
    space = Space(slots, memory_mb)
    said = Question(Why(space.budgets[0], "corner"), space, ()).sentence
    assert ("the grid is the space" in said) != chooses
    assert "the grid" not in Question(Why(space.budgets[0], "improvement"), space, ()).sentence


def test_budgets_that_no_explorer_asked_for_are_said_to_be_all(tmp_path):
    runs = list(explorer_in(tmp_path, most_runs=7).run(nexmark.query("q1")).runs)
    assert {why.cause for why in reasons([runs[0], runs[2], runs[1], *runs[3:]], SPACE)} == {"grid"}


def test_the_space_is_filled_while_no_cost_is_defined(tmp_path):
    runs = explorer_in(tmp_path, most_runs=9).run(nexmark.query("q1")).runs
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


def test_the_edge_follows_the_middle_at_both_ends_of_the_memory():
    assert [edge((5, 3), number) for number in range(6)] == [(2, 0), (2, 2), (4, 0), (4, 2), (4, 0), (4, 2)]
    assert [edge((4, 1), number) for number in range(3)] == [(2, 0), (3, 0), (3, 0)]
    assert edge((2, 1), 0) == (1, 0)  # no middle


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


def test_only_what_is_allowed_is_chosen():
    assert farthest([(0, 0), (4, 0)], (5, 2), [(1, 0), (2, 0)]) == (2, 0)
    assert nearest((2, 0), GRID) == (2, 0)
    assert nearest((2, 0), [(0, 0), (3, 0), (2, 1)]) == (2, 1)


def test_the_same_runs_and_seed_propose_the_same_point():
    points, costs = [(0, 0), (3, 0), (0, 4), (3, 4), (1, 2)], [5.0, 5.0, 5.0, 5.0, 3.0]
    found = acquire(points, costs, (4, 5), seed=3).point
    assert found == acquire(points, costs, (4, 5), seed=3).point
    assert 0 <= found[0] < 4
    assert 0 <= found[1] < 5
    assert acquire([(0, 0), (3, 0)], [1.0, 1.0], (4, 1), seed=0).point[1] == 0


@pytest.mark.parametrize("seed", [2, 11, 25])
def test_the_point_asked_for_has_the_highest_expected_improvement_of_the_grid(seed):
    rng, corners = np.random.default_rng(seed), [(0, 0), (4, 0), (0, 2), (4, 2)]
    points = corners + [divmod(int(place), 3) for place in rng.choice(15, 9)]
    costs = [30 + 2 * (slots - 2) ** 2 + rng.normal() for slots, _ in points]  # a valley, where points are repeated
    found = acquire(points, costs, (5, 3), seed)
    assert found.improvement[found.point] == found.improvement.max()


@pytest.mark.parametrize("seed", [2**32 - 1, 202601311200, 10**30])
def test_any_seed_that_a_study_may_have_proposes_a_point(seed):
    assert acquire([(0, 0), (3, 0)], [1.0, 1.0], (4, 1), seed=seed).point[1] == 0
