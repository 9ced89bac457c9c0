"""What the steady state of the fluid engine says that queries carry, without noise; and random queries.

These are drawn from ranges that anything published falls into, and none of them is a preset.
"""

from dataclasses import replace

import numpy as np
from replayed import chain

from workbench.capacity import Allocation, bids2
from workbench.dataflow import OperatorProfile
from workbench.simulation import Deployment, OperatorModel, StateModel, steady_state
from workbench.simulation.model import input_ratios


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
    keep_state = [name for name, one in operators.items() if one.profile.state_bytes > 0]
    made = chain(stateful=keep_state, window_s=10.0 if windowed else None, **operators)
    return replace(made, live_mb=random.uniform(0, 60), noise=10 ** random.uniform(-1.5, -0.7))


def dealt(query, memory_mb, slots) -> Allocation:
    """Tasks and objective by BIDS2, with the rates of one task per operator: as the optimizer deals them out."""
    minimal = steady_state(Deployment(query, query.minimal_layout, memory_mb))
    ratios = input_ratios(query)
    rates = {name: ratios[name] / work if work > 0 else None for name, work in minimal.work_s.items()}
    return bids2(rates, {name: ratios[name] for name in rates}, slots)


def true_capacity(query, memory_mb, layout, cpus=1.0):
    """Rate in records/s of a query with `layout`, tasks by operator without sources, on slots of a profile."""
    return steady_state(Deployment(query, layout, memory_mb, cpus)).rate


def capacity(query, memory_mb, slots):
    """Give what a deployment really carries, records/s."""
    return true_capacity(query, memory_mb, dealt(query, memory_mb, slots).tasks)
