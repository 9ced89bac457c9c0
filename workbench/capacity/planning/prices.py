"""What slots cost: workers of priced instance types, and how many of them a number of slots takes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from workbench.capacity.planning.executor import slots_per_worker
from workbench.dataflow import SlotProfile
from workbench.errors import WorkbenchError
from workbench.reading import read_rows
from workbench.records import DATABRICKS, EMR_SERVERLESS, InstanceType, Price

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

    Notes
    -----
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
