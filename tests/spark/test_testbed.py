"""Deployments on real Spark: what is observed is true, and nothing is left behind."""

import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import chdir, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import toy_query

from workbench.dataflow import Budget, SlotProfile
from workbench.doctor import quota_permitted
from workbench.errors import WorkbenchError
from workbench.testbed import SparkTestbed

pytestmark = [pytest.mark.spark, pytest.mark.alone]

FRACTIONS = quota_permitted()
BUDGET = Budget(2, SlotProfile(0.4, 600), 1.0) if FRACTIONS else Budget(1, SlotProfile(1.0, 1200), 1.0)
TESTBED = SparkTestbed(slot_cpus="auto" if FRACTIONS else "cores", warmup_cap_s=5)
WARM = replace(TESTBED, warmup_cap_s=20)  # costs are those of compiled code
WARM_BUDGET = replace(BUDGET, interval_s=2.0, profile=replace(BUDGET.profile, memory_mb=1200))
ONE = replace(WARM_BUDGET, slots=1)
TURNS = ((ONE, {}), (ONE, {"source": 2, "state": 3}), (WARM_BUDGET, {}))
PLACES = (Path(tempfile.gettempdir()), Path("/dev/shm"), *Path("/sys/fs/cgroup").glob("cpu*"), Path("/sys/fs/cgroup"))


def left_behind():
    """Everything a deployment makes: folders, control groups and processes."""
    found = {str(path) for place in PLACES if place.is_dir() for path in place.glob("workbench-*")}
    found = {path for path in found if "workbench-report-" not in path}  # of a page that is rendered meanwhile
    for process in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or [])
        ours = "workbench.testbed.spark" in line or "CoarseGrainedExecutorBackend" in line
        if ours and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.add(f"{process.pid} {line[:80]}")
    return found


