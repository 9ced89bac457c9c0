"""The parts of a batch, recovered from runs of an engine that has them, and what they say of other deployments."""

import math
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from batch_truths import SCAN, STATE, Engine, altered, filling

from workbench.capacity import bids2_micro_batch
from workbench.capacity.explore import conclude
from workbench.capacity.model import fit_micro_batch, model_of_form
from workbench.capacity.model.micro_batch import EXPLAINED
from workbench.capacity.model.scaling_law import PartsLaw, ScalingLaw
from workbench.capacity.planning.judged import on_cores
from workbench.errors import WorkbenchError
from workbench.metrics import HeldRows, WriteCost
from workbench.records import SIMULATED, CountedCores, Machine
from workbench.speed import REFERENCE

JOIN = {**STATE, "name": "2 filter join", "scale": 1.0, "power": 1.0}


def test_exact_parts_are_recovered_from_partitions_and_loads_and_a_topic_is_read_in_waves():
    engine = Engine()
    parts = fit_micro_batch([engine.run(n, divided=(2 * n, 4 * n), loads=(0.2, 0.5)) for n in (1, 2, 4)])
    assert parts.driver_s == pytest.approx(0.15, rel=0.02)
    assert parts.driver_task_s == pytest.approx(0.004, rel=0.02)
    for found, true in zip(parts.stages, (SCAN, STATE), strict=True):
        assert found.fixed_s == pytest.approx(true["fixed_s"], rel=0.02)
        assert found.per_row_s == pytest.approx(true["per_row_s"], rel=0.02)
    assert parts.stages[1].power == pytest.approx(0.8, abs=0.02)
    assert parts.error < 0.01
    engine = Engine(topic=100)
    parts = fit_micro_batch([engine.run(n, 10.0, loads=(0.2, 0.5)) for n in (1, 2, 4)])
    assert parts.driver_task_s == pytest.approx(0.004, rel=0.1)
    assert parts.stages[0].fixed_s == pytest.approx(SCAN["fixed_s"], rel=0.1)
    assert parts.error < 0.02
    rows = 40_000
    assert sum(parts.parts_s(rows, 3, 3, 100).values()) == pytest.approx(engine.batch_s(rows, 3, 3), rel=0.05)


@pytest.mark.parametrize("interval_s", [2.0, 10.0])
@pytest.mark.parametrize("slots", [8, 32])
@pytest.mark.parametrize("per_slot", [1, 2])
def test_one_budget_with_many_partitions_says_what_many_slots_carry(interval_s, slots, per_slot):
    engine = Engine(noise=0.03)
    parts = fit_micro_batch([engine.run(4, 2.0, divided=(8, 16, 24), loads=(0.2, 0.5))])
    truth = engine.rate(slots, per_slot * slots, interval_s)
    assert parts.rate(slots, per_slot * slots, interval_s) == pytest.approx(truth, rel=0.1)


@pytest.fixture(scope="module")
def exact():
    return fit_micro_batch([Engine().run(n, divided=(4 * n,)) for n in (1, 2, 4)])


@pytest.mark.parametrize(("slots", "partitions", "source"), [(4, 4, None), (4, 6, None), (3, 12, None), (4, 12, 4)])
def test_the_rate_is_where_a_batch_takes_the_interval(exact, slots, partitions, source):
    own = None if source is None else np.array([float(source)])
    (rate,) = exact.rates(np.array([float(slots)]), np.array([float(partitions)]), 2.0, own)
    assert sum(exact.parts_s(2.0 * rate, slots, partitions, source).values()) == pytest.approx(2.0, rel=1e-6)
    assert (rate > exact.rate(slots, partitions, 2.0)) == (source is not None)


def test_fixed_parts_that_fill_the_interval_leave_no_rate(exact):
    assert exact.rate(1, 16, 2.0) == 0.0
    assert (exact.rates(np.array([1.0, 4.0]), np.array([16.0, 16.0]), 2.0) > 0).tolist() == [False, True]


