"""How often the interval that `workbench observe` gives holds what a query sustains, and how wide it is.

    python benchmarks/observed_intervals.py [--first 0] [--seeds 200] [--batches 120] [SHAPE or KIND ...]

Logs of a query whose batch time is known, written by a queue in plain Python: a day's load whose peak is 30, 50 and
70 % of what it sustains, under batch times of several shapes. What it sustains is the rate at which a batch lasts as
long as the interval in the mean. Of each shape and level, the table has the median error, the share of logs whose 90 %
interval holds the truth, how many lie below and above it, the median of high / low, and how many logs show no rate.
The constants of `workbench.observing.headroom` were set on real Spark (`benchmarks/observing.py`), not on these.

A second table has kinds of logs as production writes them. Each log draws its own batch time: the fixed share, the
bend, the noise, how long it lasts, and the load. What it sustains is that at the log's end. Where the load is constant
there is a bound, and its share inside is that of the bounds which hold. Kinds after `HARDER` are what no constant was
set on.
"""

import argparse
import math
import statistics
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from workbench.observing import headroom, read_log

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from queued_batches import arriving, queued
from written_logs import BEGUN, a_day, application, progress, written

RATE, INTERVAL_S = 20_000.0, 2.0  # sustained; of the trigger
LEVELS = (0.3, 0.5, 0.7)


@dataclass(frozen=True)
class Shape:
    """Seconds of a batch = (fixed + rows^power) x noise + now and then a pause, in shares of the interval at `RATE`.

    `root` is the share of the rows' seconds that goes with the root of the rows: files, keys, groups. `kept` is how
    much of the noise's logarithm one batch leaves to the next; `cold` how many times as long the first batch lasts, a
    start that wears off over `COLD` batches; `often` and `pause` the share of the batches with a pause, and its mean;
    `every` the number of batches of which one has a pause of that length.
    """

    fixed: float = 0.2
    power: float = 1.0
    noise: float = 0.1
    kept: float = 0.0
    cold: float = 1.0
    often: float = 0.0
    pause: float = 0.0
    every: int = 0
    root: float = 0.0

    def batch_s(self, seed):
        """Seconds of the batch of a number with that many rows, as `queued` asks for."""
        rng = np.random.default_rng(seed)
        weather = 0.0
        rows_s = (1 - self.fixed - self.paused) * INTERVAL_S

        def lasts(number, rows):
            nonlocal weather
            weather = self.kept * weather + rng.normal(0, self.noise * math.sqrt(1 - self.kept**2))
            share = rows / (RATE * INTERVAL_S)
            cost = (1 - self.root) * share**self.power + self.root * math.sqrt(share)
            seconds = self.fixed * INTERVAL_S + rows_s * cost
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
    return headroom(read_log(logged(path, shape, level, batches, seed)).batches, INTERVAL_S)


def covered(path, shape, level, batches, seeds):
    return summed([found(path, shape, level, batches, seed) for seed in seeds])


def summed(rooms, *, bound=False):
    """Median error, share inside, below and above, median of high / low, share without a rate."""
    if bound:
        least = [room.at_least for room in rooms if room.at_least]
        holds = sum(one <= RATE for one in least) / max(1, len(least))
        error = statistics.median(one / RATE - 1 for one in least) if least else math.nan
        return error, holds, 0.0, 1 - holds, math.nan, sum(room.rate is None for room in rooms) / len(rooms)
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


@dataclass(frozen=True)
class Kind:
    """A kind of log: its load in shares of what is sustained, and what is peculiar to it.

    `grown` is by how much of the interval the fixed part grows, `growth` the power of the time with which it does, and
    `until` the share of that time after which it grows no more; `grain` the rows that the source
    releases together, in shares of an interval's at the peak; `restarts` how often it is started again; `stalls` the
    share of the batches in which the sink stalls, and `stall` for how many intervals; `root`, `noise` and `kept` are
    those of `Shape`; `cap` is the most rows of a batch, in shares of an interval's at the peak.
    """

    load: str = "day"
    peak: tuple[float, float] = (0.4, 0.9)
    grown: tuple[float, float] = (0.0, 0.0)
    growth: float = 1.0
    until: tuple[float, float] = (1.0, 1.0)
    grain: tuple[float, float] = (0.0, 0.0)
    restarts: int = 0
    stalls: float = 0.0
    stall: tuple[float, float] = (2.0, 6.0)
    root: tuple[float, float] = (0.0, 0.0)
    noise: tuple[float, float] = (0.03, 0.15)
    kept: tuple[float, float] = (0.0, 0.8)
    cap: tuple[float, float] = (0.0, 0.0)


KINDS = {
    "steady query": Kind(),
    "drift": Kind(grown=(0.15, 0.5), peak=(0.4, 1.0)),
    "coarse source": Kind(grain=(0.2, 1.0)),
    "constant": Kind("constant", (0.3, 0.8)),
    "overrun": Kind(peak=(1.1, 1.5)),
    "bursts": Kind("bursts", (0.7, 1.5)),
    "restarts": Kind(restarts=3),
    "sink that stalls": Kind(stalls=0.015),
}
HARDER = {
    "curved cost": Kind(root=(0.2, 0.6)),
    "heavy noise": Kind(noise=(0.15, 0.4)),
    "lasting noise": Kind(noise=(0.08, 0.25), kept=(0.8, 0.97)),
    "cut by a cap": Kind(cap=(0.5, 0.9)),
    "coarse and curved": Kind(grain=(0.2, 1.0), root=(0.2, 0.6)),
    "curved drift": Kind(grown=(0.15, 0.5), peak=(0.4, 1.0), root=(0.2, 0.6)),
    "drift that slows down": Kind(grown=(0.15, 0.5), growth=0.5, peak=(0.4, 1.0)),
    "drift that speeds up": Kind(grown=(0.15, 0.5), growth=2.0, peak=(0.4, 1.0)),
    "drift that ends": Kind(grown=(0.15, 0.5), until=(0.4, 0.8), peak=(0.4, 1.0)),
    "raised": Kind("raised", (1.1, 1.6)),
}
KINDS |= HARDER


