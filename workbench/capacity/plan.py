"""The capacity plan: what to deploy for a rate, how sure, at what cost, and as what Spark is told.

StreamBed, section VI: the least slots whose predicted capacity is 110 % of the rate, for each memory profile; the
configuration at that size is the optimizer's with the rates it saw. Here the cheapest profile is chosen by the workers
it takes, the prediction carries its interval, and a plan says which testbed it came from and how far it extrapolates.
"""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from workbench.capacity._bids2 import Allocation
from workbench.capacity.explorer import Exploration, keeps_state
from workbench.capacity.layout import BatchLayout, Stage, micro_batch_layout
from workbench.capacity.measurement import Measurement
from workbench.capacity.model import MARGIN
from workbench.capacity.model_checks import ModelFinding, check_model
from workbench.capacity.optimizer import allocate, overstatement
from workbench.capacity.prices import InstanceType, Price, cheapest
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError

LEVEL = 0.9
ROCKSDB_SHARE = 0.4  # of a slot's memory; the rest is heap, as on the testbed
LEAST_HEAP_MB = 600
VERSION = 1
_RANGE_COUNTS = 16  # slot counts between lowest and highest load that the state's partitions are chosen for, about


@dataclass(frozen=True)
class CapacityPlan:
    """What to deploy for a rate.

    Parameters
    ----------
    query
        Its name.
    rate
        Records/s asked for.
    margin
        Capacity is to be this many times the rate.
    budget
        Slots, their profile and the trigger interval.
    expected_rate, low, high
        Predicted capacity and the ends of its 90 % interval, records/s.
    form
        Form of the model that predicts it.
    testbed
        Where the runs behind it were made.
    runs
        How many.
    extrapolation
        Slots planned / most slots measured.
    allocation
        Tasks by operator, for an engine whose operators run side by side.
    layout
        Partitions by stage, for micro-batches.
    price
        Workers and what they cost; None without a price list.
    overstatement
        Median of measured / predicted rate of the optimizer's objective in the runs; None without.
    cards
        What is doubtful, with advice.
    low_slots
        Slots that carry the lowest load, where one was given. The state's partition count in `layout`, which the
        checkpoint freezes, is then the one of least maximum regret from these slots to the planned ones.
    low_layout
        Partitions by stage to restart with at `low_slots`.
    """

    query: str
    rate: float
    margin: float
    budget: Budget
    expected_rate: float
    low: float
    high: float
    form: str
    testbed: str
    runs: int
    extrapolation: float
    allocation: Allocation | None = None
    layout: BatchLayout | None = None
    price: Price | None = None
    overstatement: float | None = None
    cards: tuple[ModelFinding, ...] = ()
    low_slots: int | None = None
    low_layout: BatchLayout | None = None
    _stateful: bool = field(default=False, repr=False)

    def spark_conf(self) -> dict[str, str]:
        """Spark's configuration for the plan: executors, memory, state store, partitions.

        Source partitions and ``repartition`` counts are no configuration: see ``layout``.
        """
        shape, executors = self._executors()
        memory = shape * self.budget.profile.memory_mb
        rocksdb = int(memory * ROCKSDB_SHARE)
        conf = {
            "spark.executor.instances": str(executors),
            "spark.executor.cores": str(shape),
            "spark.executor.memory": f"{max(LEAST_HEAP_MB, memory - rocksdb)}m",
            "spark.executor.memoryOverhead": f"{max(384, rocksdb + memory // 10)}m",
            "spark.dynamicAllocation.enabled": "false",
            "spark.sql.shuffle.partitions": str(self.budget.slots),
        }
        if self.layout is not None:
            conf |= self.layout.spark_conf()
        if self._stateful:
            state = "spark.sql.streaming.stateStore."
            conf |= {
                state + "providerClass": ("org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"),
                state + "rocksdb.boundedMemoryUsage": "true",
                state + "rocksdb.maxMemoryUsageMB": str(rocksdb),
                state + "rocksdb.trackTotalNumberOfRows": "false",
            }
        return conf

    def spark_submit(self, application: str = "job.py", master: str = "k8s://https://API-SERVER") -> str:
        """Give the command that starts `application` as planned."""
        options = [f"--conf {key}={value}" for key, value in sorted(self.spark_conf().items())]
        return " \\\n  ".join(["spark-submit", f"--master {master}", *options, application])

    def kubernetes(self) -> dict[str, dict[str, dict[str, str]]]:
        """Resource requests and limits of one executor's container."""
        shape, _ = self._executors()
        cpu = f"{math.ceil(shape * self.budget.profile.cpus * 1000)}m"
        conf = self.spark_conf()
        memory = int(conf["spark.executor.memory"][:-1]) + int(conf["spark.executor.memoryOverhead"][:-1])
        both = {"cpu": cpu, "memory": f"{memory}Mi"}
        return {"resources": {"requests": dict(both), "limits": dict(both)}}

    def to_json(self) -> str:
        """Write the plan as JSON text, with what Spark is to be told."""
        data = asdict(self)
        del data["_stateful"]
        for name in ("allocation", "layout", "low_layout"):
            data[name] = None if data[name] is None else _plain(data[name])
        data |= {"version": VERSION, "spark_conf": self.spark_conf(), "kubernetes": self.kubernetes()}
        return json.dumps(_finite(data), allow_nan=False, indent=1)

    def sentence(self) -> str:
        """One sentence: the answer."""
        price = "" if self.price is None else (
            f", {self.price.workers} x {self.price.instance.name} at {self.price.per_hour:.2f} "
            f"{self.price.instance.currency}/h"
        )  # fmt: skip
        return (
            f"{self.rate:,.0f} records/s of {self.query} take {self.budget.slots} slots of "
            f"{self.budget.profile.cpus:g} core and {self.budget.profile.memory_mb} MB (capacity "
            f"{self.expected_rate:,.0f}, 90 % interval {self.low:,.0f} to {self.high:,.0f} records/s){price}."
        )

    def _executors(self) -> tuple[int, int]:
        """Slots per executor, and how many executors."""
        shape = self.budget.slots if self.price is None else min(self.price.slots_per_worker, self.budget.slots)
        return shape, math.ceil(self.budget.slots / shape)


