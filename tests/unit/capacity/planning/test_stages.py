"""The stages of a micro-batch, their partitions in a plan that shrinks and grows, the source's share, a day's load."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from batch_truths import SCAN, STATE, Engine
from example_measurement import example_measurement
from staged_runs import laid_out, seeing, staged_exploration, with_source

from workbench.answers.planned import cards
from workbench.capacity import bids2, bids2_micro_batch, plan
from workbench.capacity.explore import conclude
from workbench.capacity.model import fit_micro_batch
from workbench.capacity.partitions import at_rate
from workbench.capacity.planning import batch_of, follow, in_turns
from workbench.capacity.planning.checks import (
    check_allocation,
    check_filled,
    check_layouts,
    check_source,
    check_source_partitions,
)
from workbench.capacity.planning.stages import least_slots, source_share
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.metrics import ExecutorPace, WriteCost
from workbench.records import CapacityPlan, InstanceType, OperatorCost
from workbench.study import Planned, Study, read_planned, study_from, write_planned
from workbench.study.planned import plan_targets

STUDY = Study("nexmark:q5", (2e5,), (9, 12, 18), (2048,), testbed="fluid", slot_cpus=1.0, most_runs=4)


def in_stages(run):
    """The same run, had its operators been stages that take turns: the first reads, the rest keep state."""
    seen = run.estimate.observation
    operators = tuple(
        replace(one, scans=number == 0, state_bytes=None if number < 2 else 1e6)
        for number, one in enumerate(seen.operators)
    )
    costs = tuple(
        OperatorCost(one.operator, 0.001, 2e-6, 0.0, 1.0, 1e6, 9, 3) for one in operators if one.kind != "source"
    )
    return replace(seeing(run, operators=operators), costs=costs, tasks=None)


@pytest.fixture(scope="module")
def exploration(planned):
    explored = planned.exploration
    return replace(explored, runs=tuple(in_stages(run) for run in explored.measurements))


def test_without_a_lowest_load_the_layout_is_that_of_the_planned_slots(exploration):
    made = plan(exploration, 2e5, memory_mb=(2048,))
    slots, batch = made.budget.slots, batch_of(exploration.measurements[:1], None)
    assert made.layout == at_rate(bids2_micro_batch(batch, slots, 2.0), batch, slots, 2e5)
    assert (made.low_slots, made.low_layout) == (None, None)


def test_the_states_partitions_are_those_of_the_planned_slots_and_stay(exploration):
    made = plan(exploration, 2e5, memory_mb=(2048,), low_rate=6e4)
    assert made.low_slots < made.budget.slots
    assert made.layout.stateful_partitions == made.low_layout.stateful_partitions == made.budget.slots
    assert made.spark_conf()["spark.sql.shuffle.partitions"] == str(made.layout.stateful_partitions)
    without = plan(exploration, 2e5, memory_mb=(2048,))
    assert (made.layout, made.low, made.high) == (without.layout, without.low, without.high)
    written = json.loads(made.to_json())
    assert written["low_slots"] == made.low_slots
    assert written["low_layout"]["partitions"] == dict(made.low_layout.partitions)


def carried(engine, slots, partitions):
    return engine.carried(slots, partitions, 2.0)


@pytest.fixture(scope="module")
def batches():
    engine = Engine()
    runs = [engine.run(n, divided=(4 * n,) * (n == 4), loads=(0.2, 0.5) if n == 4 else ()) for n in (1, 2, 4)]
    return engine, conclude(runs, "measured", choice="edge")


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("peak", [8, 16])
def test_the_capacity_and_the_low_slots_hold_for_the_partitions_that_are_frozen(batches, peak, share):
    engine, found = batches
    target = carried(engine, peak, peak) / 1.1 * 0.97
    made = plan(found, target, memory_mb=[1024], low_rate=share * target)
    frozen, slots, fewer = made.layout.stateful_partitions, made.budget.slots, made.low_slots
    assert made.expected_rate == pytest.approx(carried(engine, slots, frozen), rel=0.03)
    assert made.layout.batch_s[slots] == pytest.approx(sum(made.batch_parts.values()), rel=0.03)
    assert made.layout.late == made.low_layout.late == ()
    assert carried(engine, fewer, frozen) > 1.08 * share * target
    assert fewer == 1 or carried(engine, fewer - 1, frozen) < 1.12 * share * target
    day = follow(found, made, [target, share * target], 3600.0)
    assert day.slots == (slots, fewer)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.7])
def test_without_the_parts_the_low_slots_take_the_frozen_partitions_in_turns_too(share):
    linear = Engine(stages=(SCAN, STATE | {"power": 1.0}))
    found = conclude([with_costs(linear, n) for n in (1, 2, 4)], "measured", choice="edge")
    assert found.model.batch is None
    target = carried(linear, 8, 8) / 1.1 * 0.97
    made = plan(found, target, memory_mb=[1024], low_rate=share * target)
    assert carried(linear, made.low_slots, made.layout.stateful_partitions) > share * target
    day = follow(found, made, [target, share * target], 3600.0)
    assert day.slots == (made.budget.slots, made.low_slots)


def with_costs(engine, slots):
    """A run at one load, with the straight lines of its stages."""
    run = engine.run(slots)
    return replace(
        run,
        costs=tuple(
            OperatorCost(stage["name"], stage["fixed_s"], stage["per_row_s"], 0.0, 1.0, None, 9, 3)
            for stage in engine.stages
        ),
    )


def test_very_many_slots_take_no_more_memory(batches):
    _, found = batches
    budget = replace(found.fitted_runs[-1].budget, slots=10**9)
    slots = least_slots(found.model, found.model.batch, budget, 3e4, 1.1, 1, None, 10**9)
    assert 1 <= slots <= 10**9


@pytest.mark.parametrize("low_rate", [0.0, -5.0, 3e5, float("nan")])
def test_a_lowest_load_that_is_none_is_refused(exploration, low_rate):
    with pytest.raises(WorkbenchError, match=r"low_rate is .* records/s; it must be above 0 and at most the rate"):
        plan(exploration, 2e5, memory_mb=(2048,), low_rate=low_rate)


def renamed(run, names, dropped=()):
    """The same run with its operators, and their costs, called so; no line was fitted to the costs of `dropped`."""
    seen = run.estimate.observation
    given = dict(zip((one.operator for one in seen.operators), names, strict=True))
    operators = tuple(replace(one, operator=given[one.operator]) for one in seen.operators)
    costs = tuple(
        replace(one, operator=given[one.operator])
        if given[one.operator] not in dropped
        else replace(one, operator=given[one.operator], fixed_s=None, per_record_s=None)
        for one in run.costs
    )
    return replace(seeing(run, operators=operators), costs=costs)


def test_every_stage_that_scans_has_the_source_s_partitions_and_one_without_costs_its_mean():
    run = example_measurement()
    seen = run.estimate.observation
    operators = tuple(
        replace(seen.operators[0], operator=name, scans=scans)
        for name, scans in (("1 scan filter", True), ("2 scan", True), ("3 sort", False))
    )
    costs = tuple(replace(run.costs[0], operator=one.operator) for one in operators)
    twice = replace(seeing(run, operators=operators), costs=costs)
    batch = batch_of([twice], None)
    assert [stage.source for stage in batch.stages] == [True, True, False]
    layout = bids2_micro_batch(batch, 4, 2.0)
    assert set(layout.source_partitions) == {"1 scan filter", "2 scan"}
    assert set(layout.repartitions) == {"3 sort"}
    names = ["1 scan filter", "2 window aggregate", "3 rank <top>"]
    run = renamed(example_measurement(), names, dropped=["1 scan filter"])
    stages = batch_of([run], None).stages
    assert [(stage.name, stage.source) for stage in stages] == [(name, name.startswith("1")) for name in names]
    scan = run.estimate.observation.operators[0]
    assert (stages[0].fixed_s, stages[0].per_row_s) == (0.0, pytest.approx(scan.useful_s / scan.records_in))
    assert batch_of([renamed(run, names, dropped=names)], None) is None


def test_a_batch_is_laid_out_with_what_it_took_besides_its_stages():
    run = example_measurement()
    seen, slots = run.estimate.observation, run.budget.slots
    records = seen.consumed_records / len(seen.batches[1:])
    duration = sum(batch.duration_s for batch in seen.batches[1:]) / len(seen.batches[1:])
    batch = batch_of([run], None)
    staged = sum(stage.fixed_s + stage.scale * records / slots * stage.per_row_s for stage in batch.stages)
    assert batch.driver_s == pytest.approx(duration - staged)
    assert batch.driver_s > 0.5
    logged = batch_of([seeing(run, writes=WriteCost(0.0, 0.0, jobs_s=0.4, jobs_at_once=8.0))], None)
    assert logged.unsplit_s(slots) == pytest.approx(batch.driver_s)
    assert logged.unsplit_s(2 * slots) == pytest.approx(batch.driver_s - 0.4 / (2 * slots))
    exploration = staged_exploration()
    made = plan(exploration, 1.5e4, memory_mb=[600])
    layout = laid_out(made.layout.stages, made.budget.slots, 2.0, rate=1.5e4)
    assert made.layout.partitions == layout.partitions
    (whole,), (stages_only,) = made.layout.batch_s.values(), layout.batch_s.values()
    assert whole == pytest.approx(stages_only + batch_of(exploration.measurements, None).driver_s)


def test_batches_that_come_late_are_a_doubt():
    made = plan(staged_exploration(), 1.5e4, memory_mb=[600])
    stages, slots = made.layout.stages, made.budget.slots
    assert check_layouts(made.layout, None) is None
    late = laid_out(stages, slots, 2.0, rate=1.5e5)
    finding = check_layouts(late, None)
    assert finding.concern == "late batches"
    assert finding.value == pytest.approx(late.batch_s[slots] / 2)
    dear = replace(made.layout.stages[0], fixed_s=5.0)
    exploration = staged_exploration()
    runs = tuple(
        replace(run, costs=tuple(replace(cost, fixed_s=dear.fixed_s) for cost in run.costs))
        for run in exploration.measurements
    )
    cards = plan(replace(exploration, runs=runs), 1.5e4, memory_mb=[600], low_rate=9e3).cards
    assert [card.concern for card in cards].count("late batches") == 1


def test_an_operator_of_unknown_rate_is_a_doubt():
    found = bids2({"map": 100.0, "sink": None, "late": None}, {"map": 1.0, "sink": 1.0, "late": 0.0}, 9)
    finding = check_allocation(found)
    assert finding.concern == "unbounded operators"
    assert check_allocation(bids2({"map": 100.0}, {"map": 1.0}, 9)) is None
    assert check_allocation(None) is None


def noted(concern, **changes):
    """A plan in whose first run something else was seen, and its note about that, which it has not otherwise."""
    exploration = staged_exploration()
    first, *others = exploration.measurements
    usual, made = (
        plan(replace(exploration, runs=(run, *others)), 1.5e4, memory_mb=[600])
        for run in (first, seeing(first, **changes))
    )
    assert concern not in [card.concern for card in usual.cards]
    return made, next(card for card in made.cards if card.concern == concern)


def test_python_workers_and_a_slow_executor_are_said_of_plans_that_rest_on_them():
    seen = staged_exploration().measurements[0].estimate.observation.operators
    python = replace(seen[0], operator="1 scan python filter", kind="filter", runs_python=True)
    made, note = noted("python workers", operators=(python, *seen))
    assert f"memoryOverhead by about {150 * made.executor.slots}m" in note.advice
    paces = (ExecutorPace("0", "10.0.0.2", 0.4), ExecutorPace("1", "10.0.0.3", 2.5))
    _, note = noted("slow executor", executors=paces)
    assert note.finding.startswith("Executor 1 on 10.0.0.3 took 2.5 times as long as the others per record, and a")


def test_a_young_state_is_said_where_it_is_not_known_to_grow_without_bound():
    run = staged_exploration().measurements[0]
    probes = tuple(replace(probe, filled=False) for probe in run.estimate.probes)
    young = replace(run, estimate=replace(run.estimate, probes=probes))
    found = check_filled([run, young])
    assert found.finding.startswith("The state was not full while 1 run was read, and still grew")
    assert "may be too high" in found.finding
    longer = replace(young.estimate, observation=replace(run.estimate.observation, lacking_s=0.75))
    counted = check_filled([run, replace(run, estimate=longer)])
    assert "up to 0.75 s of a batch" in counted.finding
    assert check_filled([run, replace(young, unbounded_state=True)]) is None


def test_the_share_of_the_source_is_said(exploration):
    made = plan(staged_exploration(source=0.4), 1.5e4, memory_mb=[600])
    assert made.source_share == pytest.approx(0.4)
    run, *_ = staged_exploration(source=0.4).measurements
    seen = run.estimate.observation
    logs = WriteCost(0.0, 0.0, jobs_s=seen.busy_s / len(seen.batches[1:]), jobs_at_once=1.0)  # as long as all else
    assert source_share([seeing(run, writes=logs)]) == pytest.approx(0.2)
    note = next(card for card in made.cards if card.concern == "source share")
    assert note.value == pytest.approx(0.4)
    assert (
        f"about {math.ceil(0.6 * made.budget.slots)} of the {made.budget.slots} slots would be enough" in note.finding
    )
    assert json.loads(made.to_json())["source_share"] == pytest.approx(0.4)
    assert check_source(0.4, 2) is None  # 1.2 slots are two: none could be taken away
    cheap = plan(staged_exploration(source=0.02), 1.5e4, memory_mb=[600])
    assert cheap.source_share == pytest.approx(0.02)
    assert "source share" not in [card.concern for card in cheap.cards]
    example = example_measurement()
    assert source_share([with_source(example, share) for share in (0.1, 0.2, 0.6)]) == pytest.approx(0.2)
    assert source_share([replace(run, tasks={"map": 1}) for run in exploration.measurements]) is None


def test_a_topic_with_fewer_partitions_than_the_planned_slots_is_said_to_hold_them_up():
    """A plan has it read in a partition for each slot, which `minPartitions` gives; without it, it has its own."""
    dear = {**SCAN, "per_row_s": 4e-5}
    topic, divided = (Engine(stages=(dear, STATE), topic=own) for own in (3, None))
    runs = [topic.run(4, 2.0, divided=(8, 16, 24), loads=(0.2, 0.5))]
    made = plan(conclude(runs, "one log was read"), divided.rate(12, 12, 2.0), memory_mb=[1024], margin=1.0)
    slots = made.budget.slots
    (note,) = [card for card in made.cards if card.concern == "source partitions"]
    assert note.value == pytest.approx(topic.rate(slots, slots, 2.0) / divided.rate(slots, slots, 2.0), rel=0.1)
    parts = fit_micro_batch(runs)
    assert check_source_partitions(runs, parts, Budget(3, SlotProfile(0.2, 1024), 2.0)) is None
    assert check_source_partitions(runs, None, made.budget) is None
    assert check_source_partitions([divided.run(4, 2.0)], parts, made.budget) is None


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


def test_every_step_has_the_least_slots_for_its_highest_rate_and_a_short_one_counts_for_its_time():
    chosen = plan(FOUND, 30_000, memory_mb=[600])
    day = follow(FOUND, chosen, RATES, 1800.0)
    assert day.hours == (1.0, 1.0, 1.0)
    assert day.rates == (5_000.0, 30_000.0, 24_000.0)
    assert day.slots == tuple(least(rate, chosen.budget.slots) for rate in day.rates)
    assert day.slots[1] == day.static_slots == chosen.budget.slots
    assert day.over(day.slots) == sum(day.slots) < sum(day.hours) * day.static_slots == 3 * chosen.budget.slots
    assert (day.costs, day.static_cost) == (None, None)
    day = follow(FOUND, chosen, [30_000.0] * 5, 1500.0)
    assert day.hours == pytest.approx((3000 / 3600, 3000 / 3600, 1500 / 3600))
    assert day.over(day.slots) == pytest.approx(sum(day.hours) * day.static_slots)
    assert sum(day.hours) * day.static_slots == pytest.approx(7500 / 3600 * chosen.budget.slots)


def test_whole_workers_are_paid():
    chosen = plan(FOUND, 30_000, memory_mb=[600], instances=PRICES)
    day = follow(FOUND, chosen, RATES, 3600.0)
    each = chosen.price.slots_per_worker
    assert day.over(day.costs) == pytest.approx(0.2 * sum(math.ceil(slots / each) for slots in day.slots))
    assert sum(day.hours) * day.static_cost == pytest.approx(6 * chosen.price.per_hour)
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


def test_a_day_takes_the_place_of_targets_and_one_that_cannot_be_read_is_named(day_file, tmp_path):
    study = study_from(GIVEN | {"day": day_file})
    assert (study.targets, study.low_rate) == ((30_000.0,), 2_000.0)  # of those above 0
    own = study_from(GIVEN | {"day": day_file, "targets": [1e3]})
    assert (own.targets, own.low_rate) == ((1e3,), None)
    assert study_from(GIVEN | {"day": day_file, "low_rate": 500.0}).low_rate == 500.0
    with pytest.raises(WorkbenchError, match=r"The study: .*nowhere\.csv"):
        study_from(GIVEN | {"day": str(tmp_path / "nowhere.csv")})


def test_the_plan_for_the_peak_alone_has_the_day_and_the_report_says_what_it_saves(day_file):
    study = Study("nexmark:q5", (10_000.0, 30_000.0), (2, 4, 8), (600,), day=day_file)
    planned: Planned = plan_targets(study, FOUND, (), PRICES)
    small, peak = planned.plans
    assert small.day is None
    assert CapacityPlan.from_json(peak.to_json()) == peak
    card = next(one for one in cards(planned) if one.name == "day")
    assert f"{peak.day.static_slots} slots all day are" in card.finding
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
