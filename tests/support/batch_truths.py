"""Runs of micro-batches whose parts are known: a plain model of batches, with noise."""

import math
import random
from dataclasses import replace

from workbench.dataflow import Budget, SlotProfile
from workbench.metrics import Batch, Observation, OperatorMetrics
from workbench.records import Machine, Measurement, MstEstimate, Probe

SCAN = {"name": "1 scan", "fixed_s": 0.05, "per_row_s": 8e-6}
STATE = {"name": "2 aggregate", "fixed_s": 0.2, "per_row_s": 4e-5, "scale": 3.0, "power": 0.8, "state": True}


def filling(batch_s, interval_s):
    """Rows/s of batches that last the interval, found by bisection."""
    low, high = 0.0, 1e9
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if batch_s(middle) < interval_s else (low, middle)
    return low / interval_s


def altered(run, change):
    """Return the run with `change` made to each of its probes: those of the estimate, its loads and its divisions."""
    probes = tuple(map(change, run.estimate.probes))
    estimate = replace(run.estimate, probes=probes, observation=probes[-1].observation)
    loads, divided = (tuple(map(change, others)) for others in (run.load_curve, run.divided))
    return replace(run, estimate=estimate, load_curve=loads, divided=divided)


class Engine:
    """Micro-batches: a driver's seconds, then the stages one after the other, in waves."""

    def __init__(self, *, stages=(SCAN, STATE), driver_s=0.15, driver_task_s=0.004, noise=0.0, seed=1, contention=0.0,
                 loses=0.0, topic=None):  # fmt: skip
        self.stages, self.driver_s, self.driver_task_s = stages, driver_s, driver_task_s
        self.noise, self.draw, self.contention = noise, random.Random(seed), contention
        self.loses = loses  # exponent of the slots by which they slow each other down
        self.topic = topic  # its partitions, which the source has whatever is asked of it

    def batch_s(self, rows, slots, partitions, speed=1.0):
        counts = [self.tasks_of(stage, partitions) for stage in self.stages]
        return self._took_s(rows, slots, counts, self.slower(slots) / speed)

    def _took_s(self, rows, slots, counts, slower=1.0):
        """Seconds of a batch whose stages have these `counts` of tasks."""
        spent = sum(
            math.ceil(count / slots) * self.task_s(stage, rows / count)
            for stage, count in zip(self.stages, counts, strict=True)
        )
        return self.driver_s + self.driver_task_s * sum(counts) + spent * slower

    def slower(self, slots):
        return (1 + self.contention * (slots - 1) ** 2) * slots**self.loses

    def tasks_of(self, stage, partitions):
        return partitions if stage.get("state") else self.topic or partitions

    @staticmethod
    def rows_of(stage, fed):
        return stage.get("scale", 1.0) * fed ** stage.get("power", 1.0)

    def task_s(self, stage, fed):
        return stage["fixed_s"] + stage["per_row_s"] * self.rows_of(stage, fed)

    def rate(self, slots, partitions, interval_s, speed=1.0):
        """Rows/s of batches that fill the interval."""
        return filling(lambda rows: self.batch_s(rows, slots, partitions, speed), interval_s)

    def carried(self, slots, frozen, interval_s):
        """The same of a deployment that was restarted."""
        return filling(lambda rows: self.restarted_s(rows, slots, frozen), interval_s)

    def restarted_s(self, rows, slots, frozen):
        """Seconds of a batch with a partition of the source for each slot, and `frozen` ones of the state."""
        return self._took_s(rows, slots, [frozen if stage.get("state") else slots for stage in self.stages])

    def probe(self, slots, partitions, interval_s, share=1.0, *, own=None, number=1):
        """A reading, or a run at a `share` of the rate."""
        speed = math.exp(self.draw.gauss(0, self.noise))
        rows = share * self.rate(slots, partitions, interval_s, speed) * interval_s
        took = self.batch_s(rows, slots, partitions, speed)
        slower = self.slower(slots)
        operators = []
        for stage in self.stages:
            count = self.tasks_of(stage, partitions)
            useful = count * self.task_s(stage, rows / count) * slower / speed
            inside = int(count * self.rows_of(stage, rows / count))
            busy = min(1.0, useful / (count * took))
            state = 1000 if stage.get("state") else None
            operators.append(
                OperatorMetrics(
                    stage["name"], "map", count, 3 * inside, inside, 3 * useful, busy, None, useful, 0, state,
                    scans=not stage.get("state"),
                )
            )  # fmt: skip
        batches = tuple(Batch(interval_s * n, took, int(rows), 0.0, 0.0) for n in range(4))
        seen = Observation(math.inf, 3 * interval_s, batches, tuple(operators), source_partitions=self.topic)
        phase = "reading" if share >= 1 else "probe"
        return Probe(number, phase, math.inf, 1, seen, partitions=own, steady=True)

    def run(self, slots, interval_s=2.0, *, divided=(), loads=(), cpus=0.2, memory_mb=1024,
            machine=None):  # fmt: skip
        """A measurement with two rounds of readings, `divided` by other partitions, and at `loads`."""
        probes = tuple(self.probe(slots, slots, interval_s, number=n) for n in (1, 2))
        rates = [one.observation.batches[1].records / one.observation.batches[1].duration_s for one in probes]
        rate = math.sqrt(rates[0] * rates[1])
        estimate = MstEstimate(rate, 0.95 * rate, rate / 0.95, probes, probes[-1].observation, "query", 60.0)
        return Measurement(
            query="mine:orders",
            budget=Budget(slots, SlotProfile(cpus, memory_mb), interval_s),
            estimate=estimate,
            costs=(),
            source=None,
            testbed="Spark",
            started_at="2026-11-25T12:00:00+00:00",
            testbed_kind="spark",
            machine=machine or Machine(),
            load_curve=tuple(self.probe(slots, slots, interval_s, share) for share in loads),
            divided=tuple(self.probe(slots, count, interval_s, own=count) for count in divided),
        )
