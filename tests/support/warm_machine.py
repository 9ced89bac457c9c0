"""A machine on which budgets share a warm deployment, simulated: rates by slots, drifting from turn to turn."""

import math
import random
from contextlib import contextmanager

from workbench.metrics import Batch, Disturbance, Observation
from workbench.records import Machine


class Clock:
    """Seconds that pass only while something is settled or observed."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


class WarmMachine:
    """Batches take `fixed_s` and in proportion to their rows; `per_slot` records/s fill an interval of any length.

    `drift(second)` multiplies the rate of whatever runs; `noise` is the relative deviation of one batch. The source
    doubles or shrinks its batches towards the interval as the real one does. `fails_at` is the turn that fails. Each
    wave of tasks takes `fixed_s` again.

    After a turn the state is empty for `fills_s` seconds, and the query `light` times as fast as later.
    """

    kind, identity, source = "spark", "a warm machine", None

    def __init__(self, per_slot=1000.0, *, fixed_s=0.3, drift=lambda _: 1.0, noise=0.02, seed=0, fails_at=None,
                 fills_s=0.0, light=1.0):  # fmt: skip
        self.fills_s, self.light, self.empty_s = fills_s, light, 0.0
        self.per_slot, self.fixed_s, self.drift, self.noise = per_slot, fixed_s, drift, noise
        self.random, self.clock, self.fails_at = random.Random(seed), Clock(), fails_at
        self.turns, self.deployments, self.machine = [], 0, Machine(virtual=True)
        self.disturbance, self.waited_s = {}, 0.0
        self.budget, self.partitions = None, None

    def operators(self, _):
        return ()

    @property
    def expected_rate(self):
        return self.per_slot * self.budget.slots

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
        self.turns.append(budget.slots)
        self.partitions = (layout or {}).get("source")
        if len(self.turns) == self.fails_at:
            raise KeyboardInterrupt
        self.budget = budget
        self.clock.now_s += 4
        self.empty_s = self.clock.now_s

    def empty(self):
        self.turn(self.budget)
        return True

    def set_rate(self, rate):
        self.rate = rate

    def settle(self, seconds):
        self.clock.now_s += seconds

    def fill(self, least_s, most_s):
        full = self.empty_s + self.fills_s
        self.clock.now_s += min(most_s, max(least_s, full - self.clock.now_s))
        return self.clock.now_s >= full

    def await_quiet(self, most_s):
        self.clock.now_s += most_s
        self.waited_s += most_s

    def capacity(self):
        """Records of a batch that lasts one interval now."""
        light = self.light if self.clock.now_s < self.empty_s + self.fills_s else 1.0
        return self.per_slot * self.budget.slots * self.budget.interval_s * self.drift(self.clock.now_s) * light

    def observe(self, seconds):
        interval, batches, due, begun, waiting = self.budget.interval_s, [], 0.0, self.clock.now_s, 0.0
        passed = interval
        fixed_s = self.fixed_s * math.ceil((self.partitions or self.budget.slots) / self.budget.slots)
        room = (interval - fixed_s) / (interval - self.fixed_s)
        while self.clock.now_s < begun + seconds or len(batches) < 4:
            full = self.capacity() * math.exp(self.random.gauss(0, self.noise))
            if math.isinf(self.rate):
                rows = round(self.capacity() * room * self.random.uniform(0.8, 1.25))
                due += rows
            else:
                due += self.rate * passed
                waiting += self.rate * passed
                rows = int(min(waiting, self.rate * interval))
                waiting -= rows
            took = fixed_s + (interval - self.fixed_s) * rows / full if full else fixed_s
            batches.append(Batch(self.clock.now_s, took, rows, due, waiting))
            passed = max(interval, took)
            self.clock.now_s += passed
        elapsed = batches[-1].start_s - batches[0].start_s
        slower = self.disturbance.get(len(self.turns), 0.0)
        return Observation(self.rate, elapsed, tuple(batches), disturbance=Disturbance(slowdown=slower))
