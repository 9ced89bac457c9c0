"""The driver process of one deployment: ``python -m workbench.testbed.spark.driver FD``.

It holds the Spark session and takes commands from its owner over a pipe: ``("rate", records/s)``,
``("settle", seconds)``, ``("await quiet", seconds)``, ``("observe", seconds)``, ``("turn", Turn)``. When the pipe
closes, for any reason, the deployment ends.
"""

import math
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError

from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.metrics import Observation, SourceProfile
from workbench.testbed.spark.event_log import EventLog
from workbench.testbed.spark.held import HeldSlots
from workbench.testbed.spark.live import (
    FIRST_BATCH_ROWS,
    POLL_S,
    CompletedBatch,
    LiveQuery,
    Meter,
    now_s,
    pump,
)
from workbench.testbed.spark.machine import Load, load, session_processes
from workbench.testbed.spark.operators import (
    SourceCost,
    fit_source,
    fullest_labels,
    line,
    operator_edges,
    operator_metrics,
    operator_names,
    overhead,
    scans,
)
from workbench.testbed.spark.quota import family, pin, pin_family, threads_cpu_s
from workbench.testbed.spark.rows import check_read, dropped_late
from workbench.testbed.spark.session import end_session, executor_process, last_line, start_session
from workbench.testbed.spark.spec import DeploymentSpec, slot_cores
from workbench.testbed.spark.speed import CoreTimer, InterferenceProbe
from workbench.testbed.spark.turns import LEAST_BATCH_ROWS, FirstRows, Turn
from workbench.workload import Generator
from workbench.workload.source import RowsOnly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEAST_BATCHES = 3
# Just-in-time compilation takes minutes: a query that looked steady after 40 s was a quarter faster 40 s later.
# While the compiler is busy, code that would run a third faster is still waiting for it.
SMALL_BATCHES = 30
LARGE_BATCHES = 5
JIT_STEADY = 0.03
JIT_IDLE = 0.3  # of a core
SOURCE_BATCHES = 3
SOURCE_WARM_S = 15.0
SOURCE_GROWTH = 3
DISTINCT_S = 0.2
LONG_S = 1.0
LEAST_SOURCE_ROWS = 1_000
COMPILERS = ("C1 Compiler", "C2 Compiler", "Sweeper")
PATIENCE_S = 240.0
EXECUTOR_S = 60.0
DRAIN_S = 30.0
QUIET_S = 1.0
_READ_INTERVAL_S = 0.05
_FULL = 0.9


class OwnerGoneError(Exception):
    """The owner closed the pipe, so the deployment ends."""


