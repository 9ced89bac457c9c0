from dataclasses import replace

import numpy as np
import pytest
from example_measurement import example_measurement
from figure_checks import axis_titles, check_empty, check_figure, trace
from staged_runs import laid_out, rated_run

from workbench import units
from workbench.capacity import Allocation, CapacityModel, Space, Stage, compare_forms, plan
from workbench.capacity.explore import Configured, Question, conclude, next_question
from workbench.capacity.planning import InstanceType
from workbench.dataflow import Budget, Dataflow, Edge, Operator, SlotProfile
from workbench.measuring import Configuration
from workbench.metrics import Observation, OperatorMetrics
from workbench.views.figures.capacity import capacity, capacity_of, draw_capacity
from workbench.views.figures.dataflow_graph import draw_dataflow_graph, observed_graph
from workbench.views.figures.exploration import draw_acquisition, draw_convergence, draw_model_forms
from workbench.views.figures.slot_layout import (
    draw_configured,
    draw_slot_shares,
    draw_stage_layout,
    slot_shares,
    stage_layout,
)
from workbench.views.figures.trade_offs import cost_risk, draw_cost_risk, draw_trigger_intervals, trigger_intervals


@pytest.fixture(scope="module")
def exploration():
    wobble = iter((0.99, 1.01, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99))
    runs = [rated_run(n, m, 1e5 * n**0.95 * next(wobble)) for n in (2, 4, 8, 16) for m in (512, 2048)]
    return conclude(runs, "8 runs were made", growth="tasks")


PRICE = InstanceType("small", "acme", "here", 4, 8192, 0.2, "USD", "a list", "2026-01-31")


def test_capacity_is_shown_over_slots_and_memory(exploration):
    data = capacity(exploration, ())
    assert [curve.of for curve in data.curves] == [512, 2048]
    assert [curve.of for curve in data.memory_curves] == [2, 8, 16]
    figure = check_figure(draw_capacity(data))
    assert {"Slots", "Memory per slot (MB)", "Capacity (records/s)"} <= axis_titles(figure)
    points = [trace(figure, f"capacity-runs-{memory}-1") for memory in (512, 2048)]
    assert sum(len(one.x) for one in points) == len(exploration.fitted) == 7
    assert len(trace(figure, "capacity-runs-left-out-1").x) == 1  # the run that ended the exploration
    across = [trace(figure, f"capacity-runs-{memory}-2") for memory in (512, 2048)]
    assert sum(len(one.x) for one in across) == 5  # those at the slots of a curve
    assert [one.name for one in points] == ["simulated, 512 MB", "simulated, 2,048 MB"]  # the legend says each shape
    assert {one.yaxis for one in figure.data if one.xaxis == "x2"} == {"y2"}  # the targets' scale would flatten it


def test_runs_are_drawn_at_the_rates_that_the_model_is_fitted_to(exploration):
    runs = exploration.measurements
    wide = [replace(one, estimate=replace(one.estimate, high=1.5 * one.estimate.rate)) for one in runs]
    found = conclude(wide, "8 runs were made")
    figure = draw_capacity(capacity(found, ()))
    drawn = [rate for memory in (512, 2048) for rate in trace(figure, f"capacity-runs-{memory}-1").y]
    assert sorted(drawn) == pytest.approx(sorted(found.rates))
    assert found.rates[0] == pytest.approx(wide[0].estimate.rate * (1.5 / 1.005) ** 0.5)


