"""Figures in two pure steps: a data function says what is shown, a drawing function shows it."""

from workbench.views.figures.batch_times import BatchTimes, batch_times, draw_batch_times
from workbench.views.figures.operators import Operators, draw_operators, operators
from workbench.views.figures.probes import Probes, draw_probes, probes

__all__ = [
    "BatchTimes",
    "Operators",
    "Probes",
    "batch_times",
    "draw_batch_times",
    "draw_operators",
    "draw_probes",
    "operators",
    "probes",
]
