import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from workbench import units
from workbench.capacity.planning import (
    InstanceType,
    Question,
    ask,
    cheapest,
    common_range,
    falls_short,
    slots_per_worker,
)
from workbench.dataflow import SlotProfile
from workbench.errors import WorkbenchError
from workbench.study import Study, read_planned
from workbench.views.widgets import WhatIf
from workbench.views.widgets.panel import WhileDragged
from workbench.views.widgets.what_if_panel import answer_card, tiles_html

STUDY = Study(
    "nexmark:q11", (1.5e6,), (4, 8, 12), (512, 1024, 2048), testbed="fluid", slot_cpus=1.0, interval_s=5.0, most_runs=7
)
TYPE = InstanceType("large", "cloud", "here", 8, 16384, 0.5, "USD", "list", "2026-01")


@pytest.fixture
def rate(planned):
    return float(max(planned.exploration.rates))


def test_the_answer_is_the_models(planned, rate):
    question = Question(rate, 1024, worker_slots=3, worker_price=0.5)
    answer = ask(planned.exploration, question)
    model = planned.exploration.model
    assert answer.plan.least_slots == model.slots_for(rate, 1024, min_slots=4)
    assert answer.plan.expected_rate == model.predict([[1024, answer.plan.budget.slots]])[0]
    assert answer.workers == math.ceil(answer.plan.least_slots / 3)
    assert answer.per_hour == 0.5 * answer.workers
    assert answer.per_month == pytest.approx(730 * answer.per_hour)
    assert answer.lost_rate == pytest.approx(model.predict([[1024, 3 * (answer.workers - 1)]])[0])


def test_slots_that_are_paid_for_anyway_are_used_as_a_plan_uses_them(planned, rate):
    free = ask(planned.exploration, Question(rate, 1024, worker_slots=8, margin=1.0))
    paid = ask(planned.exploration, Question(rate, 1024, worker_slots=8, margin=1.0, worker_price=0.5))
    assert free.plan.budget.slots == free.plan.least_slots == paid.plan.least_slots
    assert free.plan.least_slots < paid.plan.budget.slots <= 8 * paid.workers
    assert paid.workers == free.workers
    assert paid.plan.verdict.risk < free.plan.verdict.risk


def test_the_tile_is_red_exactly_where_the_low_end_is_under_the_rate(planned, rate):
    shades = set()
    for margin in (1.0, 1.02, 1.1, 1.3, 1.5):
        answer = ask(planned.exploration, Question(rate, 1024, margin=margin))
        red = "workbench-tile short" in tiles_html(answer)
        assert red == falls_short(answer.plan.verdict.risk)
        assert red == (answer.plan.low < rate)
        shades.add(red)
    assert shades == {True, False}


def test_tiles_show_the_difference_from_a_pinned_scenario(planned, rate):
    question = Question(rate, 1024, worker_slots=4, worker_price=0.5, currency="USD")
    before, now = (ask(planned.exploration, one) for one in (question, replace(question, rate=2 * rate)))
    assert "pinned" not in tiles_html(now)
    assert tiles_html(before, before).count("same as pinned") == 4
    more = now.workers - before.workers
    assert f"+{more} against pinned" in tiles_html(now, before)
    assert f"-{more} against pinned" in tiles_html(before, now)
    assert f"+{units.number(730 * 0.5 * more)} against pinned" in tiles_html(now, before)
    # money of two currencies has no difference, and text is escaped
    other = replace(now, question=replace(now.question, currency="<b>"))
    assert "&lt;b&gt;" in tiles_html(other, before)
    assert tiles_html(other, before).count("pinned") == 3


def test_losing_a_worker_lowers_the_capacity_paid_for_which_below_the_slots_measured_is_unknown(planned, rate):
    for shape in (1, 3, 5, 8):
        question = Question(rate, 1024, worker_slots=shape, one_lost=True)
        answer = ask(planned.exploration, question)
        rates = planned.exploration.model.predict(
            [[1024, slots] for slots in (answer.workers * shape, (answer.workers - 1) * shape)]
        )
        assert (answer.paid_rate, answer.lost_rate) == pytest.approx(tuple(rates))
        assert answer.paid_rate > answer.lost_rate >= answer.plan.expected_rate
        shown = dict(answer_card(answer).table.rows)
        assert shown["Workers"].startswith(f"{answer.workers} of {units.some(shape, 'slot')}")
        assert shown[f"Capacity of their {answer.workers * shape} slots"] == units.rate(answer.paid_rate)
    few = ask(planned.exploration, Question(rate / 4, 1024, worker_slots=3))  # at least 4 were measured
    assert (few.workers, few.lost_rate) == (2, None)
    assert "fewer slots are left than were measured" in answer_card(few).finding
    assert dict(answer_card(few).table.rows)["With one worker lost"] == "unknown"
    one = ask(planned.exploration, Question(rate / 4, 1024, worker_slots=8))
    assert (one.workers, one.lost_rate) == (1, 0.0)
    assert "with one worker lost nothing is left" in answer_card(one).finding