def test_targets_are_lines_what_lies_beyond_is_shaded_and_far_ones_leave_room_for_what_was_measured(exploration):
    data = capacity_of(exploration.model, (), [(40, 2e6)], [512], "A finding")
    figure = check_figure(draw_capacity(data), "A finding")
    assert "target 2 M records/s" in {note.text for note in figure.layout.annotations}
    (shade,) = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert (shade.x0, shade.x1) == (data.most_measured, pytest.approx(46))
    (middle,) = data.curves
    assert all(low <= rate <= high for low, rate, high in zip(middle.low, middle.rate, middle.high, strict=True))
    near = draw_capacity(capacity_of(exploration.model, (), [(60, 2e6)], [512], "A finding")).layout
    assert (near.xaxis.type, near.yaxis.type) == ("linear", "linear")
    figure = draw_capacity(capacity_of(exploration.model, (), [(300, 2e7)], [512], "A finding"))
    far = figure.layout
    assert (far.xaxis.type, far.yaxis.type) == ("log", "log")
    (note,) = [note for note in far.annotations if note.text.startswith("target")]
    (line,) = [shape for shape in far.shapes if shape.type == "line"]
    assert (note.y, line.y0) == (pytest.approx(np.log10(2e7)), 2e7)
    low, high = far.xaxis.range
    assert 10**low < min(exploration.model.slots_)
    assert 10**high > 300
    (shade,) = [shape for shape in far.shapes if shape.type == "rect"]
    assert shade.x1 == pytest.approx(10**high)
    data = capacity_of(exploration.model, (), [(3670, 6e7)], [512], "A finding")
    nothing = replace(data.curves[0], low=tuple(0.0 for _ in data.curves[0].low))
    check_figure(draw_capacity(replace(data, curves=(nothing,))))  # which has no place on a logarithmic axis


def test_marks_of_as_many_slots_are_named_once_and_ticks_of_many_decades_are_powers_of_ten(exploration):
    targets = [(1, 6e4), (1, 2e4), (4, 2e5)]
    marks = trace(draw_capacity(capacity_of(exploration.model, (), targets, [512], "A finding")), "capacity-targets")
    assert dict(zip(marks.y, marks.text, strict=True)) == {2e4: "", 6e4: "1 slot", 2e5: "4 slots"}
    farthest = draw_capacity(capacity_of(exploration.model, (), [(2_841_444, 2e12)], [512], "A finding"))
    assert farthest.layout.yaxis.dtick == 1
    assert list(farthest.layout.xaxis.ticktext) == ["10", "100", "1,000", "10,000", "100,000", "1,000,000"]


def test_curves_are_the_model_s_and_so_are_their_straight_lines_on_logarithmic_axes(exploration):
    for targets, reach in ([(3670, 6e7)], 0), ((), 3670):
        (curve,) = capacity_of(exploration.model, (), targets, [512], "A finding", reach=reach).curves
        slots = np.array(curve.at)
        assert (slots == slots.round()).all()
        assert max(slots[1:] / slots[:-1]) < 1.6  # from 2 slots to 3 more than later
        between = np.sqrt(slots[1:] * slots[:-1])
        drawn = np.sqrt(np.array(curve.rate[1:]) * np.array(curve.rate[:-1]))
        assert drawn == pytest.approx(exploration.model.predict([[512, at] for at in between]), rel=0.02)
    (curve,) = capacity_of(exploration.model, (), (), [2048], "A finding", reach=200).curves
    assert curve.at[-1] > 200
    points = [[2048, slots] for slots in curve.at]
    assert curve.rate == pytest.approx(exploration.model.predict(points), rel=5e-3)
    low, high = exploration.model.interval(points)
    assert curve.low == pytest.approx(low, rel=5e-3)
    assert curve.high == pytest.approx(high, rel=5e-3)
    flat = CapacityModel("linear").fit([[512, 4], [512, 8], [512, 16]], [1e3, 9e4, 2.5e5])
    (straight,) = capacity_of(flat, (), (), [512], "A finding").curves
    assert straight.rate == pytest.approx(flat.predict([[512, slots] for slots in straight.at]), rel=0.02, abs=2e3)


def aimed_at(exploration, targets, runs=()):
    """Draw targets, whose rates up to 1 are shares of the capacity of 40 slots."""
    highest = float(exploration.model.predict([[512, 40]])[0])
    aimed = [(slots, rate if rate > 1 else rate * highest) for slots, rate in targets]
    return draw_capacity(capacity_of(exploration.model, runs, aimed, [512], "A finding"))


