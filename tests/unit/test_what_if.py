"""What-if answers and their sliders, without a browser."""

import math
from dataclasses import replace

import numpy as np
import pytest

from workbench.capacity.executor import slots_per_worker
from workbench.capacity.prices import InstanceType
from workbench.dataflow import SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.study.planning import run_study
from workbench.study.spec import Study
from workbench.study.what_if import Question, ask, common_range
from workbench.views.widgets import WhatIf

STUDY = Study(
    "nexmark:q11", (1.5e6,), (4, 8, 12), (512, 1024, 2048), testbed="fluid", slot_cpus=1.0, interval_s=5.0, most_runs=7
)
TYPE = InstanceType("large", "cloud", "here", 8, 16384, 0.5, "USD", "list", "2026-01")


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    return run_study(STUDY, Journal(tmp_path_factory.mktemp("study") / "journal.jsonl"))


@pytest.fixture
def rate(planned):
    return float(max(planned.exploration.rates))


def test_the_answer_is_the_models(planned, rate):
    question = Question(rate, 1024, worker_slots=3, worker_price=0.5)
    answer = ask(planned.exploration, question)
    model = planned.exploration.model
    assert answer.plan.budget.slots == model.slots_for(rate, 1024, min_slots=4)
    assert answer.plan.expected_rate == model.predict([[1024, answer.plan.budget.slots]])[0]
    assert answer.plan.low <= answer.plan.expected_rate <= answer.plan.high
    assert answer.workers == math.ceil(answer.plan.budget.slots / 3)
    assert answer.per_hour == 0.5 * answer.workers
    assert answer.per_month == pytest.approx(730 * answer.per_hour)
    assert answer.lost_rate == pytest.approx(model.predict([[1024, 3 * (answer.workers - 1)]])[0])


def test_every_circumstance_that_is_worse_takes_no_less(planned, rate):
    easy = Question(rate / 2, 1024, worker_slots=4)
    base = ask(planned.exploration, easy)
    for worse in (
        replace(easy, rate=rate),
        replace(easy, margin=1.5),
        replace(easy, risk=0.01),
        replace(easy, more_skew=0.5),
    ):
        answer = ask(planned.exploration, worse)
        assert answer.plan.budget.slots >= base.plan.budget.slots, worse
    spare = ask(planned.exploration, replace(easy, one_lost=True))
    assert spare.workers == base.workers + 1
    assert spare.survives


def test_more_skew_lowers_capacity_by_as_much(planned, rate):
    plain, skewed = (
        ask(planned.exploration, Question(r, 1024, more_skew=s)) for r, s in ((rate, 0), (rate / 1.25, 0.25))
    )
    assert skewed.plan.budget == plain.plan.budget
    assert skewed.plan.expected_rate == pytest.approx(plain.plan.expected_rate / 1.25)


def test_a_rate_beyond_where_capacity_levels_off_is_refused_with_the_number(planned):
    with pytest.raises(WorkbenchError, match=r"No number of slots .* so many carry [0-9.e+,]+ records/s"):
        ask(planned.exploration, Question(1e15, 1024))
    with pytest.raises(
        WorkbenchError, match=r"^With 20% more skew every record counts 1\.2 times\. No number of slots"
    ):
        ask(planned.exploration, Question(1e15, 1024, more_skew=0.2))


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
    moves = (
        (panel.rate, panel.rate.value / 2),
        (panel.memory, 512),
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
    assert shown["with one worker lost"].y[0] == panel.answer.lost_rate
    assert shown["capacity it must have"].y[0] == pytest.approx(panel.rate.value * 1.2)


def test_a_worker_type_sets_shape_and_price(planned):
    panel = WhatIf(planned, (TYPE,))
    panel.instance.value = "large"
    assert (panel.memory.value, panel.shape.value, panel.price.value) == (2048, 6, 0.5)
    assert "USD per hour" in panel.text.value
    panel.memory.value = 512  # more of them fit beside what the system keeps
    assert panel.shape.value == slots_per_worker(8, 16384, SlotProfile(1.0, 512)) == 7
    assert panel.answer.question.worker_slots == 7
    panel.instance.value = ""
    assert panel.shape.value == 7
    assert "USD" not in panel.text.value


def test_a_worker_type_beyond_the_sliders_extends_them(planned):
    huge = InstanceType("huge", "cloud", "here", 128, 524288, 9.0, "USD", "list", "2026-01")
    panel = WhatIf(planned, (huge, TYPE))
    panel.instance.value = "huge"
    assert (panel.shape.value, panel.price.value) == (slots_per_worker(128, 524288, SlotProfile(1.0, 2048)), 9.0)
    assert panel.shape.value > 64
    panel.instance.value = "large"
    assert (panel.shape.value, panel.price.value) == (6, 0.5)


def test_a_first_target_out_of_reach_shows_as_a_card_and_the_panel_lives(planned):
    study = replace(planned.study, targets=(1e15,))
    panel = WhatIf(replace(planned, study=study))
    assert 'role="alert"' in panel.alarm.widget.value
    assert panel.answer is None
    assert len(panel.chart.widget.data) > 0
    panel.rate.value = 1e6
    assert panel.alarm.widget.value == ""
    assert panel.answer.plan.rate == pytest.approx(1e6, rel=0.02)


def test_what_cannot_be_answered_shows_as_a_card_and_goes_away(planned):
    panel = WhatIf(planned)
    panel.rate.value = panel.rate.value / 2
    panel.rate.max = 17
    panel.rate.value = 1e16
    assert 'role="alert"' in panel.alarm.widget.value
    assert "by the scaling form so many carry" in panel.alarm.widget.value
    assert panel.answer is None
    assert panel.text.value == ""
    panel.rate.value = 1e6
    assert panel.alarm.widget.value == ""
    assert panel.answer is not None


def test_no_label_is_clipped(planned):
    panel = WhatIf(planned)
    for control in panel.controls:
        assert len(control.description) * 7.5 < 17 * 16 or control is panel.lost


def test_a_worker_too_small_for_a_slot_is_refused_in_the_panel(planned):
    panel = WhatIf(planned, [InstanceType("nano", "none", "none", 0.1, 128, 0.01, "USD", "test", "2026-01-01")])
    panel.instance.value = "nano"
    assert "A worker nano (0.1 cores, 128 MB) holds no slot of 1 core" in panel.alarm.widget.value