def load_of_kind(kind, peak, batches, rng):
    """Rates, one of each interval, in shares of the peak."""
    if kind.load == "constant":
        return [peak * RATE] * batches
    if kind.load == "bursts":
        rates = np.full(batches, 0.12 * peak)
        for begun in rng.integers(0, batches, max(3, batches // 50)):
            rates[begun : begun + rng.integers(3, 16)] = peak * rng.uniform(0.5, 1)
        return list(rates * RATE)
    if kind.load == "raised":
        rates = rng.uniform(0.4, 0.8) * np.exp(rng.normal(0, rng.uniform(0.01, 0.2), batches))
        rates[batches - rng.integers(10, 60) :] = peak
        return list(rates * RATE)
    days = rng.uniform(1, 3)
    at = 2 * math.pi * days * (np.arange(batches) / batches + rng.uniform())
    return list(peak * RATE * (0.1 + 0.9 * (1 - np.cos(at)) / 2) * np.exp(rng.normal(0, 0.05, batches)))


def of_kind(path, kind, seed):
    """Write a log of a kind; its queue and batch time are drawn."""
    rng = np.random.default_rng(seed)
    batches = int(rng.integers(150, 700))
    grown, stall = rng.uniform(*kind.grown), rng.uniform(*kind.stall)
    shape = Shape(
        fixed=rng.uniform(0.05, 0.45) * (1 - grown),
        power=float(np.clip(rng.normal(1, 0.06), 0.85, 1.15)),
        noise=float(np.exp(rng.uniform(*np.log(kind.noise)))),
        kept=rng.uniform(*kind.kept),
        often=kind.stalls,
        pause=stall if kind.stalls else 0.0,
    )
    own = np.random.default_rng(seed + 10**6)  # so that the draws of the other kinds stay
    shape = replace(shape, fixed=shape.fixed + grown, root=own.uniform(*kind.root))  # at the end
    lasts, begins = shape.batch_s(seed), rng.choice([0.0, rng.uniform(0.2, 0.6)]) * batches
    rates = load_of_kind(kind, rng.uniform(*kind.peak), batches, rng)
    arrived = arriving(rates, INTERVAL_S)
    grain = rng.uniform(*kind.grain) * max(rates) * INTERVAL_S
    cap = own.uniform(*kind.cap) * max(rates) * INTERVAL_S or math.inf
    until = own.uniform(*kind.until)

    def released(at_s):
        return arrived(at_s) // grain * grain if grain else arrived(at_s)

    def batch_s(number, rows):
        now = lasts(number, rows) * (1 + 2 * math.exp(-cold_for(number) / COLD))
        passed = min(1.0, max(0.0, (number - begins) / (batches - begins)) / until)
        missing = grown * INTERVAL_S * (1 - passed**kind.growth)
        return max(0.05 * INTERVAL_S, now - missing)

    started = {0: 0}

    def cold_for(number):
        return number - max(one for one in started if one <= number) if kind.restarts else 9 * COLD

    log, stops = list(application(4, "spark://m:7077")), sorted(rng.integers(40, batches - 40, kind.restarts))
    begun_s, taken, first = 0.0, 0, 0
    for run, stop in enumerate([*stops, batches]):
        started[first] = run
        lasts_from, until_s = batch_s_from(batch_s, first), stop * INTERVAL_S
        told = queued(released, lasts_from, INTERVAL_S, until_s, from_s=begun_s, taken=taken, cap=cap)
        for fires, rows, seconds, left in told:
            if rows:
                log.append(progress(first, rows, BEGUN + fires, batch_s=seconds, run=f"r-{run}"))
                log[-1]["progress"]["sources"][0]["metrics"] = {
                    "avgOffsetsBehindLatest": str(left if cap < math.inf else 0)
                }
                first, taken = first + 1, taken + rows
                begun_s = fires + seconds
        begun_s = max(begun_s, stop * INTERVAL_S) + rng.uniform(20, 60)
    return written(path, log)


def batch_s_from(batch_s, first):
    return lambda number, rows: batch_s(first + number, rows)


def covered_kind(path, kind, seeds):
    rooms = []
    for seed in seeds:
        seen = read_log(of_kind(path, kind, seed))
        rooms.append(headroom(seen.batches, INTERVAL_S))
    return summed(rooms, bound=kind.load == "constant")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[*SHAPES, *KINDS], metavar="SHAPE or KIND")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument("--batches", type=int, default=120)
    options = parser.parse_args()
    print(f"{options.seeds} logs of each; of a shape, of {options.batches} batches")
    print("                         peak   error  inside   below   above  high/low  no rate")
    seeds = range(options.first, options.first + options.seeds)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names:
            log = Path(folder) / "log"
            if name in KINDS:
                tell(name, "", covered_kind(log, KINDS[name], seeds))
                continue
            for level in LEVELS:
                tell(name, f"{level:4.0%}", covered(log, SHAPES[name], level, options.batches, seeds))


def tell(name, level, figures):
    error, inside, below, above, width, none = figures
    shares = f"{inside:7.1%} {below:7.1%} {above:7.1%}"
    print(f"{name:<24} {level:>4} {error:+7.1%} {shares} {width:9.2f} {none:8.1%}", flush=True)


if __name__ == "__main__":
    main()
