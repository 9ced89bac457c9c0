"""The runs behind StreamBed's figures (section VIII), in the fluid engine on models of its five queries.

Explorations and checks take the published schedule of rates (`StreamBedSchedule`), on budgets of section VIII.
``papers.py`` records them, and `workbench.papers.streambed` draws what is recorded.
"""

import itertools
import math
import statistics
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from workbench.capacity import CapacityEstimator, CapacityModel, ConfigurationOptimizer, ResourceExplorer, Space
from workbench.capacity.explore import reasons
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import SIMPLE_QUERIES, STATEFUL_QUERIES
from workbench.papers import Series, streambed
from workbench.records import Measurement
from workbench.simulation import preset
from workbench.testbed import FluidTestbed

FACTORS = (1.0, 1.5)  # shares of the estimated MST that Figure 9 offers
MEMORIES = (512, 1024, 2048, 4096)  # MB per slot
TARGETS = (1.0, 1.2, 1.5)  # of the requested rate
GB, MANAGER = streambed.GB, streambed.MANAGER
_FOLLOWED = {"q1": 30, "q2": 30, "q5": 90, "q8": 120, "q11": 30}  # min, as published
_RAMP_S, _EVERY_S = 300.0, 300.0
_SEEDS, _GRID_MB, _MOST_COLUMNS, _MOST_SLOTS = 5, 512, 12, 1 << 20


@contextmanager
def _optimizer(query, testbed):
    """An optimizer that takes the published schedule, with a journal for as long as it is used."""
    times = STATEFUL_QUERIES if query in {"q5", "q8"} else SIMPLE_QUERIES
    estimator = CapacityEstimator(schedule="streambed", published=times, clock=testbed.clock)
    with tempfile.TemporaryDirectory() as folder:
        yield ConfigurationOptimizer(testbed, estimator, Journal(Path(folder) / "journal.jsonl"))


def loads(run, rate, settle_s, window_s):
    """Observe a deployment at each share of `rate`."""
    seen = {}
    for factor in FACTORS:
        run.set_rate(factor * rate)
        run.settle(settle_s)
        seen[factor] = run.observe(window_s)
    return seen


def checked(query):
    """Estimate the MST of sixteen budgets in the engine; offer it, and one and a half of it, to separate deployments.

    Yields
    ------
    The budget, its MST in records/s, and the observation at each of `FACTORS`.
    """
    space, testbed = Space(streambed.SLOTS[query], MEMORIES), FluidTestbed()
    with _optimizer(query, testbed) as optimizer:
        for budget in space.budgets:
            measured = optimizer.measure(preset(query), budget)
            rate = measured.estimate.rate if isinstance(measured, Measurement) else None
            if rate is None:
                continue
            with testbed.deploy(preset(query), budget, measured.tasks, repeat=1) as run:  # not the one estimated
                run.set_rate(float("inf"))
                run.settle(120)  # as published
                yield budget, rate, loads(run, rate, 30, 600)


def figure_9(query):
    """Share of the offered rate that each budget achieves, %, by share of its MST and memory."""
    found = {
        (factor, budget.profile.memory_mb, budget.slots): 100 * seen[factor].consumed_rate / seen[factor].commanded_rate
        for budget, _, seen in checked(query)
        for factor in FACTORS
    }
    for factor, memory in itertools.product(FACTORS, MEMORIES):
        shares = tuple(found.get((factor, memory, count)) for count in streambed.SLOTS[query])
        yield Series(f"{factor:.0%}".replace("%", " %"), f"{memory / GB:g} GB", streambed.SLOTS[query], shares)


def figure_11(query):
    """Rate and pending records of Table IV's deployments over the published time, after a ramp-up of 5 min.

    Records that are pending are given in seconds of the requested rate.
    """
    for cell, factor in itertools.product(streambed.published("iv", query), TARGETS):
        slots, memory = int(cell["slots"]), int(GB * float(cell["memory_gb_per_slot"]))
        requested = float(cell["requested_rate_records_per_s"])
        budget, tasks = Budget(slots, SlotProfile(1.0, memory)), streambed.tasks(query, memory, slots)
        with FluidTestbed(noise=0.0).deploy(preset(query), budget, tasks, repeat=0) as run:
            run.set_rate(factor * requested)
            run.settle(_RAMP_S)
            seen = [run.observe(_EVERY_S) for _ in range(int(60 * _FOLLOWED[query] / _EVERY_S))]
        minutes = tuple(_EVERY_S / 60 * (1 + place) for place in range(len(seen)))
        name = f"{100 * factor:.0f} %, {memory / GB:g} GB"
        yield Series("Rate", name, minutes, tuple(100 * one.consumed_rate / requested for one in seen))
        yield Series("Pending records", name, minutes, tuple(one.batches[-1].backlog / requested for one in seen))


