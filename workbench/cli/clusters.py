"""``workbench cluster``: several plans, each at its own rate, on one priced cluster."""

import argparse
import math
from dataclasses import asdict
from functools import cache
from pathlib import Path
from string import ascii_uppercase

from workbench import units
from workbench.answers.answer import COUNT, Fact, Unit, fields
from workbench.capacity.planning import Cluster, pack, read_instances
from workbench.cli import look
from workbench.cli.console import DONE
from workbench.errors import WorkbenchError
from workbench.reading import is_there
from workbench.records import CapacityPlan, InstanceType, PlannedStudy
from workbench.study import plan_on, read_planned
from workbench.views.findings import whose_cores


def run_cluster(options: argparse.Namespace) -> int:
    """Pack the plans into workers of one type."""
    priced = read_instances(Path(options.prices)) if options.prices else ()
    sources, stored, plans = zip(*map(_chosen, options.plans), strict=True)
    instances = priced or next((one.instances for one in stored if one.instances), ())
    read = cache(read_planned)

    @cache
    def on_cores(place: int, instance: InstanceType) -> CapacityPlan:
        return plan_on(plans[place], instance, lambda: read(Path(sources[place])))

    cluster = pack(plans, instances, on_cores=on_cores)
    if options.json:
        found = {
            "instance": cluster.instance.name,
            "workers": list(map(asdict, cluster.workers)),
            "least_workers": cluster.least,
            "per_hour": cluster.per_hour,
            "apart_per_hour": cluster.apart_per_hour,
            "currency": cluster.instance.currency,
            "plans": list(map(fields, _plans(cluster))),
        }
        look.document(found)
    else:
        _show(cluster)
    return DONE


def _chosen(text: str) -> tuple[str, PlannedStudy, CapacityPlan]:
    """Read the plans that `text` names; return their file, and the plan it means."""
    path, _, rate = text.rpartition("@") if "@" in text and not is_there(text) else (text, "", "")
    stored = PlannedStudy.from_json(path)
    if not stored.plans:
        raise WorkbenchError(f"{path} has no plan: no target could be planned. Plan again with workbench plan.")
    if not rate:
        return path, stored, max(stored.plans, key=lambda plan: plan.rate)
    try:
        wanted = float(rate)
    except ValueError:
        wanted = math.nan
    found = min(stored.plans, key=lambda plan: abs(plan.rate - wanted))
    if not math.isclose(found.rate, wanted, rel_tol=1e-6):
        known = ", ".join(f"{plan.rate:.15g}" for plan in stored.plans)
        raise WorkbenchError(f"{path} has no plan for {rate!r} records/s; it has them for {known}. Name one of these.")
    return path, stored, found


def _show(cluster: Cluster) -> None:
    count, instance = len(cluster.workers), cluster.instance
    proven = "fewer cannot hold them" if cluster.least == count else f"at least {cluster.least} are needed"
    together, apart = (
        f"{f'{cost:,.2f}' if cost >= 0.01 else units.number(cost)} {instance.currency}/h"
        for cost in (cluster.per_hour, cluster.apart_per_hour)
    )
    plural = len(cluster.plans) > 1
    all_of = "both" if len(cluster.plans) == 2 else f"all {len(cluster.plans)}"
    what = f"{all_of} plans with their drivers" if plural else "the plan with its driver"
    own = f"on workers of {'their own they cost' if plural else 'its own it costs'} {apart}"
    holds = f"{count} x {instance.name} at {together} hold{'s' * (count == 1)} {what}"
    look.answer(f"{holds}; {own}. Of this type, {proven}.")
    look.put(look.rows(_plans(cluster)))
    workers = look.Columns(">worker", "holds")
    for number, worker in enumerate(cluster.workers):
        held = [f"{ascii_uppercase[place % 26]} x {count}" for place, count in enumerate(worker.executors) if count]
        held += [f"driver of {ascii_uppercase[place % 26]}" for place in worker.drivers]
        workers.add_row(str(number), ", ".join(held))
    look.put("", workers)
    look.line("note: slots, cores and MB are those of one executor.")
    for text in filter(None, dict.fromkeys(map(whose_cores, cluster.plans))):
        look.line(f"note: {text}")


def _plans(cluster: Cluster) -> list[tuple[Fact, ...]]:
    return [
        (
            Fact(ascii_uppercase[place % 26], name=" "),
            Fact(plan.query, "query", "Plan"),
            Fact(plan.rate, "rate", "Records/s", Unit(lambda rate: units.scaled(rate, ""))),
            Fact(cluster.count(place), "executors", "Executors", COUNT),
            Fact(executor.slots, "slots_each", "Slots", COUNT),
            Fact(executor.millicores, "millicores_each", "Cores", Unit(lambda each: units.number(each / 1000))),
            Fact(executor.memory_mb, "memory_mb_each", "MB", COUNT),
        )
        for place, (plan, executor) in enumerate(zip(cluster.plans, cluster.executors, strict=True))
    ]
