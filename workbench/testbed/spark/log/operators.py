"""From stages to operators: the metrics of each operator over a number of batches, and of its executors.

An operator is a stage. Its *useful seconds* exclude waiting. Under a CPU quota they are the CPU seconds of its tasks,
with their share of the executor's other CPU (Python workers, garbage collection, RocksDB's threads), divided by the
cores of a slot. Without a quota they are the tasks' run seconds minus the waits for shuffle data. The profiled cost of
the source is subtracted and reported as a separate operator.

The executor's other CPU includes a part per batch, with which every operator would look more expensive per record in
small batches. So the samples that costs are fitted to are charged at one rate for all batches of the deployment so far.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median

from workbench import units
from workbench.errors import QueryError
from workbench.metrics import SOURCE, ExecutorPace, InputRows, OperatorMetrics, TaskSample
from workbench.testbed.spark.log.event_log import KEEPS_STATE, BatchLog, Stage

_RUN_PYTHON = ("ArrowEvalPython", "BatchEvalPython", "MapInArrow", "PythonMapInArrow", "MapInPandas")
_KINDS = {
    **{name: name.lower() for name in ("Filter", "Expand", "Generate", "Sort", "MergingSessions")},
    **KEEPS_STATE,
    **dict.fromkeys(_RUN_PYTHON, "python"),
}
_PYTHON = ("python", "state")
_KEPT = "rocksdbSstFileSize"

LEAST_READ = 0.99
MOST_LATE = 0.5
_LEAST_SHARE = 0.5  # of the mean records of an executor; with fewer, a task's fixed time would look like slowness

Labels = tuple[tuple[str, ...], ...]  # what each stage of a batch does


@dataclass(frozen=True)
class SourceCost:
    """Cost of the source alone, for one task: seconds = fixed_s + per_record_s x records."""

    fixed_s: float = 0.0
    per_record_s: float = 0.0

    def of(self, records: float) -> float:
        """Seconds of one task that reads `records` records."""
        return self.fixed_s + self.per_record_s * records


@dataclass(frozen=True)
class _StageWork:
    """What all tasks of a stage took, with the source's part."""

    stage: Stage
    useful_s: float
    cpu_s: float
    source_s: float = 0.0  # of the useful seconds

    @property
    def source_cpu_s(self) -> float:
        """CPU seconds that correspond to the source's useful seconds."""
        return self.cpu_s * self.source_s / self.useful_s if self.useful_s else 0.0


def _labels(stage: Stage) -> tuple[str, ...]:
    kinds = ("scan" if node.scan is not None else _KINDS.get(node.name) for node in reversed(stage.nodes))
    return tuple(dict.fromkeys(filter(None, kinds)))


def operator_names(labels: Labels) -> tuple[str, ...]:
    """Name each operator after its work, numbered in order: ``"1 scan filter"``, ``"2 aggregate"``."""
    return tuple(f"{number} {' '.join(one or ('map',))}" for number, one in enumerate(labels, 1))


def overhead(batches: Iterable[BatchLog]) -> float:
    """CPU seconds of the executor outside tasks and Python workers, per CPU second of the tasks' threads."""
    tasks, other = 0.0, 0.0
    for batch in batches:
        threads = batch.threads_cpu_s
        tasks += threads
        if batch.executor_cpu_s is not None:
            other += max(0.0, batch.executor_cpu_s - batch.python_cpu_s - threads)
    return other / tasks if tasks else 0.0


def _work(
    batch: BatchLog, slot_cpus: float, source: SourceCost, overhead_rate: float | None = None
) -> list[_StageWork]:
    """Work of every stage; tasks are charged the executor's other CPU at `overhead_rate` (default: the batch's)."""
    stages = batch.stages
    share = overhead([batch]) if overhead_rate is None else overhead_rate
    users = [stage for stage in stages if not {"scan", *_PYTHON}.isdisjoint(_labels(stage))]
    python_run = sum(task.run_s for stage in users for task in stage.tasks)
    result = []
    for stage in stages:
        python_s = batch.python_cpu_s if stage in users and python_run else 0.0
        cpus = [task.cpu_s * (1 + share) + python_s * task.run_s / (python_run or 1.0) for task in stage.tasks]
        ran = (max(0.0, task.run_s - task.shuffle_wait_s) for task in stage.tasks)
        useful_s = sum((cpu / slot_cpus for cpu in cpus) if batch.quota else ran)
        read_s = 0.0 if stage.scan is None else sum(source.of(task.records_in) for task in stage.tasks)
        result.append(_StageWork(stage, useful_s, sum(cpus), min(useful_s, read_s)))
    return result


