"""What to know before deploying a plan, in addition to the doubts about its model."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workbench import units
from workbench.capacity.model import MicroBatch
from workbench.capacity.planning.intervals import IntervalSpeedup
from workbench.dataflow import Budget
from workbench.measuring import LEVEL, batch_line
from workbench.metrics import Observation, OperatorMetrics, slow_executors
from workbench.records import Allocation, BatchLayout, Measurement, ModelFinding
from workbench.workload import KeyFrequencies

PYTHON_WORKER_MB = 150  # observed size of a Python worker, MiB
NOTABLE_KEY = 0.1
"""Share of an operator's rows from which a key is mentioned; partitions of few even keys differ by less."""

HELD_UP = 0.95  # share of the plan's rate; a source that is read in too few partitions is mentioned below it
MOST_FIXED = 0.25  # of the interval, that the fixed time of a batch should take at most
DEAR_SOURCE = 0.1  # share of the slots' busy time; the measuring source is mentioned above it


NOTABLE_WORK = 0.1  # share of the busy time; with less, an operator's keys do not matter
UNEVEN = 1.3  # the fullest partition is mentioned if it has this many times the mean
_REACHES = 0.5  # share of the excess that the rows would cause; with less, their skew does not reach the tasks


def check_interval(budget: Budget, explored_s: float, gain: IntervalSpeedup) -> ModelFinding | None:
    """Warn that the capacity at another interval than the explored one rests on one budget only."""
    if budget.interval_s == explored_s:
        return None
    low, high = gain.quantile((1 - LEVEL) / 2), gain.quantile((1 + LEVEL) / 2)
    return ModelFinding(
        "trigger interval",
        gain.ratio,
        f"The budgets were explored at a trigger interval of {explored_s:g} s; at {budget.interval_s:g} s one of "
        f"them had {gain.ratio:.2f} times the capacity (90 %: {low:.2f} to {high:.2f}), which is taken to hold for "
        f"{units.some(budget.slots, 'slot')} too.",
        "Check the planned budget with workbench verify --interval before relying on it.",
    )


def fixed_time(fixed_s: float, interval_s: float) -> tuple[str, str]:
    """Describe what every batch takes whatever its size, and what to do; no advice where it is little."""
    share = fixed_s / interval_s
    seen = (
        f"Every batch takes {units.seconds(fixed_s)} whatever its size, {units.share(share)} of the "
        f"{units.seconds(interval_s)} interval."
    )
    if share <= MOST_FIXED:
        return seen, ""
    return seen, (
        f"Above {units.share(MOST_FIXED)} the fixed part dominates and rates do not scale with slots: "
        f"lengthen the interval (to {units.seconds(fixed_s / MOST_FIXED)} or more) or use stronger slots."
    )


def check_fixed_time(
    runs: Iterable[Measurement], interval_s: float, parts: MicroBatch | None = None
) -> ModelFinding | None:
    """Warn that a batch takes much of the interval whatever its size, on the most slots where that was seen.

    Where its `parts` are known, the capacity counts the fixed ones, and the plan shows what each of them takes.
    """
    if parts is not None:
        return None
    seen = ((run.budget.slots, batch_line(run.estimate, run.load_curve)) for run in runs if run.ran)
    slots, fixed_s = max(((count, line.fixed) for count, line in seen if line is not None), default=(0, 0.0))
    finding, advice = fixed_time(fixed_s, interval_s)
    if not advice:
        return None
    on = f"On {units.some(slots, 'slot')} every batch"
    return ModelFinding("fixed time", fixed_s / interval_s, finding.replace("Every batch", on), advice)


def check_layouts(*layouts: BatchLayout | None) -> ModelFinding | None:
    """Warn of laid-out batches that take longer than the trigger interval."""
    made = [layout for layout in layouts if layout is not None]
    late = {slots: layout.batch_s[slots] for layout in made for slots in layout.late}
    if not late:
        return None
    found = ", ".join(f"{seconds:.2g} s at {units.some(slots, 'slot')}" for slots, seconds in late.items())
    interval = made[0].interval_s
    return ModelFinding(
        "late batches",
        max(late.values()) / interval,
        f"By the costs of its stages a batch takes {found}, longer than the trigger interval of {interval:g} s, "
        "although the capacity model says that the rate is carried.",
        "Check the planned budget with workbench verify, or plan for a longer trigger interval.",
    )


def check_allocation(allocation: Allocation | None) -> ModelFinding | None:
    """Name the operators that got one task because nothing is known of what they can carry."""
    reasons = {} if allocation is None else allocation.unbounded
    unknown = [name for name, reason in reasons.items() if reason == "true rate undefined"]
    if not unknown:
        return None
    return ModelFinding(
        "unbounded operators",
        len(unknown),
        f"Input reached {', '.join(unknown)}, but no task was seen busy with it, so the true rate is undefined and "
        "there is one task at any number of slots.",
        "Measure for longer, or add tasks by hand.",
    )


