"""The schedules, adaptive and StreamBed's: which rate to probe next, as a pure function of the finished probes.

Adaptive: rates lie on a geometric grid whose neighbours differ by the tolerance, so the search ends when two neighbours
have different answers. It probes first where the line batch time = a + b x rows, through all batches seen, fills the
interval. When the line contradicts the answers the search bisects, and gallops while one end is unknown. Answers that
contradict each other are repeated; the majority of three decides. An upper end that failed only with a disturbed
machine or cold code is probed again when the machine is quiet, and any answer of a quiet machine and warm code replaces
the others. Without one, the end is raised by what the disturbance took, or the code gained.

StreamBed's (sections IV and VIII), for comparison: warm up at an unlimited rate; the mean rate is the first target.
Then per probe: 15 s at a low rate, 60 s at the target of which the last 30 s are observed. The target doubles until a
probe fails, then halves the bracket, until it changes by at most the tolerance or the probes are used up. Nothing is
repeated. Deviations: a source-bound target bounds the search from above without being reported as the query's; one that
was not offered is offered again.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import fmean

from workbench.checks import positive, whole
from workbench.errors import WorkbenchError
from workbench.measuring.costs import fit_line
from workbench.measuring.verdict import (
    COMPILING,
    Step,
    Times,
    bracket,
    busy_share,
    crowded_out,
    first_rate,
    refuted,
    source_limit,
    summarise,
    tally,
)
from workbench.metrics import Batch, Observation
from workbench.records import Limit, MstEstimate, Probe

_WARM_UP_FRACTION = 1024
_GALLOP, _DOUBLE, _BEYOND = 1.25, 2.0, 1.1
_LEAP, _LONG_LEAP = 4.0, 8.0
_NEAR = 3
_DISTINCT_SIZES, _APART = 1.02, 1.2
_LOOK_BACK = 3
_WINDOW = 6  # intervals observed: state is snapshotted in every fourth batch
_LEAST_SETTLE_S, _LEAST_WINDOW_S = 2.0, 12.0
_MOST_TAKEN, _COLD = 0.5, 0.3  # of a machine; of code that was still being compiled
_POINT = 1.5  # largest high / low of a bracket whose middle is an answer: it is off by at most a fifth, and by noise
_REPEATS_IN_ALL = 3  # repeats of all rates over those of one: on a machine that is never quiet, probes must suffice


@dataclass(frozen=True)
class Grid:
    """Rates (1 + tolerance) ** index: the same rates for every estimate of one tolerance."""

    tolerance: float

    def rate(self, index: int) -> float:
        """Records/s at `index`."""
        return float((1 + self.tolerance) ** index)

    def position(self, rate: float) -> float:
        """Position of `rate`, a whole number on the grid."""
        return math.log(rate) / math.log1p(self.tolerance)

    def index(self, rate: float) -> int:
        """Index of a rate of the grid."""
        index = round(self.position(rate))
        if not math.isclose(self.rate(index), rate, rel_tol=1e-9):
            raise WorkbenchError(
                f"A recorded probe has the rate {rate!r}, which is not on the grid of tolerance {self.tolerance}; "
                "continue with the tolerance it was recorded with, or start a new estimate."
            )
        return index

    def below(self, rate: float) -> int:
        """Index of the highest grid rate up to `rate`."""
        return math.floor(self.position(rate) + 1e-9)

    def above(self, rate: float) -> int:
        """Index of the lowest grid rate from `rate` on."""
        return math.ceil(self.position(rate) - 1e-9)

    def steps(self, factor: float) -> int:
        """Grid steps that make about `factor`, at least one."""
        return max(1, round(self.position(factor)))


@dataclass(frozen=True)
class AdaptiveSchedule:
    """The workbench's own schedule; parameters as in ``CapacityEstimator``."""

    tolerance: float = 0.01
    min_rate: float | None = None
    max_rate: float | None = None
    max_probes: int = 20
    max_repeats: int = 5
    settle_s: float | None = None
    window_s: float | None = None
    strict = True  # a growing backlog alone fails a probe, and a late batch extends its window

    @property
    def most_probes(self) -> int:
        """Most probes of one estimate, repeats included and the warm-up not."""
        return self.max_probes

    def times(self, interval_s: float) -> Times:
        """Length of each part of a probe."""
        return Times(
            self.settle_s or max(interval_s, _LEAST_SETTLE_S),
            self.window_s or max(_WINDOW * interval_s, _LEAST_WINDOW_S),
        )

    def near(self, rate: float) -> float:
        """Rate of the grid, within what may be probed, nearest to `rate`."""
        grid = Grid(self.tolerance)
        index = round(grid.position(rate))
        if self.max_rate is not None:
            index = min(index, grid.below(self.max_rate))
        return grid.rate(index)

    def next_step(self, history: Sequence[Probe], interval_s: float) -> Step | None:
        """Step after `history`; None when the estimate is finished."""
        if not history:
            return Step("warm-up", math.inf)
        search = _Search(history, self, interval_s)
        probes = [probe for probe in history if probe.phase == "probe"]
        index = search.next_index()
        if index is None or len(probes) >= self.max_probes or self._crowded_out(probes):
            return None
        rate = search.grid.rate(index)
        earlier = [probe for probe in probes if search.grid.index(probe.rate) == index]
        disturbed = sum(1 for _ in takewhile(_repeatable, reversed(earlier)))
        in_all = sum(map(_repeatable, probes))
        accept = disturbed >= self.max_repeats or in_all >= _REPEATS_IN_ALL * self.max_repeats
        return Step("probe", rate, len(earlier) + 1, accept)

    def _crowded_out(self, probes: Sequence[Probe]) -> bool:
        """Whether the slots repeatedly missed their capacity at one rate, so that more probes there would not help."""
        last = probes[-1 - self.max_repeats :]
        idle = [probe for probe in last if probe.answered("not-at-capacity") and probe.rate == last[-1].rate]
        return len(idle) > self.max_repeats

    def conclude(self, history: Sequence[Probe], interval_s: float) -> MstEstimate:
        """Bracket the MST by the probes of `history`, whether it is finished or not."""
        search = _Search(history, self, interval_s)
        found, rate = search.found, search.grid.rate
        high = math.inf if found.high is None else rate(found.high) * (1 + search.raised(found.high))
        low = 0.0 if found.low is None else rate(found.low)
        limit: Limit = "none"
        if found.high is not None:
            limit = "none" if low and high > max(_POINT, 1 + self.tolerance) * low else "query"
        elif search.source_capped and found.low is not None and found.low >= search.highest:
            limit = "source"
        doubtful, exhausted = [rate(index) for index in found.doubtful], search.next_index() is not None
        return summarise(history, low, high, limit, exhausted=exhausted, doubtful=doubtful)


