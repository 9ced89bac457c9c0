"""A capacity predicted from small budgets, compared with a measured one: at most four slots of 0.2 core, then eight.

    python benchmarks/extrapolation.py [nexmark:q1 nexmark:q5]

It runs on real Spark, so run nothing else on the machine. The model is fitted to the small budgets only; the large one
is a new deployment. If no CPU quota is permitted, the simulated engine replaces Spark, and the output says so.
Measurements are kept in .workbench/benchmark, and an interrupted benchmark continues from there.
"""

import sys
from pathlib import Path

from workbench.doctor import quota_permitted
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.study import Study, prepare
from workbench.views import units

MEMORY_MB = 1024  # one smaller slot has no room for Spark's heap
SPARK_SLOTS = (1, 2, 4)


def show(run):
    if run.failure:
        print(f"  {run.budget.slots} slots: not measured: {run.failure}", flush=True)
        return
    seen = run.estimate.observation
    throttled = seen.quota_throttled if seen else None
    interval = f", a next deployment {rates(run.interval.low, run.interval.high)}" if run.interval else ""
    print(
        f"  {run.budget.slots} slots: {units.rate(run.estimate.middle)}{interval}, limit {run.estimate.limit}, "
        f"throttled in {'an unknown share' if throttled is None else f'{throttled:.0%}'} of the periods",
        flush=True,
    )


def rates(low, high):
    return f"{units.rate(low)} to {units.rate(high)}"


def main(queries):
    quota = quota_permitted()
    small = SPARK_SLOTS if quota else (4, 8, 16)
    print("measured on Spark" if quota else "no CPU quota on this machine: simulated, up to 16 slots, then 32")
    folder = Path(".workbench/benchmark")
    folder.mkdir(parents=True, exist_ok=True)
    for name in queries:
        study = Study(
            query=name,
            targets=(1e5,),
            slots=small,
            memory_mb=(MEMORY_MB,),
            testbed="spark" if quota else "fluid",
            slot_cpus=0.2,
            choice="edge",
            most_runs=3,
        )
        query, explorer, _ = prepare(study, Journal(folder / f"extrapolation-{name.replace(':', '-')}.jsonl"))
        print(name, flush=True)
        exploration = explorer.run(query)
        for run in exploration.measurements:
            show(run)
        measured = explorer.optimizer.measure(query, study.space.budget(2 * small[-1], MEMORY_MB))
        show(measured)
        there = [(MEMORY_MB, measured.budget.slots)]
        (predicted,) = exploration.model.predict(there)
        (low,), (high,) = exploration.model.interval(there)
        found = measured.estimate.middle
        print(
            f"  predicted {units.rate(predicted)} (90 % interval {rates(low, high)}), measured {units.rate(found)}: "
            f"{predicted / found - 1:+.1%}",
            flush=True,
        )


if __name__ == "__main__":
    try:
        main(sys.argv[1:] or ["nexmark:q1", "nexmark:q5"])
    except WorkbenchError as error:
        sys.exit(str(error))
