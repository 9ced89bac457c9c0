"""Runs of a micro-batch query on several budgets, for plans: one example, its rate in proportion to the slots."""

from dataclasses import replace

from example_measurement import example_measurement

from workbench.capacity import bids2_micro_batch
from workbench.capacity.explore import conclude
from workbench.capacity.model import MicroBatch, StageLine
from workbench.capacity.partitions import at_rate
from workbench.dataflow import Budget, SlotProfile
from workbench.records import Measurement, MstEstimate


def staged_exploration(cpus=0.4, memory_mb=600, slots=(2, 4, 8), per_slot=3000.0, *, source=None, costs=True):
    """Explore a query with state; `source` is the share of the busy time that the source took, if it is seen.

    Without `costs` a plan has no layout.
    """
    example = replace(example_measurement(), **({} if costs else {"costs": ()}))
    if source is not None:
        example = with_source(example, source)
    runs = []
    for count in slots:
        rate = per_slot * count
        estimate = replace(example.estimate, rate=rate, low=rate, high=1.01 * rate)
        runs.append(replace(example, budget=Budget(count, SlotProfile(cpus, memory_mb)), estimate=estimate))
    return conclude(runs, f"{len(slots)} runs were made", growth="tasks")


def rated_run(slots, memory_mb, rate):
    """A simulated run of q1 of which only the capacity is known, to half a percent."""
    estimate = MstEstimate(rate, rate / 1.005, 1.005 * rate, (), None, "query", 60.0)
    budget = Budget(slots, SlotProfile(1.0, memory_mb))
    return Measurement("q1", budget, estimate, (), None, "fluid", "2026-01-31", testbed_kind="fluid")


def seeing(run, **changes):
    """Give the same run with another observation at its capacity."""
    return replace(run, estimate=replace(run.estimate, observation=replace(run.estimate.observation, **changes)))


def with_source(run, share):
    """Give the same run, of whose busy time the source took `share`."""
    seen = run.estimate.observation
    busy = sum(one.useful_s for one in seen.operators)
    source = replace(seen.operators[0], operator="source", kind="source", useful_s=busy * share / (1 - share))
    return seeing(run, operators=(source, *seen.operators))


def laid_out(stages, slots, interval_s=2.0, *, rate, batch_fixed_s=0.0):
    """The layout that BIDS2 for micro-batches gives `stages`, each a line, with the seconds of a batch at `rate`."""
    lines = tuple(
        StageLine(one.name, one.fixed_s, one.per_record_s, one.ratio, 1.0, stateful=one.stateful, source=one.source)
        for one in stages
    )
    batch = MicroBatch(batch_fixed_s, 0.0, lines, 0.0, 1)
    return at_rate(bids2_micro_batch(batch, slots, interval_s), batch, slots, rate)
