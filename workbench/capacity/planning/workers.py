"""Workers: how many slots fit on one in executors, what workers cost, and several plans on one priced cluster.

A slot is what was measured: cores, and memory for heap and RocksDB. A container takes more than its slots, and a worker
gives less than it has, so fewer slots fit on a worker than its size divided by theirs.

On a cluster each plan's slots are cut into executors of one size; executors and drivers of several plans may share a
worker: a bin packing in two dimensions, cores and memory. Sizes that were not measured are varied, and for each the
containers are put, the largest first, on the first worker with room.
"""

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from workbench import bounds
from workbench.checks import whole
from workbench.dataflow import SlotProfile
from workbench.errors import WorkbenchError
from workbench.reading import read_rows
from workbench.records import (
    DATABRICKS,
    DRIVER_CORES,
    DRIVER_MEMORY_MB,
    EMR_SERVERLESS,
    CapacityPlan,
    Executor,
    InstanceType,
    Price,
)

UNPRICED = (16.0, 65536.0)
"""Cores and MiB of the workers that are assumed without a price list: a common size for all purposes."""

Reserve = Callable[[float, float], tuple[float, float]]
"""Returns the cores and MiB that a worker reserves for itself, from its own cores and MiB."""
OnCores = Callable[[int, InstanceType], CapacityPlan]
"""Returns the plan at a place for the cores of an instance type."""

_CPU_SHARES = ((1.0, 0.06), (2.0, 0.01), (4.0, 0.005), (math.inf, 0.0025))
_MEMORY_SHARES = ((4096.0, 0.25), (8192.0, 0.20), (16384.0, 0.10), (131072.0, 0.06), (math.inf, 0.02))
_SMALL_MB, _SMALL_RESERVE_MB, _EVICTION_MB = 1024.0, 255.0, 100.0
_SLACK = 1e-6
_MOST_CUTS = 6  # sizes of executors that are tried for each plan
_MOST_TRIED = 2000


def kubernetes_reserve(cpus: float, memory_mb: float) -> tuple[float, float]:
    """Return the cores and MiB that Kubernetes reserves on a node for the system, the kubelet and eviction.

    The shares are those of Google Kubernetes Engine, "Plan node sizes"
    (https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes), without pods that run on every node.
    """
    system_mb = _SMALL_RESERVE_MB if memory_mb < _SMALL_MB else _of_ranges(memory_mb, _MEMORY_SHARES)
    return _of_ranges(cpus, _CPU_SHARES), system_mb + _EVICTION_MB


def slots_per_worker(
    cpus: float,
    memory_mb: float,
    profile: SlotProfile,
    reserve: Reserve = kubernetes_reserve,
    executor_slots: int | None = None,
) -> int:
    """Most slots that fit on a worker of these cores and MiB, in executors of `executor_slots` or one; 0 if none."""
    kept_cpus, kept_mb = reserve(cpus, memory_mb)
    room_cpus, room_mb = cpus - kept_cpus, memory_mb - kept_mb
    size = executor_size(executor_slots)
    if size is None:
        return slots_within(math.floor(room_cpus / profile.cpus + _SLACK), profile, room_cpus, room_mb)
    return size * executors_within(Executor(size, profile), room_cpus, room_mb)


def executors_within(one: Executor, cpus: float, memory_mb: float) -> int:
    """Return how many executors like `one` fit into these cores and MiB."""
    return max(0, math.floor(min(1000 * cpus / one.millicores, memory_mb / one.memory_mb) + _SLACK))


def in_executors(slots: int, executor_slots: int | None) -> int:
    """Round `slots` up to whole executors of `executor_slots`; None: executors have any size."""
    size = executor_size(executor_slots) or 1
    return size * math.ceil(slots / size)


def executor_size(slots: int | None) -> int | None:
    """Return the slots of an executor as an int; None, which means any size, stays None."""
    return None if slots is None else whole("The number of slots of an executor", slots)


def slots_within(most: int, profile: SlotProfile, cpus: float, memory_mb: float) -> int:
    """Return the most slots, up to `most`, of an executor that fits into these cores and MiB; 0 if none does."""
    # beyond one that does not fit, none does
    return bisect_left(range(1, most + 1), x=True, key=lambda slots: not Executor(slots, profile).fits(cpus, memory_mb))


