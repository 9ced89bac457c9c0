"""``workbench place``, and the methods behind it."""

import csv
import json
import os
import re
import shlex
import signal
from pathlib import Path

import numpy as np
import pytest
from example_measurement import example_measurement
from placement_file import PROBLEM, written

from workbench import cli
from workbench.errors import WorkbenchError
from workbench.placement import (
    METHODS,
    SEARCHED,
    CostVector,
    SearchResult,
    compare,
    methods,
    optimal,
    place,
    read_placement_input,
    search,
)
from workbench.study import study_placement

CALM = PROBLEM | {
    "operators": {
        "A": {"tasks": 2, "cpu": 0.4, "net": 10},
        "B": {"tasks": 3, "cpu": 0.6, "io": 5, "net": 2},
        "C": {"tasks": 1, "cpu": 0.1},
    }
}


def run(capsys, *arguments):
    code = cli.main(["place", *map(str, arguments)])
    return code, capsys.readouterr()


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
def test_ctrl_c_ends_a_search_with_the_best_so_far(problem, capsys, monkeypatch, method):
    def interrupted(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return place(*arguments, **options)

    monkeypatch.setattr("workbench.cli.placing.place", interrupted)
    code, shown = run(capsys, problem, "--method", method, "--json")
    assert (code, shown.err) == (0, "")
    assert json.loads(shown.out)["method"] == method
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interruptible")
def test_a_second_ctrl_c_ends_the_command(problem, capsys, monkeypatch):
    def interrupted(*_, **__):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("workbench.cli.placing.place", interrupted)
    assert run(capsys, problem, "--method", "optimal")[0] == 130


def test_every_method_places_all_tasks(problem):
    given = read_placement_input(problem)
    for method in METHODS:
        placed = place(given, method, seed=3, timeout_s=20)
        assert placed.problem.checked(placed.counts).sum() == placed.problem.tasks
        assert placed.cost == placed.problem.cost(placed.counts)
        assert placed.rate.rate > 0
        assert placed.method == method
    assert place(given).method == "optimal"
    assert place(given).counts.tolist() == optimal(given.problem, worker=given.worker).counts.tolist()
    assert place(given, "least-cost").cost == optimal(given.problem, objective="cost").cost
    assert place(given, "caps-all").rate.rate == pytest.approx(place(given).rate.rate)


def test_chance_follows_its_seed(problem):
    given = read_placement_input(problem)
    plans = [place(given, "random", seed=seed).counts for seed in (1, 1, *range(8))]
    assert np.array_equal(plans[0], plans[1])
    assert any(not np.array_equal(plans[0], plan) for plan in plans)
    rows = {row.placed.method: row for row in compare(given, ("optimal", "random"), draws=10)}
    assert rows["optimal"].draws == 1
    assert rows["random"].highest <= rows["optimal"].placed.rate.rate * 1.001
    assert rows["random"].lowest <= rows["random"].placed.rate.rate <= rows["random"].highest


def test_flink_places_several_queries_one_after_the_other(tmp_path):
    query = {key: CALM[key] for key in ("operators", "edges")}
    given = read_placement_input(written(tmp_path, {"workers": 4, "slots": 3, "queries": {"x": query, "y": query}}))
    placed = place(given, "flink-default", seed=0)
    first, second = placed.counts[:3].sum(axis=0), placed.counts[3:].sum(axis=0)
    assert sorted([first.tolist(), second.tolist()]) == [[0, 0, 3, 3], [3, 3, 0, 0]]


def test_thresholds_that_no_plan_meets_are_refused(problem):
    given = read_placement_input(problem)
    for method in ("caps", "caps-first"):
        with pytest.raises(
            WorkbenchError, match=r"No plan meets the thresholds 0, 0, 0; raise them, or leave them out"
        ):
            place(given, method, thresholds=CostVector(0, 0, 0))
    assert place(given, "caps-first", thresholds=CostVector(0.6, 0.4, 0.4)).cost.worst == pytest.approx(5 / 9)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("caps-all", r"^In the time given no plan was found; give more time, or use another method\.$"),
        ("caps", r"meets the thresholds 0\.1, 1, 1; give more time, raise them, or leave them out to have them tuned"),
    ],
)
def test_out_of_time_says_so(problem, monkeypatch, method, message):
    def late(_problem, *, thresholds, **_options):
        return SearchResult(0, (), None, 1, exhausted=False, within=thresholds)

    given = read_placement_input(problem)
    place(given, "caps")  # compiles the searches
    monkeypatch.setattr(methods, "caps", late)
    with pytest.raises(WorkbenchError, match=message):
        place(given, method, thresholds=CostVector(0.1, 1, 1))


