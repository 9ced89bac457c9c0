"""The rate of a placement by hand; test_capsys_outcomes.py has it against the fluid engine."""

import math
from operator import call

import numpy as np
import pytest
from placement_oracle import flow_of
from refusals import refusals

from workbench.dataflow import OperatorProfile
from workbench.placement import PlacedRate, PlacementProblem, optimal, placed_rate, shape_spreads, spread
from workbench.simulation import Worker

PROFILES = {
    "parse": OperatorProfile(2e-5, 0.0, 200.0, 1.0),
    "count": OperatorProfile(4e-5, 300.0, 50.0, 0.5),
    "sink": OperatorProfile(1e-5, 0.0, 0.0, 0.0),
}
FLOW = flow_of(
    "chain",
    {"source": "source", "parse": "map", "count": "aggregate", "sink": "sink"},
    [("source", "parse"), ("parse", "count"), ("count", "sink")],
)
TASKS = {"parse": 2, "count": 4, "sink": 2}
RATE = 10_000.0


def problem(workers=2, slots=4, **more):
    return PlacementProblem.from_dataflow(FLOW, PROFILES, RATE, workers, slots, parallelism=TASKS, **more)


def test_the_fullest_worker_decides_by_hand():
    # parse 0.1, count 0.1, sink 0.025 cores per task: worker 0 has 2 parse and 2 count.
    found = placed_rate(problem(), [[2, 0], [2, 2], [0, 2]], RATE, Worker(cpus=0.4))
    assert found.worker == 0
    assert found.resource == "cpu"
    assert found.rate == pytest.approx(RATE * 0.4 / 0.4)
    io = placed_rate(problem(), [[1, 1], [3, 1], [0, 2]], RATE, Worker(io_bytes_per_s=1.5e6))
    assert (io.worker, io.resource) == (0, "io")
    assert io.rate == pytest.approx(RATE * 1.5e6 / (3 * 2_500 * 300))


def test_a_task_never_uses_more_than_a_core():
    found = placed_rate(problem(), [[1, 1], [2, 2], [1, 1]], RATE, Worker())
    assert found.resource == "task"
    assert found.rate == pytest.approx(RATE / 0.1)


def test_larger_workers_level_random_placement_out_and_a_seed_draws_the_same_again():
    core = Worker(cpus=0.12)
    shapes, again = (
        shape_spreads(problem(), RATE, core=core, shapes=[(8, 1), (4, 2), (2, 4)], samples=60) for _ in range(2)
    )
    assert (shapes[0].workers, shapes[0].slots) == (2, 4)
    assert shapes[0].quantile(0.1) >= shapes[-1].quantile(0.1)
    assert all(np.array_equal(one.rates, other.rates) for one, other in zip(shapes, again, strict=True))


IDLE = PlacementProblem((2,), [], 2, 1, (0,), (0,), (0,))


@pytest.mark.parametrize("worker", [Worker(), Worker(cpus=2.0)])
def test_a_plan_that_nothing_limits_sustains_any_rate(worker):
    found = optimal(IDLE, worker=worker)
    assert (found.value, found.bound, found.gap) == (0, 0, 0)
    assert placed_rate(IDLE, found.counts, RATE, worker) == PlacedRate(math.inf, None, None)


@pytest.mark.filterwarnings("error")
def test_unlimited_rates_have_quantiles_and_are_ranked_first():
    # one sender, one receiver, and only the network limits: on one worker nothing crosses it
    pair = PlacementProblem((1, 1), [(0, 1)], 2, 2, (0, 0), (0, 0), (100, 0))
    found = spread(pair, 1, Worker(net_bytes_per_s=50), samples=40)
    assert set(found.rates) == {0.5, math.inf}
    assert {found.quantile(share / 10) for share in range(11)} == {0.5, math.inf}
    shapes = shape_spreads(pair, 1, core=Worker(net_bytes_per_s=50), shapes=[(2, 1), (2, 2), (1, 2)], samples=40)
    assert [(one.workers, one.slots) for one in shapes] == [(1, 2), (2, 2), (2, 1)]
    assert [one.quantile(0.1) for one in shapes] == [math.inf, 1.0, 0.5]


test_rates_and_spreads_outside_their_range_are_refused = refusals(
    call,
    (lambda: placed_rate(IDLE, [[1, 1]], 0, Worker()), r"rate of the loads is 0; it must be a finite number above"),
    (lambda: spread(IDLE, 1, Worker(), samples=0), "samples is 0; it must be a whole number of at least 1."),
    (lambda: spread(IDLE, 1, Worker(), seed=-1), "seed is -1; it must be a whole number of at least 0."),
    (lambda: spread(IDLE, 1, Worker()).quantile(1.1), r"share of random placements is 1.1; it must be at least 0"),
)