def _of_ranges(amount: float, shares: Sequence[tuple[float, float]]) -> float:
    """Sum the shares of `amount`, each for the range up to its end."""
    ends = itertools.pairwise(((0.0, 0.0), *shares))
    return sum(share * max(0.0, min(amount, end) - start) for (start, _), (end, share) in ends)


COLUMNS = ("name", "provider", "region", "vcpus", "memory_mb", "price_per_hour", "currency", "source", "date")
CORE_SPEED, UNIT, UNITS = "core_speed", "unit", "units_per_hour"


def read_instances(path: Path) -> tuple[InstanceType, ...]:
    """Read instance types from a CSV file with the columns of `COLUMNS`, all priced in one currency.

    It may have a column `CORE_SPEED`, whose cells may be empty: how many times as fast the cores of a type are as those
    of the reference machine, as ``workbench speed`` prints it there; and the columns `UNIT` and `UNITS`: what the
    platform charges for (``DBU``, ``vCPU hour``), and how many of them a worker takes in an hour.
    """
    rows = read_rows(path, f"The price list {path}", COLUMNS, f"Its columns must be {', '.join(COLUMNS)}.")
    instances = tuple(_instance(row, path, line) for line, row in rows)
    if not instances:
        raise WorkbenchError(f"The price list {path} has a heading and no instance types; add one a line.")
    currencies = sorted({instance.currency for instance in instances})
    if len(currencies) > 1:
        raise WorkbenchError(
            f"The price list {path} has prices in {', '.join(currencies)}, which cannot be compared. Give all in one."
        )
    return instances


def room_for(instance: InstanceType, profile: SlotProfile, executor_slots: int | None = None) -> int:
    """Return the most slots of `profile` that a worker of a type holds; 0 if none.

    Workers of Databricks and EMR Serverless hold one executor, whose slots are whole virtual cores. Databricks keeps
    3 % and 4,800 MB of the memory (its knowledge base: "Apache Spark UI shows less than total node memory").
    A container of EMR Serverless is all for the executor, and all its virtual cores run tasks, so that its slots are a
    power of two, as its cores are.
    """
    if instance.provider not in (DATABRICKS, EMR_SERVERLESS):
        return slots_per_worker(instance.vcpus, instance.memory_mb, profile, executor_slots=executor_slots)
    kept_mb = 0.03 * instance.memory_mb + 4800 if instance.provider == DATABRICKS else 0.0
    whole = replace(profile, cpus=math.ceil(profile.cpus))
    most = slots_per_worker(instance.vcpus, instance.memory_mb, whole, lambda _cpus, _mb: (0.0, kept_mb))
    if instance.provider == EMR_SERVERLESS and most:
        most = 2 ** (most.bit_length() - 1)
    size = executor_slots or most
    return size if size <= most and (instance.provider == DATABRICKS or size.bit_count() == 1) else 0


def cheapest(
    instances: Sequence[InstanceType], slots: int, profile: SlotProfile, executor_slots: int | None = None
) -> Price:
    """Price `slots` slots of `profile` on the cheapest instance type that can hold at least one executor.

    Without `executor_slots` a worker has one executor, of as many slots as there is room for. Ties go to fewer workers,
    then to the order of the list. The driver is not priced. Prices are compared as numbers: give them in one currency.
    """
    found = []
    for instance in instances:
        shape = room_for(instance, profile, executor_slots)
        if shape > 0:
            workers = math.ceil(slots / shape)
            found.append(Price(instance, workers, shape, workers * instance.price_per_hour, workers * shape - slots))
    if not found:
        is_one = executor_slots in (None, 1)
        raise WorkbenchError(
            f"None of the {len(instances)} instance types holds {'a slot' if is_one else f'{executor_slots} slots'} of "
            f"{profile.cpus:g} cores and {profile.memory_mb:,} MB {'' if is_one else 'in one executor, '}apart from "
            "what the system keeps; add larger ones to the price list, or use smaller "
            f"{'slots' if is_one else 'executors'}."
        )
    return min(found, key=lambda price: (price.per_hour, price.workers))


