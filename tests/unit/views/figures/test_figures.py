"""Figures: the data functions say what is shown, drawing is only smoke-tested; colours can be read."""

import math
from dataclasses import replace
from typing import get_args

import pytest
from example_measurement import BUDGET
from figure_checks import check_empty, check_figure, trace

from workbench.metrics import Batch, Observation, OperatorMetrics
from workbench.records import Judgement, MstEstimate, Probe, Verdict
from workbench.views import findings, theme
from workbench.views.figures.batch_times import VERDICTS, batch_times, draw_batch_times
from workbench.views.figures.probes import Probes, draw_bracket, draw_probes
from workbench.views.figures.slot_layout import busiest_operator, draw_operators, operators


def observation(rate, seconds, start=100.0, batches=4):
    """Batches every 2 s of 2 x rate rows; the first one only marks the beginning."""
    rows = round(2 * rate)
    made = tuple(
        Batch(start + 2 * place, seconds, rows, due=rows * (place + 1), backlog=0.0) for place in range(batches)
    )
    return Observation(rate, 2.0 * (batches - 1), made, operators=OPERATORS)


def operator(name, kind, busyness, tasks=4):
    return OperatorMetrics(name, kind, tasks, 600, 300, 2.4, busyness, 250.0, 1.2, 4096)


OPERATORS = (operator("read", "source", 0.9), operator("map", "filter", 0.1), operator("count", "aggregate", 0.3))


def probe(number, rate, seconds, verdict):
    judgement = Judgement(verdict, 1.0, 0.0, 0.1, f"It was {verdict}.") if verdict != "warm-up" else None
    phase = "probe" if judgement else "warm-up"
    seen = observation(rate if math.isfinite(rate) else 900, seconds)
    return Probe(number, phase, rate, 1, seen, judgement, started_s=20.0 * number, seconds=20.0)


# batch time = 0.5 s + 1 ms per row: 1.5 s of 2 s are left for 1500 rows, 750 records/s
@pytest.fixture
def estimate():
    made = (
        probe(0, math.inf, 1.9, "warm-up"),
        probe(1, 500, 1.5, "sustained"),
        probe(2, 700, 1.9, "sustained"),
        probe(3, 800, 2.1, "overloaded"),
    )
    return MstEstimate(700.0, 700.0, 800.0, made, made[2].observation, "query", 80.0)


def test_probes_are_on_the_estimates_clock(estimate):
    finding = "q5 sustains 748 records/s on 4 slots of 0.2 core at a 2 s interval"
    kinds = ("warm-up", "sustained", "overloaded")
    figure = check_figure(draw_probes(Probes("q5", BUDGET, estimate)), finding)
    shown = [(name, [mark[0] for mark in trace(figure, f"probes-{name}").customdata]) for name in kinds]
    assert shown == [("warm-up", [0]), ("sustained", [1, 2]), ("overloaded", [3])]
    offered = trace(figure, "probes-offered")
    assert offered.y[::3] == (500, 700, 800)
    assert offered.x[1::3] == (40, 60, 80)
    batches = trace(figure, "probes-batches-2")
    assert len(batches.x) == 4 * 3
    assert batches.x[5] + batches.y[5] == pytest.approx(40)  # the last one of the first probe
    assert {(shape.y0, shape.y1) for shape in figure.layout.shapes} == {(2, 2), (700, 700)}


def test_the_band_closes_with_every_probe_and_without_an_end_has_no_last_part(estimate):
    data = Probes("q5", BUDGET, estimate, expected=1000.0)
    last = 80 + 0.05 * (80 - trace(draw_probes(data), "probes-batches-2").x[0])
    for figure in (draw_probes(data), draw_bracket(data)):
        top = check_figure(figure).layout.yaxis.range[1]
        band = trace(figure, "probes-closing")
        areas = list(zip(*[iter(zip(band.x, band.y, strict=True))] * 6, strict=True))
        assert [(area[0][0], area[2][0], area[0][1], area[1][1]) for area in areas] == [
            (40, 60, 500, top),
            (60, 80, 700, top),
            (80, last, 700, 800),
        ]
        assert any(note.text == "BIDS2 expected: 1 k records/s, above" for note in figure.layout.annotations)
    open_ended = draw_probes(Probes("q5", BUDGET, replace(estimate, rate=None, low=0.0, high=math.inf)))
    assert len(trace(open_ended, "probes-closing").x) == 2 * 6
    assert {shape.y0 for shape in open_ended.layout.shapes} == {2}
    nothing = replace(estimate, probes=estimate.probes[:1], rate=None, low=0.0, high=math.inf)
    assert not trace(draw_bracket(Probes("q5", BUDGET, nothing)), "probes-closing").x


