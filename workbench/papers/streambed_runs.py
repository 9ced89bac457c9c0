"""The runs behind StreamBed's figures (section VIII), in the fluid engine on models of its five queries.

Explorations and checks take the published schedule of rates (`StreamBedSchedule`), on budgets of section VIII; what
takes more than a moment is recorded.
"""

import itertools
import math
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from workbench.capacity import (
    CapacityEstimator,
    CapacityModel,
    ConfigurationOptimizer,
    Exploration,
    ResourceExplorer,
    Space,
    bids2,
)
from workbench.capacity.explore import reasons
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import SIMPLE_QUERIES, STATEFUL_QUERIES
from workbench.metrics import Observation
from workbench.papers.figure import Panel, Series
from workbench.papers.recorded import FOLDER, rows
from workbench.records import Measurement
from workbench.simulation import Deployment, preset, steady_state
from workbench.testbed import FluidTestbed, Run

FACTORS = (1.0, 1.5)  # shares of the estimated MST that Figure 9 offers
GB, MANAGER = 1024, 16  # MB, and slots of a TaskManager, whose memory is Table III's
SLOTS: Mapping[str, tuple[int, ...]] = {"q1": (3, 6, 11, 16), "q2": (3, 4, 5, 6)} | dict.fromkeys(
    ("q5", "q8", "q11"), (12, 24, 32, 48)
)
"""Section VIII's slots of operators; it names the ends, and 32 for q8."""
MEMORIES = (512, 1024, 2048, 4096)  # MB per slot
MARGIN = 1.10
TARGETS = (1.0, 1.2, 1.5)  # of the requested rate
_FOLLOWED = {"q1": 30, "q2": 30, "q5": 90, "q8": 120, "q11": 30}  # min, as published
_RAMP_S, _EVERY_S = 300.0, 300.0
_SEEDS, _GRID_MB, _MOST_COLUMNS, _MOST_SLOTS = 5, 512, 12, 1 << 20

ERROR = Panel("Error of the model", "Run", "Error of the best form (records/s)")
EXPECTED = Panel("Gaussian process", "Slots", "Error expected after one more run (records/s)")
IMPROVEMENT = Panel("Expected improvement", "Slots", "Expected improvement (records/s)")
EFFORT = Panel("Effort", "Of an exploration", "Number, or simulated minutes", "bars")
MODEL = Panel("Model", "Coefficient", "Value", "bars")
FORMS = Panel("Chosen form", "Form", "Explorations", "bars")
PLANNED = Panel("Slots for the rate of Table IV", "Memory per slot", "Slots", "bars", log_y=True)
FOUND = "found here"


def published(table: str, query: str | None = None) -> list[dict[str, str]]:
    """Read the rows of a published table, of one query or all."""
    found = rows(FOLDER / "published" / f"streambed_table_{table}.csv")
    return [row for row in found if query in {None, row["query"]}]


def memory_of(cell: Mapping[str, str]) -> str:
    """Write the memory per slot of a row of Table IV."""
    return f"{float(cell['memory_gb_per_slot']):g} GB"


def tasks(query: str, memory_mb: float, slots: int) -> Mapping[str, int]:
    """Return BIDS2's tasks by operator, from the costs of one task each."""
    model = preset(query)
    work = steady_state(Deployment(model, model.minimal_layout, memory_mb)).work_s
    rates = {name: 1 / seconds if seconds > 0 else None for name, seconds in work.items()}
    return bids2(rates, dict.fromkeys(rates, 1.0), slots).tasks


@lru_cache(maxsize=1024)
def capacity(query: str, memory_mb: float, slots: int) -> float:
    """Return what a budget sustains in the engine without noise, records/s."""
    return float(steady_state(Deployment(preset(query), tasks(query, memory_mb, slots), memory_mb)).rate)


def _estimator(query: str, testbed: FluidTestbed) -> CapacityEstimator:
    times = STATEFUL_QUERIES if query in {"q5", "q8"} else SIMPLE_QUERIES
    return CapacityEstimator(schedule="streambed", published=times, clock=testbed.clock)


def loads(run: Run, rate: float, settle_s: float, window_s: float) -> dict[float, Observation]:
    """Observe a deployment at each share of `rate`."""
    seen = {}
    for factor in FACTORS:
        run.set_rate(factor * rate)
        run.settle(settle_s)
        seen[factor] = run.observe(window_s)
    return seen


def checked(query: str) -> Iterator[tuple[Budget, float, dict[float, Observation]]]:
    """Estimate the MST of sixteen budgets in the engine; offer it, and one and a half of it, to separate deployments.

    Yields
    ------
    The budget, its MST in records/s, and the observation at each of `FACTORS`.
    """
    space, testbed = Space(SLOTS[query], MEMORIES), FluidTestbed()
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "journal.jsonl")
        optimizer = ConfigurationOptimizer(testbed, _estimator(query, testbed), journal)
        for budget in space.budgets:
            measured = optimizer.measure(preset(query), budget)  # type: ignore[arg-type]
            rate = measured.estimate.rate if isinstance(measured, Measurement) else None
            if rate is None:
                continue
            with testbed.deploy(preset(query), budget, measured.tasks, repeat=1) as run:  # not the one estimated
                run.set_rate(float("inf"))
                run.settle(120)  # as published
                yield budget, rate, loads(run, rate, 30, 600)