def _instance(row: Mapping[str, str | None], path: Path, line: int) -> InstanceType:
    try:
        texts = {name: text for name in COLUMNS if (text := row[name]) is not None}
        lacking = [name for name in COLUMNS if name not in texts]  # where the line ends early
        if lacking:
            raise ValueError(f"it ends before {', '.join(lacking)}")  # noqa: TRY301 - reported with its line below
        numbers = {name: float(texts.pop(name)) for name in ("vcpus", "memory_mb", "price_per_hour")}
        speed, unit, units = ((row.get(name) or "").strip() for name in (CORE_SPEED, UNIT, UNITS))
        more = {"core_speed": float(speed) if speed else None, "units_per_hour": float(units) if units else None}
        return InstanceType(**texts, **numbers, **more, unit=unit)  # type: ignore[arg-type]
    except (ValueError, TypeError, WorkbenchError) as error:
        raise WorkbenchError(f"Line {line} of the price list {path} is wrong: {error}. Correct it.") from error


@dataclass(frozen=True)
class Worker:
    """What one worker holds, by the place of the plan: how many of its executors, and whose drivers."""

    executors: tuple[int, ...]
    drivers: tuple[int, ...]


@dataclass(frozen=True)
class Cluster:
    """Workers of one type that hold several plans."""

    plans: tuple[CapacityPlan, ...]  # in order, for the cores of `instance`
    executors: tuple[Executor, ...]  # each plan's executor; there are as many as its slots take
    instance: InstanceType
    workers: tuple[Worker, ...]
    least: int  # lower bound of the workers for any packing on this type
    # cost of the plans if each had workers of its own, of the type that is cheapest for it, drivers included
    apart_per_hour: float

    @property
    def per_hour(self) -> float:
        """Price of all workers."""
        return len(self.workers) * self.instance.price_per_hour

    def count(self, place: int) -> int:
        """Executors of the plan at `place`."""
        return sum(worker.executors[place] for worker in self.workers)


def pack(plans: Sequence[CapacityPlan], instances: Sequence[InstanceType], on_cores: OnCores | None = None) -> Cluster:
    """Find the cheapest workers of one type that hold all `plans` with their drivers.

    Ties go to fewer workers, then to the order of the price list, then to larger executors of the first plans.
    Without `on_cores`, every type's cores count as those that a plan was made for; a type on whose cores it refuses a
    plan is left out.
    """
    if not plans:
        raise WorkbenchError("There is no plan to put on a cluster; name at least one.")
    if not instances:
        raise WorkbenchError("There is no price list, so no cluster can be priced. Name one.", settings=("prices",))
    if any(one.provider in (DATABRICKS, EMR_SERVERLESS) for one in instances):
        raise WorkbenchError(
            f"Workers of {DATABRICKS} and {EMR_SERVERLESS} hold one executor of one job each, so plans cannot share "
            "them. Name a list of machines, or price each plan by itself (workbench plan)."
        )
    there = on_cores or (lambda place, _: plans[place])
    together = _cheapest(range(len(plans)), instances, there)
    apart = sum(_cheapest([place], instances, there).per_hour for place in range(len(plans)))
    return replace(together, apart_per_hour=apart)


def needed(plan: CapacityPlan) -> int:
    """Fewest slots that carry the plan's rate: spare slots that cost nothing on workers of its own cost money here."""
    return plan.least_slots or plan.budget.slots


def _cheapest(places: Sequence[int], instances: Sequence[InstanceType], on_cores: OnCores) -> Cluster:
    found, refused, own = list[Cluster](), None, tuple[CapacityPlan, ...]()
    for instance in instances:
        try:
            own = tuple(on_cores(place, instance) for place in places)
            if (large := next((plan for plan in own if needed(plan) > bounds.TASKS), None)) is not None:
                raise WorkbenchError(  # noqa: TRY301 - another type's cores may need fewer
                    f"The plan for {large.rate:g} records/s needs {needed(large):,} slots; a cluster is packed for at "
                    f"most {bounds.TASKS:,} of each plan. Name plans for lower rates."
                )
        except WorkbenchError as error:
            refused = error
            continue
        kept_cpus, kept_mb = kubernetes_reserve(instance.vcpus, instance.memory_mb)
        room = instance.vcpus - kept_cpus, instance.memory_mb - kept_mb
        packing = _packed(own, room)
        if packing is not None:
            executors, workers = packing
            found.append(Cluster(own, executors, instance, workers, min(len(workers), _least(own, room)), 0.0))
    if not found and refused is not None:
        raise refused
    if not found:
        one = "a slot" if all(plan.executor_slots in (None, 1) for plan in own) else "an executor"
        each = ", ".join(map(_smallest, own))
        raise WorkbenchError(
            f"None of the {len(instances)} instance types holds a driver and {one} of each plan ({each}), apart from "
            "what the system keeps; add larger ones to the price list."
        )
    return min(found, key=lambda one: (one.per_hour, len(one.workers)))