def test_every_circumstance_that_is_worse_takes_no_less_and_more_skew_lowers_capacity_by_as_much(planned, rate):
    easy = Question(rate / 2, 1024, margin=1.1, worker_slots=4)
    base = ask(planned.exploration, easy)
    for worse in ({"rate": rate}, {"margin": 1.5}, {"risk": 0.01}, {"more_skew": 0.5}):
        assert ask(planned.exploration, replace(easy, **worse)).plan.budget.slots >= base.plan.budget.slots, worse
    spare = ask(planned.exploration, replace(easy, one_lost=True))
    assert spare.workers == base.workers + 1
    assert spare.lost_rate >= spare.question.rate
    plain = ask(planned.exploration, Question(rate, 1024))
    skewed = ask(planned.exploration, Question(rate / 1.25, 1024, more_skew=0.25))
    assert skewed.plan.budget == plain.plan.budget
    assert skewed.plan.expected_rate == pytest.approx(plain.plan.expected_rate / 1.25)


def test_a_rate_beyond_where_capacity_levels_off_is_refused_with_the_number(planned):
    most = r"No number of slots .* by the scaling form [0-9,]+ slots sustain the most, [0-9.]+ [kMGT] records/s"
    for skew, said in ((0.0, ""), (0.2, r"^With 20 % more skew every record counts 1\.2 times\. ")):
        with pytest.raises(WorkbenchError, match=said + most):
            ask(planned.exploration, Question(1e15, 1024, more_skew=skew))


def test_a_rate_that_few_slots_carry_is_answered_though_many_carry_less(planned, monkeypatch):
    model = planned.exploration.model
    few = model.predict([[1024, 12]])[0]
    monkeypatch.setattr(model, "_predict", lambda points: few * np.where(points[:, 1] <= 12, points[:, 1] / 12, 0.1))
    assert ask(planned.exploration, Question(0.9 * few, 1024, margin=1.0)).plan.budget.slots == 11


def test_a_question_is_checked():
    with pytest.raises(WorkbenchError, match="A worker has 0 slots; it must have at least 1"):
        Question(1.0, 1024, worker_slots=0)
    with pytest.raises(WorkbenchError, match=r"additional skew is -0\.1; it must be a finite number of at least 0"):
        Question(1.0, 1024, more_skew=-0.1)


def test_the_range_of_rates_holds_the_targets(planned, rate):
    low, high = common_range(planned.exploration, (1.0, 1e9))
    assert low == 1.0
    assert high == 2e9
    assert common_range(planned.exploration)[1] == pytest.approx(4 * rate)


def test_moving_each_control_changes_answer_and_figure(planned):
    panel = WhatIf(planned, (TYPE,))
    assert panel.alarm.widget.value == ""
    (live,) = (one for one in panel.children if isinstance(one, WhileDragged))
    assert live.sliders == [one for one in panel.controls if one is not panel.lost]
    assert not any(one.continuous_update for one in live.sliders)  # a page would round planned rates and prices
    moves = (
        (panel.rate, panel.rate.value / 4),
        (panel.memory, next(memory for memory in (512, 2048) if memory != panel.memory.value)),
        (panel.margin, 1.4),
        (panel.risk, 0.05),
        (panel.shape, 9),
        (panel.price, 1.0),
        (panel.skew, 20.0),
        (panel.lost, True),
    )
    for control, value in moves:
        before, text, figure = panel.answer, panel.text.value, panel.chart.widget.to_json()
        control.value = value
        assert panel.alarm.widget.value == "", control.description
        assert panel.answer != before, control.description
        assert panel.text.value != text, control.description
        assert panel.chart.widget.to_json() != figure, control.description
    assert panel.margin.disabled
    assert panel.question().margin == 1.0
    shown = {trace.name: trace for trace in panel.chart.widget.data}
    assert shown["planned for a target"].x[0] == panel.answer.plan.budget.slots


def test_marks_and_curve_are_on_one_scale_at_more_skew_too(planned):
    panel = WhatIf(planned)
    panel.skew.value, panel.lost.value = 25.0, True
    shown = {trace.name: trace for trace in panel.chart.widget.data}
    model, memory = planned.exploration.model, panel.memory.value
    for name in ("all slots of the workers", "with one worker lost"):
        (slots,), (rate,) = shown[name].x, shown[name].y
        assert rate == pytest.approx(model.predict([[memory, slots]])[0])
    needed = shown["capacity it must have"].y[0]
    assert needed == pytest.approx(panel.rate.value * panel.margin.value * 1.25)
    assert shown["with one worker lost"].y[0] >= needed
    assert panel.chart.widget.layout.yaxis.title.text == "Capacity at the skew measured (records/s)"


