"""The Configuration Optimizer (StreamBed, section V): the capacity of a budget is that of its best configuration.

On a pipelined engine the minimal configuration, one task per operator, is measured first, once per memory profile; its
true processing rates go into BIDS2, and the deployment that BIDS2 finds is measured.

In a micro-batch engine stages take turns at all slots, and what can be chosen is the partitions of each
(`bids2_micro_batch`), by the parts of a batch as fitted to the runs so far, of which one shows what several times as
many tasks cost. Until they are known, a budget gets as many partitions as slots. The objective, times what earlier
objectives were worth, is the rate that the estimator tries first.

Deviation: the first run has all slots, and not one task per stage, since a warm deployment is made for the most.
"""

import math
import statistics
from collections import Counter
from collections.abc import Collection, Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from workbench import units
from workbench.capacity.allocation import allocate
from workbench.capacity.model import MicroBatch, fit_micro_batch
from workbench.capacity.partitions import at_rate, bids2_micro_batch
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import QueryError, WorkbenchError
from workbench.journal import Journal, JournalError
from workbench.measuring import (
    CapacityEstimator,
    Concluded,
    Configuration,
    Event,
    Failed,
    failed,
    measure,
    result_of,
    reusable,
)
from workbench.records import Allocation, BatchLayout, FailedRun, Measurement, Run
from workbench.testbed import Testbed, WarmTestbed
from workbench.workload import Query

HIT_RATE = 0.9
"""Share of state accesses, by bytes, that the cache must serve on the most slots, which have the intended memory."""

MANY_TASKS, ALONE = (4,), (2, 4, 8)
"""Partitions per slot in the runs that show what tasks cost: for several budgets, and for a single one."""

_WORTH = 1.05  # least rate that a layout must promise, over that with as many partitions as slots


@dataclass(frozen=True)
class Configured:
    """How a budget is deployed, and the BIDS2 result behind it."""

    configuration: Configuration  # what is deployed; its `predicted_rate` is BIDS2's objective
    # tasks of the operators, or partitions of the stages; None where BIDS2 has no rates yet
    layout: Allocation | BatchLayout | None = None

    @property
    def sentence(self) -> str:
        """A sentence on how the budget is divided, and at which rate it should fill up."""
        asked = self.configuration
        slots, objective = units.some(asked.budget.slots, "slot"), asked.predicted_rate
        if self.layout is None and asked.tasks is not None:
            return f"One task per operator on {slots}: BIDS2 needs their rates"
        if self.layout is None:
            return f"One partition per slot on {slots}: no run has shown yet what a batch is made of"
        found, parts = f"BIDS2 for micro-batches chooses the partitions on {slots}: ", asked.partitions
        if isinstance(self.layout, Allocation):
            found, parts = f"BIDS2 divides {slots} into ", self.layout.tasks
        elif parts is None:
            found = f"BIDS2 for micro-batches finds nothing clearly better on {slots} than one partition per slot"
        found += ", ".join(f"{count:,} {name}" for name, count in (parts or {}).items())
        return f"{found}; expected: {units.rate(objective)}" if objective and math.isfinite(objective) else found

    @property
    def lines(self) -> tuple[str, ...]:
        """The sentence, as the only line."""
        return (self.sentence,)