def _smallest(plan: CapacityPlan) -> str:
    """Describe what a worker must hold of a plan at least."""
    profile, many = plan.budget.profile, plan.executor_slots or 1
    of = f"{many} slots, each " if many > 1 else ""
    return f"{of}{profile.cpus:g} core and {profile.memory_mb:,} MB"


def _packed(
    plans: Sequence[CapacityPlan], room: tuple[float, float]
) -> tuple[tuple[Executor, ...], tuple[Worker, ...]] | None:
    """Pack with the best sizes of executors; None if a driver or an executor fits on no worker."""
    cpus, memory = room
    if cpus < DRIVER_CORES - _SLACK or memory < DRIVER_MEMORY_MB - _SLACK:
        return None
    choices = [list(_cuts(plan, cpus, memory)) for plan in plans]
    if not all(choices):
        return None
    cuts = itertools.islice(itertools.product(*choices), _MOST_TRIED)
    packed = ((executors, _first_fit(plans, executors, cpus, memory)) for executors in cuts)
    return min(packed, key=lambda one: len(one[1]))


def _cuts(plan: CapacityPlan, cpus: float, memory: float) -> Iterator[Executor]:
    """Yield executors for the plan's slots, the largest first, each the smallest for its number, or as measured."""
    profile, slots = plan.budget.profile, needed(plan)
    if plan.executor_slots is not None:
        yield from [plan.executor] * plan.executor.fits(cpus, memory)
    elif most := slots_within(slots, profile, cpus, memory):
        sizes = dict.fromkeys(math.ceil(slots / count) for count in range(math.ceil(slots / most), slots + 1))
        yield from (Executor(size, profile) for size in itertools.islice(sizes, _MOST_CUTS))


def _first_fit(
    plans: Sequence[CapacityPlan], executors: Sequence[Executor], cpus: float, memory: float
) -> tuple[Worker, ...]:
    """Put the containers, the largest share of a worker first, on the first worker with room."""
    containers = [(DRIVER_CORES, float(DRIVER_MEMORY_MB), place, True) for place in range(len(plans))]
    for place, (plan, executor) in enumerate(zip(plans, executors, strict=True)):
        count = math.ceil(needed(plan) / executor.slots)
        containers += [(executor.millicores / 1000, float(executor.memory_mb), place, False)] * count
    containers.sort(key=lambda one: (-max(one[0] / cpus, one[1] / memory), one[2], one[3]))
    free: list[list[float]] = []
    held: list[tuple[list[int], list[int]]] = []
    full: dict[tuple[float, float], int] = {}  # of equal size: earlier workers have no room for another one
    for cores, size, place, drives in containers:
        begin = full.get((cores, size), 0)
        room = (n for n in range(begin, len(free)) if free[n][0] >= cores - _SLACK and free[n][1] >= size - _SLACK)
        worker = full[cores, size] = next(room, len(free))
        if worker == len(free):
            free.append([cpus, memory])
            held.append(([0] * len(plans), []))
        free[worker][0] -= cores
        free[worker][1] -= size
        if drives:
            held[worker][1].append(place)
        else:
            held[worker][0][place] += 1
    return tuple(Worker(tuple(counts), tuple(drivers)) for counts, drivers in held)


def _least(plans: Sequence[CapacityPlan], room: tuple[float, float]) -> int:
    """Lower bound of the workers, by the sum of all cores and of all memory."""
    cores = sum(needed(plan) * plan.budget.profile.cpus + DRIVER_CORES for plan in plans)
    memory = sum(needed(plan) * plan.budget.profile.memory_mb + DRIVER_MEMORY_MB for plan in plans)
    apart = (  # of executors whose size is given
        math.ceil(needed(plan) / plan.executor.slots / max(1, executors_within(plan.executor, *room)))
        for plan in plans
        if plan.executor_slots is not None
    )
    return max(1, math.ceil(cores / room[0] - _SLACK), math.ceil(memory / room[1] - _SLACK), *apart)
