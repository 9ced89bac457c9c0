"""A machine on which budgets share a warm deployment, simulated: 1,000 records/s of each slot, with noise."""

import math
import random
from contextlib import contextmanager

from simulated_run import SimulatedRun

from workbench.records import Machine

PER_SLOT, FIXED_S, NOISE = 1000.0, 0.3, 0.02


class WarmMachine(SimulatedRun):
    """Batches take fixed seconds for each wave of tasks, and in proportion to their rows; the turn `fails_at` fails.

    The source doubles or shrinks its batches towards the interval as the real one does.
    """

    kind, identity, source, machine = "spark", "a warm machine", None, Machine(virtual=True)

    def __init__(self, *, seed=0, fails_at=None):
        dice = random.Random(seed)
        super().__init__(
            noise=lambda _: math.exp(dice.gauss(0, NOISE)),
            warm_rows=lambda _: round(self.truth * self.interval_s * dice.uniform(0.8, 1.25)),
        )
        self.fails_at, self.turns, self.deployments = fails_at, 0, 0

    def operators(self, _):
        return ()

    @property
    def expected_rate(self):
        return PER_SLOT * self.budget.slots

    @contextmanager
    def deploy_shared(self, query, budgets):
        with self.deploy(query, max(budgets, key=lambda one: one.slots)) as run:
            yield run

    @contextmanager
    def deploy(self, _, budget, *__, **___):
        self.deployments += 1
        self._use(budget, budget.slots)
        yield self

    def turn(self, budget, layout=None):
        self.turns += 1
        if self.turns == self.fails_at:
            raise KeyboardInterrupt
        self._use(budget, (layout or {}).get("source", budget.slots))

    def _use(self, budget, partitions):
        interval = budget.interval_s
        self.budget, self.interval_s, self.in_flight, self.trigger = budget, interval, None, self.now
        self.fixed_s = FIXED_S * math.ceil(partitions / budget.slots)
        self.per_record_s = (interval - FIXED_S) / (PER_SLOT * budget.slots * interval)

    def empty(self):
        self.turn(self.budget)
        return True

    def fill(self, least_s, most_s):
        self.settle(min(most_s, least_s))
        return True
