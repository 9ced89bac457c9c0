"""A day's load as what is planned for, and what following it saves."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from batch_truths import Engine
from staged_runs import staged_exploration

from workbench.answers.planned import cards
from workbench.capacity import plan
from workbench.capacity.explore import conclude
from workbench.capacity.planning import batch_of, follow, in_turns
from workbench.errors import WorkbenchError
from workbench.records import CapacityPlan, InstanceType
from workbench.study import Planned, Study, read_planned, study_from, write_planned
from workbench.study.targets import plan_targets

FOUND = staged_exploration()  # 3,000 records/s per slot
RATES = [2_000.0, 5_000.0, 18_000.0, 30_000.0, 24_000.0, 0.0]
GIVEN = {"query": "nexmark:q5", "slots": [2, 4, 8], "memory_mb": [600]}
PRICES = (InstanceType("small", "acme", "here", 4, 16384, 0.2, "USD", "a list", "2026-01-31"),)


def least(rate, most):
    """Slots for a rate, tried one by one: they take the partitions of the `most` slots in turns."""
    for slots in range(2, most):
        even = most / slots / math.ceil(most / slots)
        if FOUND.model.predict([[600, slots]])[0] * even >= 1.1 * rate - 1e-6:
            return slots
    return most


@pytest.fixture
def day_file(tmp_path):
    path = tmp_path / "day.csv"
    path.write_text("time_s,rate_per_s\n" + "".join(f"{1800 * n},{rate}\n" for n, rate in enumerate(RATES)))
    return str(path)


def test_every_step_has_the_least_slots_for_its_highest_rate():
    chosen = plan(FOUND, 30_000, memory_mb=[600])
    day = follow(FOUND, chosen, RATES, 1800.0)
    assert day.hours == (1.0, 1.0, 1.0)
    assert day.rates == (5_000.0, 30_000.0, 24_000.0)
    assert day.slots == tuple(least(rate, chosen.budget.slots) for rate in day.rates)
    assert day.slots[1] == day.static_slots == chosen.budget.slots
    assert day.slot_hours == sum(day.slots) < day.static_slot_hours == 3 * chosen.budget.slots
    assert (day.cost, day.whole_static_cost) == (None, None)


def test_a_step_that_is_cut_short_counts_for_its_time():
    chosen = plan(FOUND, 30_000, memory_mb=[600])
    day = follow(FOUND, chosen, [30_000.0] * 5, 1500.0)
    assert day.hours == pytest.approx((3000 / 3600, 3000 / 3600, 1500 / 3600))
    assert day.slot_hours == pytest.approx(day.static_slot_hours) == pytest.approx(7500 / 3600 * chosen.budget.slots)


def test_whole_workers_are_paid():
    chosen = plan(FOUND, 30_000, memory_mb=[600], instances=PRICES)
    day = follow(FOUND, chosen, RATES, 3600.0)
    each = chosen.price.slots_per_worker
    assert day.cost == pytest.approx(0.2 * sum(math.ceil(slots / each) for slots in day.slots))
    assert day.whole_static_cost == pytest.approx(6 * chosen.price.per_hour)
    assert day.slots[-1] == 2  # nothing to do: the least that was measured


def test_every_hour_s_slots_carry_it_with_the_partitions_that_are_frozen():
    engine = Engine(noise=0.05)
    runs = [engine.run(slots, divided=(16,) * (slots == 4), cpus=1.0) for slots in (1, 2, 4)]
    found = conclude(runs, "measured", choice="edge")
    eight = InstanceType("eight", "acme", "here", 8, 65536, 0.2, "USD", "a list", "2026-01-31")
    filled = False
    for peak in range(100_000, 200_000, 5_000):
        chosen = plan(found, float(peak), memory_mb=[1024], instances=[eight])
        filled |= chosen.least_slots < chosen.budget.slots
        frozen = chosen.layout.stateful_partitions
        day = follow(found, chosen, [0.7 * peak, 0.8 * peak, float(peak)], 3600.0)
        assert day.static_slots == chosen.budget.slots
        parts = batch_of(found.measurements, found.model.batch)
        for rate, slots in zip(day.rates, day.slots, strict=True):
            own, kept = (in_turns(parts, np.array([slots]), np.array([n]), 2.0)[0] for n in (slots, frozen))
            assert found.model.capacities(1024, [slots])[0] * kept / own >= 1.1 * rate * (1 - 1e-6)
    assert filled


@pytest.mark.parametrize("prices", [(), PRICES])
def test_a_day_is_followed_with_whole_executors(prices):
    chosen = plan(FOUND, 30_000, memory_mb=[600], instances=prices, executor_slots=3)
    day = follow(FOUND, chosen, RATES, 1800.0)
    assert all(slots % 3 == 0 for slots in (*day.slots, day.static_slots))
    usual = follow(FOUND, plan(FOUND, 30_000, memory_mb=[600]), RATES, 1800.0)
    assert any(slots % 3 for slots in usual.slots)
    if not prices:
        assert day.slots[1] == day.static_slots == chosen.budget.slots


def test_a_day_takes_the_place_of_targets(day_file):
    study = study_from(GIVEN | {"day": day_file})
    assert (study.targets, study.low_rate) == ((30_000.0,), 2_000.0)  # of those above 0
    own = study_from(GIVEN | {"day": day_file, "targets": [1e3]})
    assert (own.targets, own.low_rate) == ((1e3,), None)
    assert study_from(GIVEN | {"day": day_file, "low_rate": 500.0}).low_rate == 500.0


def test_a_day_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(WorkbenchError, match=r"The study: .*nowhere\.csv"):
        study_from(GIVEN | {"day": str(tmp_path / "nowhere.csv")})
    with pytest.raises(WorkbenchError, match="lacks 'targets'"):
        study_from(GIVEN)


def test_the_plan_for_the_peak_alone_has_the_day_and_the_report_says_what_it_saves(day_file):
    study = Study("nexmark:q5", (10_000.0, 30_000.0), (2, 4, 8), (600,), day=day_file)
    planned: Planned = plan_targets(study, FOUND, (), PRICES)
    small, peak = planned.plans
    assert small.day is None
    assert CapacityPlan.from_json(peak.to_json()) == peak
    card = next(one for one in cards(planned) if one.name == "day")
    assert f"{peak.day.static_slots} slots all day are" in card.finding
    assert "less; in whole workers" in card.finding
    assert len(card.table.rows) == 3
    unmet = replace(planned, plans=(small,))
    assert "No plan carries the day's peak" in next(one for one in cards(unmet) if one.name == "day").finding


def test_stored_plans_are_read_where_the_day_is_gone(day_file, tmp_path):
    study = Study("nexmark:q5", (30_000.0,), (2, 4, 8), (600,), day=day_file)
    planned = plan_targets(study, FOUND, (), PRICES)
    write_planned(planned, tmp_path / "plan.json")
    Path(day_file).unlink()
    assert read_planned(tmp_path / "plan.json").plans == planned.plans
    assert plan_targets(study, FOUND, (), PRICES).plans[0].day is None
