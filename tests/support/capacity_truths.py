"""Simulated explorations with a known truth that comes from a mechanism, never from a form of capacity model.

Operators of random costs get whole tasks (BIDS2's optimum); what n slots lose beyond that is the mechanism's; a cache
makes records cheaper with memory. Runs are few and noisy, at few slots; the truth asked for lies 2 to 5 times beyond.
"""

import math
from dataclasses import dataclass

import numpy as np

from workbench.capacity import bids2

MEMORY_MB = (512.0, 1024.0, 2048.0, 4096.0)
MOST_SLOTS = (16, 24, 32, 48, 60)

MECHANISMS = ("whole tasks", "coordination", "stragglers", "harmonic", "full nodes", "exchange")
LEVELLING = ("hot key", "power")
"""Mechanisms of stateful queries, which the first runs hardly show: reported apart."""


@dataclass(frozen=True)
class Exploration:
    """Runs (X, y) of a query, and its true capacity at a target (1, 2)."""

    mechanism: str
    X: np.ndarray
    y: np.ndarray
    target: np.ndarray
    truth: float


def efficiency(mechanism, size, other, operators):
    """Share of the proportional capacity that n slots keep; `size` and `other` in [0, 1] say how bad it is."""
    losses = {
        "whole tasks": lambda _n: 0.0,
        "coordination": lambda n: 2e-3 * size * (n - 1) + 2e-6 * other * n * (n - 1),  # Gunther's USL
        "stragglers": lambda n: 0.4 * size * math.sqrt(2 * math.log(n)),  # slowest of n normal times
        "harmonic": lambda n: 0.08 * size * sum(1 / k for k in range(1, n + 1)),  # slowest of n exponential times
        "full nodes": lambda n: 0.3 * size * min(n, 16) / 16,  # neighbours on a node of 16 slots
        "exchange": lambda n: 0.3 * size * (1 - min(1.0, operators / n)),  # records that change tasks
        "hot key": lambda n: 10 ** (1.5 * size - 3) * n,
        "power": lambda n: n ** (0.5 - 0.3 * size) - 1,
    }
    return lambda n: 1 / (1 + losses[mechanism](n))


def explore(seed, mechanism=None):
    """Simulate one exploration; without `mechanism` a random one of MECHANISMS."""
    rng = np.random.default_rng(seed)
    mechanism = mechanism or MECHANISMS[rng.integers(len(MECHANISMS))]
    operators = int(rng.integers(2, 10))
    rates = {f"o{i}": float(rate) for i, rate in enumerate(1e5 * rng.lognormal(0, 1, operators))}
    kept = efficiency(mechanism, rng.uniform(), rng.uniform(), operators)
    cached, miss = rng.uniform(100, 1500), rng.uniform(0, 1.5) * rng.integers(2)
    most = int(rng.choice(MOST_SLOTS))
    memory = MEMORY_MB if rng.uniform() > 0.15 else MEMORY_MB[2:3]

    def capacity(memory_mb, slots):
        rate = bids2(rates, dict.fromkeys(rates, 1.0), slots).source_rate
        return rate * kept(slots) / (1 + miss * math.exp(-memory_mb / cached))

    budgets = [(m, n) for n in (operators, most) for m in (memory[0], memory[-1])]
    extra = int(rng.integers(3, 17))
    budgets += [(float(rng.choice(memory)), int(rng.integers(operators, most + 1))) for _ in range(extra)]
    noise = rng.uniform(0.02, 0.1)
    readings = [capacity(m, n) * math.exp(noise * rng.normal()) for m, n in budgets]
    target = (float(rng.choice(memory)), int(most * rng.uniform(2, 5)))
    return Exploration(
        mechanism, np.array(budgets, float), np.array(readings), np.array([target], float), capacity(*target)
    )