def own_jobs(batches: Iterable[BatchLog], slot_cpus: float) -> tuple[list[float], float]:
    """Return the slot seconds of jobs on a table's log in each batch, and how many of their tasks run at once."""
    spent, alone_s = [], 0.0
    for batch in batches:
        alone = replace(batch, stages=batch.jobs, python_cpu_s=0.0)  # the Python workers are the query's
        works = _work(alone, slot_cpus, SourceCost(), overhead([batch]))
        spent.append(sum(work.useful_s for work in works))
        alone_s += sum(work.useful_s / len(work.stage.tasks) for work in works if work.stage.tasks)
    return spent, sum(spent) / alone_s if alone_s else 1.0


def fit_source(batches: Sequence[BatchLog], slot_cpus: float) -> SourceCost:
    """Fit the cost of a source, its own tasks' and Python workers', to batches of several sizes that only read it."""
    points = []
    for batch in batches:
        for work in _work(batch, slot_cpus, SourceCost(), 0.0):
            records = [task.records_in for task in work.stage.tasks]
            if records:
                points.append((sum(records) / len(records), work.useful_s / len(records)))
    return line(points)


def line(points: Sequence[tuple[float, float]]) -> SourceCost:
    """Fit seconds = a + b x records with a, b >= 0 by Theil and Sen, which is robust to outliers.

    If a or b would be negative, or all points have the same size, the line goes through the origin.
    """
    if not points:
        return SourceCost()
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2) if x1 != x2]
    if slopes:
        slope = median(slopes)
        fixed = median(y - slope * x for x, y in points)
        if slope >= 0 and fixed >= 0:
            return SourceCost(fixed, slope)
    return SourceCost(0.0, median(y / x if x else 0.0 for x, y in points))


def alike(batches: Sequence[BatchLog]) -> list[BatchLog]:
    """Batches of the commonest number of stages: a function that merges or compacts now and then adds some."""
    counts = Counter(len(batch.stages) for batch in batches)
    most = max(counts, key=lambda stages: (counts[stages], -stages))
    return [batch for batch in batches if len(batch.stages) == most]


def fullest_labels(batches: Iterable[BatchLog], shown: Sequence[BatchLog]) -> Labels:
    """Labels of the batch that shows the most: nodes without rows do not appear in the log.

    It is one of `batches` with as many stages as those of `shown` that are alike, which are among them.
    """
    count = len(alike(shown)[0].stages)
    labels = (tuple(map(_labels, batch.stages)) for batch in batches if len(batch.stages) == count)
    return max(labels, key=lambda one: sum(map(len, operator_names(one))))


