"""Look at a cluster before measuring on it: start the executors of one budget, and release them.

`main` does it in a process of its own: it takes both as JSON, and gives a line of JSON for each thing examined.
"""

import json
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import cattrs

from workbench import units
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.testbed.spark.cluster import (
    Cluster,
    await_executors,
    check_log_folder,
    check_shared,
    describe_workers,
    remove,
)
from workbench.testbed.spark.driver.process import answering, ask_apart
from workbench.testbed.spark.driver.session import DeploymentSpec, end_session, last_line, start_session
from workbench.workload import Generator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_START_S = 300.0  # of Spark itself, on a busy machine
_POLL_S = 0.1
_THINGS = 5
_MODULE = "workbench.testbed.spark.look"


@dataclass(frozen=True)
class Finding:
    """One thing examined: the result, whether it is fit, what to do if it is not, and whether it must be."""

    thing: str
    found: str
    fit: bool
    fix: str = ""
    needed: bool = True
    command: str = ""  # ends `fix`


def look_at(cluster: Cluster, budget: Budget) -> tuple[Finding, ...]:
    """Examine whether a query can be measured on `budget` of `cluster`, up to the first needed thing that is unfit."""
    try:
        count, _ = cluster.executors(budget)
        cluster.check_here()
    except WorkbenchError as error:
        return (Finding("executors", "not fit", fit=False, fix=str(error)),)
    try:
        cluster.reach()
    except WorkbenchError as error:
        return (Finding("cluster", "not reached", fit=False, fix=str(error)),)
    longest_s = _START_S + 2 * cluster.allocation_s
    answer, said, in_time = ask_apart(_MODULE, {"cluster": asdict(cluster), "budget": asdict(budget)}, longest_s)
    seen = tuple(Finding(**json.loads(line)) for line in answer.splitlines())
    if not seen or (len(seen) < _THINGS and all(one.fit or not one.needed for one in seen)):
        ended = "Spark ended without a reason" if in_time else f"Spark did not finish within {longest_s:g} s"
        cause = last_line(said).rstrip(".")
        fix = f"{ended}{': ' * bool(cause)}{cause}."
        seen += (Finding("cluster", f"no answer for {units.some(count, 'executor')}", fit=False, fix=fix),)
    return (Finding("cluster", "reached", fit=True), *seen)


def _steps(cluster: Cluster, budget: Budget, folder: Path) -> "Iterator[tuple[str, Callable[[], str], bool]]":
    """Yield what to examine, with the function that does so and describes the result, and whether it must be fit."""
    checkpoints = f"{cluster.checkpoint.rstrip('/')}/workbench-look-{uuid.uuid4().hex[:12]}"
    held: list[SparkSession] = []

    def start() -> str:
        spec = DeploymentSpec(
            name="doctor",
            build=lambda stream: stream,
            generator=cast("Generator", None),  # nothing is read
            budget=budget,
            cluster=cluster,
            folder=folder,
            disk=folder,
            source_partitions=budget.slots,
            state_partitions=budget.slots,
        )
        held.append(start_session(spec))
        return "understands this machine's Spark and has room"

    def wait() -> str:
        began = time.monotonic()
        await_executors(held[0], cluster, budget, lambda: time.sleep(_POLL_S), lambda _: None)
        size = units.some(cluster.executor_slots, "slot")
        return f"{cluster.executors(budget)[0]} of {size}, {time.monotonic() - began:.0f} s"

    def describe() -> str:
        machine = describe_workers(held[0], cluster, budget)
        packed = machine.facts.get("environment")
        return f"Python {machine.facts['Python']}{f' of {packed}' if packed else ''} on {machine.processor}"

    def share() -> str:
        check_shared(held[0], checkpoints, budget.slots)
        if cluster.event_log:
            check_log_folder(held[0], cluster.event_log)
        return "written here, read by the executors"

    try:
        yield "application", start, True
        yield "authentication", lambda: check_authentication(held[0]), False
        yield "executors", wait, True
        yield "workers", describe, True
        yield "checkpoints", share, True
    finally:
        for session in held:
            remove(session, checkpoints)
            end_session(session)


def check_authentication(spark: "SparkSession") -> str:
    """Check that Spark's processes know each other."""
    if str(spark.sparkContext.getConf().get("spark.authenticate", "false")).lower() == "true":
        return "spark.authenticate is on"
    raise WorkbenchError(
        "spark.authenticate is not on: a process that reaches the driver's ports can take part in the application. Set "
        "it to true in your spark-defaults.conf; a standalone cluster also needs spark.authenticate.secret there."
    )


def main() -> None:
    """Examine the cluster and the budget that standard input names, and write what is found."""
    asked = json.load(sys.stdin)
    cluster, budget = cattrs.structure(asked["cluster"], Cluster), cattrs.structure(asked["budget"], Budget)
    with answering() as result:
        for thing, step, needed in _steps(cluster, budget, Path(tempfile.gettempdir())):  # a folder of its own
            try:
                seen = Finding(thing, step(), fit=True)
            except WorkbenchError as error:
                seen = Finding(thing, "not fit", fit=False, fix=str(error), needed=needed)
            result.write(json.dumps(asdict(seen)) + "\n")
            result.flush()
            if seen.needed and not seen.fit:
                break