def plan(
    exploration: Exploration,
    rate: float,
    *,
    memory_mb: Sequence[int],
    margin: float = MARGIN,
    risk: float | None = None,
    instances: Sequence[InstanceType] = (),
    interval_gains: Mapping[float, float] | None = None,
    low_rate: float | None = None,
) -> CapacityPlan:
    """Plan the cheapest budget that carries `rate`.

    Parameters
    ----------
    exploration
        Runs and model.
    rate
        Records/s.
    memory_mb
        Memory profiles to choose from, MiB per slot.
    margin, risk
        See `CapacityModel.slots_for`.
    instances
        Price list; without one, the least memory x slots counts as cheapest, ties to the shorter trigger interval, then
        to less memory per slot.
    interval_gains
        Trigger intervals to choose from, with the capacity at each relative to that at the explored one (see
        ``intervals.gains``); None: the explored one.
    low_rate
        Lowest load, records/s, if the deployment is to shrink: the state's partitions then suit all slots in between.

    Raises
    ------
    WorkbenchError
        When no number of slots carries the rate at any memory, no instance type holds a slot, or `low_rate` is not
        between 0 and `rate`.
    """
    if low_rate is not None and not 0 < low_rate <= rate:
        raise WorkbenchError(
            f"low_rate is {low_rate:g} records/s; it must be above 0 and at most the rate planned for, {rate:g}. Lower "
            "it, or leave it out."
        )
    sample = exploration.measurements[exploration.fitted[-1]]
    least = min(run.budget.slots for run in exploration.measurements)
    gains = interval_gains or {sample.budget.interval_s: 1.0}
    options: list[tuple[float, float, int, Budget, Price | None]] = []
    refused = None
    for memory, (interval, gain) in itertools.product(memory_mb, gains.items()):
        profile = SlotProfile(sample.budget.profile.cpus, memory)
        try:
            slots = exploration.model.slots_for(rate / gain, memory, margin, min_slots=least, risk=risk)
        except WorkbenchError as error:
            refused = error
            continue
        price = cheapest(instances, slots, profile) if instances else None
        cost = price.per_hour if price else float(slots * memory)
        options.append((cost, interval, memory, Budget(slots, profile, interval), price))
    if not options:
        raise refused or WorkbenchError("No memory profile was given to plan with; give at least one.")
    _, interval, memory, budget, price = min(options, key=lambda option: option[:3])
    gain = gains[interval]
    target = [[memory, budget.slots]]
    low, high = exploration.model.interval(target, LEVEL)
    points, rates = exploration.points, exploration.rates
    minimal = _minimal(exploration, memory)
    costed = max(exploration.measurements, key=lambda run: sum(cost.levels for cost in run.costs))
    stages = stages_of(costed)
    low_slots = None
    if low_rate is not None:
        low_slots = min(
            budget.slots, exploration.model.slots_for(low_rate / gain, memory, margin, min_slots=least, risk=risk)
        )
    layout, low_layout = _layouts(stages, budget, rate, low_slots, low_rate)
    return CapacityPlan(
        query=sample.query,
        rate=rate,
        margin=margin,
        budget=budget,
        expected_rate=gain * float(exploration.model.predict(target)[0]),
        low=gain * float(low[0]),
        high=gain * float(high[0]),
        form=exploration.model.form,
        testbed=sample.testbed,
        runs=len(rates),
        extrapolation=budget.slots / float(points[:, 1].max()),
        allocation=None if minimal is None else allocate(minimal, budget.slots),
        layout=layout,
        price=price,
        overstatement=overstatement(exploration.measurements),
        cards=(
            *check_model(exploration.model, points, rates, budget.slots, memory),
            *_gained(budget, sample, gain),
            *exploration.findings,
        ),
        low_slots=low_slots,
        low_layout=low_layout,
        _stateful=any(keeps_state(run) for run in exploration.measurements),
    )