def operator_edges(batches: Sequence[BatchLog], names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the pairs (upstream, downstream) of operators, by the first batch with a stage for each of `names`."""
    whole = next((batch.stages for batch in batches if len(batch.stages) == len(names)), ())
    named = {stage.stage_id: name for stage, name in zip(whole, names, strict=False)}
    found: list[tuple[str, str]] = []
    for stage in whole:
        found += [(SOURCE, named[stage.stage_id])] if stage.scan is not None else []
        found += [(named[parent], named[stage.stage_id]) for parent in stage.parents if parent in named]
    return tuple(found)


def scans(batch: BatchLog) -> list[Stage]:
    """Stages that read the source."""
    return [stage for stage in batch.stages if stage.scan is not None]


def times_read(batch: BatchLog) -> int:
    """How often a query reads its source; of several inputs, the one that it reads most often."""
    several = Counter(number for number in batch.inputs if number is not None)
    return max(several.values(), default=0) or len(scans(batch))


def input_rows(
    names: Sequence[str], batches: Sequence[BatchLog], backlog: float, labels: Labels
) -> tuple[InputRows, ...]:
    """Divide what `batches` read, and the `backlog` after them, among several inputs; `labels` are the operators'."""
    rows = Counter[int]()
    for batch in batches:
        rows.update(batch.of_inputs)
    operators = operator_names(labels)
    whole = [batch for batch in batches if len(batch.stages) == len(labels)]
    made = []
    for number, name in enumerate(names):
        own = [
            (place, stage)
            for batch in whole
            for place, stage in enumerate(batch.stages)
            if _reads(batch, stage) == {number}
        ]
        read = sum(task.records_in for _, stage in own for task in stage.tasks)
        written = sum(sum(task.records_out for task in stage.tasks) or _rows_out(stage) for _, stage in own)
        left = backlog * rows[number] / max(1, rows.total())
        readers = tuple(operators[place] for place in sorted({place for place, _ in own}))
        made.append(InputRows(name, rows[number], left, readers, written / read if read else None))
    return tuple(made)


def _reads(batch: BatchLog, stage: Stage) -> set[int | None]:
    """Numbers of the inputs that a stage reads, with None for an unknown one."""
    places = [node.scan for node in stage.nodes if node.scan is not None]
    return {batch.inputs[place] if place < len(batch.inputs) else None for place in places}


def operator_metrics(
    batches: Sequence[BatchLog],
    elapsed_s: float,
    slot_cpus: float,
    source: SourceCost,
    labels: Labels | None = None,
    *,
    overhead_rate: float | None = None,
) -> tuple[tuple[OperatorMetrics, ...], tuple[TaskSample, ...]]:
    """Sum the work of `batches` per operator: metrics of the source, then of each stage; and samples.

    A sample has the mean records and useful seconds of a task, one for each operator and batch.

    Parameters
    ----------
    labels
        Labels of the operators, as from `fullest_labels`; default: those of these batches.
    overhead_rate
        Rate at which samples are charged the executor's other CPU, as from `overhead` over the whole deployment;
        default: each batch's own rate.
    """
    if not batches:
        return (), ()
    labels = labels or fullest_labels(batches, batches)
    whole = [batch for batch in batches if len(batch.stages) == len(labels)]
    works = [_work(batch, slot_cpus, source) for batch in whole]
    sampled = works if overhead_rate is None else [_work(batch, slot_cpus, source, overhead_rate) for batch in whole]
    samples: list[TaskSample] = []
    operators: list[OperatorMetrics] = []
    reading: list[list[_StageWork]] = []
    for index, name in enumerate(operator_names(labels)):
        stages = [work[index] for work in works if work[index].stage.tasks]
        operators.append(_summed(name, labels[index], stages, elapsed_s))
        if any(work.stage.scan is not None for work in stages):
            reading.append(stages)
        for work in (work[index] for work in sampled if work[index].stage.tasks):
            tasks = work.stage.tasks
            records, seconds = sum(task.records_in for task in tasks), work.useful_s - work.source_s
            samples.append(TaskSample(name, records / len(tasks), seconds / len(tasks)))
    operators = [_with_state(metrics, index, whole) for index, metrics in enumerate(operators)]
    of_inputs = sum(sum(batch.of_inputs.values()) for batch in whole)
    return (_source(reading, elapsed_s, of_inputs), *operators), tuple(samples)


def _source(scans: Sequence[Sequence[_StageWork]], elapsed_s: float, of_inputs: int) -> OperatorMetrics:
    """Return one row for the source, for any number of scans: each reads the same records again, or one input's."""
    read = [sum(task.records_in for work in works for task in work.stage.tasks) for works in scans]
    records = of_inputs or max(read, default=0)
    tasks = sum(max(len(work.stage.tasks) for work in works) for works in scans) or 1
    useful = sum(sum(work.source_s for work in works) for works in scans)
    return OperatorMetrics(
        operator=SOURCE,
        kind=SOURCE,
        tasks=tasks,
        records_in=records,
        records_out=records,
        useful_s=useful,
        busyness=min(1.0, useful / (tasks * elapsed_s)) if elapsed_s else 0.0,
        true_processing_rate=records / useful if useful > 0 else None,
        cpu_s=sum(sum(work.source_cpu_s for work in works) for works in scans),
        shuffle_bytes=0,
    )


def _summed(name: str, labels: Sequence[str], works: Sequence[_StageWork], elapsed_s: float) -> OperatorMetrics:
    """Sum one operator's stages, without the source's part."""
    tasks = max((len(work.stage.tasks) for work in works), default=1)
    all_tasks = [task for work in works for task in work.stage.tasks]
    records_in = sum(task.records_in for task in all_tasks)
    records_out = sum(task.records_out for task in all_tasks) or sum(_rows_out(work.stage) for work in works)
    useful = sum(work.useful_s for work in works) - sum(work.source_s for work in works)
    return OperatorMetrics(
        operator=name,
        kind=labels[-1] if labels else "map",
        tasks=tasks,
        records_in=records_in,
        records_out=records_out,
        useful_s=useful,
        busyness=min(1.0, useful / (tasks * elapsed_s)) if elapsed_s else 0.0,
        true_processing_rate=records_in / useful if useful > 0 else None,
        cpu_s=sum(work.cpu_s for work in works) - sum(work.source_cpu_s for work in works),
        shuffle_bytes=sum(task.shuffle_bytes for task in all_tasks),
        key_skew=_skew([work.stage for work in works]) if records_in else None,
        scans="scan" in labels,
        runs_python="python" in labels,
        keys=next((work.stage.keys for work in works if work.stage.keys), ()),
        partial_sums=any(work.stage.partial_sums for work in works) and "aggregate" in labels,
    )


def _skew(stages: Sequence[Stage]) -> float:
    """Return the records of the fullest partition over their mean, for each number of tasks: adaptive plans vary it."""
    read: dict[int, Counter[int]] = defaultdict(Counter)
    for stage in stages:
        for task in stage.tasks:
            read[len(stage.tasks)][task.partition] += task.records_in
    return sum(count * max(own.values()) for count, own in read.items()) / sum(own.total() for own in read.values())


def _rows_out(stage: Stage) -> int:
    """Output rows of the last counting node of a stage without a shuffle."""
    for node in stage.nodes:
        if "number of output rows" in node.metrics:
            return node.metrics["number of output rows"]
    return 0


def _with_state(metrics: OperatorMetrics, index: int, batches: Sequence[BatchLog]) -> OperatorMetrics:
    """Add RocksDB's metrics to an operator that keeps state: the sums over all its nodes that do."""
    stages = [batch.stages[index] for batch in batches]
    places = {node.state for stage in stages for node in stage.nodes if node.state is not None}
    if not places:
        return metrics
    totals: dict[str, float] = defaultdict(float)
    updated, kept = 0, None
    for batch in batches:
        states = batch.progress.get("stateOperators") or []
        own = [states[place] for place in sorted(places) if place < len(states)]
        updated += sum(int(state.get("numRowsUpdated") or 0) for state in own)
        counted = [state.get("customMetrics") or {} for state in own]
        sizes = [custom[_KEPT] for custom in counted if _KEPT in custom]
        kept = sum(map(int, sizes)) if sizes else kept
        for custom in counted:
            for key, value in custom.items():
                totals[key] += float(value)
    read = ("rocksdbTotalBytesRead", "rocksdbTotalBytesReadThroughIterator", "rocksdbTotalBytesWritten")
    moved = [totals[key] for key in read if key in totals]  # other stores than RocksDB do not count them
    hits, misses = totals["rocksdbReadBlockCacheHitCount"], totals["rocksdbReadBlockCacheMissCount"]
    gets = totals["rocksdbGetCount"]
    return replace(
        metrics,
        state_bytes=int(math.fsum(moved)) if moved else None,
        state_rows_updated=updated,
        cache_hit_rate=hits / (hits + misses) if hits + misses else None,
        state_latency_s=totals["rocksdbGetLatency"] / gets / 1000 if gets else None,
        state_kept_bytes=kept,
    )


def check_read(name: str, batches: Sequence[BatchLog]) -> None:
    """Refuse an observation in which released rows were never read."""
    released, read = 0, 0.0
    for batch in batches:
        reading = scans(batch)
        if batch.of_inputs:
            released += batch.records
            read += sum(batch.of_inputs.values())
        elif reading:
            released += batch.records
            read += sum(task.records_in for stage in reading for task in stage.tasks) / len(reading)
    if read < LEAST_READ * released:
        raise not_read(name, released, read)


def not_read(name: str, released: int, read: float) -> QueryError:
    """Return the error for query `name`, which read only `read` of the `released` rows."""
    return QueryError(
        f"The source of query {name!r} released {released:,} rows, but the query read {read:,.0f}, so its rate is "
        "unknown. A generator must make every row of the requested range; a query must not stop reading (limit)."
    )


def dropped_late(name: str, batches: Sequence[BatchLog], operators: Sequence[OperatorMetrics]) -> float:
    """Return the share of the rows that reach the state and are dropped as later than the watermark allows."""
    dropped = sum(
        int(state.get("numRowsDroppedByWatermark") or 0)
        for batch in batches
        for state in batch.progress.get("stateOperators") or []
    )
    if not dropped:
        return 0.0
    share = dropped / (dropped + sum(operator.state_rows_updated or 0 for operator in operators))
    if share > MOST_LATE:
        raise QueryError(
            f"Query {name!r} drops {units.percent(share)} of what reaches its state as later than its "
            "watermark allows, so its rate has no meaning. Name the event-time column, sort the data by it, or "
            "allow more delay in withWatermark.",
            settings=("event_time",),
        )
    return share


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
