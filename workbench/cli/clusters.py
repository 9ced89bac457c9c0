"""``workbench cluster``: several plans, each at its own rate, on one priced cluster."""

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.capacity.planning import Cluster, pack, read_instances
from workbench.cli.console import DONE
from workbench.errors import WorkbenchError
from workbench.records import CapacityPlan, InstanceType, PlannedStudy
from workbench.views import units


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    clusters = commands.add_parser(
        "cluster",
        description="Find the cheapest workers of one type that hold the executors and drivers of several plans.",
        epilog="For example: workbench cluster .workbench/q5-plan.json@60000 .workbench/q8-plan.json --prices "
        "data/instances.csv",
    )
    clusters.add_argument(
        "plans",
        metavar="PLANS[@RATE]",
        nargs="+",
        help="what workbench plan wrote, and the target meant (records/s); default: the highest",
    )
    clusters.add_argument("--prices", metavar="FILE", help="CSV file of instance types; default: the first study's")
    clusters.add_argument("--json", action="store_true", help="print JSON")
    clusters.set_defaults(command=_cluster)


def _cluster(options: argparse.Namespace) -> int:
    plans: list[CapacityPlan] = []
    instances: tuple[InstanceType, ...] = read_instances(Path(options.prices)) if options.prices else ()
    for text in options.plans:
        stored, found = _chosen(text)
        plans.append(found)
        instances = instances or stored.instances
    cluster = pack(plans, instances)
    print(json.dumps(_as_json(cluster), indent=1) if options.json else "\n".join(_lines(cluster)))
    return DONE


def _chosen(text: str) -> tuple[PlannedStudy, CapacityPlan]:
    """Read the plans that `text` names, and give the one it means."""
    path, _, rate = text.rpartition("@") if "@" in text and not Path(text).exists() else (text, "", "")
    stored = PlannedStudy.from_json(path)
    if not stored.plans:
        raise WorkbenchError(f"{path} has no plan: no target could be planned. Plan again with workbench plan.")
    if not rate:
        return stored, max(stored.plans, key=lambda plan: plan.rate)
    try:
        wanted = float(rate)
    except ValueError:
        wanted = math.nan
    found = next((plan for plan in stored.plans if plan.rate == wanted), None)
    if found is None:
        known = ", ".join(f"{plan.rate:.15g}" for plan in stored.plans)
        raise WorkbenchError(f"{path} has no plan for {rate!r} records/s; it has them for {known}. Name one of these.")
    return stored, found


def _lines(cluster: Cluster) -> Iterator[str]:
    count, instance = len(cluster.workers), cluster.instance
    yield (
        f"{count} x {instance.name} at {cluster.per_hour:,.3g} {instance.currency}/h hold all {len(cluster.plans)} "
        f"plans with their drivers; on workers of their own they cost {cluster.apart_per_hour:,.3g}."
    )
    proven = "fewer cannot hold them" if cluster.least == count else f"at least {cluster.least} are needed"
    yield f"Of this type, {proven}."
    letters = [chr(ord("A") + place % 26) for place in range(len(cluster.plans))]
    for place, (plan, executor) in enumerate(zip(cluster.plans, cluster.executors, strict=True)):
        yield (
            f"  {letters[place]}  {plan.query} at {units.rate(plan.rate)}: {cluster.count(place)} executors "
            f"of {executor.slots} slots, {executor.millicores / 1000:g} cores and {executor.memory_mb} MB"
        )
    for number, worker in enumerate(cluster.workers):
        held = [f"{letters[place]} x {count}" for place, count in enumerate(worker.executors) if count]
        held += [f"driver of {letters[place]}" for place in worker.drivers]
        yield f"  worker {number}: {', '.join(held)}"


def _as_json(cluster: Cluster) -> dict[str, Any]:
    return {
        "instance": cluster.instance.name,
        "workers": [
            {"executors": list(worker.executors), "drivers": list(worker.drivers)} for worker in cluster.workers
        ],
        "least_workers": cluster.least,
        "per_hour": cluster.per_hour,
        "apart_per_hour": cluster.apart_per_hour,
        "currency": cluster.instance.currency,
        "plans": [
            {
                "query": plan.query,
                "rate": plan.rate,
                "executors": cluster.count(place),
                "slots_each": executor.slots,
                "millicores_each": executor.millicores,
                "memory_mb_each": executor.memory_mb,
            }
            for place, (plan, executor) in enumerate(zip(cluster.plans, cluster.executors, strict=True))
        ],
    }
