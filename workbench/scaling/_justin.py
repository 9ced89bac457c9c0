"""Justin: more memory per task before more tasks, on top of DS2.

D. Schmitz, G. Rosinosky, E. Rivière, "Justin: Hybrid CPU/Memory Elastic Scaling for Distributed Stream Processing",
Algorithm 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from workbench import units
from workbench.checks import SLACK, not_negative, one_of, require, whole

BASE_MEMORY_MB = 158.0
Guard = Literal["differs", "exceeds"]
Case = str  # a key of REASONS
REASONS: Mapping[Case, str] = MappingProxyType(
    {
        "stateless": "it keeps no state, so it takes DS2's tasks and needs no managed memory",
        "unchanged": "DS2 proposes the tasks it has, so nothing changes",
        "shrinks": "DS2 proposes fewer tasks and this variant lets it shrink",
        "grow again": "the memory of the last decision helped, so it gets more memory instead of more tasks",
        "top level": "the memory of the last decision helped, but there is no higher level, so it takes DS2's tasks",
        "roll back": "the memory of the last decision did not help, so it goes back and takes DS2's tasks instead",
        "scale up": "its state accesses are slow, so it gets more memory instead of more tasks",
        "pressure at the top": "its state accesses are slow, but there is no higher level, so it takes DS2's tasks",
        "scale out": "its state accesses are fast, so memory is not what it lacks and it takes DS2's tasks",
        "gives back": "it shrinks and hits its cache often enough to give one level of memory back",
        "after more memory": "it got more memory with the last decision, so now it takes DS2's tasks",
    }
)
"""Which lines of Algorithm 1 applied, and why, in words."""


@dataclass(frozen=True)
class MemoryState:
    """Configuration of one operator: the paper's p, m and v."""

    tasks: int
    level: int | None  # each task has the base memory x 2^level of managed memory, and none with None (stateless)
    scaled_up: bool = False  # whether the last decision raised the level

    def __post_init__(self) -> None:
        whole("The number of tasks of a MemoryState", self.tasks, 1)
        if self.level is not None:
            whole("The level of a MemoryState", self.level, 0)


@dataclass(frozen=True)
class StateMetrics:
    """State accesses of one operator in one window."""

    hit_rate: float | None  # theta: cache hits / look-ups; None without look-ups, which counts as 1.0
    latency_s: float | None  # tau: mean seconds of one access; None if unknown, which counts as no pressure

    def __post_init__(self) -> None:
        _share_or_none("The hit rate of StateMetrics", self.hit_rate)
        if self.latency_s is not None:
            not_negative("The latency of StateMetrics", self.latency_s)

    @property
    def hits(self) -> float:
        """The hit rate, 1.0 without look-ups."""
        return 1.0 if self.hit_rate is None else self.hit_rate


@dataclass(frozen=True)
class JustinVariant:
    """Deviations from Algorithm 1; by default there are none."""

    # ``"differs"`` is the paper's p* != p'. With ``"exceeds"`` (p* > p'), an operator that needs fewer tasks shrinks;
    # the paper's guard gives it more memory if it is under pressure.
    guard: Guard = "differs"
    # hysteresis (the paper's footnote 1): more memory helped only if the hit rate rose, or the latency fell, by more
    # than this relative amount
    min_gain: float = 0.0
    # an operator that shrinks without pressure gives one level back if its hit rate is at least this. None (the paper):
    # memory is given back only after a scale-up that did not help.
    give_back_hit_rate: float | None = None
    once: bool = False

    def __post_init__(self) -> None:
        one_of("guard", self.guard, get_args(Guard))
        not_negative("min_gain", self.min_gain)
        _share_or_none("give_back_hit_rate", self.give_back_hit_rate)


def _share_or_none(thing: str, value: float | None) -> None:
    require(value is None or 0 <= value <= 1, f"{thing} is {value!r}; it must be a share from 0 to 1, or None.")


PAPER = JustinVariant()


def managed_memory_mb(level: int | None, base_mb: float = BASE_MEMORY_MB) -> float:
    """Return the managed memory of one task, MB: `base_mb` doubled `level` times; 0 without a level."""
    return 0.0 if level is None else base_mb * 2.0**level


