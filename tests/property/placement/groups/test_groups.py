"""Allocations of groups against enumeration of all of them, and what each keeps whatever the job."""

from fractions import Fraction
from itertools import product

from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from workbench.papers import optimal_allocation
from workbench.placement import Job, best_allocation, naive, task_level, top_down
from workbench.placement.groups.job import Nodes

ALGORITHMS = {
    "naive": naive,
    "task level": task_level,
    "task level, communication, diagonal": lambda job, capacity: task_level(job, capacity, "imc", "diagonal"),
    "top down": top_down,
    "top down, communication": lambda job, capacity: top_down(job, capacity, "imc"),
    "best": best_allocation,
}


@st.composite
def jobs(draw, most_tasks=3):
    groups = draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(1, most_tasks), min_size=groups, max_size=groups))
    costs = [size * draw(st.integers(0, 6)) for size in sizes]
    pairs = [(i, j) for i in range(groups) for j in range(i + 1, groups)]
    edges = [(i, j, draw(st.integers(0, 20))) for i, j in pairs if draw(st.booleans())]
    return Job(tuple(sizes), tuple(costs), tuple(edges))


def exact_gain(job, counts):
    """Pairs of tasks on one node, one by one."""
    where = [[node for node, tasks in enumerate(row) for _ in range(tasks)] for row in counts]
    return sum(
        Fraction(c) / (job.sizes[i] * job.sizes[j]) * sum(a == b for a in where[i] for b in where[j])
        for i, j, c in job.edges
    )


def splits(tasks, nodes):
    """Every way to put `tasks` equal tasks on `nodes` nodes."""
    if nodes == 1:
        yield (tasks,)
        return
    for here in range(tasks + 1):
        yield from ((here, *rest) for rest in splits(tasks - here, nodes - 1))


def overloaded(job, counts, capacity):
    costs = [Fraction(cost) / size for cost, size in zip(map(int, job.processing_cost), job.sizes, strict=True)]
    return any(
        sum(cost * row[node] for cost, row in zip(costs, counts, strict=True)) > limit
        for node, limit in enumerate(capacity)
    )


@examples(60)
@given(job=jobs(), nodes=st.integers(1, 3), limit=st.integers(1, 20))
def test_optimum_is_enumeration(job, nodes, limit):
    capacity = (limit,) * nodes
    everything = product(*(splits(size, nodes) for size in job.sizes))
    possible = [exact_gain(job, counts) for counts in everything if not overloaded(job, counts, capacity)]
    answer = optimal_allocation(job, capacity)
    if not possible:
        assert answer.unplaced == dict(enumerate(job.sizes))
        return
    assert answer.unplaced == {}
    assert not overloaded(job, answer.counts, capacity)
    assert abs(answer.gain - max(possible)) < 1e-9
    best = best_allocation(job, capacity)
    assert bool(best.unplaced) or best.gain <= answer.gain + 1e-9


@examples(60)
@given(
    job=jobs(most_tasks=7), capacity=st.lists(st.integers(0, 25), min_size=1, max_size=4), seed=st.integers(0, 2**40)
)
def test_allocations_add_up_and_the_best_is_never_worse_than_top_down(job, capacity, seed):
    assume(max(capacity) > 0)
    for name, allocate in ALGORITHMS.items():
        answer = allocate(job, capacity)
        for group, (size, row) in enumerate(zip(job.sizes, answer.counts, strict=True)):
            assert len(row) == len(capacity), name
            assert min(row) >= 0, name
            assert sum(row) + answer.unplaced.get(group, 0) == size, name
        assert all(tasks > 0 for tasks in answer.unplaced.values()), name
        assert not overloaded(job, answer.counts, capacity), name
        assert abs(answer.gain - exact_gain(job, answer.counts)) < 1e-9, name
        assert answer == allocate(job, capacity), name
        if sum(job.processing_cost) <= max(capacity) and name != "naive":
            assert answer.unplaced == {}, name  # one node could hold all
    before, after = top_down(job, capacity), best_allocation(job, capacity, seed=seed)
    if not before.unplaced:
        assert after.unplaced == {}
        assert after.gain >= before.gain


@examples(100)
@given(job=jobs(), limits=st.lists(st.integers(1, 12), min_size=1, max_size=4))
def test_equal_tasks_fit_whenever_the_capacity_permits(job, limits):
    assume(0 < sum(job.processing_cost) <= sum(limits))
    divided = job.divided(limits)
    assert divided.processing_cost == job.processing_cost
    for allocate in (top_down, task_level):
        assert allocate(divided, limits).unplaced == {}


@examples(100)
@given(
    limits=st.lists(st.integers(0, 9).map(lambda tenths: tenths / 10), min_size=1, max_size=6),
    changes=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 9)), max_size=30),
)
def test_the_roomiest_node_is_the_first_of_those_with_most_room(limits, changes):
    """The heap against a scan, whatever is taken and moved in between."""
    assume(max(limits) > 0)
    nodes = Nodes(limits)
    for first, second, tenths in changes:
        out, into = first % len(limits), second % len(limits)
        if nodes.fits(out, tenths / 10):
            nodes.take(out, tenths / 10)
        elif out != into:
            nodes.move_all(out, into)
        most = max(nodes.free)
        assert nodes.roomiest() == next(node for node, free in enumerate(nodes.free) if free >= most - nodes.slack)
