"""The two ends of a query: what its source alone costs and can feed to it, and what writing to its sink adds."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING

import numpy as np

from workbench.arrays import contributions
from workbench.dataflow import Budget
from workbench.metrics import SOURCE_MARGIN, SourceProfile, WriteCost
from workbench.testbed.spark.driver.cores import Cores
from workbench.testbed.spark.driver.feed import TopicRows
from workbench.testbed.spark.driver.live import CompletedBatch, LiveQuery, now_s
from workbench.testbed.spark.driver.queries import Queries
from workbench.testbed.spark.driver.session import DeploymentSpec, Writes
from workbench.testbed.spark.log.event_log import BatchLog, Stage
from workbench.testbed.spark.log.operators import SourceCost, fit_source, line, own_jobs
from workbench.workload import Generator

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
_SINK_SHARES = (0.25, 0.75)  # of the rows that fill an interval
_LEAST_WRITTEN, _MOST_TIMES = 10_000, 4  # so that the cost of a row shows, with this many times the rows at most
_EACH = 3  # batches of a size; the first of them includes the change
_FEWEST = 30  # batches that show growth
_ROUND = 10  # batches after which the logs of file and Delta sinks are compacted
_ROUNDS = 5  # fewest rounds of batches; with as many, the means of rounds are compared instead of batches
_SURE = 4.0  # standard errors
_OF_MEDIAN = 1.4826 * math.sqrt(math.pi / 2)  # a median's standard error, over the median deviation / sqrt(count)

NOTHING = WriteCost(0.0, 0.0)


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

    def measure(self, queries: Queries, spec: DeploymentSpec, rows: int, cores: Cores) -> None:
        """Run a query that only reads the source, in batches of several sizes without a quota, and keep the result.

        CPU seconds of a row are the same with a quota and without; without, they are known in a third of the time.
        """
        alone_spec = replace(
            spec, build=_together, generator=_alone(spec.generator), output_mode="append", writes=Writes()
        )
        alone = queries.start(alone_spec, f"source{self._taken}")
        rows = max(_LEAST_ROWS, rows)
        alone.fixed_batches(rows)
        kept: list[CompletedBatch] = []
        with cores.unlimited():
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
        self.keep(kept, spec.budget, cores.at_once / spec.budget.cpus)

    def keep(self, batches: Sequence[CompletedBatch], budget: Budget, faster: float = 1.0) -> None:
        """Use what `batches` show of the source, if it is faster; their cores are `faster` times those of `budget`."""
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
    from workbench.workload.source import RowsOnly  # noqa: PLC0415 - imports PySpark

    if isinstance(rows, tuple):
        return tuple(map(RowsOnly, rows))
    return replace(rows, decoded=False) if isinstance(rows, TopicRows) else RowsOnly(rows)


def _together(*streams: "DataFrame") -> "DataFrame":
    return reduce(lambda one, other: one.union(other), streams)


def compare(queries: Queries, spec: DeploymentSpec, rows: int, cores: Cores) -> WriteCost:
    """Run the query to its sink and to noop in turns, in batches of several sizes around `rows`, without a quota."""
    logs: dict[bool, list[BatchLog]] = {True: [], False: []}
    rows = max(rows, min(_LEAST_WRITTEN, _MOST_TIMES * rows))
    with cores.unlimited():
        for number, real in enumerate((False, True, False, True)):
            asked = spec if real else replace(spec, writes=Writes())
            live = queries.start(asked, f"compared{number}")
            for share in _SINK_SHARES:
                live.fixed_batches(int(rows * share))
                logs[real] += queries.batches(live, _EACH)[1:_EACH]
            queries.retire(live)
    return added(logs[True], logs[False])


def added(real: Sequence[BatchLog], noop: Sequence[BatchLog]) -> WriteCost:
    """Return what a sink adds: what the batches `real` take more than `noop` with as many records.

    Only the stage that writes is compared for its tasks: the others are the query's.
    """
    pairs = list(zip(*(sorted(logs, key=lambda log: log.records) for logs in (real, noop)), strict=True))
    records = np.array([float(with_sink.records) for with_sink, _ in pairs])
    more_s = np.array([_ran_s(_writing(with_sink)) - _ran_s(_writing(without)) for with_sink, without in pairs])
    (task_s, record_s), errors = contributions((np.ones_like(records), records), more_s)
    tasks = median(len(_writing(log).tasks) for log in real)
    batch_s, batch_error_s = _median_of(outside_s(with_sink) - outside_s(without) for with_sink, without in pairs)
    return replace(
        NOTHING,
        batch_s=max(0.0, batch_s),
        task_s=float(task_s) / tasks,
        record_s=float(record_s),
        batch_error_s=batch_error_s,
        task_error_s=float(errors[0]) / tasks,
        record_error_s=float(errors[1]),
    )


def _median_of(differences: Iterable[float]) -> tuple[float, float]:
    """Return the median of differences and its standard error, from the median deviation: one slow batch is no rule."""
    found = list(differences)
    middle = median(found)
    return middle, _OF_MEDIAN * median(abs(one - middle) for one in found) / math.sqrt(len(found))


def _writing(log: BatchLog) -> Stage:
    """Return the stage that writes; the last one if Spark does not count what is written."""
    return max(reversed(log.stages), key=lambda stage: sum(task.written for task in stage.tasks))


def _ran_s(stage: Stage) -> float:
    """Seconds of all tasks of a stage."""
    return sum(task.run_s for task in stage.tasks)


def outside_s(log: BatchLog) -> float:
    """Seconds that a batch adds in which none of its stages runs."""
    ran = 0.0
    until = -math.inf
    for begun, ended in sorted((stage.begun_s, stage.ended_s) for stage in log.all_stages):
        ran += max(0.0, ended - max(begun, until))
        until = max(until, ended)
    return max(0.0, log.took_s("addBatch") - ran)


def write_cost(
    seen: Sequence[BatchLog],
    slot_cpus: float,
    since_empty: Sequence[BatchLog] = (),
    sink: WriteCost = NOTHING,
) -> WriteCost | None:
    """Add to the cost of the `sink` what writing took in the batches `seen`, and growth since the sink was empty."""
    if not seen:
        return None
    jobs, at_once = own_jobs(seen, slot_cpus)
    states = [state for log in seen for state in log.progress.get("stateOperators") or []]
    parts = sum(int(state.get("numShufflePartitions") or 0) for state in states)
    committed_s = sum(float(state.get("commitTimeMs") or 0) for state in states) / 1000
    rows = sum(task.written for log in seen for stage in log.stages for task in stage.tasks)
    read = sum(log.records for log in seen)
    return replace(
        sink,
        outside_s=fmean(map(outside_s, seen)),
        log_s=fmean(map(_log_s, seen)),
        state_s=committed_s / parts if parts else None,
        written=rows / read if rows and read else None,
        growth_s=growth([outside_s(log) + _log_s(log) for log in since_empty], since_empty),
        batches=len(since_empty),
        jobs_s=fmean(jobs) if any(jobs) else None,
        jobs_error_s=stdev(jobs) / math.sqrt(len(jobs)) if any(jobs) and len(jobs) > 1 else None,
        jobs_at_once=at_once if any(jobs) else None,
    )


def _log_s(log: BatchLog) -> float:
    return log.took_s("walCommit", "commitOffsets")


def growth(seconds: Sequence[float], logs: Sequence[BatchLog]) -> float:
    """Seconds by which each batch takes longer than the last one, whatever its rows; 0 if that is uncertain.

    Least squares of seconds = a + b x rows + c x number, of means of ten batches where there are enough: what happens
    at every tenth batch counts then.
    """
    if len(logs) < _FEWEST:
        return 0.0
    seen = np.array([(log.batch_id, log.records, took) for log, took in zip(logs, seconds, strict=True)], dtype=float)
    if len(seen) >= _ROUND * _ROUNDS:
        whole = len(seen) // _ROUND
        seen = seen[-whole * _ROUND :].reshape(whole, _ROUND, 3).mean(axis=1)
    numbers, rows, y = seen.T
    columns = [np.ones_like(numbers), numbers - numbers.mean(), *([rows] if np.ptp(rows) else [])]
    found, errors = contributions(columns, y)
    return float(found[1]) if found[1] > max(_SURE * errors[1], 1e-6) else 0.0
