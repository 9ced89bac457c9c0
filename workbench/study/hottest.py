"""What the most frequent key of your data takes in a query that was measured or planned."""

from workbench.capacity.planning import hot_key
from workbench.errors import WorkbenchError
from workbench.records import Measurement, PlannedStudy
from workbench.study.inputs import MEASUREMENT, resolved
from workbench.workload import KeyFrequencies


def what_the_hottest_takes(path: str, keys: KeyFrequencies, rate: float | None = None) -> str:
    """Say in one sentence what the most frequent of `keys` takes.

    `path` is of a study that was planned, plans, or a measurement; `rate`, records/s, that of the last plan, or the one
    sustained, by default. Raises WorkbenchError when it is none of these, or no run has shown an operator behind a
    shuffle.
    """
    kind, file = resolved(path, "keys", "a study, plans or a measurement as its plan")
    if kind != MEASUREMENT:
        planned = PlannedStudy.from_json(file)
        runs, rates = planned.measurements, [one.rate for one in planned.plans]
        times = next((one.cores.times for one in planned.plans[-1:] if one.cores is not None), 1.0)
    else:
        measured = Measurement.from_json(file)
        runs, rates, times = (measured,), [measured.estimate.low], 1.0
    found = hot_key(runs, keys, times)
    if found is None:
        raise WorkbenchError(
            f"No run of {path} has shown an operator behind a shuffle, so no key is kept in one task. Leave it out.",
            settings=("plan",),
        )
    asked = rate or next((one for one in reversed(rates) if one > 0), None)
    if asked is None:
        raise WorkbenchError(f"{path} names no rate; give one, records/s.", settings=("rate",))
    return found.sentence(asked)
