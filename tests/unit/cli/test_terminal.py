"""What a narrow terminal, a file and a closed pipe get."""

import subprocess

import pytest
from terminal_session import CODES, SESSIONS, command, environment, in_terminal, plain, prepare

ANSWERS = {
    "plan": ("safe", "verify first", "risky", "don't rely on it yet"),
    "place": ("more than by Flink's default scheduler", "as much as by Flink's default scheduler"),
    "replay": ("keeps up",),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("session")
    prepare(made)
    return made


def has_answer(name, text):
    first = " ".join(" ".join(text.splitlines()[:8]).split())
    return any(answer in first for answer in ANSWERS[name])


def widest(text):
    """Columns of the widest line, apart from commands, which are copied as they are."""
    return max(len(line) for line in text.splitlines() if not line.startswith("  workbench "))


@pytest.mark.parametrize(("name", "whole"), [("place", "flink-default"), ("replay", "static"), ("plan", "records/s")])
def test_a_narrow_terminal_gets_the_names_and_no_color_means_no_colours(folder, name, whole):
    text = in_terminal(name, folder, 60, NO_COLOR="1")
    parts = [part for code in CODES.findall(text) for part in code[2:-1].split(";")]
    assert "1" in parts  # bold stays
    assert not [part for part in parts if part.startswith(("3", "4"))]
    shown = plain(text)
    below = shown[shown.index("\n") :].splitlines()
    assert [line for line in below if whole in line.split() and "note:" not in line], shown
    assert widest(shown) <= 60


@pytest.mark.parametrize("name", SESSIONS)
def test_a_file_gets_plain_text(folder, name):
    written = folder / f"{name}.txt"
    with written.open("w") as file:
        done = subprocess.run(
            command(name), cwd=folder, env=environment(), stdout=file, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 0, done.stderr
    text = written.read_text()
    assert "\x1b" not in text
    assert has_answer(name, text), text


@pytest.mark.parametrize("name", ["plan", "replay"])
def test_a_closed_pipe_ends_quietly_and_the_work_is_done(folder, name):
    (folder / "plan.json").unlink(missing_ok=True)
    (folder / "steps.csv").unlink(missing_ok=True)
    asked = [*command(name), *(["--output", "steps.csv"] if name == "replay" else [])]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(asked, cwd=folder, env=environment(), text=True, **pipes)
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait() == 0, errors
    assert not any(word in errors for word in ("BrokenPipe", "Traceback", "Exception ignored"))
    assert (folder / ("plan.json" if name == "plan" else "steps.csv")).exists()