def check_state(*, known: bool) -> ModelFinding | None:
    """Warn that Spark's settings lack those of a state store, if it is unknown whether there is state."""
    if known:
        return None
    return ModelFinding(
        "state not known",
        1,
        "Rates alone do not show whether the query keeps state, so Spark's settings name no state store.",
        "If it keeps state, set the provider of RocksDB (spark.sql.streaming.stateStore.providerClass), for which "
        "the plan leaves memory outside the heap.",
    )


def check_python(runs: Iterable[Measurement], slots: int) -> ModelFinding | None:
    """Warn that the container of an executor of `slots` slots has no room for the workers of the query's own Python."""
    seen = (run.estimate.observation for run in runs)
    if not any(operator.runs_python for one in seen if one is not None for operator in one.operators):
        return None
    return ModelFinding(
        "python workers",
        PYTHON_WORKER_MB,
        f"The query runs Python functions. Their workers take about {PYTHON_WORKER_MB} MB a slot, for which the "
        "executors' containers have no room of their own.",
        f"Raise spark.executor.memoryOverhead by about {slots * PYTHON_WORKER_MB}m, and the container with it, if "
        "executors are ended for their memory.",
    )


def check_cores(runs: Iterable[Measurement]) -> ModelFinding | None:
    """Warn that runs were made on cores that a cluster only counts."""
    counted = [run for run in runs if not run.machine.dedicated]
    if not counted:
        return None
    used = [cores for run in counted if (cores := run.used_cores) is not None]
    seen = f" The query's tasks used {min(used):.2f} to {max(used):.2f} cores per slot." if used else ""
    return ModelFinding(
        "cores not dedicated",
        max(used, default=0.0),
        f"{units.some(len(counted), 'run')} {'was' if len(counted) == 1 else 'were'} made on cores that their cluster "
        f"counts but does not limit, so a slot may have had more or less than its own.{seen}",
        "Keep other work off the workers while you measure, and deploy on cores of the same kind.",
    )


def check_filled(runs: Iterable[Measurement]) -> ModelFinding | None:
    """Warn that the state still grew in every reading of a run: its windows are longer than the readings waited."""
    young = [run for run in runs if run.estimate.filled is False and not run.unbounded_state]
    if not young:
        return None
    lacking = [run.estimate.observation.lacking_s for run in young if run.estimate.observation is not None]
    counted = (
        f"the rates count what the state will add once it is full, up to {max(lacking):.2f} s of a batch, as the rows "
        "in it cost until now, and may still be too high."
        if lacking and all(lacking)
        else "the rates may be too high."
    )
    return ModelFinding(
        "young state",
        len(young),
        f"The state was not full while {len(young)} run{'s were' if len(young) > 1 else ' was'} read, and still "
        f"grew: {counted}",
        "Measure in deployments of their own (deployment: separate): their state is not emptied between probes, so "
        "it has minutes to fill.",
    )


def check_executors(runs: Iterable[Measurement]) -> ModelFinding | None:
    """Warn that an executor of a run was slow: a batch ends with its slowest task, so the other slots waited for it."""
    seen = [run.estimate.observation for run in runs]
    found = [pace for one in seen if one is not None for pace in slow_executors(one.executors)[:1]]
    if not found:
        return None
    worst = max(found, key=lambda pace: pace.times)
    return ModelFinding(
        "slow executor",
        worst.times,
        f"{worst.sentence}, and a batch ends with its slowest task, so the other slots waited for it.",
        "Look at what else its worker does, and measure again without it; otherwise the plan holds for workers "
        "among which some are as slow as this one.",
    )


def check_counted_keys(
    runs: Iterable[Measurement], keys: KeyFrequencies | None, partitions: int, rate: float, times: float = 1.0
) -> ModelFinding | None:
    """Describe what the counted `keys` cost the operator behind a shuffle that works most, with as many `partitions`.

    The cores that count are `times` times as fast as those of `runs`. Where rows are aggregated before the shuffle, a
    frequent key is one row of each task before it, however many rows it has. That shows in the run: its fullest
    partition has less than the keys' rows would give it.
    """
    if keys is None:
        return None
    found = hot_key(runs, keys, times)
    share, uneven = keys.hottest_share, keys.likely_imbalance(partitions)
    counted = (
        f"The most frequent key of {keys.column!r} has {units.percent(share, 2)} of the rows; by rows, the fullest of "
        f"{units.some(partitions, 'partition')} has {uneven:.1f} times the mean."
    )
    remedy = "Split a hot key (add a salt to it), or aggregate before the shuffle."
    if found is None:
        return ModelFinding("keys", uneven, f"{counted} No run has shown an operator behind a shuffle.", remedy)
    takes = f"{counted} {found.sentence(rate)}"
    if not found.reaches:
        settled = "Nothing to do." if found.operator.keys else "Nothing to do, as long as that column is the key."
        return ModelFinding("keys", found.found, takes, settled, settled=True)
    if found.limit < rate:
        alone = f"{takes} The key alone fills a slot of {found.operator.operator!r} at {units.rate(found.limit)}."
        return ModelFinding("hot key", rate / found.limit, alone, remedy)
    if uneven < UNEVEN:
        return ModelFinding("keys", uneven, takes, "Nothing to do.", settled=True)
    return ModelFinding("keys", uneven, takes, remedy)