@pytest.mark.parametrize(
    ("capacity", "said"), [("--net", "network of worker w0 is"), ("--io", "access to state of worker w0 is")]
)
def test_what_limits_agrees_with_its_verb(capsys, tmp_path, capacity, said):
    path = tmp_path / "problem.json"
    operators = {"a": {"tasks": 1, "cpu": 0.1, "io": 1e6, "net": 1e6}, "b": {"tasks": 1, "cpu": 0.1, "io": 0, "net": 0}}
    document = {"workers": 2, "slots": 1, "rate": 10, "operators": operators, "edges": [["a", "b"]]}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert f"then the {said} used up." in run(capsys, path, capacity, "1e3")[1].out


def test_the_plan_is_shown_and_exported(capsys, problem, tmp_path):
    code, output = run(capsys, problem, "--flink", tmp_path / "plan.csv")
    assert code == 0
    assert "cpu 0.111, io 0.333, net 0.697; no plan sustains more\n" in output.out
    assert output.out.startswith("optimal sustains 143 records/s; then the cores of worker w0 are used up.\n")
    with (tmp_path / "plan.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["operator"], row["subtask"]) for row in rows] == [
        ("A", "0"), ("A", "1"), ("B", "0"), ("B", "1"), ("B", "2"), ("C", "0"),
    ]  # fmt: skip
    assert {row["worker"] for row in rows} == {"0", "1"}


def test_of_many_workers_those_with_the_same_tasks_have_one_row(capsys, tmp_path):
    operators = {"a": {"tasks": 40, "cpu": 0.5}, "b": {"tasks": 21, "cpu": 0.1}}
    path = written(tmp_path, {"workers": 70, "slots": 1, "operators": operators, "edges": [["a", "b"]]})
    table = run(capsys, path, "--method", "round-robin")[1].out.split("\u2500\n")[1]
    rows = [re.split(r"\s{2,}", line.strip()) for line in table.partition("cost ")[0].splitlines()]
    assert sum(1 + int(name.split()[2]) if " and " in name else 1 for name, _ in rows) == 70
    assert {tasks for _, tasks in rows} == {"a 1", "b 1", "none"}
    assert len(rows) == 3


def test_json_holds_the_counts_and_the_tasks(capsys, problem):
    code, output = run(capsys, problem, "--json", "--method", "round-robin")
    document = json.loads(output.out)
    assert code == 0
    assert document["counts"] == {"A": [1, 1], "B": [2, 1], "C": [0, 1]}
    assert document["tasks"][0] == {"operator": "A", "subtask": 0, "worker": 0}
    assert document["limited_by"] == "cpu"
    assert set(document["cost"]) == {"cpu", "io", "net"}


def test_the_comparison_has_every_method(capsys, problem):
    code, output = run(capsys, problem, "--compare", "--draws", 5)
    assert code == 0
    lines = output.out.splitlines()
    assert "flink-default in the median of 5 draws" in lines[0]
    table = [line.split()[0] for line in lines if line.split()[0] in METHODS][1:]
    assert sorted(table) == sorted(METHODS)
    assert lines[0].split()[0] == table[0]  # the best is the first row
    csv_file = problem.parent / "plan.csv"
    code, output = run(
        capsys, problem, "--compare", "--draws", 5, "--json", "--method", "round-robin", "--flink", csv_file
    )
    assert "B,1,0\n" in csv_file.read_text(encoding="utf-8")
    assert [row["method"] for row in json.loads(output.out)] == list(METHODS)