@pytest.mark.parametrize(
    ("targets", "runs", "places"),
    [
        ([(1, 2e4), (20, 1e6), (40, 1.0)], [], ["top right", "bottom right", "top left"]),
        ([(40, 0.8)], [], ["bottom left"]),
        ([(40, 0.93)], [], ["bottom left"]),  # over the mark they lay on the curve
        ([(20, 1e6), (3670, 6e7)], [], ["bottom right", "top left"]),
        ([(2, 1e6), (40, 4e7)], [(512, 3, 2e6, True)], ["middle right", "top left"]),  # not over a run
        ([(2, 1e6), (40, 4e7)], [(512, 3, 8e6, True)], ["top right", "top left"]),
    ],
)
def test_a_mark_s_words_stay_in_the_plot_and_off_its_axis_and_the_runs(exploration, targets, runs, places):
    assert list(trace(aimed_at(exploration, targets, runs), "capacity-targets").textposition) == places


@pytest.mark.parametrize(
    ("targets", "sides"),
    [
        ([(11, 1e5), (14, 4e5), (3670, 6e7)], ["right", "right", "left"]),  # on the other side than its mark
        ([(3, 2e5), (40, 2e6)], ["right", "left"]),  # where the curve is not
        ([(2, 0.02), (3, 0.05), (40, 1.0)], ["right", "left", "left"]),  # close to each other: on two sides
        ([(2, 0.09), (4, 0.22), (40, 1.0)], ["bottom", "top", "top"]),  # between two lines: twice the room
    ],
)
def test_a_target_s_words_stand_where_there_is_room(exploration, targets, sides):
    notes = aimed_at(exploration, targets).layout.annotations
    found = [(note.xanchor, note.yanchor) for note in notes if note.text.startswith("target")]
    assert [side in ends for side, ends in zip(sides, found, strict=True)] == [True] * len(sides)
    assert found[0] != found[1] or "bottom" not in sides


def test_other_targets_need_no_new_curves_and_leave_the_traces(exploration):
    """A live figure is updated trace by trace."""
    data = capacity_of(exploration.model, (), (), [512], "Before", reach=50)
    after = replace(data, targets=((30, 2e6),), finding="After")
    figures = draw_capacity(data), draw_capacity(after)
    assert len({tuple((one.uid, one.type) for one in figure.data) for figure in figures}) == 1
    assert list(trace(figures[1], "capacity-targets").x) == [30]


def test_forms_are_compared_by_curve_and_by_error_and_far_beyond_the_runs_on_logarithmic_axes(exploration):
    made = plan(exploration, 2e6, memory_mb=[512])
    found = compare_forms(exploration, [made])
    figure = check_figure(draw_model_forms(exploration, found))
    assert list(trace(figure, "forms-errors").y) == ["linear", "sqrt", "log", "scaling"]
    slots = trace(figure, "forms-sqrt").x
    assert slots[-1] == pytest.approx(48)
    assert list(trace(figure, "forms-errors").x) == [fit.left_out for fit in found.fits]
    (target,) = zip(trace(figure, "forms-targets").x, trace(figure, "forms-targets").y, strict=True)
    assert target == (made.budget.slots, 2e6)
    low, high = exploration.model.interval([[512, count] for count in slots])
    assert list(trace(figure, "forms-band").y) == pytest.approx([*high, *low[::-1]])
    sqrt = CapacityModel("sqrt").fit(exploration.points, exploration.rates)
    assert trace(figure, "forms-sqrt").y[-1] == pytest.approx(sqrt.predict([[512, 48]])[0])
    found = compare_forms(exploration, [plan(exploration, 1e7, memory_mb=[512])])
    figure = check_figure(draw_model_forms(exploration, found))
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")
    assert all(rate is None or rate > 0 for form in ("linear", "log") for rate in trace(figure, f"forms-{form}").y)