@dataclass
class ConfigurationOptimizer:
    """Measures the best configuration it knows for a budget.

    A configuration that is measured again is another measurement, numbered by those finished before. So an optimizer
    that is asked the same in the same order, with the same journal, finds what was measured before.
    """

    testbed: Testbed
    estimator: CapacityEstimator
    journal: Journal
    costs_at: int | None = None  # slots whose first run gets short ones that separate fixed from per-record costs
    many_tasks: tuple[int, ...] = MANY_TASKS
    _minimal: dict[tuple[str, SlotProfile, float], Run] = field(default_factory=dict, init=False, repr=False)
    _finished: Counter[Hashable] = field(default_factory=Counter, init=False, repr=False)
    _measured: list[Measurement] = field(default_factory=list, init=False, repr=False)

    def measure(self, query: Query, budget: Budget) -> Run:
        """Measure the best configuration of `budget`; see `steps`."""
        return result_of(self.steps(query, budget))[-1]

    def steps(self, query: Query, budget: Budget) -> Generator[Event, None, tuple[Run, ...]]:
        """Carry out the measurements that the capacity of `budget` takes; return them, the answer last.

        A minimal budget is measured as often as you ask for it (section V). What cannot be measured is a failed run.
        """
        made = list[Run]()
        while (asked := self._following(query, budget, made)) is not None:
            if isinstance(asked, Configured):
                yield Concluded(asked)
            made.append((yield from self._run(asked)))
        return tuple(made)

    def recorded(self, query: Query, budget: Budget) -> tuple[tuple[Run, ...], bool]:
        """Return the measurements of `steps` that the journal has, and whether these are all; deploy nothing."""
        made = list[Run]()
        while (asked := self._following(query, budget, made)) is not None:
            found = asked if isinstance(asked, FailedRun) else self._reusable(asked.configuration)
            if found is None:
                return tuple(made), False
            made.append(found)
        return tuple(made), True

    def _following(self, query: Query, budget: Budget, made: Sequence[Run]) -> Configured | FailedRun | None:
        """Configure what follows the runs `made` for `budget`, or return a failed run; None if they are all."""
        operators = self.testbed.operators(query)
        if made and operators:
            self._minimal.setdefault((query.name, budget.profile, budget.interval_s), made[0])
        if made and made[-1].budget == budget:
            return None
        self.check(query, budget)
        if not operators:
            return self._in_batches(query, budget)
        single, minimal = replace(budget, slots=len(operators)), self.minimal_of(query.name, budget)
        if minimal is None or single == budget:
            return Configured(self._next(query, single, dict.fromkeys(operators, 1)))
        try:
            allocation = allocate(minimal, budget.slots)
        except WorkbenchError as error:
            return failed(Configuration(query, budget), self.testbed, error)
        return Configured(self._next(query, budget, allocation.tasks, allocation.source_rate), allocation)

    def _in_batches(self, query: Query, budget: Budget) -> Configured:
        """Configure a budget whose stages share the slots in time."""
        plain = self._next(query, budget)
        if not isinstance(self.testbed, WarmTestbed):
            return Configured(plain)
        own = [
            run
            for run in self._measured
            if (run.query, run.budget.profile, run.budget.interval_s) == (query.name, budget.profile, budget.interval_s)
        ]
        layout = best_layout(fit_micro_batch(own), budget) if own else None
        objective = None if layout is None else layout.rate
        asked = replace(
            plain,
            partitions=None if layout is None else settings_of(layout, budget.slots),
            predicted_rate=objective,
            guess=first_guess(self._measured, budget, objective),
            shared=self.testbed.shares(budget.profile),
        )
        return Configured(asked, layout)

    def check(self, query: Query, budget: Budget) -> None:
        """Refuse a budget with fewer slots than the query has operators to distribute them to."""
        operators = self.testbed.operators(query)
        if budget.slots < len(operators):
            raise WorkbenchError(
                f"Query {query.name!r} has {len(operators)} operators apart from its sources ({', '.join(operators)}); "
                f"{units.some(budget.slots, 'slot')} cannot hold them. Give it at least {len(operators)}."
            )

    def minimal_of(self, query: str, budget: Budget) -> Run | None:
        """Return the run of one task per operator behind the configurations of `budget`; None if there was none."""
        return self._minimal.get((query, budget.profile, budget.interval_s))

    def _next(
        self, query: Query, budget: Budget, tasks: Mapping[str, int] | None = None, predicted_rate: float | None = None
    ) -> Configuration:
        same = _same(query, budget, tasks)
        return Configuration(query, budget, tasks, repeat=self._finished[same], predicted_rate=predicted_rate)

    def _run(self, wanted: Configured | FailedRun) -> Generator[Event, None, Run]:
        if isinstance(wanted, FailedRun):
            yield Failed(wanted)
            return wanted
        asked = wanted.configuration
        try:
            made = yield from measure(
                asked,
                self.testbed,
                self.estimator,
                self.journal,
                costs=self._costs(asked),
                many_tasks=self.many_tasks if asked.shared else (),
                reuse=True,
            )
        except (JournalError, QueryError):
            raise
        except WorkbenchError as error:
            failure = failed(asked, self.testbed, error)
            yield Failed(failure)
            return failure
        self._take(asked, made)
        return made

    def _take(self, asked: Configuration, made: Measurement) -> None:
        self._finished[_same(asked.query, asked.budget, asked.tasks)] += 1
        self._measured.append(made)
        if isinstance(self.testbed, WarmTestbed) and asked.shared and memory_binds(made):
            self.testbed.part(asked.budget.profile)

    def _reusable(self, asked: Configuration) -> Measurement | None:
        found = reusable(asked, self.testbed, self.estimator, self.journal, costs=self._costs(asked))
        if found is not None:
            self._take(asked, found)
        return found

    def _costs(self, asked: Configuration) -> bool:
        return asked.budget.slots == self.costs_at and asked.repeat == 0


