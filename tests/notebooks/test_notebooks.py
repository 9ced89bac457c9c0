"""The notebooks run from top to bottom, and are committed without outputs.

Spark takes minutes, so here a simulated query replaces it in the tour and in 02. Of those on Spark, 01 is run by
tests/browser, the tour by ``benchmarks/newcomer.py``, and 02 by ``benchmarks/notebooks.py``.
"""

import re
import shutil
import sys
from pathlib import Path

import nbformat
import papermill
import pytest

from workbench.errors import WorkbenchError
from workbench.report import tour
from workbench.study import local

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
ALL = sorted(NOTEBOOKS.glob("*.ipynb"))
TEMPLATES = sorted((NOTEBOOKS.parent / "templates").glob("*.ipynb"))
MOST_LINES = 25
OWN = """
def items_per_till(sales):
    return sales.groupBy("till").count()
"""


def long_but(quick, names):
    """Parameters of which `quick` is tried by ``make test`` too."""
    return [pytest.param(name, marks=[] if name == quick else pytest.mark.long) for name in names]


def texts(notebook):
    """All texts that a notebook shows, those inside widgets included."""
    state = notebook.metadata.get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {}).get("state", {})
    inside = [one["state"] for one in state.values()]
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    outputs += [output for one in inside for output in one.get("outputs", [])]
    shown = [
        str(output.get("data", {}).get("text/html") or output.get("data", {}).get("text/plain") or output.get("text"))
        for output in outputs
    ]
    return "\n".join(shown + [str(one.get("value", "")) for one in inside])


def test_all_are_here():
    assert [path.stem for path in ALL] == ["00_tour", "01_measure", *SHOWN]


@pytest.mark.parametrize("path", [*ALL, *TEMPLATES], ids=lambda path: path.stem)
def test_committed_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
    assert "widgets" not in notebook.metadata
    assert "papermill" not in notebook.metadata
    assert notebook.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_cells_are_thin_and_prose_stands_before_them(path):
    notebook = nbformat.read(path, as_version=4)
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert sum(cell.metadata.get("tags") == ["parameters"] for cell in code) == 1
    for cell in code:
        assert len(cell.source.splitlines()) <= MOST_LINES
        assert not re.search(r"^\s*((def|class|while|try)\b|for .*:$)", cell.source, re.MULTILINE), cell.source


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_links_lead_somewhere(path):
    for cell in nbformat.read(path, as_version=4).cells:
        for target in re.findall(r"\]\(([^)#]+)\)", cell.source if cell.cell_type == "markdown" else ""):
            assert (NOTEBOOKS / target).exists(), target


SHOWN = {
    "02_plan": (
        "What does nexmark:q11 take?",
        "What do I deploy for nexmark:q1?",
        "Which runs is it based on, and why those?",
        "✔ done",
        "spark-submit",
    ),
    "03_place": ("choices were tried", "Where do the tasks go?"),
    "04_scale": ("consumed by", "Why does justin add memory or tasks?"),
    "05_elastic": (
        "How many cores?",
        "the optimal one",
        "How even are the tasks?",
        "executors with",
        "Which paradigm copes with changing keys?",
    ),
    "06_observe": ("How much head-room does q5 have?", "Which operator does the work?"),
    "07_papers": (
        "figures and tables: ",
        "Table IV (q1): Slots for large rates",
        "Plans of Q1-sliding that meet the target: 3 plans published, 3",
        "Figure 5 (q11)",
        "Figure 16 (default)",
        "Figure 8 (Bargain detection)",
    ),
}


@pytest.mark.parametrize("name", long_but("05_elastic", SHOWN))
def test_it_runs_and_shows_what_it_is_for(tmp_path, name):
    given = {"quick": True, **({"wait": True} if name == "02_plan" else {})}
    out = tmp_path / "ran.ipynb"
    papermill.execute_notebook(NOTEBOOKS / f"{name}.ipynb", out, given, cwd=NOTEBOOKS, progress_bar=False)
    shown = texts(nbformat.read(out, as_version=4))
    assert [text for text in ("✖ Error", 'role="alert"') if text in shown] == []
    assert [text for text in SHOWN[name] if text not in shown] == []


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory):
    """A folder with the notebooks, and a query and a CSV file of your own."""
    place = tmp_path_factory.mktemp("newcomer")
    shutil.copytree(NOTEBOOKS, place / "notebooks", ignore=shutil.ignore_patterns(".*", "__pycache__", "reports"))
    shutil.copytree(NOTEBOOKS.parent / "data", place / "data")
    (place / "sales.csv").write_text(
        "till,at,sum\n" + "".join(f"t{n % 7},{1_700_000_000 + n},{n}.5\n" for n in range(90))
    )
    (place / "notebooks" / "mine.py").write_text(OWN)
    return place


def test_the_tour_leads_from_an_own_query_to_a_page(newcomer):
    folder, out = newcomer / "notebooks", newcomer / "ran.ipynb"
    given = {"query": "mine:items_per_till", "dataset": "../sales.csv", "event_time": "at", "wait": True, "quick": True}
    papermill.execute_notebook(folder / "00_tour.ipynb", out, given, cwd=folder, progress_bar=False)
    shown = texts(nbformat.read(out, as_version=4))
    assert [text for text in ("✖ Error", 'role="alert"') if text in shown] == []
    for sentence in (
        "How much must be deployed for mine:items_per_till to sustain 20 k records/s and 60 k records/s",
        "sales.csv is replayed over and over at the rates that are tried; its column at becomes the time",
        "items_per_till",
        "✔ done",
        "mine:items_per_till at ",
        "How sure is that?",
        "3 short runs on up to 8 slots give a first idea.",
        "What does mine:items_per_till take?",
        "Where do the tasks go?",
        "consumed by",
        "reports/tour.html, next to this notebook",
    ):
        assert sentence in shown, sentence
    page = (folder / "reports" / "tour.html").read_text()
    assert "mine:items_per_till" in page
    assert "fluid, seed 0" in page


