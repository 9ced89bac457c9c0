"""Better allocations by moves and exchanges of tasks (compiled).

With w_gh the communication of a pair of tasks and pot[g, k] = sum_h w_gh x[h, k], moving q tasks of g from a to b
gains q (pot[g, b] - pot[g, a]); an exchange with r tasks of h also gains r (pot[h, a] - pot[h, b]) - 2 q r w_gh.
Everything is in one file because compiled functions are cached by the time stamp of their file.
"""

from typing import NamedTuple

from workbench.arrays import Floats, Ints
from workbench.placement._compiled import compiled, inlined

_MOST = 3  # tasks of one side of an exchange, if not all of them
_SHAKES = 3  # random steps away from the best allocation


class State(NamedTuple):
    """An allocation that changes, and what it is judged by."""

    counts: Ints  # (groups, nodes)
    pot: Floats  # (groups, nodes)
    free: Floats  # (nodes,): the room on each
    cost: Floats  # (groups,): of one task
    weight: Floats  # (groups, groups), symmetric, its diagonal 0
    slack: float  # the overload that still fits
    least: float  # a gain up to this counts as none


@inlined
def _shift(state: State, g: int, a: int, b: int, q: int) -> None:
    """Move q tasks of g from a to b."""
    state.counts[g, a] -= q
    state.counts[g, b] += q
    state.free[a] += q * state.cost[g]
    state.free[b] -= q * state.cost[g]
    for h in range(len(state.cost)):
        state.pot[h, a] -= q * state.weight[g, h]
        state.pot[h, b] += q * state.weight[g, h]


@inlined
def _exchanged(state: State, g: int, a: int, b: int) -> bool:
    """Exchange tasks of g on a with those of each other group on b where that gains; return whether any did."""
    counts, pot, free, cost, weight, slack, least = state
    gained = False
    for h in range(len(cost)):
        if h == g or counts[h, b] == 0 or counts[g, a] == 0:
            continue
        here, there, both = pot[g, b] - pot[g, a], pot[h, a] - pot[h, b], 2 * weight[g, h]
        if here <= least and there <= least:
            continue  # meeting there only lowers the gain
        best, best_q, best_r = 0.0, 0, 0
        for step_q in range(1, min(_MOST + 1, counts[g, a]) + 1):
            q = step_q if step_q <= _MOST else counts[g, a]
            for step_r in range(1, min(_MOST + 1, counts[h, b]) + 1):
                r = step_r if step_r <= _MOST else counts[h, b]
                gain = q * here + r * there - q * r * both
                change = q * cost[g] - r * cost[h]  # of the load of b
                if gain > best and change <= free[b] + slack and -change <= free[a] + slack:
                    best, best_q, best_r = gain, q, r
        if best > least:
            _shift(state, g, a, b, best_q)
            _shift(state, h, b, a, best_r)
            gained = True
    return gained


@inlined
def _passed(state: State) -> bool:
    """Try every move and every exchange once; return whether any gained."""
    counts, pot, free, cost, _, slack, least = state
    groups, nodes = counts.shape
    gained = False
    for a in range(nodes):
        for b in range(nodes):
            for g in range(groups):
                if a == b or counts[g, a] == 0:
                    continue
                if pot[g, b] - pot[g, a] > least and cost[g] <= free[b] + slack:
                    q = counts[g, a]
                    if q * cost[g] > free[b] + slack:
                        q = int((free[b] + slack) / cost[g])
                    _shift(state, g, a, b, q)
                    gained = True
                # pairs of nodes are seen from both sides, exchanges from one only
                if a < b and _exchanged(state, g, a, b):
                    gained = True
    return gained


@inlined
def _next(state: int) -> int:
    """Marsaglia's xorshift with 32 bits."""
    state ^= (state << 13) & 0xFFFFFFFF
    state ^= state >> 17
    return state ^ ((state << 5) & 0xFFFFFFFF)


@compiled
def _shaken(state: State, seed: int) -> int:
    """Move a random task to a random node, in exchange for another where it does not fit; returns the new seed."""
    counts, _, free, cost, _, slack, _ = state
    groups, nodes = counts.shape
    seed = _next(seed)
    g = seed % groups
    seed = _next(seed)
    a = seed % nodes
    while counts[g, a] == 0:  # every group has a task somewhere
        a = (a + 1) % nodes
    seed = _next(seed)
    b = seed % nodes
    if a == b:
        return seed
    if cost[g] <= free[b] + slack:
        _shift(state, g, a, b, 1)
        return seed
    seed = _next(seed)
    for step in range(groups):
        h = (seed + step) % groups
        change = cost[g] - cost[h]
        if h != g and counts[h, b] > 0 and change <= free[b] + slack and -change <= free[a] + slack:
            _shift(state, g, a, b, 1)
            _shift(state, h, b, a, 1)
            break
    return seed


@compiled
def _climbed(state: State) -> float:
    """Pass until nothing gains; returns the gain of the allocation."""
    while _passed(state):
        pass
    gain = 0.0
    for g in range(state.counts.shape[0]):
        for k in range(state.counts.shape[1]):
            gain += state.counts[g, k] * state.pot[g, k]
    return gain / 2


@compiled
def improve(state: State, tries: int, seed: int) -> Ints:
    """Climb, then `tries` times from a shaken copy of the best so far; returns the best counts.

    The shaking follows from `seed`, 1 to 2^32 - 1.
    """
    counts, pot, free, _, _, _, least = state
    best_gain = _climbed(state)
    best, best_pot, best_free = counts.copy(), pot.copy(), free.copy()
    for _try in range(tries):
        for _step in range(_SHAKES):
            seed = _shaken(state, seed)
        gain = _climbed(state)
        if gain >= best_gain - least:
            best_gain = max(gain, best_gain)
            best[:], best_pot[:], best_free[:] = counts, pot, free
        else:
            counts[:], pot[:], free[:] = best, best_pot, best_free
    return best