class _Search:
    """The state of a search, derived from its history."""

    def __init__(self, history: Sequence[Probe], settings: AdaptiveSchedule, interval_s: float) -> None:
        self.history, self.interval_s = history, interval_s
        self.grid = grid = Grid(settings.tolerance)
        self.votes = tally(history, grid.index)
        self.found = bracket(self.votes)
        floor_rate = settings.min_rate
        if floor_rate is None:
            floor_rate = min(first_rate(history), max(1.0, first_rate(history) / _WARM_UP_FRACTION))
        highest = math.inf if settings.max_rate is None else grid.below(settings.max_rate)
        self.lowest = int(min(grid.above(floor_rate), highest))  # a range without a grid rate has the one below it
        refused = [grid.index(probe.rate) - 1 for probe in history if probe.answered("source-bound")]
        limit = source_limit(history)
        below = -math.inf if limit <= 0 else limit if math.isinf(limit) else grid.below(limit)
        source_cap = min([below, *refused])
        if source_cap < self.lowest:
            raise WorkbenchError(
                f"The source alone releases too little for the lowest rate to be probed, {grid.rate(self.lowest):,.1f} "
                f"records/s: without being the limit it could serve {limit:,.1f}. Use a longer trigger interval "
                "or more slots, so that its fixed cost per batch leaves room; or in Python lower min_rate.",
                settings=("interval_s", "slots"),
            )
        cap = min(highest, source_cap)
        self.highest = int(cap) if math.isfinite(cap) else grid.above(1e15)
        self.source_capped = source_cap < highest

    def next_index(self) -> int | None:
        """Index to probe next; None when nothing is left to ask."""
        found = self.found
        ties = sorted(index for index, vote in self.votes.items() if vote.majority is None)
        if ties:
            return ties[0]
        again = self._disturbed_end()
        if again is not None:
            return again
        gaps = [(found.low, found.high)]
        first, last = found.first_over, found.last_sustained
        if first is not None and last is not None and first < last:  # they contradict each other
            again = self._first_loose(first, last)
            if again is not None:
                return again
            gaps = [(found.low, first), (last, found.high)]
        for low, high in gaps:
            index = self._inside(low, high)
            if index is not None:
                return index
        # Where the line puts the MST well outside the bracket, one wrong answer may have misled the search.
        low, high, wish = found.low, found.high, self._predicted()
        astray = (low is not None and wish < low - _NEAR) or (high is not None and wish > high + _NEAR)
        return self._first_loose(low, high) if found.doubtful or astray else None

    def raised(self, high: int) -> float:
        """Share by which the upper end may be too low, if only a disturbed machine or cold code failed at it.

        What disturbed all probes alike is the machine. The batch of a probe that carried most shows what a quiet one
        would do.
        """
        if not self.votes[high].disturbed:
            return 0.0
        usual = min(probe.observation.disturbance.worst for probe in self.history if probe.phase == "probe")
        shares = []
        for place, probe in enumerate(self.history):
            if probe.answered("overloaded") and self.grid.index(probe.rate) == high:
                taken = min(probe.observation.disturbance.worst - usual, _MOST_TAKEN)
                carried = [one.records / one.duration_s for one in probe.observation.lasting if one.duration_s > 0]
                quick = max(carried, default=0.0) / probe.rate - 1
                cold = _COLD if probe.observation.compiling > COMPILING else 0.0
                shares.append(max(1 / (1 - taken) - 1, quick, cold, refuted(self.history, place)))
        return min(shares, default=0.0)

    def _disturbed_end(self) -> int | None:
        """Upper end, if its only failure was on a disturbed machine or with cold code, and it is quiet now."""
        high, last = self.found.high, self.history[-1].judgement
        if high is None or last is None or not last.answered or last.disturbed:
            return None
        return high if self.votes[high].disturbed and not self.votes[high].firm else None

    def _first_loose(self, *ends: int | None) -> int | None:
        """First of `ends` that a further vote could still change."""
        return next((end for end in ends if end is not None and not self.votes[end].firm), None)

    def _inside(self, low: int | None, high: int | None) -> int | None:
        """Index to probe between the answers `low` and `high`; None when they are neighbours."""
        first = self.lowest if low is None else low + 1
        last = self.highest if high is None else high - 1
        if first > last:
            return None
        wish = self._predicted()
        if low is None and high is None:
            return min(max(wish, first), last)
        if low is not None and high is not None:
            if not self._slow(high - low):
                # A line through code that was cold at `high` promises less than the batches at `low` have room for.
                wish = max(wish, self.grid.below(self.grid.rate(low) * self._room(self._sustained(low))))
                for index in (wish, wish + 1):
                    if first <= index <= last:
                        return index
            return (first + last) // 2
        edge, sign = (low, 1) if low is not None else (high or 0, -1)
        stride = self._stride(edge, sign, wish)
        if low is not None:
            stride = self._limited_by_room(stride, low)
        return min(max(edge + sign * stride, first), last)

    def _limited_by_room(self, stride: int, index: int) -> int:
        """Bound the steps above a sustained rate by the room that its batches left, whatever the line predicts.

        Half-empty batches allow twice the rate at least. Nearly full ones allow little more than in proportion, since
        code that still gets faster makes rows look free. Where others crowd the slots out, the room is what the slots'
        own work leaves: what such batches take is the driver's.
        """
        seen = self._sustained(index)
        if seen and all(map(crowded_out, seen)):
            busy = max(map(busy_share, seen))
            return self.grid.steps(min(_LONG_LEAP, max(_GALLOP, _BEYOND / busy)) if busy else _LONG_LEAP)
        room = self._room(seen)
        least = self.grid.steps(_DOUBLE) if room >= _DOUBLE else 1
        return min(max(stride, least), self.grid.steps(max(_GALLOP, _BEYOND * room)))

    def _sustained(self, index: int) -> list[Observation]:
        return [
            probe.observation
            for probe in self.history
            if probe.answered("sustained") and self.grid.index(probe.rate) == index
        ]

    def _room(self, seen: Sequence[Observation]) -> float:
        """Return how many times their batches fit the interval: of their rate, the query carries as many at least."""
        batches = [batch for observation in seen for batch in observation.lasting]
        return len(batches) * self.interval_s / max(1e-9, sum(batch.duration_s for batch in batches))

    def _stride(self, edge: int, sign: int, wish: int) -> int:
        """Count the steps away from the only known end: along the line, but growing, at most fourfold.

        Below a rate whose state still grew they may be eightfold: a rate in proportion is an upper bound there.
        """
        same = sum(vote.majority is (sign > 0) for vote in self.votes.values())
        ahead = (wish - edge) * sign
        if ahead > 0:
            stride = max(ahead, 1 << max(0, same - 2))
        else:
            gallop = self.grid.steps(_GALLOP)
            near = max(1, min(1 << (same - 1), gallop))  # on a coarse grid a step is far already
            stride = near if -ahead <= _NEAR else gallop << (same - 1)
        return min(
            stride, self.grid.steps(_LONG_LEAP if sign < 0 and self.history[-1].observation.lacking_s else _LEAP)
        )

    def _slow(self, width: int) -> bool:
        """Whether the line's proposals have not halved the bracket within three answers."""
        answered = [
            i for i, probe in enumerate(self.history) if probe.judgement is not None and probe.judgement.answered
        ]
        if width <= _NEAR or len(answered) <= _LOOK_BACK:
            return False
        before = bracket(tally(self.history[: answered[-_LOOK_BACK]], self.grid.index))
        return before.low is not None and before.high is not None and 2 * width > before.high - before.low

    def _predicted(self) -> int:
        """Index of the highest rate whose batch fits the interval, by the line through the batches."""
        answered = [probe for probe in self.history if probe.judgement is not None and probe.judgement.answered]
        quiet = [probe for probe in answered if probe.judgement is not None and not probe.judgement.disturbed]
        valid = quiet or answered
        rate = None
        if valid:
            sizes = [probe.rate for probe in valid]
            alike = max(sizes) <= _DISTINCT_SIZES * min(sizes)
            # A state is filled at the first rate to be probed: those batches have no other size, but colder code.
            probes = [self.history[0], *valid] if alike and math.isinf(self.history[0].rate) else valid
            rate = _line_rate((batch for probe in probes for batch in probe.observation.lasting), self.interval_s)
        if rate is not None:
            least = min(reversed(valid), key=lambda probe: probe.rate)  # of those alike, the one with the fuller state
            lasting = least.observation.lasting
            taken_s = fmean(batch.duration_s for batch in lasting[1:] or lasting)
            if rate == 0 or (
                least.observation.lacking_s and least.answered("overloaded") and taken_s > self.interval_s
            ):
                # In proportion at most, as its state is; the line through its batches was seen with a younger state.
                most = min(1 / _DOUBLE if rate == 0 else 1.0, self.interval_s / taken_s) * least.rate
                rate = min(rate or most, most)
        return self.grid.below(first_rate(self.history) if rate is None else rate)


