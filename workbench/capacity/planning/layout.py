"""The partitions of a micro-batch: what turns a number of slots into settings that Spark has.

In a micro-batch dependent stages take turns at the slots, so a stage of k partitions runs in ceil(k / slots) waves of
tasks and the batch takes the sum over its stages. StreamBed's parallelism per operator (section V) has no counterpart
in Spark: what can be set is listed at `micro_batch_layout`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import SupportsIndex

import numpy as np
import pulp
from numpy.typing import NDArray

from workbench import units
from workbench.capacity.allocation import _cbc
from workbench.checks import positive, whole
from workbench.errors import WorkbenchError
from workbench.records import BatchLayout, Stage

TIE = 1e-6

_Table = NDArray[np.float64]  # [partition count, slot count], counts ascending


def micro_batch_layout(
    stages: Iterable[Stage],
    slots: SupportsIndex | Iterable[SupportsIndex],
    interval_s: float = 2.0,
    *,
    rate: float | Mapping[int, float],
    batch_fixed_s: float = 0.0,
    max_waves: int = 4,
    stateful_partitions: int | None = None,
) -> BatchLayout:
    """Choose the partitions of every stage, for one slot count or for all slot counts the load may ask for.

    One batch takes, at n slots, the sum over its stages of ceil(partitions / n) x (fixed seconds + records / partitions
    x seconds per record). For one slot count this sum is minimised. For several, one layout serves them all: the one of
    least maximum regret, a regret being the seconds a batch takes longer than with the layout made for that slot count
    alone.

    Parameters
    ----------
    stages
        In order; each waits for the one before it.
    slots
        Tasks that run at once: a number, or all numbers between low and peak load, such as ``range(4, 17)``.
    interval_s
        Trigger interval, seconds: a batch holds `rate` x `interval_s` source records.
    rate
        Source records/s; by slot count if the load grows with the slots.
    batch_fixed_s
        Seconds of a batch outside its stages (planning, commit); shifts the batch times alone.
    max_waves
        Counts up to this many waves at the largest slot count are considered. Many small tasks level out several slot
        counts but pay the fixed seconds in each wave.
    stateful_partitions
        A count that a checkpoint has frozen already; the other stages are laid out around it, and regrets compare with
        the best layouts of the same count. None: choose it.

    Returns
    -------
    BatchLayout
        Layouts whose maximum regret differs by less than a millionth of the longest batch count as tied: the smaller
        stateful count wins, then the smaller counts in the order of the stages.

    Raises
    ------
    WorkbenchError
        When a stage's name is used twice, a slot count has no rate or a number is out of range; or when CBC cannot be
        run.

    Notes
    -----
    What Spark can set: the partitions of a source (a source option) and of any stateless stretch (``repartition``),
    both again at each start of the query; and one count for all stateful operators of a query
    (``spark.sql.shuffle.partitions``), which the checkpoint freezes at the first start. What it cannot: a count for
    each stateful operator (that takes separate queries), another stateful count later (that takes a fresh checkpoint or
    an offline repartitioning of the stopped query's state), or slots reserved for an operator.

    All counts hold for all slot counts, so that slots may come and go under a running query. A query that is restarted
    when its slots change does better: choose the frozen count from its stateful stages alone, over the range, then lay
    out each slot count with that `stateful_partitions`. Only the frozen count then causes regret.

    At one slot count the answer is one full wave, as many partitions as slots, wherever the stage allows it. For many
    slot counts the MILP (PuLP, CBC) may take seconds: give only those that will be used.

    Simplified: records spread evenly over partitions, and stages run one after the other. Two sources overlap in Spark;
    the sum is exact where each of them fills its waves, pessimistic elsewhere.
    """
    chain = tuple(stages)
    _check_names([stage.name for stage in chain])
    asked = slots if isinstance(slots, Iterable) else (slots,)
    counts = sorted({whole("The slot count", count) for count in asked})
    if not counts:
        raise WorkbenchError("There are no slot counts; give at least one.")
    positive("The trigger interval", interval_s, "seconds")
    if not (math.isfinite(batch_fixed_s) and batch_fixed_s >= 0):
        raise WorkbenchError(f"batch_fixed_s is {batch_fixed_s!r}; it must be a finite number of at least 0.")
    records = [_rate_at(rate, count) * interval_s for count in counts]
    limit = counts[-1] * whole("max_waves", max_waves)

    state = tuple(stage for stage in chain if stage.stateful)
    choices = [state] * bool(state) + [(stage,) for stage in chain if not stage.stateful]
    options: list[Sequence[int]] = [_options(choice, limit) for choice in choices]
    if stateful_partitions is not None:
        if not state:
            raise WorkbenchError(
                f"stateful_partitions is {stateful_partitions!r}, but no stage is stateful; leave it out, or mark the "
                "stages that share the count."
            )
        options[0] = [whole("stateful_partitions", stateful_partitions)]
    tables = [_seconds(choice, tried, counts, records) for choice, tried in zip(choices, options, strict=True)]
    best = [table.min(axis=0) for table in tables]
    scale = float(np.sum(best, axis=0).max()) or 1.0
    chosen = _least_regret([(table - low) / scale for table, low in zip(tables, best, strict=True)])

    found = {
        stage.name: tried[row] for choice, tried, row in zip(choices, options, chosen, strict=True) for stage in choice
    }
    return BatchLayout(
        chain,
        {stage.name: found[stage.name] for stage in chain},
        {
            count: batch_fixed_s + sum(stage.seconds(found[stage.name], count, rows) for stage in chain)
            for count, rows in zip(counts, records, strict=True)
        },
        {count: batch_fixed_s + sum(float(low[i]) for low in best) for i, count in enumerate(counts)},
        interval_s,
    )


def _options(choice: Sequence[Stage], limit: int) -> range:
    """Partition counts that stages sharing one may have."""
    most = min([limit, *(stage.max_partitions for stage in choice if stage.max_partitions is not None)])
    return range(1, most + 1)


def _seconds(choice: Sequence[Stage], tried: Sequence[int], counts: Sequence[int], records: Sequence[float]) -> _Table:
    """Seconds of the stages that share one partition count, for each count tried and each slot count."""
    return np.array(
        [
            [sum(stage.seconds(k, n, rows) for stage in choice) for n, rows in zip(counts, records, strict=True)]
            for k in tried
        ]
    )


def _least_regret(regrets: Sequence[_Table]) -> list[int]:
    """Choose one row per table so that the largest entry of their sum is the least; ties to the earlier rows.

    A choice among ordered rows is modelled by one binary for each but the last: whether the choice lies past it.
    Branching on such a binary halves the rows, which CBC searches several times faster than one binary per row.
    """
    attainable = _attainable(regrets)
    kept = [_worth_trying(table, attainable) for table in regrets]
    problem = pulp.LpProblem("micro_batch_layout", pulp.LpMinimize)
    worst = problem.add_variable("worst", 0)
    past = [
        [problem.add_variable(f"past_{g:03d}_{row:06d}", cat=pulp.LpBinary) for row in rows[:-1]]
        for g, rows in enumerate(kept)
    ]
    for passed in past:
        for earlier, later in pairwise(passed):
            problem += later <= earlier
    for column in range(regrets[0].shape[1]):
        sums = (
            _at_choice(table[rows, column], passed) for table, rows, passed in zip(regrets, kept, past, strict=True)
        )
        problem += pulp.lpSum(sums) <= worst

    def minimise(objective: pulp.LpAffineExpression) -> list[int]:
        problem.setObjective(objective)
        _cbc.solve(problem)
        return [sum(round(v.value()) for v in passed) for passed in past]

    chosen = minimise(worst)
    least = np.sum([table[rows[i]] for table, rows, i in zip(regrets, kept, chosen, strict=True)], axis=0).max()
    problem += worst <= float(least) + TIE
    for g, passed in enumerate(past):  # ties, one choice at a time
        if chosen[g] > 0:
            chosen = minimise(pulp.lpSum(passed))
        problem += pulp.lpSum(passed) == chosen[g]
    return [rows[i] for rows, i in zip(kept, chosen, strict=True)]


def _at_choice(values: NDArray[np.float64], passed: Sequence[pulp.LpVariable]) -> pulp.LpAffineExpression:
    """Express the value at the choice: the first one, and a step for each one passed."""
    return pulp.lpDot(np.diff(values).tolist(), passed) + float(values[0])


def _attainable(regrets: Sequence[_Table]) -> float:
    """Least maximum regret of the choices that take the same row everywhere, or the last there is."""
    rows = range(max(len(table) for table in regrets))
    return min(float(np.sum([table[min(row, len(table) - 1)] for table in regrets], axis=0).max()) for row in rows)


def _worth_trying(table: _Table, attainable: float) -> list[int]:
    """Rows that alone do not exceed an attainable regret, and that no earlier one equals or beats everywhere."""
    kept: list[int] = []
    for row, values in enumerate(table):
        if values.max() <= attainable + TIE and not any((table[earlier] <= values).all() for earlier in kept):
            kept.append(row)
    return kept


def _rate_at(rate: float | Mapping[int, float], slots: int) -> float:
    if isinstance(rate, Mapping):
        if slots not in rate:
            given = ", ".join(map(str, rate)) or "none"
            raise WorkbenchError(
                f"There is no rate for {units.some(slots, 'slot')} (given: {given}); give one for each slot "
                "count, or one number for all."
            )
        rate = rate[slots]
    return positive("The rate", rate, "records/s")


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise WorkbenchError("The query has no stages; give at least one.")
    for name in names:
        if names.count(name) > 1:
            raise WorkbenchError(f"Two stages are named {name!r}; rename one.")
