"""What the runs of a pipelined query show apart from rates: tasks, costs, skew and cache hits of each operator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.capacity.allocation import input_ratios, true_rates
from workbench.capacity.model.forms import Floats
from workbench.records import Measurement

_SLOT_COUNTS = 2


@dataclass(frozen=True)
class MinimalProfile:
    """What BIDS2 distributes slots by, seen on the minimal configuration at one memory."""

    memory_mb: float
    true_rates: Mapping[str, float | None]
    ratios: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Runs as arrays.

    Parameters
    ----------
    memory, slots
        MB per slot, and slots, shape (runs,).
    seconds
        Seconds per source record: 1 / capacity, the middle of the bracket, shape (runs,).
    ratio
        Records of each operator per source record, shape (operators,).
    tasks, cost, skew, hits
        Tasks; useful seconds per input record; records of the fullest task / mean, from 1 (all have the same) to the
        tasks (one has everything); cache hits, 1 without a cache; shape (runs, operators).
    stateful
        Whether each operator keeps state.
    profiles
        One per minimal configuration.
    """

    memory: Floats
    slots: Floats
    seconds: Floats
    ratio: Floats
    tasks: Floats
    cost: Floats
    skew: Floats
    hits: Floats
    stateful: tuple[bool, ...]
    profiles: tuple[MinimalProfile, ...]


def read_evidence(runs: Sequence[Measurement]) -> Evidence | None:
    """Read what `runs` show.

    None unless an optimizer distributed the tasks of all of them, all show the same operators and saw each of them at
    work, there are two slot counts, and one has the minimal configuration.
    """
    rows = [_row(run) for run in runs]
    profiles = tuple(_minimal_profile(run) for run in runs if run.tasks and set(run.tasks.values()) == {1})
    if not profiles or len({run.budget.slots for run in runs}) < _SLOT_COUNTS:
        return None
    known = [row for row in rows if row is not None]
    if len(known) < len(rows) or len({names for names, _, _ in known}) > 1:
        return None
    tasks, ratio, cost, skew, hits = np.moveaxis(np.array([numbers for _, _, numbers in known]), 2, 0)
    return Evidence(
        np.array([run.budget.profile.memory_mb for run in runs], dtype=float),
        np.array([run.budget.slots for run in runs], dtype=float),
        np.array([1.0 / run.estimate.middle for run in runs]),
        ratio.mean(axis=0),
        tasks,
        cost,
        skew,
        hits,
        known[0][1],
        profiles,
    )


def _row(run: Measurement) -> tuple[tuple[str, ...], tuple[bool, ...], list[tuple[float, ...]]] | None:
    """Names, statefulness and numbers of a run's operators; None where one was not seen at work."""
    seen = run.estimate.observation
    if run.tasks is None or seen is None or not run.estimate.rate or not seen.consumed_records:
        return None
    operators = [one for one in seen.operators if one.operator in run.tasks]
    if len(operators) < len(run.tasks) or any(one.records_in == 0 or one.useful_s <= 0 for one in operators):
        return None
    numbers: list[tuple[float, ...]] = [
        (
            float(one.tasks),
            one.records_in / seen.consumed_records,
            one.useful_s / one.records_in,
            1.0 if one.key_skew is None else min(max(1.0, one.key_skew), float(one.tasks)),
            1.0 if one.cache_hit_rate is None else one.cache_hit_rate,
        )
        for one in operators
    ]
    return tuple(one.operator for one in operators), tuple(one.keeps_state for one in operators), numbers


def _minimal_profile(run: Measurement) -> MinimalProfile:
    seen = run.estimate.observation
    rates, ratios = ({}, {}) if seen is None else (true_rates(seen), input_ratios(seen))
    return MinimalProfile(float(run.budget.profile.memory_mb), rates, ratios)
