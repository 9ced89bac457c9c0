"""Cards, and the parts of pages made from templates: complete, escaped, well-formed."""

import re
from types import SimpleNamespace
from urllib.parse import unquote

import html5lib
import plotly.graph_objects as go
import pytest

from workbench.advice import Advice
from workbench.views import theme
from workbench.views.cards import Card, Column, Table, chart, error_card, gather, show
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


def test_numbers_are_right_aligned_and_exact_in_title_and_csv(card):
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


def test_no_heading_is_run_as_a_formula():
    table = Table("t", (Column("=cmd()"), Column("+1", "s")), ((1, 2),))
    assert table.csv() == "'=cmd(),'+1 (s)\r\n1,2\r\n"


def test_sections_that_fail_become_cards_of_their_own_names():
    def card(name):
        return lambda: [Card(name, name, "fine")]

    made = gather((card("a"), lambda: "a result".missing, card("b"), lambda: 1 / 0))
    kinds = [("a", "result"), ("error-2", "error"), ("b", "result"), ("error-4", "error")]
    assert [(one.name, one.kind) for one in made] == kinds
    assert "AttributeError" in made[1].finding


def test_kind_is_a_word_not_only_a_colour():
    for kind, word in (("health", "Advice"), ("not-yet", "Not yet"), ("no-data", "No data")):
        assert word in Card("a", "b", "c", kind=kind).heading_html()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Card("a", "b", "c", kind="good"), "use one of result, health, error, not-yet, no-data, no-plan"),
        (lambda: Table("t", (Column("a"), Column("b")), (("x",),)), "has 2 columns but a row"),
    ],
)
def test_an_unknown_kind_and_ragged_rows_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_chart_is_json_without_upload_button_and_title_for_its_card_says_the_finding(card):
    bundle = chart(card.figure)
    json, titled = bundle["application/vnd.plotly.v1+json"], card.figure.layout
    assert json["config"]["showSendToCloud"] is False
    assert json["layout"]["meta"]["finding"] == EVIL == bundle["text/plain"]
    assert "text/html" not in bundle
    assert titled.title.text
    assert not json["layout"]["title"]
    assert json["layout"]["height"] == titled.height - 50
    assert json["layout"]["margin"]["t"] >= 16


def test_a_chart_of_your_own_keeps_its_title():
    layout = chart(go.Figure(layout={"title": {"text": "mine"}}))["application/vnd.plotly.v1+json"]["layout"]
    assert layout["title"]["text"] == "mine"


def test_show_displays_heading_figure_table(card, monkeypatch):
    seen = []
    monkeypatch.setattr("workbench.views.cards.display", lambda bundle, raw: raw and seen.append(bundle))
    show([card, Card("b", "second", "no figure")])
    html, figure = "text/html", "application/vnd.plotly.v1+json"
    assert [next(iter(bundle)) for bundle in seen] == [html, figure, html, html]
    assert ["<style>" in bundle.get(html, "") for bundle in seen] == [True, False, False, False]


def test_error_cards_show_no_traceback():
    assert error_card("WorkbenchError", "Use 3.").finding == "Use 3."
    assert error_card("ValueError", "odd").finding.startswith("ValueError: odd (Please report")


def test_a_long_caption_takes_several_lines_and_makes_no_table_wide():
    def captioned(text):
        return Card("one", "What?", "This.", table=Table(text, (Column("a"),), ((1,),))).table_html()

    assert "<caption>Short</caption>" in captioned("Short")
    assert '<caption class="long">Long ' in captioned("Long " * 30)


def test_a_command_among_advice_stands_out_whole_to_be_copied():
    advised = Advice("Begin with more slots. Run", "workbench report x 'a <b>'", Advice("Or wait."))
    said = part("cautions", {"It fell behind.": advised}, 4)
    assert "Run: <code>workbench report x &#x27;a &lt;b&gt;&#x27;</code><br>Or wait.</strong>" in said
    alone = part("cautions", {"Why.": Advice("", "workbench plan study.yaml")}, 4)
    assert alone.count("<code>workbench plan study.yaml</code>") == 1


def test_blanks_of_a_file_name_are_kept_where_its_command_is_copied():
    (rule,) = re.findall(r"\.workbench-cares code \{(.*?)\}", read("cards.css"), re.DOTALL)
    assert "white-space: pre-wrap" in rule


def test_words_that_look_like_a_command_are_words():
    """A user's names are among them; what is a command is said where the advice is made."""
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
