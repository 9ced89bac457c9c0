"""Capacity extrapolated through the mechanism of queries whose truth is the engine's steady state."""

import math
from dataclasses import replace

import numpy as np
import pytest
from query_truths import capacity, chain, dealt, explored, operator, random_query, run

from workbench.capacity import CapacityModel, ScalingModel, check_model, model_of_form
from workbench.capacity.model import Mechanism, mechanism
from workbench.capacity.model.mechanism import fit_mechanism, largest_draw
from workbench.capacity.model.operators import read_evidence
from workbench.capacity.model.scaling_law import ScalingLaw
from workbench.errors import WorkbenchError
from workbench.simulation import StateModel

US = 1e-6
SINK = operator(0.15 * US, 0.0)
PIPELINED = chain({"parse": operator(2 * US, 0.5, exchange_s=1 * US), "sink": SINK}, live_mb=20.0)
UNEVEN = chain(
    {
        "filter": operator(0.3 * US, 0.9),
        "sessions": operator(
            10 * US, 0.05, stateful=True, exchange_s=6 * US, imbalance=0.15, state=StateModel(8000.0, miss_s=8 * US)
        ),
        "sink": SINK,
    }
)
IN_TURN = chain(
    {
        "count": operator(10 * US, 0.05, stateful=True, windowed=True, emission_s=0.5 * US),
        "join": operator(60 * US, 0.01, stateful=True, imbalance=0.1),
        "sink": SINK,
    },
    window_s=10.0,
)
HOT = chain({"count": operator(5 * US, 0.1, stateful=True, hot_share=0.02), "sink": SINK})


def fitted(runs, form="scaling"):
    points = [[one.budget.profile.memory_mb, one.budget.slots] for one in runs]
    return model_of_form(form, stateful=True).fit(points, [one.estimate.rate for one in runs], runs)


@pytest.mark.parametrize("query", [PIPELINED, UNEVEN, IN_TURN, HOT], ids=["pipelined", "uneven", "in turn", "hot key"])
@pytest.mark.parametrize("slots", [64, 320, 640])
def test_runs_without_run_effects_are_extrapolated_to_twenty_times_the_slots(query, slots):
    model = fitted(explored(query, 32))
    assert isinstance(model.law_, Mechanism)
    for memory in (1024, 4096):
        truth = capacity(query, memory, slots)
        assert model.predict([[memory, slots]])[0] == pytest.approx(truth, rel=0.06)
        low, high = model.interval([[memory, slots]])
        assert low[0] <= truth <= high[0]


def test_what_is_below_a_quantile_has_its_probability():
    law = fitted(explored(UNEVEN, 32)).law_
    asked = np.array([[1024, 64], [4096, 100.5]])
    for probability in (0.05, 0.5, 0.9):
        assert law.below(asked, law.quantile(asked, probability)) == pytest.approx(probability, abs=0.01)


def test_the_slots_for_a_rate_are_nearly_those_it_takes():
    truth = capacity(PIPELINED, 1024, 300)
    assert fitted(explored(PIPELINED, 32)).slots_for(truth, 1024, 1.0) == pytest.approx(300, rel=0.04)


def test_the_least_slots_are_found_where_one_slot_more_carries_less(monkeypatch):
    model = fitted(explored(PIPELINED, 32))
    assert isinstance(model.law_, Mechanism)
    monkeypatch.setattr(
        model, "_predict", lambda points: np.where(points[:, 1] == 7, 2e4, 1e3 * np.minimum(points[:, 1], 40))
    )
    assert model.slots_for(15e3, 1024, 1.0, min_slots=2) == 7
    assert model.slots_for(25e3, 1024, 1.0, min_slots=2) == 25
    assert model.slots_for(39e3, 1024, 1.0, min_slots=2) == 39  # beyond the most measured
    with pytest.raises(
        WorkbenchError, match=r"No number of slots up to 1,000,000,000 .* that many sustain 40.0 k records/s"
    ):
        model.slots_for(45e3, 1024, 1.0, min_slots=2)


def test_run_effects_are_averaged_and_nothing_else_is_lost():
    """A fast deployment speeds up all its operators alike: their ratios count, the level is the run effect."""
    speeds = (0.9, 1.05, 0.97, 1.12, 0.93, 1.08, 1.0, 1.02, 0.95, 0.98)
    budgets = [(one.budget.profile.memory_mb, one.budget.slots) for one in explored(UNEVEN, 32)]
    runs = [run(UNEVEN, *budget, speed) for budget, speed in zip(budgets, speeds, strict=True)]
    ratio = fitted(runs).predict([[4096, 320]]) / fitted(explored(UNEVEN, 32)).predict([[4096, 320]])
    assert ratio[0] == pytest.approx(np.mean(speeds), abs=0.01)


