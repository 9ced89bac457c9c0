"""What policies that people run do to loads that others published, and CPU seconds to replay a day.

    python benchmarks/replay.py [policies] [speed]

`policies` replays a query in micro-batches of 10 s, of which a slot works off 11,100 records/s, from 12 slots on
workers of 4. The loads: 100 GB in 15 minutes and idle ones in between, as of a public case of dynamic allocation that
held 30 workers; a burst of 500 times the load after idle hours, as of a public case of Flink's autoscaler; and a day.
KEDA's lag threshold is its own of 10 records, and one of 100,000. `speed` is a day at 1 s steps with 20 operators and
500 tasks; aim: 10 CPU seconds on one core.
"""

import sys
import time
from itertools import pairwise

from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.scaling import (
    FLINK,
    JUSTIN,
    Decision,
    Ds2Policy,
    DynamicAllocation,
    Fleet,
    JustinPolicy,
    KafkaLag,
    Static,
    WorkerShape,
    replay,
)
from workbench.simulation import Deployment, KeyTrace, OperatorModel, QueryModel, RateTrace, StateModel, steady_state

SLOTS, PRICE, RATE = 4, 0.17, 111_000  # of a worker; USD an hour; records/s
LOADS = {
    "100 GB, then idle": RateTrace.steps([(1800, RATE), (900, 0), (900, RATE), (900, 0)]),
    "a burst after idle hours": RateTrace.steps([(6600, 1_000), (600, 500_000), (3600, 1_000)]),
    "a day": RateTrace.diurnal(0.1 * RATE, RATE),
}
SPARK = {"executor_slots": SLOTS, "tasks": 200, "shuffle_tasks": 104, "start_s": 30.0}
POLICIES = {
    "static, 12 slots": Static(),
    "dynamic allocation, at most 30": DynamicAllocation(max_executors=30, **SPARK),
    "dynamic allocation, at most 10": DynamicAllocation(max_executors=10, **SPARK),
    "dynamic allocation, 1 min for shuffles": DynamicAllocation(max_executors=30, shuffle_s=60.0, **SPARK),
    "KEDA, 10 records": KafkaLag(partitions=120),
    "KEDA, 100,000 records": KafkaLag(lag_threshold=1e5, partitions=120),
    "Flink's autoscaler": Ds2Policy(FLINK),
    "DS2": Ds2Policy(JUSTIN),
}


def policies():
    flow = Dataflow("job", (Operator("source", "source"), Operator("batch", "batch")), (Edge("source", "batch"),))
    model = QueryModel(flow, {"batch": OperatorModel(OperatorProfile(10 / RATE, 0, 0, 1.0))})
    fleet = Fleet(WorkerShape(SLOTS, 8192.0), 1024.0, price_per_hour=PRICE, currency="USD")
    for load, trace in LOADS.items():
        print(f"{load:40} keeps up  USD  p99 latency  changes  most slots")
        for label, policy in POLICIES.items():
            line = replay(trace, model, policy, {"batch": 12}, memory_mb=1024.0, fleet=fleet, batch_s=10.0)
            row = line.with_driver()
            print(
                f"  {label:40} {row['at_target']:6.1%} {row['cost']:7.2f} {row['latency_p99_s']:8.0f} s "
                f"{row['reconfigurations']:8} {line.tasks.max():8}",
                flush=True,
            )


OPERATORS, TASKS = 20, 25


def chain(window_s=None):
    names = [f"o{i}" for i in range(OPERATORS)]
    flow = Dataflow(
        "chain",
        (Operator("source", "source"), *(Operator(name, "map", stateful=i % 4 == 0) for i, name in enumerate(names))),
        tuple(Edge(*pair) for pair in pairwise(["source", *names])),
    )
    models = {
        name: OperatorModel(
            OperatorProfile(1e-5 * (1 + i % 3), 0.0, 0.0, 1.0 if i % 5 else 0.8),
            windowed=window_s is not None and i == OPERATORS // 2,
            imbalance=0.1,
            state=StateModel(4000.0, miss_s=1e-5) if i % 4 == 0 else None,
        )
        for i, name in enumerate(names)
    }
    return QueryModel(flow, models, window_s)


def speed():
    print(f"a day, {OPERATORS} operators, {OPERATORS * TASKS} tasks at first; CPU seconds, changes, mean tasks")
    fleet = Fleet(WorkerShape(4.0, 8192.0), 1024.0)
    for label, policy, window_s, keys in (
        ("static", Static(), None, None),
        ("static, a window of 10 s", Static(), 10.0, None),
        ("static, keys shuffled once a minute", Static(), None, {"o4": KeyTrace.zipf(10_000, 0.5, 1.0)}),
        ("DS2", Ds2Policy(JUSTIN), None, None),
        ("Flink's autoscaler", Ds2Policy(FLINK), None, None),
        ("Justin", JustinPolicy(JUSTIN), None, None),
    ):
        model = chain(window_s)
        tasks = dict.fromkeys(model.modelled, TASKS)
        managed = dict.fromkeys(tasks, 158.0)
        rate = steady_state(Deployment(model, tasks, 1024.0, managed_mb=managed)).rate
        trace = RateTrace.diurnal(0.2 * rate, 0.9 * rate)
        started = time.process_time()
        line = replay(
            trace, model, policy, Decision(tasks, managed), memory_mb=1024.0, step_s=1.0, keys=keys, fleet=fleet
        )
        seconds = time.process_time() - started
        print(f"  {label:64} {seconds:7.2f}  {len(line.reconfigurations):7}  {line.tasks.mean():10.0f}")


if __name__ == "__main__":
    for part in sys.argv[1:] or ("policies", "speed"):
        {"policies": policies, "speed": speed}[part]()
