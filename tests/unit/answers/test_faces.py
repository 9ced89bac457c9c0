"""Terminal, page, notebook and JSON state the same figures of an answer, whatever its topic."""

import io
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import faces
import pytest
from example_measurement import example_measurement
from rich.console import Console
from staged_runs import staged_exploration

from workbench.advice import Advice
from workbench.answers import page
from workbench.answers.answer import COUNT, RATE, Answer, Fact
from workbench.answers.measured import answer as of_a_measurement
from workbench.answers.observed import answer as of_a_log
from workbench.answers.placed import answer as of_a_placement
from workbench.answers.placed import compared as methods_compared
from workbench.answers.placed import of_a_report
from workbench.answers.planned import answer as of_a_plan
from workbench.answers.replayed import answer as of_a_replay
from workbench.capacity import plan
from workbench.cli import look
from workbench.placement import compare, place, read_placement_input
from workbench.records import Refusal
from workbench.scaling.elastic import ElasticCluster
from workbench.simulation import KeyTrace, RateTrace
from workbench.study import Planned, Study, observe, replay_paradigms, replay_start, simulated_start

DATA = Path(__file__).parents[3] / "data"
GIVEN = read_placement_input(DATA / "placement.yaml")
MADE = Answer(
    "made",
    "Which <one>?",
    "This <one>.",
    "SIMULATED",
    ("of <it>",),
    ("More <of it>.",),
    rows=(
        (Fact("a <b>", name="Name"), Fact(12_345.0, "rate", "Rate", RATE), Fact(None, "runs", "Runs", COUNT)),
        (Fact("c", name="Name"), Fact(1.0, "rate", "Rate", RATE, verdict="safe"), Fact(1234, "runs", "Runs", COUNT)),
    ),
    chosen=0,
    cautions={"It is <simulated>.": Advice("Try it. Run", "command '<x>'")},
)


def planned():
    found, rates = staged_exploration(), (6_000.0, 12_000.0)
    plans = tuple(plan(found, rate, memory_mb=[600]) for rate in rates)
    return of_a_plan(Planned(Study("q5", rates, (2, 4, 8), (600,)), found, plans, (Refusal(1e9, "Too much."),)))


DAY, STEADY, KEYS = RateTrace.steps([(600, 2e5)]), RateTrace.constant(5000.0, 20.0), KeyTrace.zipf(1000, 0.8)
ANSWERS = {
    "made": lambda: MADE,
    "measured": lambda: of_a_measurement(replace(example_measurement(), unbounded_state=True)),
    "replayed": lambda: of_a_replay(replay_start(simulated_start("q11", 12, 2048.0), DAY, ("static", "ds2")), {}),
    "keyed": lambda: of_a_replay(replay_paradigms(STEADY, KEYS, cluster=ElasticCluster(nodes=2, node_cores=4)), {}),
    "placed": lambda: of_a_placement(place(GIVEN, timeout_s=20), GIVEN, of_a_report()),
    "compared": lambda: methods_compared(GIVEN, compare(GIVEN, draws=2, timeout_s=20), of_a_report()),
    "observed": lambda: of_a_log(observe(DATA / "q5-eventlog.zstd"), 600.0),
    "planned": planned,
}


@pytest.fixture(scope="module", params=ANSWERS)
def answer(request):
    return ANSWERS[request.param]()


def printed(answer, columns):
    console = Console(file=io.StringIO(), width=columns, markup=False, highlight=False, emoji=False)
    with patch.object(look, "console", return_value=console):
        look.show(answer)
    return " ".join(console.file.getvalue().split())


def shown(answer, *how):
    return [fact for row in answer.rows for fact in row if fact.name and fact.shown in how]


def notebook(answer, monkeypatch):
    """Everything that a notebook displays, as text."""
    made = []
    monkeypatch.setattr("workbench.views.cards.display", lambda bundle, **_: made.append(bundle))
    page.show(answer)
    return " ".join(faces.words(bundle.get("text/html", "")) for bundle in made).replace("\N{NO-BREAK SPACE}", " ")


def test_all_faces_state_the_same(answer, monkeypatch):
    on_page = " ".join(faces.words(card.html + card.finding) for card in page.cards(answer)[:1])
    on_page = on_page.replace("\N{NO-BREAK SPACE}", " ")
    in_notebook, on_terminal = notebook(answer, monkeypatch), printed(answer, 200)
    for text in (answer.headline, *answer.details, *answer.cautions):
        assert text in in_notebook
        assert text in on_terminal
    for fact in shown(answer, "always", "wide"):
        assert fact.text in on_terminal
        if answer.listed:
            assert fact.text in on_page
            assert fact.text in in_notebook
    document = answer.document()
    for number, row in enumerate(answer.rows if not answer.facts else ()):
        held = document[number] if isinstance(document, list) else document[row[0].value]
        assert held == {fact.key: fact.value for fact in row if fact.key}


def test_a_page_has_the_exact_figures(answer):
    table = page.cards(answer)[0].table
    assert [column.name for column in table.columns] == [fact.name for fact in answer.rows[0] if fact.name]
    for row, facts in zip(table.rows, answer.rows, strict=True):
        assert list(row) == [fact.exact for fact in facts if fact.name]


def test_what_a_page_cannot_draw_hides_nothing_else():
    def broken():
        raise ZeroDivisionError

    made = Answer("a", "b", "c", "MEASURED", draw=broken, evidence=(broken, lambda: page.cards(MADE)))
    assert [card.kind for card in page.cards(made)] == ["error", "error", "result"]


def test_texts_are_escaped():
    assert "<one>" not in page.cards(MADE)[0].heading_html()
    assert "<b>" not in page.cards(MADE)[0].html
