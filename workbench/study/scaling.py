"""Replays of a load under policies and under Elasticutor's paradigms, by name, and their steps as a table."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from workbench import bounds, units
from workbench.advice import Advice
from workbench.checks import finite, shown
from workbench.dataflow import Dataflow
from workbench.errors import WorkbenchError
from workbench.escaping import csv_text
from workbench.records import Price
from workbench.scaling import (
    BASE_MEMORY_MB,
    FLINK,
    JUSTIN,
    AnyPolicy,
    AutoscalerSettings,
    Controller,
    Decision,
    Ds2Policy,
    DynamicAllocation,
    Fleet,
    JustinPolicy,
    JustinVariant,
    KafkaLag,
    Static,
    Strategy,
    Timeline,
    Window,
    replay,
)
from workbench.scaling.elastic import (
    PARADIGMS,
    ElasticCluster,
    ElasticSettings,
    ExecutorAdvice,
    KeyedOperator,
    ParadigmRun,
    advise_executors,
    compare_paradigms,
)
from workbench.simulation import KeyTrace, QueryModel, RateTrace, Worker
from workbench.study.own import load_own, users_code

POLICIES: Mapping[str, AnyPolicy] = MappingProxyType(
    {"static": Static(), "ds2": Ds2Policy(JUSTIN), "flink": Ds2Policy(FLINK)}
)
"""Policies that are compared by default, as their users run them. ``static`` changes nothing. ``ds2`` has the settings
of Justin's evaluation, where DS2 is what Justin is compared with: it decides every two minutes, keeps every operator
busy for 20 to 80 % of the time and plans for 50 %. ``flink`` is Flink's autoscaler as shipped."""
_JUSTIN: Mapping[str, JustinVariant] = {
    "justin": JustinVariant(),
    "justin-hysteresis": JustinVariant(min_gain=0.05),
    "justin-gives-back": JustinVariant("exceeds", 0.05, 0.95),
}
_STRATEGIES: tuple[Strategy, ...] = ("optimum", "default", "evenly")
_CONTROLLERS: Mapping[str, Strategy] = {"capsys": "caps", **{f"capsys-{one}": one for one in _STRATEGIES}}
SPARK, KEDA = "dynamic-allocation", "keda"
NAMES = (*POLICIES, SPARK, KEDA, *_JUSTIN, *_CONTROLLERS)
"""All policies. ``dynamic-allocation`` is Spark's own, and ``keda`` follows the lag of a Kafka topic, both with the
defaults that they ship with. ``justin`` is Algorithm 1; ``justin-hysteresis`` has a hysteresis of 5 %;
``justin-gives-back`` also shrinks if DS2 proposes it, and gives memory back at a hit rate of 95 %. ``capsys`` is
``ds2`` with CAPSys's placement; ``capsys-optimum`` places what sustains most, ``capsys-default`` and ``capsys-evenly``
as Flink does."""

_AS_THEY_ARE: Mapping[str, float] = MappingProxyType({})
_FAR = 2.0  # factor over the highest known capacity; a larger load is far from it
_MANAGED_SHARE = 0.4  # of a slot's memory; Flink's default

KEEPS_UP = 0.99
"""Share of the time at the target from which a policy keeps up."""

_AS_GOOD = 0.01
_OF_USE = 0.5  # share of the time at the target; below it, nobody chooses a policy for its price

KEYED = "keyed"  # name of the keyed operator, as a query of workbench replay
MOST_SECONDS = 3600.0  # a paradigm is simulated in steps of 10 ms
_WARM_UP_S = 10.0  # at most, and a tenth of the load


@dataclass(frozen=True)
class Start:
    """The deployment at the beginning.

    A query, its tasks per operator, memory (MB) and cores of a slot, the trigger interval (seconds; 0 without), and the
    share of it that goes to what rows do not add to, with 1, 2, ... tasks.
    """

    model: QueryModel
    tasks: Mapping[str, int]
    memory_mb: float
    slot_cpus: float = 1.0
    batch_s: float = 0.0
    batch_fixed: tuple[float, ...] = (0.0,)
    known_per_s: float = math.inf  # highest capacity measured or planned, records/s
    doubts: Mapping[str, Advice] = field(default_factory=dict)  # doubts about the capacity at the beginning
    price: Price | None = None  # of the plan's workers