def test_the_gaussian_process_and_its_question_are_shown(exploration):
    space = Space((2, 4, 8, 16), (512, 2048))
    answers = [0, 6, 1, 7, 2]
    runs = [exploration.runs[row] for row in answers]
    why = next_question(runs, range(len(runs)), space)
    figure = check_figure(draw_acquisition(Question(why, space, tuple(runs))))
    for uid in ("mean", "improvement"):
        shown = trace(figure, f"acquisition-{uid}")
        assert np.array(shown.z) == pytest.approx(getattr(why.acquired, uid).T)
        assert (list(shown.x), list(shown.y)) == (["2", "4", "8", "16"], ["512", "2,048"])
        asked = trace(figure, f"acquisition-asked-{uid}")
        assert (asked.x, asked.y) == ((f"{why.budget.slots}",), (f"{why.budget.profile.memory_mb:,}",))
        assert len(trace(figure, f"acquisition-runs-{uid}").x) == 5
    corner = Question(next_question(runs[:2], range(2), space), space, tuple(runs[:2]))
    grid = check_figure(draw_acquisition(corner), corner.sentence)
    assert [one.uid for one in grid.data] == ["acquisition-space", "acquisition-runs-space", "acquisition-asked-space"]
    assert grid.data[0].colorscale[0] == (0, "rgba(255, 255, 255, 0)")  # no white cells on a dark page
    assert len(trace(grid, "acquisition-runs-space").x) == 2


def test_the_exploration_s_error_is_shown_after_each_run(exploration):
    finding = "7 of 8 runs were fitted; the exploration ended because 8 runs were made"
    figure = check_figure(draw_convergence(exploration), finding)
    assert list(trace(figure, "convergence-costs").y)[:3] == [None, None, None]  # defined from four runs on
    (cross,) = trace(figure, "convergence-left-out").x
    assert cross == 8
    assert trace(figure, "convergence-left-out").showlegend
    assert "Error of the best form (records/s)" in axis_titles(figure)  # it may rise: no running minimum
    assert list(trace(figure, "convergence-rates").y) == [run.estimate.middle for run in exploration.runs]
    asked = [replace(run, predicted_rate=2e6) for run in exploration.runs]
    expected = draw_convergence(replace(exploration, runs=tuple(asked)))
    assert set(trace(expected, "convergence-objectives").y) == {2e6}


def test_slot_shares_name_the_largest_and_the_bottleneck():
    found = Allocation({"map": 1, "join": 3}, 2e5, {"map": float("inf"), "join": 2e5})
    finding = slot_shares(found)
    assert finding.startswith("'join' takes 75 % of 4 slots; ")
    assert slot_shares(found, 1.9e5).endswith("at 200 k records/s; the measured capacity is lower")
    assert slot_shares(found, 2.1e5) == finding
    figure = check_figure(draw_slot_shares(found, finding), finding)
    assert figure.layout.xaxis.dtick >= 1  # no tick between two slots


def test_a_layout_tells_what_is_frozen_and_when_batches_are_late():
    stages = [Stage("scan", 0.01, 1e-5, source=True), Stage("count", 0.05, 1e-4, stateful=True)]
    two, four = (laid_out(stages, slots, 1.0, rate=30_000) for slots in (2, 4))
    both = replace(four, batch_s=two.batch_s | four.batch_s)
    longest = f"batches take at most {units.seconds(two.batch_s[2])}, "
    frozen = f"{four.partitions['count']} state partitions, frozen by the checkpoint; "
    finding = f"{frozen}{longest}late at 1 of 2 slot counts"
    assert stage_layout(both) == finding
    assert stage_layout(both, timed=False) == finding.replace(longest, "")
    figure = check_figure(draw_stage_layout(both, finding), finding)
    assert "frozen" in trace(figure, "layout-partitions").text[1]
    assert axis_titles(figure) == {"Partitions"}


def test_what_bids2_says_of_a_budget_is_drawn_as_tasks_or_partitions():
    budget = Budget(4, SlotProfile(0.4, 1024))
    stages = [Stage("scan", 0.01, 1e-5, source=True), Stage("count", 0.05, 1e-4, stateful=True)]
    tasks = Configuration("q1", budget, {"map": 1, "join": 3}, predicted_rate=2e5)
    apart = Configuration("q1", budget, partitions={"source": 4, "state": 2}, predicted_rate=2e5)
    for asked, uid, said in (
        (
            Configured(tasks, Allocation(tasks.tasks, 2e5, {"map": 3e5, "join": 2e5})),
            "shares-tasks",
            "1 map, 3 join; expected: 200 k records/s",
        ),
        (Configured(apart, laid_out(stages, 4, 1.0, rate=3e4)), "layout-partitions", "4 source, 2 state; expected"),
    ):
        assert said in asked.sentence
        assert trace(check_figure(draw_configured(asked), asked.sentence), uid).x
    check_empty(draw_configured(Configured(Configuration("q1", budget))))