def check_keys(runs: Iterable[Measurement], partitions: int) -> ModelFinding | None:
    """Describe how uneven partitions behind a shuffle are, and will be with `partitions` of them, if that is much.

    A key with share h of an operator's rows, the others spread evenly, leaves the fullest of P partitions with
    h + (1 - h) / P of them. That gives h from the runs with the most partitions, of these from the most uneven one.
    """
    seen = [
        (operator.tasks, operator.key_skew, operator.operator)
        for run in runs
        if run.estimate.observation is not None
        for operator in behind_shuffles(run.estimate.observation.operators)
        if operator.tasks > 1 and operator.key_skew is not None
    ]
    if not seen:
        return None
    most = max(tasks for tasks, _, _ in seen)
    skew, name = max((skew, name) for tasks, skew, name in seen if tasks == most)
    hot = (skew - 1) / (most - 1)
    uneven = 1 + hot * (partitions - 1)
    if hot <= NOTABLE_KEY or uneven < UNEVEN:
        return None
    useful = math.floor(1 / hot)
    return ModelFinding(
        "hot key",
        uneven,
        f"The fullest of the {most:,} partitions of {name!r} had {skew:.2f} times the mean. If one key is the cause, "
        f"it has {units.percent(hot)} of the rows: of {partitions:,} partitions the fullest has {uneven:.1f} times the "
        f"mean, and more than {useful} slot{'s' * (useful > 1)} make this operator no faster.",
        "Count the keys with workbench keys. Split a hot key (add a salt to it), or aggregate before the shuffle.",
    )


def check_source_partitions(
    runs: Iterable[Measurement], parts: MicroBatch | None, budget: Budget
) -> ModelFinding | None:
    """Describe what the slots carry if the source is read in the partitions it was seen with, if that is much less.

    A plan has a partition of the source for each slot, as the exported job asks for. A topic has its own, which more
    slots do not read any faster unless ``minPartitions`` divides them.
    """
    seen = [run.estimate.observation for run in runs]
    own = max((one.source_partitions for one in seen if one is not None and one.source_partitions), default=0)
    if parts is None or not 0 < own < budget.slots:
        return None
    slots, interval_s = budget.slots, budget.interval_s
    left, divided = (parts.rate(slots, slots, interval_s, count) for count in (own, slots))
    if left >= HELD_UP * divided:
        return None
    return ModelFinding(
        "source partitions",
        left / divided,
        f"The source was read in {units.some(own, 'partition')}, and the plan has it read in {budget.slots:,}: in "
        f"{own:,}, {units.some(budget.slots, 'slot')} carry {units.percent(left / divided)} of the plan's rate.",
        f"Set the source's option minPartitions to {budget.slots:,}, as the exported job does, or give the topic "
        "as many partitions.",
    )


def check_source(share: float | None, slots: int) -> ModelFinding | None:
    """Describe what the measuring source took of the slots, if that is much and fewer slots were enough without."""
    if share is None or share < DEAR_SOURCE or (fewer := math.ceil(slots * (1 - share))) == slots:
        return None
    return ModelFinding(
        "source share",
        share,
        f"The source that replayed the data took {units.percent(share)} of the slots' busy time, and the plan gives it "
        f"as much. With a source without cost, about {fewer:,} of the {slots:,} slots would be enough.",
        "Measure the deployment with the source it will have before taking slots away.",
    )


