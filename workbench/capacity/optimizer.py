"""The Configuration Optimizer (StreamBed, section V): the capacity of a budget is that of its best configuration.

On a pipelined engine the slots of a budget must be dealt out to the operators. The minimal configuration, one task per
operator, is measured first, once per memory profile; its true processing rates go into BIDS2, and the deployment that
BIDS2 finds is measured. In a micro-batch engine stages take turns at all slots, so there is nothing to deal out:
partitions = slots is the best layout for one slot count (see `micro_batch_layout`), and it is measured at once.
"""

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from workbench.capacity._bids2 import Allocation, bids2
from workbench.capacity.estimator import CapacityEstimator
from workbench.capacity.measurement import Measurement
from workbench.capacity.measuring import Configuration, measure
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.metrics import Observation
from workbench.testbed.base import Testbed
from workbench.workload.query import Query

SOURCE = "source"


def _quiet(_: str) -> None:
    """Say nothing."""


@dataclass
class ConfigurationOptimizer:
    """Measures the best configuration it knows for a budget.

    Parameters
    ----------
    testbed, estimator
        Where and how to measure.
    journal
        Every probe and every finished measurement is recorded here, and finished ones are not repeated.
    costs_at
        Slots of the budget whose first run gets the short runs besides that tell fixed from per-record costs; None: no
        run does.
    progress
        Called with one line of text at each step.
    """

    testbed: Testbed
    estimator: CapacityEstimator
    journal: Journal
    costs_at: int | None = None
    progress: Callable[[str], None] = _quiet
    _minimal: dict[tuple[str, SlotProfile, float], Measurement] = field(default_factory=dict, init=False, repr=False)

    def measure(self, query: Query, budget: Budget, repeat: int = 0) -> Measurement:
        """Measure the best configuration of `budget`; see `steps`."""
        *_, last = self.steps(query, budget, repeat)
        return last

    def steps(self, query: Query, budget: Budget, repeat: int = 0) -> Iterator[Measurement]:
        """Carry out the measurements that the capacity of `budget` takes, the answer last.

        Parameters
        ----------
        repeat
            How many measurements of this budget came before. The minimal configuration that BIDS2 needs is measured
            once per profile; where the budget itself is the minimal one it is measured as often as it is asked for
            (section V).

        Raises
        ------
        WorkbenchError
            When the budget has fewer slots than operators, or the query cannot be measured.
        """
        operators = self.testbed.operators(query)
        if not operators:
            yield self._run(Configuration(query, budget, repeat=repeat))
            return
        if budget.slots < len(operators):
            raise WorkbenchError(
                f"Query {query.name!r} has {len(operators)} operators besides its sources ({', '.join(operators)}); "
                f"{budget.slots} slots are too few. Give it at least {len(operators)}."
            )
        minimal = self._minimal.get((query.name, budget.profile, budget.interval_s))
        if minimal is None:
            single = replace(budget, slots=len(operators))
            minimal = self._run(Configuration(query, single, dict.fromkeys(operators, 1)))
            self._minimal[query.name, budget.profile, budget.interval_s] = minimal
            yield minimal
            if minimal.budget.slots == budget.slots and repeat == 0:
                return
        if minimal.budget.slots == budget.slots:
            yield self._run(Configuration(query, budget, minimal.tasks, repeat))
            return
        allocation = allocate(minimal, budget.slots)
        yield self._run(Configuration(query, budget, allocation.tasks, repeat, allocation.source_rate))

    def _run(self, configuration: Configuration) -> Measurement:
        return measure(
            configuration,
            self.testbed,
            self.estimator,
            self.journal,
            costs=configuration.budget.slots == self.costs_at and configuration.repeat == 0,
            reuse=True,
            progress=self.progress,
        )


def allocate(minimal: Measurement, slots: int) -> Allocation:
    """Deal out `slots` by BIDS2 with the true rates seen in the measurement `minimal`.

    Raises
    ------
    WorkbenchError
        When the minimal configuration sustained nothing, so that no rates were seen.
    """
    seen = minimal.estimate.observation
    if seen is None or not seen.operators:
        raise WorkbenchError(
            f"The minimal configuration of {minimal.query!r} sustained no rate, so its operators' true rates are "
            "unknown; lower the estimator's min_rate or give the tasks more memory."
        )
    return bids2(true_rates(seen), input_ratios(seen), slots)


def true_rates(observation: Observation) -> dict[str, float | None]:
    """Records/s one task of each operator processes when it is always busy; sources left out (section V)."""
    return {seen.operator: seen.true_processing_rate for seen in observation.operators if seen.kind != SOURCE}


def input_ratios(observation: Observation) -> dict[str, float]:
    """Input records of each operator per source record; sources left out (section V)."""
    consumed = observation.consumed_records
    return {
        seen.operator: seen.records_in / consumed if consumed else 0.0
        for seen in observation.operators
        if seen.kind != SOURCE
    }


def overstatement(measurements: Iterable[Measurement]) -> float | None:
    """Median of measured / predicted rate: what BIDS2's objective is worth; None without a prediction.

    BIDS2 takes operators to be linear and independent, so its objective is more than what is then measured (published
    rows: 0.85 for q1, 0.88 for q2).
    """
    ratios = [
        one.estimate.rate / one.predicted_rate for one in measurements if one.estimate.rate and one.predicted_rate
    ]
    return statistics.median(ratios) if ratios else None


def tasks_for(minimal: Measurement | None, slots: int) -> Mapping[str, int] | None:
    """Tasks by operator at `slots` slots; None for an engine whose stages take turns."""
    return None if minimal is None else allocate(minimal, slots).tasks
