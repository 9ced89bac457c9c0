"""A study, a plan, a journal, data and a log, each written by an attacker: what every trick comes to.

``benchmarks/attacks.py`` prints the table. Tricks that need a browser are in ``tests/browser/test_report_policy.py``.
"""

import ast
import csv
import io
import json
import os
import pickle
import re
import subprocess
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path

import nbformat
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from staged_runs import staged_exploration
from written_logs import a_day, events, written

from workbench import cli
from workbench.answers import measured as of_a_measurement
from workbench.answers import planned as of_a_plan
from workbench.capacity import plan
from workbench.errors import WorkbenchError
from workbench.escaping import for_html, for_plotly, for_spreadsheet, for_terminal
from workbench.journal import Journal
from workbench.observing import read_log
from workbench.records import Measurement
from workbench.report import export_executed, render
from workbench.study import StudyHistory, draft, read_planned, write_planned
from workbench.testbed.spark.driver.process import environment_of_modules

STORED = Path(__file__).parents[1] / "stored"
LINK = '<a href="https://evil.example">click</a>'
EVIL = f"{LINK}<script>alert(1)</script>%{{x}}\x1b[31m\u202e[red]"
STUDY = """
query: jobs:orders
dataset: orders.csv
targets: [20000]
slots: [1]
memory_mb: [1024]
slot_cpus: 1
"""
DEED = "import pathlib; pathlib.Path('pwned').touch()\n"
SECRET = "hunter2-and-more"  # noqa: S105 - not one


class Touch:
    """What a pickle of an attacker does when it is loaded."""

    def __reduce__(self):
        return Path("pwned").touch, ()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder that came by mail; whatever a trick executes leaves a file in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "jobs", raising=False)
    (tmp_path / "orders.csv").write_text("time,shop,amount\n2026-01-01T00:00:00,=cmd|' /C calc'!A0,-3\n" * 30)
    (tmp_path / "study.yaml").write_text(STUDY)
    yield tmp_path
    assert not (tmp_path / "pwned").exists()


@pytest.fixture
def came_to(record_property):
    """Say what a trick came to, for the table."""
    return lambda text: record_property("came to", text)


def hostile(data, names):
    """JSON values in which every text of `names` is the attacker's."""
    if isinstance(data, str):
        return f"{EVIL}{data}" if data in names else data
    if isinstance(data, list):
        return [hostile(one, names) for one in data]
    if isinstance(data, dict):
        return {hostile(key, names): hostile(value, names) for key, value in data.items()}
    return data


def texts(data, without=(), key=None):
    """Each text of JSON values with its key, but for those under the keys `without`."""
    if isinstance(data, str):
        yield key, data
    elif isinstance(data, list):
        for one in data:
            yield from texts(one, without, key)
    elif isinstance(data, dict):
        for name, one in data.items():
            yield from () if name in without else texts(one, without, name)


def written_by_attacker(name, folder=Path()):
    """Path of a document whose query, operators, instances and machine have the attacker's names."""
    data = json.loads((STORED / name).read_text())
    named = {"operator", "reason", "finding", "advice", "name", "upstream"}
    names = {"q5", "nexmark:q5", "USD", "AWS", "a model & its <stepping>"}
    names |= {text for key, text in texts(data) if key in named}
    (folder / name).write_text(json.dumps(hostile(data, names)))
    return folder / name


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    """Every card of a plan and of a measurement with the attacker's names."""
    folder = tmp_path_factory.mktemp("cards")
    planned = read_planned(written_by_attacker("plan-spark.json", folder))
    measured = Measurement.from_json(written_by_attacker("measurement.json", folder))
    made = [*of_a_plan.cards(planned), *of_a_measurement.cards(measured)]
    assert [card.finding for card in made if card.title.endswith("defect of the workbench")] == []
    assert any("click" in card.heading_html() for card in made)
    assert not (folder / "pwned").exists()
    return made


def command(*arguments):
    """Exit code of a command."""
    return cli.main(arguments)


def controls(text):
    """Characters in `text` that control a terminal or turn text around."""
    return {letter for letter in text if unicodedata.category(letter) in {"Cc", "Cf"} and letter not in "\n\t"}