def test_operators_that_take_turns_are_found_and_others_are_not():
    turns, pipelined = fitted(explored(IN_TURN, 32)).law_, fitted(explored(UNEVEN, 32)).law_
    assert np.mean(turns.phase[:, 0] < turns.phase[:, 1]) > 0.99  # count before join
    assert np.mean(pipelined.phase[:, 1] == 0) > 0.99  # sessions with the filter
    # an efficiency of 1 is found: phases and skew explain the rates
    assert np.median(turns.efficiency) == pytest.approx(0.0, abs=0.02)


def test_a_hot_key_limits_what_any_number_of_slots_carries():
    model = fitted(explored(HOT, 32))
    most = 1 / (5 * US * 0.02)  # the hot key's task alone
    assert model.law_.levelling > 0.95
    assert np.median(model.law_.hot[:, 0]) == pytest.approx(0.02, rel=0.05)
    with pytest.raises(WorkbenchError, match=r"No number of slots up to 1,000,000,000 sustains"):
        model.slots_for(1.5 * most, 1024, 1.0)
    findings = {one.concern: one for one in check_model(model, [[1024, 32], [1024, 2]], [1.0, 2.0], 300, 1024)}
    assert "by 320 slots: slots that are added carry clearly less than" in findings["levels off"].finding


def test_two_slot_counts_cannot_tell_a_hot_key_from_uneven_ones_and_the_interval_says_so():
    runs = explored(UNEVEN, 32)
    edge = [one for one in runs if one.budget.slots != 17]
    width = {}
    for name, some in (("three", runs), ("two", edge)):
        low, high = fitted(some).interval([[4096, 320]])
        width[name] = high[0] - low[0]
    assert width["two"] > 1.5 * width["three"]


def test_a_cache_that_fills_with_more_tasks_is_carried_on():
    law = fitted(explored(UNEVEN, 32)).law_
    assert np.median(law.working_set[:, 1]) == pytest.approx(
        8000 / 0.4, rel=0.05
    )  # of slot memory, 0.4 of which caches


def test_intervals_hold_the_truth_as_often_as_they_say():
    hits = []
    for seed in range(40):
        query = random_query(seed)
        most = 5 * len(query.modelled)
        law = fit_mechanism(explored(query, most, seed=seed))
        if law is None:
            continue
        truth = capacity(query, 4096, 5 * most)
        low, high = (law.quantile(np.array([[4096, 5 * most]]), end)[0] for end in (0.05, 0.95))
        hits.append(low <= truth <= high)
    assert len(hits) >= 36
    assert 0.8 <= np.mean(hits) <= 1.0


@pytest.mark.parametrize(
    "spoil",
    [
        lambda one: replace(one, tasks=None),
        lambda one: replace(one, estimate=replace(one.estimate, observation=None)),
        lambda one: replace(
            one,
            estimate=replace(
                one.estimate,
                observation=replace(one.estimate.observation, operators=one.estimate.observation.operators[:1]),
            ),
        ),
    ],
    ids=["no tasks distributed", "nothing observed", "an operator missing"],
)
def test_where_a_run_tells_nothing_of_its_operators_the_scaling_law_takes_over(spoil):
    runs = explored(PIPELINED, 32)
    model = fitted([*runs[:-1], spoil(runs[-1])])
    assert isinstance(model.law_, ScalingLaw)
    points = [[one.budget.profile.memory_mb, one.budget.slots] for one in runs]
    plain = ScalingModel(stateful=True).fit(points, [one.estimate.rate for one in runs])
    np.testing.assert_array_equal(model.predict([[1024, 99]]), plain.predict([[1024, 99]]))


def test_rates_that_the_operators_do_not_explain_are_left_to_the_scaling_law():
    """Something else limits the large runs: all operators stand idle, and no way to take turns explains it."""
    runs = [
        replace(one, estimate=replace(one.estimate, rate=share * one.estimate.rate, low=share * one.estimate.low,
                                      high=share * one.estimate.high))
        for one in explored(PIPELINED, 32)
        for share in [(0.3 if one.budget.slots == 32 else 1.0)]
    ]  # fmt: skip
    assert fit_mechanism(runs) is None
    assert isinstance(fitted(runs).law_, ScalingLaw)


