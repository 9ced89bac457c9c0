"""Random jobs of the class on which the CIKM '14 paper compares its algorithms with the optimum (section 7.3)."""

import random

from workbench.placement.groups import Job

TASKS = 17
COST = 500.0
CAPACITY = (100.0,) * 8
"""Eight nodes of 100 %."""


def random_job(rng: random.Random) -> Job:
    """Draw 3 to 7 groups with 17 tasks and a cost of 500 % in proportion, joined acyclically.

    Every group but the last has 1, 2 or 3 (70, 25, 5 %) later groups behind it; an edge carries 5 to 20 MB/s.

    Parameters
    ----------
    rng
        Source of randomness.
    """
    groups = rng.randint(3, 7)
    sizes = [1] * groups
    for _ in range(TASKS - groups):
        sizes[rng.randrange(groups)] += 1
    edges = []
    for group in range(groups - 1):
        fan_out = rng.choices((1, 2, 3), weights=(70, 25, 5))[0]
        later = range(group + 1, groups)
        others = sorted(rng.sample(later, min(fan_out, len(later))))
        edges += [(group, other, rng.uniform(5.0, 20.0)) for other in others]
    return Job(tuple(sizes), tuple(COST * size / TASKS for size in sizes), tuple(edges))