@pytest.mark.parametrize("arguments", [("plan", "given.yaml"), ("report", "measure", "x.html", "-f", "given.yaml")])
def test_study_or_parameters_with_a_yaml_tag_that_calls_a_function(came_to, capsys, arguments):
    Path("given.yaml").write_text("query: !!python/object/apply:pathlib.Path.touch [pwned]\n")
    assert command(*arguments) == 2
    assert "could not determine a constructor" in capsys.readouterr().err
    came_to("refused, exit code 2")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def orders(rows):\n    return rows\n", "measure 1 slot of"),
        (
            "from workbench.workload import Query\norders = Query\n",  # a name that is made when the module runs
            "jobs:orders is not defined as a function in jobs.py",
        ),
    ],
)
def test_study_that_names_a_module_which_acts_when_it_is_imported(came_to, capsys, text, said):
    Path("jobs.py").write_text(DEED + text)
    assert command("plan", "study.yaml", "--dry-run") == 0
    assert said in capsys.readouterr().out
    assert "jobs" not in sys.modules
    came_to("a dry run reads its text and imports nothing")


def test_file_beside_the_study_with_the_name_of_a_library(came_to):
    for name in ("nbformat", "plotly", "numpy", "IPython", "traitlets", "json", "ipykernel"):
        Path(f"{name}.py").write_text(DEED)
    example = written_by_attacker("measurement.json")
    made = render("measure", {"measurement": str(example)}, "report.html")
    assert made.complete, made.error
    page = made.path.read_text()
    assert LINK not in page
    assert "<script>alert" not in page
    came_to("the report's process does not look there before it looks in Python's own folders")


def test_file_beside_a_study_of_ours_with_the_name_of_a_library_in_spark(came_to):
    for name in ("json", "numpy", "pyspark", "psutil"):
        Path(f"{name}.py").write_text(DEED)
    imports = [sys.executable, "-P", "-c", "import json, numpy, psutil, workbench.testbed"]  # as the driver is started
    subprocess.run(imports, env=environment_of_modules(), check=True)
    came_to("the driver of Spark does not look there unless the query is from there")


def test_report_of_a_plan_whose_query_is_a_module_here(came_to):
    Path("jobs.py").write_text(DEED)
    planned = written_by_attacker("plan-spark.json")
    text = planned.read_text().replace(json.dumps(f"{EVIL}nexmark:q5"), '"jobs:orders"')
    planned.write_text(text)
    assert read_planned(planned).study.query == "jobs:orders"
    made = render("plan", {"planned": str(planned)}, "report.html")
    assert made.complete, made.error
    came_to("the report is complete, and the module was not imported")


