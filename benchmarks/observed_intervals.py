"""How often the interval that `workbench observe` gives holds what a query sustains, and how wide it is.

    python benchmarks/observed_intervals.py [--seeds 200] [--batches 120] [SHAPE ...]

Logs of a query whose batch time is known, written by a queue in plain Python: a day's load whose peak is 30, 50 and
70 % of what it sustains, under batch times of several shapes. What it sustains is the rate at which a batch lasts as
long as the interval in the mean. Of each shape and level, the table has the median error, the share of logs whose 90 %
interval holds the truth, how many lie below and above it, the median of high / low, and how many logs show no rate.
The constants of `workbench.observing.headroom` were set on real Spark (`benchmarks/observing.py`), not on these.
"""

import argparse
import math
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.observing import headroom, read_log

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from queued_batches import arriving, queued
from written_logs import BEGUN, a_day, application, progress, written

RATE, INTERVAL_S = 20_000.0, 2.0  # sustained; of the trigger
LEVELS = (0.3, 0.5, 0.7)


@dataclass(frozen=True)
class Shape:
    """Seconds of a batch = (fixed + rows^power) x noise + now and then a pause, in shares of the interval at `RATE`.

    `kept` is how much of the noise's logarithm one batch leaves to the next; `cold` how many times as long the first
    batch lasts, a start that wears off over `COLD` batches; `often` and `pause` the share of the batches with a pause,
    and its mean; `every` the number of batches of which one has a pause of that length.
    """

    fixed: float = 0.2
    power: float = 1.0
    noise: float = 0.1
    kept: float = 0.0
    cold: float = 1.0
    often: float = 0.0
    pause: float = 0.0
    every: int = 0

    def batch_s(self, seed):
        """Seconds of the batch of a number with that many rows, as `queued` asks for."""
        rng = np.random.default_rng(seed)
        weather = 0.0
        rows_s = (1 - self.fixed - self.paused) * INTERVAL_S

        def lasts(number, rows):
            nonlocal weather
            weather = self.kept * weather + rng.normal(0, self.noise * math.sqrt(1 - self.kept**2))
            seconds = self.fixed * INTERVAL_S + rows_s * (rows / (RATE * INTERVAL_S)) ** self.power
            seconds *= math.exp(weather - self.noise**2 / 2) * (1 + (self.cold - 1) * math.exp(-number / COLD))
            if rng.random() < self.often:
                seconds += rng.exponential(self.pause * INTERVAL_S)
            if self.every and number % self.every == self.every - 1:
                seconds += self.pause * INTERVAL_S
            return seconds

        return lasts

    @property
    def paused(self):
        """Mean pause of a batch."""
        return self.pause * (self.often + (1 / self.every if self.every else 0.0))


COLD = 6.0
SHAPES = {
    "linear": Shape(),
    "little noise": Shape(noise=0.01),
    "mostly rows": Shape(fixed=0.02),
    "mostly fixed": Shape(fixed=0.5),
    "GC outliers": Shape(often=0.03, pause=0.75),
    "compaction every tenth": Shape(every=10, pause=0.4),
    "slow first batches": Shape(cold=5.0),
    "neighbour": Shape(kept=0.95),
    "neighbour, strong": Shape(kept=0.98, noise=0.2),
    "bent down": Shape(power=0.85),
    "bent up": Shape(power=1.15),
}


def logged(path, shape, level, batches, seed):
    """Write the log of a day whose peak is `level` of what the query sustains."""
    rates = a_day(level * RATE, batches=batches)
    told = queued(arriving(rates, INTERVAL_S), shape.batch_s(seed), INTERVAL_S, batches * INTERVAL_S)
    log = list(application(4, "spark://m:7077"))
    for number, (fires, rows, lasts, _) in enumerate(told):
        if rows:
            log.append(progress(number, rows, BEGUN + fires, batch_s=lasts))
    return written(path, log)


def found(path, shape, level, batches, seed):
    return headroom(read_log(logged(path, shape, level, batches, seed)).batches, INTERVAL_S, seed)


def covered(path, shape, level, batches, seeds):
    """Median error, share inside, below and above, median of high / low, share without a rate."""
    rooms = [found(path, shape, level, batches, seed) for seed in range(seeds)]
    told = [room for room in rooms if room.rate is not None]
    if not told:
        return math.nan, math.nan, math.nan, math.nan, math.nan, 1.0
    above, below = (sum(one) / len(told) for one in zip(*((r.low > RATE, r.high < RATE) for r in told), strict=True))
    return (
        statistics.median(room.rate / RATE - 1 for room in told),
        1 - above - below,
        below,
        above,
        statistics.median(room.high / room.low for room in told),
        1 - len(told) / len(rooms),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=list(SHAPES), metavar="SHAPE")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--batches", type=int, default=120)
    options = parser.parse_args()
    print(f"{options.seeds} logs of {options.batches} batches each")
    print("shape                    peak   error  inside   below   above  high/low  no rate")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.shapes:
            for level in LEVELS:
                error, inside, below, above, width, none = covered(
                    Path(folder) / "log", SHAPES[name], level, options.batches, options.seeds
                )
                shares = f"{inside:7.1%} {below:7.1%} {above:7.1%}"
                print(f"{name:<24} {level:4.0%} {error:+7.1%} {shares} {width:9.2f} {none:8.1%}", flush=True)


if __name__ == "__main__":
    main()
