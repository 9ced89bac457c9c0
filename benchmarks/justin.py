"""Justin's Figure 5 by simulation: steps, cores and memory of DS2 and Justin on q1, q3, q5, q11 and q8.

    python benchmarks/justin.py

The model is section 5's set-up: one source outside the count, a sink of one task, workers of 4 cores and 2 GB
with 158 MB of managed memory per slot, 2 min windows after 1 min, busyness kept within 20 to 80 %. Costs are not
published. They are chosen so that at the target rate, with all state in memory, the main operator needs the tasks that
the paper reports for Justin (for DS2 if memory does not matter). For q11 and q8 the working set just fits the reported
configuration (6; 316 MB and 12; 316 MB), and a record whose state is missed takes five times as long: the least that
makes (12; 158) and (24; 158), DS2's reported configurations, necessary there.

Differences from the paper, with the reasons:

- The reported levels of q11 and q8 need two levels (Algorithm 1 with three goes on to 632 MB; see `justin`).
- DS2 cannot settle at (12; 158): if a hit rate that grows with the memory per state makes 6 tasks of 316 MB equal to 12
  of 158 MB, one more task of 158 MB saves the others more work than one task does (the slope of DS2's map there is
  below -1.2), so DS2 overshoots and returns until busyness happens to be within its band. In the paper the state grows
  while DS2 scales; here it is there from the start.
- Steps are fewer on q3: the stateless operators are never short of anything here, and one estimate suffices but for the
  exchange that the first task does not pay.
- Memory is summed over tasks (354 MB and the managed memory) and over complete workers; the paper's totals do not
  follow from its profiles.
"""

from dataclasses import replace
from itertools import pairwise

from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.scaling import JUSTIN, Decision, Ds2Policy, Fleet, JustinPolicy, JustinVariant, WorkerShape, replay
from workbench.simulation import OperatorModel, QueryModel, RateTrace, StateModel

BASE_MB = 158.0
BESIDE_MB = (2048 - 4 * BASE_MB) / 4
FLEET = Fleet(WorkerShape(4.0, 2048.0), BESIDE_MB)
SECONDS = 3600
RATE = 1e5

PAPER = {  # main operator (tasks; MB) and reconfigurations, as far as the text gives them
    "q1": ("(7; 158) 2", "(7; -) 2"),
    "q3": ("(12; 158) 3", "(12; 158) 3"),
    "q5": ("(24; 158)", "(24; 158)"),
    "q11": ("(12; 158) 3", "(6; 316) 3"),
    "q8": ("(24; 158) 4 or 5", "(12; 316) 3 or 4"),
}


def query(name, tasks, working_set_mb, before=()):
    """Stateless operators, a main operator that needs `tasks` at 80 % busyness with its state in memory, and a sink."""
    cpu_s = 0.8 * (tasks - 0.1) / RATE
    names = ("source", *before, "main", "sink")
    stateful = working_set_mb is not None
    state = StateModel(working_set_mb, miss_s=4 * cpu_s) if stateful else None
    flow = Dataflow(
        name,
        tuple(
            Operator(one, "source" if one == "source" else "map", stateful=one == "main" and stateful) for one in names
        ),
        tuple(Edge(*pair) for pair in pairwise(names)),
    )
    models = {one: OperatorModel(OperatorProfile(1e-6, 0, 100, 1.0)) for one in before}
    models["main"] = OperatorModel(OperatorProfile(0.8 * cpu_s, 0, 100, 0.1), exchange_s=0.2 * cpu_s, state=state)
    models["sink"] = OperatorModel(OperatorProfile(1e-6, 0, 0, 0))
    return QueryModel(flow, models)


QUERIES = {
    "q1": query("q1", 7, None),
    "q3": query("q3", 12, 8.0, ("filter persons", "filter auctions")),
    "q5": query("q5", 24, 10.0),
    "q11": query("q11", 6, 252.0 * 6),
    "q8": query("q8", 12, 252.0 * 12),
}
POLICIES = {
    "DS2": Ds2Policy,
    "Justin": JustinPolicy,
    "Justin, 2 levels": lambda settings: JustinPolicy(settings, max_level=2),
    "+ exceeds, 5 %, gives back": lambda settings: JustinPolicy(settings, JustinVariant("exceeds", 0.05, 0.95)),
}


def run(model, make):
    settings = replace(JUSTIN, utilization_target=0.8)
    start = Decision(dict.fromkeys(model.modelled, 1), dict.fromkeys(model.modelled, BASE_MB))
    trace = RateTrace.constant(RATE, SECONDS)
    return replay(trace, model, make(settings), start, memory_mb=BESIDE_MB, step_s=5.0, fleet=FLEET)


def main():
    print(f"{'':4} {'policy':28} {'main (p; MB)':14} steps  tasks  task MB  workers  GB paid  sustained  paper")
    for name, model in QUERIES.items():
        for label, make in POLICIES.items():
            line = run(model, make)
            last = line.reconfigurations[-1]
            memory = last.managed_mb["main"]
            paper = PAPER[name][label != "DS2"] if "+" not in label else ""
            used = sum(count * (BESIDE_MB + (last.managed_mb[one] or 0.0)) for one, count in last.tasks.items())
            kept = line.consumed[-60:].mean() / RATE
            path = " ".join(
                f"({change.tasks['main']};{change.managed_mb['main'] or 0:.0f})" for change in line.reconfigurations[:9]
            )
            main_now = f"({last.tasks['main']}; {memory:.0f})" if memory else f"({last.tasks['main']}; -)"
            print(
                f"{name:4} {label:28} {main_now:14} {len(line.reconfigurations):5}  {line.tasks[-1]:5}  {used:7.0f}  "
                f"{line.workers[-1]:7}  {line.paid_memory_mb[-1] / 1024:7.0f}  {min(kept, 1.0):9.1%}  {paper}"
            )
            print(f"{'':33} {path}")


if __name__ == "__main__":
    main()