def test_the_comparison_warns_where_no_placement_carries_the_rate(capsys, problem):
    _, fits = run(capsys, problem, "--compare", "--draws", 1)
    assert "no placement carries" not in fits.out
    _, tight = run(capsys, problem, "--compare", "--draws", 1, "--cpus", 0.4)
    assert re.search(r"note: the input asks for \d+ records/s, which no placement carries; try --workers \d", tight.out)
    assert re.search(r"cpu +io +net", tight.out)
    assert "cost   cost   cost" in re.sub(r" +", "   ", tight.out)
    assert re.search(r"odrp, reconstructed from .+, chose its own number of tasks, \d+ instead of \d+\.", tight.out)


def test_more_workers_alone_are_not_advised_where_a_task_needs_more_than_a_core(capsys, tmp_path):
    given = {"workers": 4, "slots": 8, "operators": {"window": {"tasks": 18, "cpu": 1.4}}, "rate": 14000}
    path = written(tmp_path, given | {"worker": {"cpus": 4, "io": 1e9, "net": 1e9}})
    _, output = run(capsys, path)
    said = " ".join(output.out.split())
    assert "no placement carries; try more tasks: at least 26 of window, which has 18, and --workers 5" in said


def test_one_worker_more_is_advised_with_a_speed_where_the_file_has_one_for_each(capsys, tmp_path):
    path = written(tmp_path, CALM | {"speeds": [1, 1]})
    short = ("--cpus", 0.4)
    _, said = run(capsys, path, *short)
    (advised,) = re.findall(r"carries; try (.+)\n", said.out)
    assert advised == "--workers 3 --speeds 1,1,1"
    code, again = run(capsys, path, *short, *shlex.split(advised))
    assert code == 0, again.err
    assert re.search(r"operator +w0 +w1 +w2\n", again.out)


def test_one_placement_warns_where_it_does_not_carry_the_rate(capsys, problem):
    assert "asks for" not in run(capsys, problem)[1].out
    _, best = run(capsys, problem, "--cpus", 0.4)
    assert "note: the input asks for 100 records/s, which no placement carries; try --workers 3\n" in best.out
    _, other = run(capsys, problem, "--cpus", 0.4, "--method", "round-robin")
    asked = "note: the input asks for 100 records/s, which this placement does not carry; try --method optimal or"
    assert f"{asked} --workers 3\n" in other.out
    _, busy = run(capsys, problem, "--rate", 1000, "--cpus", 1000, "--io", 1e9, "--net", 1e9)
    asked = r"1 k records/s, which no placement carries; try more tasks: at least \d+ of \w, which has \d"
    assert re.search(asked, busy.out)


def test_shapes_are_ranked_and_one_is_chosen(capsys, problem):
    code, output = run(capsys, problem, "--shapes", "2x3,3x2,6x1,1x6", "--draws", 40)
    assert code == 0
    assert output.out.startswith("Choose 1 x 6: 1 worker of 6 slots; nine of ten random placements sustain")
    code, output = run(capsys, problem, "--shapes", "6x1,2x3", "--json")
    assert [(row["workers"], row["best_is_proven"]) for row in json.loads(output.out)] == [(2, True), (6, True)]