@dataclass(frozen=True)
class HotKey:
    """The most frequent of the counted keys at the operator behind a shuffle that works most."""

    counted: KeyFrequencies
    operator: OperatorMetrics  # in the run with the most partitions of it
    limit: float  # records/s of the query at which the key alone fills a slot; inf where its rows cost nothing
    expected: float  # rows of the fullest partition over the mean, by the key's rows
    share: float  # share of the input that the column is of in the operator's rows, which may come from several

    @property
    def found(self) -> float:
        """Rows of the fullest partition over the mean in the run."""
        return self.operator.key_skew or 1.0

    @property
    def useful_tasks(self) -> float:
        """Number of tasks at which the key alone fills one; more tasks do not raise the rate."""
        return self.counted.useful_tasks / self.share

    @property
    def elsewhere(self) -> bool:
        """Whether the operator goes by other columns."""
        return bool(self.operator.keys) and not goes_by(self.operator.keys, self.counted.column)

    @property
    def reaches(self) -> bool:
        """Whether the skew of the rows reaches the tasks: rows that are aggregated before the shuffle hide it."""
        shows = self.found - 1 >= _REACHES * (self.expected - 1)
        if self.expected < UNEVEN:  # too small an effect to be seen
            return not self.elsewhere and not self.operator.partial_sums
        return shows and not self.elsewhere

    def sentence(self, rate: float) -> str:
        """Describe what the key takes at `rate`, records/s, and from how many tasks on more are useless."""
        at, column, key = self.operator, self.counted.column, self.counted.keys[0]
        if self.elsewhere:
            return (
                f"No operator whose tasks were compared goes by {column!r}: {at.operator!r}, which works most, "
                f"goes by {', '.join(map(repr, at.keys))}, so the key {key!r} is not kept in one task."
            )
        if at.partial_sums and not self.reaches:
            return (
                f"{column!r} is the key of {at.operator!r}, which receives partial sums: of the key {key!r} at most "
                "one row from each task, group and batch, however many rows it has. No task is skewed by it."
            )
        if not self.reaches:
            return (
                f"The key {key!r} does not reach the tasks of {at.operator!r}: with {at.tasks:,} partitions "
                f"the fullest had {self.found:.2f} times the mean and not {self.expected:.2f}, because rows are "
                "aggregated before the shuffle, or because it goes by another column."
            )
        slots = rate / self.limit
        needs = f"{units.number(slots)} slots of {at.operator!r}, and one task has it"
        if slots <= 1:
            needs = f"{units.number(slots)} of a slot of {at.operator!r}"
        most = math.ceil(self.useful_tasks)
        do = "does" if most == 1 else "do"
        name = self.counted.input
        of = f", of which {units.rate(self.share * rate)} are of {name}," if name and self.share < 1 else ""
        unsure = "" if at.keys else f" That holds if {column!r} is what it goes by, which no run shows."
        return (
            f"At {units.rate(rate)}{of} the key {key!r} needs {needs}; more than {units.some(most, 'task')} {do} "
            f"not raise the rate.{unsure}"
        )


def goes_by(keys: Iterable[str], column: str) -> bool:
    """Whether one of the `keys` of an operator is `column`, whatever its case and the struct that it is in."""
    return column.lower().split(".")[-1] in {one.lower().split(".")[-1] for one in keys}


def hot_key(runs: Iterable[Measurement], keys: KeyFrequencies, times: float = 1.0) -> HotKey | None:
    """Find what the most frequent of `keys` takes, on cores that are `times` times as fast as those of `runs`.

    It is that of the operator that works most of those that go by the column, or of all where none does or no run shows
    what they go by. None where no run has shown an operator behind a shuffle.
    """
    observed = [run.estimate.observation for run in runs if run.estimate.observation is not None]
    all_ = [(one, each) for one in observed for each in behind_shuffles(one.operators, 0.0)]
    seen = [(one, each) for one, each in all_ if goes_by(each.keys, keys.column)] or [
        (one, each) for one in observed for each in behind_shuffles(one.operators)
    ]
    if not seen:
        return None
    most = max(each.tasks for _, each in seen)
    cost_s, where, busiest = max(
        ((each.useful_s / max(1, one.consumed_records), one, each) for one, each in seen if each.tasks == most),
        key=lambda found: found[0],
    )
    share = _share_of(keys.input, where, busiest)
    part = keys.hottest_share * share
    limit = times / (part * cost_s) if cost_s > 0 else math.inf
    even = 1 - share  # rows of other inputs, assumed to be spread evenly
    return HotKey(keys, busiest, limit, even + share * keys.likely_imbalance(most), share)


def _share_of(name: str, seen: Observation, operator: OperatorMetrics) -> float:
    """Share of the input called `name` in the rows of an operator with several inputs; 1 if it has one.

    After a join each row has the columns of all inputs.
    """
    into = {before for before, after in seen.edges if after == operator.operator}
    given = {
        one.name: one.records * (1.0 if one.selectivity is None else one.selectivity)
        for one in seen.inputs
        if into & {*one.operators}
    }
    return given[name] / sum(given.values()) if given.get(name) and len(given) > 1 else 1.0


def behind_shuffles(operators: Sequence[OperatorMetrics], least: float = NOTABLE_WORK) -> list[OperatorMetrics]:
    """Operators that read a shuffle and do much of the work, or at least the share `least` of it."""
    whole = sum(one.useful_s for one in operators)
    return [
        one
        for one in operators
        if not (one.scans or one.is_source) and one.key_skew is not None and one.useful_s >= least * whole
    ]