def test_parameter_of_a_notebook_that_ends_its_own_text(came_to):
    kernel = {"name": "p", "display_name": "p", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    notebook.cells = [
        nbformat.v4.new_code_cell('name: str = "q"', metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell("assert name.count(chr(10)) == 2"),
    ]
    nbformat.write(notebook, "sheet.ipynb")
    evil = '"\nimport pathlib; pathlib.Path("pwned").touch()\n"""\\ password=abc'
    made = render("sheet.ipynb", {"name": evil}, "report.html")
    assert made.complete, made.error
    assert "password=***</dd>" in made.path.read_text()  # of the parameters at its foot
    came_to("it stays the text that it is")


@pytest.mark.parametrize("kind", ["journal", "measurement", "plan"])
def test_pickle_in_place_of_a_document(came_to, kind):
    Path("evil").write_bytes(pickle.dumps(Touch()) + b"\n" + pickle.dumps(Touch()) + b"\n")
    readers = {
        "journal": lambda: Journal("evil").entries(),
        "measurement": lambda: Measurement.from_json("evil"),
        "plan": lambda: read_planned("evil"),
    }
    with pytest.raises((WorkbenchError, UnicodeDecodeError)):
        readers[kind]()
    came_to("refused: no reader of ours loads pickles")


def test_data_with_an_extension_type_that_holds_a_pickle(came_to):
    field = pa.field("shop", pa.string(), metadata={
        b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": pickle.dumps(Touch())
    })  # fmt: skip
    stored = pa.schema([field])
    pq.write_table(pa.table([["a", "b"]], schema=stored), "evil.parquet")
    Path("jobs.py").write_text("def orders(rows):\n    return rows\n")
    draft("jobs:orders", ["evil.parquet"])
    came_to("the column is read as what it is stored as")


def test_names_that_are_markup_in_a_page(came_to, cards):
    for card in cards:
        for html in (card.heading_html(), card.table_html(download=False)):
            assert LINK not in html
            assert "<script" not in html
            assert controls(html) == set(), card.name
    came_to("escaped in every card: they come out literally")


def test_names_that_are_links_or_templates_of_a_hover_text_in_a_figure(came_to, cards):
    figures = [json.loads(card.figure.to_json()) for card in cards if card.figure is not None]
    drawn = [text for _, text in texts(figures, without={"meta", "template", "customdata"})]
    assert any("click" in text for text in drawn)
    assert [text for text in drawn if "<a " in text or "<script" in text] == []
    assert [text for text in drawn if "click" in text and "%{x}" in text] == []
    assert for_plotly("%{customdata}<b>") == "&#37;{customdata}&lt;b&gt;"
    came_to("escaped in every figure: plotly draws them literally")


def test_names_that_control_a_terminal(came_to, capsys):
    study = yaml.safe_dump({**yaml.safe_load(STUDY), "query": f"{EVIL}\x07\x9b2J:orders"}, allow_unicode=True)
    Path("study.yaml").write_text(study)
    assert command("plan", "study.yaml", "--dry-run") == 2
    said = capsys.readouterr()
    assert controls(said.err + said.out) == set()
    assert r"\x1b[31m\u202e[red]" in said.err or r"\\x1b" in said.err or r"\x1b[31m" in said.err
    came_to(r"shown as \x1b, \u202e and so on")


def test_operators_of_a_problem_that_control_a_terminal_or_are_markup(came_to, capsys):
    problem = yaml.safe_load((STORED.parents[1] / "data" / "placement.yaml").read_text())
    Path("placement.yaml").write_text(yaml.safe_dump(hostile(problem, {*problem["operators"]}), allow_unicode=True))
    assert command("place", "placement.yaml") == 0
    said = capsys.readouterr().out
    assert controls(said) == set()
    assert "[red]" in said.replace("\n", "").replace(" ", "")
    came_to("colours of rich and escapes of the terminal come out as they are spelled")


HOSTILE_WORDS = ("$(touch pwned)", "`touch pwned`", "'; touch pwned; '", '"; touch pwned; "', "a\ntouch pwned\n")


@pytest.mark.parametrize("name", HOSTILE_WORDS)
def test_names_in_the_command_of_a_plan_that_a_shell_runs(came_to, name, folder):
    made = plan(staged_exploration(), 5e3, memory_mb=[600])
    (folder / "spark-submit").write_text(
        f"#!{sys.executable}\nimport json, sys\njson.dump(sys.argv[1:], open('argv', 'w'))\n"
    )
    (folder / "spark-submit").chmod(0o755)
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
    line = made.spark_submit(master=name)
    subprocess.run(["sh", "-c", line], env=environment, check=True, cwd=folder)
    argv = json.loads(Path("argv").read_text())
    assert argv[:2] == ["--master", name]
    assert argv[-1] == "job.py"
    pairs = [argv[place + 1] for place, word in enumerate(argv) if word == "--conf"]
    assert dict(pair.split("=", 1) for pair in pairs).items() >= made.spark_conf().items()
    came_to("spark-submit gets it as one word")


def test_query_in_the_skeleton_of_a_job_that_ends_its_text(came_to):
    evil = '"""\nimport pathlib; pathlib.Path("pwned").touch()\n"""\\'
    job = replace(plan(staged_exploration(), 5e3, memory_mb=[600]), query=evil).job()
    tree = ast.parse(job)
    honest = ast.parse(plan(staged_exploration(), 5e3, memory_mb=[600]).job())
    assert [type(one) for one in tree.body] == [type(one) for one in honest.body]
    assert evil in [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    came_to("it stays a text of the job")


def test_column_whose_name_is_a_command_or_a_line_of_a_study(came_to):
    column = "shop'; touch pwned; '$(touch pwned)\nquery: evil:evil"
    shops = ["hot"] * 60 + [f"s{number}" for number in range(60)]
    pq.write_table(pa.table({"time": list(range(120)), column: shops}), "evil.parquet")
    Path("jobs.py").write_text("def orders(rows):\n    return rows.transform(print)\n")  # which shows no keys
    text = draft("jobs:orders", ["evil.parquet"]).text_of("s.yaml; touch pwned\nquery: evil:evil")
    assert yaml.safe_load(text)["query"] == "jobs:orders"
    (line,) = (line for line in text.splitlines() if "workbench keys" in line)
    subprocess.run(["sh", "-c", line.lstrip("# ").replace("workbench keys", "true")], check=True)
    came_to("quoted, in one line of the draft")


def test_names_that_are_formulas_of_a_spreadsheet(came_to, cards):
    for text in ("=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0"):
        assert str(for_spreadsheet(text)).startswith("'")
    assert [for_spreadsheet(cell) for cell in (-3, -2.5, "-3", "+1e-5", None)] == [-3, -2.5, "-3", "+1e-5", None]
    for card in cards:
        for row in csv.reader(io.StringIO(card.table.csv())) if card.table else ():
            for cell in row:
                assert cell[:1] not in "=+@\t\r" or not cell or for_spreadsheet(cell) == cell, card.name
    came_to("an apostrophe before it; numbers stay numbers")


def test_address_with_a_password_as_the_data_of_a_study(came_to, capsys):
    for place in (f"kafka://user:{SECRET}@broker:9092/orders", f"https://user:{SECRET}@host/orders.csv"):
        Path("study.yaml").write_text(STUDY.replace("orders.csv", place).replace("jobs:orders", "nexmark:q1"))
        assert command("plan", "study.yaml", "--dry-run") == 2
        said = capsys.readouterr()
        assert SECRET not in said.err + said.out
    came_to("refused, and the password is not repeated")


def test_module_that_fails_with_a_secret_in_its_error(came_to, capsys, monkeypatch):
    monkeypatch.setenv("ORDERS_API_TOKEN", SECRET)
    failing = "import os\nraise ValueError('no ' + os.environ['ORDERS_API_TOKEN'] + ', password=abc')\n"
    Path("jobs.py").write_text(failing)
    assert command("plan", "study.yaml") == 2
    said = capsys.readouterr().err
    assert SECRET not in said
    assert "no ***, password=***" in said
    Journal("journal.jsonl").append("failed", "k", {"why": f"at jdbc:x://u:pw@h {SECRET}", "api_key": "abc", "n": 1})
    (entry,) = Journal("journal.jsonl").entries()
    assert entry.data == {"why": "at jdbc:x://***@h ***", "api_key": "***", "n": 1}
    came_to("redacted in the message and in the journal")


def test_event_log_with_secrets_and_escapes(came_to, folder):
    said = f"no login token={SECRET}"
    ended = {"Event": "x.StreamingQueryListener$QueryTerminatedEvent", "id": "q-1", "exception": said}
    seen = read_log(written(folder / "log", [*events(a_day(500.0), name=f"{EVIL} https://u:{SECRET}@h"), ended]))
    assert SECRET not in repr(seen)
    assert controls(seen.name) == set()
    came_to("redacted when it is read; escapes are question marks")


def executed(html):
    """Write a notebook as if it had been run, with this output."""
    shown = nbformat.v4.new_output("display_data", {"text/html": html})
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=[shown])]), "evil.ipynb")


