"""Plans for cores other than those measured: each instance type with the slots that its own cores take."""

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from example_measurement import on_cores as timed_on
from staged_runs import staged_exploration

from workbench.capacity import plan
from workbench.capacity.explore import conclude
from workbench.capacity.planning import Question, ask, follow, read_instances
from workbench.capacity.planning.intervals import IntervalSpeedup
from workbench.capacity.planning.judged import check_other_cores, offers, on_cores
from workbench.errors import WorkbenchError
from workbench.records import CapacityPlan, CountedCores
from workbench.speed import REFERENCE
from workbench.study import read_planned
from workbench.views.findings import whose_cores

ROOT = Path(__file__).parents[4]
INSTANCES = read_instances(ROOT / "data" / "instances.csv")
LARGE = next(one for one in INSTANCES if one.name == "c6i.xlarge")
HEADER = "name,provider,region,vcpus,memory_mb,price_per_hour,currency,source,date"
T = 1.85954804  # Student's, 8 degrees of freedom, 95 %


@cache
def explored(slower=1.0):
    """Runs whose rate is in proportion to their slots, on cores `slower` than the reference machine's."""
    found = staged_exploration()
    runs = [timed_on(run, slower * REFERENCE.arithmetic_s, slower * REFERENCE.reads_s) for run in found.measurements]
    return conclude(runs, found.reason, growth="tasks")


@cache
def recorded():
    """Runs of q5 that show what a batch is made of."""
    return read_planned(ROOT / "data" / "q5.recorded.json").exploration


def made(instances, rate=2e4, exploration=None, **settings):
    return plan(exploration or explored(), rate, memory_mb=[600], instances=instances, **settings)


def capacity(found):
    return found.low, found.expected_rate, found.high


@pytest.mark.parametrize("times", [0.5, 0.8, 1.0, 1.7])
def test_in_a_batch_whose_parts_are_known_all_of_them_take_longer(times):
    """The capacity is found from the seconds of each part on those cores."""
    exploration = recorded()
    model, parts = exploration.model, exploration.model.batch
    there, gain = on_cores(exploration, CountedCores(REFERENCE, times, times / 1.2, times * 1.2))
    for slots in (1, 2, 4, 8):
        own = parts.on_cores(times)
        expected = own.rate(slots, slots, 2.0) / parts.rate(slots, slots, 2.0)
        point = [[1024, slots]]
        assert gain.ratio * there.predict(point)[0] / model.predict(point)[0] == pytest.approx(expected, rel=0.02)
        rows = own.rate(slots, slots, 2.0) * 2.0
        assert sum(own.parts_s(rows, slots, slots).values()) == pytest.approx(2.0, rel=1e-6)


def test_a_query_loses_more_than_its_cores():
    """Cores 1.65 times slower than the recorded run's, on which q5 took 2.1 times as long."""
    there, gain = on_cores(recorded(), CountedCores(REFERENCE, 1 / 1.65, 1 / 1.9, 1 / 1.43))
    point = [[1024, 4]]
    lost = recorded().model.predict(point)[0] / (gain.ratio * there.predict(point)[0])
    assert 1.8 < lost < 2.1


def test_without_parts_the_capacity_is_in_proportion_and_batches_that_may_never_end_are_refused():
    there, gain = on_cores(explored(), CountedCores(REFERENCE, 2.0, 2.0 / 1.15, 2.0 * 1.15))
    assert there is explored().model
    assert gain == IntervalSpeedup(2.0, 0.0, pytest.approx(math.log(1.15) / T, rel=1e-4), 8)
    fixed = 0.2
    with pytest.raises(WorkbenchError, match=r"Cores that are 0\.20 times as fast .* trigger interval of 2 s"):
        on_cores(recorded(), CountedCores(REFERENCE, fixed, 0.01, 0.4))


@pytest.mark.parametrize("slower", [1.0, 1.6])
@pytest.mark.parametrize("core_speed", [0.5, 1.0, 2.0])
def test_the_plan_counts_the_type_s_cores(slower, core_speed):
    there = made([replace(LARGE, core_speed=core_speed)], exploration=explored(slower))
    times = core_speed * slower  # those measured are 1 / slower times as fast as the reference machine's
    carried = times * explored(slower).model.predict([[600, count] for count in range(2, 40)])
    assert there.cores.times == pytest.approx(times)
    assert there.expected_rate == pytest.approx(carried[there.budget.slots - 2])
    assert there.least_slots == 2 + np.argmax(carried >= 1.1 * 2e4)