class Pool(NamedTuple):
    """Workers that a controller places tasks on: their number, slots of each, and capacities of each."""

    workers: int
    slots: int
    worker: Worker = Worker()


@dataclass(frozen=True, eq=False)
class Replayed:
    """A load replayed under policies: the simulated query, the load, the tasks at the beginning, and the timelines.

    `currency` is that of the workers' price; empty without one. `partitions` are those of the state, which its
    checkpoint fixes; None where nothing is fixed. `doubts` are about the capacity that the replay begins with.
    """

    query: str
    trace: RateTrace
    tasks: Mapping[str, int]
    timelines: Mapping[str, Timeline]
    currency: str = ""
    partitions: int | None = None
    doubts: Mapping[str, Advice] = field(default_factory=dict)

    @property
    def held(self) -> bool:
        """Whether the load's peak exceeds what all partitions carry, so that no policy can follow it."""
        deployed = (self.tasks, *(change.tasks for line in self.timelines.values() for change in line.reconfigurations))
        most = max(count for tasks in deployed for count in tasks.values())
        carried = max((float(line.consumed.max()) for line in self.timelines.values()), default=0.0)
        return self.partitions is not None and most >= self.partitions and carried < self.trace.peak_per_s

    @cached_property
    def rows(self) -> dict[str, dict[str, float]]:
        """One row of `Timeline.summary` by policy, with the driver's hours and cost added."""
        added = ("core_hours", "gb_hours", "cost")
        rows = {}
        for name, line in self.timelines.items():
            driver = {f"{key}_with_driver": value for key, value in line.with_driver().items() if key in added}
            rows[name] = line.summary() | driver
        return rows

    @property
    def price_unit(self) -> str:
        """The unit of costs, such as ``"USD for 24 h"``; empty without a price."""
        return f"{self.currency} for {units.seconds(self.trace.duration_s)}" if self.currency else ""

    steps_latency = "how long the last records of each step had waited"  # in the text of `csv`

    def csv(self) -> str:
        """Write every step of every timeline as comma-separated text."""
        header = ("policy", "time_s", "offered_per_s", "consumed_per_s", "backlog", "latency_s", "tasks", "workers")
        columns = attrgetter("times_s", "offered", "consumed", "backlog", "latency_s", "tasks", "workers")
        return _csv(header, ((name, columns(line)) for name, line in self.timelines.items()))


def replay_start(
    start: Start,
    trace: RateTrace,
    policies: Sequence[str] = tuple(POLICIES),
    *,
    restart_s: float = 10.0,
    managed_mb: float | None = None,
    pool: Pool | None = None,
    fleet: Fleet | None = None,
    keys: Mapping[str, KeyTrace] | None = None,
    seed: int = 0,
    settings: Mapping[str, float] = _AS_THEY_ARE,
    progress: Callable[[str], None] = lambda _: None,
) -> Replayed:
    """Replay `trace` under policies by name, from the same tasks on the same slots.

    The row of a policy does not depend on the other policies. `managed_mb` of a slot's memory are managed at the
    beginning, Justin's level 0. By default four tenths are: Justin begins with 158 MB instead, level 0 of its
    evaluation, or with as much if that is less, and the other policies do not split a slot's memory. `pool` has the
    workers of the policies that place tasks; the other policies run without contention between tasks. `fleet` are
    workers that are paid as a whole; a task takes the memory of its slot. `settings` are fields of `DynamicAllocation`
    and `KafkaLag`, and of `AutoscalerSettings` to change for all other policies except ``static`` and ``flink``.
    """
    share = _MANAGED_SHARE * start.memory_mb
    managed = min(BASE_MEMORY_MB, share) if managed_mb is None else managed_mb
    made = _named(policies, start.model, managed, pool=pool, seed=seed, settings=settings, start_s=restart_s)
    if managed_mb is not None and not 0 < managed < start.memory_mb:
        raise WorkbenchError(
            f"Managed memory of {managed:g} MB does not fit in a slot of {start.memory_mb:,g} MB; it must be above 0 "
            "and below the memory of the slot."
        )
    lines = {}
    for place, (name, policy) in enumerate(made.items(), start=1):
        progress(f"policy {place}/{len(made)} · {name}")
        split = managed_mb is not None or name in _JUSTIN
        unmanaged = start.memory_mb - (share if managed_mb is None else managed) if split else start.memory_mb
        lines[name] = replay(
            trace,
            start.model,
            policy,
            Decision(start.tasks, dict.fromkeys(start.tasks, managed) if split else None),
            memory_mb=unmanaged,
            slot_cpus=start.slot_cpus,
            restart_s=restart_s,
            fleet=fleet and replace(fleet, task_memory_mb=unmanaged),
            keys=keys,
            batch_s=start.batch_s,
            batch_fixed=start.batch_fixed,
        )
    doubts, times = dict(start.doubts), trace.peak_per_s / start.known_per_s
    if times > _FAR:
        peak, known = units.rate(trace.peak_per_s), units.rate(start.known_per_s)
        doubts[
            f"The load's peak of {peak} is {units.number(times, 2)} times the highest capacity that is known, {known}: "
            "no run has shown what carries it."
        ] = Advice("Plan for the peak, then replay that plan.")
    currency = "" if fleet is None else fleet.currency
    return Replayed(start.model.name, trace, start.tasks, lines, currency, _partitions(start.model), doubts)