def test_shapes_share_what_the_workers_of_the_file_have(capsys, problem):
    texts = set()
    for more in (
        ("--shapes", "2x3,3x2,6x1"),
        ("--shapes", "6x1,3x2,2x3"),
        ("--shapes", "3x2,2x3,6x1", "--workers", 2),
        ("--shapes", "3x2,2x3,6x1", "--workers", 5),
        ("--shapes", "3x2,2x3,6x1", "--slots", 3),
    ):
        code, output = run(capsys, problem, *more)
        assert code == 0
        texts.add(output.out)
    assert len(texts) == 1
    code, output = run(capsys, problem, "--shapes", "2x3", "--slots", 6, "--workers", 1)  # half as much per slot
    assert output.out not in texts


def test_shapes_of_a_file_without_workers(capsys, tmp_path):
    measurement = tmp_path / "measurement.json"
    example_measurement().to_json(measurement)
    shown = [run(capsys, measurement, "--shapes", shapes) for shapes in ("2x8,16x1", "16x1,2x8")]
    assert [code for code, _ in shown] == [0, 0]
    assert shown[0][1].out == shown[1][1].out
    code, output = run(capsys, measurement, "--shapes", "2x8,16x1", "--cpus", 4)
    assert (code, "give their number and slots" in output.err) == (2, True)
    assert run(capsys, measurement, "--shapes", "2x8,16x1", "--cpus", 4, "--slots", 8)[0] == 0
    bare = {key: value for key, value in CALM.items() if key not in {"workers", "slots"}}
    code, output = run(capsys, written(tmp_path, bare), "--shapes", "2x3")
    assert (code, "lacks 'slots'" in output.err) == (2, True)
    assert run(capsys, written(tmp_path, bare), "--shapes", "2x3", "--slots", 3)[0] == 0


def test_capacities_and_files_can_be_added(capsys, problem, tmp_path):
    other = written(tmp_path, CALM, "other.json")
    code, output = run(capsys, problem, other, "--workers", 4, "--cpus", 1, "--json")
    document = json.loads(output.out)
    assert code == 0
    assert list(document["counts"]) == [f"{query}.{name}" for query in ("query", "query-2") for name in "ABC"]
    assert document["rate"] == pytest.approx(100 / 1.4)