def with_jobs(run, seconds, at_once, more_s=None):
    """Let each batch run jobs on a table's log: these slot seconds, with `at_once` tasks at a time."""

    def longer(probe):
        seen = probe.observation
        longer_s = seconds * max(1 / run.budget.slots, run.budget.profile.cpus / (at_once or 1.0))
        longer_s = longer_s if more_s is None else more_s
        batches = tuple(replace(one, duration_s=one.duration_s + longer_s) for one in seen.batches)
        writes = WriteCost(0.0, 0.0, jobs_s=seconds, jobs_at_once=at_once)
        return replace(probe, observation=replace(seen, batches=batches, writes=writes))

    return altered(run, longer)


@pytest.mark.parametrize("at_once", [0.5, 4.0])
def test_jobs_on_a_tables_log_take_less_of_a_batch_on_more_slots_and_none_of_its_rows(at_once):
    engine, jobs_s = Engine(), 1.2
    runs = [with_jobs(engine.run(n, 5.0, divided=(4 * n,), loads=(0.2, 0.5)), jobs_s, at_once) for n in (1, 2)]
    parts = fit_micro_batch(runs)
    assert parts.error < 0.01
    assert parts.driver_s == pytest.approx(0.15, rel=0.05)
    for slots in (1, 4, 16):
        took_s = jobs_s * max(1 / slots, 0.2 / at_once)
        rate = filling(lambda rows, n=slots, more_s=took_s: engine.batch_s(rows, n, n) + more_s, 5.0)
        assert parts.rate(slots, slots, 5.0) == pytest.approx(rate, rel=0.02)
        spent = parts.parts_s(rate * 5.0, slots, slots)
        assert spent["log"] == pytest.approx(took_s, rel=0.02)
        assert sum(spent.values()) == pytest.approx(5.0, rel=0.02)
        faster = parts.on_cores(2.0).parts_s(rate * 5.0, slots, slots)
        assert sum(faster.values()) == pytest.approx(2.5, rel=0.02)
    layout = bids2_micro_batch(replace(parts, jobs_s=9.0), 4, 5.0)
    assert layout.limit == "jobs on the table's log"
    layout = bids2_micro_batch(parts, 4, 5.0)
    assert layout.rate >= parts.rate(4, 4, 5.0) * 0.999
    assert layout.batch_s[4] == pytest.approx(5.0, rel=1e-3)


def test_jobs_of_some_batches_count_by_their_mean_and_old_figures_of_them_do_not():
    engine = Engine()
    runs = [engine.run(n, 5.0, divided=(4 * n,), loads=(0.2, 0.5)) for n in (1, 2, 4)]
    spent = [
        with_jobs(run, seconds, 4.0 if seconds else None) for run, seconds in zip(runs, (0.0, 3.0, 0.0), strict=True)
    ]
    parts = fit_micro_batch(spent)
    assert (parts.jobs_s, parts.jobs_at_once) == pytest.approx((1.0, 4.0))
    assert parts.error < 0.01
    # they were seconds without a quota, and among the operators as well
    former = [with_jobs(run, 3.0, None, more_s=0.0) for run in runs]
    assert fit_micro_batch(former) == fit_micro_batch(runs)


def test_a_reading_with_a_stage_that_others_lack_does_not_hide_them():
    runs = [Engine().run(n, divided=(4 * n,), loads=(0.2, 0.5)) for n in (1, 2, 4)]
    first, *others = runs
    seen = first.load_curve[0].observation
    compacts = replace(seen, operators=(*seen.operators, replace(seen.operators[-1], operator="3 map")))
    odd = replace(first, load_curve=(replace(first.load_curve[0], observation=compacts), *first.load_curve[1:]))
    parts = fit_micro_batch([odd, *others])
    assert [stage.name for stage in parts.stages] == ["1 scan", "2 aggregate"]
    assert parts.readings == fit_micro_batch(runs).readings - 1


HELD_S, STAYS_S = 4e-6, 600.0
LOADS = (0.1, 0.2, 0.4)
SHARES = (0.3, 2.0, 1.0, 4.0, 0.7)  # of its working size: a state still fills, or a higher rate filled it


