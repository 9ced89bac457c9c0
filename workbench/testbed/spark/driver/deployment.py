"""The driver process of one deployment: ``python -m workbench.testbed.spark.driver.deployment FD``.

It holds the Spark session and takes commands from its owner over a pipe: ``("rate", records/s)``,
``("settle", seconds)``, ``("fill", (least, most seconds))``, ``("await_quiet", seconds)``, ``("observe", seconds)``,
``("turn", Turn)``. When the pipe closes, for any reason, the deployment ends.
"""

import math
import pickle
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError

from workbench.errors import QueryError, TooFewBatchesError, WorkbenchError
from workbench.metrics import Observation, SourceProfile
from workbench.records import NOOP, Machine, is_uri
from workbench.testbed.spark.cluster import (
    await_executors,
    cause_of,
    check_log_folder,
    check_shared,
    compilers,
    copy_into,
    describe_workers,
    pack,
    registered,
    remove,
)
from workbench.testbed.spark.driver.cores import (
    COMPILERS,
    Cores,
    HeldSlots,
    await_executor,
    driver_process,
    executor_process,
    lost_executor,
)
from workbench.testbed.spark.driver.feed import TopicRows, check_broker
from workbench.testbed.spark.driver.growing_state import HURRY_S, hurry, lacking_s, rows_held, stays
from workbench.testbed.spark.driver.live import LEAST_BATCH_ROWS, POLL_S, CompletedBatch, Meter, first_rows, now_s
from workbench.testbed.spark.driver.process import LEFT
from workbench.testbed.spark.driver.queries import Queries, warm_code
from workbench.testbed.spark.driver.session import DeploymentSpec, Turn, end_session, last_line, start_session
from workbench.testbed.spark.driver.source_and_sink import NOTHING, SourceAlone, compare, write_cost
from workbench.testbed.spark.log.event_log import EventLog
from workbench.testbed.spark.log.operators import (
    check_read,
    dropped_late,
    executor_paces,
    fullest_labels,
    input_rows,
    operator_edges,
    operator_metrics,
    operator_names,
    overhead,
    times_read,
)
from workbench.testbed.spark.machine.disturbance import InterferenceProbe, Load, spark_batch_s
from workbench.workload import Replay, Shipped
from workbench.workload.kafka import Topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST_BATCHES = 3
_SHORT = 0.99  # of a rate; if less is consumed, the source may be the reason
_SETTLED = 3  # intervals after another query has run
_LOOK_S = 1.0  # between two looks at a broker
_BEHIND = 1.15  # factor over the interval; a batch that is late by less may be made up for


class OwnerGoneError(Exception):
    """The owner closed the pipe, so the deployment ends."""