def test_it_begins_where_the_plan_is_and_invents_no_price(planned):
    (plan,) = planned.plans
    bare = WhatIf(planned)
    assert bare.answer.plan.budget == plan.budget
    assert bare.price.value == 0
    assert "per hour" not in bare.text.value
    assert "no price" in bare.tiles.value
    priced = replace(planned, plans=(replace(plan, price=cheapest((TYPE,), plan.budget.slots, plan.budget.profile)),))
    panel = WhatIf(priced, (TYPE,))
    assert panel.instance.value == "large"
    assert panel.answer.workers == priced.plans[0].price.workers
    assert "USD per hour" in panel.text.value


def test_a_worker_type_sets_shape_and_price_also_beyond_the_sliders(planned):
    panel = WhatIf(planned, (TYPE,))
    panel.memory.value = 2048
    panel.instance.value = "large"
    assert (panel.shape.value, panel.price.value) == (6, 0.5)
    assert "USD per hour" in panel.text.value
    panel.memory.value = 512  # more of them fit in what the system leaves
    assert panel.shape.value == slots_per_worker(8, 16384, SlotProfile(1.0, 512)) == 7
    assert panel.answer.question.worker_slots == 7
    panel.instance.value = ""
    assert panel.shape.value == 7
    assert "USD" not in panel.text.value
    huge = replace(TYPE, name="huge", vcpus=200, memory_mb=2**20, price_per_hour=900.0, currency="JPY")
    panel = WhatIf(planned, (TYPE, huge))
    panel.memory.value = 2048
    panel.instance.value = "huge"
    slots = slots_per_worker(200, 2**20, SlotProfile(1.0, 2048))
    assert slots > 64
    assert (panel.shape.value, panel.price.value) == (slots, 900.0)
    assert panel.answer.question.worker_slots == slots
    assert "900 JPY per hour" in panel.text.value
    panel.instance.value = "large"
    assert (panel.shape.value, panel.price.value) == (6, 0.5)


@pytest.mark.parametrize("with_plans", [True, False])
def test_workers_hold_whole_executors_where_their_size_was_measured(planned, with_plans):
    def panel_of(size):
        cluster = {"testbed": "spark", "master": "yarn", "checkpoint": "hdfs://n/c", "executor_slots": size}
        on = replace(planned.study, **cluster, slots=(size, 2 * size))
        return WhatIf(replace(planned, study=on, plans=planned.plans if with_plans else ()), (TYPE,))

    panel = panel_of(3)
    assert (panel.shape.value, panel.shape.min, panel.shape.step, panel.shape.max % 3) == (6, 3, 3, 0)
    assert panel.answer.plan.executor.slots == 3
    panel.memory.value = 512
    panel.instance.value = "large"
    assert panel.shape.value == 6  # two of 3, where 7 slots fit into one
    panel.shape.value = 4  # as it can be typed
    assert "The slots of a worker are 4; they must fill whole executors of 3" in panel.alarm.widget.value
    assert panel.answer is None
    large = panel_of(9)
    large.instance.value = "large"
    assert "A worker large (8 cores, 16,384 MB) holds no executor of 9 slots of 1 core" in large.alarm.widget.value


def test_a_type_that_no_longer_fits_is_not_answered_for_when_the_rate_moves(planned):
    panel = WhatIf(planned, (replace(TYPE, name="small", memory_mb=2048),))
    panel.memory.value = 512
    panel.instance.value = "small"
    assert panel.answer is not None
    panel.memory.value = 2048
    for rate in (panel.rate.value, 1.1 * panel.rate.value):
        panel.rate.value = rate
        assert "A worker small (8 cores, 2,048 MB) holds no slot of 1 core and 2,048 MB" in panel.alarm.widget.value
        assert panel.answer is None
        assert (panel.text.value, panel.chart.finding) == ("", "No answer")


def test_a_worker_moved_by_hand_is_no_type_of_the_list(planned):
    panel = WhatIf(planned, (TYPE,))
    for control, value in (("shape", 5), ("price", 0.7)):
        panel.instance.value = "large"
        getattr(panel, control).value = value
        assert panel.instance.value == ""
        assert getattr(panel, control).value == value
        assert "USD" not in panel.text.value
        assert "USD" not in panel.chart.finding
    panel.instance.value = "large"
    panel.instance.value = ""
    assert "USD" not in panel.text.value