def through_state(run, shares, held_s=HELD_S, known=True):
    """Let each batch go through a state, which has these `shares` of its working size."""
    draw, slots = cycle(shares), run.budget.slots

    def longer(probe):
        seen, count = probe.observation, probe.partitions or slots
        held = next(draw) * STAYS_S * seen.consumed_records / len(seen.batches[1:]) / run.budget.interval_s
        operators = tuple(
            replace(one, useful_s=one.useful_s + 3 * held * held_s) if one.keeps_state else one
            for one in seen.operators
        )
        more_s = math.ceil(count / slots) * held * held_s / count
        batches = tuple(replace(one, duration_s=one.duration_s + more_s) for one in seen.batches)
        rows = (HeldRows("join", held, STAYS_S),) if known else ()
        return replace(probe, observation=replace(seen, operators=operators, batches=batches, held=rows))

    return altered(run, longer)


def joined(shares, *, noise=0.0, seed=1, **settings):
    """Runs of a join whose batches go through its state."""
    engine = Engine(stages=(SCAN, JOIN), noise=noise, seed=seed)
    return engine, [through_state(engine.run(n, divided=(4 * n,), loads=LOADS), shares, **settings) for n in (1, 2)]


def with_state_s(engine, rows, slots, every_s):
    return engine.batch_s(rows, slots, slots) + HELD_S * STAYS_S * rows / every_s / slots


def test_a_state_that_batches_go_through_grows_with_the_rate_and_is_shared_by_more_slots():
    engine, runs = joined(SHARES)
    parts = fit_micro_batch(runs)
    assert parts.error < 0.01
    assert parts.stages[0].held_s == 0.0
    assert parts.stages[1].held_s == pytest.approx(HELD_S, rel=0.02)
    for slots, every_s in ((1, 2.0), (4, 2.0), (8, 2.0), (8, 10.0)):
        rate = filling(lambda rows, n=slots, s=every_s: with_state_s(engine, rows, n, s), every_s)
        assert parts.rate(slots, slots, every_s) == pytest.approx(rate, rel=0.03)
        spent = parts.parts_s(rate * every_s, slots, slots, rate=rate)
        assert spent["state"] == pytest.approx(HELD_S * STAYS_S * rate / slots, rel=0.03)
        assert sum(spent.values()) == pytest.approx(every_s, rel=0.03)
    layout = bids2_micro_batch(parts, 4, 2.0)
    assert layout.rate == pytest.approx(parts.rate(4, 4, 2.0), rel=0.02)
    assert layout.batch_s[4] == pytest.approx(2.0, rel=1e-3)


def test_on_faster_cores_a_state_is_that_of_the_higher_rate():
    _, runs = joined(SHARES)
    exploration = conclude(runs, "planned")
    model, parts = exploration.model, exploration.model.batch
    assert parts is not None
    for times in (0.5, 2.0):
        there, gain = on_cores(exploration, CountedCores(REFERENCE, times, times / 1.2, times * 1.2))
        expected = parts.on_cores(times).rate(8, 8, 2.0) / parts.rate(8, 8, 2.0)
        found = gain.ratio * there.predict([[1024, 8]])[0] / model.predict([[1024, 8]])[0]
        assert found == pytest.approx(expected, rel=0.02)


def test_what_readings_do_not_distinguish_is_no_state():
    _, full = joined((1.0,))  # the rows held are in proportion to the rows read
    assert [stage.held_s for stage in fit_micro_batch(full).stages] == [0.0, 0.0]
    engine = Engine(stages=(SCAN, JOIN))
    fixed = [engine.run(n, loads=LOADS) for n in (1, 2)]
    shares = [1 / share for share in (1.0, 1.0, *LOADS)]  # a higher rate has filled the state: it is as the tasks are
    alike = [through_state(run, shares) for run in fixed]
    assert [stage.held_s for stage in fit_micro_batch(alike).stages] == [0.0, 0.0]
    found = []
    for seed in range(40):
        _, free = joined(SHARES, noise=0.05, seed=seed, held_s=0.0)
        found.append(fit_micro_batch(free).stages[1].held_s)
    assert sum(one > 0 for one in found) <= 4


