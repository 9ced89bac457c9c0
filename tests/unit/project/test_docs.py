"""The examples of the documentation, executed as a reader would; the cron line as cron would."""

import argparse
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from simulated_study import SIMULATED

from workbench import cli
from workbench.study import read_study

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
FENCED = re.compile(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BIN = Path(sys.executable).parent
PARSER = cli._parser()


def blocks(page, language=None, mark=None):
    found = FENCED.findall((DOCS / page).read_text())
    return [text for kind, how, text in found if language in {None, kind} and mark in {None, how}]


RUN = sorted(page.name for page in DOCS.glob("*.md") if blocks(page.name, mark="run"))


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.long if page == "how-to.md" else []) for page in RUN]
)
def test_examples_run_in_order(page, tmp_path):
    (tmp_path / "data").symlink_to(ROOT / "data")
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    for kind, how, text in FENCED.findall((DOCS / page).read_text()):
        if how != "run":
            continue
        command = ["sh", "-e", "-c", text] if kind == "sh" else [sys.executable, "-c", text]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


READ_AS = {"python": lambda text: compile(text, "example", "exec"), "yaml": yaml.safe_load}


@pytest.mark.parametrize(
    ("kind", "text"),
    [(kind, text) for page in DOCS.glob("*.md") for kind in READ_AS for text in blocks(page.name, kind)],
)
def test_examples_are_in_the_language_that_they_name(kind, text):
    assert READ_AS[kind](text)


def commands():
    """Every call of the workbench in a shell block, a cron line or a CI step."""
    for page in (*DOCS.glob("*.md"), ROOT / "README.md"):
        for _, _, text in FENCED.findall(page.read_text()):
            joined = text.replace("\\\n", " ")
            for call in re.findall(r"(?:^|run: |&& )(?:\.venv/bin/)?workbench (.+)$", joined, re.MULTILINE):
                yield re.split(r" +(?:#|>>?|&&)", call)[0].strip()


@pytest.mark.parametrize("call", sorted(set(commands())))
def test_every_command_shown_exists(call):
    assert isinstance(PARSER.parse_args(shlex.split(call)), argparse.Namespace)


