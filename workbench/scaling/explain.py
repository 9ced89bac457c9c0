"""Why Justin decides as it does for one operator: which line of Algorithm 1 applied, on which numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from workbench.checks import SLACK
from workbench.scaling._justin import PAPER, JustinVariant, MemoryState, StateMetrics, _improved, justin

_NAME = "operator"

_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "stateless": "it keeps no state, so it takes DS2's tasks and needs no managed memory",
        "unchanged": "DS2 proposes the tasks it has, so nothing changes",
        "shrinks": "DS2 proposes fewer tasks and this variant lets it shrink",
        "grow again": "the memory of the last decision helped, so it gets more memory instead of more tasks",
        "top level": "the memory of the last decision helped, but there is no higher level, so it scales out",
        "roll back": "the memory of the last decision did not help, so it goes back and scales out instead",
        "scale up": "its state accesses are slow, so it gets more memory instead of more tasks",
        "pressure at the top": "its state accesses are slow, but there is no higher level, so it scales out",
        "scale out": "its state accesses are fast, so memory is not what it lacks and it scales out",
        "gives back": "it shrinks and hits its cache often enough to give one level of memory back",
    }
)


@dataclass(frozen=True)
class JustinExplanation:
    """A decision and its reason.

    Parameters
    ----------
    previous, proposed, decision
        What was measured, DS2's number of tasks, and what Justin makes of them.
    case
        Which case of Algorithm 1 applied, one of a fixed set of names.
    reason
        It in words.
    tests
        The comparisons made, in words with their numbers, in the order of the algorithm.
    """

    previous: MemoryState
    proposed: int
    decision: MemoryState
    case: str
    reason: str
    tests: tuple[str, ...]


def explain_justin(  # noqa: PLR0917 - what `justin` takes, for one operator
    previous: MemoryState,
    proposed: int,
    now: StateMetrics | None,
    before: StateMetrics | None = None,
    max_level: int = 3,
    hit_rate: float = 0.8,
    latency_s: float = 0.001,
    *,
    variant: JustinVariant = PAPER,
) -> JustinExplanation:
    """Decide for one operator as `justin` does, and say why.

    Parameters
    ----------
    previous, proposed
        The configuration measured, and DS2's number of tasks.
    now, before
        State metrics of the window just ended (None: stateless) and of the one before it.
    max_level, hit_rate, latency_s, variant
        As in `justin`.

    Raises
    ------
    WorkbenchError
        As `justin`.
    """
    decision = justin(
        {_NAME: previous},
        {_NAME: proposed},
        {} if now is None else {_NAME: now},
        {} if now is None or before is None else {_NAME: before},
        max_level,
        hit_rate,
        latency_s,
        variant=variant,
    )[_NAME]
    if now is None:
        return JustinExplanation(previous, proposed, decision, "stateless", _REASONS["stateless"], ())
    pressed = _is_pressed(now, hit_rate, latency_s)
    improved = _improved(now, before, variant.min_gain)
    case = _case(previous, proposed, decision, variant, pressed=pressed, improved=improved)
    tests = [f"DS2 proposes {proposed} task{'s' * (proposed != 1)}, it has {previous.tasks}"]
    if case not in {"unchanged", "shrinks"}:
        tests.append(_helped(now, before) if previous.scaled_up else _pressed(now, hit_rate, latency_s))
        if decision.level == previous.level or decision.scaled_up:
            tests.append(f"level {(previous.level or 0) + 1} of at most {max_level - 1}")
    return JustinExplanation(previous, proposed, decision, case, _REASONS[case], tuple(tests))


def _case(
    previous: MemoryState,
    proposed: int,
    decision: MemoryState,
    variant: JustinVariant,
    *,
    pressed: bool,
    improved: bool,
) -> str:
    """Name the lines of Algorithm 1 that led to the decision."""
    level, new = previous.level or 0, decision.level or 0
    if decision.scaled_up:
        return "grow again" if previous.scaled_up else "scale up"
    if proposed == previous.tasks:
        return "unchanged"
    shrinks = proposed < previous.tasks
    if new < level:
        rolled_back = previous.scaled_up and not improved and not (shrinks and variant.guard == "exceeds")
        return "roll back" if rolled_back else "gives back"
    if shrinks and variant.guard == "exceeds":
        return "shrinks"
    if previous.scaled_up:
        return "top level" if improved else "roll back"
    return "pressure at the top" if pressed else "scale out"


def _is_pressed(now: StateMetrics, hit_rate: float, latency_s: float) -> bool:
    slow = now.latency_s is not None and now.latency_s > latency_s * (1 + SLACK)
    return now.hits < hit_rate - SLACK or slow


def _pressed(now: StateMetrics, hit_rate: float, latency_s: float) -> str:
    latency = "unknown" if now.latency_s is None else f"{now.latency_s * 1e3:.3g} ms"
    return (
        f"hit rate {now.hits:.1%} against at least {hit_rate:.0%}, latency {latency} against at most "
        f"{latency_s * 1e3:.3g} ms"
    )


def _helped(now: StateMetrics, before: StateMetrics | None) -> str:
    if before is None:
        return "no window before the last decision to compare with"
    latencies = [None if one.latency_s is None else one.latency_s * 1e3 for one in (before, now)]
    latency = "unknown" if None in latencies else f"{latencies[0]:.3g} to {latencies[1]:.3g} ms"
    return f"hit rate {before.hits:.1%} to {now.hits:.1%}, latency {latency}, since the last decision"