def figure_9(query: str) -> Iterator[Series]:
    """Share of the offered rate that each budget achieves, %, by share of its MST and memory."""
    found = {
        (factor, budget.profile.memory_mb, budget.slots): 100 * seen[factor].consumed_rate / seen[factor].commanded_rate
        for budget, _, seen in checked(query)
        for factor in FACTORS
    }
    for factor, memory in itertools.product(FACTORS, MEMORIES):
        shares = tuple(found.get((factor, memory, count)) for count in SLOTS[query])
        yield Series(f"{factor:.0%}".replace("%", " %"), f"{memory / GB:g} GB", SLOTS[query], shares)


def figure_11(query: str) -> Iterator[Series]:
    """Rate and pending records of Table IV's deployments over the published time, after a ramp-up of 5 min.

    Records that are pending are given in seconds of the requested rate.
    """
    for cell, factor in itertools.product(published("iv", query), TARGETS):
        slots, memory = int(cell["slots"]), int(GB * float(cell["memory_gb_per_slot"]))
        requested = float(cell["requested_rate_records_per_s"])
        budget = Budget(slots, SlotProfile(1.0, memory))
        with FluidTestbed(noise=0.0).deploy(preset(query), budget, tasks(query, memory, slots), repeat=0) as run:
            run.set_rate(factor * requested)
            run.settle(_RAMP_S)
            seen = [run.observe(_EVERY_S) for _ in range(int(60 * _FOLLOWED[query] / _EVERY_S))]
        minutes = tuple(_EVERY_S / 60 * (1 + place) for place in range(len(seen)))
        name = f"{100 * factor:.0f} %, {memory / GB:g} GB"
        yield Series("Rate", name, minutes, tuple(100 * one.consumed_rate / requested for one in seen))
        yield Series("Pending records", name, minutes, tuple(one.batches[-1].backlog / requested for one in seen))


def _space(query: str) -> Space:
    (row,) = published("iii", query)
    least, most = (int(GB * float(row[f"{end}_memory_gb_per_slot"])) for end in ("min", "max"))
    slots = range(int(row["min_slots"]), int(row["max_slots"]) + 1)
    return Space(tuple(slots), tuple(range(least, most + 1, _GRID_MB)))


def explored(query: str, seed: int) -> tuple[Exploration, int]:
    """Explore a query as section VI does, in Table III's space; also return the number of the optimizer's calls."""
    testbed = FluidTestbed(seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "journal.jsonl")
        optimizer = ConfigurationOptimizer(testbed, _estimator(query, testbed), journal)
        explorer = ResourceExplorer(optimizer, _space(query), seed, form="halves")
        return explorer.run(preset(query)), explorer.calls  # type: ignore[arg-type]


def table_iii(query: str) -> Iterator[Series]:
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
    yield MODEL.series(model.form, ("a", "b", "c"), (slope / scale, slots, constant))
    forms = Counter(one.model.form for one, _ in found)
    yield FORMS.series("ours", forms, forms.values())
    efforts = [
        (calls, len(one.runs), sum(run.estimate.seconds for run in one.measurements) / 60) for one, calls in found
    ]
    yield _over_seeds(EFFORT, ("optimizer calls", "estimator runs", "minutes"), efforts)
    cells = published("iv", query)
    yield _over_seeds(PLANNED, map(memory_of, cells), [[_slots(one, cell) for cell in cells] for one, _ in found])


def _slots(exploration: Exploration, cell: Mapping[str, str]) -> float:
    """Slots that a model plans for a cell of Table IV; `_MOST_SLOTS` where it would take more or finds none."""
    memory, rate = GB * float(cell["memory_gb_per_slot"]), float(cell["requested_rate_records_per_s"])
    try:
        return float(min(exploration.model.slots_for(rate, memory, MARGIN), _MOST_SLOTS))
    except WorkbenchError:
        return float(_MOST_SLOTS)


def _over_seeds(panel: Panel, names: Iterable[str], values: Sequence[Sequence[float]]) -> Series:
    columns = list(zip(*values, strict=True))
    return panel.series(FOUND, names, *([float(of(one)) for one in columns] for of in (statistics.median, min, max)))


def _at_work(query: str, exploration: Exploration) -> Iterator[Series]:
    """Error after each run, and what the Gaussian process expected before the last run it was asked for."""
    costs = dict(enumerate(exploration.costs, start=1))
    finite = {run: cost for run, cost in costs.items() if math.isfinite(cost)}
    yield ERROR.series("after each run", finite, finite.values())
    left_out = {run: cost for run, cost in finite.items() if run - 1 not in exploration.fitted}
    if left_out:
        yield ERROR.series("after a run that is not fitted", left_out, left_out.values())
    space = _space(query)
    why = [one for one in reasons(exploration.runs, space) if one.acquired is not None][-1]
    acquired = why.acquired
    assert acquired is not None  # noqa: S101 - chosen so
    columns = sorted({round(one) for one in np.linspace(0, len(space.slots) - 1, _MOST_COLUMNS)})
    slots = tuple(space.slots[one] for one in columns)
    for row in sorted({0, len(space.memory_mb) // 2, len(space.memory_mb) - 1}):
        name = f"{space.memory_mb[row] / GB:g} GB"
        mean, deviation, improvement = (
            [float(table[one, row]) for one in columns]
            for table in (acquired.mean, acquired.deviation, acquired.improvement)
        )
        yield EXPECTED.series(name, slots, mean, np.subtract(mean, deviation), np.add(mean, deviation))
        yield IMPROVEMENT.series(name, slots, improvement)
    asked = f"asked for: {why.budget.slots} slots of {why.budget.profile.memory_mb / GB:g} GB"
    yield IMPROVEMENT.series(asked, (why.budget.slots,), (why.improvement,))