@pytest.mark.parametrize("skew", [1e-18, 1e18])
def test_the_fullest_task_has_the_mean_at_least_and_everything_at_most(skew):
    def skewed(one):
        seen = one.estimate.observation
        operators = tuple(replace(each, key_skew=skew) for each in seen.operators)
        return replace(one, estimate=replace(one.estimate, observation=replace(seen, operators=operators)))

    seen = read_evidence([skewed(one) for one in explored(PIPELINED, 32)])
    np.testing.assert_array_equal(seen.skew, seen.tasks if skew > 1 else np.ones_like(seen.tasks))


def test_one_slot_count_or_no_minimal_configuration_is_not_enough():
    runs = explored(PIPELINED, 32)
    assert fit_mechanism([one for one in runs if one.budget.slots == 2]) is None
    assert fit_mechanism([one for one in runs if one.budget.slots > 2]) is None


def test_a_run_is_given_for_every_rate():
    runs = explored(PIPELINED, 32)
    with pytest.raises(WorkbenchError, match=r"There are 9 runs for 10 rows; give the one behind each row\."):
        CapacityModel().fit([[1024, 2]] * 10, [1.0] * 10, runs[1:])


def test_forms_of_least_squares_keep_their_prediction_and_share_the_interval():
    runs = explored(PIPELINED, 32)
    linear, ours = fitted(runs, "linear"), fitted(runs)
    points = [[one.budget.profile.memory_mb, one.budget.slots] for one in runs]
    plain = CapacityModel("linear").fit(points, [one.estimate.rate for one in runs])
    np.testing.assert_array_equal(linear.coef_, plain.coef_)
    assert linear.interval([[1024, 100]])[1] >= ours.interval([[1024, 100]])[1]


def test_the_tasks_are_those_that_the_optimizer_deals_out():
    law = fitted(explored(IN_TURN, 32)).law_
    for slots in (3, 10, 77):
        assert list(law.tasks(1024, slots)) == list(dealt(IN_TURN, 1024, slots).values())


def test_between_whole_slots_and_below_one_per_operator_capacity_is_in_proportion():
    model = fitted(explored(UNEVEN, 32))
    low, middle, high = model.predict([[2048, 40], [2048, 40.5], [2048, 41]])
    assert min(low, high) <= middle <= max(low, high)
    assert model.predict([[2048, 1.5]])[0] == pytest.approx(model.predict([[2048, 3]])[0] / 2)


def test_the_same_runs_give_the_same_model_and_twice_the_speed_twice_the_rate():
    runs = explored(UNEVEN, 32, seed=3)
    assert fitted(runs).predict([[1024, 300]]) == fitted(runs).predict([[1024, 300]])
    budgets = [(one.budget.profile.memory_mb, one.budget.slots) for one in runs]
    twice = fitted([run(UNEVEN, *budget, 2.0) for budget in budgets]).predict([[1024, 300]])
    once = fitted([run(UNEVEN, *budget, 1.0) for budget in budgets]).predict([[1024, 300]])
    assert twice[0] == pytest.approx(2 * once[0], rel=0.01)


@pytest.mark.parametrize("tasks", [2, 5, 20, 100, 1000])
def test_the_largest_draw_is_that_of_normal_draws(tasks):
    grid = np.linspace(-8, 8, 40001)
    below = np.array([0.5 * math.erfc(-z / math.sqrt(2)) for z in grid]) ** tasks
    expected = 8 - below.sum() * (grid[1] - grid[0])  # of a variable below 8
    assert largest_draw(np.array([float(tasks)]))[0] == pytest.approx(expected, rel=0.05)
    assert largest_draw(np.array([1.0]))[0] == 0


def test_the_largest_of_any_number_of_draws_is_finite():
    assert largest_draw(np.array([1e18]))[0] == pytest.approx(8.8, rel=0.02)


def test_what_is_searched_for_does_not_grow_with_the_runs(monkeypatch):
    searched = []
    search = mechanism.least_squares
    monkeypatch.setattr(
        mechanism,
        "least_squares",
        lambda function, start, **given: searched.append(len(start)) or search(function, start, **given),
    )
    runs = explored(PIPELINED, 32)
    assert fit_mechanism(runs) is not None
    assert fit_mechanism(runs * 5) is not None
    assert len(set(searched)) == 1
