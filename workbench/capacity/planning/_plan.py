"""The capacity plan: what to deploy for a rate, how sure, at what cost, and as what Spark is told.

StreamBed, section VI: the least slots whose predicted capacity is 110 % of the rate, for each memory profile, and
BIDS2's configuration at that size. Here the cheapest profile is chosen by the workers it takes, the prediction carries
its interval, and a plan says which testbed it came from and how far it extrapolates.

Deviation: the paper's final configuration goes by the rates seen with the most slots at that memory, here by those of
the minimal configuration, as all measured ones do and as the capacity model expects it. On the fluid presets, six seeds
each, either way plans miss the capacity by 2.4 % in the median and 10 % at worst (``benchmarks/planning.py``).
"""

import itertools
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from workbench.capacity.allocation import Allocation, allocate
from workbench.capacity.explore import Exploration, keeps_state, overstatement, saw_operators
from workbench.capacity.model import MARGIN, ModelFinding, check_model
from workbench.capacity.planning.checks import (
    check_allocation,
    check_interval,
    check_layouts,
    check_python,
    check_source,
    check_state,
)
from workbench.capacity.planning.executor import UNPRICED, Executor, Reserve, kubernetes_reserve, slots_per_worker
from workbench.capacity.planning.intervals import Gain
from workbench.capacity.planning.layout import BatchLayout
from workbench.capacity.planning.prices import InstanceType, Price, cheapest
from workbench.capacity.planning.stages import lay_out, source_share
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import LEVEL
from workbench.records import Measurement

VERSION = 1
DRIVER_MEMORY = "1g"
"""As on the testbed."""

