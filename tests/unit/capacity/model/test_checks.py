"""Which readings a model should not rest on, what is doubtful about its answer, and commands that can be run."""

import numpy as np
import pytest
from capacity_runs import BUDGETS, proportional, raises

from workbench.capacity import CapacityModel, ScalingModel, check_model, review_readings
from workbench.capacity.model import Asked, outliers, remedies


def stuck_at(limit, rows, noise=0.03):
    rng = np.random.default_rng(8)
    y = proportional(BUDGETS) * rng.lognormal(0, noise, len(BUDGETS))
    y[list(rows)] = limit * (1 + 2e-3 * rng.uniform(size=len(rows)))
    return y


def test_stuck_readings_are_found_also_of_two_limits():
    y = stuck_at(100_000, (2, 5, 7))
    review = review_readings(BUDGETS, y)
    (group,) = review.outliers
    assert group.runs == (2, 5, 7)
    assert group.budgets == 3
    assert group.expected == (pytest.approx(8 * 50_000, rel=0.15), pytest.approx(29 * 50_000, rel=0.15))
    assert [row for row, valid in enumerate(review.valid) if not valid] == [2, 5, 7]
    y[[3, 6, 9]] = 40_000
    review = review_readings(BUDGETS, y)
    assert sorted(group.runs for group in review.outliers) == [(2, 5, 7), (3, 6, 9)]


def test_equal_readings_of_one_slot_count_and_a_query_that_levels_off_are_no_limit():
    assert review_readings(BUDGETS, stuck_at(100_000, (7,))).outliers == ()
    y = proportional(BUDGETS)  # three memories each, to the last digit
    assert review_readings(BUDGETS, y).outliers == ()
    y[BUDGETS[:, 1] == 16] = 100_000.0  # low, but at one slot count: nothing says that it is a limit
    assert review_readings(BUDGETS, y).outliers == ()
    # Its readings lie in one cell of the estimator's grid, so they are equal; no smaller budget carries more.
    slots = BUDGETS[:, 1]
    y = np.where(slots >= 8, 240_000.0, proportional(BUDGETS))
    assert (y[slots < 8] < 240_000).all()
    assert review_readings(BUDGETS, y).outliers == ()
    assert review_readings(BUDGETS, y, 1.2 * proportional(BUDGETS)).outliers == ()  # it knows no hot key


def test_objectives_may_excuse_a_reading_and_alone_tell_stuck_ones_from_a_fit_of_nothing():
    y = stuck_at(100_000, (2, 5, 7))
    objectives = np.full(len(y), np.nan)
    assert len(review_readings(BUDGETS, y, objectives).outliers) == 1
    objectives[[2, 5, 7]] = 110_000
    assert review_readings(BUDGETS, y, objectives).outliers == ()
    with raises("The objectives have the shape (2,); X has 12 rows, so give 12 objectives, nan where there is none."):
        review_readings(BUDGETS, y, [1, 2])
    points = [[512, 2], [512, 4], [512, 8]]
    assert review_readings(points, [1e5, 1e5, 1e5]).outliers == ()
    assert len(review_readings(points, [1e5, 1e5, 1e5], [2e5, 4e5, 8e5]).outliers) == 1


# checks


def findings(model, runs, y, slots, memory=1024):
    return {finding.concern: finding for finding in check_model(model, runs, y, slots, memory)}


def test_nothing_is_doubtful_within_steady_runs():
    runs = np.repeat(BUDGETS, 3, axis=0)
    y = proportional(runs) * np.random.default_rng(1).lognormal(0, 0.02, len(runs))
    assert findings(ScalingModel().fit(runs, y), runs, y, 30) == {}


def test_doubts_are_found_and_advise():
    rng = np.random.default_rng(1)
    runs = BUDGETS[[0, 1, 8, 9]]
    y = proportional(runs) * (runs[:, 0] / 512) ** 0.2 * rng.lognormal(0, 0.02, len(runs))
    found = findings(ScalingModel().fit(runs, y), runs, y, 180)
    assert set(found) == {"few runs", "extrapolation", "forms disagree", "wide interval", "memory at the edge"}
    assert found["extrapolation"].value == pytest.approx(20)
    assert found["forms disagree"].value > 0.5
    assert found.pop("memory at the edge").command == "workbench plan STUDY.yaml"
    assert all(finding.advice.endswith(".") and not finding.command for finding in found.values())


