"""A query that fails or hangs, data that is torn or goes away, a clock that is set: on simulated time."""

import math
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from wrapped_fluid import WrappedFluid

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Configuration, measure, result_of
from workbench.study import Study, StudyHistory, measuring, run_study
from workbench.testbed import FluidTestbed
from workbench.testbed.spark import driver, queries
from workbench.workload import Dataset, nexmark, prepare

CONFIGURATION = Configuration(nexmark.query("q1"), Budget(2, SlotProfile(1.0, 1024)))
ESTIMATOR = CapacityEstimator(tolerance=0.02)
STUDY = Study("nexmark:q1", (2e6,), (2, 4, 8), (512,), testbed="fluid", slot_cpus=1.0, most_runs=3, form="linear")
FAILURE = "Query 'q1' failed at run time: ValueError: no such shop. Fix the query or the data."


@dataclass(frozen=True)
class Throwing(WrappedFluid):
    """Its query throws in the window of this number, after minutes of simulated time."""

    at: int
    fluid: FluidTestbed = field(default_factory=FluidTestbed)
    windows: list[float] = field(default_factory=list)

    @contextmanager
    def deploy(self, *arguments, **options):
        with self.fluid.deploy(*arguments, **options) as run:
            observe = run.observe

            def observed(seconds):
                self.windows.append(self.fluid.clock())
                if len(self.windows) == self.at:
                    raise WorkbenchError(FAILURE)
                return observe(seconds)

            run.observe = observed
            yield run


