"""A real cluster: a master and two workers of one core each, on loopback addresses of their own."""

import itertools
import json
import math
import sys
import tarfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import toy_query
from standalone_cluster import standalone

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.metrics import slow_executors
from workbench.study import find_query
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import Cluster, look_at, quota_permitted

pytestmark = [pytest.mark.spark, pytest.mark.alone, pytest.mark.long]

PROFILE = SlotProfile(1, 1024)
ONE, TWO = Budget(1, PROFILE, 1.0), Budget(2, PROFILE, 1.0)
BUSY_S = 300.0  # a wait that also a busy machine's executors keep


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(workers, tmp_path_factory):
    places = {name: tmp_path_factory.mktemp(name) for name in ("checkpoints", "logs")}
    return Cluster(
        workers.master, places["checkpoints"].as_uri(), event_log=places["logs"].as_uri(), allocation_s=BUSY_S
    )


ENDS_S = 10


def left(workers, cluster):
    """What a deployment left on the cluster, whose workers take a moment to end the executors of an application."""
    end = time.monotonic() + ENDS_S
    while workers.executors() and time.monotonic() < end:
        time.sleep(0.1)
    folder = cluster.checkpoint.removeprefix("file://")
    return workers.state()["activeapps"], workers.executors(), list(Path(folder).iterdir())


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """An archive with a Python for the executors, and the file that shows that they used it."""
    folder = tmp_path_factory.mktemp("archive")
    used, python, archive = folder / "used", folder / "python", folder / "packages.tar.gz"
    python.write_text(f'#!/bin/sh\necho >> {used}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(python, "bin/python")
    return archive, used


@pytest.fixture(scope="module")
def seen(workers, cluster, archive):
    """q1 on one executor with a Python of its own, and what another application is offered meanwhile."""
    testbed = SparkTestbed(cluster=replace(cluster, environment=str(archive[0])), warmup_cap_s=5)
    with testbed.deploy(find_query("nexmark:q1"), ONE) as run:
        run.set_rate(1_000.0)
        run.settle(2)
        observed = run.observe(5)
        executors = workers.executors()
        doctor = look_at(replace(cluster, allocation_s=5.0), TWO)
        assert run.observe(3).consumed_records > 0  # the doctor took nothing away
    return run.machine, observed, doctor, executors, left(workers, cluster)


def test_a_query_runs_on_one_executor_at_the_rate_that_is_commanded(seen):
    machine, observed, _, executors, _ = seen
    assert len(executors) == 1
    assert "--cores 1" in executors[0]
    assert observed.consumed_rate == pytest.approx(1_000, rel=0.3)
    assert observed.quota_throttled is None
    assert machine.slots == "cores that a standalone cluster counts but does not limit, in 1 executor of 1"
    assert not machine.dedicated
    assert machine.facts["checkpoint"] == "file"


def test_executors_that_are_not_given_are_a_wait_and_no_failure(seen):
    last = seen[2][-1]
    assert last.thing == "executors"
    assert "gave 1 of 2 executors of 1 core and 615 MB of heap within 5 s; nothing was measured" in last.fix
    assert "1 other application runs or waits. Wait until other applications end" in last.fix


def test_nothing_is_left_but_the_log(seen, cluster):
    assert seen[-1] == ([], [], [])
    logs = sorted(Path(cluster.event_log.removeprefix("file://")).glob("app-*"))
    events = [json.loads(line)["Event"] for line in logs[0].read_text().splitlines()]
    assert events[-1] == "SparkListenerApplicationEnd"  # so that a history server shows it as complete


def test_the_doctor_finds_a_cluster_fit_and_leaves_nothing(workers, cluster):
    found = look_at(cluster, TWO)
    assert [one.thing for one in found] == [
        "cluster", "application", "authentication", "executors", "workers", "checkpoints",
    ]  # fmt: skip
    assert [one.thing for one in found if one.fix] == ["authentication"]  # which is off here, and not needed
    assert left(workers, cluster) == ([], [], [])


@pytest.mark.usefixtures("seen")
def test_executors_use_the_python_of_an_archive_and_the_driver_its_own(archive):
    assert archive[1].exists()


def test_the_doctor_refuses_what_the_cluster_could_never_hold(cluster):
    last = look_at(cluster, Budget(5, PROFILE, 1.0))[-1]
    assert last.thing == "application"
    assert "has no room for 5 executors of 1 core and 615 MB of heap. The master has 2 live workers" in last.fix


@pytest.fixture(scope="module")
def two(workers, cluster):
    """A query on two executors, of a module that the workers do not have, whose state moves between executors.

    Yields the run, a list that is filled to lose a worker at the tenth look after that, and what ends the deployment.
    """
    calls = itertools.count()
    armed = []

    def lose() -> None:
        if armed and next(calls) == 10:
            workers.kill("worker-1")

    testbed = SparkTestbed(cluster=cluster, warmup_cap_s=5, check_owner=lose)
    with ExitStack() as stack:
        run = stack.enter_context(testbed.deploy(toy_query.query(), TWO))
        run.set_rate(math.inf)
        yield run, armed, stack.close


@pytest.mark.skipif(not quota_permitted(), reason="no control group with a CPU quota can be made here")
def test_a_slow_worker_is_named(two, workers):
    run = two[0]
    workers.limit("worker-1", 0.1)
    try:
        run.settle(5)
        (slow,) = slow_executors(run.observe(8).executors)
    finally:
        workers.limit("worker-1", None)
    assert slow.host == "127.0.0.3"


@pytest.mark.fault("a worker of a cluster is lost within a probe")
def test_a_worker_that_is_lost_during_a_probe_ends_it_with_the_reason(two, workers, cluster, injected):
    run, armed, end = two
    assert run.observe(4).operators[-1].state_rows_updated >= toy_query.KEYS
    armed.append(True)
    with pytest.raises(
        WorkbenchError, match=r"Executor \d was lost while 'toy_query:count' ran: .+ log of its wor"
    ) as lost:
        run.observe(60)
    injected.seen(str(lost.value))
    end()
    assert left(workers, cluster) == ([], [], [])
