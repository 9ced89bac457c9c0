import math
import re

import pytest

from workbench.errors import WorkbenchError
from workbench.papers import optimal_allocation, random_jobs, reallocate
from workbench.placement import Job, best_allocation, naive, task_level, top_down

PROPORTIONAL = Job((4, 8), (80, 80), ((0, 1, 100),))
LARGE_PORTION = Job((1, 5), (10, 100), ((0, 1, 10),))
THREE = Job((3, 6, 2), (30, 60, 20), ((0, 1, 18), (1, 2, 12)))
# Figure 2: every group fills a node; the third pair communicates much less than the others
FIGURE_2 = Job((10, 20, 10, 10), (40, 40, 40, 40), ((0, 1, 10), (1, 2, 9.9), (2, 3, 1)))


def links(answer, i, j):
    return sum(a * b for a, b in zip(answer.counts[i], answer.counts[j], strict=True))


def test_examples_of_top_down_and_of_the_others():
    answer = top_down(PROPORTIONAL, (60, 60, 60))
    assert (answer.counts, answer.gain, answer.unplaced) == (((2, 1, 1), (2, 3, 3)), 31.25, {})
    answer = top_down(LARGE_PORTION, (50, 50, 50))  # not even one portion fits a node
    assert (answer.counts, answer.gain) == (((1, 0, 0), (2, 2, 1)), 4.0)
    assert top_down(THREE, (50, 50, 50)).gain == 10
    assert [allocate(PROPORTIONAL, (60,) * 3).gain for allocate in (task_level, naive)] == [25, 25]
    assert optimal_allocation(PROPORTIONAL, (60,) * 3).gain == 31.25
    assert optimal_allocation(LARGE_PORTION, (50,) * 3).gain == 4
    assert [allocate(THREE, (50,) * 3).gain for allocate in (optimal_allocation, best_allocation)] == [12, 12]


def test_figure_2():
    answer = top_down(FIGURE_2, (40,) * 4)
    assert links(answer, 0, 1) == 100
    assert answer.unplaced == {}
    by_task = task_level(FIGURE_2, (40,) * 4, order="diagonal")
    assert by_task.counts[:2] == ((7, 3, 0, 0), (6, 14, 0, 0))  # as Example 2 of the paper
    assert links(by_task, 0, 1) == 84


def test_a_job_that_fits_one_node_goes_there_and_a_packing_is_found_that_top_down_does_not_find():
    job = Job((2, 3, 1), (10, 15, 5), ((0, 1, 3), (1, 2, 3)))
    for allocate in (top_down, task_level, naive, best_allocation):
        assert allocate(job, (30, 30)).gain == pytest.approx(6)
    # 8 fills the second node, 5 + 4 the first; top-down spreads by room and puts the 8 on the first
    job = Job((1, 1, 1), (8, 5, 4), ((0, 1, 10),))
    for allocate in (top_down, task_level, naive):
        assert allocate(job, (9, 8)).unplaced == {2: 1}
    assert best_allocation(job, (9, 8)).counts == ((0, 1), (1, 0), (1, 0))


def test_fused_nodes():
    # two pairs are placed apart; the edge between them fuses their nodes, whole
    job = Job((1, 1, 1, 1), (10, 10, 10, 10), ((0, 1, 100), (2, 3, 90), (1, 2, 1)))
    assert top_down(job, (20, 40, 40)).counts == ((0, 0, 1),) * 4  # ties: into the node of the second group
    assert task_level(job, (20, 40, 40)).counts == ((0, 1, 0),) * 4  # into the node of the first task
    for allocate in (top_down, task_level):
        assert allocate(job, (30, 30, 30)).gain == 190  # does not fit
        assert allocate(job, (40, 25, 30)).counts == ((1, 0, 0),) * 4  # the smaller node is emptied


def test_all_hosts_of_an_allocated_group_are_tried():
    # group 1 lies half on each node when group 2 comes; both halves get a task of group 2
    job = Job((2, 2, 2), (60, 60, 20), ((0, 1, 100), (1, 2, 10)))
    assert top_down(job, (80, 80)).gain == pytest.approx(100 / 4 * 2 + 10 / 4 * 2)


def test_a_job_that_does_not_fit_is_divided_by_the_greatest_common_divisor():
    job, capacity = Job((1, 1), (120, 90), ((0, 1, 10),)), (60, 90, 60)
    assert top_down(job, capacity).unplaced
    divided = job.divided(capacity)
    assert (divided.sizes, divided.task_cost) == ((4, 3), (30, 30))
    answer = top_down(divided, capacity)
    assert answer.unplaced == {}
    assert [sum(30 * row[node] for row in answer.counts) for node in range(3)] == [60, 90, 60]
    for cost, message in ((1.5, "A cost or a capacity is 1.5"), (0, "All costs and capacities are 0")):
        with pytest.raises(WorkbenchError, match=message):
            Job((1,), (cost,), ()).divided((0,))


