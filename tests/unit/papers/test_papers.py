"""The papers' figures: which there are, ours against what the papers print, and what is recorded.

What is known of each headline is in ``headlines.csv``; what no headline says has a test here.
"""

import csv
import math
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from operator import call
from pathlib import Path
from typing import get_args

import benchmark_script
import pytest
from refusals import refusals

from workbench.papers import PAPERS, Compared, Headline, Series, Status, counted, find_paper, justin, recorded
from workbench.papers import capsys as capsys_figures

SEEN = Path(__file__).with_name("headlines.csv")
HERE = [figure for paper in PAPERS.values() for figure in paper.figures if figure.make is not None]


@pytest.fixture(scope="module", autouse=True)
def each_is_made_once():
    """Keep what a figure makes of an input, which nothing changes, for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        for figure in HERE:
            patch.setitem(vars(figure), "make", cache(figure.make))
        yield


def made(paper, number, chosen=None):
    return PAPERS[paper].figure(number).reproduce(chosen)


@pytest.mark.parametrize("figure", HERE, ids=lambda one: one.number)
def test_a_figure_has_units_no_stray_series_and_a_difference_for_every_headline(figure):
    found = figure.reproduce()
    titles = {panel.title for panel in found.panels}
    assert len(titles) == len(found.panels)
    assert {one.panel for one in found.series} == titles
    assert all(panel.x and panel.y for panel in found.panels)
    assert len({(one.panel, one.name) for one in found.series}) == len(found.series)
    compared = figure.compare_all()
    assert len(compared) == len(figure.headlines)
    for one in compared:
        assert one.headline.said
        assert one.difference
        assert math.isfinite(one.ours)
        assert one.sentence.startswith(one.headline.what)


def test_every_figure_says_what_became_of_it():
    for paper in PAPERS.values():
        assert len({one.number for one in paper.figures}) == len(paper.figures)
        for figure in paper.figures:
            assert figure.status in get_args(Status)
            assert all((figure.said, figure.how, figure.headlines))
            assert {one.only for one in figure.headlines} <= {"", *figure.inputs}
            assert all((one.ours is None) == (figure.make is None) for one in figure.headlines)
            assert (figure.make is None) == (figure.status == "not here, because")
            assert re.fullmatch(r"(Figure|Table|Section) [\w.]+", figure.number)


TIMED = {("capsys", "Figure 10a"), ("groups", "Figure 5")}


@pytest.mark.parametrize("paper", PAPERS)
def test_headlines_are_those_that_were_looked_at(paper, capsys):
    """Ours next to the paper's: `python benchmarks/papers.py --headlines`. Within 1 %; what is timed now may differ."""
    benchmark_script.load("papers").headlines([paper])
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]
    known = [one for one in csv.DictReader(SEEN.read_text().splitlines()) if one["paper"] == paper]
    for now, before in zip(csv.DictReader(lines), known, strict=True):
        if (paper, now["figure"]) in TIMED:
            now.update({key: before[key] for key in ("ours", "verdict")})
        ours = (now.pop("ours"), before.pop("ours"))
        assert now == before
        assert ours == ("", "") or float(ours[0]) == pytest.approx(float(ours[1]), rel=0.01)


@pytest.mark.parametrize(
    ("unit", "published", "ours", "verdict", "difference"),
    [
        ("records/s", 100.0, 109.0, "agrees", "as published"),
        ("records/s", 100.0, 50.0, "size differs", "0.5 times as much"),
        ("slots", 0.0, 2.0, "size differs", "2 slots more"),
        ("%", 5.0, 5.9, "agrees", "as published"),
        ("%", 95.0, 91.0, "size differs", "4 points less"),
        ("%", 93.0, 60.0, "size differs", "33 points less"),
        ("change", (-10.0, 0.0), 5.0, "sign differs", "the sign differs"),
        ("change", (-10.0, 0.0), -40.0, "size differs", "30 points less"),
        ("change", 0.0, 0.5, "agrees", "as published"),
        ("times", 2.0, 1.0, "sign differs", "no difference here"),
        ("times", (0.0, 1.0), 1.02, "sign differs", "the sign differs"),
        ("times", (1.0, math.inf), 7.0, "agrees", "as published"),
        ("times", 1.0, 0.95, "agrees", "as published"),
        ("s", (1.0, 3.0), 2.0, "agrees", "as published"),
    ],
)
def test_a_headline_says_where_ours_differs(unit, published, ours, verdict, difference):
    one = Compared("Figure 1", Headline("Rate", unit, published, lambda _: ours), ours)
    assert (one.verdict, one.difference) == (verdict, difference)
    fitted = Compared("Figure 1", replace(one.headline, fitted="the costs"), ours)
    still = "fitted" if verdict == "agrees" else verdict
    assert (fitted.verdict, fitted.difference) == (still, f"{difference} (fitted to this: the costs)")
    assert counted([one, Compared("Figure 1", one.headline, None)]) == {verdict: 1, "not here": 1}