class Driver:
    """Serves one deployment."""

    def __init__(self, connection: Connection, spec: DeploymentSpec) -> None:
        self._connection = connection
        self._spec = spec
        self._cpus = spec.budget.profile.cpus
        self._source = SourceCost()
        self._profile = SourceProfile(0.0, 0.0, math.inf)
        self._allowed = frozenset(os.sched_getaffinity(0))  # before this process is pinned
        self._slot_cores = slot_cores(spec.budget, self._allowed)
        self._other_cores = self._allowed - self._slot_cores
        self._spark: SparkSession | None = None
        self._most = spec.budget
        self._first_rows = FirstRows()
        self._turns = 0
        self._probes: dict[Turn, InterferenceProbe] = {}
        self._interference = InterferenceProbe(CoreTimer(self._slot_cores).time, now_s)

    def deploy(self) -> dict[str, Any]:
        """Start Spark and the query, and warm up both."""
        spec = self._spec
        self._say("starting Spark")
        spark = self._spark = start_session(spec)
        self._executor = self._find_executor()
        if spec.quota:
            spec.quota.add(self._executor)
        log_file = next((spec.folder / "eventlog").iterdir())
        self._events = EventLog(log_file)
        self._meter = Meter(spec.quota, self._executor)
        self._queries: list[LiveQuery] = []
        self._say("warming up the query's code, without a quota")
        rows = self._warm_code()
        self._divide_cores()
        self._say("measuring the source alone")
        rows = self._profile_source(rows)
        self._held = HeldSlots(spark, spec.folder)
        self._turn = Turn(spec.budget, spec.source_partitions, spec.state_partitions)
        self._first_rows.keep(self._turn, rows)
        self._probes[self._turn] = self._interference
        self._live = self._start("query", spec.generator, spec.budget.interval_s, spec.build, spec.output_mode)
        self._live.expect(rows)
        jvm = spark._jvm  # noqa: SLF001 - py4j's only door
        java = str(jvm.java.lang.System.getProperty("java.version"))  # type: ignore[union-attr]
        return {"spark": spark.version, "java": java, "source": self._profile}

    def turn(self, turn: Turn) -> SourceProfile:
        """Start the query again on `turn`'s budget in the same executor: its code stays warm, its state begins empty.

        Tasks that sleep hold the slots that the budget does not have. The first batches have as many rows as fitted
        when the same budget had its last turn.
        """
        assert self._spark is not None  # noqa: S101 - for the type checker
        self._turns += 1
        self._first_rows.keep(self._turn, self._live.rows_fitting)
        self._retire(self._live)
        self._held.release()
        self._limit(quota=False)
        self._spec = spec = replace(
            self._spec,
            budget=turn.budget,
            source_partitions=turn.source_partitions,
            state_partitions=turn.state_partitions,
        )
        self._slot_cores = slot_cores(turn.budget, self._allowed)
        self._other_cores = self._allowed - self._slot_cores
        self._held.hold(self._most.slots - turn.budget.slots)
        self._divide_cores()
        if turn not in self._probes:
            self._probes[turn] = InterferenceProbe(CoreTimer(self._slot_cores).time, now_s)
        self._interference = self._probes[turn]
        self._limit(quota=True)
        self._spark.conf.set("spark.sql.shuffle.partitions", str(turn.state_partitions))
        rows = self._first_rows.of(turn)
        self._turn = turn
        self._profile = self._source_profile(turn.budget)
        self._live = self._start(
            f"query{self._turns}", spec.generator, turn.budget.interval_s, spec.build, spec.output_mode
        )
        self._live.expect(rows)
        return self._profile

    def rate(self, rate: float) -> None:
        """Command `rate` records/s."""
        self._live.command(rate)

    def settle(self, seconds: float) -> None:
        """Let `seconds` pass."""
        end = now_s() + seconds
        while now_s() < end:
            self._tick()

    def await_quiet(self, most_s: float) -> None:
        """Wait for other load on the machine to end, about `most_s` seconds at most."""
        before = self._load()

        def others() -> float:
            nonlocal before
            now = self._load()
            taken, before = now.disturbance_since(before).worst, now
            return taken

        self._interference.wait(self._live.commanded_rate, most_s, self._tick, others)

    def observe(self, seconds: float) -> Observation:
        """Wait `seconds`, and longer if needed for enough complete batches; report these batches."""
        live, spec = self._live, self._spec
        begin = now_s()
        cap = begin + max(60.0, seconds + 30 * spec.budget.interval_s)
        epoch, seen = live.epoch, len(live.done)
        before, periods = self._load(), self._periods()

        def window() -> list[CompletedBatch]:
            fresh = live.done[seen:]
            return [done for done in fresh if done.release.at_s >= begin and done.release.epoch == epoch]

        self._interference.sample()
        while now_s() < begin + seconds or (len(window()) < LEAST_BATCHES + 1 and now_s() < cap):
            self._tick()
            self._interference.sample()
        slower, cores = self._interference.end(live.commanded_rate)
        chosen = window()
        least = LEAST_BATCHES + 1 if math.isinf(live.commanded_rate) else 1  # a finite rate may be far too high
        if len(chosen) < least and live.epoch > 0 and not self._idle():
            took = now_s() - begin
            raise WorkbenchError(
                f"Query {spec.name!r} completed {len(chosen)} batches in {took:.0f} s; at least {least} "
                "are needed. Its batches take too long: give it more slots, or a longer interval.",
                settings=("slots", "interval_s"),
            )
        after, bound = self._load(), self._periods()
        elapsed = chosen[-1].release.at_s - chosen[0].release.at_s if chosen else 0.0
        works = [done.work for done in chosen[1:]]
        logs = [work.log for work in works]
        labels = fullest_labels(done.work.log for done in live.done) if live.done else None
        overhead_rate = overhead(done.work for done in live.done)
        operators, samples = operator_metrics(
            works, elapsed, self._cpus, self._source, labels, overhead_rate=overhead_rate
        )
        self._check_executor()
        check_read(spec.name, logs)
        passed = bound[0] - periods[0]
        rate = live.commanded_rate
        return Observation(
            commanded_rate=rate,
            elapsed_s=elapsed,
            batches=tuple(done.batch for done in chosen),
            operators=operators,
            samples=samples,
            source_rate_limit=self._profile.rate_limit / max([1, *(len(scans(log)) for log in logs[-1:])]),
            quota_throttled=(bound[1] - periods[1]) / passed if spec.quota and passed else None,
            disturbance=replace(after.disturbance_since(before), slowdown=slower),
            dropped_late=dropped_late(spec.name, logs, operators),
            cores=cores,
            edges=operator_edges(logs, operator_names(labels or ())),
        )

    def end(self) -> None:
        """Stop the queries and the session."""
        if self._spark is not None:
            if hasattr(self, "_held"):
                self._held.release()
            for query in getattr(self, "_queries", []):
                query.query.stop()
            end_session(self._spark)

    def serve(self) -> None:
        """Carry out commands until the pipe closes."""
        while True:
            while not self._connection.poll(POLL_S):
                pump(self._queries, self._events, self._meter)
            verb, value = self._receive()
            try:
                obey: Mapping[str, Callable[[Any], Observation | SourceProfile | None]] = {
                    "turn": self.turn,
                    "rate": self.rate,
                    "settle": self.settle,
                    "await quiet": self.await_quiet,
                    "observe": self.observe,
                }
                result = obey[verb](value)
            except WorkbenchError as error:
                self._connection.send(("error", error))
            else:
                self._connection.send(("result", result))

    def jvm_said(self) -> str:
        """Return the last line that Spark's JVM has written."""
        log = self._spec.folder / "jvm.log"
        return last_line(log.read_text(errors="replace")) if log.exists() else ""

    def _divide_cores(self) -> None:
        """Pin the slots to their cores, and everything else to the other cores if there are any.

        This waits until the code is warm, because the driver, the executor and their compilers are busiest before.
        """
        executor, quota = self._executor, self._spec.quota
        apart = COMPILERS if quota and quota.exempt(executor, COMPILERS) else ()
        pin_family(executor, self._slot_cores)  # its Python workers too: they started before
        if self._other_cores or self._turns:  # with none left, everything shares the slots' cores again
            others = self._other_cores or self._allowed
            pin(executor, others, apart)
            for process in set(family(os.getpid())) - set(family(executor)):
                pin(process, others)

    def _start(
        self,
        folder: str,
        generator: Generator,
        interval_s: float,
        build: "Callable[[DataFrame], DataFrame]",
        mode: str,
    ) -> LiveQuery:
        spec = self._spec
        assert self._spark is not None  # noqa: S101 - for the type checker
        live = LiveQuery(spec.name, spec.folder / folder, interval_s, self._events, self._meter)
        live.start(self._spark, generator, spec.source_partitions, build, mode)
        self._queries.append(live)
        return live

    def _profile_source(self, rows: int) -> int:
        """Profile the source alone: its cost, and the highest rate it can feed within the interval.

        `rows` is what the warm query consumed in one interval without a quota; it determines which batch sizes matter.
        The return value is the number of rows it may consume under the quota.
        """
        spec = self._spec
        alone = self._start("source", RowsOnly(spec.generator), _READ_INTERVAL_S, _unchanged, "append")
        at_once = min(spec.budget.slots, len(self._slot_cores | self._other_cores))
        expected = max(LEAST_BATCH_ROWS, int(rows * min(1.0, spec.budget.cpus / at_once)))
        rows = max(LEAST_SOURCE_ROWS, expected)
        alone.fixed_batches(rows)
        warm_s = now_s() + min(SOURCE_WARM_S, spec.warmup_cap_s)
        self._batches(alone, 1)  # starts the Python workers
        # The records must cost as much as the fixed part, or their cost is lost in noise.
        least_s = fastest_s = self._fastest_s(alone)
        while fastest_s < min(LONG_S, least_s + DISTINCT_S) and now_s() < warm_s:
            rows *= SOURCE_GROWTH
            alone.fixed_batches(rows)
            fastest_s = self._fastest_s(alone)
        self._until_steady(alone, SOURCE_BATCHES, warm_s)  # without a quota
        self._limit(quota=True)
        kept: list[CompletedBatch] = []
        for share in (0.5, 1.5, 1.0):
            alone.fixed_batches(int(rows * share))
            kept += self._batches(alone, SOURCE_BATCHES)[1:]
        self._retire(alone)
        self._source = fit_source([done.work for done in kept], self._cpus)
        self._source_alone = line([(done.batch.records, done.batch.duration_s) for done in kept])
        self._profile = self._source_profile(spec.budget)
        return expected

    def _source_profile(self, budget: Budget) -> SourceProfile:
        """Give the cost of the source and its highest rate on `budget`: on fewer slots a record takes longer."""
        interval, alone = budget.interval_s, self._source_alone
        per_record_s = alone.per_record_s * self._most.cpus / budget.cpus
        room = max(0.0, interval - alone.fixed_s)
        return SourceProfile(
            fixed_s=self._source.fixed_s * self._cpus,
            per_record_s=self._source.per_record_s * self._cpus,
            rate_limit=room / (per_record_s * interval) if per_record_s else math.inf,
        )

    def _fastest_s(self, live: LiveQuery) -> float:
        return min(done.batch.duration_s for done in self._batches(live, 2))

    def _retire(self, live: LiveQuery) -> None:
        """End a query once its batches are complete: cancelled tasks may hold their slots for a minute or more."""
        live.command(0.0)
        end = now_s() + DRAIN_S
        quiet_since = now_s()
        while now_s() < end and now_s() < quiet_since + QUIET_S:
            self._tick()
            if live.query.status["isTriggerActive"] or live.query.status["isDataAvailable"]:
                quiet_since = now_s()
        live.stop()
        self._queries.remove(live)

    def _warm_code(self) -> int:
        """Run without a quota, on all cores, until the CPU cost of batches is steady and the compiler is nearly idle.

        Returns the number of rows that fill one interval afterwards.

        The JVM compiles code after a number of calls. Code that runs once per batch needs many small batches, and code
        that runs once per record needs large ones. So small batches come first, without a pause, and then they grow
        until they fill the interval.
        """
        spec = self._spec
        live = self._start("warming", spec.generator, _READ_INTERVAL_S, spec.build, spec.output_mode)
        cap = now_s() + spec.warmup_cap_s
        live.fixed_batches(FIRST_BATCH_ROWS)
        self._until_steady(live, SMALL_BATCHES, now_s() + spec.warmup_cap_s / 2)
        rows, last = FIRST_BATCH_ROWS, self._batches(live, 1)[-1].batch
        full = max(spec.budget.interval_s, 2 * last.duration_s)  # records must be at least half of the work
        while last.duration_s < _FULL * full and now_s() < cap:
            rows = int(rows * min(4.0, max(1.5, full / last.duration_s)))
            live.fixed_batches(rows)
            last = self._batches(live, 1)[-1].batch
        while now_s() < cap and self._compiling(live) > JIT_IDLE:
            pass
        self._until_steady(live, LARGE_BATCHES, cap)
        done = live.done[-1].batch
        self._retire(live)
        return int(done.records * min(1.0, spec.budget.interval_s / done.duration_s))

    def _until_steady(self, live: LiveQuery, count: int, end_s: float) -> None:
        """Run until `count` batches cost about as much CPU as the `count` before them, or the clock reaches `end_s`."""
        costs: list[float] = []
        while now_s() < end_s:
            done = self._batches(live, 1)[-1]
            costs.append(done.work.executor_cpu_s or done.batch.duration_s)
            if len(costs) % count == 0 and len(costs) > count:
                before, last = costs[-2 * count : -count], costs[-count:]
                if sum(last) > sum(before) * (1 - JIT_STEADY):
                    return

    def _compiling(self, live: LiveQuery) -> float:
        """Share of a core that the executor's compiler uses during some batches."""
        begun, before = now_s(), threads_cpu_s(self._executor, COMPILERS)
        self._batches(live, LARGE_BATCHES)
        return (threads_cpu_s(self._executor, COMPILERS) - before) / (now_s() - begun)

    def _batches(self, live: LiveQuery, count: int) -> list[CompletedBatch]:
        """Wait until `count` more batches of the current command are committed."""
        epoch, seen = live.epoch, len(live.done)
        give_up = now_s() + PATIENCE_S + 10 * self._spec.budget.interval_s
        while True:
            fresh = [done for done in live.done[seen:] if done.release.epoch == epoch]
            if len(fresh) >= count:
                return fresh
            if now_s() > give_up:
                raise WorkbenchError(
                    f"Query {self._spec.name!r} completed {len(fresh)} of {count} batches in {PATIENCE_S:.0f} s. "
                    "Its batches take too long to measure: give it more slots, or check what it waits for."
                )
            self._tick()

    def _tick(self) -> None:
        if self._connection.poll(POLL_S):
            raise OwnerGoneError  # during an observation the owner sends nothing and only closes the pipe
        pump(self._queries, self._events, self._meter)
        for query in self._queries:
            query.check()

    def _find_executor(self) -> int:
        """Process id of the executor, which may start shortly after the session."""
        end = now_s() + EXECUTOR_S
        while now_s() < end:
            if self._connection.poll(POLL_S):
                raise OwnerGoneError
            executor = executor_process(self._spark)
            if executor is not None:
                return executor
        raise WorkbenchError(
            f"Spark started no executor within {EXECUTOR_S:.0f} s, most likely for lack of memory; "
            "free memory or use smaller slots.",
            settings=("memory_mb",),
        )

    def _check_executor(self) -> None:
        """Refuse the observation if the executor was replaced: the new one is cold and outside the quota."""
        if executor_process(self._spark) != self._executor:
            raise WorkbenchError(
                f"Spark's executor was lost while {self._spec.name!r} ran, most likely for lack of memory; "
                "give the slots more of it, then run the same command again.",
                settings=("memory_mb",),
            )

    def _idle(self) -> bool:
        return self._live.commanded_rate == 0

    def _limit(self, *, quota: bool) -> None:
        if self._spec.quota:
            self._spec.quota.limit(self._spec.budget.cpus if quota else None)

    def _load(self) -> Load:
        slots = self._slot_cores if self._other_cores else ()
        return load(session_processes(os.getsid(0)), now_s(), slots, self._meter.used_s()[0])

    def _periods(self) -> tuple[int, int]:
        return self._spec.quota.periods() if self._spec.quota else (0, 0)

    def _say(self, text: str) -> None:
        self._connection.send(("progress", text))

    def _receive(self) -> tuple[str, Any]:
        message: tuple[str, Any] = self._connection.recv()
        return message


