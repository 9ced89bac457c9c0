"""The runs behind CAPSys's recorded tables and figures (EuroSys '25), in the fluid engine.

``papers.py`` records them, and ``data/papers/capsys.toml`` says how they are drawn. The unit costs of Tables 3 and 4
and Figure 9 are fitted: such that the slots CAPSys gives Q3-inf at 4236 records/s (27 in Table 3, split into 6, 9, 6, 5
and 1 here) run at 94 % of what a task can do. For Table 4 and Figure 9 the paper does not say how many workers run;
here it is six of 4 cores and 8 slots (r5d.xlarge), which suffice for every rate if the load is balanced. Tasks of one
worker slow each other because eight slots share four cores. The strategies differ in placement alone; DS2's activation
is 90 s, its interval 5 s. The paper shows one run each; Flink's strategies are random, so Table 4 has several.
"""

import math
import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.papers import PAPERS, capsys
from workbench.placement import (
    CEILINGS,
    ODRP_SETTINGS,
    CostVector,
    PlacementProblem,
    calibrated_worker,
    odrp,
    placed_rate,
    query_by_query,
    search,
    shared,
    tune,
)
from workbench.scaling import AutoscalerSettings, Controller, Decision, Ds2Policy, ds2, replay
from workbench.simulation import CAPSYS_QUERIES, OperatorModel, QueryModel, RateTrace, Worker, capsys_query

_AT = 4236.0
_TASKS_AT_4236 = dict(zip(("read", "transform", "compress", "inference", "sink"), (6, 9, 6, 5, 1), strict=True))


def _fitted():
    """Unit costs of Q3-inf that are fitted to Table 3, and record sizes of the profile in proportion.

    The published profile is of 570 records/s, Table 3 of 4236: a record is taken for so much smaller.
    """
    query = capsys_query("Q3-inf")
    outputs = [profile.output_bytes * query.rate / _AT for profile in query.profiles.values()]
    return {
        name: OperatorProfile(0.94 * tasks / _AT if name != "sink" else 1e-4, 0.0, output, float(name != "sink"))
        for (name, tasks), output in zip(_TASKS_AT_4236.items(), outputs, strict=True)
    }


_FITTED = _fitted()
_COSTS = {name: profile.cpu_s for name, profile in _FITTED.items()}
_FLOW = Dataflow(
    "Q3-inf",
    (Operator("source", "source"), *(Operator(name, "map") for name in _FITTED)),
    tuple(Edge(*pair) for pair in zip(("source", *_FITTED), _FITTED, strict=False)),
)
_WORKERS, _SLOTS = 6, 8
_PLACING = {
    "CAPSys": "caps",
    "CAPSys as section 5.2": "caps",
    "Optimum (ours)": "optimum",
    "Default": "default",
    "Evenly": "evenly",
}
"""CAPSys tunes as its artefact does, which begins with ceilings, and as section 5.2 reads."""
_RATES = (720.0, 1440.0, 2880.0, 1440.0, 720.0)
_EVERY_S, _PERIOD_S = 60, 1200
_LIMIT_S, _SEEDS = 30.0, 5  # of a solver; runs of each of Flink's strategies
_SIZES = (1.0, 1.25)  # times the workers that the most even plan of all six queries just fills
_CASES = {"": math.inf, ", if two inference tasks get 1.5 times the rate of one (our assumption)": 1.5}
"""By the ending of a panel's title: times the rate of one inference task that two on a worker get at most."""


def _panels(number):
    return PAPERS["capsys"].figure(number).panels


def _columns(number, rows):
    """One series for each column of a table; where a logarithm is drawn, 0 is none."""
    for panel, values in zip(_panels(number), zip(*rows.values(), strict=True), strict=True):
        yield panel.series("ours", rows, (one or (None if panel.log_y else 0.0) for one in values))


def table_2(_):
    query = capsys_query("Q3-inf")
    tasks = dict(zip(query.tasks, (6, 10, 8, 4, 4), strict=True))  # 32 tasks with as many plans as the paper has
    problem = capsys.placed(query, 8, 4, tasks)
    rows = {}
    for limit in (None, 0.5, 0.2, 0.1, 0.05, 0.03, 0.01):
        limits = None if limit is None else CostVector(cpu=limit)
        plain, reordered = (search(problem, limits, reorder=reorder) for reorder in (False, True))
        rows["off" if limit is None else f"within {limit:g}"] = (plain.count, plain.nodes, reordered.nodes)
    yield from _columns("Table 2", rows)