def running(name):
    """Processes of ours whose command has `name`."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if name in " ".join(process.cmdline()):
                found.append(process)
    return found


def wait_until_gone(before, seconds=30):
    end = time.monotonic() + seconds
    while left_behind() - before and time.monotonic() < end:
        psutil.wait_procs(psutil.Process().children(), timeout=0.2)
    assert left_behind() - before == set()


@pytest.fixture(scope="module")
def observed(request, tmp_path_factory):
    """One deployment at two loads, budgets that take turns where a test asks, and what was left when it was over.

    The folder it is made in has files with the names of libraries.
    """
    asked = any("turns" in item.fixturenames for item in request.session.items)
    folder = tmp_path_factory.mktemp("own")
    for name in ("queue", "psutil"):
        (folder / f"{name}.py").write_text("raise SystemExit('not a library')\n")
    before = left_behind()
    seen, turns = {}, []
    with chdir(folder), WARM.deploy_shared(toy_query.query(), (ONE, WARM_BUDGET)) as run:
        for rate in (6_000.0, math.inf):
            run.set_rate(rate)
            run.settle(6)
            seen[rate] = run.observe(12)
        machine = run.machine
        source = run.source
        during = left_behind() - before
        driver = running("workbench.testbed.spark.driver.deployment")[0]
        executor = running("CoarseGrainedExecutorBackend")[0]
        cores = {
            "slots": [set(process.cpu_affinity()) for process in (executor, *executor.children(recursive=True))],
            "driver": [set(process.cpu_affinity()) for process in (driver, *driver.children())],  # its JVM too
        }
        for budget, layout in TURNS if asked else ():
            run.turn(budget, layout)
            run.set_rate(math.inf)
            run.settle(6)
            turns.append((run.observe(6), run.source, running("CoarseGrainedExecutorBackend")[0].pid == executor.pid))
        for wrong in (replace(WARM_BUDGET, slots=3), replace(WARM_BUDGET, profile=SlotProfile(0.1, 1200))):
            with pytest.raises(WorkbenchError, match=r"cannot take a turn in a deployment of") as error:
                run.turn(wrong)
            assert error.value.settings == ("slots",)
    return seen, machine, source, during, left_behind() - before, cores, turns


@pytest.fixture
def turns(observed):
    return observed[-1]


def test_as_much_as_fits_grows_until_it_fills_the_interval(observed):
    assert observed[0][math.inf].consumed_rate > 6_000


def test_a_file_of_the_folder_takes_no_librarys_place(observed):
    assert all(observation.consumed_records > 0 for observation in observed[0].values())


def test_no_record_is_lost_between_the_operators(observed):
    for observation in observed[0].values():
        source, scan, aggregate = observation.operators
        assert source.records_out == scan.records_in == observation.consumed_records
        assert aggregate.records_in == scan.records_out


def test_the_state_is_measured(observed):
    aggregate = observed[0][6_000.0].operators[-1]
    assert "aggregate" in aggregate.operator
    assert aggregate.state_rows_updated >= 97
    assert aggregate.state_bytes > 0
    assert aggregate.state_latency_s >= 0  # RocksDB counts whole milliseconds: 97 keys may take none
    assert 1 <= aggregate.key_skew < 2


def test_the_source_is_profiled_apart(observed):
    source = observed[2]
    assert 0 < source.per_record_s < 1e-4
    assert 6_000 < source.rate_limit < math.inf


def test_the_quota_is_looked_at_where_there_is_one(observed):
    observation = observed[0][math.inf]
    assert (observation.quota_throttled is not None) == FRACTIONS
    assert ("quota" in observed[1].slots) == FRACTIONS or "no quota" in observed[1].slots


def test_the_slots_run_on_as_few_cores_as_hold_them(observed):
    slots, drivers = observed[5]["slots"], observed[5]["driver"]
    assert len(slots) > 1  # the JVM and its Python workers
    assert all(cores == slots[0] and len(cores) == 1 for cores in slots)
    if len(os.sched_getaffinity(0)) > 1:
        assert not any(slots[0] & cores for cores in drivers)


def test_nothing_is_left_after_a_deployment(observed):
    _, _, _, during, after, _, _ = observed
    assert during
    assert after == set()


@pytest.mark.long
def test_budgets_take_turns_in_one_executor(turns):
    for (budget, layout), (observation, _, same_executor) in zip(TURNS, turns, strict=True):
        tasks = [operator.tasks for operator in observation.operators]
        assert tasks[0] == layout.get("source", budget.slots)
        assert tasks[-1] == layout.get("state", budget.slots)
        assert observation.operators[0].records_out == observation.consumed_records > 0
        assert same_executor


@pytest.mark.long
@pytest.mark.skipif(not FRACTIONS, reason="needs a quota: control groups that this machine permits")
def test_a_turn_has_the_slots_and_the_quota_of_its_budget(observed, turns):
    (one, less, _), (divided, _, _), (back, more, _) = turns
    for observation, cores in ((one, 0.4), (divided, 0.4), (back, 0.8)):
        used = sum(operator.cpu_s for operator in observation.operators) / observation.elapsed_s
        assert used < 1.4 * cores  # the quota of the other budget is twice or half as much
        assert observation.quota_throttled > 0
    assert back.consumed_rate > 1.2 * one.consumed_rate
    assert less.rate_limit < more.rate_limit
    assert more.rate_limit >= observed[2].rate_limit  # one in doubt is taken again, and the faster counts


@pytest.mark.long
@pytest.mark.parametrize(
    ("query", "message"),
    [
        (toy_query.query(toy_query.fails_at_run_time), r"failed at run time: ZeroDivisionError"),
        (toy_query.query(toy_query.stops_reading), r"released [\d,]+ rows, but the query read 0, so its rate"),
    ],
)
def test_a_query_that_cannot_run_is_refused_with_how_to_fix_it(query, message):
    before = left_behind()
    with pytest.raises(WorkbenchError, match=message), TESTBED.deploy(query, BUDGET):
        pass
    assert left_behind() - before == set()


@pytest.mark.long
def test_a_query_that_drops_its_rows_has_no_throughput():
    with TESTBED.deploy(toy_query.query(toy_query.mostly_late), BUDGET) as run:
        run.set_rate(2_000.0)
        run.settle(8)
        with pytest.raises(WorkbenchError, match=r"drops \d\d % of what reaches its state.*event_time"):
            run.observe(6)


def kill(name):
    for process in running(name):
        process.kill()


@pytest.mark.fault(
    "an executor and the driver of a deployment are killed",
    times=2,
    sees="Spark's executor was lost while the query ran, most likely for lack of memory; ...",
)
def test_a_lost_executor_and_a_killed_driver_are_told_and_leave_nothing():
    before = left_behind()
    with TESTBED.deploy(toy_query.query(), BUDGET) as run:
        run.set_rate(2_000.0)
        kill("CoarseGrainedExecutorBackend")
        with pytest.raises(WorkbenchError, match=r"executor was lost.*memory_mb"):
            run.observe(6)
        kill("workbench.testbed.spark.driver.deployment")
        with pytest.raises(WorkbenchError, match=r"driver process ended by itself.*run the same command again"):
            run.observe(5)
    wait_until_gone(before)


@pytest.mark.rare
@pytest.mark.fault("an executor runs out of memory", sees="the executor was lost, most likely for lack of memory")
def test_an_executor_without_memory_is_told_and_leaves_nothing():
    before = left_behind()
    with pytest.raises(WorkbenchError, match=r"memory.*memory_mb"):
        _observe(toy_query.query(toy_query.keeps_everything, "complete"), 60)
    wait_until_gone(before)


def _observe(query, seconds):
    with TESTBED.deploy(query, BUDGET) as run:
        run.set_rate(math.inf)
        run.observe(seconds)


@pytest.mark.long
@pytest.mark.fault(
    "the owner of a deployment is killed while it warms up", sees="what the shell says; the reaper removes all of it"
)
def test_a_killed_owner_leaves_nothing(tmp_path):
    before = left_behind()
    script = (
        "import sys, toy_query\n"
        "from workbench.dataflow import Budget, SlotProfile\n"
        "from workbench.testbed.spark import SparkTestbed\n"
        f"budget = Budget({BUDGET.slots}, SlotProfile({BUDGET.profile.cpus}, {BUDGET.profile.memory_mb}), 1.0)\n"
        f"testbed = SparkTestbed(slot_cpus={TESTBED.slot_cpus!r}, progress=lambda text: print(text, flush=True))\n"
        "with testbed.deploy(toy_query.query(), budget): pass\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1] / "support")}
    owner = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    )
    while "warming up" not in (line := owner.stdout.readline()):
        assert line, "the owner ended early"
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    wait_until_gone(before, 60)