def test_readings_whose_state_is_unknown_are_left_out():
    _, runs = joined(SHARES)
    _, unknown = joined(SHARES, known=False)
    parts = fit_micro_batch([*runs, *unknown])
    assert parts == fit_micro_batch(runs)
    assert [stage.held_s for stage in fit_micro_batch(unknown).stages] == [0.0, 0.0]


def test_tasks_of_one_size_tell_nothing_apart():
    assert fit_micro_batch([Engine().run(4)]) is None
    assert fit_micro_batch([]) is None
    run = Engine().run(4, divided=(16,))
    blind = altered(run, lambda one: replace(one, observation=replace(one.observation, operators=())))
    assert fit_micro_batch([blind]) is None


def test_a_model_rests_on_the_parts_and_its_interval_holds_the_truth():
    engine = Engine(noise=0.03)
    model = conclude([engine.run(n, divided=(4 * n,) * (n == 4)) for n in (1, 2, 4)], "measured", choice="edge").model
    assert isinstance(model.law_, PartsLaw)
    truth = engine.rate(16, 16, 2.0)
    low, high = (end[0] for end in model.interval([[1024, 16]]))
    assert low <= truth <= high
    assert model.predict([[1024, 16]])[0] == pytest.approx(truth, rel=0.15)
    assert high / low < 2.5


HERE = Machine(slots="a CPU quota", cores=2.0)


def of_machine(*machines, cpus=0.2, counts=(1, 2, 4), **engine):
    """The engine, and the model of runs on a machine each."""
    engine = Engine(noise=0.02, **engine)
    on = dict(zip(counts, machines * (3 if len(machines) == 1 else 1), strict=True))
    runs = [engine.run(n, divided=(4 * n,) * (n == 4), cpus=cpus, machine=machine) for n, machine in on.items()]
    return engine, conclude(runs, "measured", choice="edge").model


def width(model, slots):
    low, high = (end[0] for end in model.interval([[1024, slots]]))
    return high / low


@pytest.mark.parametrize(("cpus", "sharing"), [(0.2, 8), (0.05, 32)])
def test_slots_that_share_a_core_or_two_leave_less_doubt_and_those_beyond_do_not(cpus, sharing):
    engine, model = of_machine(HERE, cpus=cpus, driver_task_s=1e-4)
    _, unknown = of_machine(Machine(), cpus=cpus, driver_task_s=1e-4)
    truth = engine.rate(sharing, sharing, 2.0)
    low, high = (end[0] for end in model.interval([[1024, sharing]]))
    assert low <= truth <= high
    assert model.predict([[1024, sharing]])[0] == pytest.approx(truth, rel=0.05)
    assert width(model, sharing) < width(unknown, sharing)
    assert width(model, 4 * sharing) > 2 * width(model, sharing)
    assert model.sharing_slots == pytest.approx(sharing)
    assert unknown.sharing_slots == 0


@pytest.mark.parametrize(
    ("machines", "known"),
    [
        ([replace(HERE, facts={"master": "standalone"})], {}),  # executors are apart
        ([replace(HERE, slots=SIMULATED)], {}),
        ([replace(HERE, cores=0.2)], {}),  # no room for more
        ([HERE, HERE, Machine()], {}),
        ([HERE], {"cpus": 1.6}),
        ([HERE], {"topic": 8}),  # all slots share its broker
    ],
)
def test_other_slots_leave_the_doubt_that_published_systems_do(machines, known):
    doubt = [width(of_machine(*some, **known)[1], 16) for some in (machines, [Machine()])]
    assert doubt[0] == pytest.approx(doubt[1])


def test_of_machines_that_differ_the_smallest_counts():
    small = replace(HERE, cores=1.0)
    mixed, alone = (width(of_machine(*some)[1], 7) for some in ([HERE, small, HERE], [small]))
    assert mixed == pytest.approx(alone)
    assert mixed > width(of_machine(HERE)[1], 7)