def figure_8(_):
    queries = {name: capsys.placed(capsys_query(name), 18, 8) for name in CAPSYS_QUERIES}
    targets = {name: capsys_query(name).rate for name in CAPSYS_QUERIES}
    together = PlacementProblem.together(queries)
    least = calibrated_worker(together)
    draw = {label: partial(query_by_query, queries, one) for label, one in capsys.FLINK.items()}
    for place, size in enumerate(_SIZES):
        worker = Worker(size * least.cpus, size * least.io_bytes_per_s, least.net_bytes_per_s)
        for label, drawn in capsys.drawn_plans(together, worker, draw).items():
            outcomes = [shared(queries, targets, counts, worker) for counts in drawn]
            shares = {name: [100 * one[name].throughput / targets[name] for one in outcomes] for name in targets}
            held = {name: [100 * one[name].back_pressure for one in outcomes] for name in targets}
            yield from map(capsys.spread, _panels("Figure 8")[2 * place :], (label, label), (shares, held))


def table_3(_):
    """Q3-inf at 4236 records/s, with unit costs that are fitted to CAPSys's row."""
    query = capsys_query("Q3-inf")
    by_name = dict(zip(query.profiles, zip(_TASKS_AT_4236.values(), _FITTED.values(), strict=True), strict=True))
    profiles = {name: profile for name, (_, profile) in by_name.items()}
    flow, tasks = query.model.dataflow, {name: count for name, (count, _) in by_name.items()}
    problem = PlacementProblem.from_dataflow(flow, profiles, _AT, 4, 8, parallelism=tasks)
    worker = calibrated_worker(problem)
    capsys.caps_plan(problem, worker)  # compiled before it is timed
    begun = time.process_time()
    counts = capsys.caps_plan(problem, worker)
    seconds = time.process_time() - begun
    found = {"CAPSys": (placed_rate(problem, counts, _AT, worker).rate, problem.tasks, seconds)}
    for setting, weights in ODRP_SETTINGS.items():
        other = odrp(flow, profiles, _AT, 4, 8, weights=weights, most=16, fixed={"source": 6}, timeout_s=_LIMIT_S)
        sustained = placed_rate(other.problem, other.counts, _AT, worker).rate
        found[f"ODRP-{setting}"] = (sustained, other.problem.tasks, min(other.seconds, _LIMIT_S))
    rows = {
        name: (min(_AT, most), round(100 * (1 - min(1.0, most / _AT)), 6), slots, taken)
        for name, (most, slots, taken) in found.items()
    }
    yield from _columns("Table 3", rows)


def figure_10b(_):
    (panel,) = _panels("Figure 10b")
    shapes = ((8, 4), (4, 16), (8, 16), (16, 16), (16, 32), (16, 64))
    for name, bounds, ran in (("as printed", False, shapes[:4]), ("ours, with bounds", True, shapes)):
        times = {}
        for workers, slots in ran:
            begun = time.perf_counter()  # the clock of the probes' time limit
            tune(capsys.filled(workers, slots), timeout_s=5.0, bounds=bounds)
            times[workers * slots] = time.perf_counter() - begun
        yield panel.series(name, times, times.values())


def _profiles(together):
    """Unit costs; inference uses bytes/s of state as the resource that two of its tasks share, where they do."""
    shares = {"inference": 1.0} if math.isfinite(together) else {}
    return {name: replace(profile, state_bytes=shares.get(name, 0.0)) for name, profile in _FITTED.items()}


def _least(rate):
    """DS2's tasks without contention."""
    counters = {name: [(1.0, float(name != "sink"), seconds)] for name, seconds in _COSTS.items()}
    return dict(ds2(_FLOW, counters, {"source": rate}).parallelism)


