"""Queries that share workers: no worker is overfull, and nobody could have more without taking from one with less."""

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from workbench.placement import PlacementProblem, query_by_query, random_slots, shared
from workbench.simulation import Worker

LOADS = st.floats(0.05, 0.9)


@st.composite
def tenants(draw):
    queries = {}
    for name in ("x", "y", "z")[: draw(st.integers(1, 3))]:
        tasks = draw(st.lists(st.integers(1, 3), min_size=2, max_size=2))
        cpu, io, net = (draw(st.lists(LOADS, min_size=2, max_size=2)) for _ in range(3))
        queries[name] = PlacementProblem(tasks, [(0, 1)], 3, 6, cpu, io, net, operators=["a", "b"])
    worker = Worker(*(draw(st.floats(0.1, 3.0)) for _ in range(3)))
    return queries, worker, draw(st.integers(0, 99))


@examples(150)
@given(tenants())
def test_the_shares_are_max_min_fair(case):
    queries, worker, seed = case
    counts = query_by_query(queries, random_slots, np.random.default_rng(seed))
    found = shared(queries, dict.fromkeys(queries, 10.0), counts, worker)
    share = {name: outcome.throughput / 10 for name, outcome in found.items()}
    use = {name: problem.worker_loads(counts[2 * i : 2 * i + 2]) for i, (name, problem) in enumerate(queries.items())}
    capacity = np.array([worker.cpus, worker.io_bytes_per_s, worker.net_bytes_per_s])[:, None]
    total = sum(share[name] * use[name] for name in queries)
    assert (total <= capacity * (1 + 1e-9)).all()
    full = total >= capacity * (1 - 1e-9)
    for name, part in share.items():
        assert abs(found[name].back_pressure - (1 - part)) <= 1e-9
        if part >= min(1, 1 / max(queries[name].cpu)) - 1e-9:
            continue
        most = [
            all(part >= share[other] - 1e-9 for other in queries if use[other][resource, at] > 0)
            for resource, at in zip(*np.nonzero(full & (use[name] > 0)), strict=True)
        ]
        assert any(most), f"{name} could have more"
