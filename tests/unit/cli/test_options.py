"""Options take numbers with commas, as answers show them; errors name settings as options, or as keys of a study."""

import pickle

import pytest

from workbench import cli
from workbench.errors import WorkbenchError


def asked(*words):
    return cli._parser().parse_args(words)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("verify", "q1", "--rate"), "rate"),
        (("measure", "q1", "--max-rate"), "max_rate"),
        (("place", "q1", "--rate"), "rate"),
        (("observe", "a", "--target"), "targets"),
        (("replay", "q1", "day.csv", "--plan-rate"), "plan_rate"),
    ],
)
def test_a_rate_is_taken_as_people_write_it_with_the_bound_of_a_study(refuses, words, name):
    for text in ("1,500,000", "1500000", "1.5M", "1.5 M records/s", "1.5e6"):
        assert getattr(asked(*words, text), name) in (1.5e6, [1.5e6])
    assert asked(*words, "1e15")
    for text in ("1e18", "2000000000G", "inf"):
        assert f"{text!r} is too high; give at most 1e+15 records/s" in refuses(*words, text)


def test_other_numbers_may_have_commas():
    options = asked("measure", "nexmark:q1", "--memory-mb", "1,024", "--interval", "1,000.5")
    assert (options.memory_mb, options.interval_s) == (1024, 1000.5)
    assert asked("replay", "q1", "day.csv", "--memory-mb", "2,048").memory_mb == 2048


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--memory-mb", "1,5"), "argument --memory-mb: '1,5' is not a whole number; write it like 1024 or 1,024"),
        (("--interval", "a"), "argument --interval: 'a' is not a number; write it like 1024 or 1,024"),
        (("--max-rate", "1,5"), "The rate is '1,5'; write records/s above 0, such as 1,500,000 or 1.5 M."),
    ],
)
def test_a_comma_out_of_place_is_refused(refuses, words, said):
    assert said in refuses("measure", "nexmark:q1", *words)


LATE = WorkbenchError("Its batches take too long: give it more slots.", settings=("slots", "interval_s"))


def test_python_and_studies_read_names():
    assert str(LATE) == "Its batches take too long: give it more slots (slots, interval_s)."
    assert str(WorkbenchError("No settings here.")) == "No settings here."


def test_the_error_of_another_process_keeps_its_settings():
    again = pickle.loads(pickle.dumps(LATE))  # noqa: S301 - made here
    assert (str(again), again.settings) == (str(LATE), ("slots", "interval_s"))


def test_a_command_reads_its_options(refuses, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise LATE

    monkeypatch.setattr("workbench.cli.measuring.find_query", refuse)
    assert refuses("verify", "nexmark:q1", "--rate", "5").endswith("give it more slots (--slots, --interval).")
    monkeypatch.setattr("workbench.cli.planning.read_study", refuse)
    # it has no such options, but a study has such keys
    assert refuses("plan", "study.yaml").endswith("give it more slots (slots, interval_s).")
