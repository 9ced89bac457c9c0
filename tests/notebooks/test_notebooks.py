"""The notebooks run from top to bottom, and are committed without outputs. Those on Spark run in tests/spark."""

import re
from pathlib import Path

import nbformat
import papermill
import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
ALL = sorted(NOTEBOOKS.glob("*.ipynb"))
SIMULATED = ("02_plan", "03_place", "04_scale", "05_elastic")
MOST_LINES = 25


def texts(notebook):
    """All texts that a notebook shows, widgets' included."""
    shown = [
        str(output.get("data", {}).get("text/html") or output.get("data", {}).get("text/plain") or output.get("text"))
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    ]
    state = notebook.metadata.get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {}).get("state", {})
    return "\n".join(shown + [str(one["state"].get("value", "")) for one in state.values()])


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Runs a notebook once, quickly, where it stands."""
    made = {}

    def run(name):
        if name not in made:
            path = tmp_path_factory.mktemp("ran") / f"{name}.ipynb"
            papermill.execute_notebook(
                NOTEBOOKS / f"{name}.ipynb", path, {"quick": True}, cwd=NOTEBOOKS, progress_bar=False
            )
            made[name] = nbformat.read(path, as_version=4)
        return made[name]

    return run


def test_all_are_here():
    assert [path.stem for path in ALL] == ["00_tour", "01_measure", *SIMULATED]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
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
        assert not re.search(r"^\s*(def|class|for .*:$|while|try)\b", cell.source.replace("for method in", "")), (
            cell.source
        )


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_links_lead_somewhere(path):
    for cell in nbformat.read(path, as_version=4).cells:
        for target in re.findall(r"\]\(([^)#]+)\)", cell.source if cell.cell_type == "markdown" else ""):
            assert (NOTEBOOKS / target).exists(), target


@pytest.mark.parametrize("name", SIMULATED)
def test_runs_and_shows_no_error_card(ran, name):
    shown = texts(ran(name))
    assert "✖ Error" not in shown
    assert 'role="alert"' not in shown


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("02_plan", "What does nexmark:q11 take?"),
        ("02_plan", "spark-submit"),
        ("03_place", "choices were tried"),
        ("03_place", "Where do the tasks go?"),
        ("04_scale", "consumed by"),
        ("05_elastic", "How many cores?"),
        ("05_elastic", "optimal: "),
    ],
)
def test_what_they_are_for_is_shown(ran, name, sentence):
    assert sentence in texts(ran(name))