@dataclass(frozen=True)
class JustinDecision:
    """What Justin decides for one operator, and why."""

    previous: MemoryState  # as measured
    proposed: int  # DS2's number of tasks
    state: MemoryState  # decided
    case: Case  # which lines of Algorithm 1 applied
    tests: tuple[str, ...] = ()  # comparisons made, in words with their numbers, in the order of the algorithm
    seen: StateMetrics | None = None  # in the window; None for a stateless operator

    @property
    def reason(self) -> str:
        """The case in words."""
        return REASONS[self.case]


def justin(  # noqa: PLR0917 - the three parameters of Algorithm 1 and its four inputs
    previous: Mapping[str, MemoryState],
    proposal: Mapping[str, int],
    now: Mapping[str, StateMetrics],
    before: Mapping[str, StateMetrics],
    max_level: int = 3,
    hit_rate: float = 0.8,
    latency_s: float = 0.001,
    *,
    variant: JustinVariant = PAPER,
) -> dict[str, MemoryState]:
    """Replace scale-outs that DS2 proposes by more memory per task where state accesses are slow (Algorithm 1).

    `justin_decisions` takes the same arguments and returns the reasons too. `previous` is the configuration that was
    measured, `proposal` DS2's number of tasks of the same operators; `now` and `before` are state metrics of the window
    just ended and of the one before it. An operator absent from `now` is stateless and gets no managed memory; one
    absent from `before` has not improved. With a `max_level` of 3 there are levels 0, 1 and 2: 158, 316 and 632 MB. An
    operator is under pressure if its hit rate is below `hit_rate` or its latency is above `latency_s`.

    Followed to the letter, the paper contradicts itself in places:

    - Its guard is ``p* != p'`` although the comment says "capacity insufficient": a scale-in under pressure becomes
      a scale-up. ``JustinVariant(guard="exceeds")`` follows the comment.
    - Right after a scale-up that helped, the next one needs no pressure: memory grows again even at a high hit rate.
    - Memory is given back only after a scale-up that did not help; ``give_back_hit_rate`` changes that.
    - The paths reported for Q8 and Q11, (1; 158) -> (1; 316) -> more tasks at 316 MB, are those of
      ``JustinVariant(once=True)``: after a scale-up that helped 632 MB come next, after another one 158 MB.

    A stateful operator without a level counts as one at level 0. Raises `WorkbenchError` when the mappings do not name
    the same operators, or an operator is above the top level.
    """
    decisions = justin_decisions(previous, proposal, now, before, max_level, hit_rate, latency_s, variant=variant)
    return {name: one.state for name, one in decisions.items()}


def justin_decisions(  # noqa: PLR0917 - as `justin`
    previous: Mapping[str, MemoryState],
    proposal: Mapping[str, int],
    now: Mapping[str, StateMetrics],
    before: Mapping[str, StateMetrics],
    max_level: int = 3,
    hit_rate: float = 0.8,
    latency_s: float = 0.001,
    *,
    variant: JustinVariant = PAPER,
) -> dict[str, JustinDecision]:
    """Decide as `justin` does, from the same arguments, and return each operator's decision with its reason."""
    whole("max_level", max_level, 1)
    _check_names(previous, proposal, {"now": now, "before": before})
    decisions = {}
    for name, proposed in proposal.items():
        state = previous[name]
        require(
            state.level is None or state.level < max_level,
            f"Operator {name!r} has memory level {state.level}; max_level = {max_level} allows 0 to {max_level - 1}. "
            "Raise max_level or start the operator lower.",
        )
        if name not in now:
            decisions[name] = JustinDecision(state, proposed, MemoryState(proposed, None), "stateless")
            continue
        seen, earlier = now[name], before.get(name)
        slow = seen.latency_s is not None and seen.latency_s > latency_s * (1 + SLACK)
        pressure = slow or seen.hits < hit_rate - SLACK
        improved = _improved(seen, earlier, variant.min_gain)
        case = _case(state, proposed, max_level, pressure=pressure, improved=improved, variant=variant)
        after = _configured(case, state, proposed)
        shrinks = after.tasks < state.tasks and after.level == state.level and bool(state.level)
        least = variant.give_back_hit_rate
        if not pressure and shrinks and least is not None and seen.hits >= least - SLACK:
            case = "gives back"
            after = _configured(case, state, proposed)
        tests = [f"DS2 proposes {proposed} task{'s' * (proposed != 1)}, it has {state.tasks}"]
        if case not in {"unchanged", "shrinks"}:
            tests.append(_comparison(seen, earlier) if state.scaled_up else _against_limits(seen, hit_rate, latency_s))
            if case in _AT_LEVEL_LIMIT:
                tests.append(f"level {(state.level or 0) + 1} of at most {max_level - 1}")
        decisions[name] = JustinDecision(state, proposed, after, case, tuple(tests), seen)
    return decisions