def _repeatable(probe: Probe) -> bool:
    return probe.judgement is not None and probe.judgement.repeatable


def _line_rate(batches: Iterable[Batch], interval_s: float) -> float | None:
    """Rate at which a batch takes `interval_s`; None if the batches do not show it."""
    points = [(float(batch.records), batch.duration_s) for batch in batches]
    line = fit_line(points)
    if line is None:
        return None
    fixed, slope = line.fixed, line.slope
    rows = sorted(x for x, _ in points)
    if fixed >= interval_s and rows[-1] > _APART * rows[0] and min(y for _, y in points) > interval_s:
        return 0.0  # without rows a batch would take longer: fixed work, or a state that a lower rate would not leave
    if slope <= 0 or fixed >= interval_s:  # too little spread to separate a from b: in proportion
        fixed, slope = 0.0, sum(y for _, y in points) / sum(rows)
    return (interval_s - fixed) / slope / interval_s if slope > 0 else None


@dataclass(frozen=True)
class StreamBedSchedule:
    """Times (seconds), cool-down rate (records/s), probes and tolerance of the published schedule."""

    warmup_s: float = 120.0
    cooldown_s: float = 15.0
    cooldown_rate: float = 6400.0
    inject_s: float = 60.0
    observe_s: float = 30.0
    probes: int = 7
    tolerance: float = 0.01
    strict = False  # the share of consumed rows alone decides, and no window is extended

    def __post_init__(self) -> None:
        for name in ("warmup_s", "cooldown_s", "cooldown_rate", "inject_s", "observe_s"):
            positive(f"StreamBed's {name}", getattr(self, name))
        if self.observe_s > self.inject_s:
            raise WorkbenchError(
                f"StreamBed's observe_s is {self.observe_s!r}; it is the last part of inject_s = {self.inject_s!r} "
                "and cannot be longer. Shorten it."
            )
        whole("StreamBed's probes", self.probes)

    @property
    def seconds(self) -> float:
        """Longest run, in seconds."""
        return self.warmup_s + self.probes * (self.cooldown_s + self.inject_s)

    @property
    def most_probes(self) -> int:
        """Most probes of one estimate."""
        return self.probes

    def times(self, interval_s: float) -> Times:  # noqa: ARG002 - the published times hold for every interval
        """Length of each part of a probe."""
        return Times(self.inject_s - self.observe_s, self.observe_s, self.cooldown_s, self.cooldown_rate, self.warmup_s)

    def near(self, rate: float) -> float:
        """Any rate may be probed."""
        return rate

    def next_step(self, history: Sequence[Probe], interval_s: float) -> Step | None:  # noqa: ARG002
        """Step after `history`; None when the schedule is finished."""
        if not history:
            return Step("warm-up", math.inf)
        probes = [probe for probe in history if probe.phase == "probe"]
        if len(probes) >= self.probes or self._converged(history):
            return None
        target = _next_target(history)
        return Step("probe", target, 1 + sum(probe.rate == target for probe in probes), accept_disturbed=True)

    def conclude(self, history: Sequence[Probe], interval_s: float) -> MstEstimate:  # noqa: ARG002
        """Bracket the MST by the probes of `history`, whether it is finished or not."""
        probes = [probe for probe in history if probe.phase == "probe"]
        low, high = _ends(probes, bound=False)
        bound = any(probe.answered("source-bound") for probe in probes)
        limit: Limit = "query" if math.isfinite(high) else "source" if bound else "none"
        exhausted = bool(probes) and not self._converged(history)
        return summarise(history, low, high, limit, exhausted=exhausted, doubtful=())

    def _converged(self, history: Sequence[Probe]) -> bool:
        last = history[-1]
        return _answered(last) and abs(_next_target(history) - last.rate) <= self.tolerance * last.rate


SIMPLE_QUERIES = StreamBedSchedule()
STATEFUL_QUERIES = StreamBedSchedule(warmup_s=450.0, cooldown_rate=12800.0, probes=6)


def _next_target(history: Sequence[Probe]) -> float:
    probes = [probe for probe in history if probe.phase == "probe"]
    if not probes:
        return first_rate(history)
    if not _answered(probes[-1]):
        return probes[-1].rate
    low, high = _ends(probes, bound=True)
    return 2 * probes[-1].rate if math.isinf(high) else (low + high) / 2


def _answered(probe: Probe) -> bool:
    """Whether a probe shows anything about its rate; one that was not offered does not."""
    return any(map(probe.answered, ("sustained", "overloaded", "source-bound")))


def _ends(probes: Sequence[Probe], *, bound: bool) -> tuple[float, float]:
    low, high = 0.0, math.inf
    for probe in probes:
        if probe.answered("sustained"):
            low = probe.rate
        elif probe.answered("overloaded") or (bound and probe.answered("source-bound")):
            high = probe.rate
    return low, high
