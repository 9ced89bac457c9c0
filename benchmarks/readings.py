"""What estimates say of a simulated driver that is cold, slow or disturbed, next to its known truth.

    python benchmarks/readings.py [runs] [--seed 0] [--tolerance 0.1]

Each seeded run (10,000 by default, spread over the kinds) is one estimate of the workbench's own estimator, on
simulated time (support/cold_driver.py): the driver takes up to 1.5 s more of a batch while it is cold, falling over its
first minute; cores have a speed of .3, .6 or 1; a neighbour takes two fifths of them never, for 20 s of each 45 s, or
always; batches scatter by 5 %. What a row costs, the interval, and the first guess are drawn: the guess is off by a
factor of 1.3, or there is none and the warm-up begins with 400 rows.

Prints by kind: verdicts at a rate further from the truth than the tolerance, of all that say so; points, their 90 %
intervals that hold the truth, the widest, and the largest error; bounds without a point, and how many of them are above
the truth. Asserts nothing; tests/property/measuring/test_readings.py judges some of the runs.
"""

import argparse
import itertools
import math
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from cold_driver import ColdRun

from workbench.measuring import CapacityEstimator, mst_interval

SPEEDS, OTHERS = (1.0, 0.6, 0.3), ("none", "bursts", "always")
KINDS = tuple(itertools.product(("warm", "cold"), OTHERS, SPEEDS))
LOOP_S = 90.0  # after which a run of the loop begins no further probe
GUESS = math.log(1.3)  # deviation of ln of what an optimizer's objective is off by


@dataclass
class Seen:
    """What the runs of one kind said."""

    said: dict[str, int] = field(default_factory=lambda: {"sustained": 0, "overloaded": 0})
    false: dict[str, int] = field(default_factory=lambda: {"sustained": 0, "overloaded": 0})
    errors: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    held: int = 0
    bounds: int = 0
    broken: int = 0
    probes: list[int] = field(default_factory=list)

    def __add__(self, other):
        both = Seen()
        for name in ("said", "false"):
            mine, others = getattr(self, name), getattr(other, name)
            setattr(both, name, {verdict: mine[verdict] + others[verdict] for verdict in mine})
        for name in ("errors", "widths", "held", "bounds", "broken", "probes"):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        return both


def driver(seed, kind):
    """A seeded run of a kind, and what an optimizer expects of it."""
    warmth, others, speed = kind
    random = Random(seed)
    run = ColdRun(
        seed,
        speed=speed,
        others=others,
        warms_in_s=random.uniform(15.0, 40.0) if warmth == "cold" else 1.0,
        row_s=10 ** random.uniform(-5.3, -4.0),
        interval_s=random.choice((2.0, 2.0, 5.0)),
    )
    return run, run.truth * math.exp(random.gauss(0.0, GUESS)) if random.random() < 0.5 else None


def judge(seen, seed, kind, tolerance):
    """Estimate one run and add what was said of it to `seen`."""
    run, guess = driver(seed, kind)
    estimator = CapacityEstimator(tolerance, clock=run.clock, most_s=LOOP_S)
    probes = list(estimator.probes(run, (), guess))
    found = estimator.steps.conclude(probes, run.interval_s)
    seen.probes.append(sum(probe.phase == "probe" for probe in probes))
    for probe in probes:
        if probe.judgement is None or not probe.judgement.answered or probe.judgement.disturbed:
            continue
        verdict = probe.judgement.verdict
        off = probe.rate / run.truth if verdict == "sustained" else run.truth / probe.rate
        seen.said[verdict] += 1
        seen.false[verdict] += off > 1 + tolerance
    interval = mst_interval(found)
    if interval is None:
        seen.bounds += 1
        seen.broken += found.low > run.truth
        return
    seen.held += interval.low <= run.truth <= interval.high
    seen.widths.append(interval.high / interval.low)
    seen.errors.append(abs(found.middle / run.truth - 1))


def judged(runs, tolerance=0.1, first=0, kinds=KINDS):
    """Estimate `runs` runs from the seed `first` on, the kinds in turn; what was seen by kind."""
    seen = {kind: Seen() for kind in kinds}
    for number in range(runs):
        kind = kinds[number % len(kinds)]
        judge(seen[kind], first + number, kind, tolerance)
    return seen


def share(part, whole):
    return f"{part / whole:8.1%}" if whole else f"{'-':>8}"


def line(title, seen):
    points = len(seen.errors)
    print(
        f"{title:20}{points + seen.bounds:7}{sum(seen.probes) / len(seen.probes):8.1f}"
        f"{share(seen.false['sustained'], seen.said['sustained'])}"
        f"{share(seen.false['overloaded'], seen.said['overloaded'])}{points:8}{share(seen.held, points)}"
        f"{max(seen.widths, default=math.nan):8.2f}{max(seen.errors, default=math.nan):8.1%}"
        f"{seen.bounds:8}{share(seen.broken, seen.bounds)}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="?", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    parser.add_argument("--tolerance", type=float, default=0.1)
    options = parser.parse_args()
    begun = time.perf_counter()
    seen = judged(options.runs, options.tolerance, options.seed)
    heads = ("runs", "probes", "false +", "false -", "points", "held", "widest", "worst", "bounds", "broken")
    print(f"{'':20}" + "".join(f"{head:>{7 if head == 'runs' else 8}}" for head in heads))
    for (warmth, others, speed), found in seen.items():
        line(f"{warmth}, {others}, {speed:g}", found)
    line("all", sum(seen.values(), Seen()))
    print(f"{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