def test_the_doubt_of_the_transfer_is_in_the_interval_and_in_the_risk():
    usual = made([LARGE])
    there = made([replace(LARGE, core_speed=1.0)])
    assert there.least_slots == usual.least_slots
    assert there.expected_rate == pytest.approx(usual.expected_rate)
    assert math.log(there.high / there.low) > math.log(usual.high / usual.low) + 0.1
    tight = plan(explored(), 2.39e4, memory_mb=[600], margin=1.0, instances=[LARGE])
    doubtful = plan(explored(), 2.39e4, memory_mb=[600], margin=1.0, instances=[replace(LARGE, core_speed=1.0)])
    assert doubtful.verdict.risk > tight.verdict.risk


@pytest.mark.parametrize("risk", [None, 0.1])
@pytest.mark.parametrize("found", [explored, recorded])
def test_a_what_if_question_counts_them_as_a_plan_does(found, risk):
    exploration, memory, rate = found(), *((600, 2e4) if found is explored else (1024, 1e5))
    for core_speed in (None, 0.6, 1.0, 1.8):
        there = plan(
            exploration, rate, memory_mb=[memory], risk=risk, instances=[replace(LARGE, core_speed=core_speed)]
        )
        shape, price = there.price.slots_per_worker, LARGE.price_per_hour
        answer = ask(
            exploration,
            Question(rate, memory, None, risk, worker_slots=shape, worker_price=price, core_speed=core_speed),
        )
        assert (answer.plan.least_slots, answer.plan.budget) == (there.least_slots, there.budget)
        assert capacity(answer.plan) == pytest.approx(capacity(there))
        assert answer.plan.cores == there.cores
        assert answer.plan.verdict.risk == pytest.approx(there.verdict.risk)
        assert answer.workers == there.price.workers


def test_the_cheapest_is_that_of_all_types_each_planned_alone():
    """The oracle: a plan for each type by itself."""
    types = INSTANCES[::3]
    for speeds, rate in (((0.4, 1.0, 2.5), 2e4), ((None, 0.5, 2.0), 2e5)):
        listed = [replace(one, core_speed=speeds[number % 3]) for number, one in enumerate(types)]
        alone = [made([one], rate) for one in listed]
        found = made(listed, rate)
        assert found.price.per_hour == min(one.price.per_hour for one in alone)
        same = next(one for one in alone if one.price.instance == found.price.instance)
        assert (found.budget, capacity(found), found.cores) == (same.budget, capacity(same), same.cores)


def test_a_list_without_speeds_gives_the_same_plan_and_speeds_count_only_where_cores_were_timed():
    untimed, timed = made(INSTANCES, exploration=staged_exploration()), made(INSTANCES)
    assert replace(timed, cores=None) == untimed
    assert whose_cores(untimed) == ""
    assert "1.00 times as fast as those of the reference machine (0.87 to 1.15)" in whose_cores(timed)
    assert not timed.on_other_cores
    found = made([replace(LARGE, core_speed=2.0)], exploration=staged_exploration())
    assert capacity(found) == capacity(made([LARGE], exploration=staged_exploration()))
    assert whose_cores(found).startswith("It assumes that the cores of c6i.xlarge are as fast as those measured")


def test_types_of_one_speed_are_priced_together_and_disagreeing_pieces_widen_the_doubt():
    listed = [replace(one, core_speed=0.5 + (number % 2)) for number, one in enumerate(INSTANCES)]
    found = offers(explored(), listed)
    assert [len(own) for _, own in found] == [6, 6]
    assert [cores.times for cores, _ in found] == pytest.approx([0.5, 1.5])
    ((cores, own),) = offers(explored(), ())
    assert (cores.other, own) == (False, ())
    found = staged_exploration()
    runs = [timed_on(run, REFERENCE.arithmetic_s, 4 * REFERENCE.reads_s) for run in found.measurements]
    ((cores, _),) = offers(conclude(runs, found.reason, growth="tasks"), [replace(LARGE, core_speed=1.0)])
    assert (cores.low, cores.times, cores.high) == pytest.approx((1.0, 2.0, 4.0))