def test_executed_notebook_that_leads_elsewhere(came_to):
    executed('<meta http-equiv="refresh" content="0;url=https://evil.example">')
    with pytest.raises(WorkbenchError, match="would load 0;url=https://evil"):
        export_executed("evil.ipynb", "report.html")
    assert not Path("report.html").exists()
    came_to("refused: such a page is not written")


def test_scripts_of_an_executed_notebook_are_not_those_of_the_policy(came_to):
    executed("<script>alert(1)</script><script nonce=''>alert(2)</script>")
    first, second = (export_executed("evil.ipynb", f"{n}.html").path.read_text() for n in (1, 2))
    (policy,) = re.findall(r"default-src 'none'[^\"]*", first)
    assert "script-src 'nonce-" in policy
    assert "unsafe-eval" not in policy
    assert policy not in second  # the number cannot be known
    came_to("a browser runs none of them: they lack the page's number")


def test_journal_plans_and_history_of_a_machine_that_others_use(came_to):
    before = os.umask(0)
    try:
        Journal("new/journal.jsonl").append("kind", "key", 1)
        planned = read_planned(written_by_attacker("plan-spark.json"))
        write_planned(planned, Path("plans.json"))
        StudyHistory(Path("history")).journal.append("kind", "key", 1)
    finally:
        os.umask(before)
    files = (Path("new/journal.jsonl"), Path("plans.json"), Path("history/journal.jsonl"))
    assert [oct(file.stat().st_mode & 0o777) for file in files] == ["0o600"] * 3
    came_to("their owner alone can read them")


def test_the_escapes_of_all_places():
    assert for_terminal("a\x1b[31m\u202eb\tc\nd") == "a\\x1b[31m\\u202eb\tc\nd"
    assert for_html("<b>\x00\ud800") == "&lt;b&gt;\\x00\\ud800"
    assert for_terminal("👩\u200d💻 naïve") == "👩\u200d💻 naïve"