TYPED = {
    "jobs:revenue_per_shp": ("01_measure", "jobs:revenue_per_shop", "Did you mean jobs:revenue_per_shop?"),
    "data/order.csv": ("01_measure", "data/orders.csv", "The dataset '../data/order.csv' does not exist"),
    '"nexmark:q111"': ("02_plan", '"nexmark:q11"', "There is no Nexmark query 'q111'"),
    "placment.yaml": ("03_place", "placement.yaml", "placment.yaml cannot be read: No such file"),
    '"q111"': ("04_scale", '"q11"', "There is no simulated query 'q111'; use one of q1, q2"),
    '"optimum"': ("05_elastic", '"optimal"', "method is 'optimum'; use one of"),
}


@pytest.mark.parametrize("typed", long_but('"q111"', TYPED))
def test_what_is_mistyped_is_said_without_a_traceback(tmp_path, typed):
    name, meant, message = TYPED[typed]
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace(meant, typed)
    nbformat.write(notebook, tmp_path / "typed.ipynb")
    with pytest.raises(papermill.PapermillExecutionError):
        papermill.execute_notebook(
            tmp_path / "typed.ipynb", tmp_path / "ran.ipynb", {"quick": True}, cwd=NOTEBOOKS, progress_bar=False
        )
    ran = nbformat.read(tmp_path / "ran.ipynb", as_version=4)
    (error,) = (output for cell in ran.cells for output in cell.get("outputs", []) if output.output_type == "error")
    assert (error.ename, error.traceback) == ("WorkbenchError", [f"✖ {error.evalue}"])
    assert message in error.evalue


@pytest.fixture
def here(newcomer, monkeypatch):
    """The folder of the notebooks, and the module that knows what this machine can measure."""
    monkeypatch.chdir(newcomer / "notebooks")
    monkeypatch.setattr(sys, "path", [*sys.path, ""])
    yield local
    sys.modules.pop("mine", None)


ASKED = {"query": "mine:items_per_till", "dataset": "../sales.csv", "event_time": "at", "targets": [1e4]}


@pytest.mark.usefixtures("here")
def test_what_is_asked_in_vain_is_a_card_without_a_traceback(monkeypatch):
    shown = []
    monkeypatch.setattr(tour, "show", shown.extend)
    with pytest.raises(tour.RefusedError) as refused:
        tour.ask(**ASKED | {"query": "mine:items_per_til"}, quick=True)
    (card,) = shown
    assert (card.kind, card.name) == ("error", "error")
    assert "Did you mean mine:items_per_till?" in card.finding
    (line,) = refused.value._render_traceback_()
    assert line == "Nothing was measured. Correct the first cell, or what it names, and run all cells again."


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": "mine"}, "is not of the form nexmark:QUERY or module:function"),
        ({"query": "yours:items"}, "'yours' of query 'yours:items' cannot be imported"),
        ({"dataset": "../sale.csv"}, "The dataset '../sale.csv' does not exist"),
        ({"event_time": "when"}, "has no column 'when' to take the event time from"),
        ({"targets": ["many"]}, "The first cell: targets[0] is 'many'; write records/s above 0, such as 60000 or 60k"),
        ({"targets": 5}, "The first cell: targets is 5; it must be a list of rates above 0"),
    ],
)
def test_everything_in_the_first_cell_is_checked(here, monkeypatch, changes, message):
    monkeypatch.setattr(here, "usable_cores", lambda: 4.0)
    with pytest.raises(WorkbenchError, match=re.escape(message)):
        tour.ask(**ASKED | changes, quick=False)


@pytest.mark.parametrize(
    ("cores", "quotas", "budgets"),
    [(2.0, True, (0.4, 1, 2, 3)), (1.0, True, (0.4, 1, 2)), (8.0, False, (1.0, 1, 2, 3)), (3.0, False, (1.0, 1, 2))],
)
def test_the_tour_measures_as_many_slots_as_the_machine_has(here, monkeypatch, cores, quotas, budgets):
    monkeypatch.setattr(here, "usable_cores", lambda: cores)
    monkeypatch.setattr(here, "quota_permitted", lambda: quotas)
    asked = tour.ask(**ASKED, quick=False)
    assert (asked.testbed, asked.slot_cpus, *asked.slots) == ("spark", *budgets)


def test_a_machine_too_small_for_the_tour_says_what_to_do(here, monkeypatch):
    monkeypatch.setattr(here, "usable_cores", lambda: 2.0)
    monkeypatch.setattr(here, "quota_permitted", lambda: False)
    with pytest.raises(
        WorkbenchError, match=r"Of the 2 cores of this machine 1 can be a slot.*Start the notebooks as root"
    ):
        tour.ask(**ASKED, quick=False)


@pytest.mark.usefixtures("here")
def test_an_edited_module_is_asked_again():
    tour.ask(**ASKED, quick=True)
    with Path("mine.py").open("a") as module:
        module.write("\n\ndef tills(sales):\n    return sales.select('till')\n")
    tour.ask(**ASKED | {"query": "mine:tills"}, quick=True)
