"""Better allocations by moves and exchanges of tasks (compiled).

With w_gh the communication of a pair of tasks and pot[g, k] = sum_h w_gh x[h, k], moving q tasks of g from a to b
gains q (pot[g, b] - pot[g, a]); an exchange with r tasks of h also gains r (pot[h, a] - pot[h, b]) - 2 q r w_gh.
Everything is in one file because compiled functions are cached by the time stamp of their file; arrays are passed
one by one because a tuple of them takes three times as long.

All functions take `counts` and `pot`, shape (groups, nodes); `free`, the room on each node; `cost` of one task of each
group; `weight`, shape (groups, groups), symmetric, its diagonal 0; `slack`, the overload that still fits; `least`, up
to which a gain is none. The first three are overwritten.
"""

from workbench.arrays import Floats, Ints
from workbench.placement._compiled import compiled

Counts = Ints

_MOST = 3  # tasks of one side of an exchange, if not all of them
_SHAKES = 3  # random steps away from the best allocation


@compiled
def _shift(  # noqa: PLR0917
    counts: Counts, pot: Floats, free: Floats, cost: Floats, weight: Floats, g: int, a: int, b: int, q: int
) -> None:
    """Move q tasks of g from a to b."""
    counts[g, a] -= q
    counts[g, b] += q
    free[a] += q * cost[g]
    free[b] -= q * cost[g]
    for h in range(len(cost)):
        pot[h, a] -= q * weight[g, h]
        pot[h, b] += q * weight[g, h]


@compiled
def _exchanged(  # noqa: PLR0917
    counts: Counts,
    pot: Floats,
    free: Floats,
    cost: Floats,
    weight: Floats,
    slack: float,
    least: float,
    g: int,
    a: int,
    b: int,
) -> bool:
    """Exchange tasks of g on a with those of each other group on b where that gains; whether it did."""
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
            _shift(counts, pot, free, cost, weight, g, a, b, best_q)
            _shift(counts, pot, free, cost, weight, h, b, a, best_r)
            gained = True
    return gained


@compiled
def _passed(  # noqa: PLR0917
    counts: Counts, pot: Floats, free: Floats, cost: Floats, weight: Floats, slack: float, least: float
) -> bool:
    """Try every move and every exchange once; whether some gained."""
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
                    _shift(counts, pot, free, cost, weight, g, a, b, q)
                    gained = True
                # pairs of nodes are seen from both sides, exchanges from one only
                if a < b and _exchanged(counts, pot, free, cost, weight, slack, least, g, a, b):
                    gained = True
    return gained


@compiled
def _next(state: int) -> int:
    """Marsaglia's xorshift with 32 bits."""
    state ^= (state << 13) & 0xFFFFFFFF
    state ^= state >> 17
    return state ^ ((state << 5) & 0xFFFFFFFF)


@compiled
def _shaken(  # noqa: PLR0917
    counts: Counts, pot: Floats, free: Floats, cost: Floats, weight: Floats, slack: float, state: int
) -> int:
    """Move a random task to a random node, in exchange for another where it does not fit; returns the new state."""
    groups, nodes = counts.shape
    state = _next(state)
    g = state % groups
    state = _next(state)
    a = state % nodes
    while counts[g, a] == 0:  # every group has a task somewhere
        a = (a + 1) % nodes
    state = _next(state)
    b = state % nodes
    if a == b:
        return state
    if cost[g] <= free[b] + slack:
        _shift(counts, pot, free, cost, weight, g, a, b, 1)
        return state
    state = _next(state)
    for step in range(groups):
        h = (state + step) % groups
        change = cost[g] - cost[h]
        if h != g and counts[h, b] > 0 and change <= free[b] + slack and -change <= free[a] + slack:
            _shift(counts, pot, free, cost, weight, g, a, b, 1)
            _shift(counts, pot, free, cost, weight, h, b, a, 1)
            break
    return state


@compiled
def _climbed(  # noqa: PLR0917
    counts: Counts, pot: Floats, free: Floats, cost: Floats, weight: Floats, slack: float, least: float
) -> float:
    """Pass until nothing gains; returns the gain of the allocation."""
    while _passed(counts, pot, free, cost, weight, slack, least):
        pass
    gain = 0.0
    for g in range(counts.shape[0]):
        for k in range(counts.shape[1]):
            gain += counts[g, k] * pot[g, k]
    return gain / 2


@compiled
def improve(  # noqa: PLR0917
    counts: Counts,
    pot: Floats,
    free: Floats,
    cost: Floats,
    weight: Floats,
    slack: float,
    least: float,
    tries: int,
    seed: int,
) -> Counts:
    """Climb, then `tries` times from a shaken copy of the best so far; returns the best counts.

    The shaking follows from `seed`, 1 to 2^32 - 1.
    """
    best_gain = _climbed(counts, pot, free, cost, weight, slack, least)
    best, best_pot, best_free = counts.copy(), pot.copy(), free.copy()
    state = seed
    for _ in range(tries):
        for _step in range(_SHAKES):
            state = _shaken(counts, pot, free, cost, weight, slack, state)
        gain = _climbed(counts, pot, free, cost, weight, slack, least)
        if gain >= best_gain - least:
            best_gain = max(gain, best_gain)
            best[:], best_pot[:], best_free[:] = counts, pot, free
        else:
            counts[:], pot[:], free[:] = best, best_pot, best_free
    return best
