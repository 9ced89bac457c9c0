"""The Configuration Optimizer (StreamBed, section V): the capacity of a budget is that of its best configuration.

On a pipelined engine the slots of a budget must be distributed to the operators. The minimal configuration, one task
per operator, is measured first, once per memory profile; its true processing rates go into BIDS2, and the deployment
that BIDS2 finds is measured. In a micro-batch engine stages take turns at all slots, so there is nothing to distribute:
partitions = slots is the best layout for one slot count (see `micro_batch_layout`), and it is measured at once.
"""

import statistics
from collections import Counter
from collections.abc import Collection, Generator, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from workbench import units
from workbench.capacity.allocation import allocate
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal, JournalError
from workbench.measuring import CapacityEstimator, Configuration, Event, Failed, failed, measure, result_of, reusable
from workbench.records import FailedRun, Measurement, Run
from workbench.testbed import Testbed
from workbench.workload import Query


@dataclass
class ConfigurationOptimizer:
    """Measures the best configuration it knows for a budget.

    A configuration that is measured again is another measurement: it is numbered by those that this optimizer finished
    before. So an optimizer that is asked the same in the same order, with the same journal, finds what was measured
    before, and no measurement is counted twice.

    Parameters
    ----------
    testbed, estimator
        Where and how to measure.
    journal
        Every probe and every finished measurement is recorded here, and finished ones are not repeated.
    costs_at
        Slots of the budget whose first run also gets the short runs that separate fixed from per-record costs; None: no
        run does.
    """

    testbed: Testbed
    estimator: CapacityEstimator
    journal: Journal
    costs_at: int | None = None
    _minimal: dict[tuple[str, SlotProfile, float], Run] = field(default_factory=dict, init=False, repr=False)
    _finished: Counter[Hashable] = field(default_factory=Counter, init=False, repr=False)

    def measure(self, query: Query, budget: Budget) -> Run:
        """Measure the best configuration of `budget`; see `steps`."""
        return result_of(self.steps(query, budget))[-1]

    def steps(self, query: Query, budget: Budget) -> Generator[Event, None, tuple[Run, ...]]:
        """Carry out the measurements that the capacity of `budget` takes, and return them, the answer last.

        The minimal configuration that BIDS2 needs is measured once per profile. Where the budget itself is the minimal
        one, it is measured as often as you ask for it (section V). What cannot be measured is a failed run.

        Raises
        ------
        WorkbenchError
            When the budget has fewer slots than operators.
        """
        asking, made = self._configurations(query, budget), list[Run]()
        with suppress(StopIteration):
            asked = next(asking)
            while True:
                made.append((yield from self._run(asked)))
                asked = asking.send(made[-1])
        return tuple(made)

    def recorded(self, query: Query, budget: Budget) -> tuple[tuple[Run, ...], bool]:
        """Give those measurements of `steps` that the journal has, and whether these are all; nothing is deployed."""
        asking, made = self._configurations(query, budget), list[Run]()
        with suppress(StopIteration):
            asked = next(asking)
            while True:
                found = asked if isinstance(asked, FailedRun) else self._reusable(asked)
                if found is None:
                    return tuple(made), False
                made.append(found)
                asked = asking.send(found)
        return tuple(made), True

    def _configurations(self, query: Query, budget: Budget) -> Generator[Configuration | FailedRun, Run, None]:
        """Ask for one configuration after the other, each time to be sent its run.

        What cannot even be configured is a failed run.
        """
        self.check(query, budget)
        operators = self.testbed.operators(query)
        if not operators:
            yield self._next(query, budget)
            return
        single = replace(budget, slots=len(operators))
        one_each = dict.fromkeys(operators, 1)
        minimal = self.minimal_of(query.name, budget)
        if minimal is None:
            minimal = yield self._next(query, single, one_each)
            self._minimal[query.name, budget.profile, budget.interval_s] = minimal
            if single == budget:
                return
        if single == budget:
            yield self._next(query, budget, one_each)
            return
        try:
            allocation = allocate(minimal, budget.slots)
        except WorkbenchError as error:
            yield failed(Configuration(query, budget), self.testbed, error)
            return
        yield self._next(query, budget, allocation.tasks, allocation.source_rate)

    def check(self, query: Query, budget: Budget) -> None:
        """Refuse a budget with too few slots.

        Raises
        ------
        WorkbenchError
            When it has fewer slots than the query has operators that slots are distributed to.
        """
        operators = self.testbed.operators(query)
        if budget.slots < len(operators):
            raise WorkbenchError(
                f"Query {query.name!r} has {len(operators)} operators apart from its sources ({', '.join(operators)}); "
                f"{units.some(budget.slots, 'slot')} cannot hold them. Give it at least {len(operators)}."
            )

    def minimal_of(self, query: str, budget: Budget) -> Run | None:
        """Give the run of one task per operator that configurations of `budget` rest on; None if there was none."""
        return self._minimal.get((query, budget.profile, budget.interval_s))

    def _next(
        self,
        query: Query,
        budget: Budget,
        tasks: Mapping[str, int] | None = None,
        predicted_rate: float | None = None,
    ) -> Configuration:
        same = _same(query, budget, tasks)
        return Configuration(query, budget, tasks, self._finished[same], predicted_rate)

    def _run(self, asked: Configuration | FailedRun) -> Generator[Event, None, Run]:
        if isinstance(asked, FailedRun):
            yield Failed(asked)
            return asked
        try:
            made = yield from measure(
                asked, self.testbed, self.estimator, self.journal, costs=self._costs(asked), reuse=True
            )
        except JournalError:
            raise
        except WorkbenchError as error:
            failure = failed(asked, self.testbed, error)
            yield Failed(failure)
            return failure
        self._finished[_same(asked.query, asked.budget, asked.tasks)] += 1
        return made

    def _reusable(self, asked: Configuration) -> Measurement | None:
        found = reusable(asked, self.testbed, self.estimator, self.journal, costs=self._costs(asked))
        if found is not None:
            self._finished[_same(asked.query, asked.budget, asked.tasks)] += 1
        return found

    def _costs(self, asked: Configuration) -> bool:
        return asked.budget.slots == self.costs_at and asked.repeat == 0


def _same(query: Query, budget: Budget, tasks: Mapping[str, int] | None) -> Hashable:
    return (query.name, budget, None if tasks is None else tuple(sorted(tasks.items())))


def minimal_first(budget: Budget, operators: int, measured: Collection[Budget]) -> tuple[Budget, ...]:
    """Give the budgets whose measurement `budget` takes: first, once, the one of as many slots as `operators`.

    `operators` is 0 where no slots are distributed.
    """
    minimal = replace(budget, slots=operators or budget.slots)
    return (budget,) if minimal == budget or minimal in measured else (minimal, budget)


def overstatement(runs: Iterable[Run]) -> float | None:
    """Median of measured / predicted rate: what BIDS2's objective is worth; None without a prediction.

    BIDS2 takes operators to be linear and independent, so its objective is more than what is then measured (published
    rows: 0.85 for q1, 0.88 for q2).
    """
    ratios = [
        one.estimate.middle / one.predicted_rate
        for one in runs
        if isinstance(one, Measurement) and one.estimate.rate and one.estimate.limit == "query" and one.predicted_rate
    ]
    return statistics.median(ratios) if ratios else None
