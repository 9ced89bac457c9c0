"""Slots to catch up after an outage, and how long records wait."""

import math
from dataclasses import replace

import pytest
from staged_runs import staged_exploration

from workbench.answers.planned import cards
from workbench.capacity import plan
from workbench.capacity.planning import Question, ask
from workbench.errors import WorkbenchError
from workbench.records import CapacityPlan, Outage
from workbench.study import Planned, Study, study_from
from workbench.views.widgets import WhatIf

MEMORY = [600]
FOUND = staged_exploration()  # 3,000 records/s per slot
OUTAGE = Outage(600, 1200)


def backlog_after(chosen, outage_s, seconds):
    """Records waiting `seconds` after an outage, record by record of a plain model."""
    return max(0.0, chosen.rate * outage_s - (chosen.expected_rate - chosen.rate) * seconds)


def test_the_backlog_of_the_outage_is_gone_in_time_and_with_a_slot_less_it_is_not():
    chosen = plan(FOUND, 20_000, memory_mb=MEMORY, outage=OUTAGE)
    assert chosen.margin == pytest.approx(1.5)
    assert backlog_after(chosen, 600, 1200) == 0
    assert chosen.catch_up_s(600) <= 1200
    fewer = replace(chosen, expected_rate=float(FOUND.model.predict([[600, chosen.budget.slots - 1]])[0]))
    assert backlog_after(fewer, 600, 1200) > 0
    assert chosen.budget.slots > plan(FOUND, 20_000, memory_mb=MEMORY).budget.slots


def test_a_short_outage_asks_for_no_more_than_the_margin():
    usual = plan(FOUND, 20_000, memory_mb=MEMORY)
    assert plan(FOUND, 20_000, memory_mb=MEMORY, outage=Outage(10, 3600)).budget == usual.budget
    risky = plan(FOUND, 20_000, memory_mb=MEMORY, risk=0.05)
    after = plan(FOUND, 20_000, memory_mb=MEMORY, risk=0.05, outage=OUTAGE)
    assert after.budget.slots > risky.budget.slots
    assert after.low * 1.02 >= 1.5 * 20_000  # the end that a risk of 5 % goes by


def test_what_if_gives_the_same_slots():
    chosen = plan(FOUND, 20_000, memory_mb=MEMORY, outage=OUTAGE)
    answer = ask(FOUND, Question(20_000, 600, outage=OUTAGE))
    assert answer.plan.budget == chosen.budget
    assert answer.plan.catch_up_s(600) == pytest.approx(chosen.catch_up_s(600))


def test_without_spare_capacity_nothing_is_caught_up_with():
    chosen = plan(FOUND, 20_000, memory_mb=MEMORY)
    assert chosen.catch_up_s(600, chosen.rate) == math.inf
    assert chosen.catch_up_s(600, 2 * chosen.rate) == pytest.approx(600)


def test_records_wait_for_a_trigger_and_for_their_batch():
    chosen = replace(plan(FOUND, 20_000, memory_mb=MEMORY), layout=None)
    interval, busy = chosen.budget.interval_s, chosen.rate / chosen.expected_rate
    assert chosen.latency_s(0.5) == pytest.approx((0.5 + busy) * interval)
    assert chosen.latency_s(0.99) == pytest.approx((0.99 + busy) * interval)
    assert replace(chosen, rate=2 * chosen.expected_rate).latency_s(0.5) == math.inf


def test_the_plan_its_document_and_its_report_say_so():
    chosen = plan(FOUND, 20_000, memory_mb=MEMORY, outage=OUTAGE)
    assert CapacityPlan.from_json(chosen.to_json()) == chosen
    study = Study("nexmark:q5", (20_000.0,), (2, 4, 8), (600,), outage_s=600, catch_up_s=1200)
    card = next(one for one in cards(Planned(study, FOUND, (chosen,))) if one.name == "waiting")
    assert "half of the records wait at most" in card.finding
    assert "After 10 min down, the backlog at 20 k records/s is gone in about" in card.finding


def test_one_key_of_the_study_without_the_other_is_refused():
    given = {"query": "nexmark:q1", "targets": [1e4], "slots": [1, 2], "memory_mb": [1024]}
    with pytest.raises(WorkbenchError, match=r"outage_s is given without catch_up_s\. Add it, or leave both out"):
        study_from(given | {"outage_s": 600})
    with pytest.raises(WorkbenchError, match="catch_up_s is given without outage_s"):
        study_from(given | {"catch_up_s": 600})
    with pytest.raises(WorkbenchError, match=r"outage_s is -1; it must be at least 0.001 and at most 604800 .seconds."):
        study_from(given | {"outage_s": -1, "catch_up_s": 1})


def test_a_plan_without_spare_capacity_says_that_the_backlog_stays():
    chosen = plan(FOUND, 20_000, memory_mb=MEMORY, margin=1.0)
    full = replace(chosen, expected_rate=20_000.0, low=19_000.0)
    study = Study("nexmark:q5", (20_000.0,), (2, 4, 8), (600,))
    card = next(one for one in cards(Planned(study, FOUND, (full,))) if one.name == "waiting")
    assert "After 10 min down, the backlog at 20 k records/s never clears." in card.finding


def test_the_panel_begins_where_a_plan_for_a_long_outage_is():
    long = Outage(86_400, 43_200.0)
    chosen = plan(FOUND, 20_000, memory_mb=MEMORY, outage=long)
    study = Study("nexmark:q5", (20_000.0,), (2, 4, 8), (600,), outage_s=long.outage_s, catch_up_s=long.catch_up_s)
    panel = WhatIf(Planned(study, FOUND, (chosen,)))
    assert panel.question().outage == long
    assert panel.answer.plan.budget.slots == chosen.budget.slots
