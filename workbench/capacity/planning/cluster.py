"""One priced cluster for several plans: all executors and drivers, packed onto workers of one instance type.

Each plan's slots are cut into executors of one size; executors and drivers of several plans may share a worker: a bin
packing in two dimensions, cores and memory. Sizes that were not measured are varied, and for each the containers are
put, the largest first, on the first worker with room.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from workbench import bounds
from workbench.capacity.planning.workers import executors_within, kubernetes_reserve, slots_within
from workbench.errors import WorkbenchError
from workbench.records import (
    DATABRICKS,
    DRIVER_CORES,
    DRIVER_MEMORY_MB,
    EMR_SERVERLESS,
    CapacityPlan,
    Executor,
    InstanceType,
)

OnCores = Callable[[int, InstanceType], CapacityPlan]  # returns the plan at a place for the cores of an instance type
_MOST_CUTS = 6  # sizes of executors that are tried for each plan
_MOST_TRIED = 2000
_SLACK = 1e-6


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
    places = range(len(plans))
    _, count, instance, own, (executors, workers) = _cheapest(places, instances, there)
    apart = sum(_cheapest([place], instances, there)[0] for place in places)
    least = min(count, _least(own, _room(instance)))
    return Cluster(own, executors, instance, workers, least, apart)


def needed(plan: CapacityPlan) -> int:
    """Fewest slots that carry the plan's rate: spare slots that cost nothing on workers of its own cost money here."""
    return plan.least_slots or plan.budget.slots


_Packing = tuple[tuple[Executor, ...], tuple[Worker, ...]]


def _cheapest(
    places: Sequence[int], instances: Sequence[InstanceType], on_cores: OnCores
) -> tuple[float, int, InstanceType, tuple[CapacityPlan, ...], _Packing]:
    found, refused, own = [], None, tuple[CapacityPlan, ...]()
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
        packing = _packed(own, _room(instance))
        if packing is not None:
            count = len(packing[1])
            found.append((count * instance.price_per_hour, count, instance, own, packing))
    if not found and refused is not None:
        raise refused
    if not found:
        one = "a slot" if all(plan.executor_slots in (None, 1) for plan in own) else "an executor"
        each = ", ".join(map(_smallest, own))
        raise WorkbenchError(
            f"None of the {len(instances)} instance types holds a driver and {one} of each plan ({each}), apart from "
            "what the system keeps; add larger ones to the price list."
        )
    return min(found, key=lambda one: one[:2])


def _smallest(plan: CapacityPlan) -> str:
    """Describe what a worker must hold of a plan at least."""
    profile, many = plan.budget.profile, plan.executor_slots or 1
    of = f"{many} slots, each " if many > 1 else ""
    return f"{of}{profile.cpus:g} core and {profile.memory_mb:,} MB"


def _room(instance: InstanceType) -> tuple[float, float]:
    kept_cpus, kept_mb = kubernetes_reserve(instance.vcpus, instance.memory_mb)
    return instance.vcpus - kept_cpus, instance.memory_mb - kept_mb


def _packed(plans: Sequence[CapacityPlan], room: tuple[float, float]) -> _Packing | None:
    """Pack with the best sizes of executors; None if a driver or an executor fits on no worker."""
    cpus, memory = room
    if cpus < DRIVER_CORES - _SLACK or memory < DRIVER_MEMORY_MB - _SLACK:
        return None
    choices = [list(_cuts(plan, cpus, memory)) for plan in plans]
    if not all(choices):
        return None
    best: _Packing | None = None
    for executors in itertools.islice(itertools.product(*choices), _MOST_TRIED):
        workers = _first_fit(plans, executors, cpus, memory)
        if best is None or len(workers) < len(best[1]):
            best = executors, workers
    return best


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
