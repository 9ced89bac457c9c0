"""Several inputs of one query, replayed together: their rows in one loop, in the order in which they arrived.

A row arrives when its event time is the latest of its data set so far, or else with the row before it. The rows of all
inputs are numbered in the order of their arrival, and become due one after another under one commanded rate: those that
arrived together are released together, at any rate and in any pass over the data. Where shares of the rate are given,
rows of an input are repeated or left out at even distances, each in its place.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench import units
from workbench.errors import QueryError
from workbench.workload.columns import is_text
from workbench.workload.dataset import (
    BATCH_ROWS,
    LATENESS,
    PLACE,
    SAMPLE_BYTES,
    Replay,
    bytes_of,
    check,
    event_times_us,
    prepare,
    readable,
    times_us,
)
from workbench.workload.query import Input

_READ_BYTES = 64 << 20  # of files whose event times are read in well below a second
_LEAST_TOGETHER = 0.5  # of the longest data set's time; with less, most rows of one input have no partners

_Times = npt.NDArray[np.int64]


def prepare_inputs(inputs: Sequence[Input], folder: Path) -> tuple[Replay, ...]:
    """Copy the data sets of `inputs` into `folder`, ready to be replayed together."""
    alone = []
    for number, one in enumerate(inputs):
        place = folder / f"alone-{number}"
        place.mkdir()
        alone.append(prepare(one.dataset, one.dataset.event_time, place, SAMPLE_BYTES // len(inputs), one.renew))
    span = _span(inputs, alone)
    chosen, places = merge(_arrivals(inputs, alone), [one.share for one in inputs])
    period = sum(map(len, places))
    made = []
    for number, (replay, rows, own) in enumerate(zip(alone, chosen, places, strict=True)):
        target = folder / f"input-{number}.arrow"
        _write(replay, rows, own, target)
        Path(replay.path).unlink()
        made.append(replace(replay, path=str(target), rows=len(own), period=period, span=span))
    return tuple(made)


def check_inputs(inputs: Sequence[Input]) -> None:
    """Refuse inputs that cannot be replayed together, before anything starts; the times of large ones stay unread."""
    ends = {}
    for one in inputs:
        source, schema, row_bytes = check(one.dataset, one.dataset.event_time, one.renew)
        if one.dataset.event_time is None or bytes_of(one.dataset) > _READ_BYTES:
            continue
        with readable(one.dataset):
            times = times_us(source, schema, one.dataset.event_time)
        if row_bytes * len(times) <= SAMPLE_BYTES / len(inputs):  # else only a part of it is replayed
            ends[one.name] = np.array([times[0], times.max()])
    _check_together(ends)


def _span(inputs: Sequence[Input], alone: Sequence[Replay]) -> int:
    """Return the number to add to renewed integers in each pass over the data, so that none is repeated."""
    ends = list[int]()
    for one, replay in zip(inputs, alone, strict=True):
        stored = replay.stored()
        columns = [stored.column(name) for name in one.renew if not is_text(stored.schema.field(name).type)]
        ends += [end for column in columns for end in pc.min_max(column).as_py().values() if end is not None]
    return max(ends) - min(ends) + 1 if ends else 0


def merge(arrivals: Sequence[_Times], shares: Sequence[float | None]) -> tuple[list[_Times], list[_Times]]:
    """Assign numbers from 0 to the rows of several inputs, ordered by `arrivals`, which ascend for each input.

    The `shares` add up to 1; None: those of the rows. Returns, for each input, its rows that take part, as often as
    they do, and their numbers; both ascend.
    """
    total = sum(map(len, arrivals))
    chosen = []
    for times, share in zip(arrivals, shares, strict=True):
        wanted = len(times) if share is None else max(1, round(share * total))
        chosen.append(np.arange(wanted) * len(times) // wanted)
    at = np.concatenate([times[rows] for times, rows in zip(arrivals, chosen, strict=True)])
    numbers = np.empty(len(at), np.int64)
    numbers[np.argsort(at, kind="stable")] = np.arange(len(at))
    return chosen, np.split(numbers, np.cumsum([len(rows) for rows in chosen])[:-1])


def _arrivals(inputs: Sequence[Input], alone: Sequence[Replay]) -> list[_Times]:
    """Return when the rows of each input arrive, in microseconds; data sets end together where one was cut off."""
    seen = [_arrival_times(one) if one.event_time else None for one in alone]
    timed = [(one, times) for one, times in zip(alone, seen, strict=True) if times is not None]
    _check_together({one.name: times for one, times in zip(inputs, seen, strict=True) if times is not None})
    begin = min((int(times[0]) for _, times in timed), default=0)
    end = max((int(times[-1]) for _, times in timed), default=0)
    end = min([end, *(int(times[-1]) for one, times in timed if not one.complete)])
    return [
        np.linspace(begin, end, one.rows).astype(np.int64)
        if times is None
        else times[: np.searchsorted(times, end, "right")]
        for one, times in zip(alone, seen, strict=True)
    ]


def _arrival_times(replay: Replay) -> _Times:
    stored = replay.stored()
    late_us: _Times = stored.column(LATENESS).to_numpy()
    return event_times_us(stored.column(replay.event_time), replay.per_s) + late_us


def _check_together(timed: dict[str, _Times]) -> None:
    """Refuse event times if most have no event time of another input near them."""
    if len(timed) < 2:
        return
    longest = max(int(times[-1] - times[0]) for times in timed.values())
    together = min(int(times[-1]) for times in timed.values()) - max(int(times[0]) for times in timed.values())
    if together < _LEAST_TOGETHER * longest:
        spans = "; ".join(f"{name}: {_shown(times[0])} to {_shown(times[-1])}" for name, times in timed.items())
        raise QueryError(
            f"The inputs have {units.seconds(max(0, together) / 1e6)} of event time in common, of "
            f"{units.seconds(longest / 1e6)} ({spans}). Their rows are released in the order of their event times, so "
            f"at least {units.percent(_LEAST_TOGETHER)} must be in common. Give data sets of the same time.",
            settings=("inputs",),
        )


def _shown(time_us: np.int64) -> str:
    return str(np.datetime64(int(time_us), "us").astype("datetime64[s]"))


def _write(replay: Replay, rows: _Times, places: _Times, target: Path) -> None:
    """Write the chosen rows with their places, in batches of exactly `BATCH_ROWS` rows."""
    stored = replay.stored()
    schema = stored.schema.append(pa.field(PLACE, pa.int64()))
    with pa.OSFile(str(target), "wb") as out, pa.ipc.new_file(out, schema) as writer:
        for first in range(0, len(rows), BATCH_ROWS):
            chosen = rows[first : first + BATCH_ROWS]
            part = stored.slice(chosen[0], chosen[-1] - chosen[0] + 1).combine_chunks().take(chosen - chosen[0])
            part = part.append_column(schema.field(PLACE), pa.array(places[first : first + BATCH_ROWS]))
            writer.write_table(part.combine_chunks())