class Driver:
    """Serves one deployment."""

    def __init__(self, connection: Connection, spec: DeploymentSpec) -> None:
        self._connection = connection
        self._spec = spec
        self._cores = Cores(spec)
        self._source = SourceAlone(spec.budget)
        self._sink = NOTHING
        self._fastest = 0.0  # records/s consumed in any window of this turn
        self._spark: SparkSession | None = None
        self._topic = Topic.parse(spec.generator.url) if isinstance(spec.generator, TopicRows) else None
        self._looked_s = 0.0  # at its broker
        self._most = spec.budget
        self._fitted: dict[Turn, int] = {}  # rows that fitted an interval when a turn ended
        self._turns = 0
        self._probes: dict[Turn, InterferenceProbe] = {}
        self._interference = InterferenceProbe(self._cores.timer(), now_s)
        self._stays: dict[int, float] | None = None  # in the state; None before it is known that they stay for long
        self._batch_s: float | None = None  # of the fixed batch, on these cores
        self._executor: int | None = None
        self._machine: Machine | None = None  # of a cluster's executors
        self._registered: frozenset[str] | None = None  # the present executors

    def deploy(self) -> tuple[dict[str, str], SourceProfile, float, Machine | None]:
        """Start Spark and the query, and warm up both.

        Returns facts, the source's profile, the rate to expect, and the machine of a cluster's executors.
        """
        spec = self._spec
        self._say("starting Spark")
        spark = self._spark = start_session(spec)
        if spec.cluster:
            self._await_cluster()
        else:
            self._executor = await_executor(spark, self._let_pass)
            self._cores.hold(self._executor, driver_process(spark))
        for key, place in spec.places.items():
            if spec.cluster or is_uri(place):
                check_shared(spark, place, spec.budget.slots, key)
        log_file = next((spec.folder / "eventlog").iterdir())
        self._events = EventLog(log_file)
        self._events.expected = self._registered
        self._meter = Meter(spec.quota, self._executor)
        self._queries = Queries(spark, self._events, self._meter, self._wait)
        self._say(f"warming up the query's code{'' if spec.cluster else ', without a quota'}")
        compiler_s = compilers(spark, spec.budget.slots, COMPILERS) if spec.cluster else self._cores.compiler_s
        rows = warm_code(self._queries, self._spec, compiler_s)
        spec = self._spec
        self._batch_s = None if spec.cluster or spec.asked_rate else spark_batch_s(spark, self._cores.tasks_s)
        self._cores.divide()
        limited = 1.0 if spec.asked_rate else min(1.0, spec.budget.cpus / self._cores.at_once)  # because of the quota
        rows = max(LEAST_BATCH_ROWS, int(rows * limited))
        if not spec.asked_rate:
            self._profile(rows)
            if spec.writes.kind != NOOP:
                self._say("comparing the sink with Spark's noop sink")
                self._sink = compare(self._queries, self._spec, rows, self._cores)
        self._held = HeldSlots(spark, spec.folder)
        self._turn = Turn(spec.budget, spec.source_partitions, spec.state_partitions)
        self._fitted[self._turn] = rows
        self._probes[self._turn] = self._interference
        self._live = self._queries.start(spec, "query", interval_s=spec.budget.interval_s)
        self._live.expect(rows)
        java = str(spark._jvm.java.lang.System.getProperty("java.version"))  # type: ignore[union-attr]  # noqa: SLF001
        facts = {"spark": spark.version, "java": java}
        return facts, self._source.profile(spec.budget), rows / spec.budget.interval_s, self._machine

    def turn(self, turn: Turn) -> tuple[SourceProfile, float]:
        """Start the query again on `turn`'s budget in the same executor: its code stays warm, its state begins empty.

        Tasks that sleep hold the slots that the budget does not have. The first batches have as many rows as fitted
        when the same budget had its last turn. Returns the source's profile, and the rate to expect.
        """
        assert self._spark is not None  # noqa: S101 - for the type checker
        self._turns += 1
        self._fitted[self._turn] = self._live.rows_fitting
        doubtful = self._source.doubtful(self._fastest, self._spec.budget, self._scans())
        self._queries.retire(self._live)
        self._held.release()
        self._cores.limit(quota=False)
        self._spec = spec = replace(self._spec, **vars(turn))
        self._cores.give(turn.budget)
        self._held.hold(self._most.slots - turn.budget.slots)
        self._cores.divide()
        self._interference = self._probes.setdefault(turn, InterferenceProbe(self._cores.timer(), now_s))
        self._cores.limit(quota=True)
        self._spark.conf.set("spark.sql.shuffle.partitions", str(turn.state_partitions))
        rows = first_rows(turn, self._fitted)
        self._turn = turn
        if doubtful:
            self._profile(rows)
        self._fastest = 0.0
        self._live = self._queries.start(spec, f"query{self._turns}", interval_s=turn.budget.interval_s)
        self._live.expect(rows)
        return self._source.profile(turn.budget), rows / turn.budget.interval_s

    def rate(self, rate: float) -> None:
        """Command `rate` records/s."""
        if self._source.doubtful(self._fastest if math.isinf(rate) else rate, self._spec.budget, self._scans()):
            self._queries.drain(self._live)
            self._profile(self._live.rows_fitting)
        if math.isinf(rate) and self._live.feed.restarts:
            self._queries.fit(self._live)
        else:
            self._live.command(rate)
            if self._live.feed.restarts and rate:
                self._queries.batches(self._live, 1)  # a start does not belong to an observation

    def settle(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self._queries.settle(seconds)

    def fill(self, seconds: tuple[float, float]) -> bool:
        """Let the state reach its working size; return whether it has."""
        self._say("filling the query's state")
        live, rate = self._live, self._live.commanded_rate
        if not self._stays and self._queries.fill(live, *seconds):
            return True
        most_s = max(HURRY_S, seconds[1])
        if self._stays is None and self._spark is not None and not live.feed.restarts:
            if not self._spec.asked_rate:  # but a guess that knows nothing of the state: to learn what its rows cost
                most_s = seconds[1] / 2
            self._say("finding out how long rows stay in the state")
            self._queries.drain(live)
            self._stays = {}
            with self._cores.unlimited():
                self._stays = stays(self._queries, self._spec, self._spark)
            self.rate(rate)
            if not self._stays:
                self._queries.settle(_SETTLED * self._spec.budget.interval_s)
        elif self._stays:
            self._queries.settle(_SETTLED * self._spec.budget.interval_s)  # batches with few rows in the state
        if not self._stays or math.isinf(rate):  # no rate says how dense the rows are
            return False
        self._say("filling the query's state on all cores")
        filled, live.hurried = False, True
        with suppress(WorkbenchError), self._cores.unlimited():  # batches that take too long; what failed says so again
            filled = hurry(self._queries, live, rate, self._stays, most_s)
        live.hurried = False
        self.rate(rate)
        self._queries.settle(_SETTLED * self._spec.budget.interval_s)
        return filled

    def await_quiet(self, most_s: float) -> None:
        """Wait for other load on the machine to end, about `most_s` seconds at most; on a cluster, it is not seen."""
        if self._spec.cluster:
            return
        before = self._load()

        def others() -> float:
            nonlocal before
            now = self._load()
            seen, before = now.disturbance_since(before), now
            return max(seen.steal, seen.other_load)  # the query goes on, so it uses up an outer quota meanwhile, too

        self._interference.wait(self._live.commanded_rate, most_s, self._queries.tick, others)

    def observe(self, seconds: float, again: bool = False) -> Observation:
        """Report the whole batches of `seconds`, or more if too few; a topic that runs out is observed again, once."""
        live, spec = self._live, self._spec
        begin = now_s()
        cap = begin + max(60.0, seconds + 30 * spec.budget.interval_s)
        epoch, seen = live.epoch, len(live.done)
        before, periods, compiled_s = self._load(), self._cores.periods(), self._cores.all_compilers_s()

        def window() -> list[CompletedBatch]:
            return [one for one in live.done[seen:] if one.release.at_s >= begin and one.release.epoch == epoch]

        self._interference.sample()
        while now_s() < begin + seconds or (len(window()) < LEAST_BATCHES + 1 and now_s() < cap):
            self._queries.tick()
            self._interference.sample()
            if live.epoch != epoch:
                return self._observe_again(seconds, again)
            if math.isfinite(live.commanded_rate) and _falls_behind(window(), spec.budget.interval_s):
                break
        slower, cores = self._interference.end(live.commanded_rate)
        chosen = window()
        least = LEAST_BATCHES + 1 if math.isinf(live.commanded_rate) else 1  # a finite rate may be far too high
        if len(chosen) < least and live.epoch > 0 and live.commanded_rate:
            took = now_s() - begin
            raise TooFewBatchesError(
                f"Query {spec.name!r} completed {len(chosen)} batches in {took:.0f} s; at least {least} "
                "are needed. Its batches take too long: give it more slots, or a longer interval.",
                settings=("slots", "interval_s"),
            )
        after, bound = self._load(), self._cores.periods()
        elapsed = chosen[-1].release.at_s - chosen[0].release.at_s if chosen else 0.0
        logs = chosen[1:]
        labels = fullest_labels(live.done, logs or live.done) if live.done else ()
        operators, samples = operator_metrics(
            logs, elapsed, spec.budget.profile.cpus, self._source.cost, labels, overhead_rate=overhead(live.done)
        )
        # An executor that was replaced is cold, and outside the quota.
        if self._gone() or (self._executor is not None and executor_process(self._spark) != self._executor):
            raise self._lost()
        check_read(spec.name, logs)
        passed, throttled = (now - then for now, then in zip(bound, periods, strict=True))
        used_up = throttled / passed if spec.quota and passed else None
        disturbance = replace(after.disturbance_since(before), slowdown=slower, open=1 - (used_up or 0.0))
        rate = live.commanded_rate
        observation = Observation(
            commanded_rate=rate,
            elapsed_s=elapsed,
            batches=tuple(done.batch for done in chosen),
            operators=operators,
            samples=samples,
            quota_throttled=used_up,
            disturbance=disturbance,
            dropped_late=dropped_late(spec.name, logs, operators),
            cores=replace(cores, warm_batch_s=self._batch_s),
            edges=operator_edges(logs, operator_names(labels)),
            executors=executor_paces(logs),
            source_partitions=live.feed.partitions,
            compiling=(self._cores.all_compilers_s() - compiled_s) / (now_s() - begin),
            writes=write_cost(
                logs,
                spec.budget.profile.cpus,
                [one for one in live.since_empty if one.quota == (spec.quota is not None)],
                self._sink,
            ),
            inputs=input_rows(spec.inputs, logs, chosen[-1].release.queue if chosen else 0.0, labels),
            lacking_s=lacking_s(live.since_empty, len(logs), self._stays) if self._stays else 0.0,
            held=rows_held(live.since_empty, len(logs), self._stays) if self._stays else (),
        )
        self._fastest = max(self._fastest, observation.consumed_rate)
        self._look_where_missed(rate, observation.consumed_rate)
        limit = self._source.profile(spec.budget, self._scans()).rate_limit
        return replace(observation, source_rate_limit=max(limit, self._fastest))  # what it has released, it can release

    def _observe_again(self, seconds: float, again: bool) -> Observation:
        if again:
            raise WorkbenchError(
                f"The topic of query {self._spec.name!r} runs out of records within the {seconds:g} s of a probe at "
                f"{self._live.commanded_rate:,.0f} records/s. Fill it with enough for two minutes at the highest rate "
                "(workbench fill), then run the same command again; what was measured is kept."
            )
        told = "the topic has run out of records: it is read again from its earliest offset, and observed again"
        self._connection.send(("warning", told))
        self._queries.batches(self._live, 1)
        self._queries.settle(seconds)  # the state of the query begins empty
        return self.observe(seconds, again=True)

    def end(self) -> None:
        """Stop the queries and the session."""
        if hasattr(self, "_held"):
            self._held.release()
        if hasattr(self, "_queries"):
            self._queries.stop()
        if self._spark is not None:
            self._end_session(self._spark)

    def serve(self) -> None:
        """Carry out commands until the pipe closes."""
        while True:
            while not self._connection.poll(POLL_S):
                self._queries.pump()
            verb, value = self._connection.recv()
            try:
                answer = "result", getattr(self, verb)(value)
            except WorkbenchError as error:
                answer = "error", error
            self._connection.send(answer)

    def _await_cluster(self) -> None:
        """Wait for the cluster's executors, check that state reaches them, and ship the code and the data."""
        spec, spark = self._spec, self._spark
        assert spec.cluster is not None and spark is not None  # noqa: S101, PT018 - for the type checker
        await_executors(spark, spec.cluster, spec.budget, self._let_pass, self._say)
        self._registered = registered(spark)
        self._say("looking at the executors")
        self._machine = describe_workers(spark, spec.cluster, spec.budget)
        if spec.cluster.event_log:
            check_log_folder(spark, spec.cluster.event_log)
        spark.sparkContext.addPyFile(str(pack(spec.folder)))

        def shipped(rows: Any) -> Any:  # noqa: ANN401 - what the feed takes
            """Copy the file of a data set to the executors."""
            if not isinstance(rows, Replay):
                return rows
            spark.sparkContext.addFile(rows.path)
            return Shipped(replace(rows, path=Path(rows.path).name), rows.schema())

        rows = spec.generator
        self._spec = replace(spec, generator=tuple(map(shipped, rows)) if isinstance(rows, tuple) else shipped(rows))

    def _let_pass(self) -> None:
        if self._connection.poll(POLL_S):
            raise OwnerGoneError

    def _end_session(self, spark: "SparkSession") -> None:
        """End the session, remove its places first, and keep the log of one on a cluster if requested."""
        for key, folder in self._spec.places.items():
            if kept := remove(spark, folder):
                what = "checkpoints" if key == "checkpoint" else "rows"
                _leave(f"the {what} in {folder} cannot be removed ({kept}): remove the folder")
        if self._spec.cluster is None:
            end_session(spark)
            return
        log = self._spec.cluster.event_log
        configuration = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - py4j's only door

        def keep_log(jvm: Any) -> None:  # noqa: ANN401 - py4j is not typed
            if log:
                for file in (self._spec.folder / "eventlog").iterdir():
                    copy_into(jvm, configuration, file, log)

        try:
            end_session(spark, keep_log)
        except (Py4JError, OSError) as error:  # nothing measured depends on it; its folder was checked at the start
            if log:
                _leave(f"the event log is missing or incomplete in {log}: {cause_of(str(error))}")

    def _scans(self) -> int:
        """How often the query reads the source, as its last batch shows."""
        return max([1, *(times_read(done) for done in self._live.done[-1:])])

    def _look_where_missed(self, rate: float, consumed: float) -> None:
        """Profile an unknown source where a rate is missed, then offer the rate again, and let it run on."""
        if not self._source.known and _SHORT * rate > consumed:
            self._queries.drain(self._live)
            self._profile(self._live.rows_fitting)
            self.rate(rate)

    def _profile(self, rows: int) -> None:
        """Profile the source, on the budget of the present turn."""
        self._say(f"measuring the source alone{' again' * self._source.known}")
        self._source.measure(self._queries, self._spec, rows, self._cores)

    def _gone(self) -> bool:
        """Whether the executor, or one of the cluster's, has ended."""
        return bool(self._events.lost) if self._executor is None else not psutil.pid_exists(self._executor)

    def _lost(self) -> WorkbenchError:
        return lost_executor(self._spec.name, self._events.lost, on_cluster=self._spec.cluster is not None)

    def _wait(self) -> None:
        self._let_pass()  # during an observation the owner sends nothing and only closes the pipe
        if self._gone():
            raise self._lost()
        if self._topic is not None and now_s() > self._looked_s + _LOOK_S:
            self._looked_s = now_s()
            check_broker(self._topic)

    def _load(self) -> Load:
        return self._cores.load(self._meter.used_s()[0])

    def _say(self, text: str) -> None:
        self._connection.send(("progress", text))


def _falls_behind(window: Sequence[CompletedBatch], interval_s: float) -> bool:
    """Whether the last whole batches all took clearly longer than the interval, so that more would show the same."""
    last = [done.batch.duration_s for done in window[1:]][-LEAST_BATCHES:]
    return len(last) == LEAST_BATCHES and min(last) > _BEHIND * interval_s


def _leave(what: str) -> None:
    """Name what could not be cleaned up: the owner has closed the pipe by now, and reads it in the output."""
    print(f"{LEFT}{what}", flush=True)  # noqa: T201 - its output is a log


def _load(data: bytes) -> DeploymentSpec:
    try:
        spec: DeploymentSpec = pickle.loads(data)  # noqa: S301 - from our own parent, over our own pipe
    except Exception as error:  # whatever the user's module does when it is imported
        raise QueryError(
            f"The query cannot be loaded in Spark's driver process: {type(error).__name__}: {error}. Put its function "
            "into a module that can be imported from the current folder."
        ) from error
    return spec


def _refused(error: Exception, spec: DeploymentSpec | None) -> WorkbenchError:
    """Return the error for a JVM that ended or refused; on a cluster, the slots' memory is not this machine's."""
    log = spec.folder / "jvm.log" if spec else None
    last = last_line(log.read_text(errors="replace")) if log and log.exists() else ""
    said = " ".join(filter(None, (str(error).split("\n", 1)[0].rstrip("."), last)))
    remedy = "Free memory, then run the same again; 'workbench doctor' shows what else may be missing"
    if spec and spec.cluster:
        remedy = "Run the same again; 'workbench doctor --master' shows what may be missing"
    return WorkbenchError(f"Spark's driver JVM ended or refused: {said}. {remedy}.")


def main(descriptor: int) -> None:
    """Serve the deployment that is specified over the pipe `descriptor`."""
    connection = Connection(descriptor)
    driver: Driver | None = None
    spec: DeploymentSpec | None = None
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
        connection.send(("error", _refused(error, spec)))
    except Exception:  # noqa: BLE001 - the owner shows it
        connection.send(("crash", traceback.format_exc()))
    finally:
        if driver is not None:
            driver.end()


if __name__ == "__main__":
    main(int(sys.argv[1]))
