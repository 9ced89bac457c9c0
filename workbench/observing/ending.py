"""Runs that take what there is and end (``availableNow``, ``once``, flows of a pipeline): their rows and time.

A run lasts what it takes to start, and the seconds of its batches. Where something caps the rows of a batch, all but
the last are full, so their rows over their seconds is what it works off, whatever a row costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from workbench.observing.running_query import SeenBatch, SeenRun

_FULL = 0.9  # of the rows of the largest batch, from which one is full


@dataclass(frozen=True)
class EndingRuns:
    """What the runs of a query took."""

    runs: int
    # rows, most_rows: of the median run, and of the largest
    rows: int
    most_rows: int
    # lasts_s, most_s: seconds from the first trigger to the last commit, of the same two
    lasts_s: float
    most_s: float
    largest: int  # rows of the largest batch
    # rate, full_s: records/s of its full batches, and the seconds that they last, their median
    rate: float
    full_s: float
    start_s: float | None  # from the start of application or query to the first trigger, median; None if not logged


def ending_runs(runs: Sequence[SeenRun], batches: Sequence[SeenBatch]) -> EndingRuns | None:
    """Sum up all runs of a query that ends; None where none took rows.

    `batches` are those of its batches that count; without any, the runs as a whole show the rate.
    """
    taken = sorted((run for run in runs if run.rows), key=lambda run: run.rows)
    if not taken:
        return None
    usual, most = taken[len(taken) // 2], taken[-1]
    full = [one for one in batches if one.rows >= _FULL * max(one.rows for one in batches)]
    passed_s = sum(one.batch_s for one in full) or sum(run.ended_s - run.begun_s for run in taken)
    rows = sum(one.rows for one in full) or sum(run.rows for run in taken)
    starts = [run.begun_s - run.asked_s for run in taken if run.asked_s is not None]
    most_s = most.ended_s - most.begun_s
    return EndingRuns(
        runs=len(taken),
        rows=usual.rows,
        most_rows=most.rows,
        lasts_s=usual.ended_s - usual.begun_s,
        most_s=most_s,
        largest=max(run.largest for run in taken),
        rate=rows / max(1e-3, passed_s),
        full_s=max(1e-3, median(one.batch_s for one in full) if full else most_s),
        start_s=median(starts) if starts else None,
    )
