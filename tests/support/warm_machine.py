"""A machine on which budgets share a warm deployment, simulated: 1,000 records/s of each slot, with noise."""

import math
import random
from contextlib import contextmanager

from workbench.metrics import Batch, Disturbance, Observation
from workbench.records import Machine

PER_SLOT, FIXED_S, NOISE = 1000.0, 0.3, 0.02


class Clock:
    """Seconds that pass only while something is settled or observed."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


class WarmMachine:
    """Batches take fixed seconds for each wave of tasks, and in proportion to their rows; the turn `fails_at` fails.

    The source doubles or shrinks its batches towards the interval as the real one does.
    """

    kind, identity, source = "spark", "a warm machine", None

    def __init__(self, *, seed=0, fails_at=None):
        self.random, self.clock, self.fails_at = random.Random(seed), Clock(), fails_at
        self.turns, self.deployments, self.machine = 0, 0, Machine(virtual=True)
        self.budget, self.partitions = None, None

    def operators(self, _):
        return ()

    @property
    def expected_rate(self):
        return PER_SLOT * self.budget.slots

    @contextmanager
    def deploy_shared(self, _, budgets):
        self.deployments += 1
        self.budget = max(budgets, key=lambda one: one.slots)
        yield self

    @contextmanager
    def deploy(self, _, budget, *__, **___):
        self.deployments += 1
        self.budget = budget
        yield self

    def turn(self, budget, layout=None):
        self.turns += 1
        self.partitions = (layout or {}).get("source")
        if self.turns == self.fails_at:
            raise KeyboardInterrupt
        self.budget = budget
        self.clock.now_s += 4

    def empty(self):
        self.turn(self.budget)
        return True

    def set_rate(self, rate):
        self.rate = rate

    def settle(self, seconds):
        self.clock.now_s += seconds

    await_quiet = settle

    def fill(self, least_s, most_s):
        self.settle(min(most_s, least_s))
        return True

    def observe(self, seconds):
        interval, batches, due, begun, waiting = self.budget.interval_s, [], 0.0, self.clock.now_s, 0.0
        passed, capacity = interval, PER_SLOT * self.budget.slots * interval  # records of a batch of one interval
        fixed_s = FIXED_S * math.ceil((self.partitions or self.budget.slots) / self.budget.slots)
        room = (interval - fixed_s) / (interval - FIXED_S)
        while self.clock.now_s < begun + seconds or len(batches) < 4:
            full = capacity * math.exp(self.random.gauss(0, NOISE))
            if math.isinf(self.rate):
                rows = round(capacity * room * self.random.uniform(0.8, 1.25))
                due += rows
            else:
                due += self.rate * passed
                waiting += self.rate * passed
                rows = int(min(waiting, self.rate * interval))
                waiting -= rows
            took = fixed_s + (interval - FIXED_S) * rows / full
            batches.append(Batch(self.clock.now_s, took, rows, due, waiting))
            passed = max(interval, took)
            self.clock.now_s += passed
        elapsed = batches[-1].start_s - batches[0].start_s
        return Observation(self.rate, elapsed, tuple(batches), disturbance=Disturbance(slowdown=0.0))