def test_what_cannot_be_answered_shows_as_a_card_and_goes_away(planned):
    none = WhatIf(replace(planned, study=replace(STUDY, targets=(1e15,)), plans=()))
    assert none.alarm.widget.value == ""  # its first target has no answer, and its sliders are there
    none.rate.value = 1e15
    assert "slots sustain the most, " in none.alarm.widget.value
    panel = WhatIf(planned)
    panel.rate.value = panel.rate.value / 2
    stated = panel.chart.finding
    panel.rate.max = 17
    panel.rate.value = 1e16
    assert 'role="alert"' in panel.alarm.widget.value
    assert panel.answer is None
    assert panel.text.value == panel.tiles.value == ""
    assert (panel.chart.finding, len(panel.chart.widget.data)) == ("No answer", 0)
    panel.rate.value = 1e6
    assert panel.alarm.widget.value == ""
    assert panel.chart.finding not in {stated, "No answer"}
    assert panel.chart.widget.layout.xaxis.visible is not False


def test_a_rate_is_typed_as_people_write_it(planned):
    panel = WhatIf(planned)
    assert panel.typed.value == "1,500,000"
    panel.typed.value = "2.1 M"
    assert panel.rate.value == panel.answer.plan.rate == 2.1e6
    assert panel.typed.value == "2,100,000"
    beyond = 3 * 10**panel.rate.max
    panel.typed.value = f"{beyond:.0f}"
    assert panel.rate.value == pytest.approx(beyond, abs=1)
    panel.typed.value = "2,1e6"  # no comma stands there
    assert "The rate is &#x27;2,1e6&#x27;" in panel.alarm.widget.value
    panel.rate.value = 1e6
    assert panel.typed.value == "1,000,000"


def test_a_scenario_is_pinned_and_compared_with(planned):
    panel = WhatIf(planned)
    assert panel.unpin.disabled
    panel.pin.click()
    assert panel.pinned_text.value.startswith("Pinned: 1.5 M records/s at a risk of ")
    slots = panel.answer.plan.budget.slots
    panel.rate.value = 3e6
    assert f"+{panel.answer.plan.budget.slots - slots} against pinned" in panel.tiles.value
    (mark,) = [one for one in panel.chart.widget.data if one.name == "pinned"]
    assert (list(mark.x), list(mark.y)) == ([slots], [1.5e6])
    panel.unpin.click()
    assert "pinned" not in panel.tiles.value
    assert panel.pinned_text.value == ""
    assert "pinned" not in {one.name for one in panel.chart.widget.data}
    assert panel.alarm.widget.value == ""


def test_a_worker_type_brings_its_cores():
    recorded = read_planned(Path(__file__).parents[4] / "data" / "q5.recorded.json")
    speeds = (("", None), ("usual", None), ("fast", 2.0))
    panel = WhatIf(recorded, [replace(TYPE, name=name, core_speed=speed) for name, speed in speeds if name])
    panel.rate.value = 200_000.0  # of more than one slot
    slots, lines = {}, {}
    for name, speed in speeds:
        panel.instance.value = name
        plan = panel.answer.plan
        assert panel.question().core_speed == speed
        assert plan.on_other_cores == (name == "fast")
        slots[name], lines[name] = plan.least_slots, panel._curves.at(panel.answer, "").curves[0]
    assert slots["fast"] < slots["usual"] == slots[""]
    assert "times as fast as those measured" in panel.text.value
    for line in lines.values():
        assert np.all(np.array(line.low) <= line.rate)
        assert np.all(line.rate <= np.array(line.high))
    at = np.log(lines["usual"].at)
    there = np.interp(at, np.log(lines["fast"].at), lines["fast"].rate)
    assert np.all(there > 1.9 * np.array(lines["usual"].rate))
    doubt = (np.log(np.divide(lines[name].high, lines[name].low))[0] for name in ("fast", "usual"))
    assert next(doubt) > next(doubt) + 0.05


def test_a_longer_wait_leaves_a_batch_the_rows_of_a_shorter_interval_and_the_curve_is_there():
    exploration = read_planned(Path("data/q5.recorded.json")).exploration
    explored_s = exploration.fitted_runs[-1].budget.interval_s
    wait_s = 0.25 * explored_s
    answer = ask(exploration, Question(20_000, 1024, 1.0, more_s=wait_s))
    shorter = exploration.model.at_interval(explored_s - wait_s)
    expected = 0.75 * shorter.predict([[1024, answer.plan.budget.slots]])[0]
    assert answer.plan.expected_rate == pytest.approx(expected)
    assert answer.plan.budget.interval_s == explored_s
    with pytest.raises(WorkbenchError, match="fills the trigger interval"):
        ask(exploration, Question(20_000, 1024, more_s=explored_s))
    panel = WhatIf(read_planned(Path("data/q5.recorded.json")))
    panel.wait.value = 0.4
    plan = panel.answer.plan
    (curve,) = panel._curves.at(panel.answer, "").curves
    assert np.interp(plan.budget.slots, curve.at, curve.rate) == pytest.approx(plan.expected_rate, rel=0.02)
