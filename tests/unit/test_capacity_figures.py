"""Figures of capacity: model, forms, slots and layout, risk, trigger interval; the dataflow; live figures in place."""

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest
from example_measurement import example_measurement
from figure_checks import axis_titles, check_empty, check_figure, trace

from workbench.capacity import Allocation, CapacityModel, Measurement, MstEstimate, Stage, micro_batch_layout
from workbench.capacity.explorer import conclude
from workbench.capacity.prices import InstanceType
from workbench.dataflow import Budget, Dataflow, Edge, Operator, SlotProfile
from workbench.views import theme, units
from workbench.views.figures import (
    capacity,
    capacity_of,
    cost_risk,
    dataflow_graph,
    draw_capacity,
    draw_cost_risk,
    draw_dataflow_graph,
    draw_model_forms,
    draw_slot_shares,
    draw_stage_layout,
    draw_trigger_intervals,
    model_forms,
    observed_graph,
    slot_shares,
    stage_layout,
    trigger_intervals,
)


def run(slots, memory, rate):
    estimate = MstEstimate(rate, rate, 1.01 * rate, (), None, "query", 60.0)
    return Measurement("q1", Budget(slots, SlotProfile(1.0, memory)), estimate, (), None, "fluid", "2026-01-31")


@pytest.fixture(scope="module")
def exploration():
    wobble = iter((0.99, 1.01, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99))
    runs = [run(n, m, 1e5 * n**0.95 * next(wobble)) for n in (2, 4, 8, 16) for m in (512, 2048)]
    return conclude(runs, "8 runs were made")


PRICES = (InstanceType("small", "acme", "here", 4, 8192, 0.2, "USD", "a list", "2026-01-31"),)


def test_capacity_is_shown_over_slots_and_memory(exploration):
    data = capacity(exploration, ())
    assert [curve.memory_mb for curve in data.curves] == [512, 2048]
    assert [curve.slots for curve in data.memory_curves] == [2, 8, 16]
    figure = check_figure(draw_capacity(data))
    assert {"Slots", "Memory per slot (MB)", "Capacity (records/s)"} <= axis_titles(figure)
    assert len(trace(figure, "capacity-runs-fitted-1").x) == len(exploration.fitted) == 7
    assert len(trace(figure, "capacity-runs-left-out-1").x) == 1  # the run that ended the exploration
    assert len(trace(figure, "capacity-runs-fitted-2").x) == 5  # those at the slots of a curve
    symbols = trace(figure, "capacity-runs-fitted-1").marker.symbol
    assert symbols[0] != symbols[1]


def test_targets_are_lines_and_what_lies_beyond_is_shaded(exploration):
    data = capacity_of(exploration.model, (), [(40, 2e6, 512)], [512], "A finding")
    figure = check_figure(draw_capacity(data), "A finding")
    assert "target 2 M records/s" in {note.text for note in figure.layout.annotations}
    (shade,) = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert (shade.x0, shade.x1) == (data.most_measured, pytest.approx(46))
    (middle,) = data.curves
    assert all(low <= rate <= high for low, rate, high in zip(middle.low, middle.rate, middle.high, strict=True))


def test_forms_are_compared_by_curve_and_by_error(exploration):
    data = model_forms(exploration)
    assert [curve.form for curve in data.curves] == ["scaling", "linear", "sqrt", "log"]
    errors = {curve.form: curve.error for curve in data.curves}
    best = min(errors, key=errors.get)
    assert data.finding.startswith(f"{best} has the least error on a run left out, {units.rate(errors[best])}; ")
    assert errors["linear"] < errors["log"]  # the truth is nearly linear
    assert data.slots[-1] == pytest.approx(48)
    figure = check_figure(draw_model_forms(data))
    assert list(trace(figure, "forms-errors").x) == list(errors.values())
    assert "Error, one run left out (records/s)" in axis_titles(figure)
    few = replace(exploration, fitted=exploration.fitted[:3])
    assert "4 runs" in check_empty(draw_model_forms(model_forms(few)))


def test_slot_shares_name_the_largest_and_the_bottleneck():
    found = Allocation({"map": 1, "join": 3}, 2e5, {"map": float("inf"), "join": 2e5})
    data = slot_shares(found)
    assert data.finding == "'join' takes 75 % of 4 slots; 'join' limits the source to 200 k records/s"
    figure = check_figure(draw_slot_shares(data))
    assert list(trace(figure, "shares-capacities").text) == ["any rate", "200 k"]
    assert list(trace(figure, "shares-tasks").text) == ["1 (25 %)", "3 (75 %)"]
    check_empty(draw_slot_shares(slot_shares(None)))


def test_a_layout_tells_what_is_frozen_and_when_batches_are_late():
    stages = [Stage("scan", 0.01, 1e-5, source=True), Stage("count", 0.05, 1e-4, stateful=True)]
    data = stage_layout(micro_batch_layout(stages, [2, 4], 1.0, rate={2: 30_000, 4: 30_000}))
    assert data.stateful == (False, True)
    assert data.slots == (2, 4)
    assert data.finding == (
        f"{data.partitions[1]} state partitions, for good; batches take {units.seconds(data.seconds[0])} at most, late "
        "at 1 of 2 slot counts"
    )
    figure = check_figure(draw_stage_layout(data))
    assert "frozen" in trace(figure, "layout-partitions").text[1]
    assert {"Partitions", "Slots", "Batch time (s)"} <= axis_titles(figure)
    check_empty(draw_stage_layout(stage_layout(None)))


