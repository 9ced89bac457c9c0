"""``workbench place``, and the methods behind it."""

import csv
import json
import os
import re
import shlex
import signal
from pathlib import Path

import pytest
from example_measurement import example_measurement
from placement_file import CALM, written

from workbench.placement import METHODS, SEARCHED, place, read_placement_input
from workbench.study import study_placement

COMMAND = ["place"]


@pytest.fixture
def problem(tmp_path):
    return written(tmp_path, CALM)


@pytest.fixture
def interruptible():
    """As in a terminal: a shell's background ignores the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("method", SEARCHED)
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_a_search_with_the_best_so_far(problem, run, monkeypatch, method):
    def interrupted(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return place(*arguments, **options)

    monkeypatch.setattr("workbench.cli.placing.place", interrupted)
    code, shown = run(problem, "--method", method, "--json")
    assert (code, shown.err) == (0, "")
    assert json.loads(shown.out)["method"] == method
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interruptible")
def test_a_second_ctrl_c_ends_the_command(problem, run, monkeypatch):
    def interrupted(*_, **__):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("workbench.cli.placing.place", interrupted)
    assert run(problem, "--method", "optimal")[0] == 130


def test_the_plan_is_shown_and_exported(run, problem, tmp_path):
    assert run(problem, "--flink", tmp_path / "plan.csv")[0] == 0
    with (tmp_path / "plan.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["operator"], row["subtask"]) for row in rows] == [
        ("A", "0"), ("A", "1"), ("B", "0"), ("B", "1"), ("B", "2"), ("C", "0"),
    ]  # fmt: skip
    assert {row["worker"] for row in rows} == {"0", "1"}


def test_the_comparison_has_every_method_and_exports_the_plan_of_the_one_named(prints, problem):
    target = problem.parent / "plan.csv"
    named = ("--method", "round-robin", "--flink", target)
    rows = json.loads(prints(problem, "--compare", "--draws", 5, "--json", *named))
    assert sorted(row["method"] for row in rows) == sorted(METHODS)
    assert rows[0]["method"] == "optimal"  # the best
    dealt = place(read_placement_input(problem), "round-robin")
    subtasks = [",".join(map(str, one)) for one in dealt.problem.subtasks(dealt.counts)]
    assert target.read_text(encoding="utf-8").splitlines() == ["operator,subtask,worker", *subtasks]


def test_shapes_are_ranked_and_one_is_chosen(prints, problem):
    output = prints(problem, "--shapes", "2x3,3x2,6x1,1x6", "--draws", 40)
    assert output.startswith("On 1 x 6 slots nine of ten random placements sustain")
    output = prints(problem, "--shapes", "6x1,2x3", "--json")
    assert [(row["workers"], row["best_is_proven"]) for row in json.loads(output)] == [(2, True), (6, True)]


def test_shapes_of_a_file_without_workers(prints, refuses, tmp_path):
    measurement = tmp_path / "measurement.json"
    example_measurement().to_json(measurement)
    first, second = (prints(measurement, "--shapes", shapes) for shapes in ("2x8,16x1", "16x1,2x8"))
    assert first == second
    assert "give their number and slots" in refuses(measurement, "--shapes", "2x8,16x1", "--cpus", 4)
    assert prints(measurement, "--shapes", "2x8,16x1", "--cpus", 4, "--slots", 8)
    bare = {key: value for key, value in CALM.items() if key not in {"workers", "slots"}}
    assert prints(written(tmp_path, bare), "--shapes", "2x3", "--slots", 3)


def test_capacities_and_files_can_be_added(prints, problem, tmp_path):
    other = written(tmp_path, CALM, "other.json")
    document = json.loads(prints(problem, other, "--workers", 4, "--cpus", 1, "--json"))
    assert list(document["counts"]) == [f"{query}.{name}" for query in ("query", "query-2") for name in "ABC"]
    assert document["rate"] == pytest.approx(100 / 1.4)


def test_queries_of_one_name_are_all_placed(prints, tmp_path):
    query = {key: CALM[key] for key in ("operators", "edges")}
    cluster = {"workers": 6, "slots": 3}
    first = written(tmp_path, cluster | {"queries": {"q": query, "q-2": query}}, "q1.json")
    second = written(tmp_path, cluster | {"queries": {"q": query}}, "q2.json")
    output = prints(first, second, "--json")
    assert list(json.loads(output)["counts"]) == [f"{name}.{o}" for name in ("q", "q-2", "q-3") for o in "ABC"]
    output = prints(second, first, "--json")
    assert list(json.loads(output)["counts"]) == [f"{name}.{o}" for name in ("q", "q-3", "q-2") for o in "ABC"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--thresholds", "0.1,0.2"), "The thresholds have 2 entries; give three"),
        (("--method", "odrp", "--odrp", "speed"), "no ODRP weights 'speed'; use one of default"),
        (("--seed", "-1"), "The seed is -1; it must be a whole number of at least 0 (--seed)"),
        (("--cpus", "0"), "cpus is 0.0; it must be above 0"),
        (("--thresholds", "1,1,1"), "--thresholds would have no effect on the method optimal; give --method caps or"),
        (("--odrp", "default"), "--odrp would have no effect on the method optimal; give --method odrp"),
        (("--draws", "5"), "--draws would have no effect; it goes with --compare or --shapes"),
        (("--shapes", "2x3", "--compare", "--method", "caps"), "so --compare, --method would have no effect"),
        (("--shapes", "2x3", "--flink", "plan.csv"), "so --flink would have no effect; leave it out, or --shapes"),
        (("--shapes", "2x3", "--speeds", "1,2"), "so --speeds would have no effect"),
        (("--compare", "--method", "caps"), "--method only says whose plan --flink writes"),
        (("--flink", "/etc/hostname/x.csv"), "cannot be written"),
        (("--shapes", "2x3,4by4"), "'4by4' is not a shape such as 4x4 (workers x slots, each at most 100,000)"),
        (("--calibrate", "--cpus", 4), "leave out calibrating or the capacities (--calibrate, --cpus)."),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(refuses, problem, arguments, message):
    assert message in refuses(problem, *arguments, lines=1)


@pytest.mark.parametrize(
    ("left_out", "changes", "arguments", "message"),
    [
        (("rate", "worker"), {}, ("--shapes", "2x3"), "(--rate)"),
        (("worker",), {}, ("--shapes", "2x3"), "give one (--cpus, --io, --net)"),
        (("workers", "slots"), {}, ("--shapes", "2x3"), "lacks 'slots'"),
        (("edges",), {"operators": {"B": {"tasks": 3, "shares": "2, 1"}}}, (), "shares of operator 'B' is '2, 1'"),
    ],
)
def test_a_problem_that_lacks_something_is_refused(refuses, tmp_path, left_out, changes, arguments, message):  # noqa: PLR0917
    document = {key: value for key, value in CALM.items() if key not in left_out} | changes
    assert message in refuses(written(tmp_path, document), *arguments, lines=1)


def test_thresholds_have_no_effect_on_a_plan_whose_placements_are_alike(refuses):
    plan = Path(__file__).parents[2] / "stored" / "plan-spark.json"
    assert "--thresholds would have no effect on the method optimal" in refuses(plan, "--thresholds", "1,1,1", lines=1)


def test_a_forward_edge_that_cannot_be_is_one_note(run, tmp_path):
    document = CALM | {"edges": [["A", "B", "forward"], ["B", "C"]]}
    code, output = run(written(tmp_path, document), "--compare", "--draws", 2)
    assert code == 0
    assert output.err.count("\n") == output.err.count("workbench: note: ")
    assert output.err.count("Edge A -> B is forward, but 2 tasks cannot feed 3") == 1


def test_a_plan_that_cannot_be_written_is_told(run, problem, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run(problem, "--method", "round-robin", "--flink", pipe)[0] == 0
        assert os.read(reader, 10_000).startswith(b"operator,subtask,worker\nA,0,0\n")
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    for target in ("/dev/full", tmp_path / ("x" * 300), tmp_path / "nul\0", ""):
        code, output = run(problem, "--method", "round-robin", "--flink", target)
        assert (code, output.err.count("\n")) == (2, 1), output.err


def test_terminal_json_page_and_notebook_name_the_same_plan_of_the_shipped_file(prints):
    shipped = Path(__file__).parents[3] / "data" / "placement.yaml"
    alone = prints(shipped, "--json")
    placed, first = json.loads(alone), json.loads(prints(shipped, "--compare", "--draws", 3, "--json"))[0]
    study = study_placement(read_placement_input(shipped), samples=3)  # what the page and notebook 03 show
    assert placed["method"] == first["method"] == study.shown.method == "optimal"
    counts = {name: row.tolist() for name, row in zip(study.given.problem.operators, study.shown.counts, strict=True)}
    assert placed["counts"] == first["counts"] == counts
    assert placed["rate"] == first["rate"] == study.shown.rate.rate >= 13_500
    assert placed["bound"] == pytest.approx(placed["rate"])


@pytest.mark.parametrize(
    ("changes", "fix", "message"),
    [
        ({"rate": 200}, ("--rate", 100), "problem.json: 100, other.json: 200); make it the same in all, or give one"),
        ({"worker": {"cpus": 3, "net": 50}}, ("--cpus", 2), "problem.json: 2, other.json: 3); make it the same in all"),
        ({"worker": {"cpus": 2}}, ("--net", 50), "their net differs (problem.json: 50, other.json: inf)"),
    ],
)
def test_files_that_differ_are_not_placed_together_unless_told(run, refuses, tmp_path, changes, fix, message):  # noqa: PLR0917
    files = [written(tmp_path, CALM | {"workers": 4}), written(tmp_path, CALM | {"workers": 4} | changes, "other.json")]
    assert message in refuses(*files).replace(f"{tmp_path}/", "")
    assert run(*files, "--method", "round-robin", *fix)[0] == 0


def test_calibrated_workers_just_carry_the_rate(prints, problem):
    output = prints(problem, "--calibrate", "--json")
    assert json.loads(output)["rate"] == pytest.approx(read_placement_input(problem).rate, rel=0.02)


def test_unequal_tasks_are_placed_in_groups(prints, tmp_path):
    skewed = json.loads(json.dumps(CALM))
    skewed["operators"]["B"]["shares"] = [2, 1, 1]
    output = prints(written(tmp_path, skewed), "--method", "optimal")
    assert re.findall(r"^(\S+) +[\d.]+ +[\d.]+$", output, re.MULTILINE) == ["A", "B/1", "B/2", "C"]


def test_the_command_that_is_advised_adds_a_worker(prints, tmp_path):
    path = written(tmp_path, CALM | {"speeds": [1, 1]}, "a problem.json")
    (advised,) = re.findall(r"Run: workbench (place .+)\n", prints(path, "--cpus", 0.4, "--method", "caps"))
    (advised,) = re.findall(r"Run: workbench (place .+)\n", prints(*shlex.split(advised)[1:]))
    assert advised == "place 'a problem.json' --workers 3 --slots 3 --speeds 1,1,1 --cpus 0.4"
    assert re.search(r"operator +w0 +w1 +w2\n", prints(*shlex.split(advised)[1:]))