@dataclass(frozen=True)
class Policies:
    """Policies on one load: `Timeline.with_driver` by policy, the `leading` one first, then by the time at the target.

    They are compared by their cost in `price_unit`; by core-hours where it is empty.
    """

    finding: str
    rows: Mapping[str, Mapping[str, float]]
    leading: str | None
    price_unit: str = ""

    @property
    def money(self) -> str:
        """The field by which policies are compared as cheap or expensive."""
        return "cost" if self.price_unit else "core_hours"

    @property
    def best(self) -> str | None:
        """The leading policy if it keeps up; None where no policy does."""
        return None if self.leading is None or self.rows[self.leading]["at_target"] < KEEPS_UP else self.leading


def compare_policies(compared: Mapping[str, Timeline | Mapping[str, float]], price_unit: str = "") -> Policies:
    """Compare replays of one trace by policy, or their summaries with the driver.

    The cheapest of those that keep up leads; where none does, of those within a hundredth of the longest time at the
    target. Without a `price_unit`, or where a policy has no cost, cheap is by core-hours.
    """
    rows = {name: row.with_driver() if isinstance(row, Timeline) else row for name, row in compared.items()}
    if not rows:
        return Policies("No policy was replayed", {}, None)
    unit = price_unit if all("cost" in row for row in rows.values()) else ""
    money = "cost" if unit else "core_hours"
    most = max(row["at_target"] for row in rows.values())
    enough = KEEPS_UP if most >= KEEPS_UP else most - _AS_GOOD
    able = [name for name, row in rows.items() if row["at_target"] >= enough]
    best = min(able, key=lambda name: rows[name][money])
    kept, cost = rows[best]["at_target"], units.number(rows[best][money])
    keeps = f"{best} keeps up" if kept >= KEEPS_UP else f"No policy keeps up; {best} does so"
    paid = f"at {cost} {unit}" if unit else f"for {cost} core-hours"
    finding = f"{keeps} {units.share(kept)} of the time {paid}, driver included{_against_others(rows, best, money)}"
    names = sorted(rows, key=lambda name: (name != best, -rows[name]["at_target"]))
    return Policies(finding, {name: rows[name] for name in names}, best, unit)


def _against_others(rows: Mapping[str, Mapping[str, float]], best: str, money: str) -> str:
    """Compare the best with the most expensive policy; if they are the same, with the best of the cheaper policies."""
    needs, fewer = ("costs", "less") if money == "cost" else ("needs", "fewer")
    cost = rows[best][money]
    most = max(rows, key=lambda name: rows[name][money])
    if rows[most][money] > cost:
        return f", {units.percent(1 - cost / rows[most][money])} {fewer} than {most}"
    cheaper = [name for name, row in rows.items() if row[money] < cost and row["at_target"] >= _OF_USE]
    if not cheaper:
        return ""
    next_best = max(cheaper, key=lambda name: (rows[name]["at_target"], -rows[name][money]))
    row = rows[next_best]
    saved = units.percent(1 - row[money] / cost)
    return f"; {next_best} {needs} {saved} {fewer}, but keeps up only {units.share(row['at_target'])} of the time"


