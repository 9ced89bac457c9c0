"""Reports: checked parameters, a kernel of this interpreter, one offline file."""

import os
from functools import partial
from pathlib import Path

import html5lib
import nbformat
import pytest

from workbench.errors import WorkbenchError
from workbench.report import Report, export_executed, fetched_urls, find_template, render
from workbench.report.parameters import check
from workbench.views.parts import template_folder

PARAMETERS = """name: str = "q5"  # the query
slots: int = 4  # how many
margin: float = 1.1
note = None
level: float = None
deep: bool = False
names: list[str] = ["a"]"""

NAMES = "name, slots, margin, note, level, deep, names."

CHART = """
import sys
from workbench.views import theme
from workbench.views.cards import Card, Column, Table, show
figure = theme.figure("</script> 'finding' <b>")
figure.add_scatter(x=[1, 2], y=[slots, 3])
show([Card("one", name + " <i>", sys.executable, figure, Table("t", (Column("a", "s"),), ((1.5,),)))])
"""


@pytest.fixture
def sheet(tmp_path):
    """Write a notebook of these parameters and cells."""

    def write(parameters, *cells, name="own"):
        kernel = {"name": "elsewhere", "display_name": "x", "language": "python"}
        node = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
        node.cells = [
            nbformat.v4.new_markdown_cell("# A report"),
            nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}),
            *map(nbformat.v4.new_code_cell, cells),
        ]
        nbformat.write(node, tmp_path / f"{name}.ipynb")
        return tmp_path / f"{name}.ipynb"

    return write


@pytest.fixture
def notebook(sheet):
    return partial(sheet, PARAMETERS, name="sheet")


@pytest.fixture
def nothing_runs(monkeypatch):
    monkeypatch.setattr("workbench.report._render.execute", None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"slot": 3}, "sheet.ipynb has no parameter 'slot'; did you mean 'slots'? It takes " + NAMES),
        ({"zzz": 3}, "sheet.ipynb has no parameter 'zzz'; it takes " + NAMES),
        ({"slots": "4"}, "Parameter 'slots' of sheet.ipynb is '4' (str); it must be of type int: how many."),
        ({"slots": True}, "Parameter 'slots' of sheet.ipynb is True (bool); it must be of type int: how many."),
        ({"margin": "a"}, "Parameter 'margin' of sheet.ipynb is 'a' (str); it must be of type float."),
        ({"deep": 1}, "Parameter 'deep' of sheet.ipynb is 1 (int); it must be of type bool."),
        ({"level": "x"}, "Parameter 'level' of sheet.ipynb is 'x' (str); it must be of type float or None."),
        ({"names": ["a", 3]}, "Parameter 'names' of sheet.ipynb is ['a', 3] (list); it must be of type list[str]."),
    ],
)
def test_parameters_are_refused_before_anything_runs(notebook, tmp_path, given, message):
    with pytest.raises(WorkbenchError) as refusal:
        render(notebook("open('ran', 'w')"), given, tmp_path / "out.html")
    assert str(refusal.value) == message
    assert not (tmp_path / "out.html").exists()


def test_parameters_keep_defaults(notebook):
    values = check(notebook(), {"margin": 2, "level": None})
    defaults = {"name": "q5", "slots": 4, "note": None, "deep": False, "names": ["a"]}
    assert values == {**defaults, "margin": 2, "level": None}


def test_report_is_one_offline_file_from_this_interpreter(notebook, tmp_path, monkeypatch):
    import sys

    for name in ("HOME", "JUPYTER_DATA_DIR", "JUPYTER_PATH", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / "empty"))
    out = tmp_path / "new" / "report.html"
    report = render(notebook(CHART), {"name": "<script>q</script>"}, out)
    html = out.read_text()
    assert report == Report(out)
    assert fetched_urls(html) == []
    assert len(html) < 3_000_000
    assert sys.executable in html
    assert "<title>A report</title>" in html
    assert '<html lang="en">' in html
    assert "&lt;script&gt;q&lt;/script&gt; &lt;i&gt;" in html
    page = html5lib.parse(html, namespaceHTMLElements=False)
    charts = page.findall(".//div[@role='figure']")
    assert [chart.get("aria-label") for chart in charts] == ["</script> 'finding' <b>"]
    assert html.count('id="chart-library"') == 1
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]
    assert not (tmp_path / "empty").exists()


def test_failed_cell_gives_a_partial_report(notebook, tmp_path):
    error = "from workbench.errors import WorkbenchError\nraise WorkbenchError('<b>Use</b> 3.')"
    report = render(notebook("print('before')", error, "print('never')"), {}, tmp_path / "partial.html")
    html = report.path.read_text()
    assert report.error == "<b>Use</b> 3."
    assert not report.complete
    assert "before" in html
    assert "never" not in html
    assert "&lt;b&gt;Use&lt;/b&gt; 3." in html
    assert "Traceback" not in html
    assert "papermill-error" not in html
    assert 'id="chart-library"' not in html


def test_ended_kernel_gives_a_partial_report(notebook, tmp_path):
    report = render(notebook("import os; os._exit(1)"), {}, tmp_path / "dead.html")
    assert "process ended" in report.error
    assert "process ended" in report.path.read_text()


def test_page_that_loads_from_elsewhere_is_refused(notebook, tmp_path):
    cell = 'from IPython.display import HTML\nHTML(\'<img src="https://example.org/a.png" alt="">\')'
    with pytest.raises(WorkbenchError, match=r"would load https://example\.org/a\.png"):
        render(notebook(cell), {}, tmp_path / "out.html")
    assert not (tmp_path / "out.html").exists()