def test_risk_falls_as_cost_rises(exploration):
    model, profile = exploration.model, SlotProfile(1.0, 512)
    data = cost_risk(model, 3e6, profile, PRICE)
    risks = [point.risk for point in data.points]
    assert risks == sorted(risks, reverse=True)
    assert risks[0] == pytest.approx(0.5, abs=0.05)
    for point in data.points[1:4]:
        low, _ = model.interval([[512, point.slots]], 1 - 2 * point.risk)
        assert low[0] == pytest.approx(3e6, rel=0.02)
        assert point.cost == pytest.approx(730 * 0.2 * -(-point.slots // 3))  # of four cores the system keeps some
    assert [label for label, _ in data.marks] == ["margin of 0 %", "margin of 10 %", "margin of 25 %"]
    assert data.marks[1][1].slots == model.slots_for(3e6, 512)
    assert {"Cost (USD a month)", "Risk of falling short (%)"} <= axis_titles(check_figure(draw_cost_risk(data)))
    bare = cost_risk(model, 3e6, profile)
    assert "slots" in bare.finding
    assert "Slots" in axis_titles(check_figure(draw_cost_risk(bare)))
    risky = next(point for point in data.points if 0.05 < point.risk < 0.4)
    safe = next(point for point in data.points if point.risk <= 0.01)
    finding = cost_risk(model, 3e6, profile, PRICE, planned=risky).finding
    assert finding.startswith(f"The plan for 3 M records/s, {risky.slots} slots for {units.number(risky.cost)} USD a")
    assert finding.endswith(f"to bring that to 1 %, pay {units.number(safe.cost)} USD a month ({safe.slots} slots)")
    sure = cost_risk(model, 3e6, profile, PRICE, planned=replace(risky, risk=0.0))
    assert sure.finding.endswith("of under 0.1 %")


@pytest.mark.parametrize("price", [None, PRICE])
def test_deployments_have_whole_executors_where_their_size_was_measured(exploration, price):
    data = cost_risk(exploration.model, 3e6, SlotProfile(1.0, 512), price, executor_slots=3)
    assert all(point.slots % 3 == 0 for point in (*data.points, *(mark for _, mark in data.marks)))
    usual = cost_risk(exploration.model, 3e6, SlotProfile(1.0, 512), price)
    assert any(point.slots % 3 for point in usual.points)
    for point in data.points:
        assert point.cost == (pytest.approx(730 * 0.2 * point.slots / 3) if price else point.slots)


def test_margins_that_meet_share_a_label_and_where_all_deployments_cost_the_same_slots_tell_them_apart(exploration):
    data = cost_risk(exploration.model, 3e6, SlotProfile(1.0, 512), PRICE)
    (first, one), (second, _), last = data.marks
    meeting = draw_cost_risk(replace(data, marks=((first, one), (second, one), last)))
    said = [f"margin of 0 % and 10 %: {one.slots} slots", "", f"margin of 25 %: {last[1].slots} slots"]
    assert list(trace(meeting, "risk-margins").text) == said
    huge = replace(PRICE, vcpus=512, memory_mb=2**20, price_per_hour=5.0)
    data = cost_risk(exploration.model, 3e6, SlotProfile(1.0, 512), huge)
    assert {point.cost for point in data.points} == {3650.0}
    figure = check_figure(draw_cost_risk(data))
    assert "Slots, all for 3,650 USD a month" in axis_titles(figure)
    assert list(trace(figure, "risk-curve").x) == [point.slots for point in data.points]
    assert list(trace(figure, "risk-margins").x) == [point.slots for _, point in data.marks]
    low, high = figure.layout.xaxis.range
    assert low < data.points[0].slots < data.points[-1].slots < high


def test_a_rate_that_no_slots_carry_is_an_answer_and_risk_does_not_rise_where_only_the_interval_widens():
    flat = CapacityModel("linear").fit([[512, 1], [512, 2], [512, 4]], [5e4, 5e4, 5e4 - 1])
    data = cost_risk(flat, 1e6, SlotProfile(1.0, 512))
    assert data.finding.startswith("No number of slots sustains")
    check_empty(draw_cost_risk(data))

    class Widening:
        def slots_for(self, _rate, _memory, margin, *, risk=None, step=1):  # noqa: ARG002
            return 12 if risk else round(10 * margin)

        def risks(self, _rate, _memory, counts):
            return [0.5 if count < 12 else 0.001 * count for count in counts]

    risks = [point.risk for point in cost_risk(Widening(), 1e6, SlotProfile(1.0, 512)).points]
    assert risks == sorted(risks, reverse=True)
    assert (risks[0], risks[-1]) == (0.5, 0.012)


def test_more_latency_buys_capacity():
    first = example_measurement()
    slow = replace(
        first,
        budget=replace(first.budget, interval_s=4.0),
        estimate=replace(first.estimate, rate=2 * first.estimate.rate, low=2 * first.estimate.rate, high=float("inf")),
    )
    runs = [slow, first, replace(first, estimate=replace(first.estimate, rate=None, low=0.0))]
    figure = check_figure(draw_trigger_intervals(runs), trigger_intervals(runs))
    rates, waits = figure.data
    assert rates.name == waits.name == "4 slots of 0.2 cores, 512 MB"
    assert list(rates.x) == [2.0, 4.0]
    assert list(rates.error_y.array) == [pytest.approx(first.estimate.high - rates.y[0]), 0]  # the other has no end
    whole = first.estimate.observation.batches[1:]
    assert waits.x[0] == pytest.approx(1.0 + np.mean([batch.duration_s for batch in whole]))
    assert trigger_intervals(runs).startswith("From 2 s to 4 s the capacity of q5 grows 2 times, from ")
    assert {"Trigger interval (s)", "Mean latency of a record (s)", "Capacity (records/s)"} <= axis_titles(figure)
    assert "one trigger interval only, 2 s" in trigger_intervals([first])
    check_empty(draw_trigger_intervals([]))


FLOW = Dataflow(
    "diamond",
    (*(Operator(name, "map", name == "b") for name in ("a", "b", "c <x>")), Operator("s", "source")),
    (Edge("s", "a"), Edge("s", "b", "forward"), Edge("a", "c <x>"), Edge("b", "c <x>")),
)


def test_a_graph_puts_operators_right_of_those_that_feed_them():
    seen = (
        OperatorMetrics("a", "map", 2, 12_000, 0, 1.0, 0.25, None, 0.0, 0),
        OperatorMetrics("b", "map", 1, 0, 0, 1.0, 0.75, None, 0.0, 0),
    )
    data = observed_graph(FLOW, Observation(1e3, 10.0, (), operators=seen))
    place = data.places
    assert place["s"][0] == 0
    assert place["a"][0] == place["b"][0] == 1
    assert abs(place["a"][1] - place["b"][1]) >= 1
    assert place["c <x>"] == (2, pytest.approx(np.mean([place["a"][1], place["b"][1]])))
    finding = "diamond: 4 operators in 3 tasks; the busiest is 'b', 75 % of its tasks' time"
    figure = check_figure(draw_dataflow_graph(data), finding)
    assert trace(figure, "graph-operators").text[0] == "<b>a</b><br>2 tasks<br>1.2 k rec/s<br>25 % busy"
    assert len([x for x in trace(figure, "graph-shuffle").x if x is None]) == 3
    assert len([x for x in trace(figure, "graph-forward").x if x is None]) == 1
    check_figure(draw_dataflow_graph(observed_graph(FLOW)), "diamond: 4 operators")
