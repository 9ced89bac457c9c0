"""CAPSys's queries, and what placements do to them (sections 3.2, 3.3, 6.2)."""

import numpy as np
import pytest
from placement_oracle import all_plans

from workbench.errors import WorkbenchError
from workbench.placement import (
    PlacementProblem,
    calibrated_worker,
    optimal,
    placed_rate,
    random_slots,
    shared,
    simulated,
)
from workbench.simulation import CAPSYS_QUERIES, Worker, capsys_query

Q1_TASKS = {"source": 2, "transform": 5, "sliding window": 8, "sink": 1}


def placed(query, tasks=None, workers=4, slots=8, rate=None, *, speeds=None):
    tasks = tasks or query.tasks
    flow, rates = query.model.dataflow, query.rates(rate)
    return PlacementProblem.from_dataflow(flow, query.profiles, rates, workers, slots, parallelism=tasks, speeds=speeds)


@pytest.mark.parametrize("name", CAPSYS_QUERIES)
def test_loads_are_the_published_ones(name):
    query = capsys_query(name)
    problem = placed(query)
    assert problem.tasks <= 32
    assert max(problem.cpu) < 1
    assert query.rate_for(query.tasks) == query.rate
    loads = {"Q1-sliding": 666.877, "Q2-join": 1880.537, "Q3-inf": 1045.162}
    if name in loads:
        assert 2000 * max(problem.cpu) == pytest.approx(loads[name])


def test_the_source_of_the_inference_sends_images_and_an_unknown_query_is_named():
    assert capsys_query("Q3-inf").profiles["source"].output_bytes == pytest.approx(8 * 3 * 128 * 128, rel=0.01)
    with pytest.raises(WorkbenchError, match=r"no query 'Q7'; it has Q1-sliding, Q2-join"):
        capsys_query("Q7")


def test_exactly_the_three_balanced_plans_of_q1_meet_the_target():
    query = capsys_query("Q1-sliding")
    rate = query.rate_for(Q1_TASKS)
    problem = placed(query, Q1_TASKS, 4, 4, rate)
    worker = calibrated_worker(problem)
    plans = [np.array(plan).T for plan in all_plans(problem)]
    rates = [simulated(query.model, problem, counts, rate, worker).throughput for counts in plans]
    balanced = [bool((counts[2] == 2).all()) for counts in plans]
    assert len(plans) == 80
    assert sum(balanced) == 3
    assert [got == pytest.approx(rate) for got in rates] == balanced
    assert min(rates) < 0.7 * rate  # Figure 2: 9k of 14k


def test_a_large_worker_does_not_run_a_task_faster():
    query = capsys_query("Q3-inf")
    problem = placed(query, slots=32, speeds=[2, 1, 1, 1])
    counts = np.outer(problem.parallelism, [1, 0, 0, 0])
    target = 10 * query.rate
    rate = placed_rate(problem, counts, query.rate, Worker()).rate
    assert rate == pytest.approx(query.rate / max(problem.cpu))
    assert simulated(query.model, problem, counts, target, Worker()).throughput == pytest.approx(rate)
    offered = placed(query, slots=32, speeds=[2, 1, 1, 1], rate=target)
    assert shared({"q": offered}, {"q": target}, counts, Worker())["q"].throughput == pytest.approx(rate)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda q, p, c: simulated(q.model, p, c, 0, Worker()), "The target is 0; it must be a finite number above 0"),
        (lambda _, p, c: shared({"q": p}, {"q": float("nan")}, c, Worker()), "target of query 'q' is nan; it must be"),
        (lambda _, p, c: shared({"q": p}, {}, c, Worker()), "Targets are given for none; the queries are q: give one"),
        (lambda _, p, c: shared({"q": p}, {"q": 1, "r": 1}, c, Worker()), "given for q, r; the queries are q"),
    ],
)
def test_targets_that_are_none_are_refused(call, message):
    query = capsys_query("Q3-inf")
    problem = placed(query)
    with pytest.raises(WorkbenchError, match=message):
        call(query, problem, random_slots(problem, np.random.default_rng(0)))


@pytest.mark.parametrize("speeds", [None, [2, 1, 1, 0.5]])
@pytest.mark.parametrize("name", CAPSYS_QUERIES)
def test_the_engine_and_the_fullest_worker_agree(name, speeds):
    query = capsys_query(name)
    problem = placed(query, speeds=speeds)
    random = np.random.default_rng(1)
    for _ in range(5):
        worker = Worker(*random.uniform(0.6, 1.4, 3) * (1.9, 1.2e8, 6e7))
        counts = random_slots(problem, random)
        share = min(1, placed_rate(problem, counts, query.rate, worker).rate / query.rate)
        got = simulated(query.model, problem, counts, query.rate, worker)
        assert got.throughput == pytest.approx(share * query.rate)
        assert got.back_pressure == pytest.approx(1 - share)
        together = shared({name: problem}, {name: query.rate}, counts, worker)
        assert together[name].throughput == pytest.approx(got.throughput)


def test_a_calibrated_cluster_just_carries_a_balanced_plan():
    query = capsys_query("Q5-aggregate")
    problem = placed(query)
    worker = calibrated_worker(problem)
    balanced = optimal(problem, worker=Worker(io_bytes_per_s=1.0)).counts
    assert problem.worker_loads(balanced)[1].max() <= worker.io_bytes_per_s * (1 + 1e-9)
    random = np.random.default_rng(0)
    plans = [balanced, *(random_slots(problem, random) for _ in range(20))]
    rates = [simulated(query.model, problem, counts, 1.02 * query.rate, worker).back_pressure for counts in plans]
    assert min(rates) > 0.01  # 2 % more than the target is more than any plan carries
