"""The capacity on cores that were not measured: those of a priced instance type with a known speed.

On cores that are t times as fast everything in a batch takes 1/t of its time, so within an interval they do what those
measured do within t times the interval: where the parts of a batch are known, the capacity there is t times the model's
at that interval, else in proportion to the speed. The speeds of both cores come from a stopwatch and not from the
query, so the plan carries the doubt of that as well.
"""

import math
from collections.abc import Sequence

from scipy.stats import t as student

from workbench.capacity.explore import Exploration
from workbench.capacity.model import Model
from workbench.capacity.planning.intervals import IntervalSpeedup
from workbench.errors import WorkbenchError
from workbench.measuring import EXPECTED_WEIGHT, LEVEL
from workbench.records import CountedCores, InstanceType, ModelFinding, core_speed_of
from workbench.speed import REFERENCE, relative_speed

Offer = tuple[CountedCores | None, tuple[InstanceType, ...]]
"""Instance types whose cores count as equally fast, and how fast; None if those measured were not timed."""


def offers(exploration: Exploration, instances: Sequence[InstanceType]) -> list[Offer]:
    """Group the instance types by the speed of their cores; without types or speeds, return the cores measured."""
    found = dict[CountedCores | None, list[InstanceType]]()
    for one in instances:
        found.setdefault(counted(exploration, one.core_speed), []).append(one)
    return [(cores, tuple(own)) for cores, own in found.items()] or [(counted(exploration, None), ())]


def counted(exploration: Exploration, core_speed: float | None) -> CountedCores | None:
    """Return cores of `core_speed`, relative to the reference (None: as measured); None if not timed."""
    measured = core_speed_of(exploration.fitted_runs)
    relative = relative_speed(measured, REFERENCE)
    if measured is None or relative is None:
        return None
    if core_speed is None:
        return CountedCores(measured)
    times, doubt = core_speed / relative.times, math.sqrt(relative.high / relative.low)
    return CountedCores(measured, times, times / doubt, times * doubt)


def on_cores(
    exploration: Exploration, cores: CountedCores | None, interval_s: float | None = None, more_s: float = 0.0
) -> tuple[Model, IntervalSpeedup]:
    """Return a model, and the factor of its capacity on `cores`, with its uncertainty.

    `interval_s` is another trigger interval than the explored one, which needs the parts of a batch; so does `more_s`,
    for which each batch waits longer than those measured: the rows of a shorter interval then arrive in a whole one.
    Raises `WorkbenchError` when the fixed work of a batch may fill the interval there.
    """
    model, explored_s = exploration.model, exploration.fitted_runs[-1].budget.interval_s
    interval_s = explored_s if interval_s is None else interval_s
    if more_s >= interval_s:
        raise WorkbenchError(
            f"A batch that waits {more_s:g} s longer fills the trigger interval of {interval_s:g} s. Plan for a longer "
            "interval."
        )
    share, asked_s, interval_s = 1 - more_s / interval_s, interval_s, interval_s - more_s
    if cores is None or not cores.other:
        return model if interval_s == explored_s else model.at_interval(interval_s), IntervalSpeedup(share)

    def there(times: float) -> Model:
        in_proportion = model.batch is None and interval_s == explored_s
        return model if in_proportion else model.at_interval(times * interval_s)

    largest = exploration.points[exploration.points[:, 1].argmax()]
    low, high = (times * float(there(times).predict([largest])[0]) for times in (cores.low, cores.high))
    if not low > 0:
        raise WorkbenchError(
            f"Cores that are {cores.times:.2f} times as fast as those measured may be busy for the whole trigger "
            f"interval of {asked_s:g} s with what a batch costs whatever its rows. Plan for a longer interval, or "
            "for faster cores."
        )
    reach = float(student.ppf((1 + LEVEL) / 2, EXPECTED_WEIGHT))
    return there(cores.times), IntervalSpeedup(
        share * cores.times, deviation=math.log(high / low) / 2 / reach, freedom=EXPECTED_WEIGHT
    )


def check_other_cores(cores: CountedCores | None) -> ModelFinding | None:
    """Warn that the plan uses cores on which the query was not measured."""
    if cores is None or not cores.other or cores.low <= 1 <= cores.high:
        return None
    return ModelFinding(
        "other cores",
        cores.times,
        f"The plan counts cores {cores.times:.2f} times as fast as those measured ({cores.low:.2f} to "
        f"{cores.high:.2f}), as timed without the query, whose factor may differ.",
        "Verify the planned deployment on such cores before relying on it.",
    )
