"""What is asked of a broker outside of a query: offsets of a topic, creating, deleting and filling it.

The Java client does it, which comes with Spark's connector: in a small JVM of its own, or in one that runs already.
"""

import os
import socket
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError

from workbench.errors import QueryError, WorkbenchError
from workbench.redaction import HIDDEN, is_secret, redacted
from workbench.testbed.spark.machine.java import connector_jars, find_java
from workbench.workload.kafka import Topic, java_settings

Ends = Mapping[int, tuple[int, int]]  # first offset, and the one after the last, of each partition
ANSWER_MS = 10_000
PATIENCE: Mapping[str, str] = {"default.api.timeout.ms": str(ANSWER_MS), "request.timeout.ms": str(ANSWER_MS - 1000)}
"""Settings with which the Java client waits seconds for a broker, not minutes."""

_BYTES = "org.apache.kafka.common.serialization.ByteArray"
_CONSUMING = {
    "key.deserializer": f"{_BYTES}Deserializer",
    "value.deserializer": f"{_BYTES}Deserializer",
    "enable.auto.commit": "false",
    "allow.auto.create.topics": "false",
}
_PRODUCING = {
    "key.serializer": f"{_BYTES}Serializer",
    "value.serializer": f"{_BYTES}Serializer",
    "linger.ms": "50",
    "batch.size": str(1 << 16),
    "buffer.memory": str(1 << 27),
    "compression.type": "lz4",
    "partitioner.adaptive.partitioning.enable": "false",
    "delivery.timeout.ms": "60000",
}
_SENDING = """
package workbench;

import java.nio.ByteBuffer;
import org.apache.kafka.clients.producer.*;

public class Sending implements Callback {
    private final java.util.concurrent.atomic.AtomicLong taken = new java.util.concurrent.atomic.AtomicLong();
    private volatile Exception failed;

    public void onCompletion(RecordMetadata place, Exception error) {
        if (error == null) { taken.incrementAndGet(); } else if (failed == null) { failed = error; }
    }

    public long taken() { return taken.get(); }

    public void check() throws Exception { if (failed != null) { throw failed; } }

    public void send(Producer producer, String topic, byte[] packed) throws Exception {
        ByteBuffer left = ByteBuffer.wrap(packed);
        while (left.hasRemaining()) {
            Long at = Long.valueOf(left.getLong());
            byte[] key = next(left);
            byte[] value = next(left);
            java.util.List headers = new java.util.ArrayList();
            for (int more = left.getInt(); more > 0; more--) {
                String name = new String(next(left), "UTF-8");
                headers.add(new org.apache.kafka.common.header.internals.RecordHeader(name, next(left)));
            }
            check();
            producer.send(new ProducerRecord(topic, null, at, key, value, headers), this);
        }
    }

    private static byte[] next(ByteBuffer left) {
        int size = left.getInt();
        if (size < 0) { return null; }
        byte[] found = new byte[size];
        left.get(found);
        return found;
    }
}
"""
_LONG, _INT = struct.Struct(">q"), struct.Struct(">i")
_AT_ONCE = 1 << 22  # bytes that Java gets
_LONGEST = 300  # letters of a reason
_ANSWER_S = 2.0
_PASSING = {"TimeoutException", "DisconnectException", "OutOfMemoryError"}  # where a server still answers


