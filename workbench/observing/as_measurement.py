"""A log as a measurement, so that a plan can start from it as from any other."""

import math
from datetime import UTC, datetime

from workbench import units
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import fit_costs
from workbench.observing.blocks import Block
from workbench.observing.headroom import LEVEL, Headroom
from workbench.observing.running_query import RunningQuery
from workbench.records import Machine, Measurement, MstEstimate, MstInterval, Phase, Probe


def as_measurement(running: RunningQuery, found: Headroom) -> Measurement:
    """Give what a log shows in the form of a measurement: the rate read from it, and its batches at all loads.

    Its blocks stand for observations at as many loads, the busiest for the one at the maximum. It is refused where the
    rate is not identifiable, or where the log has no tasks, so that nothing is known of what a batch is made of.
    """
    if found.rate is None:
        raise WorkbenchError(f"What {running.name} sustains is not identifiable from its log: {found.why_not}.")
    blocks = running.usual_blocks
    if not running.slots or running.cpu_share is None:
        raise WorkbenchError(
            f"The log of {running.name} shows no tasks of its batches, so it can be planned only for the slots it has. "
            "Give the driver's event log (spark.eventLog.enabled=true)."
        )
    if not blocks:
        raise WorkbenchError(
            f"The log of {running.name} has no row of batches on {units.some(running.slots, 'slot')} that is long "
            "enough to show what they are made of. Give a longer log."
        )
    *others, busiest = sorted(blocks, key=lambda block: block.rows)
    begun = running.batches[0].start_s
    width = math.sqrt(found.high / found.low)  # about the rate, which an estimate's headline is the middle of
    estimate = MstEstimate(
        rate=found.rate,
        low=found.rate / width,
        high=found.rate * width,
        probes=(_probe(busiest, "reading"),),
        observation=busiest.observation,
        limit="query",
        seconds=running.batches[-1].start_s - begun,
    )
    return Measurement(
        query=running.name,
        budget=Budget(running.slots, SlotProfile(running.cpus, running.memory_mb), found.interval_s),
        estimate=estimate,
        costs=fit_costs(sample for block in blocks for sample in block.observation.samples),
        source=None,
        testbed=f"the event log of {running.application or 'an application'}, Spark {running.spark or 'unknown'}",
        started_at=datetime.fromtimestamp(begun, UTC).isoformat(timespec="seconds"),
        testbed_kind="observed",
        machine=Machine(slots="executor cores, as the cluster counts them", virtual=None, facts=running.facts),
        load_curve=tuple(_probe(block, "probe") for block in others),
        interval=MstInterval(found.low, found.high, LEVEL, 0.0, repeats=1),
    )


def _probe(block: Block, phase: Phase) -> Probe:
    seen = block.observation
    return Probe(1, phase, seen.commanded_rate, 1, seen, seconds=seen.elapsed_s, partitions=block.partitions)
