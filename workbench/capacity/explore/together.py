"""Explore a space in warm deployments: all slot counts of one memory profile take turns in one.

A budget is given a deployment of its own where sharing is not the same thing: memory is shared in proportion to the
most slots, so a query whose state does not fit its caches would have more of it on few slots than it is to have.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace

from workbench.capacity.explore.exploration import Exploration, conclude
from workbench.capacity.explore.optimizer import ConfigurationOptimizer
from workbench.capacity.model import SCALING, Growth
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.journal import JournalError
from workbench.measuring import Event, Together, measure_together
from workbench.records import Measurement, Run
from workbench.workload import Query

DIVIDED, ALONE = (4,), (2, 4, 8)
"""Partitions for each slot of the largest budget in more readings, which show what tasks cost; of a single budget."""

HIT_RATE = 0.9
"""Share of state accesses, by bytes, that the cache must serve on the most slots, whose memory is what it should be."""


def groups_of(query: Query, budgets: tuple[Budget, ...]) -> tuple[Together, ...]:
    """Group budgets that can share a deployment: those of one profile, the fewest slots first in each.

    The largest budget of the last group is also read with more partitions than slots.
    """
    groups = []
    for profile in dict.fromkeys(budget.profile for budget in budgets):
        own = sorted((b for b in budgets if b.profile == profile), key=lambda b: (b.slots, b.interval_s))
        groups.append(Together(query, tuple(own)))
    largest = groups[-1].budgets[-1]
    times = DIVIDED if len(groups[-1].budgets) > 1 else ALONE
    groups[-1] = replace(groups[-1], divided=tuple((largest, each * largest.slots) for each in times))
    return tuple(groups)


def memory_binds(measured: Sequence[Measurement]) -> bool:
    """Whether the state does not fit the cache of the largest budget, so that fewer slots had more than they should."""
    largest = max(measured, key=lambda run: run.budget.slots)
    seen = largest.estimate.observation
    states = [
        (operator.state_bytes, operator.cache_hit_rate)
        for operator in (seen.operators if seen is not None else ())
        if operator.state_bytes and operator.cache_hit_rate is not None
    ]
    total = sum(size for size, _ in states)
    return total > 0 and sum(size * hits for size, hits in states) < HIT_RATE * total


def explore_together(
    query: Query,
    groups: tuple[Together, ...],
    optimizer: ConfigurationOptimizer,
    *,
    form: str = SCALING,
    growth: Growth = "workers",
) -> Generator[Event, None, Exploration]:
    """Measure every group in a deployment of its own, yield what happens, and return what was explored.

    The budgets of a group are measured one by one where sharing fails, or where memory limits the query.

    Raises
    ------
    WorkbenchError
        When too few budgets show a capacity for a model.
    """
    runs: list[Run] = []
    apart: list[str] = []
    for number, group in enumerate(groups):
        memory = group.budgets[0].profile.memory_mb
        try:
            measured = yield from measure_together(
                group,
                optimizer.testbed,
                optimizer.estimator,
                optimizer.journal,
                costs=optimizer.costs_at is not None and number == len(groups) - 1,
            )
        except JournalError:
            raise
        except WorkbenchError as error:
            apart.append(f"at {memory:,} MB sharing failed ({error})")
        else:
            if not memory_binds(measured):
                runs += measured
                continue
            apart.append(f"at {memory:,} MB the state does not fit its cache")
        for budget in group.budgets:
            runs.append((yield from optimizer.steps(query, budget))[-1])
    counts = f"{len(runs)} budgets were measured in {len(groups)} warm deployment{'s' * (len(groups) != 1)}"
    reason = f"{counts}; {'; '.join(apart)}, so each budget had its own there" if apart else counts
    return conclude(runs, reason, form=form, most_runs=len(runs), choice="edge", growth=growth)
