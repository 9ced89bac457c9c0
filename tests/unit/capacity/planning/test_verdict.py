"""Verdicts, their reasons and remedies, and the slots that are paid for anyway."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from staged_runs import staged_exploration

from workbench.capacity import plan
from workbench.capacity.model import Asked, Room, checks
from workbench.capacity.planning import Question, ask
from workbench.capacity.planning.judged import fill
from workbench.capacity.planning.judged import judge as judge_plan
from workbench.records import Machine, ModelFinding

CALM = {"risk": 0.004, "load": 1e5, "alike": {}}
PLAN = replace(
    plan(staged_exploration(), 1e5, memory_mb=[600]), low=1.1e5, high=1.4e5, extrapolation=1.5, runs=3, cards=()
)


def judge(**changes):
    """Judge a plan without doubts, changed."""
    own = {name: changes.pop(name) for name in ("low", "high", "extrapolation", "cards") if name in changes}
    return judge_plan(replace(PLAN, **own), **(CALM | changes))


def finding(concern, value):
    return ModelFinding(concern, value, f"about {concern}", f"do something about {concern}")


def test_a_plan_without_doubts_is_safe_and_no_risk_is_advised_that_no_slots_attain():
    verdict = judge()
    assert (verdict.level, verdict.remedy) == ("safe", "")
    assert verdict.reason == "The probability that its capacity is below the rate is 0.4 %."
    assert "under 0.1 %" in judge(risk=0.0).reason
    unattainable = judge(risk=0.3, attainable=False)
    assert unattainable.reason.startswith("The probability that its capacity is below the rate is 30 %")
    assert unattainable.advised == judge(extrapolation=5.0).advised
    assert judge(cards=(finding("doubtful runs", 3),)).remedy == "do something about doubtful runs"


@pytest.mark.parametrize(
    ("change", "level", "reason"),
    [
        ({"risk": 0.3}, "don't rely on it yet", "The probability that its capacity is below the rate is 30 %."),
        ({"extrapolation": 5.0}, "don't rely on it yet", "It has 5 times as many slots as the largest"),
        ({"risk": 0.3, "extrapolation": 5.0}, "don't rely on it yet", "It has 5 times as many slots"),
        ({"high": 3e5}, "don't rely on it yet", "Its capacity is known only to within a factor of 2.7."),
        ({"low": 0.0}, "don't rely on it yet", "Its capacity has no known lower bound."),
        ({"cards": (finding("doubtful runs", 3),)}, "verify first", "100 % of the runs are doubtful."),
        ({"risk": 0.1}, "risky", "The probability that its capacity is below the rate is 10 %."),
        ({"cards": (finding("late batches", 1.4),), "risk": 0.1, "extrapolation": 3.0}, "risky", "about late batches"),
        ({"extrapolation": 3.0, "risk": 0.051}, "risky", "It has 3 times as many slots as the largest"),
        ({"extrapolation": 3.0}, "verify first", "It has 3 times as many slots as the largest deployment measured."),
        ({"cards": (finding("doubtful runs", 2),), "risk": 0.0}, "verify first", "67 % of the runs are doubtful."),
        ({"cards": (finding("hot key", 3.0),)}, "verify first", "about hot key"),
        ({"cards": (finding("forms disagree", 0.9),)}, "safe", "The probability"),
        (
            {"cards": (finding("forms disagree", 0.9),), "extrapolation": 3.0, "alike": {"log": 0.9e5, "sqrt": 2e5}},
            "don't rely on it yet",
            "Models that fit the runs equally well differ by 90 % here.",
        ),
        (
            {"cards": (finding("forms disagree", 0.9),), "extrapolation": 1.9, "alike": {"log": 1.1e5, "sqrt": 2e5}},
            "safe",
            "The probability",
        ),
        ({"alike": {"linear": 1.3e5, "log": 0.98e5}}, "verify first", "By the log form, which fits the runs"),
        ({"alike": {"log": 0.98e5}, "extrapolation": 1.0}, "safe", "The probability"),
    ],
)
def test_the_gravest_doubt_is_the_reason_and_has_a_remedy(change, level, reason):
    verdict = judge(**change)
    assert verdict.level == level
    assert verdict.reason.startswith(reason)
    assert bool(verdict.remedy) == (level != "safe")


def known(risks, least):
    """Risks by slots, the first at `least`; asked of no slots that have none."""
    return lambda counts: [risks[slots - least] for slots in counts]


def test_paid_slots_are_taken_until_the_risk_is_one_percent():
    assert fill(6, 9, 6, known([0.24, 0.075, 0.036, 0.024], 6)) == 9
    assert fill(6, 9, 6, known([0.24, 0.075, 0.009, 0.001], 6)) == 8
    assert fill(6, 9, 6, known([0.009, 0.001, 0.001, 0.001], 6)) == 6
    assert fill(6, 20, 4, known([0.24, 0.2, 0.1], 6)) == 8  # nobody has seen more than twice four slots
    assert fill(6, 6, 4, known([0.24], 6)) == 6


@given(st.integers(1, 20), st.integers(0, 20), st.integers(1, 40), st.data())
def test_filling_never_costs_more_nor_makes_it_riskier(least, more, measured, data):
    risks = data.draw(st.lists(st.floats(0, 1), min_size=more + 1, max_size=more + 1))
    chosen = fill(least, least + more, measured, known(risks, least))
    assert least <= chosen <= least + more
    assert risks[chosen - least] <= max(risks[0], 0.01)


@pytest.mark.parametrize("kind", ["spark", "fluid", "recorded", "observed"])
def test_a_remedy_is_a_command_that_there_is_for_such_runs(kind):
    changes = ({"extrapolation": 5.0}, {"risk": 0.3})
    remedies = [str(judge(asked=Asked(kind), **change).advised) for change in changes]
    assert ("workbench observe LOG" in remedies[1]) == (kind == "observed")
    assert ("table" in remedies[0]) == (kind == "recorded")
    assert remedies[1].endswith("--risk 0.05" if kind == "observed" else "run: workbench plan STUDY.yaml")


def test_larger_counts_are_advised_as_far_as_the_machine_of_the_runs_goes():
    asked, command = Asked("spark", "a.yaml"), "then run: workbench plan a.yaml"

    def advised(room, slots):
        far = replace(PLAN, budget=replace(PLAN.budget, slots=slots), extrapolation=5.0)
        return str(judge_plan(far, **CALM, asked=asked, room=room).advised)

    assert advised(None, 45) == f"Add larger counts to slots in the study, {command}"
    assert advised(Room(2, 4, 0.4), 8) == f"Add larger counts to slots in the study, up to 4, {command}"
    beyond = advised(Room(2, 4, 0.4), 45)
    assert beyond.startswith(
        "The machine of the runs has room for 4 slots of 0.4 core; more needs a cluster (master). Add"
    )
    full = advised(Room(4, 4, 0.4), 45)
    assert "room for 4 slots of 0.4 core; smaller slots (slot_cpus) give more counts, but no more cores. With" in full
    assert full.endswith(f"With one, set master and larger counts of slots in the study, {command}")


def test_the_room_is_that_of_the_machine_that_was_measured():
    runs = staged_exploration(slots=(1, 2)).fitted_runs

    def room(**machine):
        known = {"slots": "a CPU quota of 0.8 cores for 2 slots", "cores": 2.0, "facts": {}} | machine
        return Room.of([replace(run, testbed_kind="spark", machine=Machine(**known)) for run in runs])

    assert room() == Room(2, 4, 0.4)
    assert room(slots="whole cores, no quota", cores=8.0).most == 17  # of seven cores
    assert room(facts={"master": "standalone"}) is None
    assert room(cores=None) is None
    assert Room.of(runs) is None  # simulated


@pytest.mark.parametrize(
    "planned",
    [lambda found: plan(found, 20_000, memory_mb=[600]), lambda found: ask(found, Question(20_000, 600))],
    ids=["plan", "what if"],
)
def test_the_forms_are_fitted_once_for_their_note_and_for_the_verdict(planned, monkeypatch):
    fitted, fit = [], checks.fit_least_squares
    monkeypatch.setattr(checks, "fit_least_squares", lambda form, *runs: fitted.append(form) or fit(form, *runs))
    planned(staged_exploration())
    assert fitted == ["linear", "sqrt", "log"]
