"""The line of progress on a terminal: one line, whatever it says."""

import threading
from functools import partial
from types import SimpleNamespace

import pytest
from example_measurement import example_measurement, failed_run
from terminal_session import CODES

from workbench.capacity.explore import Question, Why
from workbench.cli.progress import Lines, Progress, progress
from workbench.measuring import Concluded, Failed, Finished, Reused
from workbench.study import SoFar, Study

SAID = f"probe 2 at 7.32 M records/s: overloaded (so far 6.9 M to 7.32 M). {'Too few rows were consumed. ' * 4}"


@pytest.fixture
def terminal(monkeypatch):
    """Make standard error a terminal of 80 columns."""
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "80"}.items():
        monkeypatch.setenv(name, value)


def lines(written):
    return [CODES.sub("", line) for line in written.replace("\r", "\n").split("\n")]


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("columns", [80, 40])
def test_a_long_text_is_cut_and_the_time_left_stays_in_sight(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    with progress(1200.0) as say:
        say(SAID)
    shown = [line for line in lines(capsys.readouterr().err) if line and "starting" not in line]
    assert shown
    for line in shown:
        assert len(line) <= columns
        assert "probe 2" in line
        assert line.endswith("… · about 20 min left")


@pytest.mark.usefixtures("terminal")
def test_a_short_text_is_said_as_it_is_and_one_without_a_time_takes_the_whole_line(capsys):
    with progress(1200.0) as say:
        say("warm-up \x1b[2J")
    assert any(line.endswith("warm-up \\x1b[2J · about 20 min left") for line in lines(capsys.readouterr().err))
    with progress() as say:
        say(SAID)
    assert {len(line) for line in lines(capsys.readouterr().err) if "probe 2" in line} == {80}


class Timer:
    """A timer that a pipe rings when its time has come."""

    def __init__(self, pipe, seconds, call):
        self.pipe, self.at, self.call = pipe, pipe.now + seconds, call

    def start(self):
        self.pipe.timers.append(self)

    def cancel(self):
        self.pipe.timers.remove(self)


class Pipe:
    """What is written to a pipe, at the time that a test sets."""

    def __init__(self, patch, **options):
        self.now, self.written, self.timers = 0.0, [], []
        threads = SimpleNamespace(Timer=partial(Timer, self), RLock=threading.RLock)
        patch.setattr("workbench.cli.progress.threading", threads)
        patch.setattr("workbench.cli.progress.time", SimpleNamespace(monotonic=lambda: self.now))
        self.lines = Lines(self.written.append, **options)
        self.progress = Progress(self.lines.show, self.lines.keep, self.lines.keep, (2, 2))

    def wait_until(self, second):
        """Ring the timers that are due until then."""
        while due := [timer for timer in self.timers if timer.at <= second]:
            self.now = due[0].at
            self.timers.remove(due[0])
            due[0].call()
        self.now = second


def test_a_pipe_gets_a_line_per_run_and_no_minutes_of_silence(monkeypatch):
    pipe, run = Pipe(monkeypatch), example_measurement()
    for second in range(0, 150, 10):
        pipe.now = float(second)
        pipe.progress(f"probe {second}")
    pipe.progress.show_event(Finished("key", run))
    begins = ["[    0 s] probe 0", "[   60 s] probe 60", "[  120 s] probe 12", "[  140 s] run 1/2 "]
    assert [line[:18] for line in pipe.written] == begins
    pipe.progress("the next")
    assert len(pipe.written) == 4
    simulated = Pipe(monkeypatch, timed=False)
    simulated.progress("simulated: 2 slots")
    assert simulated.written == ["simulated: 2 slots"]


LATEST = "[   60 s] waiting for executors: 1 of 2"


@pytest.mark.parametrize(
    ("then", "written"),
    [
        (lambda _: None, [LATEST]),  # after a minute of silence
        (lambda pipe: pipe.progress.keep("a warning"), ["[   12 s] a warning"]),  # in place of what went on before
        (lambda pipe: pipe.lines.close(), []),
    ],
)
def test_the_latest_of_what_goes_on_is_written_unless_something_else_is(monkeypatch, then, written):
    pipe = Pipe(monkeypatch)
    pipe.progress("starting Spark")
    for pipe.now, text in ((9.0, "waiting for executors: 0 of 2"), (12.0, "waiting for executors: 1 of 2")):
        pipe.progress(text)
    then(pipe)
    pipe.wait_until(600.0)
    assert pipe.written == ["[    0 s] starting Spark", *written]


def test_what_nobody_reads_gets_no_progress(capsys):
    with progress() as say:
        say("a line")
    assert capsys.readouterr().err == ""


def test_no_timer_is_left_at_the_end(tmp_path, monkeypatch):
    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr("sys.stderr", log)
        with progress() as say:
            say("starting Spark")
            say("warming up")
            assert any(isinstance(thread, threading.Timer) for thread in threading.enumerate())
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(5.0)
            assert not thread.is_alive()
    assert (tmp_path / "log").read_text().count("\n") == 1


def test_failures_and_runs_that_are_recorded_count_too(monkeypatch):
    pipe = Pipe(monkeypatch)
    pipe.progress.show_event(Reused("key", example_measurement()))
    pipe.progress.show_event(Failed(failed_run(example_measurement(), "It was lost.")))
    assert pipe.written[0].startswith("[    0 s] run 2/2 · ")
    assert pipe.written[0].endswith(" failed: It was lost.")


def test_answers_stay_in_sight_and_questions_pass(monkeypatch):
    pipe = Pipe(monkeypatch)
    study = Study("checkout", (1e6, 1e9), (2, 8), (512,), testbed="recorded", table="t.csv")
    known = SoFar(study, (example_measurement(),), ())
    space = study.space
    pipe.progress.show_event(Concluded(Question(Why(space.budgets[0], "corner"), space, ())))
    pipe.progress.show_event(Concluded(known))
    assert pipe.written[0].startswith("[    0 s] run 1 of at most 2 · At first the explorer asks for ")
    assert [line[10:] for line in pipe.written[1:]] == list(known.lines)
    assert known.lines[-1].startswith("after 1 run: at least ")