@dataclass(frozen=True)
class Broker:
    """The brokers of a topic, as the Java client reaches them."""

    topic: Topic
    options: Mapping[str, str]  # of the client
    jvm: Any  # py4j's view of the JVM with the client
    consumer: Any  # the client's, which reads the topic's metadata

    def partitions(self) -> list[int]:
        """Return the partitions of the topic; none where there is no such topic."""
        return sorted(one.partition() for one in self.consumer.partitionsFor(self.topic.name) or ())

    def ends(self) -> dict[int, tuple[int, int]]:
        """Return the earliest offset of each partition, and the one after its last record."""
        places = self._places(self.partitions())
        if not places:
            raise QueryError(f"The topic {self.topic.url} does not exist. Check its name.")
        asked = self._listed(places.values())
        low, high = self.consumer.beginningOffsets(asked), self.consumer.endOffsets(asked)
        return {number: (low.get(place), high.get(place)) for number, place in places.items()}

    def since(self, at_ms: int, ends: Ends) -> dict[int, int]:
        """Return the first offset of every partition with a record of that time, in ms since 1970, or later."""
        places, asked = self._places(ends), self.jvm.java.util.HashMap()
        for place in places.values():
            asked[place] = max(at_ms, 1 << 31)  # a smaller number is not a long in Java
        found = self.consumer.offsetsForTimes(asked)
        since = {}
        for number, place in places.items():
            (low, high), first = ends[number], found.get(place)
            since[number] = high if first is None else min(max(first.offset(), low), high)
        return since

    def row_bytes(self, begin: Mapping[int, int]) -> float:
        """Return the mean size of some records from `begin` on, of key and value; 0 where none comes."""
        places = self._places(begin)
        self.consumer.assign(self._listed(places.values()))
        for number, place in places.items():
            self.consumer.seek(place, begin[number])
        polled = self.consumer.poll(self.jvm.java.time.Duration.ofMillis(ANSWER_MS)).iterator()
        sizes: list[int] = [max(0, one.serializedKeySize()) + max(0, one.serializedValueSize()) for one in polled]
        return sum(sizes) / max(1, len(sizes))

    def made(self, partitions: int) -> int:
        """Make the topic if it is missing; return the number of its partitions."""
        if found := len(self.partitions()):
            return found
        optional, admin = self.jvm.java.util.Optional, self.jvm.org.apache.kafka.clients.admin
        topic = admin.NewTopic(self.topic.name, optional.of(partitions), optional.empty())
        self._administered(lambda admin: admin.createTopics(self._listed([topic])))
        return partitions

    def delete(self) -> None:
        """Delete the topic."""
        self._administered(lambda admin: admin.deleteTopics(self._listed([self.topic.name])))

    @contextmanager
    def sending(self) -> Iterator[Callable[[Iterable[bytes]], None]]:
        """Yield a function that sends records to the topic at full speed, each in the form of `packed`."""
        compiler = self.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(_SENDING)
        java = compiler.getClassLoader().loadClass("workbench.Sending").newInstance()
        options = _properties(self.jvm, {**_PRODUCING, **self.options})
        producer = self.jvm.org.apache.kafka.clients.producer.KafkaProducer(options)

        def send(records: Iterable[bytes]) -> None:
            waiting = bytearray()
            for record in records:
                waiting += record
                if len(waiting) >= _AT_ONCE:
                    java.send(producer, self.topic.name, waiting)
                    waiting.clear()
            java.send(producer, self.topic.name, waiting)

        try:
            yield send
            producer.flush()
            java.check()
        except Py4JJavaError as error:
            raise WorkbenchError(
                f"Kafka does not take records for {self.topic.url}: {reason(error, self.options)}. About "
                f"{java.taken():,} rows are in the topic; sending again adds to them. Check the servers and the client "
                "settings (max.request.size, for a large record)."
            ) from error
        finally:
            with suppress(Py4JError):
                producer.close(self.jvm.java.time.Duration.ZERO)

    def _administered(self, ask: Callable[[Any], Any]) -> None:
        admin = self.jvm.org.apache.kafka.clients.admin.Admin.create(_properties(self.jvm, self.options))
        try:
            ask(admin).all().get()
        finally:
            admin.close(self.jvm.java.time.Duration.ZERO)

    def _places(self, numbers: Iterable[int]) -> dict[int, Any]:
        place = self.jvm.org.apache.kafka.common.TopicPartition
        return {number: place(self.topic.name, number) for number in numbers}

    def _listed(self, items: Any) -> Any:  # noqa: ANN401 - py4j's
        found = self.jvm.java.util.ArrayList()
        for item in items:
            found.add(item)
        return found


def packed(
    at_ms: int, value: bytes | None, key: bytes | None = None, headers: Sequence[tuple[str, bytes | None]] = ()
) -> bytes:
    """Return a record as bytes: its timestamp, key, value and headers."""
    pairs = b"".join(_sized(name.encode()) + _sized(of) for name, of in headers)
    return b"".join((_LONG.pack(at_ms), _sized(key), _sized(value), _INT.pack(len(headers)), pairs))


def _sized(part: bytes | None) -> bytes:
    return _INT.pack(-1) if part is None else _INT.pack(len(part)) + part


