import json
import math

import numpy as np
import pytest
from placement_file import PROBLEM, written
from placement_oracle import all_plans
from refusals import refusals

from workbench import cli
from workbench.errors import WorkbenchError
from workbench.placement import (
    METHODS,
    CostVector,
    PlacementInput,
    PlacementProblem,
    SearchResult,
    compare,
    methods,
    optimal,
    place,
)
from workbench.placement.methods import GROUP_METHODS, group_job
from workbench.simulation import Worker


def given(cpu=(0.4, 0.6), speeds=None, rate=100.0, worker=Worker(2.0, 50.0, 100.0)):  # noqa: B008 - frozen
    problem = PlacementProblem((2, 3), [(0, 1)], 3, 4, cpu, (0, 5), (10, 0), speeds, ["a", "b"])
    return PlacementInput({"query": problem}, rate, worker)


def test_a_method_without_a_plan_does_not_hide_the_others_and_without_any_the_reasons_are_told():
    rows = compare(given(), thresholds=CostVector(0, 0, 0), draws=2)
    assert {row.placed.method for row in rows.rows} == set(METHODS) - {"caps", "caps-first"}
    reason = "No plan meets the thresholds 0, 0, 0; raise them, or leave them out to have them tuned."
    assert rows.refused == dict.fromkeys(("caps", "caps-first"), reason)
    with pytest.raises(WorkbenchError, match=reason):
        place(given(), "caps-first", thresholds=CostVector(0, 0, 0))
    assert place(given(), "caps-first", thresholds=CostVector(0.9, 0.9, 0.9)).cost.worst <= 0.9
    with pytest.raises(WorkbenchError, match=r"No method found a plan\. caps: No plan meets the thresholds 0, 0, 0"):
        compare(given(), ["caps"], thresholds=CostVector(0, 0, 0))
    with pytest.raises(WorkbenchError, match=r"No method found a plan\. Give at least one method"):
        compare(given(), [])


def test_what_nothing_limits_is_placed_by_its_loads():
    idle = given(cpu=(0, 0), worker=Worker(cpus=2.0))
    placed = place(idle)
    assert (placed.method, placed.rate.rate, placed.bound) == ("optimal", math.inf, None)
    assert placed.note.endswith("no plan's fullest worker has a lower load of state access")
    rows = compare(idle, draws=2)
    assert [row.placed.method for row in rows.rows] == list(METHODS)
    assert rows.best.placed.method == "optimal"
    assert not rows.refused


def test_odrp_is_judged_at_the_speeds_of_the_workers():
    mixed = given(speeds=[1, 4, 2])
    found = place(mixed, "odrp", timeout_s=20)
    assert found.problem.speeds == (1, 4, 2)
    used = found.counts.sum(axis=0)
    assert used[1] >= used[2] >= used[0]
    assert found.note.endswith("it takes all workers for equal, its fullest is the fastest")
    equal = place(given(), "odrp", timeout_s=20)
    assert "equal" not in equal.note
    assert sorted(equal.counts.T.tolist()) == sorted(found.counts.T.tolist())


test_what_is_out_of_its_range_is_refused = refusals(
    lambda call, arguments: call(given(), **arguments),
    (compare, {"draws": 0}, "draws is 0; it must be a whole number of at least 1."),
    (compare, {"draws": 10**8}, "The number of draws is 100,000,000; it must be at most 100,000"),
    (compare, {"methods": ["random", "best"]}, "no placement method 'best'; use one of optimal, caps"),
    *(
        (call, *refused)
        for call in (place, compare)
        for refused in (
            ({"seed": -1}, "seed is -1; it must be a whole number of at least 0."),
            ({"timeout_s": 0}, "The time limit is 0; give seconds above 0"),
            ({"timeout_s": 1e300}, r"The time limit is 1e\+300; give at most 604,800 seconds"),
        )
    ),
)


def test_every_method_places_all_tasks_and_none_sustains_more_than_the_optimum():
    known = given()
    rows = {row.placed.method: row for row in compare(known, draws=10).rows}
    assert rows["optimal"].median == max(row.highest for name, row in rows.items() if name != "odrp")
    assert rows["optimal"].placed.bound >= rows["optimal"].median
    assert rows["least-cost"].placed.cost.worst == min(row.placed.cost.worst for row in rows.values())
    assert (rows["optimal"].draws, rows["random"].draws) == (1, 10)
    rates = [plan.rate.rate for plan in rows["random"].plans]
    assert (rows["random"].lowest, rows["random"].highest) == (min(rates), max(rates))
    for method in METHODS:
        placed = place(known, method, seed=3, timeout_s=20)
        assert placed.problem.checked(placed.counts).sum() == placed.problem.tasks
        assert placed.cost == placed.problem.cost(placed.counts)
        assert placed.rate.rate > 0
        assert placed.method == method
    assert place(known).method == "optimal"
    assert place(known).counts.tolist() == optimal(known.problem, worker=known.worker).counts.tolist()
    assert place(known, "least-cost").cost == optimal(known.problem, objective="cost").cost
    assert place(known, "caps-all").rate.rate == pytest.approx(place(known).rate.rate)


