"""Whether a query's executors were equally fast, from the tasks of its batches: a slow worker bounds every batch."""

from collections import defaultdict
from collections.abc import Iterable

from workbench.metrics import ExecutorPace
from workbench.testbed.spark.log.batches import BatchLog

_LEAST_SHARE = 0.5  # of the mean records of an executor; with fewer, a task's fixed time would look like slowness


def executor_paces(logs: Iterable[BatchLog]) -> tuple[ExecutorPace, ...]:
    """Compare each executor's seconds per record with those of the others at the same stages of the same batches.

    Only stages count in which every executor has at least half of the mean number of records, so that key skew is not
    taken for a slow worker. It is empty where fewer than two had tasks to compare.
    """
    took: dict[tuple[str, str], float] = defaultdict(float)
    others: dict[tuple[str, str], float] = defaultdict(float)
    for log in logs:
        for stage in log.stages:
            sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])  # records and seconds
            for task in stage.tasks:
                one = sums[task.executor, task.host]
                one[0] += task.records_in
                one[1] += task.run_s
            mean = sum(records for records, _ in sums.values()) / max(1, len(sums))
            if len(sums) < 2 or min(records for records, _ in sums.values()) < max(1.0, _LEAST_SHARE * mean):
                continue
            for place, (records, seconds) in sums.items():
                rest = [pair for other, pair in sums.items() if other != place]
                took[place] += seconds
                others[place] += records * sum(s for _, s in rest) / sum(r for r, _ in rest)
    return tuple(
        ExecutorPace(executor, host, took[executor, host] / others[executor, host])
        for executor, host in sorted(took)
        if others[executor, host] > 0
    )