def test_queries_of_one_name_are_all_placed(capsys, tmp_path):
    query = {key: CALM[key] for key in ("operators", "edges")}
    cluster = {"workers": 6, "slots": 3}
    first = written(tmp_path, cluster | {"queries": {"q": query, "q-2": query}}, "q1.json")
    second = written(tmp_path, cluster | {"queries": {"q": query}}, "q2.json")
    code, output = run(capsys, first, second, "--json")
    assert code == 0
    assert list(json.loads(output.out)["counts"]) == [f"{name}.{o}" for name in ("q", "q-2", "q-3") for o in "ABC"]
    code, output = run(capsys, second, first, "--json")
    assert list(json.loads(output.out)["counts"]) == [f"{name}.{o}" for name in ("q", "q-3", "q-2") for o in "ABC"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--method", "magic"),
            "no placement method 'magic'; use one of optimal, caps, caps-first, caps-all",
        ),
        (("--workers", "0"), "workers is 0; it must be a whole number of at least 1"),
        (("--workers", "1"), "There are 6 tasks, but 1 worker of 3 slots cannot hold more than 3"),
        (("--thresholds", "0.1,0.2"), "The thresholds have 2 entries; give three"),
        (("--thresholds", "0.1,0.2,-1"), "net entry of a cost vector is -1.0"),
        (("--method", "odrp", "--odrp", "speed"), "no ODRP weights 'speed'; use one of default"),
        (
            ("--seed", "-1"),
            "The seed is -1; it must be a whole number of at least 0 (--seed)",
        ),
        (("--cpus", "0"), "cpus is 0.0; it must be above 0"),
        (("--rate", "nan"), "is nan"),
        (("--shapes", "1x2"), "cannot hold more than 2"),
        (("--thresholds", "1,1,1"), "--thresholds would have no effect on the method optimal; give --method caps or"),
        (("--odrp", "nope"), "no ODRP weights 'nope'; use one of default"),
        (("--odrp", "default"), "--odrp would have no effect on the method optimal; give --method odrp"),
        (("--timeout", "0"), "The time limit is 0; give seconds above 0 (--timeout)"),
        (("--timeout", "nan"), "The time limit is nan"),
        (
            ("--draws", "0", "--compare"),
            "The number of draws is 0; it must be a whole number of at least 1 (--draws)",
        ),
        (("--draws", "5"), "--draws would have no effect; it goes with --compare or --shapes"),
        (("--shapes", "2x3", "--compare", "--method", "caps"), "so --compare, --method would have no effect"),
        (("--shapes", "2x3", "--flink", "plan.csv"), "so --flink would have no effect; leave it out, or --shapes"),
        (("--shapes", "2x3", "--speeds", "1,2"), "so --speeds would have no effect"),
        (("--compare", "--method", "caps"), "--method only says whose plan --flink writes"),
        (("--flink", "/etc/hostname/x.csv"), "cannot be written"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(capsys, problem, arguments, message):
    code, output = run(capsys, problem, *arguments)
    assert code == 2
    assert message in output.err
    assert output.err.startswith("workbench: ")
    assert output.err.count("\n") == 1
    assert output.out == ""


def test_a_forward_edge_that_cannot_be_is_one_note(capsys, tmp_path):
    document = CALM | {"edges": [["A", "B", "forward"], ["B", "C"]]}
    code, output = run(capsys, written(tmp_path, document), "--compare", "--draws", 2)
    assert code == 0
    assert output.err.startswith("workbench: note: Edge A -> B is forward, but 2 tasks cannot feed 3 one to one; it is")
    assert output.err.count("\n") == output.err.count("workbench: note: ")
    assert output.err.count("Edge A -> B is forward, but 2 tasks cannot feed 3") == 1


def test_a_plan_that_cannot_be_written_is_told(capsys, problem, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run(capsys, problem, "--method", "round-robin", "--flink", pipe)[0] == 0
        assert os.read(reader, 10_000).startswith(b"operator,subtask,worker\nA,0,0\n")
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    for target in ("/dev/full", tmp_path / ("x" * 300), tmp_path / "nul\0", ""):
        code, output = run(capsys, problem, "--method", "round-robin", "--flink", target)
        assert (code, output.err.count("\n")) == (2, 1), output.err


def test_without_rate_the_least_load_is_looked_for(capsys, tmp_path):
    bare = written(tmp_path, {key: value for key, value in CALM.items() if key not in {"rate", "worker"}})
    code, output = run(capsys, bare)
    assert (code, output.out.splitlines()[-1].endswith("no plan's fullest worker has a lower CPU load")) == (0, True)
    least = min(plan.cost.cpu for plan in search(read_placement_input(bare).problem).pareto)
    assert f"optimal has the cost cpu {least:.3f}" in output.out
    code, output = run(capsys, bare, "--compare", "--draws", 2)
    assert (code, output.out.startswith("optimal has the least costs, CPU first: cpu ")) == (0, True)
    rows = output.out.split("\n\n")[0].splitlines()
    assert next(line for line in rows if line.startswith(("optimal ", "caps"))).startswith("optimal ")


def test_the_plan_exported_is_that_of_the_method_named(capsys, tmp_path, problem):
    target = tmp_path / "plan.csv"
    code, _ = run(capsys, problem, "--compare", "--draws", 1, "--method", "round-robin", "--flink", target)
    assert code == 0
    dealt = place(read_placement_input(problem), "round-robin")
    assert target.read_text(encoding="utf-8").count("\n") == 1 + dealt.problem.tasks
    first = dealt.problem.subtasks(dealt.counts)[0]
    assert f"{first.operator},{first.subtask},{first.worker}" in target.read_text(encoding="utf-8").splitlines()


def test_terminal_json_page_and_notebook_name_the_same_plan_of_the_shipped_file(capsys):
    shipped = Path(__file__).parents[3] / "data" / "placement.yaml"
    _, alone = run(capsys, shipped, "--json")
    _, compared = run(capsys, shipped, "--compare", "--draws", 3, "--json")
    placed, first = json.loads(alone.out), json.loads(compared.out)[0]
    study = study_placement(read_placement_input(shipped), samples=3)  # what the page and notebook 03 show
    assert placed["method"] == first["method"] == study.shown.method == "optimal"
    counts = {name: row.tolist() for name, row in zip(study.given.problem.operators, study.shown.counts, strict=True)}
    assert placed["counts"] == first["counts"] == counts
    assert placed["rate"] == first["rate"] == study.shown.rate.rate >= 13_500
    assert placed["bound"] == pytest.approx(placed["rate"])
    rates = [plan.rate.rate for name, plans in study.methods.items() if name != "odrp" for plan in plans]
    assert max(rates) <= placed["rate"] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("changes", "fix", "message"),
    [
        (
            {"rate": 200},
            ("--rate", 100),
            "problem.json: 100, other.json: 200); make it the same in all, or give one for all (--rate)",
        ),
        ({"worker": {"cpus": 3, "net": 50}}, ("--cpus", 2), "problem.json: 2, other.json: 3); make it the same in all"),
        ({"worker": {"cpus": 2}}, ("--net", 50), "their net differs (problem.json: 50, other.json: inf)"),
    ],
)
def test_files_that_differ_are_not_placed_together_unless_told(capsys, tmp_path, changes, fix, message):
    files = [
        written(tmp_path, CALM | {"workers": 4}),
        written(tmp_path, CALM | {"workers": 4} | changes, "other.json"),
    ]
    code, output = run(capsys, *files)
    assert (code, output.out) == (2, "")
    assert message in output.err.replace(f"{tmp_path}/", "")
    assert run(capsys, *files, "--method", "round-robin", *fix)[0] == 0


def test_shapes_need_a_rate_and_capacities(capsys, tmp_path):
    bare = {key: value for key, value in CALM.items() if key not in {"rate", "worker"}}
    code, output = run(capsys, written(tmp_path, bare), "--shapes", "2x3")
    assert (code, "(--rate)" in output.err) == (2, True)
    code, output = run(capsys, written(tmp_path, bare | {"rate": 5}), "--shapes", "2x3")
    assert (code, "give one (--cpus, --io, --net)" in output.err) == (2, True)


def test_a_shape_is_two_numbers(capsys, problem):
    code, output = run(capsys, problem, "--shapes", "2x3,4by4")
    assert (code, output.out) == (2, "")
    assert "'4by4' is no shape such as 4x4 (workers x slots, each at most 100,000) (--shapes)." in output.err


def test_calibrated_workers_just_carry_the_rate(capsys, problem):
    code, output = run(capsys, problem, "--calibrate", "--json")
    assert code == 0
    assert json.loads(output.out)["rate"] == pytest.approx(read_placement_input(problem).rate, rel=0.02)
    code, output = run(capsys, problem, "--calibrate", "--cpus", 4)
    assert (code, output.err) == (
        2,
        (
            "workbench: Calibrating finds the workers' capacities; leave out calibrating or the capacities "
            "(--calibrate, --cpus).\n"
        ),
    )


def test_unequal_tasks_are_placed_in_groups(capsys, tmp_path):
    skewed = json.loads(json.dumps(CALM))
    skewed["operators"]["B"]["shares"] = [2, 1, 1]
    code, output = run(capsys, written(tmp_path, skewed), "--method", "optimal")
    assert code == 0
    assert [line.split()[0] for line in output.out.splitlines()[3:7]] == ["A", "B/1", "B/2", "C"]
    skewed["operators"]["B"]["shares"] = "2, 1"
    code, output = run(capsys, written(tmp_path, skewed))
    assert (code, "shares of operator 'B' is '2, 1'; it must be a list of one number for each task." in output.err) == (
        2,
        True,
    )