def best_layout(parts: MicroBatch | None, budget: Budget) -> BatchLayout | None:
    """Choose partitions by BIDS2: as many as slots unless others promise clearly more; None where it cannot.

    Fractions of a core are shares of one machine's quota, so a task may use what idle slots leave.
    """
    if parts is None or not parts.explains:
        return None
    slots, cpus = budget.slots, budget.profile.cpus
    speedup = max(1.0, 1 / cpus)
    found = bids2_micro_batch(parts, slots, budget.interval_s, solver="cbc", slot_speedup=speedup)
    plain = parts.rate(slots, slots, budget.interval_s)
    if found.rate <= 0 or found.rate >= _WORTH * plain:
        return found if found.rate > 0 else None
    as_many = replace(found, partitions=dict.fromkeys(found.partitions, slots), rate=plain)
    return at_rate(as_many, parts, slots, plain, speedup)


def settings_of(layout: BatchLayout, slots: int) -> dict[str, int] | None:
    """Return the partitions of source and state, as Spark can set them; None for as many as slots."""
    if set(layout.partitions.values()) == {slots}:
        return None
    source = next((layout.partitions[stage.name] for stage in layout.stages if stage.source), slots)
    state = next((layout.partitions[stage.name] for stage in layout.stages if not stage.source), source)
    return {"source": source, "state": state}


def first_guess(runs: Iterable[Measurement], budget: Budget, objective: float | None) -> float | None:
    """Estimate the records/s of `budget`: by the objective and earlier runs, or in proportion; None with neither."""
    known = [run for run in runs if run.estimate.rate and run.budget.interval_s == budget.interval_s]
    if objective is not None:
        return objective * (overstatement(known) or 1.0)
    if not known:
        return None
    nearest = min(
        known,
        key=lambda run: (
            abs(math.log(run.budget.slots / budget.slots)),
            abs(run.budget.profile.memory_mb - budget.profile.memory_mb),
        ),
    )
    return nearest.estimate.middle * budget.cpus / nearest.budget.cpus


def memory_binds(run: Measurement) -> bool:
    """Whether the state exceeds the cache of a budget, so that more memory for fewer slots would change their rate."""
    seen = run.estimate.observation
    states = [
        (operator.state_bytes, operator.cache_hit_rate)
        for operator in (seen.operators if seen is not None else ())
        if operator.state_bytes and operator.cache_hit_rate is not None
    ]
    total = sum(size for size, _ in states)
    return total > 0 and sum(size * hits for size, hits in states) < HIT_RATE * total


def _same(query: Query, budget: Budget, tasks: Mapping[str, int] | None) -> Hashable:
    return (query.name, budget, None if tasks is None else tuple(sorted(tasks.items())))


def minimal_first(budget: Budget, operators: int, measured: Collection[Budget]) -> tuple[Budget, ...]:
    """Return the budgets to measure for `budget`: first, once, the one of `operators` slots, unless that is 0."""
    minimal = replace(budget, slots=operators or budget.slots)
    return (budget,) if minimal == budget or minimal in measured else (minimal, budget)


def overstatement(runs: Iterable[Run]) -> float | None:
    """Median of measured / predicted rate: what BIDS2's objective is worth (q1: 0.85); None without a prediction."""
    ratios = [
        one.estimate.middle / one.predicted_rate
        for one in runs
        if isinstance(one, Measurement) and one.estimate.rate and one.estimate.limit == "query" and one.predicted_rate
    ]
    return statistics.median(ratios) if ratios else None
