"""StreamBed (DEBS 2024), section VIII, in the fluid engine on models of its five queries.

The models are calibrated to Tables II, III and IV (`preset`): what follows from their costs alone is marked as fitted.
Published tables are in ``data/published``; ``benchmarks/streambed_runs.py`` makes what is recorded.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from workbench.capacity import bids2
from workbench.dataflow import Budget, SlotProfile
from workbench.papers.figure import FOLDER, Headline, Panel, Paper, Reproduction, read_figures, reader, recorded, rows
from workbench.simulation import PRESETS, Deployment, preset, steady_state
from workbench.testbed import FluidTestbed

NAME = "streambed"
_WINDOWS, _WINDOW_S = 20, 10.0
_FORMS: Mapping[str, Callable[[float], float]] = {"linear": float, "log": math.log, "sqrt": math.sqrt}
_AS_PRINTED: Mapping[str, Callable[[float], float]] = {**_FORMS, "log": math.log1p}  # by the authors
GB, MANAGER = 1024, 16  # MB, and slots of a TaskManager, whose memory is Table III's
MARGIN = 1.10
SLOTS: Mapping[str, tuple[int, ...]] = {"q1": (3, 6, 11, 16), "q2": (3, 4, 5, 6)} | dict.fromkeys(
    ("q5", "q8", "q11"), (12, 24, 32, 48)
)
"""Section VIII's slots of operators; it names the ends, and 32 for q8."""

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
def _capacity(query: str, memory_mb: float, slots: int) -> float:
    """Return what a budget sustains in the engine without noise, records/s."""
    return float(steady_state(Deployment(preset(query), tasks(query, memory_mb, slots), memory_mb)).rate)


def _printed(query: str, memory_mb: float, slots: float) -> float:
    """Return the rate of Table III's model as printed, records/s."""
    (row,) = published("iii", query)
    form = _AS_PRINTED[row["form"]]
    return float(row["a"]) * form(MANAGER * memory_mb) + float(row["c"]) + float(row["b"]) * form(slots)


def _rates() -> dict[str, float]:
    return {row["query"]: float(row["min_rate_records_per_s"]) for row in published("ii")}


def _table_ii(_: str) -> Reproduction:
    paper = _rates()
    ours = {query: steady_state(Deployment(preset(query), preset(query).minimal_layout, 4096)).rate for query in paper}
    return Panel("One task per operator", "Query", "Rate (records/s)", "bars", log_y=True).beside(paper, ours)


def _table_iii(query: str) -> Reproduction:
    (row,) = published("iii", query)
    found = recorded(NAME, "Table III", query)
    model = next(one for one in found if one.panel == MODEL.title)
    a, b, c = (one or 0.0 for one in model.y)
    least, most = int(row["min_slots"]), int(row["max_slots"])
    budgets = tuple(sorted({round(least + (most - least) * step / 6) for step in range(7)}))
    memory = float(row["max_memory_gb_per_slot"]) * GB
    form = _FORMS[model.name]
    panel = Panel("Capacity", f"Slots of {memory / GB:g} GB", "Capacity (records/s)")
    curves = (
        panel.series(f"paper, {row['form']}", budgets, (_printed(query, memory, n) for n in budgets), published=True),
        panel.series("the engine", budgets, (_capacity(query, memory, n) for n in budgets)),
        panel.series(_MODEL, budgets, (a * form(MANAGER * memory) + b * form(n) + c for n in budgets)),
    )
    efforts = next(one for one in found if one.panel == EFFORT.title)
    effort = [float(row[name]) for name in ("optimizer_calls", "estimator_runs", "training_minutes")]
    coefficients = [float(row[name]) for name in model.x if isinstance(name, str)]
    planned = {memory_of(cell): float(cell["slots"]) for cell in published("iv", query)}
    paper = (
        MODEL.series(f"paper, {row['form']}", model.x, coefficients, published=True),
        FORMS.series("paper", (row["form"],), (1.0,), published=True),
        EFFORT.series("paper", efforts.x, effort, published=True),
        PLANNED.series("paper", planned, planned.values(), published=True),
    )
    panels = (ERROR, EXPECTED, IMPROVEMENT, panel, MODEL, FORMS, EFFORT, PLANNED)
    return Reproduction(panels, (*found, *curves, *paper))