def _space(query):
    (row,) = streambed.published("iii", query)
    least, most = (int(GB * float(row[f"{end}_memory_gb_per_slot"])) for end in ("min", "max"))
    slots = range(int(row["min_slots"]), int(row["max_slots"]) + 1)
    return Space(tuple(slots), tuple(range(least, most + 1, _GRID_MB)))


def explored(query, seed):
    """Explore a query as section VI does, in Table III's space; give also the calls of the optimizer."""
    with _optimizer(query, FluidTestbed(seed=seed)) as optimizer:
        explorer = ResourceExplorer(optimizer, _space(query), seed, form="halves")
        return explorer.run(preset(query)), explorer.calls


def table_iii(query):
    """Five explorations of a query: the first at work, then the models, the effort and what they plan."""
    found = [explored(query, seed) for seed in range(_SEEDS)]
    first = found[0][0]
    yield from _at_work(query, first)
    model = first.model
    assert isinstance(model, CapacityModel)  # noqa: S101 - one of the paper's forms is asked for
    # Table III's memory is that of a TaskManager
    slope, slots = (float(one) for one in model.coef_)
    scale = {"linear": MANAGER, "sqrt": math.sqrt(MANAGER), "log": 1.0}[model.form]
    constant = float(model.intercept_) - (slope * math.log(MANAGER) if model.form == "log" else 0.0)
    yield streambed.MODEL.series(model.form, ("a", "b", "c"), (slope / scale, slots, constant))
    forms = Counter(one.model.form for one, _ in found)
    yield streambed.FORMS.series("ours", forms, forms.values())
    efforts = [
        (calls, len(one.runs), sum(run.estimate.seconds for run in one.measurements) / 60) for one, calls in found
    ]
    yield _over_seeds(streambed.EFFORT, ("optimizer calls", "estimator runs", "minutes"), efforts)
    cells = streambed.published("iv", query)
    planned = [[_slots(one, cell) for cell in cells] for one, _ in found]
    yield _over_seeds(streambed.PLANNED, map(streambed.memory_of, cells), planned)


def _slots(exploration, cell):
    """Slots that a model plans for a cell of Table IV; `_MOST_SLOTS` where it would take more or finds none."""
    memory, rate = GB * float(cell["memory_gb_per_slot"]), float(cell["requested_rate_records_per_s"])
    try:
        return float(min(exploration.model.slots_for(rate, memory, streambed.MARGIN), _MOST_SLOTS))
    except WorkbenchError:
        return float(_MOST_SLOTS)


def _over_seeds(panel, names, values):
    columns = list(zip(*values, strict=True))
    spread = ([float(of(one)) for one in columns] for of in (statistics.median, min, max))
    return panel.series(streambed.FOUND, names, *spread)


def _at_work(query, exploration):
    """Error after each run, and what the Gaussian process expected before the last run it was asked for."""
    costs = dict(enumerate(exploration.costs, start=1))
    finite = {run: cost for run, cost in costs.items() if math.isfinite(cost)}
    yield streambed.ERROR.series("after each run", finite, finite.values())
    left_out = {run: cost for run, cost in finite.items() if run - 1 not in exploration.fitted}
    if left_out:
        yield streambed.ERROR.series("after a run that is not fitted", left_out, left_out.values())
    space = _space(query)
    why = [one for one in reasons(exploration.runs, space) if one.acquired is not None][-1]
    columns = sorted({round(one) for one in np.linspace(0, len(space.slots) - 1, _MOST_COLUMNS)})
    slots = tuple(space.slots[one] for one in columns)
    for row in sorted({0, len(space.memory_mb) // 2, len(space.memory_mb) - 1}):
        name = f"{space.memory_mb[row] / GB:g} GB"
        mean, deviation, improvement = (
            [float(table[one, row]) for one in columns]
            for table in (why.acquired.mean, why.acquired.deviation, why.acquired.improvement)
        )
        ends = np.subtract(mean, deviation), np.add(mean, deviation)
        yield streambed.EXPECTED.series(name, slots, mean, *ends)
        yield streambed.IMPROVEMENT.series(name, slots, improvement)
    asked = f"asked for: {why.budget.slots} slots of {why.budget.profile.memory_mb / GB:g} GB"
    yield streambed.IMPROVEMENT.series(asked, (why.budget.slots,), (why.improvement,))


RUNS = {"Figure 9": figure_9, "Table III": table_iii, "Figure 11": figure_11}
"""What makes each recorded result, from the chosen input."""