def test_batch_times_meet_the_interval_lower_rates_count_and_one_size_has_no_line(estimate):
    data = batch_times("q5", BUDGET, estimate)
    assert len(data.batches) == 9
    assert data.line.fixed == pytest.approx(0.5)
    assert data.line.slope == pytest.approx(1e-3)
    assert data.crossing == pytest.approx(1500)
    assert data.marked == 1400
    assert data.finding.endswith("750 records/s fill the 2 s interval")
    assert "though 800 records/s were sustained" in batch_times("q5", BUDGET, replace(estimate, low=800.0)).finding
    assert "highest sustained: 700 records/s" in {note.text for note in draw_batch_times(data).layout.annotations}
    curve = (replace(estimate.probes[1], judgement=None),)
    data = batch_times("q5", BUDGET, replace(estimate, probes=estimate.probes[:1]), curve)
    assert [verdict for _, verdict in data.batches] == ["lower load"] * 3
    assert batch_times("q5", BUDGET, replace(estimate, probes=estimate.probes[2:]), curve).line.fixed == pytest.approx(
        0.5
    )
    check_figure(draw_batch_times(data))
    data = batch_times("q5", BUDGET, replace(estimate, probes=estimate.probes[:2]))
    assert (data.line, data.crossing) == (None, None)
    check_figure(draw_batch_times(data))


def test_operators_leave_the_source_out(estimate):
    finding = "Operator 'count' takes 75 % of the slot time that q5 uses at its maximum rate"
    assert operators("q5", estimate.observation) == finding
    figure = check_figure(draw_operators(estimate.observation, finding), finding)
    assert list(trace(figure, "operators-3").y) == ["map (4 tasks)", "count (4 tasks)"]
    assert list(trace(figure, "operators-3").x) == pytest.approx([0.2, 0.2])
    assert busiest_operator(estimate.observation).operator == "count"
    none = replace(estimate.observation, operators=())
    assert operators("q0", none).startswith("q0 has no operators")


def test_figures_have_an_escaped_title_and_wait_for_data(estimate):
    for collect, draw, axis in (
        (Probes, draw_probes, "Rate (records/s)"),
        (batch_times, draw_batch_times, "Batch time (s)"),
    ):
        figure = check_figure(draw(collect("a<b", BUDGET, estimate)))
        assert "a&lt;b" in figure.layout.title.text
        assert figure.layout.yaxis.title.text == axis
        signs = {trace.name.rpartition(": ")[2]: trace.marker.symbol for trace in figure.data}
        assert signs["sustained"] != signs["overloaded"]
    check_empty(draw_probes(Probes("q5", BUDGET, replace(estimate, probes=(), rate=None, low=0.0))))


@pytest.mark.parametrize("verdicts", [(), ("disturbed",), ("source-bound", "not-offered")])
def test_nothing_is_found_before_a_probe_counts(verdicts):
    made = [probe(0, math.inf, 1.9, "warm-up"), *(probe(n, 300 * n, 1.5, one) for n, one in enumerate(verdicts, 1))]
    waiting = MstEstimate(None, 0.0, math.inf, tuple(made), None, "none", 60.0)
    expected = "No rate of q5 has been judged yet on 4 slots of 0.2 core at a 2 s interval"
    assert findings.capacity("q5", BUDGET, waiting) == expected
    figure = check_figure(draw_probes(Probes("q5", BUDGET, waiting)), expected)
    assert figure.layout.meta["alternative"].startswith(expected)


@pytest.mark.parametrize("rate", [1765, 0])
def test_rates_that_are_nearly_the_same_are_drawn_close_together(rate):
    one = probe(1, rate, 1.5, "sustained")
    alone = MstEstimate(None, 0.0, math.inf, (one,), None, "none", 20.0)
    low, high = draw_probes(Probes("q5", BUDGET, alone)).layout.yaxis.range
    assert high - low > 0.2 * rate
    assert low < rate < high if rate else (low, high > 0) == (0, True)


def test_every_verdict_has_a_sign():
    assert set(get_args(Verdict)) <= set(VERDICTS)


WHITE, SHADED = 1.0, 0.87  # luminance of paper, and of what is extrapolated


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(colour, paper):
    return (paper + 0.05) / (luminance(colour) + 0.05)


@pytest.mark.parametrize("colour", [theme.BLUE, theme.VERMILLION, theme.GREEN, theme.BLACK, theme.GREY])
def test_words_about_a_line_can_be_read(colour):
    assert contrast(colour, WHITE) >= 3
    assert contrast(theme.ink(colour), WHITE) >= 4.5
    assert contrast(theme.ink(colour), SHADED) >= 4.4


def test_a_long_title_and_legend_leave_room_for_the_plot_in_a_panel():
    drawn = theme.figure("the plan uses the scaling law because four runs do not distinguish the forms " * 3)
    for number in range(6):
        drawn.add_scatter(x=[1], y=[1], name=f"the form of number {number}, with the least error")
    theme.fit(drawn, 430, 400)
    plot = drawn.layout.height - drawn.layout.margin.t - drawn.layout.margin.b
    assert plot >= 120
    assert theme.fit(theme.figure("short"), 430, 400).layout.height == 400