def _table_iv(query: str) -> Reproduction:
    cells = published("iv", query)
    asked = float(cells[0]["requested_rate_records_per_s"])
    memories = [memory_of(cell) for cell in cells]
    printed = [
        next(slots for slots in itertools.count(1) if _printed(query, size, slots) >= MARGIN * asked)
        for size in (float(cell["memory_gb_per_slot"]) * GB for cell in cells)
    ]
    panel = Panel("Slots", "Memory per slot", f"Slots for {asked:,.0f} records/s", "bars")
    paper = panel.series("paper", memories, (float(cell["slots"]) for cell in cells), published=True)
    return Reproduction((panel,), (paper, panel.series(_FROM_PRINTED, memories, printed)))


def _figure_10(query: str) -> Reproduction:
    slots, memory = SLOTS[query][-1], 4096
    layout = tasks(query, memory, slots)
    budget = Budget(slots, SlotProfile(1.0, memory))
    seen: dict[str, list[float]] = {}
    with FluidTestbed(noise=0.0).deploy(preset(query), budget, layout, repeat=0) as run:
        run.set_rate(_capacity(query, memory, slots))
        run.settle(300)
        for _ in range(_WINDOWS):
            for operator in run.observe(_WINDOW_S).operators:
                seen.setdefault(operator.operator, []).append(100 * operator.busyness)
    panel = Panel("Busyness", "Operator", "Busyness (% of the time)", "bars")
    values = ([float(of(one)) for one in seen.values()] for of in (statistics.median, min, max))
    return Reproduction((panel,), (panel.series(_BUSY, seen, *values),))


_FITTED = "the engine's costs"
_MODEL, _BUSY, _FROM_PRINTED = "the model found", "ours, median and range", "ours, from the printed model"


def _one_task(query: str) -> Iterator[Headline]:
    rate = _rates()[query]
    yield Headline(f"One task per operator of {query}", "records/s", rate, reader(["ours", query]), fitted=_FITTED)


def _explored(query: str) -> Iterator[Headline]:
    (row,) = published("iii", query)
    most, form = int(row["max_slots"]), row["form"]
    cell = published("iv", query)[-1]
    memory = memory_of(cell)

    def chosen(made: Reproduction) -> float:
        forms = dict(zip(made.named("ours", FORMS.title).x, made.named("ours", FORMS.title).y, strict=True))
        return 100 * (forms.get(form) or 0.0) / sum(value or 0.0 for value in forms.values())

    what = f"Explorations of {query} that choose the {form} form"
    yield Headline(what, "%", 100.0, chosen, query, f"{form}, in one,")
    for name, unit, column in (
        ("optimizer calls", "calls", "optimizer_calls"),
        ("estimator runs", "runs", "estimator_runs"),
        ("minutes", "min", "training_minutes"),
    ):
        yield Headline(f"{name} of {query}", unit, float(row[column]), reader([FOUND, name, EFFORT.title]), query)
    what, read = f"Slots of {memory} that its models plan", reader([FOUND, memory, PLANNED.title])
    yield Headline(what, "slots", float(cell["slots"]), read, query, fitted=_FITTED)
    fits = reader({"ratio": [["the engine", most], [f"paper, {form}", most]]})
    yield Headline(f"The engine at {most} slots, of the printed model", "times", 1.0, fits, query, fitted=_FITTED)


def _cells(query: str) -> Iterator[Headline]:
    for cell in published("iv", query):
        what, read = f"Slots of {memory_of(cell)} for {query}", reader([_FROM_PRINTED, memory_of(cell)])
        yield Headline(what, "slots", float(cell["slots"]), read, query)


def _peak(made: Reproduction) -> float:
    """Read the highest busyness of the operator that is busiest in the median."""
    busy = made.named(_BUSY)
    return max(zip(busy.values, busy.high, strict=True))[1] or 0.0


def _extreme(made: Reproduction, panel: str, of: str) -> float:
    """Read the lowest or highest value of a panel."""
    return _EXTREMES[of](value for one in made.series if one.panel == panel for value in one.values)


def _last(made: Reproduction, panel: str, start: str, of: str) -> float:
    """Read the lowest or highest last value of the series whose name begins with `start`."""
    lines = (one for one in made.series if one.panel == panel and one.name.startswith(start))
    return _EXTREMES[of](one.values[-1] for one in lines)


_EXTREMES: Mapping[str, Callable[[Iterable[float]], float]] = {"lowest": min, "highest": max}
PAPER = Paper(
    NAME,
    "StreamBed: capacity planning for stream processing (DEBS 2024)",
    read_figures(
        NAME,
        {"Table II": _table_ii, "Figure 10": _figure_10, "Table III": _table_iii, "Table IV": _table_iv},
        {"peak": _peak, "extreme": _extreme, "last": _last},
        {
            number: itertools.chain.from_iterable(map(headlines, PRESETS))
            for number, headlines in (("Table II", _one_task), ("Table III", _explored), ("Table IV", _cells))
        },
    ),
)
