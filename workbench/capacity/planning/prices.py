"""What slots cost: workers of priced instance types, and how many of them a number of slots takes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from workbench.capacity.planning.executor import Reserve, kubernetes_reserve, slots_per_worker
from workbench.dataflow import SlotProfile
from workbench.errors import WorkbenchError
from workbench.reading import read_rows
from workbench.records import InstanceType, Price

COLUMNS, CORE_SPEED = (
    ("name", "provider", "region", "vcpus", "memory_mb", "price_per_hour", "currency", "source", "date"),
    "core_speed",
)


def read_instances(path: Path) -> tuple[InstanceType, ...]:
    """Read instance types from a CSV file with the columns of `COLUMNS`, all priced in one currency.

    It may have a column `CORE_SPEED`, whose cells may be empty: how many times as fast the cores of a type are as those
    of the reference machine, as ``workbench speed`` prints it there.
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


def prices(
    instances: Iterable[InstanceType],
    slots: int,
    profile: SlotProfile,
    *,
    reserve: Reserve = kubernetes_reserve,
    executor_slots: int | None = None,
) -> tuple[Price, ...]:
    """Price `slots` slots of `profile` on each instance type that can hold at least one executor, the cheapest first.

    Parameters
    ----------
    reserve
        What a worker keeps for itself.
    executor_slots
        Slots of an executor; None: as many as a worker has room for, in one.

    Notes
    -----
    The containers of a worker's executors must fit into what the worker leaves. The driver is not priced.
    Ties go to fewer workers, then to the order of the list. Prices are compared as numbers: give them in one
    currency.
    """
    if slots < 1:
        raise WorkbenchError(f"The number of slots is {slots!r}; it must be at least 1.")
    found = []
    for instance in instances:
        shape = slots_per_worker(instance.vcpus, instance.memory_mb, profile, reserve, executor_slots)
        if shape < 1:
            continue
        workers = math.ceil(slots / shape)
        found.append(Price(instance, workers, shape, workers * instance.price_per_hour, workers * shape - slots))
    return tuple(sorted(found, key=lambda price: (price.per_hour, price.workers)))


def cheapest(
    instances: Sequence[InstanceType],
    slots: int,
    profile: SlotProfile,
    *,
    reserve: Reserve = kubernetes_reserve,
    executor_slots: int | None = None,
) -> Price:
    """Give the cheapest of `prices`."""
    found = prices(instances, slots, profile, reserve=reserve, executor_slots=executor_slots)
    if not found:
        is_one = executor_slots in (None, 1)
        raise WorkbenchError(
            f"None of the {len(instances)} instance types holds {'a slot' if is_one else f'{executor_slots} slots'} of "
            f"{profile.cpus:g} cores and {profile.memory_mb:,} MB {'' if is_one else 'in one executor, '}apart from "
            "what the system keeps; add larger ones to the price list, or use smaller "
            f"{'slots' if is_one else 'executors'}."
        )
    return found[0]


def _instance(row: Mapping[str, str | None], path: Path, line: int) -> InstanceType:
    try:
        texts = {name: text for name in COLUMNS if (text := row[name]) is not None}
        lacking = [name for name in COLUMNS if name not in texts]  # of a line that ends early
        if lacking:
            raise ValueError(f"it ends before {', '.join(lacking)}")  # noqa: TRY301 - reported with its line below
        numbers = {name: float(texts.pop(name)) for name in ("vcpus", "memory_mb", "price_per_hour")}
        speed = (row.get(CORE_SPEED) or "").strip()
        return InstanceType(**texts, **numbers, core_speed=float(speed) if speed else None)  # type: ignore[arg-type]
    except (ValueError, TypeError, WorkbenchError) as error:
        raise WorkbenchError(f"Line {line} of the price list {path} is wrong: {error}. Correct it.") from error
