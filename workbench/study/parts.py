"""The parts that a study requests: its query, its estimator, its testbed."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from workbench import units
from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator, fill_s
from workbench.records import MODES
from workbench.study.catalogue import find_query, recorded_query
from workbench.study.spec import Study
from workbench.testbed import FluidTestbed, RecordedTestbed, SparkTestbed, Testbed
from workbench.workload import Query

Find = Callable[..., Query]
_AS_RECORDED = 0.001
_PROBES = 3  # in the time after which a run of a shared deployment begins no further probe


def query_of(study: Study, find: Find = find_query) -> Query:
    """Find the query of a study; of a recorded one, only its name is known."""
    if study.table is not None:
        return recorded_query(study.query, study.table)
    for path in study.py_files:  # its module may import them here, too, and Spark's processes inherit this path
        place = str((Path(path).parent if path.endswith(".py") else Path(path)).resolve())
        if place not in sys.path:
            sys.path.append(place)
    sink = study.job_settings.writes
    query = find(
        study.query,
        study.dataset,
        study.event_time,
        study.output_mode,
        study.source,
        schema=study.schema,
        inputs=study.inputs,
        sink=sink if sink.function else None,
    )
    if isinstance(query, Query) and query.output_mode not in MODES[sink.kind]:
        raise WorkbenchError(
            f"The sink {sink.words} takes the output mode {' or '.join(MODES[sink.kind])}, and {query.name} has "
            f"{query.output_mode!r}. Change output_mode, or write with foreachBatch (sink: module:function).",
            settings=("sink", "output_mode"),
        )
    return query


def estimator_of(study: Study) -> CapacityEstimator:
    """Make the estimator that a study requests; the rates of a table are found again unchanged."""
    made = CapacityEstimator(
        tolerance=study.tolerance if study.table is None else min(study.tolerance, _AS_RECORDED),
        warmup_min_s=min(CapacityEstimator.warmup_min_s, study.warmup_s),
        warmup_cap_s=study.warmup_s,
        patience_s=study.patience_s,
        max_repeats=study.max_repeats,
    )
    if not study.shared:
        return made
    return replace(made, most_s=fill_s(study.interval_s) + _PROBES * made.probe_s(study.interval_s))


def testbed_of(study: Study, progress: Callable[[str], None]) -> Testbed:
    """Make the testbed that a study requests."""
    if study.testbed == "fluid":
        return FluidTestbed(seed=study.seed)
    if study.table is not None:
        return RecordedTestbed.from_csv(study.table)
    return SparkTestbed(
        cluster=study.cluster,
        slot_cpus="cores" if study.slot_cpus == int(study.slot_cpus) else "auto",
        warmup_cap_s=min(SparkTestbed.warmup_cap_s, study.warmup_s),
        settings=study.job_settings,
        progress=progress,
    )


def fitting(study: Study, testbed: Testbed) -> tuple[Study, str]:
    """Leave out the slot counts that this machine cannot provide, and name them; "" if it provides all, or none.

    What it cannot provide, and cannot leave out, is refused when the study is prepared.
    """
    if not isinstance(testbed, SparkTestbed) or testbed.cluster:
        return study, ""
    most = testbed.most_slots(study.slot_cpus)
    slots = tuple(count for count in study.slots if count <= most)
    try:
        fits = replace(study, slots=slots)
    except WorkbenchError:  # a count alone is not enough for the study's model
        return study, ""
    if fits == study:
        return study, ""
    left = ", ".join(f"{count:,}" for count in study.slots if count > most)
    return fits, (
        f"leaving out {left} slots: this machine provides {units.some(most, 'slot')} of {study.slot_cpus:g} core "
        "next to the driver"
    )
