"""Placement by brute force in exact rationals, task by task, and random small problems."""

from fractions import Fraction
from itertools import combinations, product

from hypothesis import strategies as st

from workbench.dataflow import Dataflow, Edge, Operator
from workbench.placement import PlacementProblem


class Counted(tuple):  # noqa: SLOT001 - it counts
    """Edges that count how often all of them are walked."""

    walks = 0

    def __iter__(self):
        self.walks += 1
        return super().__iter__()


def chain(*tasks):
    """Edges of a chain of operators."""
    return [(i, i + 1) for i in range(len(tasks) - 1)]


def flow_of(name, kinds, edges):
    """A dataflow of operators by name, each of a kind."""
    return Dataflow(name, tuple(Operator(*one) for one in kinds.items()), tuple(Edge(*edge) for edge in edges))


def example_a():
    """Example A of the reference: A(2) -> B(3) -> C(1) on two workers of three slots."""
    return PlacementProblem((2, 3, 1), [(0, 1), (1, 2)], 2, 3, (4, 6, 1), (0, 5, 0), (10, 2, 0))


def example_b(tasks, workers, slots):
    """Example B of the reference: a chain of five operators, the fourth of them stateful."""
    return PlacementProblem(
        tasks, chain(*tasks), workers, slots, (20, 55, 34, 90, 5), (0, 0, 0, 700, 0), (60, 25, 30, 4, 0)
    )


def all_plans(problem):
    """Every plan once, canonical, as a tuple of workers' count vectors."""
    vectors = [v for v in product(*(range(p + 1) for p in problem.parallelism)) if sum(v) <= problem.slots]
    vectors.sort(reverse=True)
    speeds = problem.speeds

    def extend(worker, left, before):
        if worker == problem.workers:
            if not any(left):
                yield ()
            return
        for index, vector in enumerate(vectors):
            # workers of a class need not be neighbours: compare with the last worker of the same speed
            if index < before.get(speeds[worker], 0) or any(v > r for v, r in zip(vector, left, strict=True)):
                continue
            rest = tuple(r - v for v, r in zip(vector, left, strict=True))
            for tail in extend(worker + 1, rest, {**before, speeds[worker]: index}):
                yield (vector, *tail)

    return list(extend(0, problem.parallelism, {}))


def exact_cost(problem, plan):
    """(cpu, io, net) of a plan by Equations 4 to 8, counting links task by task."""
    tasks = [(o, w) for o in range(len(problem.operators)) for w, vector in enumerate(plan) for _ in range(vector[o])]
    costs = []
    for dimension, given in enumerate((problem.cpu, problem.io, problem.net)):
        loads = [Fraction(load) for load in given]
        speeds = [Fraction(speed) for speed in problem.speeds]
        by_worker = [Fraction(0)] * problem.workers
        if dimension < 2:
            for operator, worker in tasks:
                by_worker[worker] += loads[operator]
            ideal = sum(loads[operator] for operator, _ in tasks) / sum(speeds)
        else:
            ideal = Fraction(0)
            by_worker = [_traffic(problem, tasks, loads, worker) for worker in range(problem.workers)]
        worst = sum(sorted((loads[operator] for operator, _ in tasks), reverse=True)[: problem.slots]) / min(speeds)
        bottleneck = max(load / speed for load, speed in zip(by_worker, speeds, strict=True))
        costs.append(Fraction(0) if worst == ideal else (bottleneck - ideal) / (worst - ideal))
    return tuple(costs)


def _traffic(problem, tasks, loads, here):
    """Output of the tasks on worker `here` that leaves it."""
    total = Fraction(0)
    for operator in range(len(problem.operators)):
        links = remote = 0
        for u, v, partitioning in problem.edges:
            if u != operator:
                continue
            senders = [worker for o, worker in tasks if o == u]
            receivers = [worker for o, worker in tasks if o == v]
            if partitioning == "shuffle":
                links += len(receivers)
                remote += sum(r != here for s in senders if s == here for r in receivers)
            else:
                links += 1
                remote += max(0, senders.count(here) - receivers.count(here))
        if links:
            total += loads[operator] * remote / links
    return total


def front(costs):
    """Indices of the cost vectors that no other dominates."""
    return [
        index
        for index, cost in enumerate(costs)
        if not any(other != cost and all(a <= b for a, b in zip(other, cost, strict=True)) for other in costs)
    ]


@st.composite
def problems(draw, *, most_operators=4, most_workers=4, most_slots=4, most_tasks=9, speeds=True):
    """Random small problems: several sources, forward edges, idle slots, zero loads, workers of unequal speeds."""
    workers, slots = draw(st.integers(1, most_workers)), draw(st.integers(1, most_slots))
    room = min(workers * slots, most_tasks)
    operators = draw(st.integers(1, min(most_operators, room)))
    tasks = [1] * operators
    for _ in range(draw(st.integers(0, room - operators))):
        tasks[draw(st.integers(0, operators - 1))] += 1
    edges = []
    for u, v in combinations(range(operators), 2):
        kind = draw(st.sampled_from(["none", "shuffle", "forward"]))
        if kind == "shuffle":
            edges.append((u, v))
        elif kind == "forward" and tasks[u] == tasks[v]:
            edges.append((u, v, "forward"))
    order = draw(st.permutations(range(operators)))  # operators come in any order
    place = {old: new for new, old in enumerate(order)}
    edges = [(place[u], place[v], *way) for u, v, *way in edges]
    loads = [draw(st.lists(st.integers(0, 6), min_size=operators, max_size=operators)) for _ in range(3)]
    speed = [draw(st.sampled_from([0.5, 1, 2, 4])) for _ in range(workers)] if speeds and draw(st.booleans()) else None
    return PlacementProblem([tasks[old] for old in order], edges, workers, slots, *loads, speed)