def _partitions(model: QueryModel) -> int | None:
    """Fewest fixed partitions of an operator's state, which bound its tasks; None if none are fixed."""
    return min((one.partitions for one in model.operators.values() if one.partitions is not None), default=None)


def _named(
    names: Sequence[str],
    model: QueryModel,
    base_mb: float,
    *,
    pool: Pool | None,
    seed: int,
    settings: Mapping[str, float],
    start_s: float,
) -> dict[str, AnyPolicy]:
    """Make policies; `base_mb` is Justin's level 0, `start_s` the seconds until a new executor runs."""
    given, own, lag = _settings_of(settings, "An autoscaler", AutoscalerSettings, DynamicAllocation, KafkaLag)
    frozen = _partitions(model)
    most: dict[str, Any] = {} if frozen is None else {"max_parallelism": frozen}
    ds2, flink = replace(JUSTIN, **{**most, **given}), replace(FLINK, **most)
    width = {} if frozen is None else {"tasks": frozen}

    def controller(name: str) -> AnyPolicy:
        if pool is None:
            raise WorkbenchError(
                f"Policy {name!r} places tasks on workers; give their number and slots.",
                settings=("workers", "worker_slots"),
            )
        profiles = {operator: one.profile for operator, one in model.operators.items()}
        return Controller(Ds2Policy(ds2), profiles, *pool, _CONTROLLERS[name], seed)

    makers: Mapping[str, Callable[[str], AnyPolicy]] = {
        "static": lambda _: Static(),
        "ds2": lambda _: Ds2Policy(ds2),
        "flink": lambda _: Ds2Policy(flink),
        SPARK: lambda _: DynamicAllocation(**{"start_s": start_s, **width, **own}),
        KEDA: lambda _: KafkaLag(**{"partitions": frozen, **lag}),
        **dict.fromkeys(_JUSTIN, lambda name: JustinPolicy(ds2, _JUSTIN[name], base_mb=base_mb)),
        **dict.fromkeys(_CONTROLLERS, controller),
    }
    unknown = [name for name in names if name not in NAMES and ":" not in name]
    if unknown or not names:
        missing = f"There is no policy {unknown[0]!r}" if unknown else "There are no policies"
        raise WorkbenchError(f"{missing}; use one of {', '.join(NAMES)}, or module:name of your own.")
    return {name: own_policy(name) if ":" in name else makers[name](name) for name in names}


@dataclass(frozen=True)
class OwnPolicy:
    """A user's policy under the name that it was loaded by, ``module:name``."""

    name: str
    policy: Any

    @property
    def interval_s(self) -> float:
        """Seconds from one call to the next."""
        return self.policy.interval_s  # type: ignore[no-any-return]

    def begin(self, dataflow: Dataflow, decision: Decision, source_rates: Mapping[str, float]) -> Decision:
        """Place the first deployment, if the policy places tasks."""
        if not hasattr(self.policy, "begin"):
            return decision
        with users_code(f"The policy {self.name!r} failed in begin", "Fix its code."):
            return self.policy.begin(dataflow, decision, source_rates)  # type: ignore[no-any-return]

    def decide(self, window: Window, memory: object) -> Any:  # noqa: ANN401 - the replay checks the answer
        """Decide as the user's policy does."""
        with users_code(f"The policy {self.name!r} failed in decide at {window.now_s:g} s", "Fix its code."):
            return self.policy.decide(window, memory)


def own_policy(name: str) -> AnyPolicy:
    """Load a policy of your own, ``module:name`` of a `Policy`, or of a class of it that needs no arguments."""
    found: Any = load_own(name, "policy")
    if isinstance(found, type):
        remedy = "Name an object, or a class whose arguments all have defaults."
        with users_code(f"The policy {name!r} cannot be made", remedy):
            found = found()
    with users_code(f"The members of the policy {name!r} cannot be read", "Fix it."):  # of a property
        interval: Any = getattr(found, "interval_s", None)
        decides = callable(getattr(found, "decide", None))
    if not decides or not (finite(interval) and interval > 0):
        raise WorkbenchError(
            f"{name!r} is not a policy: it needs decide(window, memory), and interval_s, the seconds from one decision "
            f"to the next, above 0; interval_s is {shown(interval)}. See the how-to for an example."
        )
    return OwnPolicy(name, found)


