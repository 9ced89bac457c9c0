"""A realistic measurement without Spark: the real estimator on a simulated run of a query with three operators."""

import random
from dataclasses import replace

from simulated_run import SimulatedRun

from workbench.dataflow import Budget, SlotProfile
from workbench.measuring import CapacityEstimator, fit_costs
from workbench.metrics import Batch, Observation, OperatorMetrics, SourceProfile, TaskSample
from workbench.records import FailedRun, Machine, Measurement
from workbench.speed import CoreSpeed

BUDGET = Budget(4, SlotProfile(0.2, 512), 2.0)
TASKS = 4

# name, records in per source record, records out per record in, a (s), b (s), skew, (state bytes per record, hits, s)
OPERATORS = (
    ("1 scan filter", 1.0, 0.92, 0.004, 2.0e-5, None, None),
    ("2 window aggregate", 0.92, 0.03, 0.012, 9.5e-5, 1.31, (164, 0.93, 41e-6)),
    ("3 rank <top>", 0.0276, 0.001, 0.009, 4.0e-5, 1.02, (88, None, 12e-6)),
)


class ExampleRun(SimulatedRun):
    """Adds operators, samples and a quota to what the simulation sees."""

    def __init__(self, **settings) -> None:
        dice = random.Random(7)
        super().__init__(
            fixed_s=0.19,
            per_record_s=7.0e-5,
            noise=lambda _: dice.gauss(1.0, 0.012),
            **({"warm_rows": lambda _: 17_000} | settings),
        )
        self.budget = BUDGET
        self.dice = dice

    def observe(self, seconds):
        seen = super().observe(seconds)
        samples = tuple(sample for batch in seen.batches[1:] for sample in self._samples(batch))
        operators = tuple(_operator(seen, operator) for operator in OPERATORS)
        return replace(seen, operators=operators, samples=samples, quota_throttled=0.62)

    def _samples(self, batch: Batch):
        for name, ratio, _, fixed, slope, _, _ in OPERATORS:
            records = batch.records * ratio / TASKS
            yield TaskSample(name, records, (fixed + slope * records) * self.dice.gauss(1.0, 0.02))


def _operator(seen: Observation, operator) -> OperatorMetrics:
    name, ratio, selectivity, fixed, slope, skew, state = operator
    records = round(seen.consumed_records * ratio)
    useful = fixed * TASKS * (len(seen.batches) - 1) + slope * records
    return OperatorMetrics(
        operator=name,
        kind=name.split()[-1],
        tasks=TASKS,
        records_in=records,
        records_out=round(records * selectivity),
        useful_s=useful,
        busyness=useful / (TASKS * seen.elapsed_s),
        true_processing_rate=records / useful if records else None,
        cpu_s=useful * BUDGET.profile.cpus,
        shuffle_bytes=records * 21,
        state_bytes=records * state[0] if state else None,
        state_rows_updated=records if state else None,
        cache_hit_rate=state[1] if state else None,
        state_latency_s=state[2] if state else None,
        key_skew=skew,
        scans=name.startswith("1 scan"),
    )


def example_measurement(estimator: CapacityEstimator | None = None, **settings) -> Measurement:
    """Measure the simulated query; `settings` go to the run."""
    run = ExampleRun(source_limit=settings.pop("source_limit", 41_000.0), **settings)
    estimator = replace(estimator or CapacityEstimator(), clock=run.clock)
    estimate = estimator.estimate(run)
    return Measurement(
        query="q5",
        budget=BUDGET,
        estimate=estimate,
        costs=fit_costs(sample for probe in estimate.probes for sample in probe.observation.samples),
        source=SourceProfile(0.004, 6.1e-6, run.source_limit),
        testbed="simulated",
        testbed_kind="simulated",
        started_at="2026-11-20T20:19:30+00:00",
        machine=Machine(processor="a model & its <stepping>", cores=2, memory_gib=15.6),
        settings={"schedule": "adaptive", "tolerance": 0.01, "max_rate": None, "slot_cpus": 0.2},
    )


def on_cores(run: Measurement, arithmetic_s: float, reads_s: float, machine: CoreSpeed | None = None) -> Measurement:
    """Give the same run on cores that took so long for the fixed work; what was timed apart goes to its machine."""
    cores = CoreSpeed(arithmetic_s, reads_s)
    probes = tuple(replace(probe, observation=replace(probe.observation, cores=cores)) for probe in run.estimate.probes)
    return replace(run, estimate=replace(run.estimate, probes=probes), machine=replace(run.machine, speed=machine))


def failed_run(run, why):
    """A run that failed, in place of one that was measured."""
    return FailedRun(run.query, run.budget, run.testbed, run.started_at, why, run.tasks, run.predicted_rate)
