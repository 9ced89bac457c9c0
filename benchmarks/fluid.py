"""The speed of simulated time: a day of load at 1 s steps, and estimates on the presets.

Prints seconds; the second column of the day is simulated seconds per second.

    python benchmarks/fluid.py
"""

import math
import time
from itertools import pairwise

from workbench.dataflow import Budget, Dataflow, Edge, Operator, OperatorProfile, SlotProfile
from workbench.measuring import STATEFUL_QUERIES, CapacityEstimator
from workbench.simulation import (
    PRESETS,
    Deployment,
    OperatorModel,
    QueryModel,
    RateTrace,
    State,
    advance,
    preset,
    steady_state,
)
from workbench.testbed import FluidTestbed

DAY_S = 86_400


def chain(operators, window_s):
    names = [f"o{i}" for i in range(operators)]
    flow = Dataflow(
        "chain",
        (Operator("source", "source"), *(Operator(name, "map") for name in names)),
        tuple(Edge(*pair) for pair in pairwise(["source", *names])),
    )
    models = {
        name: OperatorModel(
            OperatorProfile(1e-5 * (1 + i % 3), 0.0, 0.0, 1.0 if i % 5 else 0.8),
            windowed=window_s is not None and i == operators // 2,
            imbalance=0.1,
        )
        for i, name in enumerate(names)
    }
    return QueryModel(flow, models, window_s)


def day(model, tasks, peak):
    deployment = Deployment(model, dict.fromkeys(model.modelled, tasks))
    rate = steady_state(deployment).rate
    due = RateTrace.diurnal(0.2 * rate, peak * rate, duration_s=DAY_S).per_step(1.0)
    state, backlog, started = State.empty(deployment), 0.0, time.perf_counter()
    for records in due:
        backlog += records
        state, step = advance(deployment, state, backlog, 1.0)
        backlog -= step.consumed
    return time.perf_counter() - started


def main():
    print("a day at 1 s steps, 20 operators of 25 tasks        seconds  simulated/s")
    for label, window_s, peak in (
        ("within capacity", None, 0.9),
        ("overloaded at noon", None, 1.5),
        ("a window of 10 s", 10.0, 0.9),
    ):
        seconds = day(chain(20, window_s), 25, peak)
        print(f"  {label:48} {seconds:7.2f} {DAY_S / seconds:12,.0f}")
    print("an estimate of 48 slots (simulated s)                adaptive        streambed")
    for query in PRESETS:
        model = preset(query)
        testbed = FluidTestbed()
        columns = []
        published = {"published": STATEFUL_QUERIES} if query in ("q5", "q8") else {}
        for settings in ({}, {"schedule": "streambed", **published}):
            started = time.perf_counter()
            with testbed.deploy(model, Budget(48, SlotProfile(1.0, 2048))) as run:
                found = CapacityEstimator(clock=testbed.clock, **settings).estimate(run)
            columns.append(f"{time.perf_counter() - started:7.3f} ({math.ceil(found.seconds):4})")
        print(f"  {query:48} {'  '.join(columns)}")


if __name__ == "__main__":
    main()