def test_fetched_urls():
    html = (
        '<a href="https://a"></a><img src="data:x"><script src="b.js"></script>'
        '<style>p {background: url("https://c/d.png")}</style><p style="background: url(e.png)">url(f)'
    )
    assert fetched_urls(html) == ["b.js", "https://c/d.png", "e.png"]


CELL = nbformat.v4.new_code_cell("a = 1", metadata={"tags": ["parameters"]})
WITHOUT_KERNEL = nbformat.writes(nbformat.v4.new_notebook(cells=[CELL]))
NO_NOTEBOOKS = ("{}", "[]", "3", "no notebook", '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{}]}')


@pytest.mark.filterwarnings("error")
def test_a_file_with_another_ending_is_refused_without_warning(tmp_path):
    (tmp_path / "x.csv").touch()
    with pytest.raises(WorkbenchError, match=r"x.csv cannot be read as a .*; name a report, such as placement,"):
        render(tmp_path / "x.csv", {}, tmp_path / "out.html")


@pytest.mark.parametrize("text", [*NO_NOTEBOOKS, WITHOUT_KERNEL])
def test_what_is_no_report_notebook_is_refused(tmp_path, text):
    (tmp_path / "x.ipynb").write_text(text)
    with pytest.raises(WorkbenchError, match=r"^.*x.ipynb cannot be read as a report notebook \(.+\); open it .*$"):
        render(tmp_path / "x.ipynb", {}, tmp_path / "out.html")


@pytest.mark.parametrize("text", NO_NOTEBOOKS)
def test_what_is_no_executed_notebook_is_refused(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(WorkbenchError, match=r"^The notebook .*plan.json cannot be read \(.+\); give an executed"):
        export_executed(tmp_path / "plan.json", tmp_path / "out.html")
    assert not (tmp_path / "out.html").exists()


def test_a_title_is_text(notebook, tmp_path):
    report = render(notebook(), {"name": "<i>"}, tmp_path / "out.html", title="<b>&</b><script>alert(1)</script>")
    html = report.path.read_text()
    assert "<script>alert(1)" not in html
    assert html5lib.parse(html, namespaceHTMLElements=False).find(".//title").text.startswith("<b>&</b>")
    assert "<dd>&lt;i&gt;</dd>" in html


def test_find_template(tmp_path):
    assert find_template("measure") == find_template("measure.ipynb")
    with pytest.raises(WorkbenchError, match=r"Next step: clone the repository"):
        template_folder(tmp_path)


def test_a_link_and_a_device_stay_what_they_are(notebook, tmp_path):
    link, page, device = tmp_path / "link.html", tmp_path / "page.html", tmp_path / "null"
    link.symlink_to(page)
    device.symlink_to(os.devnull)
    for place in (link, device):
        assert render(notebook("name"), {}, place).complete
        assert place.is_symlink()
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert page.stat().st_mode & 0o777 == 0o644
    assert Path(os.devnull).is_char_device()


def test_no_room_for_temporary_files_is_said(notebook, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("workbench.report._render.execute", full)
    with pytest.raises(WorkbenchError, match=r"No space left on device. Make room there, or set TMPDIR to another"):
        render(notebook("name"), {}, tmp_path / "page.html")


def test_an_empty_text_must_be_given(sheet):
    with pytest.raises(WorkbenchError, match=r"^Parameter 'shop' of own.ipynb must be given: which one\.$"):
        check(sheet('shop: str = ""  # which one'), {})
    with pytest.raises(WorkbenchError, match="must be given"):
        check(sheet('shop: str = ""  # which one'), {"shop": ""})
    assert check(sheet("shop: str = None"), {}) == {"shop": None}


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("prices file", None, r"The file .*none.txt cannot be read: No such file or directory. Check the path."),
        ("study file", None, r"The study .* cannot be read"),
        ("study file", "querry: nexmark:q1\n", r"unknown key 'querry'; did you mean 'query'"),
        ("measurement file", "[]", r"is a JSON list; it must be an object"),
        ("plans file", "{}", r"holds no plans"),
        ("rates file", "a,b\n1,2\n", r"time_s"),
    ],
)
@pytest.mark.usefixtures("nothing_runs")
def test_files_are_read_before_anything_runs(sheet, tmp_path, kind, text, message):
    path = tmp_path / "none.txt"
    if text is not None:
        path.write_text(text)
    with pytest.raises(WorkbenchError, match=message):
        render(sheet(f'given: "{kind}" = ""'), {"given": str(path)}, tmp_path / "out.html")
    assert not (tmp_path / "out.html").exists()


def test_a_file_is_named_by_a_text(sheet):
    with pytest.raises(WorkbenchError, match=r"is 3 \(int\); it must be the path of a rates file: the load\."):
        check(sheet('given: "rates file" = ""  # the load'), {"given": 3})


def test_what_goes_to_standard_error_stays_out(sheet, tmp_path):
    cells = ("import warnings, sys\nwarnings.warn('near the limit')\nprint('a bar', file=sys.stderr)\nprint('shown')",)
    html = render(sheet("a: int = 1", *cells), {}, tmp_path / "out.html").path.read_text()
    assert "shown" in html
    assert "near the limit" not in html
    assert "a bar" not in html
