"""StreamBed's published schedule (section IV and VIII), for comparison with the adaptive one.

Warm up at an unlimited rate; the mean rate is the first target. Then per probe: 15 s at a low rate, 60 s at the
target of which the last 30 s are observed. The target doubles until a probe fails, then halves the bracket, until
it changes by at most the tolerance or the probes are used up. Nothing is repeated. Deviations: a source-bound target
bounds the search from above without being reported as the query's; one that was not offered is offered again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.checks import positive
from workbench.errors import WorkbenchError
from workbench.measuring.bracket import Step, Times, first_rate, summarise
from workbench.records import Limit, MstEstimate, Probe


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
        if self.probes < 1:
            raise WorkbenchError(f"StreamBed's probes is {self.probes!r}; allowed are 1 and more. Raise it.")

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
