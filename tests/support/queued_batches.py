"""A query in micro-batches, as a queue in plain Python: when its triggers fire, and what each batch takes.

Like Spark's, a trigger fires at whole multiples of the interval, or at once where the batch before it ended later.
"""

import math

import numpy as np


def queued(arrived, batch_s, interval_s, until_s, *, from_s=0.0, taken=0, cap=math.inf):
    """Yield (second it fires, rows, seconds it lasts, rows it leaves) of each batch until `until_s`.

    `arrived` gives the rows that have arrived by a second, `batch_s` the seconds that the batch of a number lasts with
    that many rows, at most `cap`. The query starts at `from_s`, after `taken` rows were read.
    """
    fires, number = from_s, 0
    while fires <= until_s:
        waiting = int(arrived(fires)) - taken
        rows = int(min(waiting, cap))
        taken += rows
        lasts = batch_s(number, rows) if rows else 0.0
        yield fires, rows, lasts, waiting - rows
        number += bool(rows)
        fires = max(math.floor(fires / interval_s + 1e-9) * interval_s + interval_s, fires + lasts)


def arriving(rates, interval_s):
    """Rows that have arrived by a second, of rates that each last an interval."""
    seconds = np.arange(len(rates) + 1) * interval_s
    rows = np.concatenate([[0.0], np.cumsum(rates) * interval_s])
    return lambda at_s: np.interp(at_s, seconds, rows)
