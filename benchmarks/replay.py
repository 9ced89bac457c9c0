"""CPU seconds to replay a day at 1 s steps with 20 operators and 500 tasks, with policies. Aim: 10 on one core.

python benchmarks/replay.py
"""

import time
from itertools import pairwise

from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.scaling import FLINK, JUSTIN, Decision, Ds2Policy, Fleet, JustinPolicy, Static, WorkerShape, replay
from workbench.simulation import Deployment, KeyTrace, OperatorModel, QueryModel, RateTrace, StateModel, steady_state

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


def main():
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
    main()