def measured(journal, testbed):
    return result_of(measure(CONFIGURATION, testbed, ESTIMATOR, journal))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What is measured when nothing happens, and in how many windows."""
    testbed = Throwing(0)
    return measured(Journal(tmp_path_factory.mktemp("calm") / "j.jsonl"), testbed), len(testbed.windows)


@pytest.mark.fault("a query throws after minutes")
def test_a_query_that_throws(undisturbed, tmp_path, injected):
    calm, windows = undisturbed
    held = []
    for at in injected.moments(windows, 6):
        journal = Journal(tmp_path / f"{at}.jsonl")
        testbed = Throwing(at)
        with pytest.raises(WorkbenchError, match="failed at run time") as seen:
            measured(journal, testbed)
        kept = journal.entries("probe") + journal.entries("load")
        held.append(len(kept))
        injected.seen(str(seen.value))
        again = measured(journal, FluidTestbed())
        assert (again.estimate.low, again.estimate.high) == (calm.estimate.low, calm.estimate.high)
        found = journal.entries("probe") + journal.entries("load")
        assert all(entry in found for entry in kept)
        assert len({(entry.kind, entry.data["number"], entry.data["attempt"]) for entry in found}) == len(found)
    assert max(held) > 0


@pytest.mark.fault("a query of a study throws after minutes")
def test_a_study_goes_on_with_its_other_runs(tmp_path, injected):
    calm = run_study(STUDY, Journal(tmp_path / "calm.jsonl"))
    for at in injected.moments(9):
        journal = Journal(tmp_path / f"{at}.jsonl")
        broken = None
        try:
            broken = run_study(STUDY, journal, testbed=Throwing(at))
        except WorkbenchError as error:  # too few runs are left for a model
            assert "no such shop" in str(error)  # noqa: PT017 - either is right
        if broken is not None:
            assert any(getattr(run, "failure", None) == FAILURE for run in broken.exploration.runs)
        injected.seen(FAILURE)
        assert run_study(STUDY, journal).plans == calm.plans


class Hanging:
    """Time passes only while it is waited for, and no batch is ever complete."""

    def __init__(self, monkeypatch, *modules):
        self.now = 0.0
        for module in modules:
            monkeypatch.setattr(module, "now_s", lambda: self.now)

    def wait(self):
        self.now += 0.5


@pytest.mark.fault("a query hangs while its code is warmed up")
def test_a_query_that_hangs_is_given_up(monkeypatch, injected):
    clock = Hanging(monkeypatch, queries)
    events = SimpleNamespace(poll=lambda: ())
    running = queries.Queries(None, events, None, clock.wait)
    live = SimpleNamespace(name="q1", epoch=1, done=[], interval_s=2.0)
    with pytest.raises(WorkbenchError, match=r"completed 0 of 1 batches in 240 s.*give it more slots, or") as seen:
        running.batches(live, 1)
    assert clock.now < 300
    injected.seen(str(seen.value))


@pytest.mark.fault("a query hangs while it is observed")
def test_a_query_that_hangs_under_load_is_given_up(monkeypatch, injected):
    clock = Hanging(monkeypatch, driver)
    serving = driver.Driver.__new__(driver.Driver)
    serving._live = SimpleNamespace(epoch=1, done=[], commanded_rate=1000.0)
    serving._spec = SimpleNamespace(name="q1", budget=CONFIGURATION.budget, quota=None)
    serving._queries = SimpleNamespace(tick=clock.wait)
    serving._interference = SimpleNamespace(sample=lambda: None, end=lambda _: (1.0, 1.0))
    monkeypatch.setattr(serving, "_load", lambda: None)
    with pytest.raises(WorkbenchError, match=r"completed 0 batches in \d+ s; at least 1 are needed.*longer") as seen:
        serving.observe(14)
    assert clock.now < 120
    injected.seen(str(seen.value))


@pytest.fixture
def orders(tmp_path):
    path = tmp_path / "orders.parquet"
    times = pa.array([datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n) for n in range(500)])
    pq.write_table(pa.table({"time": times, "shop": pa.array([f"s{n % 7}" for n in range(500)])}), path)
    return path


@pytest.mark.fault("a data file is torn at any byte")
def test_a_torn_file(orders, tmp_path, injected):
    whole, run = orders.read_bytes(), tmp_path / "run"
    run.mkdir()
    for cut in injected.moments(len(whole) - 1, 25):
        orders.write_bytes(whole[:cut])
        with pytest.raises(WorkbenchError, match=r"The dataset .*orders.parquet' cannot be read as parquet: ") as seen:
            prepare(Dataset(str(orders), "parquet", "time"), "time", run)
        injected.seen(str(seen.value).replace(f"{tmp_path}/", "").split(":")[0])
        assert "convert it to Parquet" in str(seen.value)
        orders.write_bytes(whole)
        assert prepare(Dataset(str(orders), "parquet", "time"), "time", run).rows == 500


@pytest.mark.fault("a data file goes away while it is read")
def test_a_file_that_goes_away(tmp_path, monkeypatch, injected):
    folder, run = tmp_path / "orders", tmp_path / "run"
    folder.mkdir()
    run.mkdir()
    from workbench.workload import dataset as module

    typed = module._typed
    for gone in injected.moments(9):
        for number in range(10):
            pq.write_table(pa.table({"shop": pa.array([f"s{n}" for n in range(50)])}), folder / f"{number}.parquet")

        def remove(*arguments, gone=gone):
            (folder / f"{gone}.parquet").unlink(missing_ok=True)
            return typed(*arguments)

        monkeypatch.setattr(module, "_typed", remove)
        try:
            rows = prepare(Dataset(str(folder), "parquet", None), None, run).rows
        except WorkbenchError as error:
            assert "cannot be read as parquet" in str(error)  # noqa: PT017 - it may have been read before
            injected.seen("The dataset 'orders' cannot be read as parquet")
        else:
            assert rows == 500  # it was read, or open, before it went away
            injected.seen("nothing: the data had been copied")


class SetClock(datetime):
    """A clock that is set by an hour, back and forth, each time it is looked at."""

    looked = 0

    @classmethod
    def now(cls, tz=None):
        cls.looked += 1
        return datetime(2026, 1, 31, 12, tzinfo=tz) + timedelta(hours=(-1) ** cls.looked, seconds=cls.looked)


@pytest.mark.fault("the clock is set by an hour, both ways", times=8)
def test_a_clock_that_is_set(tmp_path, monkeypatch, injected):
    calm = run_study(STUDY, Journal(tmp_path / "calm.jsonl"))
    monkeypatch.setattr("workbench.measuring._measure.datetime", SetClock)
    found = run_study(STUDY, Journal(tmp_path / "set.jsonl"))
    assert SetClock.looked
    plain = [replace(plan, verdict=None) for plan in found.plans]
    assert plain == [replace(plan, verdict=None) for plan in calm.plans]
    history = StudyHistory(tmp_path / "weekly", clock=lambda: SetClock.now(UTC))
    before = None
    for run in range(4):
        _, previous = history.run(STUDY, testbed=FluidTestbed(seed=run))
        assert previous == before  # the run before, and not the one with the latest time
        before = history.runs[-1]
        injected.seen("nothing: times name runs, and a run is always named after the one before")
    assert len(history.runs) == 4
    assert not history.journal.path.exists()


@pytest.mark.fault("a notebook's kernel is restarted under a running estimate")
def test_a_kernel_that_is_restarted(undisturbed, tmp_path, injected):
    calm, windows = undisturbed
    query, budget = CONFIGURATION.query, CONFIGURATION.budget
    for at in injected.moments(windows):
        journal = Journal(tmp_path / f"{at}.jsonl")
        reached, never = threading.Event(), threading.Event()
        runner = measuring(query, budget, Stopping(at, reached, never), journal, ESTIMATOR)
        runner.start()
        assert reached.wait(60)  # here the kernel is gone: the thread does nothing any more
        kept = journal.path.read_bytes() if journal.path.exists() else b""
        again = measuring(query, budget, FluidTestbed(), journal, ESTIMATOR)
        again.start()
        assert again.wait(60).state == "done"
        assert (again.result.estimate.low, again.result.estimate.high) == (calm.estimate.low, calm.estimate.high)
        assert journal.path.read_bytes().startswith(kept)
        assert math.isclose(again.result.estimate.middle, calm.estimate.middle)
        injected.seen("the panel of the new kernel goes on from the last probe")


@dataclass(frozen=True)
class Stopping(WrappedFluid):
    """Stands still for good in the window of this number."""

    at: int
    reached: threading.Event
    never: threading.Event
    fluid: FluidTestbed = field(default_factory=FluidTestbed)
    windows: list[int] = field(default_factory=list)

    @contextmanager
    def deploy(self, *arguments, **options):
        with self.fluid.deploy(*arguments, **options) as run:
            observe = run.observe

            def observed(seconds):
                self.windows.append(len(self.windows))
                if len(self.windows) == self.at:
                    self.reached.set()
                    self.never.wait()
                return observe(seconds)

            run.observe = observed
            yield run
