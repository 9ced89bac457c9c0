"""Justin: more memory per task before more tasks, on top of DS2 [1]_.

References
----------
.. [1] D. Schmitz, G. Rosinosky, E. Rivière, "Justin: Hybrid CPU/Memory Elastic Scaling for Distributed Stream
   Processing", Algorithm 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from workbench.checks import SLACK, not_negative, require, whole

BASE_MEMORY_MB = 158.0
Guard = Literal["differs", "exceeds"]


@dataclass(frozen=True)
class MemoryState:
    """Configuration of one operator: the paper's p, m and v.

    Parameters
    ----------
    tasks
        p, at least 1.
    level
        m: each task has the base memory x 2^m of managed memory; None has none (stateless).
    scaled_up
        v: the last decision gave it a level more.
    """

    tasks: int
    level: int | None
    scaled_up: bool = False

    def __post_init__(self) -> None:
        whole("The number of tasks of a MemoryState", self.tasks, 1)
        if self.level is not None:
            whole("The level of a MemoryState", self.level, 0)


@dataclass(frozen=True)
class StateMetrics:
    """State accesses of one operator in one window.

    Parameters
    ----------
    hit_rate
        theta: cache hits / look-ups; None without any, which counts as 1.0.
    latency_s
        tau: mean seconds of one access; None when unknown, which is no pressure.
    """

    hit_rate: float | None
    latency_s: float | None

    def __post_init__(self) -> None:
        if self.hit_rate is not None:
            require(
                0 <= self.hit_rate <= 1,
                f"The hit rate of StateMetrics is {self.hit_rate!r}; it must be a share from 0 to 1, or None.",
            )
        if self.latency_s is not None:
            not_negative("The latency of StateMetrics", self.latency_s)

    @property
    def hits(self) -> float:
        """The hit rate, 1.0 without look-ups."""
        return 1.0 if self.hit_rate is None else self.hit_rate


@dataclass(frozen=True)
class JustinVariant:
    """Departures from Algorithm 1; the default has none.

    Parameters
    ----------
    guard
        ``"differs"`` is the paper's p* != p'. With ``"exceeds"`` (p* > p') an operator that should shrink shrinks,
        whereas the paper's guard gives it more memory when it is under pressure.
    min_gain
        Hysteresis (the paper's footnote 1): more memory helped only if the hit rate rose or the latency fell by more
        than this share of itself.
    give_back_hit_rate
        An operator that shrinks without pressure gives one level back when its hit rate is at least this; None (the
        paper) gives memory back only after a scale-up that did not help.
    """

    guard: Guard = "differs"
    min_gain: float = 0.0
    give_back_hit_rate: float | None = None

    def __post_init__(self) -> None:
        require(
            self.guard in get_args(Guard),
            f"guard is {self.guard!r}; use one of {', '.join(map(repr, get_args(Guard)))}.",
        )
        not_negative("min_gain", self.min_gain)
        if self.give_back_hit_rate is not None:
            require(
                0 <= self.give_back_hit_rate <= 1,
                f"give_back_hit_rate is {self.give_back_hit_rate!r}; it must be a share from 0 to 1, or None.",
            )


PAPER = JustinVariant()


def managed_memory_mb(level: int | None, base_mb: float = BASE_MEMORY_MB) -> float:
    """Compute the managed memory of one task, MB: `base_mb` doubled `level` times, 0 without a level."""
    return 0.0 if level is None else base_mb * 2.0**level


def justin(  # noqa: PLR0917 - the three parameters of Algorithm 1 beside its four inputs
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

    Parameters
    ----------
    previous
        The configuration that was measured, per operator.
    proposal
        DS2's number of tasks for the same operators.
    now, before
        State metrics of the window just ended and of the one before it. An operator absent from `now` is stateless
        and gets no managed memory; absent from `before`, it has not improved.
    max_level
        Number of levels: 3 gives levels 0, 1 and 2, which are 158, 316 and 632 MB.
    hit_rate, latency_s
        An operator is under pressure when its hit rate is below the one or its latency above the other.
    variant
        Named departures from the paper.

    Raises
    ------
    WorkbenchError
        When the operators of `previous` and `proposal` differ, metrics name an unknown operator, or an operator is
        above the top level.

    Notes
    -----
    Followed to the letter, the paper contradicts itself in places:

    - Its guard is ``p* != p'`` although the comment says "capacity insufficient": a scale-in under pressure becomes
      a scale-up. ``JustinVariant(guard="exceeds")`` follows the comment.
    - Right after a scale-up that helped, the next one needs no pressure: memory grows again at a fine hit rate.
    - Memory is given back only by a scale-up that did not help; ``give_back_hit_rate`` changes that.
    - The paths reported for Q8 and Q11, (1; 158) -> (1; 316) -> more tasks at 316 MB, cannot happen with three
      levels: after a scale-up that helped there is still room for 632 MB, otherwise the level returns to 158 MB.
      They need ``max_level=2``.

    An operator that turns stateful counts as one at level 0.
    """
    whole("max_level", max_level, 1)
    _check_names(previous, proposal, now, before)
    decision = {}
    for name, proposed in proposal.items():
        state = previous[name]
        require(
            state.level is None or state.level < max_level,
            f"Operator {name!r} has memory level {state.level}; max_level = {max_level} allows 0 to {max_level - 1}. "
            "Raise max_level or start the operator lower.",
        )
        if name not in now:
            decision[name] = MemoryState(proposed, None)
            continue
        seen = now[name]
        pressure = seen.hits < hit_rate - SLACK or (
            seen.latency_s is not None and seen.latency_s > latency_s * (1 + SLACK)
        )
        improved = _improved(seen, before.get(name), variant.min_gain)
        decision[name] = _decide(state, proposed, max_level, pressure=pressure, improved=improved, guard=variant.guard)
        if not pressure and _gives_back(state, decision[name], seen.hits, variant.give_back_hit_rate):
            decision[name] = MemoryState(proposed, (state.level or 0) - 1)
    return decision


def _decide(
    state: MemoryState, proposed: int, max_level: int, *, pressure: bool, improved: bool, guard: Guard
) -> MemoryState:
    """Lines 6 to 18 of Algorithm 1, for a stateful operator."""
    level = state.level or 0
    if proposed == state.tasks or (guard == "exceeds" and proposed < state.tasks):  # line 6
        return MemoryState(proposed, level)
    if state.scaled_up and not improved:  # lines 7, 8
        return MemoryState(proposed, max(0, level - 1))  # line 13: roll back
    helps = state.scaled_up or pressure  # line 7 or line 15
    if helps and level + 1 < max_level:  # lines 9, 15
        return MemoryState(state.tasks, level + 1, scaled_up=True)
    return MemoryState(proposed, level)


def _improved(seen: StateMetrics, earlier: StateMetrics | None, min_gain: float) -> bool:
    """Line 8; equal counts as not, so does a latency that one of the windows lacks."""
    if earlier is None:
        return False
    if seen.hits > earlier.hits * (1 + min_gain) + SLACK:
        return True
    if seen.latency_s is None or earlier.latency_s is None:
        return False
    return seen.latency_s < earlier.latency_s * (1 - min_gain) * (1 - SLACK)


def _gives_back(state: MemoryState, decision: MemoryState, hits: float, least: float | None) -> bool:
    shrinks = decision.tasks < state.tasks and decision.level == state.level
    return shrinks and bool(state.level) and least is not None and hits >= least - SLACK


def _check_names(
    previous: Mapping[str, MemoryState],
    proposal: Mapping[str, int],
    now: Mapping[str, StateMetrics],
    before: Mapping[str, StateMetrics],
) -> None:
    different = sorted(previous.keys() ^ proposal.keys())
    require(
        not different,
        f"previous and proposal disagree on {', '.join(map(repr, different))}; give both for every operator.",
    )
    for what, metrics in (("now", now), ("before", before)):
        unknown = sorted(metrics.keys() - previous.keys())
        require(
            not unknown,
            f"`{what}` has state metrics of {', '.join(map(repr, unknown))}, which `previous` lacks; "
            f"the operators are {', '.join(previous)}.",
        )
    for name, tasks in proposal.items():
        whole(f"The proposed number of tasks of operator {name!r}", tasks, 1)