@pytest.mark.parametrize(
    ("unit", "published", "said"),
    [("change", (-math.inf, 0.0), "less"), ("change", 12.0, "+12 %"), ("%", (95.0, math.inf), "at least 95 %")],
)
def test_a_range_is_said_in_words_where_it_is_a_sign(unit, published, said):
    assert Headline("Rate", unit, published).said == said


def test_the_named_queries_and_jobs_can_be_chosen():
    assert {name: set(paper.inputs) for name, paper in PAPERS.items()} == {
        "streambed": {"q1", "q2", "q5", "q8", "q11"},
        "capsys": {"Q1-sliding", "Q2-join", "Q3-inf", "Q4-join", "Q5-aggregate", "Q6-session"},
        "justin": {"q1", "q3", "q5", "q8", "q11"},
        "elasticutor": {"default", "data-intensive", "highly dynamic"},
        "groups": {"Twitter trending topics", "Bargain detection"},
    }


test_what_is_not_there_is_said_with_the_next_step = refusals(
    call,
    (lambda: find_paper("capsis"), "There is no paper 'capsis'; use one of streambed, capsys"),
    (lambda: PAPERS["capsys"].figure("Figure 99"), "has no 'Figure 99' in its evaluation; it has Figure 2,"),
    (lambda: made("capsys", "Figure 7", "q1"), "Figure 7 cannot be made for 'q1'; use one of Q1-sliding"),
    (lambda: made("capsys", "Figure 3", "q1"), "Figure 3 cannot be made for 'q1'; it has one input"),
    (lambda: made("justin", "Figure 4"), "Figure 4 is not here, because it measures RocksDB"),
    (lambda: recorded("capsys", "Figure 1"), "Nothing is recorded of Figure 1 for ''; run python benchmarks/"),
    (lambda: recorded("nobody", "Figure 1"), r"nobody\.csv cannot be read"),
    (lambda: Series("Gain", "ours", (1, 2), (1.0,)), "'ours' has 2 x and 1 values"),
)


@pytest.mark.parametrize("query", PAPERS["streambed"].figure("Figure 11").inputs)
def test_table_ivs_slots_sustain_the_request_and_pile_up_records_at_a_fifth_more(query):
    found = made("streambed", "Figure 11", query)
    for one in found.series:
        if one.panel == "Rate":
            assert one.y[-1] < 120
            assert not one.name.startswith("100") or one.y[-1] == pytest.approx(100, abs=0.5)
        else:
            steps = [after - before for before, after in pairwise(one.y)]
            assert all(step > 1 for step in steps) != one.name.startswith("100")
            assert max(one.y) < 3 or not one.name.startswith("100")  # s of the requested rate; the paper: 1.6


def test_budgets_differ_from_one_deployment_to_the_next_and_none_follows_one_and_a_half():
    for query, worst in (("q1", 90), ("q2", 90), ("q11", 91), ("q5", 80), ("q8", 65)):
        found = made("streambed", "Figure 9", query)
        at, above = (panel.title for panel in found.panels)
        shares = [value for one in found.series if one.panel == at for value in one.y]
        assert len(shares) == 16
        assert worst <= min(shares) < worst + 3
        assert max(value for one in found.series if one.panel == above for value in one.y) < 99


def test_an_exploration_is_shown_at_work():
    found = made("streambed", "Table III", "q2")
    costs = found.named("after each run").y
    assert costs[-1] > 1.1 * costs[-2]  # the paper's stop: q2's first exploration ends so
    assert found.named("after a run that is not fitted").y == (costs[-1],)
    improvement = {one.name: one for one in found.series if one.panel == "Expected improvement"}
    (asked,) = [one for name, one in improvement.items() if name.startswith("asked for")]
    assert asked.y[0] >= max(value for one in improvement.values() for value in one.y)
    for one in found.series:
        if one.panel == "Gaussian process":
            assert all(low < middle < high for low, middle, high in zip(one.low, one.y, one.high, strict=True))


@pytest.mark.parametrize("query", PAPERS["streambed"].figure("Table III").inputs)
def test_five_explorations_stop_within_twenty_runs_and_choose_a_form_of_the_papers(query):
    found = made("streambed", "Table III", query)
    forms = found.named("ours", "Chosen form")
    assert set(forms.x) <= {"linear", "log", "sqrt"}
    assert sum(forms.y) == 5
    effort = found.named("found here", "Effort")
    for name in ("optimizer calls", "estimator runs"):
        place = effort.x.index(name)
        assert 7 <= effort.low[place] <= effort.y[place] <= effort.high[place] <= 20