def _layouts(
    stages: Sequence[Stage], budget: Budget, rate: float, low_slots: int | None, low_rate: float | None
) -> tuple[BatchLayout | None, BatchLayout | None]:
    """Partitions at the planned slots and at those of the lowest load, with one count for the state at both."""
    if not stages:
        return None, None
    most, interval = budget.slots, budget.interval_s
    if low_slots is None or low_rate is None:
        return micro_batch_layout(stages, most, interval, rate=rate), None
    step = max(1, (most - low_slots) // _RANGE_COUNTS)
    counts = sorted({*range(low_slots, most, step), most})
    load = {n: low_rate + (rate - low_rate) * (n - low_slots) / max(1, most - low_slots) for n in counts}
    frozen = micro_batch_layout(stages, counts, interval, rate=load).stateful_partitions
    return (
        micro_batch_layout(stages, most, interval, rate=rate, stateful_partitions=frozen),
        micro_batch_layout(stages, low_slots, interval, rate=low_rate, stateful_partitions=frozen),
    )


def _gained(budget: Budget, sample: Measurement, gain: float) -> tuple[ModelFinding, ...]:
    """Say that the capacity at another interval rests on one budget only."""
    explored = sample.budget.interval_s
    if budget.interval_s == explored:
        return ()
    return (
        ModelFinding(
            "trigger interval",
            gain,
            f"The budgets were explored at a trigger interval of {explored:g} s; at {budget.interval_s:g} s one of "
            f"them had {gain:.2f} times the capacity, which is taken to hold for {budget.slots} slots too.",
            "Check the planned budget with workbench verify --interval before relying on it.",
        ),
    )


def stages_of(measurement: Measurement) -> tuple[Stage, ...]:
    """Stages of a micro-batch with their measured costs, for the layout; none where they were not measured."""
    seen = measurement.estimate.observation
    costs = {cost.operator: cost for cost in measurement.costs}
    if seen is None or measurement.tasks is not None:
        return ()
    consumed = max(1, seen.consumed_records)
    stages: list[Stage] = []
    for operator in seen.operators:
        cost = costs.get(operator.operator)
        if cost is None or cost.fixed_s is None or cost.per_record_s is None:
            continue
        stateful = operator.state_bytes is not None
        first = not stages
        stages.append(
            Stage(
                operator.operator,
                cost.fixed_s,
                cost.per_record_s,
                operator.records_in / consumed,
                stateful=stateful,
                source=first and not stateful,
            )
        )
    return tuple(stages)


def _minimal(exploration: Exploration, memory_mb: int) -> Measurement | None:
    """Run of one task per operator at the memory nearest to `memory_mb`; None where tasks were not set."""
    minimal = [
        run for run in exploration.measurements if run.tasks and run.estimate.rate and set(run.tasks.values()) == {1}
    ]
    return min(minimal, key=lambda run: abs(run.budget.profile.memory_mb - memory_mb), default=None)


def _plain(data: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in data.items() if key != "stages"}


def _finite(value: object) -> object:
    """JSON has no inf: the text "inf"."""
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else "-inf"
    return value