@dataclass(frozen=True)
class _At:
    """Call `policy` only at given times."""

    policy: Ds2Policy
    times_s: tuple[float, ...]
    interval_s: float = 5.0

    def decide(self, window, memory):
        done, inner = memory or (0, None)
        wanted, inner = self.policy.decide(window, inner)
        if done < len(self.times_s) and window.now_s >= self.times_s[done]:
            return wanted, (done + 1, inner)
        return None, (done, inner)


def _controller(scaling, strategy, seed, together):
    worker = Worker(4.0, together / _COSTS["inference"], 1.25e9)
    placing, ceilings = _PLACING[strategy], CEILINGS if strategy == "CAPSys" else None
    return Controller(scaling, _profiles(together), _WORKERS, _SLOTS, worker, placing, seed, ceilings=ceilings)


def _model(together):
    return QueryModel(_FLOW, {name: OperatorModel(profile) for name, profile in _profiles(together).items()})


def _accuracy(strategy, seed, together):
    """Four pairs: target met, no task too many (section 6.4.1)."""
    trace = RateTrace.steps([(600.0, rate) for rate in _RATES])
    placing = _controller(Ds2Policy(), "Optimum (ours)", 0, together)  # "the optimal task placement"
    start = placing.begin(_FLOW, Decision(_least(_RATES[0])), {"source": _RATES[0]})
    once = _At(Ds2Policy(AutoscalerSettings()), tuple(600.0 * step + 120.0 for step in range(1, 5)))
    line = replay(trace, _model(together), _controller(once, strategy, seed, together), start, step_s=1.0)
    cells = []
    for step in range(1, 5):
        end = 600 * (step + 1)
        met = line.consumed[end - 180 : end].mean() >= 0.99 * _RATES[step]
        cells.append((bool(met), bool(line.tasks[end - 1] <= sum(_least(_RATES[step]).values()))))
    return cells


def table_4(_):
    steps = [f"{strategy} {step}" for strategy in _PLACING for step in range(1, 5)]
    for case, together in enumerate(_CASES.values()):
        shares = []
        for strategy, name in _PLACING.items():
            seeds = [0] if name in {"caps", "optimum"} else range(_SEEDS)
            shares += list(np.mean([_accuracy(strategy, seed, together) for seed in seeds], axis=0))
        for place, panel in enumerate(_panels("Table 4")[2 * case : 2 * case + 2]):
            yield panel.series("ours", steps, (100 * cell[place] for cell in shares))


def figure_9(_):
    """One run of each strategy: a high and a low rate in turn, every 20 min (section 6.4.2)."""
    periods = [2880.0, 720.0] * 3
    trace = RateTrace.steps([(float(_PERIOD_S), rate) for rate in periods])
    fewest = np.array([sum(_least(rate).values()) for rate in periods])
    ones = Decision(dict.fromkeys(_FITTED, 1))
    rate_over_time, tasks_over_time, decisions, too_many, at_target = _panels("Figure 9")
    minutes = [float(minute) for minute in range(1, len(periods) * _PERIOD_S // _EVERY_S + 1)]
    yield rate_over_time.series("target", minutes, np.repeat(periods, _PERIOD_S // _EVERY_S))
    for case, together in _CASES.items():
        counted = {decisions: [], too_many: [], at_target: []}
        for strategy in _PLACING:
            policy = _controller(Ds2Policy(AutoscalerSettings()), strategy, 0, together)
            line = replay(trace, _model(together), policy, ones, step_s=1.0)
            counted[decisions].append(float(len(line.reconfigurations)))
            counted[too_many].append(float((line.tasks[_PERIOD_S - 1 :: _PERIOD_S] - fewest).max()))
            counted[at_target].append(100 * float((line.consumed >= 0.99 * np.repeat(periods, _PERIOD_S)).mean()))
            if not case:
                spans = line.consumed.reshape(-1, _EVERY_S).mean(axis=1)
                yield rate_over_time.series(strategy, minutes, spans)
                yield tasks_over_time.series(strategy, minutes, line.tasks[_EVERY_S - 1 :: _EVERY_S])
        for panel, values in counted.items():
            yield panel.series(f"ours{case}", _PLACING, values)


RUNS = {
    "Table 2": table_2,
    "Figure 8": figure_8,
    "Table 3": table_3,
    "Table 4": table_4,
    "Figure 9": figure_9,
    "Figure 10b": figure_10b,
}
"""What makes each recorded result."""