_SIMULATED, _RECORDED = "fluid", "recorded"


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
    executors
        Executors that hold the slots, one to a worker.
    allocation
        Tasks by operator, for an engine whose operators run side by side.
    layout
        Partitions by stage, for micro-batches.
    price
        Workers and what they cost; None without a price list.
    overstatement
        Median of measured / predicted rate of the optimizer's objective in the runs; None without.
    source_share
        Share of the slots' busy time that the measuring source took, so that the plan holds slots for it, too; None
        where sources are not among the slots.
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
    executors: int = 1
    allocation: Allocation | None = None
    layout: BatchLayout | None = None
    price: Price | None = None
    overstatement: float | None = None
    source_share: float | None = None
    cards: tuple[ModelFinding, ...] = ()
    low_slots: int | None = None
    low_layout: BatchLayout | None = None
    _stateful: bool = field(default=False, repr=False)

    @property
    def executor(self) -> Executor:
        """One of the executors; the slots are dealt out evenly, so that one of the last may be more than asked for."""
        return Executor(math.ceil(self.budget.slots / self.executors), self.budget.profile)

    def spark_conf(self) -> dict[str, str]:
        """Spark's configuration for the plan: executors, memory, state store, partitions.

        Source partitions and ``repartition`` counts are no configuration: see ``layout``. Nor is the trigger interval,
        which the query's ``writeStream.trigger`` takes.
        """
        executor = self.executor
        conf = {
            "spark.driver.memory": DRIVER_MEMORY,
            "spark.executor.instances": str(self.executors),
            "spark.executor.cores": str(executor.slots),
            "spark.executor.memory": f"{executor.heap_mb}m",
            "spark.executor.memoryOverhead": f"{executor.overhead_mb}m",
            "spark.kubernetes.executor.request.cores": f"{executor.millicores}m",
            "spark.kubernetes.executor.limit.cores": f"{executor.millicores}m",
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
                state + "rocksdb.maxMemoryUsageMB": str(executor.rocksdb_mb),
                state + "rocksdb.trackTotalNumberOfRows": "false",
            }
        return conf

    def spark_submit(self, application: str = "job.py", master: str = "k8s://https://API-SERVER") -> str:
        """Give the shell command that starts `application`, with its arguments, as planned.

        Names in capitals are the reader's to fill in: his cluster's address and, on Kubernetes, the image.
        """
        conf, mode = self.spark_conf(), []
        if master.startswith("k8s://"):
            conf["spark.kubernetes.container.image"] = "CONTAINER-IMAGE"
            mode = ["--deploy-mode cluster"]
        options = [f"--conf {shlex.quote(f'{key}={value}')}" for key, value in sorted(conf.items())]
        return " \\\n  ".join(["spark-submit", f"--master {shlex.quote(master)}", *mode, *options, application])

    def kubernetes(self) -> dict[str, dict[str, dict[str, str]]]:
        """Resource requests and limits of one executor's container, the same that `spark_submit` has Spark ask for."""
        both = {"cpu": f"{self.executor.millicores}m", "memory": f"{self.executor.memory_mb}Mi"}
        return {"resources": {"requests": dict(both), "limits": dict(both)}}

    def to_json(self) -> str:
        """Write the plan as JSON text, with what Spark is to be told."""
        data = asdict(self)
        del data["_stateful"]
        for name in ("allocation", "layout", "low_layout"):
            data[name] = None if data[name] is None else _plain(data[name])
        data |= {"version": VERSION, "spark_conf": self.spark_conf(), "kubernetes": self.kubernetes()}
        data["spark_submit"] = self.spark_submit()
        return json.dumps(_finite(data), allow_nan=False, indent=1)

    def sentence(self) -> str:
        """One sentence: the answer."""
        budget, price = self.budget, self.price
        slots = "1 slot" if budget.slots == 1 else f"{budget.slots} slots"
        interval = "" if not self.has_interval else f" at a trigger interval of {budget.interval_s:g} s"
        beyond = f", {self.extrapolation:.1f} times the most slots measured" if self.extrapolation > 1 else ""
        workers = "" if price is None else (
            f", on {price.workers} x {price.instance.name} with room for {price.slots_per_worker} each at "
            f"{_money(price.per_hour)} {price.instance.currency}/h"
        )  # fmt: skip
        return (
            f"{self.rate:,.0f} records/s of {self.query} take {slots} of {budget.profile.cpus:g} core and "
            f"{budget.profile.memory_mb} MB{interval} (capacity {self.expected_rate:,.0f}, 90 % interval "
            f"{self.low:,.0f} to {self.high:,.0f} records/s{beyond}){workers}."
        )

    def basis(self) -> str:
        """One sentence: what the answer rests on."""
        how = "simulated" if self.simulated else "measured"
        share = self.source_share
        source = (
            "" if share is None else f"; the source that replayed the data took {share:.0%} of the slots' busy time"
        )
        return f"It rests on {self.runs} runs {how} on {self.testbed}{source}."

    @property
    def simulated(self) -> bool:
        """Whether the runs behind it were simulated."""
        return self._kind == _SIMULATED

    @property
    def has_interval(self) -> bool:
        """Whether a trigger interval is part of the plan: a simulated engine has none, and a table names none."""
        return self._kind not in {_SIMULATED, _RECORDED}

    @property
    def _kind(self) -> str:
        return self.testbed.split(",", maxsplit=1)[0]