def _unchanged(stream: "DataFrame") -> "DataFrame":
    return stream


def _load(data: bytes) -> DeploymentSpec:
    try:
        spec: DeploymentSpec = pickle.loads(data)  # noqa: S301 - from our own parent, over our own pipe
    except (ImportError, AttributeError) as error:
        raise WorkbenchError(
            f"The query cannot be loaded in Spark's driver process: {error}. Put its function into a module that can "
            "be imported from the current folder."
        ) from error
    return spec


def main(descriptor: int) -> None:
    """Serve the deployment that is specified over the pipe `descriptor`."""
    connection = Connection(descriptor)
    driver = None
    try:
        spec = _load(connection.recv_bytes())
        driver = Driver(connection, spec)
        connection.send(("ready", driver.deploy()))
        driver.serve()
    except (EOFError, OwnerGoneError, BrokenPipeError, ConnectionResetError):
        pass
    except WorkbenchError as error:
        connection.send(("error", error))
    except (Py4JError, PySparkRuntimeError, ConnectionRefusedError) as error:
        last = driver.jvm_said() if driver is not None else ""  # the query's module may have started a separate Spark
        said = " ".join(filter(None, (str(error).split("\n", 1)[0].rstrip("."), last)))
        text = f"Spark's driver JVM ended or refused: {said}. Free memory, then run the same again"
        connection.send(("error", WorkbenchError(f"{text}; 'workbench doctor' shows what else may be missing.")))
    except Exception:  # noqa: BLE001 - the owner shows it
        connection.send(("crash", traceback.format_exc()))
    finally:
        if driver is not None:
            driver.end()


if __name__ == "__main__":
    main(int(sys.argv[1]))
