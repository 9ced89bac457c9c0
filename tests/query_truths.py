"""Random queries and their runs, given in closed form by the steady state of the fluid engine, and what they can carry.

The queries are drawn from ranges that anything published falls into, and none of them is a preset: on them the beliefs
of `workbench.capacity.model.mechanism` are checked.
"""

from itertools import pairwise

import numpy as np

from workbench.capacity import bids2
from workbench.dataflow import Budget, Dataflow, Edge, Operator, OperatorProfile, SlotProfile
from workbench.metrics import Batch, Observation, OperatorMetrics
from workbench.records import Measurement, MstEstimate
from workbench.simulation import Deployment, OperatorModel, QueryModel, StateModel, steady_state
from workbench.simulation.waves import input_ratios

SECONDS = 1000.0


def chain(operators, **settings):
    """Query of operators in a row, by name; the last one is the sink."""
    names = ["source", *operators]
    flow = Dataflow(
        "chain",
        tuple(
            Operator(
                name, "source" if name == "source" else "operator", name in operators and keeps_state(operators[name])
            )
            for name in names
        ),
        tuple(Edge(upstream, downstream) for upstream, downstream in pairwise(names)),
    )
    return QueryModel(flow, operators, **settings)


def keeps_state(operator):
    return operator.profile.state_bytes > 0


def operator(cpu_s, selectivity=1.0, *, stateful=False, **mechanisms):
    """Give the model of an operator."""
    return OperatorModel(
        OperatorProfile(cpu_s, 100.0 if stateful else 0.0, 100.0 * selectivity, selectivity), **mechanisms
    )


def random_query(seed):
    """Draw a query of two to six operators, about half of them with state, some windowed, some with a hot key."""
    random = np.random.default_rng([1, seed])
    operators, windowed = {}, False
    for number in range(int(random.integers(1, 6))):
        cpu_s = 1e-6 * 10 ** random.uniform(-0.7, 1.3)
        mechanisms = {"exchange_s": cpu_s * random.choice([0.0, random.uniform(0, 0.8)])}
        stateful = random.random() < 0.45
        if stateful:
            mechanisms |= {
                "hot_share": random.choice([0.0, 0.0, 10 ** random.uniform(-4, -0.5)]),
                "imbalance": random.choice([0.0, random.uniform(0, 0.2), random.uniform(0, 0.2)]),
                "state": StateModel(
                    10 ** random.uniform(1, 4.3),
                    miss_s=cpu_s * random.uniform(0.1, 1.5),
                    locality=random.uniform(0, 0.5),
                ),
            }
            if random.random() < 0.5:
                windowed = True
                mechanisms |= {"windowed": True, "emission_s": cpu_s * random.uniform(0, 0.3)}
        operators[f"o{number}"] = operator(cpu_s, 10 ** random.uniform(-2, 0), stateful=stateful, **mechanisms)
    operators["sink"] = operator(0.15e-6, 0.0)
    return chain(
        operators,
        window_s=10.0 if windowed else None,
        live_mb=random.uniform(0, 60),
        noise=10 ** random.uniform(-1.5, -0.7),
    )


def dealt(query, memory_mb, slots):
    """Tasks by BIDS2, with the rates of one task per operator: as the optimizer deals them out."""
    minimal = steady_state(Deployment(query, query.minimal_layout, memory_mb))
    ratios = input_ratios(query)
    rates = {name: ratios[name] / work if work > 0 else None for name, work in minimal.work_s.items()}
    return bids2(rates, {name: ratios[name] for name in rates}, slots).tasks


def capacity(query, memory_mb, slots):
    """Give what a deployment really carries, records/s."""
    return steady_state(Deployment(query, dealt(query, memory_mb, slots), memory_mb)).rate


def run(query, memory_mb, slots, run_effect=1.0):
    """Measure `query`, where everything is `run_effect` times as fast as usual."""
    tasks = dealt(query, memory_mb, slots)
    deployment = Deployment(query, tasks, memory_mb)
    steady = steady_state(deployment)
    ratios = input_ratios(query)
    consumed = round(run_effect * steady.rate * SECONDS)
    seen = []
    for one in query.dataflow.operators[1:]:
        where = deployment.slices[one.name]
        useful_s = consumed * steady.work_s[one.name] / run_effect
        records = round(consumed * ratios[one.name])
        shares = deployment.shares[where]
        seen.append(
            OperatorMetrics(
                one.name,
                one.kind,
                tasks[one.name],
                records,
                records,
                useful_s,
                min(1.0, useful_s / (tasks[one.name] * SECONDS)),
                records / useful_s,
                useful_s,
                0,
                state_bytes=records if one.stateful else None,
                cache_hit_rate=float(shares @ deployment.hits[where]) if query.operators[one.name].state else None,
                key_skew=float(shares.max() * len(shares)) if len(shares) > 1 else None,
            )
        )
    batches = (Batch(0.0, 1.0, 0, 0, 0.0), Batch(SECONDS, 1.0, consumed, consumed, 0.0))
    observation = Observation(run_effect * steady.rate, SECONDS, batches, tuple(seen))
    rate = run_effect * steady.rate
    return Measurement(
        query.name,
        Budget(slots, SlotProfile(1.0, memory_mb)),
        MstEstimate(rate, rate * 0.9975, rate * 1.0025, (), observation, "query", 100.0),
        (),
        None,
        "closed form",
        "2024-01-01T00:00:00+00:00",
        tasks=tasks,
        testbed_kind="fluid",
    )


def explored(query, most, memory_mb=(1024, 4096), seed=None, slowing=0.0):
    """Runs that the explorer makes at the edge with ten calls; without a seed, none has a run effect.

    `slowing`: share by which each slot more slows all operators alike; no mechanism of the model is like that.
    """
    least = len(query.modelled)
    budgets = [(memory, slots) for slots in (least, most, (least + most) // 2, most, most) for memory in memory_mb]
    random = np.random.default_rng([2, 0 if seed is None else seed])
    spread = 0.0 if seed is None else np.sqrt(np.log1p(query.noise**2))
    speeds = np.exp(spread * random.standard_normal(len(budgets)) - spread**2 / 2)
    speeds /= [1 + slowing * slots for _, slots in budgets]
    return [run(query, memory, slots, speed) for (memory, slots), speed in zip(budgets, speeds, strict=True)]