@pytest.mark.parametrize("loses", [0.05, 0.1])
@pytest.mark.parametrize("slots", [8, 16])
def test_the_interval_holds_where_the_runs_show_that_slots_slow_each_other_down(loses, slots):
    engine, model = of_machine(HERE, loses=loses)
    low, high = (end[0] for end in model.interval([[1024, slots]]))
    assert low <= engine.rate(slots, slots, 2.0) <= high


@pytest.mark.parametrize("probability", [1e-4, 0.05, 0.5, 0.9])
def test_what_is_below_a_quantile_has_its_probability(probability):
    engine = Engine(noise=0.03)
    runs = [engine.run(n, divided=(4 * n,) * (n == 4)) for n in (1, 2, 4)]
    law = conclude(runs, "measured", choice="edge").model.law_
    assert isinstance(law, PartsLaw)
    asked = np.array([[1024.0, 2.0], [1024.0, 16.0]])
    assert law.below(asked, law.quantile(asked, probability)) == pytest.approx(probability, rel=1e-3)


def test_the_gain_of_an_interval_and_of_partitions_is_the_engines(exact):
    engine = Engine()
    for slots, partitions, interval_s in ((4, 4, 10.0), (4, 16, 2.0), (8, 16, 1.0)):
        truth = engine.rate(slots, partitions, interval_s) / engine.rate(slots, slots, 2.0)
        gain = exact.rate(slots, partitions, interval_s) / exact.rate(slots, slots, 2.0)
        assert gain == pytest.approx(truth, rel=0.03)


def test_where_the_parts_do_not_explain_the_runs_or_fill_their_interval_the_law_stands_in():
    """Slots that slow each other down more than in proportion: no sum of parts shows that."""
    engine = Engine(contention=0.5)
    runs = [engine.run(n, divided=(4 * n,)) for n in (1, 2, 4)]
    parts = fit_micro_batch(runs)
    assert parts.error > EXPLAINED
    model = conclude(runs, "measured", choice="edge").model
    assert isinstance(model.law_, ScalingLaw)
    assert model.parts_ is not None
    engine = Engine()
    runs = [engine.run(n, 2.0, divided=(2 * n, 4 * n)) for n in (1, 2, 4)]
    short = [replace(run, budget=replace(run.budget, interval_s=0.3)) for run in runs]
    model = conclude(short, "measured", choice="edge").model
    assert isinstance(model.law_, ScalingLaw)
    assert np.isfinite(model.interval([[1024, 8]])).all()


def test_a_pipelined_engine_has_no_batches_and_forms_of_least_squares_know_no_other_interval():
    runs = [Engine().run(n, divided=(4 * n,)) for n in (1, 2, 4)]
    points = [[run.budget.profile.memory_mb, run.budget.slots] for run in runs]
    model = model_of_form("scaling", growth="tasks").fit(points, [run.estimate.middle for run in runs], runs)
    assert model.parts_ is None
    engine = Engine()
    runs = [engine.run(n, divided=(2 * n, 4 * n)) for n in (1, 2, 4)]
    model = conclude(runs, "measured", choice="edge", form="sqrt").model
    assert model.batch is None
    with pytest.raises(WorkbenchError, match="the sqrt form, do not show what a batch is made of"):
        model.at_interval(10.0)


def test_a_driver_that_tasks_fill_levels_capacity_off():
    engine = Engine(driver_task_s=0.02)
    model = conclude([engine.run(n, divided=(2 * n,)) for n in (2, 4, 8)], "measured", choice="edge").model
    rates = model.predict([[1024, n] for n in (8, 16, 32, 48)])
    truths = [engine.rate(n, n, 2.0) for n in (8, 16, 32, 48)]
    assert rates == pytest.approx(truths, rel=0.15, abs=0.02 * max(truths))
    assert rates[3] < rates[2]
    assert model.predict([[1024, 200]]) == pytest.approx(0.0)
    assert model.risks(1.0, 1024, [8, 200]) == pytest.approx([0.0, 1.0], abs=1e-6)
