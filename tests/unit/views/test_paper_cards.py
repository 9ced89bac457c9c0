from dataclasses import replace

import pytest
from figure_checks import axis_titles, check_figure, trace

from workbench.papers import PAPERS, Headline, Panel, Paper, PaperFigure, Reproduction, Series
from workbench.views import paper_cards, theme
from workbench.views.figures import draw_reproduced
from workbench.views.widgets import PaperPanel

DATA = Reproduction(
    (
        Panel("Rate", "Query", "Rate (records/s)", "bars"),
        Panel("Cost", "Cores", "Cost (x)", log_x=True, log_y=True),
        Panel("Plans", "Cost", "Rate (%)", "points"),
    ),
    (
        Series("Rate", "paper", ("q1", "q2"), (1.0, None), published=True),
        Series("Rate", "ours", ("q1", "q2"), (2.0, 4.0), (1.5, 3.0), (2.5, 4.5)),
        Series("Cost", "ours", (1, 16, 256), (1.0, 0.0, 1e5)),
        Series("Plans", "plans", (0.1, 0.2), (90.0, 50.0)),
    ),
)


def test_a_figure_shows_paper_and_ours_apart_with_hatchings_that_a_page_can_refer_to():
    panel = Panel("Runs that met, all", "Step", "Runs (%)", "bars")
    one = Series(panel.title, "paper, CAPSys", ("1",), (100.0,), published=True)
    (drawn,) = draw_reproduced(Reproduction((panel,), (one,)), "All met it").data
    assert drawn.uid == "Runs-that-met-all-paper-CAPSys"
    drawn = check_figure(draw_reproduced(DATA, "Twice the paper's"), "Twice the paper's")
    assert axis_titles(drawn) >= {"Query", "Rate (records/s)", "Cores", "Cost (x)", "Rate (%)"}
    paper, ours = trace(drawn, "Rate-paper"), trace(drawn, "Rate-ours")
    assert (paper.marker.pattern.shape, ours.marker.pattern.shape) == ("/", None)
    assert paper.marker.pattern.fillmode == "overlay"  # else the bar is white on white
    assert (paper.marker.color, ours.marker.color) == (theme.GREY, theme.BLUE)
    assert list(ours.error_y.array) == [0.5, 0.5]
    assert list(ours.error_y.arrayminus) == [0.5, 1.0]
    assert trace(drawn, "Cost-ours").y[1] is None  # no logarithm
    assert [one.showlegend for one in drawn.data] == [True, True, False, True]
    for words in ("Rate, Rate (records/s) over Query", "Values of the paper are grey"):
        assert words in drawn.layout.meta["alternative"]


def small(make):
    headline = Headline("Rate of q1", "records/s", 1.0, lambda made: made.named("ours", "Rate").at("q1"))
    said = "It says <b>twice</b>."
    figure = PaperFigure("Figure 1", "Rates", said, "In the engine.", make, ("a", "b"), (headline,))
    missing = PaperFigure("Table 1", "Nothing", "It says nothing.", "they are private.", status="not here, because")
    return Paper("small", "A paper", (figure, missing))


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_all_cards_of_a_paper_are_made(paper):
    index, headlines, *rest = paper_cards.cards(paper)
    assert [row[0] for row in index.table.rows] == [one.number for one in paper.figures]
    assert {row[0] for row in headlines.table.rows} == {one.number for one in paper.figures}
    assert len(rest) == sum(one.make is not None for one in paper.figures)
    assert len({card.name for card in (index, headlines, *rest)}) == len(rest) + 2
    for card in rest:
        assert card.kind == "result", card.finding
        check_figure(card.figure)
        assert "The paper:" in card.html


def test_a_card_has_the_values_with_their_source_and_headlines_are_counted_by_what_became_of_them():
    paper = small(lambda _: DATA)
    card = paper_cards.figure_card(paper, paper.figures[0])
    assert ("Rate", "paper", "q1", 1.0, "Rate (records/s)", "paper") in card.table.rows
    assert ("Rate", "ours", "q2", 4.0, "Rate (records/s)", "ours") in card.table.rows
    assert "&lt;b&gt;twice&lt;/b&gt;" in card.heading_html()
    assert card.title == "Figure 1 (a): Rates"
    assert card.finding == "Rate of q1: 1 records/s published, 2 records/s here, 2 times as much."
    silent = replace(paper.figures[0], headlines=())
    assert paper_cards.figure_card(paper, silent, "b").finding == "The paper has no number of it for b."
    card = paper_cards.headlines_card(small(lambda _: DATA))
    assert card.finding == "1 number: 1 size differs."
    row = ("Figure 1", "Rate of q1", "1 records/s", "2 records/s", "2 times as much", "size differs", "simulated")
    assert card.table.rows == (row,)


def test_one_figure_that_cannot_be_made_is_an_error_card_among_the_others():
    def fails(_):
        raise ValueError("no data")

    paper = small(fails)
    assert [card.kind for card in paper_cards.cards(paper)] == ["result", "error", "error"]


def test_the_panel_makes_a_figure_again_for_what_is_chosen():
    asked = []

    def make(chosen):
        asked.append(chosen)
        if len(asked) == 3:
            raise ValueError("no data")
        return DATA

    panel = PaperPanel(small(make))
    (view,) = panel.views.values()
    assert view.choice.options == (("a", "a"), ("b", "b"))
    view.choice.value = "b"
    assert asked == ["a", "b"]
    shown = view.children[-1].outputs
    assert "Figure 1 (b)" in shown[1]["data"]["text/html"]
    view.choice.value = "a"
    assert "no data" in view.children[-1].outputs[1]["data"]["text/html"]


def test_names_that_are_turned_have_room_below_them():
    def gap(names):
        panels = tuple(Panel(title, "Method", "Rate (records/s)", "bars") for title in ("A", "B", "C"))
        series = tuple(Series(panel.title, "ours", names, tuple(1.0 for _ in names)) for panel in panels)
        layout = draw_reproduced(Reproduction(panels, series), "All alike").layout
        return layout.height * (layout.yaxis.domain[0] - layout.yaxis3.domain[1])  # pixels between the rows

    assert gap(("CAPSys", "ODRP-default", "ODRP-weighted", "ODRP-latency")) > gap(("a", "b", "c", "d")) + 40
