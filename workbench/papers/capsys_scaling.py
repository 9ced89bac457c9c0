"""CAPSys's Table 4 and Figure 9 by simulation: the effect of task placement on DS2's decisions, on Q3-inf.

``benchmarks/capsys_runs.py`` makes what is recorded. Section 3.3 says that inference triggers garbage collection and
does not say what it costs. Its panels show, apart from the run without, what would be if two inference tasks of a
worker together got no more than 1.5 times the rate of one: an assumption of ours, modelled as a resource of the worker
that only inference uses.
"""

import math
from collections.abc import Mapping, Sequence

from workbench.papers.figure import Panel, Reproduction, Series
from workbench.papers.recorded import redrawn

_TOGETHER = 1.5  # times the rate of one inference task, for two on a worker: ours, not the paper's
CASES: Mapping[str, float] = {
    "": math.inf,
    f", if two inference tasks get {_TOGETHER:g} times the rate of one (our assumption)": _TOGETHER,
}
"""What is added to a panel's title, and what two inference tasks on a worker get at most."""
SEEDS = 5

_TABLE_4: Mapping[str, tuple[tuple[bool, bool], ...]] = {
    "CAPSys": ((True, True),) * 4,
    "Default": ((False, True), (False, False), (False, False), (True, True)),
    "Evenly": ((True, True), (True, False), (False, False), (False, False)),
}
"""By strategy and step: throughput met, resources right (the paper's ticks and crosses)."""

PANELS_4 = tuple(
    Panel(f"{title}{case}", "Strategy and step", y, "bars")
    for case in CASES
    for title, y in (
        ("Throughput met", "Runs that meet the target (%)"),
        ("Resources right", "Runs without a task too many (%)"),
    )
)


def right(ours: Sequence[Series], strategy: str, case: str = "") -> int:
    """Count the cells of a strategy, of eight, that are right in every run; `case` is one of the panels' endings."""
    panels, steps = {f"Throughput met{case}", f"Resources right{case}"}, [f"{strategy} {step}" for step in range(1, 5)]
    return sum(one.at(step) == 100 for one in ours if one.panel in panels for step in steps)


_TICKS = {f"{strategy} {step}": cell for strategy, cells in _TABLE_4.items() for step, cell in enumerate(cells, 1)}
_PUBLISHED_4 = tuple(
    panel.series("paper", _TICKS, (100.0 * cell[place % 2] for cell in _TICKS.values()), published=True)
    for place, panel in enumerate(PANELS_4)
)

_RATE_OVER_TIME = Panel("Throughput over time", "Time (min)", "Throughput (records/s)")
_TASKS_OVER_TIME = Panel("Tasks over time", "Time (min)", "Tasks")
_DECISIONS = Panel("Decisions", "Strategy", "Scaling decisions in two hours", "bars")
_TOO_MANY = Panel("Tasks too many", "Strategy", "Most tasks above the least, at the end of a period", "bars")
_AT_TARGET = Panel("Target met", "Strategy", "Time at 99 % of the rate or more (%)", "bars")
PANELS_9 = (_RATE_OVER_TIME, _TASKS_OVER_TIME, _DECISIONS, _TOO_MANY, _AT_TARGET)
_MINUTES = tuple(float(minute) for minute in range(1, 121))
_OFFERED = tuple(2880.0 if (minute - 0.5) % 40 < 20 else 720.0 for minute in _MINUTES)


def _more(made: Reproduction, strategy: str) -> float:
    decided = made.named("ours", _DECISIONS.title)
    return decided.at(strategy) - decided.at("CAPSys")


MAKERS = {
    "Table 4": redrawn("capsys", "Table 4", PANELS_4, _PUBLISHED_4),
    "Figure 9": redrawn("capsys", "Figure 9", PANELS_9, [_RATE_OVER_TIME.series("target", _MINUTES, _OFFERED)]),
}
READERS = {
    "right": lambda made, *cells: float(right([one for one in made.series if not one.published], *cells)),
    "decisions more": _more,
}
