"""A warm deployment's run on simulated time: its driver is still cold, its cores are slow, and a neighbour comes by.

The driver's seconds of a batch fall within about a minute, and rows get cheaper meanwhile. The truth is the rate at
which a batch fills the interval once all code is warm and nobody is there who is not there all the time.
"""

import math
from dataclasses import replace
from random import Random

from simulated_run import SimulatedRun

from workbench.metrics import Disturbance, OperatorMetrics
from workbench.records import Machine
from workbench.testbed.spark.driver.live import fitting_rows

COLD_S = 1.5  # more of a batch in the first moment
BURST_S, EVERY_S, TAKEN = 20.0, 45.0, 0.4  # a neighbour: how long, how often, share of the slots' cores


class ColdRun(SimulatedRun):
    """A `SharedRun`; see the module.

    `speed` is that of its cores, relative to those that take `per_record_s`; `warms_in_s` the time in which what is
    cold falls to a third; `first_rows` what the warm-up expects to fit; `others` the neighbour's way.
    """

    def __init__(
        self, seed, *, speed=1.0, others="none", warms_in_s=30.0, scatter=0.05, first_rows=400, row_s=1e-5, **fields
    ):
        super().__init__(fixed_s=0.3, per_record_s=row_s / speed, **fields)
        self.random = Random(seed)
        self.warms_in_s, self.scatter, self.others = warms_in_s, scatter, others
        self.first_rows, self.ramp = first_rows, []
        self.warm_rows = lambda _number: fitting_rows(self.ramp, self.interval_s) if self.ramp else self.first_rows
        self.phase_s = self.random.uniform(0.0, EVERY_S)

    machine, source = Machine(slots="simulated"), None

    @property
    def expected_rate(self):
        return self.first_rows / self.interval_s

    def turn(self, _budget, _layout=None):
        self.ramp = []

    def empty(self):
        return True

    def fill(self, least_s, _most_s):
        self.settle(least_s)
        return True

    def cold(self, at_s):
        return math.exp(-at_s / self.warms_in_s)

    @property
    def truth(self):
        return super().truth * (1 - TAKEN if self.others == "always" else 1)

    def taken(self, at_s):
        there = self.others == "always" or (self.others == "bursts" and (at_s + self.phase_s) % EVERY_S < BURST_S)
        return TAKEN if there else 0.0

    def _batch(self):
        batch = super()._batch()
        rows_s = self.per_record_s * batch.records * (1 + self.cold(batch.start_s))
        seconds = self.fixed_s + COLD_S * self.cold(batch.start_s) + rows_s / (1 - self.taken(batch.start_s))
        batch = replace(batch, duration_s=seconds * math.exp(self.random.gauss(0.0, self.scatter)))
        boundary = (math.floor(batch.start_s / self.interval_s + 1e-9) + 1) * self.interval_s
        self.trigger = max(boundary, batch.start_s + batch.duration_s)
        if math.isinf(self.rate):
            self.ramp.append((batch.records, batch.duration_s))
        return batch

    def observe(self, seconds):
        if self.in_flight is not None:  # a window holds the batches that are released in it
            self.now = max(self.now, self.in_flight.start_s + self.in_flight.duration_s)
            self.in_flight = None
        begin = self.now
        seen = super().observe(seconds)
        batches = seen.batches[1:]
        busy_s = sum(self.per_record_s * one.records * (1 + self.cold(one.start_s)) for one in batches)
        middle = (begin + self.now) / 2
        taken = [self.taken(begin + (self.now - begin) * part / 20) for part in range(20)]
        operator = OperatorMetrics("1 scan", "map", 1, 1, 1, busy_s, 0.5, None, busy_s, 0)
        return replace(
            seen,
            operators=(operator,),
            disturbance=Disturbance(other_load=sum(taken) / len(taken)),
            compiling=1.3 * self.cold(middle),
        )
