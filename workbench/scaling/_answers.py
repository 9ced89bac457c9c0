"""Checks of what a policy returns: it may be your own policy."""

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real

from workbench.checks import require
from workbench.errors import WorkbenchError
from workbench.scaling.policies import Answer, Decision, Memory, Tasks
from workbench.simulation import Cluster

MOST_TASKS = 100_000


def interval_of(policy: object) -> float:
    """Return the seconds from one call of `policy` to the next."""
    who = _name(policy)
    require(
        callable(getattr(policy, "decide", None)) and not isinstance(policy, type),
        f"{who} is not a policy: it has no method decide(window, memory). Give an object with decide and interval_s.",
    )
    require(hasattr(policy, "interval_s"), f"Policy {who} has no interval_s; set it to the seconds between two calls.")
    seconds = policy.interval_s  # type: ignore[attr-defined]
    if not (_is_number(seconds) and 0 < seconds < math.inf):  # called at every step: build no text without need
        raise WorkbenchError(
            f"Policy {who} has interval_s = {_shown(seconds)}; it must be a finite number of seconds above 0."
        )
    return float(seconds)


def answered(policy: object, answer: Answer[Memory], operators: Sequence[str]) -> tuple[Decision | None, Memory]:
    """Split what ``decide`` returned into what to deploy (None for no change) and what to remember."""
    who = f"Policy {_name(policy)}"
    if not (isinstance(answer, tuple) and len(answer) == len(("wanted", "memory"))):  # building its text can take long
        raise WorkbenchError(
            f"{who} decided {_shown(answer)}; decide must return a pair: first the tasks by operator, a Decision or "
            "None, then what to remember."
        )
    wanted, memory = answer
    return None if wanted is None else decided(who, wanted, operators), memory


def decided(who: str, wanted: Tasks | Decision, operators: Sequence[str]) -> Decision:
    """Return tasks by operator, or a `Decision`, as a checked `Decision`; errors name `who` as its author."""
    decision = wanted if isinstance(wanted, Decision) else Decision(wanted)
    tasks, managed = decision.tasks, decision.managed_mb
    names = ", ".join(operators)
    require(
        isinstance(tasks, Mapping) and set(tasks) == set(operators),
        f"{who} gave {_shown(tasks)}; tasks must be a mapping with one number for each of {names}.",
    )
    for name, count in tasks.items():
        require(
            isinstance(count, Integral) and not isinstance(count, bool) and count >= 1,
            f"{who} gave operator {name!r} {_shown(count)} tasks; it needs a whole number of at least 1.",
        )
    together = sum(int(count) for count in tasks.values())
    require(
        together <= MOST_TASKS,
        f"{who} gave {together:,} tasks; a replay takes at most {MOST_TASKS:,}. Lower the rates, or limit the policy, "
        "for example with max_parallelism.",
    )
    require(
        managed is None or isinstance(managed, Mapping),
        f"{who} gave managed_mb = {_shown(managed)}; it must be a mapping of MB by operator, or None.",
    )
    for name, memory in (managed or {}).items():
        require(
            name in operators and (memory is None or (_is_number(memory) and 0 <= memory < math.inf)),
            f"{who} gave operator {name!r} {_shown(memory)} MB of managed memory; it must be a finite number of at "
            f"least 0 or None, for operators of {names}.",
        )
    require(
        decision.cluster is None or isinstance(decision.cluster, Cluster),
        f"{who} gave the placement {_shown(decision.cluster)}; it must be a Cluster or None.",
    )
    return decision


def _name(policy: object) -> str:
    return policy.__name__ if isinstance(policy, type) else type(policy).__name__


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
