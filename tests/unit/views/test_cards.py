"""Cards, and the parts of pages made from templates: complete, escaped, well-formed."""

import re
from dataclasses import replace
from operator import call
from types import SimpleNamespace
from urllib.parse import unquote

import html5lib
import plotly.graph_objects as go
import pytest
from refusals import refusals

from workbench.advice import Advice
from workbench.answers.replayed import answer
from workbench.records import FormComparison, FormFit, FormTarget
from workbench.scaling import assign_cores
from workbench.scaling.elastic import ElasticCluster
from workbench.simulation import KeyTrace, RateTrace
from workbench.study import replay_paradigms
from workbench.views import findings, theme
from workbench.views.cards import Card, Column, Table, chart, error_card, gather, show
from workbench.views.elastic_cards import assignment_card
from workbench.views.figures.elastic import best_paradigm
from workbench.views.parts import part, read

EVIL = """<script>alert("x")</script> & 'quoted'"""


@pytest.fixture
def card():
    figure = theme.figure(EVIL)
    figure.add_scatter(x=[1], y=[2])
    table = Table(
        EVIL,
        (Column("Operator"), Column("Rate", "records/s"), Column(EVIL, EVIL)),
        (("scan", 1234.56789, EVIL), ("=1+1", None, "b")),
    )
    return Card(EVIL, EVIL, EVIL, figure, table, "health")


def test_markup_is_well_formed_and_escaped(card):
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    tree = parser.parse(
        "<!DOCTYPE html><html><head><title>t</title></head><body>" + card.heading_html() + card.table_html()
    )
    assert tree.findall(".//script") == []
    assert tree.find(".//caption").text == EVIL
    assert tree.find(".//h2").text is None
    assert tree.find(".//h2/span").tail == EVIL
    assert tree.find(".//p").text == EVIL
    assert [cell.get("scope") for cell in tree.findall(".//th")] == ["col"] * 3


def test_numbers_are_right_aligned_and_exact_in_title_and_csv_and_no_heading_is_run_as_a_formula(card):
    html = card.table_html()
    assert '<td class="number" title="1234.56789">1,235</td>' in html
    assert '<td class="number"><span title="undefined">n/a</span></td>' in html
    tree = html5lib.parseFragment(html, namespaceHTMLElements=False)
    link = tree.find(".//a")
    assert link.get("download") == f"{EVIL}.csv"
    text = unquote(link.get("href").removeprefix("data:text/csv;charset=utf-8,"))
    assert text.startswith("\ufeff")  # or spreadsheets read µs wrongly
    lines = text.removeprefix("\ufeff").split("\r\n")
    assert lines[0].startswith("Operator,Rate (records/s),")
    assert lines[1].startswith("scan,1234.56789,")
    assert lines[2] == "'=1+1,,b"
    table = Table("t", (Column("=cmd()"), Column("+1", "s")), ((1, 2),))
    assert table.csv() == "'=cmd(),'+1 (s)\r\n1,2\r\n"


def test_sections_that_fail_become_cards_of_their_own_names():
    def card(name):
        return lambda: [Card(name, name, "fine")]

    made = gather((card("a"), lambda: "a result".missing, card("b"), lambda: 1 / 0))
    kinds = [("a", "result"), ("error-2", "error"), ("b", "result"), ("error-4", "error")]
    assert [(one.name, one.kind) for one in made] == kinds
    assert "AttributeError" in made[1].finding


def test_kind_is_a_word_not_only_a_colour_and_error_cards_show_no_traceback():
    for kind, word in (("health", "Advice"), ("not-yet", "Not yet"), ("no-data", "No data")):
        assert word in Card("a", "b", "c", kind=kind).heading_html()
    assert error_card("WorkbenchError", "Use 3.").finding == "Use 3."
    assert error_card("ValueError", "odd").finding.startswith("ValueError: odd (Please report")


test_an_unknown_kind_and_ragged_rows_are_refused = refusals(
    call,
    (lambda: Card("a", "b", "c", kind="good"), "use one of result, health, error, not-yet, no-data, no-plan"),
    (lambda: Table("t", (Column("a"), Column("b")), (("x",),)), "has 2 columns but a row"),
    error=ValueError,
)


def test_a_chart_is_json_without_upload_button_and_without_its_title_unless_it_is_your_own(card):
    bundle = chart(card.figure)
    json, titled = bundle["application/vnd.plotly.v1+json"], card.figure.layout
    assert json["config"]["showSendToCloud"] is False
    assert json["layout"]["meta"]["finding"] == EVIL == bundle["text/plain"]
    assert "text/html" not in bundle
    assert titled.title.text
    assert not json["layout"]["title"]
    assert json["layout"]["height"] == titled.height - 50
    assert json["layout"]["margin"]["t"] >= 16
    layout = chart(go.Figure(layout={"title": {"text": "mine"}}))["application/vnd.plotly.v1+json"]["layout"]
    assert layout["title"]["text"] == "mine"


def test_show_displays_heading_figure_table(card, monkeypatch):
    seen = []
    monkeypatch.setattr("workbench.views.cards.display", lambda bundle, raw: raw and seen.append(bundle))
    show([card, Card("b", "second", "no figure")])
    html, figure = "text/html", "application/vnd.plotly.v1+json"
    assert [next(iter(bundle)) for bundle in seen] == [html, figure, html, html]
    assert ["<style>" in bundle.get(html, "") for bundle in seen] == [True, False, False, False]


def test_a_long_caption_takes_several_lines_and_makes_no_table_wide():
    def captioned(text):
        return Card("one", "What?", "This.", table=Table(text, (Column("a"),), ((1,),))).table_html()

    assert "<caption>Short</caption>" in captioned("Short")
    assert '<caption class="long">Long ' in captioned("Long " * 30)