def _settings_of(settings: Mapping[str, float], owner: str, *kinds: type[Any]) -> list[dict[str, Any]]:
    """Return the settings of each kind; refuse one that none has.

    A command line has floats: those that are whole become integers, as tasks and replicas are.
    """
    known = [[one.name for one in fields(kind)] for kind in kinds]
    allowed = dict.fromkeys(chain.from_iterable(known))
    for name in settings:
        if name not in allowed:
            raise WorkbenchError(f"{owner} has no setting {name!r}; it has {', '.join(allowed)}.")
    whole = {name: int(value) if float(value).is_integer() else value for name, value in settings.items()}
    return [{name: value for name, value in whole.items() if name in names} for names in known]


@dataclass(frozen=True, eq=False)
class ReplayedParadigms:
    """A load on a keyed operator under several paradigms, and how many executors and shards Elasticutor has for it."""

    trace: RateTrace
    operator: KeyedOperator
    cluster: ElasticCluster
    runs: tuple[ParadigmRun, ...]
    advice: ExecutorAdvice

    @cached_property
    def rows(self) -> dict[str, dict[str, float]]:
        """One row of `ParadigmRun.summary` by paradigm."""
        return {run.paradigm: run.summary() for run in self.runs}

    steps_latency = "the mean over the records sent in each second"  # in the text of `csv`

    def csv(self) -> str:
        """Write throughput and mean latency of every second of every paradigm as comma-separated text."""
        header = ("paradigm", "time_s", "throughput_per_s", "latency_s")
        columns = attrgetter("time_s", "throughput_series", "latency_series")
        return _csv(header, ((run.paradigm, columns(run)) for run in self.runs))


def replay_paradigms(
    trace: RateTrace,
    keys: KeyTrace,
    paradigms: Sequence[str] = PARADIGMS,
    *,
    cluster: ElasticCluster | None = None,
    settings: Mapping[str, float] = _AS_THEY_ARE,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> ReplayedParadigms:
    """Replay `trace`, for at most an hour, on one keyed operator under each of `paradigms`, with the same keys.

    The totals exclude the first 10 s, or the first tenth of a shorter load. By default there are 4 nodes of 8 cores
    with one executor each; `settings` are fields of `KeyedOperator` and `ElasticSettings` that differ from the
    defaults.
    """
    unknown = [name for name in paradigms if name not in PARADIGMS]
    if unknown or not paradigms:
        missing = f"There is no paradigm {unknown[0]!r}" if unknown else "There are no paradigms"
        raise WorkbenchError(f"{missing}; use one of {', '.join(PARADIGMS)}.")
    if trace.duration_s > MOST_SECONDS:
        raise WorkbenchError(
            f"The load lasts {trace.duration_s:g} s; a keyed operator is replayed for at most {MOST_SECONDS:g} s. "
            "Cut the load to the part of interest."
        )
    of_it, of_moves = _settings_of(settings, "A keyed operator", KeyedOperator, ElasticSettings)
    nodes = ElasticCluster(nodes=4, node_cores=8) if cluster is None else cluster
    if nodes.cores > bounds.KEYED_CORES:
        raise WorkbenchError(
            f"The workers have {nodes.cores:,} slots; a keyed operator is replayed on at most {bounds.KEYED_CORES:,}. "
            "Give fewer workers, or fewer slots of each.",
            settings=("workers", "worker_slots"),
        )
    operator = KeyedOperator(**{"executors": nodes.nodes, "upstream": nodes.nodes, **of_it})
    chosen = [name for name in PARADIGMS if name in paradigms]
    warm_up_s = min(_WARM_UP_S, 0.1 * trace.duration_s)
    how = ElasticSettings(**of_moves)
    runs = compare_paradigms(
        operator, nodes, keys, chosen, rate=trace, warm_up_s=warm_up_s, settings=how, seed=seed, progress=progress
    )
    advice = advise_executors(nodes.nodes, nodes.node_cores, key_counts=keys.shares.tolist())
    return ReplayedParadigms(trace, operator, nodes, runs, advice)


def _csv(header: Sequence[str], series: Iterable[tuple[str, Iterable[np.ndarray]]]) -> str:
    """Write columns by name: one row per value, after the name."""
    each = ((name, zip(*(one.tolist() for one in columns), strict=True)) for name, columns in series)
    return csv_text(chain([header], ((name, *row) for name, rows in each for row in rows)))
