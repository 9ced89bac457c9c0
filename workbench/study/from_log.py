"""What a query's event log says instead of runs of a study."""

import math
from dataclasses import replace

from workbench import defaults, units
from workbench.capacity import Exploration
from workbench.capacity.explore import conclude
from workbench.errors import WorkbenchError
from workbench.observing import RunningQuery, as_measurement, headroom, read_log
from workbench.study.spec import Study


def explored_log(study: Study) -> Exploration:
    """Read the log of a study's query, and fit the model to what it shows."""
    running = read_log(study.log or "", study.query)
    if study.slots != (running.slots,) or study.memory_mb != (running.memory_mb,):
        raise WorkbenchError(
            f"In the log, {running.name} runs on {units.some(running.slots, 'slot')} of {running.memory_mb:,} MB, and "
            f"the study says {list(study.slots)} and {list(study.memory_mb)}. Set slots: [{running.slots}] and "
            f"memory_mb: [{running.memory_mb}].",
            settings=("slots", "memory_mb"),
        )
    if running.interval_s is not None and not math.isclose(running.interval_s, study.interval_s):
        raise WorkbenchError(
            f"In the log, {running.name} has a trigger interval of {running.interval_s:g} s, and the study says "
            f"{study.interval_s:g} s. Set interval_s: {running.interval_s:g}.",
            settings=("interval_s",),
        )
    given = study if study.slot_cpus != defaults.SLOT_CPUS else replace(study, slot_cpus=running.cpus)
    return explored_running(given, running)


def explored_running(study: Study, running: RunningQuery) -> Exploration:
    """Fit the model to what a query's log shows; see `explored_log`."""
    seen = replace(running, cpus=study.slot_cpus)
    run = as_measurement(seen, headroom(seen.batches, study.interval_s))
    return conclude([run], "one log was read", form=study.form, choice="edge", growth=study.growth)