def test_risk_falls_as_cost_rises(exploration):
    model = exploration.model
    data = cost_risk(model, 3e6, SlotProfile(1.0, 512), PRICES)
    risks = [point.risk for point in data.points]
    assert risks == sorted(risks, reverse=True)
    assert risks[0] == pytest.approx(0.5, abs=0.05)
    for point in data.points[1:4]:
        low, _ = model.interval([[512, point.slots]], 1 - 2 * point.risk)
        assert low[0] == pytest.approx(3e6, rel=0.02)
        assert point.cost == pytest.approx(0.2 * -(-point.slots // 4))
    assert [label for label, _ in data.marks] == ["margin of 0 %", "margin of 10 %", "margin of 25 %"]
    assert data.marks[1][1].slots == model.slots_for(3e6, 512)
    figure = check_figure(draw_cost_risk(data))
    assert {"Cost (USD/h)", "Risk of falling short (%)"} <= axis_titles(figure)
    bare = cost_risk(model, 3e6, SlotProfile(1.0, 512))
    assert "slots" in bare.finding
    assert "Slots" in axis_titles(check_figure(draw_cost_risk(bare)))


def test_a_rate_that_no_slots_carry_is_an_answer():
    flat = CapacityModel("linear").fit([[512, 1], [512, 2], [512, 4]], [5e4, 5e4, 5e4 - 1])
    data = cost_risk(flat, 1e6, SlotProfile(1.0, 512))
    assert data.finding.startswith("No number of slots carries")
    check_empty(draw_cost_risk(data))


def test_more_latency_buys_capacity():
    first = example_measurement()
    slow = replace(
        first,
        budget=replace(first.budget, interval_s=4.0),
        estimate=replace(first.estimate, rate=2 * first.estimate.rate, low=2 * first.estimate.rate, high=float("inf")),
    )
    data = trigger_intervals([slow, first, replace(first, estimate=replace(first.estimate, rate=None, low=0.0))])
    ((label, points),) = data.deployments
    assert label == "4 slots of 0.2 cores, 512 MB"
    assert [point.interval_s for point in points] == [2.0, 4.0]
    assert points[1].high == float("inf")
    whole = first.estimate.observation.batches[1:]
    assert points[0].mean_latency_s == pytest.approx(1.0 + np.mean([batch.duration_s for batch in whole]))
    assert data.finding.startswith("From 2 s to 4 s the capacity of q5 grows 2 times, from ")
    figure = check_figure(draw_trigger_intervals(data))
    assert {"Trigger interval (s)", "Mean latency of a record (s)", "Capacity (records/s)"} <= axis_titles(figure)
    assert "one trigger interval only, 2 s" in trigger_intervals([first]).finding
    check_empty(draw_trigger_intervals(trigger_intervals([])))


FLOW = Dataflow(
    "diamond",
    (*(Operator(name, "map", name == "b") for name in ("a", "b", "c <x>")), Operator("s", "source")),
    (Edge("s", "a"), Edge("s", "b", "forward"), Edge("a", "c <x>"), Edge("b", "c <x>")),
)


def test_a_graph_puts_operators_right_of_those_that_feed_them():
    data = dataflow_graph(FLOW, {"a": 2, "b": 1}, {"a": 1200.0}, {"a": 0.25, "b": 0.75})
    place = {node.name: (node.column, node.row) for node in data.nodes}
    assert place["s"][0] == 0
    assert place["a"][0] == place["b"][0] == 1
    assert abs(place["a"][1] - place["b"][1]) >= 1
    assert place["c <x>"] == (2, pytest.approx(np.mean([place["a"][1], place["b"][1]])))
    assert data.finding == "diamond: 4 operators in 3 tasks; the busiest is 'b', 75 % of its tasks' time"
    figure = check_figure(draw_dataflow_graph(data))
    assert trace(figure, "graph-operators").text[0] == "<b>a</b><br>2 tasks<br>1.2 k rec/s<br>25 % busy"
    assert len([x for x in trace(figure, "graph-shuffle").x if x is None]) == 3
    assert len([x for x in trace(figure, "graph-forward").x if x is None]) == 1
    assert dataflow_graph(FLOW).finding == "diamond: 4 operators"
    check_figure(draw_dataflow_graph(dataflow_graph(FLOW)))


def test_an_observation_fills_the_graph():
    seen = example_measurement().estimate.observation
    names = [metrics.operator for metrics in seen.operators]
    flow = Dataflow("q5", tuple(Operator(name, "map") for name in names), ())
    data = observed_graph(flow, seen)
    assert data.nodes[0].records_per_s == pytest.approx(seen.operators[0].records_in / seen.elapsed_s)
    assert data.busiest.busyness == max(metrics.busyness for metrics in seen.operators)


def test_a_live_figure_is_redrawn_in_place(exploration):
    live = go.Figure(draw_capacity(capacity_of(exploration.model, (), [(40, 2e6, 512)], [512, 2048], "Before")))
    traces = list(live.data)
    after = draw_capacity(capacity_of(exploration.model, (), [(20, 1.5e6, 512)], [512], "After"))
    theme.redraw(live, after)
    assert list(live.data) == traces
    assert live.layout.title.text == "After"
    assert live.layout.meta["finding"] == "After"
    assert list(trace(live, "capacity-targets").x) == [20]
    assert trace(live, "capacity-model-memory-2048").visible is False
    assert len(live.layout.annotations) == len(after.layout.annotations)
    theme.redraw(live, theme.not_enough(theme.figure("Nothing"), "gone."))
    assert all(one.visible is False for one in live.data)
    theme.redraw(live, draw_capacity(capacity_of(exploration.model, (), [], [2048], "Again")))
    assert trace(live, "capacity-model-memory-2048").visible is True
    assert live.layout.xaxis.visible is not False