def test_a_command_among_advice_stands_out_whole_to_be_copied_and_words_like_one_do_not():
    advised = Advice("Begin with more slots. Run", "workbench report x 'a <b>'", Advice("Or wait."))
    said = part("cautions", {"It fell behind.": advised}, 4)
    assert "Run: <code>workbench report x &#x27;a &lt;b&gt;&#x27;</code><br>Or wait.</strong>" in said
    alone = part("cautions", {"Why.": Advice("", "workbench plan study.yaml")}, 4)
    assert alone.count("<code>workbench plan study.yaml</code>") == 1
    (rule,) = re.findall(r"\.workbench-cares code \{(.*?)\}", read("cards.css"), re.DOTALL)
    assert "white-space: pre-wrap" in rule
    # A user's names are among them; what is a command is said where the advice is made.
    assert "<code>" not in part("cautions", {"Why.": Advice("The query is named q: workbench plan study.yaml")}, 4)


def test_whatever_a_part_is_given_is_escaped():
    nasty = '<script>"&'
    figure = SimpleNamespace(said=nasty, status=nasty, how=nasty)
    tile = SimpleNamespace(name=nasty, value=nasty, notes=(nasty,), kind="safe")
    for made in (
        part("status", nasty),
        part("chart", nasty),
        part("tabs", nasty, {nasty: {nasty: nasty}}),
        part("paper", figure),
        part("tiles", [(tile, nasty)]),
        part("standing", nasty, {nasty: nasty}, 0.5),
        part("cautions", {nasty: Advice(nasty, nasty, Advice(nasty))}, 4),
    ):
        assert "&lt;script&gt;&quot;&amp;" in made
        assert "<script>" not in made


def fit(form, share, slots=9):
    return FormFit(form, (0.0, 1.0), None if share is None else 1e5 * share, share, None, None, (slots,), (2e5,))


def compared(evidence="law", form=0.094, law=0.012, **changes):
    fits = (fit("linear", 0.2, 8), fit("sqrt", form, changes.pop("slots", 9)), fit("scaling", law, 12))
    target = FormTarget(200_000.0, 1024, 12, 230_000.0)
    given = {"runs": 7, "targets": (target,), "chosen": "sqrt", "rule": "halves", "used": "scaling"} | changes
    return FormComparison(fits=fits, evidence=evidence, **given)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (compared(), "because it misses a run left out by 1.2 %, sqrt by 9.4 %"),
        (compared("form", 0.012, 0.05), "although sqrt misses a run left out by 1.2 %, the law by 5 %"),
        (compared("too few", runs=3), "because 3 runs are too few to distinguish them"),
        (compared("too few", None, runs=3), "because 3 runs are too few for an error on a run left out"),
        (compared(slots=None), "no number of slots"),
        (compared("set", used="log"), "the study sets"),
        (compared("set", used="sqrt"), "the plan uses it, because the study sets its form"),
        (compared("too few", runs=1, chosen=None), "1 run cannot make a model"),
        (compared(targets=()), "would take sqrt; the plan uses the scaling law because it misses"),
        (compared(), "Of StreamBed's forms, its rule (by halves) would take sqrt, which asks for 9 slots"),
        (compared(rule="leave-one-out"), "the error on a run left out favours sqrt, which asks for 9 slots"),
        (compared("too few", None, rule="first"), "Of StreamBed's forms the first would be taken, because there are "),
    ],
)
def test_the_chosen_form_the_plan_s_and_the_evidence_are_said(found, says):
    assert says in findings.forms(found)


MB = 2**20
CURRENT = [[2, 1], [0, 2]]


@pytest.fixture
def answers():
    """Greedily 5 MB move, at least 4 MB: with a spare core more of the second executor's state stays."""
    given = (CURRENT, [2, 4], [4, 3], [90 * MB, 60 * MB], [0, 1], [0, 0])
    return assign_cores(*given), assign_cores(*given, method="optimal")


def test_cores_of_every_executor_on_every_node(answers):
    card = assignment_card(CURRENT, *answers, ["count", "join"])
    assert card.finding == "The greedy assignment moves 5 MiB of state to another node, the optimal one 4 MiB."
    assert [row[:2] for row in card.table.rows] == [(op, f"node {n}") for op in ("count", "join") for n in range(2)]
    assert [row[2:] for row in card.table.rows] == [(2, 2, 2), (0, 0, 0), (1, 1, 2), (2, 3, 3)]
    greedy, optimal = answers
    card = assignment_card(CURRENT, replace(greedy, threshold=2 * optimal.threshold), optimal, ["count", "join"])
    assert card.finding.endswith("with at most 512 KiB/s in the optimal one.")


def test_a_load_that_no_paradigm_carries_is_said_with_what_helps():
    cluster = ElasticCluster(nodes=2, node_cores=4)
    replayed = replay_paradigms(RateTrace.constant(20_000.0, 20.0), KeyTrace.zipf(1000, 0.8), cluster=cluster)
    (said, remedy), *_ = answer(replayed, {}).cautions.items()
    assert said.startswith("No paradigm keeps up")
    assert str(remedy).endswith("scaling.html -p rates LOAD.csv -p query keyed -p workers 3")


def test_the_best_paradigm_keeps_up_before_it_is_quick():
    runs = replay_paradigms(
        RateTrace.constant(9000.0, 20.0),
        KeyTrace.zipf(1000, 0.8),
        ("static", "executor-centric"),
        cluster=ElasticCluster(nodes=2, node_cores=4),
    ).runs
    slow, quick = replace(runs[0], p99_latency_s=1e-3), replace(runs[1], throughput_per_s=2 * runs[0].throughput_per_s)
    assert best_paradigm((slow, quick)) is quick