PAGES = (*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md")


def in_sentences():
    """Code within the sentences of each page: its name, and the code."""
    for page in PAGES:
        for code in re.findall(r"`([^`\n]+)`", FENCED.sub("", page.read_text())):
            yield page.name, code


def commands_of(parser):
    """Commands of a parser by name; none if it has no commands of its own."""
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {name: command for group in groups for name, command in group.choices.items()}


def options_in_sentences():
    """Command and option of every call of the workbench in a sentence."""
    for _, code in in_sentences():
        call = re.match(r"(?:\.venv/bin/)?workbench ([a-z]+)\b(.*)", code)
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", call[2] if call else ""):
            yield call[1], option


@pytest.mark.parametrize(("command", "option"), sorted(set(options_in_sentences())))
def test_every_option_in_a_sentence_exists(command, option):
    parser = commands_of(PARSER)[command]
    assert any(option in one._option_string_actions for one in (parser, *commands_of(parser).values()))


def files_in_sentences():
    """Page and path of every file of the repository that is named with its folder."""
    folders = "workbench|tests|benchmarks|data|docs|notebooks|templates"
    for page, code in in_sentences():
        path = re.match(rf"(?:python )?((?:{folders})/[\w./-]*)", code)
        if path and not path[1].startswith("notebooks/reports/"):  # which the tour writes
            yield page, path[1]


@pytest.mark.parametrize(("page", "path"), sorted(set(files_in_sentences())))
def test_every_file_that_a_page_names_exists(page, path):
    assert (ROOT / path).exists(), f"{page} names {path}"


def readme_commands():
    """Those of the README that need no engine and no file of the reader's own."""
    return [
        call
        for _, _, text in FENCED.findall((ROOT / "README.md").read_text())
        for call in re.findall(r"^\.venv/bin/workbench ((?:place|replay) .+)$", text, re.MULTILINE)
    ]


@pytest.mark.parametrize("call", readme_commands())
def test_the_readme_s_commands_run(call, monkeypatch, capsys):
    assert {call.split()[0] for call in readme_commands()} == {"place", "replay"}
    monkeypatch.chdir(ROOT)
    assert cli.main(shlex.split(call)) == 0, capsys.readouterr().err


def test_the_readme_s_study_runs_simulated_as_the_readme_says(monkeypatch, capsys, tmp_path):
    text = (ROOT / "README.md").read_text()
    (study,) = (yaml.safe_load(block) for kind, _, block in FENCED.findall(text) if kind == "yaml")
    changes = re.search(
        r"With (.+?), and without `dataset` and `event_time`, the same study runs\s+in seconds", text, re.DOTALL
    )[1]
    for change in re.findall("`(.+?)`", changes):
        study |= yaml.safe_load(change)
    del study["dataset"], study["event_time"]
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    assert study["testbed"] == "fluid"
    assert cli.main(["plan", "study.yaml"]) == 0, capsys.readouterr().err


def test_the_reference_names_every_command_and_the_demo_plans_three_rates_from_one_deployment():
    table = (DOCS / "reference.md").read_text().split("## Reports", 1)[0]
    assert set(re.findall(r"^\| `(\w+)", table, re.MULTILINE)) == set(commands_of(PARSER))
    command = re.search(
        r"^demo:.*?\$\(BIN\)/workbench plan (\S+)", (ROOT / "Makefile").read_text(), re.MULTILINE | re.DOTALL
    )
    study = read_study(ROOT / command[1])
    assert (study.query, study.testbed, len(study.targets), study.shared) == ("nexmark:q5", "spark", 3, True)


STUDY = f"{SIMULATED.replace(', 20000000', '')}most_runs: 3\nform: linear\n"


@pytest.fixture
def cron(tmp_path):
    """Carry out the documented line on a study as cron would; what is on either stream of the result is mailed."""
    (line,) = blocks("schedules.md", "cron")
    assert "%" not in line.replace(r"\%", "")  # cron ends the command at a bare one
    command = line.split(None, 5)[5].strip().replace(r"\%", "%")
    checkout = tmp_path / "streaming-capacity-workbench"
    (checkout / "studies").mkdir(parents=True)
    (checkout / ".venv").symlink_to(BIN.parent)
    crons = {"HOME": str(tmp_path), "LOGNAME": "nobody", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}

    def run(study):
        (checkout / "studies" / "weekly.yaml").write_text(study)
        done = subprocess.run(
            ["/bin/sh", "-c", command], env=crons, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        return done, (checkout / "reports" / "cron.log").read_text(), [*(checkout / "reports").glob("*.html")]

    return run


@pytest.mark.long
def test_the_cron_line_runs_with_crons_environment(cron):
    done, log, (page,) = cron(STUDY)
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("", "")  # else cron sends mail
    assert re.fullmatch(r"weekly-\d{4}-W\d\d\.html", page.name)
    assert log.strip() == f"report: reports/{page.name}"
    assert "What do I deploy for" in page.read_text()


@pytest.mark.long
def test_a_mail_from_cron_says_why_the_report_is_partial(cron):
    done, _, pages = cron(STUDY.replace("nexmark:q1", "nojobs:orders"))
    assert done.returncode == 1
    assert re.search(r"workbench: the report is partial: The module 'nojobs' .* cannot be imported: .*\n", done.stderr)
    assert len(pages) == 1


def test_a_mail_from_cron_says_which_key_of_the_study_is_wrong(cron):
    done, _, pages = cron(STUDY.replace("targets", "target"))
    assert done.returncode == 2
    assert re.fullmatch(r"workbench: The study .* has the unknown key 'target'; .*\n", done.stderr)
    assert pages == []


@pytest.mark.parametrize(("user", "allowed"), [("0", True), ("1000", False)])
def test_the_lab_opens_for_root_too(tmp_path, user, allowed):
    identity = tmp_path / "id"
    identity.write_text(f"#!/bin/sh\necho {user}\n")
    identity.chmod(0o755)
    ours, dry = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}, ["make", "--dry-run", "lab"]
    shown = subprocess.run(dry, cwd=ROOT, env=ours, capture_output=True, text=True, check=True)
    (line,) = (line for line in shown.stdout.splitlines() if "jupyter lab" in line)
    assert ("--allow-root" in line) == allowed