def test_chance_follows_its_seed():
    known = given()
    plans = [place(known, "random", seed=seed).counts.tolist() for seed in (1, 1, *range(8))]
    assert plans[0] == plans[1]
    assert plans.count(plans[0]) < len(plans)


def test_flink_places_several_queries_one_after_the_other_in_random_order():
    one = PlacementProblem((2, 3, 1), [(0, 1), (1, 2)], 4, 3, (0.4, 0.6, 0.1), (0, 5, 0), (10, 2, 0))
    counts = [place(PlacementInput({"x": one, "y": one}), "flink-default", seed=seed).counts for seed in range(20)]
    places = {(tuple(plan[:3].sum(axis=0)), tuple(plan[3:].sum(axis=0))) for plan in counts}
    assert places == {((0, 0, 3, 3), (3, 3, 0, 0)), ((3, 3, 0, 0), (0, 0, 3, 3))}


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("caps-all", r"^No plan was found within the time limit; give more time, or use another method\.$"),
        (
            "caps",
            r"thresholds 0\.1, 1, 1 was found in the time limit; give more time, raise them, or leave them out to have",
        ),
    ],
)
def test_out_of_time_says_so(monkeypatch, method, message):
    def late(_problem, *, thresholds, **_options):
        return SearchResult(0, (), None, 1, exhausted=False, within=thresholds)

    known = given()
    place(known, "caps")  # compiles the searches
    monkeypatch.setattr(methods, "caps", late)
    with pytest.raises(WorkbenchError, match=message):
        place(known, method, thresholds=CostVector(0.1, 1, 1))


def test_the_command_tells_what_was_refused_and_writes_no_plan_of_it(capsys, tmp_path):
    call = ["place", str(written(tmp_path, PROBLEM)), "--compare", "--draws", "2", "--thresholds", "0,0,0"]
    assert cli.main(call) == 0
    assert "note: caps-first found no plan. No plan meets the thresholds 0, 0, 0; raise them" in capsys.readouterr().out
    assert cli.main([*call, "--json"]) == 0
    rows = {row["method"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["caps"]["refused"].startswith("No plan meets the thresholds")
    assert "refused" not in rows["optimal"]
    assert set(rows) == set(METHODS)
    assert cli.main([*call, "--method", "caps", "--flink", str(tmp_path / "plan.csv")]) == 2
    assert "--flink has no plan to write: caps: No plan meets the thresholds 0, 0, 0" in capsys.readouterr().err
    assert not (tmp_path / "plan.csv").exists()


def test_group_methods_keep_more_traffic_on_workers_than_even_spreading():
    problem = PlacementProblem((4, 4, 4), [(0, 1), (1, 2)], 4, 4, (1, 1, 1), (0, 0, 0), (100, 10, 0))
    job = group_job(problem)
    drawn = [place(PlacementInput({"q": problem}), "flink-evenly", seed=seed).counts.tolist() for seed in range(20)]
    spread = sum(map(job.gain, drawn)) / len(drawn)
    for method in GROUP_METHODS:
        placed = place(PlacementInput({"q": problem}), method)
        assert problem.checked(placed.counts).sum() == 12
        assert job.gain(placed.counts.tolist()) > spread
    assert "of the traffic stays on workers; workers filled to" in placed.note
    unknown = PlacementProblem((3, 3), [(0, 1)], 2, 3, (0, 0), (0, 0), (5, 0))  # whose loads are: slots are filled
    assert unknown.checked(place(PlacementInput({"q": unknown}), "top-down").counts).sum() == 6


@pytest.mark.parametrize("seed", range(6))
def test_the_groups_method_keeps_as_much_traffic_as_the_optimum(seed):
    """The optimum by enumeration, within the load that the method allowed itself."""
    random = np.random.default_rng(seed)
    tasks = tuple(int(n) for n in random.integers(1, 4, 3))
    loads = [random.uniform(0.2, 1.0, 3), (0, 0, 0), random.uniform(1, 20, 3)]
    problem = PlacementProblem(tasks, [(0, 1), (1, 2), (0, 2)], 3, 4, *loads)
    placed = place(PlacementInput({"q": problem}), "best-groups")
    job = group_job(problem)
    noted = float(placed.note.rsplit("to ", 1)[1].split()[0])
    alpha = 1.1 ** round(math.log(noted) / math.log(1.1))
    filled = alpha * sum(job.processing_cost) / 3
    share = [max(cost, sum(job.processing_cost) / 3 / 4) for cost in job.task_cost]
    best = max(
        job.gain(counts)
        for counts in (np.array(plan).T for plan in all_plans(problem))
        if (np.array(share) @ counts <= filled * (1 + 1e-9)).all()
    )
    assert job.gain(placed.counts.tolist()) == pytest.approx(best, rel=0.02)