def test_back_pressure_is_what_the_sources_hold_back():
    held, share = (made("capsys", "Figure 2").named("ours", panel) for panel in ("Back-pressure", "Throughput"))
    for plan in ("P1", "P4", "P6"):
        assert held.at(plan) + share.at(plan) == pytest.approx(100)  # P1 meets the target


@pytest.mark.parametrize("query", PAPERS["capsys"].inputs)
def test_caps_meets_the_target_as_no_flink_strategy_does(query):
    found, name = made("capsys", "Figure 7", query), "ours, mean and range of ten draws"
    ours, held = (found.named(name, panel) for panel in ("Throughput", "Back-pressure"))
    assert ours.at("CAPSys") >= 94
    assert ours.at("CAPSys") > max(ours.at("default"), ours.at("evenly"))
    assert ours.at("Optimum (ours)") == pytest.approx(100)
    assert [one + other for one, other in zip(ours.y, held.y, strict=True)] == pytest.approx([100] * 4)


def test_together_the_optimum_meets_six_targets_and_caps_does_on_larger_workers():
    found = made("capsys", "Figure 8")
    just, _, larger, _ = found.panels
    assert all(value >= 99.9 for value in found.named("Optimum (ours)", just.title).y)
    assert all(value >= 99.9 for value in found.named("CAPSys", larger.title).y)
    for name in ("default", "evenly"):
        assert sum(value >= 99.9 for value in found.named(name, larger.title).y) < 6


def test_caps_and_the_optimum_are_right_in_table_4_and_decide_least_in_figure_9_whatever_we_assume():
    """The other strategies are in the headlines."""
    ours = recorded("capsys", "Table 4")
    for case in ("", ", if two inference tasks get 1.5 times the rate of one (our assumption)"):
        assert capsys_figures.right(ours, "CAPSys", case) == capsys_figures.right(ours, "Optimum (ours)", case) == 8
        decisions = made("capsys", "Figure 9").named(f"ours{case}", "Decisions")
        assert decisions.at("Optimum (ours)") <= decisions.at("CAPSys") <= decisions.at("Default")
    assert capsys_figures.right(ours, "CAPSys as section 5.2") < 8


@pytest.mark.parametrize("query", PAPERS["justin"].inputs)
def test_memory_changes_in_the_figure_no_sooner_than_justin_runs_with_it(query):
    """A reconfiguration at 3 min belongs to the time after it, for the tasks and for their memory."""
    found = made("justin", "Figure 5", query)
    for policy in ("DS2", "Justin as released", "Justin as printed"):
        for panel in ("Memory", "Cores"):
            assert found.named(policy, panel).at(3.0) == found.named(policy, panel).y[0]


@pytest.mark.parametrize(
    ("query", "end"),
    [("q1", (7, 0.0)), ("q3", (12, 158.0)), ("q5", (24, 158.0)), ("q11", (6, 632.0)), ("q8", (12, 632.0))],
)
def test_as_printed_q11_and_q8_go_on_to_more_memory(query, end):
    """Where Justin as released ends is in the headlines."""
    assert justin.final(query, "Justin as printed") == end
    assert justin.final(query, "DS2") == justin.PUBLISHED[query].ds2


def test_reconfigurations_are_as_many_as_published():
    found = made("justin", "Section 5.1")
    published, ours = (found.named(name, "Reconfigurations") for name in ("paper", "ours"))
    stated = [cell for cell, count in zip(published.x, published.y, strict=True) if count is not None]
    assert len(stated) == 8
    assert [ours.at(cell) for cell in stated] == [published.at(cell) for cell in stated]


def test_both_priorities_begin_with_the_same_allocation_as_the_paper_says():
    found = made("groups", "Figure 4a")
    by_traffic, by_significance = (one.y for one in found.series)
    assert by_traffic[0] == by_significance[0]
    assert len(set(by_significance[1:])) == 1
    falls = [before - after for before, after in pairwise(by_traffic[:-1])]  # at the end the pairs are equal
    assert falls == pytest.approx([falls[0]] * len(falls))
    assert falls[0] > 0


def test_what_is_recorded_is_what_the_benchmark_would_record():
    script = benchmark_script.load("papers")
    for paper in ("streambed", "capsys", "elasticutor"):
        results = {key: recorded(paper, *key) for key in script.slow(paper)}
        assert script.written(results) == (script.FOLDER / "papers" / f"{paper}.csv").read_text()


def test_a_recorded_result_is_made_again_alike():
    script = benchmark_script.load("papers")
    for paper, number, chosen in (("elasticutor", "Table 3", ""), ("streambed", "Figure 11", "q1")):
        again = tuple(script.slow(paper)[number, chosen](chosen))
        assert list(script.differing(recorded(paper, number, chosen), again)) == []


@pytest.mark.parametrize("path", sorted(benchmark_script.BENCHMARKS.glob("*.py")), ids=lambda path: path.stem)
def test_every_benchmark_can_be_loaded(path):
    benchmark_script.load(path.stem)
