"""What to replay, as plain values: the only definition of what ``workbench replay`` and the scaling report take."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, get_type_hints

from workbench import bounds
from workbench.capacity.planning import read_instances
from workbench.checks import finite, integer, shown
from workbench.errors import WorkbenchError
from workbench.scaling import Fleet, WorkerShape
from workbench.scaling.elastic import PARADIGMS, ElasticCluster
from workbench.simulation import KeyTrace, RateTrace, StateResponse, Worker
from workbench.study import scaling
from workbench.study.planned import MEASUREMENT, SUFFIXES, resolved
from workbench.study.start import Start, measured_start, planned_start, simulated_start, with_response
from workbench.workload import read_key_frequencies

_KEYS = 10_000
_MB = float(1 << 20)
_NODES = 4
_MOST_CHANGES = 6_000  # of the keys, a minute
_TAKES = "a study, plans, a measurement or the name of a simulated query"
_NOT_KEYED = ("slots", "plan_rate", "managed_mb", "response", "prices", "instance", "worker_cpus", "worker_io_mb")

Words = Sequence[str | float]


@dataclass(frozen=True)
class Scenario:
    """A load, what it is replayed on, and under which policies. None and empty values are left out.

    Fields of numbers above 0 have their name for a reader, and the most they may be.
    """

    query: str  # a simulated query, the path of a planned study, of plans or of a measurement, or `KEYED`
    rates: str  # CSV file of the load
    time_column: str = "time_s"  # of the load, seconds
    rate_column: str = "rate_per_s"  # records/s
    slots: Annotated[int | None, "number of slots", bounds.TASKS] = None  # slots at the beginning
    plan_rate: Annotated[float | None, "target rate", bounds.RATE] = None  # target of a plan; the last by default
    memory_mb: Annotated[float, "memory of a slot", bounds.MEMORY_MB] = 2048.0  # memory of a slot, MiB
    managed_mb: Annotated[float | None, "managed memory of a slot", bounds.MEMORY_MB] = None  # managed part of it, MiB
    policies: Sequence[str] = ()  # names, or ``module:name`` of your own; for a keyed operator paradigms
    # of all autoscalers but ``flink``; of a keyed operator and its elasticity
    settings: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    restart_s: float = 10.0  # downtime of a reconfiguration, seconds
    response: Words = ()  # operator, CSV file and tasks of a measured response of state to memory
    # workers of the policies that place tasks, or nodes of a keyed operator; slots, cores and MiB/s of each
    workers: Annotated[int | None, "number of workers", bounds.TASKS] = None
    worker_slots: Annotated[int, "number of slots of a worker", bounds.TASKS] = 4
    worker_cpus: Annotated[float | None, "number of cores of a worker", bounds.WORKER_CPUS] = None
    worker_io_mb: Annotated[float | None, "number of MB/s of state access of a worker", bounds.NUMBER] = None
    worker_net_mb: Annotated[float | None, "number of MB/s of network output of a worker", bounds.NUMBER] = None
    prices: str | None = None  # a price list, and the type of it that is paid for
    instance: str | None = None
    # operator; share, exponent of Zipf's law, or file of frequencies; changes a minute
    hot_key: Words = ()
    shuffle_keys: Words = ()
    keys: Words = ()
    seed: int = 0  # of random placements, keys and service times

    def trace(self) -> RateTrace:
        """Read the load."""
        return RateTrace.from_csv(self.rates, self.time_column, self.rate_column)

    def replay(
        self, trace: RateTrace, progress: Callable[[str], None] = lambda _: None
    ) -> scaling.Replayed | scaling.ReplayedParadigms:
        """Replay `trace`, the load or a part of it."""
        self._check()
        if self.query == scaling.KEYED:
            return self._replay_keyed(trace, progress)
        start = self._start()
        return scaling.replay_start(
            start,
            trace,
            self.policies or tuple(scaling.POLICIES),
            restart_s=self.restart_s,
            managed_mb=self.managed_mb,
            pool=self._pool(start.slot_cpus),
            fleet=self._fleet(start),
            keys=self._keys(),
            seed=self.seed,
            settings=self.settings,
            progress=progress,
        )

    def _check(self) -> None:
        number = integer(self.seed)
        if number is None or number < 0:
            raise WorkbenchError(
                f"The seed is {shown(self.seed)}; it must be a whole number of at least 0.", settings=("seed",)
            )
        for name, hint in get_type_hints(Scenario, include_extras=True).items():
            value, (thing, most) = getattr(self, name), getattr(hint, "__metadata__", ("", math.inf))
            if thing and value is not None and not (finite(value) and 0 < value <= most):
                allowed = f"at most {most:,}" if finite(value) and value > 0 else "above 0"
                given = f"{value:g}" if finite(value) else shown(value)
                raise WorkbenchError(f"The {thing} is {given}; it must be {allowed}.", settings=(name,))
        if not (finite(self.restart_s) and 0 <= self.restart_s <= bounds.SECONDS):
            raise WorkbenchError(
                f"restart_s is {shown(self.restart_s)}; it must be at least 0 and at most {bounds.SECONDS:,}.",
                settings=("restart_s",),
            )
        for name, value in self.settings.items():
            if not finite(value):
                raise WorkbenchError(
                    f"The setting {name!r} is {shown(value)}; it must be a finite number.", settings=("settings",)
                )

    def _replay_keyed(self, trace: RateTrace, progress: Callable[[str], None]) -> scaling.ReplayedParadigms:
        given = [name for name in _NOT_KEYED if getattr(self, name) not in (None, ())]
        if given:
            raise WorkbenchError(
                f"{given[0]} does not apply to {scaling.KEYED!r}; describe its cluster by workers and their slots, and "
                "the operator by settings. Leave it out.",
                settings=given[:1],
            )
        keys = self._keys()
        if list(keys) != [scaling.KEYED]:
            raise WorkbenchError(
                f"The keys of {scaling.KEYED!r} are missing; give one of these for the operator {scaling.KEYED!r}.",
                settings=("hot_key", "shuffle_keys", "keys"),
            )
        network = {} if self.worker_net_mb is None else {"network_bytes_per_s": self.worker_net_mb * _MB}
        cluster = ElasticCluster(self.workers or _NODES, self.worker_slots, **network)
        chosen, own = self.policies or PARADIGMS, self.settings
        return scaling.replay_paradigms(
            trace, keys[scaling.KEYED], chosen, cluster=cluster, settings=own, seed=self.seed, progress=progress
        )

    def _start(self) -> Start:
        start = self._deployed()
        if not self.response:
            return start
        operator, path, tasks = _three("response", self.response, "an operator, a file and a number of tasks")
        if not (str(tasks).isascii() and str(tasks).isdigit() and len(str(tasks)) <= len(str(bounds.TASKS))):
            raise WorkbenchError(
                f"The tasks of the measured response are {shown(tasks)}; give a whole number of at least 1.",
                settings=("response",),
            )
        return with_response(start, str(operator), StateResponse.from_csv(str(path), int(tasks)))

    def _deployed(self) -> Start:
        found = resolved(self.query, "replay", _TAKES) if Path(self.query).suffix in SUFFIXES else None
        if found is not None and found[0] != MEASUREMENT:
            return planned_start(found[1], self.plan_rate)
        if self.plan_rate is not None:
            raise WorkbenchError(
                f"A target rate is one of several plans', but {self.query!r} has none. Leave it out.",
                settings=("plan_rate",),
            )
        if found is not None:
            return measured_start(found[1])
        return simulated_start(self.query, self.slots, self.memory_mb)

    def _pool(self, slot_cpus: float) -> scaling.Pool | None:
        if self.workers is None:
            return None
        cpus = slot_cpus * self.worker_slots if self.worker_cpus is None else self.worker_cpus
        io, net = (math.inf if mb is None else mb * _MB for mb in (self.worker_io_mb, self.worker_net_mb))
        return scaling.Pool(self.workers, self.worker_slots, Worker(cpus, io, net))

    def _fleet(self, start: Start) -> Fleet | None:
        if self.instance is None:
            return None
        if self.prices is None:
            raise WorkbenchError(
                f"The instance type {self.instance!r} is of a price list; give the list.", settings=("prices",)
            )
        listed = {one.name: one for one in read_instances(Path(self.prices))}
        if self.instance not in listed:
            raise WorkbenchError(
                f"{self.prices} has no instance type {self.instance!r}; use one of {', '.join(listed)}."
            )
        chosen = listed[self.instance]
        shape = WorkerShape(chosen.vcpus, chosen.memory_mb)
        return Fleet(shape, start.memory_mb, start.slot_cpus, chosen.price_per_hour, chosen.currency)

    def _keys(self) -> dict[str, KeyTrace]:
        keys: dict[str, KeyTrace] = {}
        given = {"hot_key": self.hot_key, "shuffle_keys": self.shuffle_keys, "keys": self.keys}
        for name, words in given.items():
            if not words:
                continue
            one, kind, often = _three(name, words, "an operator, what its keys are, and changes a minute")
            operator = str(one)
            if operator in keys:
                raise WorkbenchError(
                    f"The keys of {operator!r} are described twice; give one of these for each operator.",
                    settings=tuple(given),
                )
            try:
                per_minute = float(often)
                number = math.nan if name == "keys" else float(kind)
            except ValueError as error:
                raise WorkbenchError(
                    f"{' '.join(map(str, words))!r} must have numbers after the operator: {error}.", settings=(name,)
                ) from error
            if not (math.isfinite(per_minute) and 0 <= per_minute <= _MOST_CHANGES):
                raise WorkbenchError(
                    f"The keys change {per_minute:g} times a minute; give at least 0 and at most {_MOST_CHANGES:,}.",
                    settings=(name,),
                )
            if name == "hot_key":
                keys[operator] = KeyTrace.hot_key(_KEYS, number, per_minute, self.seed)
            elif name == "shuffle_keys":
                keys[operator] = KeyTrace.zipf(_KEYS, number, per_minute, seed=self.seed)
            else:
                keys[operator] = read_key_frequencies(str(kind)).trace(per_minute, seed=self.seed)
        return keys


def _three(name: str, words: Words, meaning: str) -> Words:
    if len(words) != 3:
        raise WorkbenchError(f"Expected three values ({meaning}), got {len(words)}. Give all three.", settings=(name,))
    return words