_AT_LEVEL_LIMIT = frozenset({"scale up", "grow again", "pressure at the top", "top level"})


def _case(  # noqa: PLR0911 - the branches of Algorithm 1
    state: MemoryState, proposed: int, max_level: int, *, pressure: bool, improved: bool, variant: JustinVariant
) -> Case:
    """Follow lines 6 to 18 of Algorithm 1, for a stateful operator."""
    if proposed == state.tasks:  # line 6
        return "unchanged"
    if variant.guard == "exceeds" and proposed < state.tasks:
        return "shrinks"
    higher = (state.level or 0) + 1 < max_level
    if state.scaled_up and variant.once:
        return "after more memory"
    if state.scaled_up:  # line 7
        if not improved:  # line 8
            return "roll back"
        return "grow again" if higher else "top level"  # line 9
    if pressure:  # line 15
        return "scale up" if higher else "pressure at the top"
    return "scale out"


def _configured(case: Case, state: MemoryState, proposed: int) -> MemoryState:
    level = state.level or 0
    if case in {"scale up", "grow again"}:
        return MemoryState(state.tasks, level + 1, scaled_up=True)
    back = case in {"roll back", "gives back"}  # line 13
    return MemoryState(proposed, max(0, level - back))


def _improved(seen: StateMetrics, earlier: StateMetrics | None, min_gain: float) -> bool:
    """Evaluate line 8; equal values are not an improvement, and neither is a latency that one of the windows lacks."""
    if earlier is None:
        return False
    if seen.hits > earlier.hits * (1 + min_gain) + SLACK:
        return True
    if seen.latency_s is None or earlier.latency_s is None:
        return False
    return seen.latency_s < earlier.latency_s * (1 - min_gain) * (1 - SLACK)


def _against_limits(seen: StateMetrics, hit_rate: float, latency_s: float) -> str:
    latency = "unknown" if seen.latency_s is None else f"{seen.latency_s * 1e3:.3g} ms"
    return (
        f"hit rate {units.percent(seen.hits, 1)} against at least {units.percent(hit_rate)}, latency {latency} "
        f"against at most {latency_s * 1e3:.3g} ms"
    )


def _comparison(seen: StateMetrics, earlier: StateMetrics | None) -> str:
    if earlier is None:
        return "no window before the last decision to compare with"
    latencies = [None if one.latency_s is None else one.latency_s * 1e3 for one in (earlier, seen)]
    latency = "unknown" if None in latencies else f"{latencies[0]:.3g} to {latencies[1]:.3g} ms"
    hits = f"{units.percent(earlier.hits, 1)} to {units.percent(seen.hits, 1)}"
    return f"hit rate {hits}, latency {latency}, since the last decision"


def _check_names(
    previous: Mapping[str, MemoryState], proposal: Mapping[str, int], seen: Mapping[str, Mapping[str, StateMetrics]]
) -> None:
    different = sorted(previous.keys() ^ proposal.keys())
    require(
        not different,
        f"previous and proposal disagree on {', '.join(map(repr, different))}; give both for every operator.",
    )
    for what, metrics in seen.items():
        unknown = sorted(metrics.keys() - previous.keys())
        require(
            not unknown,
            f"`{what}` has state metrics of {', '.join(map(repr, unknown))}, which `previous` lacks; "
            f"the operators are {', '.join(previous)}.",
        )
    for name, tasks in proposal.items():
        whole(f"The proposed number of tasks of operator {name!r}", tasks, 1)
