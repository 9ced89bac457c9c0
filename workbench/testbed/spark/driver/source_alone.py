"""The source alone: its cost, and the highest rate it can feed to a query."""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from workbench.dataflow import Budget
from workbench.metrics import SOURCE_MARGIN, SourceProfile
from workbench.testbed.spark.driver.feed import TopicRows
from workbench.testbed.spark.driver.live import CompletedBatch, LiveQuery, now_s
from workbench.testbed.spark.driver.queries import Queries
from workbench.testbed.spark.driver.spec import DeploymentSpec
from workbench.testbed.spark.log.operators import SourceCost, fit_source, line
from workbench.workload import Generator
from workbench.workload.source import RowsOnly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Small and large in turns: else code that still gets faster would make small batches look slow, or large ones fast.
_SHARES = (0.5, 1.5, 0.5, 1.5)
_WARM_S = 15.0
_GROWTH = 3
_DISTINCT_S = 0.2
_LONG_S = 1.0
_LEAST_ROWS = 1_000
_REPEATS = 2  # a profile is repeated at most this often: it takes about 20 s


class SourceAlone:
    """The source of one deployment, on the budget `most`, profiled at its start or where a rate is missed.

    A neighbour on the machine, or code that is still cold, makes a source look slower than it is, and nothing makes it
    look faster. So a profile in doubt is taken again before later rates are called source-bound, and the faster counts.
    """

    def __init__(self, most: Budget) -> None:
        self.cost = SourceCost()
        self._most = most
        self._alone: SourceCost | None = None  # seconds of a batch, on all CPUs of the deployment
        self._taken = 0

    @property
    def known(self) -> bool:
        """Whether the source was measured."""
        return self._alone is not None

    def profile(self, budget: Budget, scans: int = 1) -> SourceProfile:
        """Return the cost of the source and its highest rate on `budget`: on fewer slots a record takes longer."""
        limit = math.inf
        if self._alone is not None:
            per_record_s = self._alone.per_record_s * self._most.cpus / budget.cpus
            room = max(0.0, budget.interval_s - self._alone.fixed_s)
            limit = room / (per_record_s * budget.interval_s) if per_record_s else math.inf
        cpus = self._most.profile.cpus
        return SourceProfile(self.cost.fixed_s * cpus, self.cost.per_record_s * cpus, limit / scans)

    def doubtful(self, rate: float, budget: Budget, scans: int = 1) -> bool:
        """Whether `rate` records/s is more than the profile allows, and another profile may allow it."""
        if not math.isfinite(rate) or self._taken > _REPEATS:
            return False
        return self.profile(budget, scans).rate_limit < SOURCE_MARGIN * rate

    def measure(
        self,
        queries: Queries,
        spec: DeploymentSpec,
        rows: int,
        unlimited: Callable[[], AbstractContextManager[None]],
        cores: float,
    ) -> None:
        """Run a query that only reads the source, in batches of several sizes without a quota, and keep the result.

        CPU seconds of a row are the same with a quota and without; without, they are known in a third of the time.
        """
        alone = queries.start(replace(spec, generator=_alone(spec.generator)), f"source{self._taken}", _together)
        rows = max(_LEAST_ROWS, rows)
        alone.fixed_batches(rows)
        kept: list[CompletedBatch] = []
        with unlimited():
            warm_s = now_s() + min(_WARM_S, spec.warmup_cap_s)
            queries.batches(alone, 1)  # starts the Python workers
            # The records must cost as much as the fixed part, or their cost is lost in noise.
            least_s = fastest_s = _fastest_s(queries, alone)
            while fastest_s < min(_LONG_S, least_s + _DISTINCT_S) and now_s() < warm_s:
                rows *= _GROWTH
                alone.fixed_batches(rows)
                fastest_s = _fastest_s(queries, alone)
            for share in _SHARES:
                alone.fixed_batches(int(rows * share))
                kept += queries.batches(alone, 2)[1:]
            queries.retire(alone)
        self.keep(kept, spec.budget, cores / spec.budget.cpus)

    def keep(self, batches: Sequence[CompletedBatch], budget: Budget, faster: float = 1.0) -> None:
        """Use what `batches` of the source alone show, if it is faster than the known profile.

        They ran on cores that are `faster` times those of `budget`.
        """
        seen = line([(done.batch.records, done.batch.duration_s) for done in batches])
        before, known, cost = self.profile(self._most).rate_limit, self._alone, self.cost
        self._alone = replace(seen, per_record_s=faster * seen.per_record_s * budget.cpus / self._most.cpus)
        self.cost = fit_source(batches, self._most.profile.cpus)
        if known is not None and self.profile(self._most).rate_limit <= before:
            self._alone, self.cost = known, cost
        self._taken += 1


def _fastest_s(queries: Queries, live: LiveQuery) -> float:
    return min(done.batch.duration_s for done in queries.batches(live, 2))


def _alone(rows: Generator | TopicRows | tuple[Generator, ...]) -> Generator | TopicRows | tuple[Generator, ...]:
    if isinstance(rows, tuple):
        return tuple(map(RowsOnly, rows))
    return replace(rows, decoded=False) if isinstance(rows, TopicRows) else RowsOnly(rows)


def _together(*streams: "DataFrame") -> "DataFrame":
    return reduce(lambda one, other: one.union(other), streams)