def plan(
    exploration: Exploration,
    rate: float,
    *,
    memory_mb: Sequence[int],
    margin: float | None = None,
    risk: float | None = None,
    instances: Sequence[InstanceType] = (),
    reserve: Reserve = kubernetes_reserve,
    interval_gains: Mapping[float, Gain] | None = None,
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
        See `Model.slots_for`. By default the margin is 1.1, and 1 where there is a risk.
    instances
        Price list; without one, the least memory x slots counts as cheapest, ties to the shorter trigger interval, then
        to less memory per slot, and executors are made for workers of 16 cores and 64 GiB.
    reserve
        Cores and MiB that a worker keeps for itself, of those it has.
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
    if margin is None:
        margin = MARGIN if risk is None else 1.0
    runs, model = exploration.measurements, exploration.model
    sample = exploration.fitted_runs[-1]
    least = min(run.budget.slots for run in exploration.runs)
    gains = interval_gains or {sample.budget.interval_s: Gain()}

    def slots_for(carried: float, memory: int, gain: Gain) -> int:
        explored = carried / (gain.ratio if risk is None else gain.quantile(risk))
        return model.slots_for(explored, memory, margin, min_slots=least, risk=risk)

    options: list[tuple[float, float, int, Budget, Price | None]] = []
    refused = None
    for memory, (interval, gain) in itertools.product(memory_mb, gains.items()):
        profile = SlotProfile(sample.budget.profile.cpus, memory)
        try:
            slots = slots_for(rate, memory, gain)
            price = cheapest(instances, slots, profile, reserve=reserve) if instances else None
        except WorkbenchError as error:
            refused = error
            continue
        cost = price.per_hour if price else float(slots * memory)
        options.append((cost, interval, memory, Budget(slots, profile, interval), price))
    if not options:
        raise refused or WorkbenchError("No memory profile was given to plan with; give at least one.")
    _, interval, memory, budget, price = min(options, key=lambda option: option[:3])
    gain = gains[interval]
    low_slots = None if low_rate is None else min(budget.slots, slots_for(low_rate, memory, gain))
    costed = max(runs, key=lambda run: sum(cost.levels for cost in run.costs))
    layout, low_layout = lay_out(costed, budget, rate, low_slots, low_rate)
    minimal = _minimal(exploration, memory)
    allocation = None if minimal is None else allocate(minimal, budget.slots)
    share = source_share(exploration.fitted_runs)
    points, rates = exploration.points, exploration.rates
    low, expected, high = _capacity(exploration, budget, gain)
    executors = math.ceil(budget.slots / _shape(price, budget.profile, reserve))
    return CapacityPlan(
        query=sample.query,
        rate=rate,
        margin=margin,
        budget=budget,
        expected_rate=expected,
        low=low,
        high=high,
        form=model.form,
        testbed=sample.testbed,
        runs=len(rates),
        extrapolation=budget.slots / float(points[:, 1].max()),
        executors=executors,
        allocation=allocation,
        layout=layout,
        price=price,
        overstatement=overstatement(exploration.runs),
        source_share=share,
        cards=(
            *check_model(exploration.model, points, rates, budget.slots, memory),
            *check_interval(budget, sample.budget.interval_s, gain),
            *check_layouts(layout, low_layout),
            *check_allocation(allocation),
            *check_source(share, budget.slots),
            *check_python(runs, math.ceil(budget.slots / executors)),
            *check_state(known=saw_operators(exploration.runs)),
            *exploration.findings,
        ),
        low_slots=low_slots,
        low_layout=low_layout,
        _stateful=any(keeps_state(run) for run in runs),
    )


def _capacity(exploration: Exploration, budget: Budget, gain: Gain) -> tuple[float, float, float]:
    """Lower end, expected capacity and upper end; model and gain err independently, each on the logarithmic scale."""
    model, target = exploration.model, [[budget.profile.memory_mb, budget.slots]]
    (middle,), (low,), (high,) = model.predict(target), *model.interval(target, LEVEL)
    below = math.hypot(math.log(middle / low), math.log(gain.ratio / gain.quantile((1 - LEVEL) / 2)))
    above = math.hypot(math.log(high / middle), math.log(gain.quantile((1 + LEVEL) / 2) / gain.ratio))
    expected = gain.ratio * float(middle)
    return expected * math.exp(-below), expected, expected * math.exp(above)


def _shape(price: Price | None, profile: SlotProfile, reserve: Reserve) -> int:
    """Slots that one executor may hold."""
    return max(1, slots_per_worker(*UNPRICED, profile, reserve)) if price is None else price.slots_per_worker


def _minimal(exploration: Exploration, memory_mb: int) -> Measurement | None:
    """Run of one task per operator at the memory nearest to `memory_mb`; None where tasks were not set."""
    minimal = [
        run for run in exploration.measurements if run.tasks and run.estimate.rate and set(run.tasks.values()) == {1}
    ]
    return min(minimal, key=lambda run: abs(run.budget.profile.memory_mb - memory_mb), default=None)


def _money(amount: float) -> str:
    """Two decimals; where these would be off by more than half a percent, three digits."""
    return f"{amount:,.2f}" if abs(round(amount, 2) - amount) <= 0.005 * amount else f"{amount:.3g}"


def _plain(data: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in data.items() if key != "stages"}


def _finite(value: object) -> object:
    """JSON has no inf: the text "inf"."""
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