def test_priorities():
    # per task pair the first edge is heavier, per unit of cost the second
    job = Job((1, 1, 10), (100, 100, 10), ((0, 1, 10), (1, 2, 9)))
    assert [edge[:2] for edge in job.by_priority("imc")] == [(0, 1), (1, 2)]
    assert [edge[:2] for edge in job.by_priority("rs")] == [(1, 2), (0, 1)]


def test_on_the_random_graphs_of_section_7_3_the_best_found_is_near_the_optimum():
    """What the paper's own algorithms reach there is among its headlines."""
    jobs, capacity = random_jobs(120, seed=73)
    best, optimum = (sum(use(job, capacity).gain for job in jobs) for use in (best_allocation, optimal_allocation))
    assert best >= 0.995 * optimum


@pytest.mark.parametrize(("cost", "factor", "gain"), [(200, 0.25, 20), (50, 4, 20)])
def test_reallocation_when_the_rate_falls_to_one_node_or_rises_from_it(cost, factor, gain):
    before, capacity = Job((4, 4), (cost, cost), ((0, 1, 0.4 * cost),)), (100,) * 4
    change = reallocate(before.scaled(factor), capacity, top_down(before, capacity).counts)
    assert (change.allocation.unplaced, change.moved) == ({}, 6)  # one node keeps its own two
    assert change.allocation.gain == pytest.approx(gain)


def test_reallocation_moves_nothing_for_the_same_job():
    job = Job((4, 4, 2), (200, 200, 20), ((0, 1, 80), (1, 2, 10)))
    here = top_down(job, (100, 120, 100, 100, 50))
    mirrored = [tuple(reversed(row)) for row in here.counts]
    change = reallocate(job, (50, 100, 100, 120, 100), mirrored)
    assert change.moved == 0


TWO = ((1, 1), (1, 1))  # groups, and their costs


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (((), (), ()), "The job has no groups; give it at least one."),
        (((1, 2), (1,), ()), "The job has 2 sizes and 1 processing costs; give one of each per group."),
        (((0,), (1,), ()), "The number of tasks of group 0 is 0; it must be a whole number of at least 1."),
        (((1,), (math.nan,), ()), "The processing cost of group 0 is nan; it must be a finite number of at least 0."),
        ((*TWO, ((0, 2, 1),)), "Edge (0, 2) names the unknown group 2; the groups are 0 to 1."),
        ((*TWO, ((0, 1),)), "Edge (0, 1) is not (i, j, c): give two groups and the bytes/s that they exchange."),
        ((*TWO, ((1, 1, 1),)), "Edge (1, 1) joins a group to itself; leave it out."),
        ((*TWO, ((0, 1, -1),)), "The communication of edge (0, 1) is -1.0; it must be a finite number of at least 0."),
    ],
)
def test_a_job_that_is_none_is_refused(given, text):
    with pytest.raises(WorkbenchError) as error:
        Job(*given)
    assert str(error.value) == text


MANY = Job((400,) * 3, (400,) * 3, ())


@pytest.mark.parametrize(
    ("use", "arguments", "text"),
    [
        (top_down, (THREE, ()), "There are no nodes; give the capacity of at least one."),
        (naive, (THREE, (1, math.inf)), "The capacity of node 1 is inf; it must be a finite number of at least 0."),
        (top_down, (THREE, (1,), "cpu"), "priority is 'cpu'; use one of 'rs', 'imc'."),
        (task_level, (THREE, (1,), "rs", "column"), "order is 'column'; use one of 'row', 'diagonal'."),
        (optimal_allocation, (THREE, (10, 20)), "The capacities are 10 to 20; the optimum is computed for equal nodes"),
        (optimal_allocation, (MANY, (10,) * 200), "The optimum needs 1.84e+10 steps per node and 2e+07 are allowed;"),
        (reallocate, (THREE, (50,) * 3, ((3, 0, 0), (6, 0, 0), (1, 0, 0))), "current places 1 tasks of group 2, which"),
        (
            reallocate,
            (THREE, (50,) * 3, ((3, 0, 0), (7, -1, 0), (2, 0, 0))),
            "The number of tasks of group 1 on node 1 is -1; it must be a whole number of at least 0.",
        ),
    ],
)
def test_what_cannot_be_allocated_is_refused(use, arguments, text):
    with pytest.raises(WorkbenchError, match=f"^{re.escape(text)}"):
        use(*arguments)