@contextmanager
def reached(topic: Topic, settings: Mapping[str, Any], jvm: Any = None) -> Iterator[Broker]:  # noqa: ANN401
    """Yield the brokers of `topic`; a `QueryError` says why Kafka refuses, or that no server answers.

    Where one still answers, a time-out of ten seconds is a plain `WorkbenchError`, as it may pass.

    `settings` are the client's, as from `workbench.workload.kafka.client_settings`. Without a `jvm` that has the
    client, a small one is started, and ended with the context.
    """
    options = {**PATIENCE, **java_settings(settings), "bootstrap.servers": topic.servers}
    if jvm is None:
        with _own_jvm() as own, reached(topic, settings, own) as broker:
            yield broker
        return
    try:
        consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(_properties(jvm, {**options, **_CONSUMING}))
        try:
            yield Broker(topic, options, jvm, consumer)
        finally:
            with suppress(Py4JError):
                consumer.close(jvm.java.time.Duration.ZERO)
    except Py4JJavaError as error:
        passing = _cause(error).getClass().getSimpleName() in _PASSING and answers(topic)
        kind = WorkbenchError if passing else QueryError  # the next budget may find the broker, or memory, again
        raise kind(
            f"The topic {topic.url} cannot be used: {reason(error, options)}. Check the servers, the topic and "
            "the client settings, then run the same again."
        ) from error


def answers(topic: Topic) -> bool:
    """Whether a server of `topic` accepts a connection."""
    for server in topic.servers.split(","):
        host, _, port = server.rpartition(":")
        with suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S):
            return True
    return False


def offsets_of(topic: Topic, settings: Mapping[str, Any], jvm: Any = None) -> dict[int, tuple[int, int]]:  # noqa: ANN401
    """Return the earliest offset of each partition, and the one after its last record; see `reached`."""
    with reached(topic, settings, jvm) as broker:
        return broker.ends()


@contextmanager
def topic_next_to(topic: Topic, name: str, settings: Mapping[str, Any]) -> Iterator[Topic]:
    """Make a topic next to `topic`, with its name followed by `name` and as many partitions; delete it in the end."""
    own = Topic(topic.servers, f"{topic.name}-{name}")
    with reached(topic, settings) as broker:
        count = len(broker.partitions()) or 1
        with reached(own, settings, broker.jvm) as beside:  # its errors name the topic that cannot be made
            beside.made(count)
    try:
        yield own
    finally:
        with suppress(WorkbenchError), reached(own, settings) as broker:  # a broker that has ended has no topic either
            broker.delete()


def _cause(error: Py4JJavaError) -> Any:  # noqa: ANN401 - py4j's
    cause = error.java_exception
    while (deeper := cause.getCause()) is not None:
        cause = deeper
    return cause


def reason(error: Py4JJavaError, options: Mapping[str, str]) -> str:
    """Return in one line why Java refused, without a secret of `options`."""
    cause = _cause(error)
    said = (cause.getMessage() or cause.getClass().getSimpleName()).strip().splitlines()[0]
    for name, value in options.items():
        if value and is_secret(name):
            said = said.replace(value, HIDDEN)
    return redacted(said).rstrip(".")[:_LONGEST]


@contextmanager
def _own_jvm() -> Iterator[Any]:
    """Start a JVM with the connector's client and what it needs of Spark's jars; end it with the context."""
    import pyspark  # noqa: PLC0415 - importing the workbench must not import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    (bridge,) = jars.glob("py4j-*.jar")
    with tempfile.TemporaryDirectory(prefix="workbench-kafka-") as folder:
        gateway = JavaGateway.launch_gateway(
            jarpath=str(bridge),
            classpath=os.pathsep.join((*connector_jars(), f"{jars}/*")),
            javaopts=["-Xmx512m", "-XX:TieredStopAtLevel=1"],
            java_path=f"{find_java(Path(folder)).home}/bin/java",
            die_on_exit=True,
            enable_auth=True,
        )
        try:
            yield gateway.jvm
        finally:
            gateway.shutdown()
            gateway.java_process.stdin.close()
            gateway.java_process.wait(30)


def _properties(jvm: Any, options: Mapping[str, str]) -> Any:  # noqa: ANN401 - py4j's
    found = jvm.java.util.Properties()
    for name, value in options.items():
        found.setProperty(name, value)
    return found