def test_models_that_differ_at_slots_that_were_measured_are_not_separated_by_more_slots():
    runs = np.array([[1024, 1], [1024, 2], [1024, 4], [1024, 8]])
    y = np.array([50_000, 60_000, 62_000, 61_000])
    found = findings(ScalingModel().fit(runs, y), runs, y, 1)["forms disagree"]
    assert found.advice == "Measure again at about 1 slot: more runs there separate the models."


def test_a_memory_that_was_not_measured_is_a_doubt():
    runs = np.repeat(BUDGETS, 3, axis=0)
    y = proportional(runs)
    model = ScalingModel().fit(runs, y)
    found = findings(model, runs, y, 30, memory=16384)["memory not measured"]
    assert found.value == 4
    assert found.finding.startswith("The memory of 16,384 MB per slot lies outside the 512 to 4,096 MB measured")
    assert findings(model, runs, y, 30, memory=256)["memory not measured"].value == 2
    for memory in (512, 700, 4096):
        assert "memory not measured" not in findings(model, runs, y, 30, memory=memory)


def test_levelling_off_is_a_doubt():
    y = 1e5 * BUDGETS[:, 1] ** 0.4 * np.random.default_rng(5).lognormal(0, 0.03, len(BUDGETS))
    assert "levels off" in findings(CapacityModel("linear").fit(BUDGETS, y), BUDGETS, y, 60)
    with raises("The target is slots = 0, memory_mb = 1024; both must be positive. Give a budget."):
        check_model(CapacityModel().fit(BUDGETS, y), BUDGETS, y, 0, 1024)


def test_readings_that_grow_with_the_slots_are_reviewed_without_a_fit(monkeypatch):
    monkeypatch.setattr(outliers, "fit_scaling_law", None)
    rng = np.random.default_rng(3)
    for repeats in (2, 20):
        points = np.repeat(BUDGETS, repeats, axis=0)
        review = review_readings(points, proportional(points) * rng.lognormal(0, 0.03, len(points)))
        assert review.outliers == ()


def test_a_command_names_the_file_that_is_known_and_repeats_the_options_of_a_plan():
    assert Asked(study="my studies/q5.yaml").plan("Now").command == "workbench plan 'my studies/q5.yaml'"
    assert str(Asked().plan("Now")) == "Now run: workbench plan STUDY.yaml"
    read = Asked("observed", log="app 1", options={"interval": 2.0})
    assert read.observe(1e6, 0.05) == "workbench observe 'app 1' --interval 2 --target 1000000 --risk 0.05"
    assert read.observe(another=True) == "workbench observe LOG --interval 2"
    given = {"master": "spark://one:7077", "checkpoint": "/mnt/all", "journal": "mine.jsonl"}
    advised = remedies(Asked(study="slow.yaml", options=given))
    there = "workbench plan slow.yaml --master spark://one:7077 --checkpoint /mnt/all"
    assert advised.safer.command == f"{there} --journal mine.jsonl"
    assert advised.larger.command == f"{there} --journal mine.jsonl"
    assert advised.quieter.command == f"{there} --journal NEW.jsonl"


def test_what_measured_measures_again_and_less_risk_is_advised_than_was_asked_for():
    for kind in ("spark", "fluid", "recorded"):
        for each in remedies(Asked(kind, "slow.yaml", scheduled=True)):
            assert each.words.endswith("run the report again.")
            assert not each.command
    for asked, advised in ((None, "0.05"), (0.3, "0.05"), (0.05, "0.025"), (0.02, "0.01")):
        assert remedies(Asked(risk=asked)).safer.words.startswith(f'Set "risk: {advised}" in the study')
        assert remedies(Asked("observed", risk=asked), 2e5).safer.command.endswith(f"--target 200000 --risk {advised}")
    advised = remedies(Asked("observed", "a.yaml", "app"), 2e5)
    assert all(each.command == "workbench plan a.yaml" for each in (advised.safer, advised.quieter))