def test_other_cores_are_a_reason_for_care_beyond_the_doubt_only():
    finding = check_other_cores(CountedCores(REFERENCE, 0.5, 0.43, 0.57))
    assert finding.concern == "other cores"
    assert check_other_cores(CountedCores(REFERENCE, 1.1, 0.96, 1.27)) is None
    assert check_other_cores(CountedCores(REFERENCE)) == check_other_cores(None) is None
    assert made([replace(LARGE, core_speed=2.0)], 5e3).verdict.level == "verify first"


def test_a_day_is_followed_on_those_cores():
    rates = [5e3, 2e4, 1e4, 5e3]
    usual, there = (made([one]) for one in (LARGE, replace(LARGE, core_speed=2.0)))
    slow, fast = (follow(explored(), one, rates, 3600.0) for one in (usual, there))
    assert fast.slots == tuple(math.ceil(count / 2) if count > 2 else 2 for count in slow.slots)


def test_the_layout_is_that_of_their_batches():
    exploration = recorded()
    usual, there = (
        plan(exploration, 6e4, memory_mb=[1024], instances=[one]) for one in (LARGE, replace(LARGE, core_speed=0.5))
    )
    assert there.budget.slots > usual.budget.slots
    batch_s = there.layout.batch_s[there.budget.slots]
    own = exploration.model.batch.on_cores(there.cores.times)
    assert batch_s == pytest.approx(
        sum(own.parts_s(6e4 * 2.0, there.budget.slots, there.budget.slots).values()), rel=0.1
    )
    assert not there.layout.late
    assert sum(there.batch_parts.values()) <= 2.0


def test_the_document_keeps_whose_cores():
    found = made([replace(LARGE, core_speed=2.0)])
    again = CapacityPlan.from_json(found.to_json())
    assert again == found
    said = "It assumes the cores of c6i.xlarge, 2.00 times as fast as those measured (1.74 to 2.30)"
    assert said in whose_cores(found)
    assert whose_cores(again) == whose_cores(found)
    document = json.loads(found.to_json())
    for earlier in (document, document["price"]["instance"]):
        earlier.pop("cores", None)
        earlier.pop("core_speed", None)
    assert whose_cores(CapacityPlan.from_json(json.dumps(document))) == ""
    with pytest.raises(WorkbenchError, match="times is 0; it must be above 0"):
        CapacityPlan.from_json(found.to_json().replace(f'"times": {found.cores.times}', '"times": 0'))


def test_two_doubts_err_independently():
    interval, cores = IntervalSpeedup(1.5, 0.02, 0.03, 7), IntervalSpeedup(0.5, 0.0, 0.04, 4)
    assert interval.together(cores) == IntervalSpeedup(0.75, 0.02, pytest.approx(0.05), 4)
    assert interval.together(IntervalSpeedup()) == interval
    assert IntervalSpeedup().together(cores) == cores
    assert not IntervalSpeedup().together(IntervalSpeedup()).uncertain
    random = np.random.default_rng(0)
    seen = np.log(1.5) + 0.03 * random.standard_t(7, 200_000) + np.log(0.5) + 0.04 * random.standard_t(4, 200_000)
    apart = replace(interval, bracket=0.0).together(cores)
    for share in (0.05, 0.5, 0.95):
        assert math.log(apart.quantile(share)) == pytest.approx(np.quantile(seen, share), abs=0.012)


@pytest.fixture
def prices(tmp_path):
    def write(column, *cells):
        path = tmp_path / "prices.csv"
        lines = [f"{HEADER},{column}", *(f"t{n},x,y,2,4096,0.1,USD,z,2026,{cell}" for n, cell in enumerate(cells))]
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


def test_a_price_list_may_say_how_fast_cores_are(prices):
    assert [one.core_speed for one in read_instances(prices("core_speed", "0.62", "", " 1.5 "))] == [0.62, None, 1.5]
    assert [one.core_speed for one in read_instances(prices("remark", "fast"))] == [None]


@pytest.mark.parametrize("cell", ["0", "-1", "nan", "inf", "fast", "1e6"])
def test_a_speed_that_makes_no_sense_is_refused_with_its_line(prices, cell):
    with pytest.raises(WorkbenchError, match=r"Line 3 of the price list .*(core_speed of|could not convert)"):
        read_instances(prices("core_speed", "1", cell))
