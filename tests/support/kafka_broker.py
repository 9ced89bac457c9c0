"""A real Kafka broker (KRaft, one JVM) on loopback, its jars from Maven Central by the Ivy that PySpark brings."""

import fcntl
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark
from standalone_cluster import free_port

from workbench.testbed.spark import find_java

VERSION = "4.1.1"
JARS = Path(__file__).parents[2] / ".venv" / f"kafka-{VERSION}"
STARTS_S, STOPS_S, FETCH_S = 240.0, 20.0, 600.0
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
"""
TLS = """
listeners=SSL://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=SSL://127.0.0.1:{port}
inter.broker.listener.name=SSL
listener.security.protocol.map=CONTROLLER:PLAINTEXT,SSL:SSL
ssl.client.auth=required
ssl.keystore.type=PEM
ssl.keystore.location={folder}/broker.pem
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
"""


class NoMavenError(Exception):
    """The broker's jars cannot be had."""


def java_of(folder):
    return f"{find_java(folder).home}/bin/java"


def jars(folder):
    """The broker's class path, fetched once."""
    JARS.mkdir(parents=True, exist_ok=True)
    with (JARS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of the processes that run tests side by side one fetches
        return _fetched(folder)


def _fetched(folder):
    if not (JARS / "done").exists():
        (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
        java = java_of(folder)
        command = [java, "-jar", ivy, "-dependency", "org.apache.kafka", "kafka_2.13", VERSION, "-confs", "default",
                   "-retrieve", f"{JARS}/[artifact]-[revision].[ext]", "-cache", folder / "ivy"]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise NoMavenError(f"nothing came within {FETCH_S:g} s") from error
        if done.returncode or not list(JARS.glob("kafka_2.13-*.jar")):
            reason = next(
                (line.strip() for line in done.stdout.splitlines() if "not found" in line or "ERROR" in line), ""
            )
            raise NoMavenError(reason or done.stderr.strip()[-200:])
        (JARS / "done").touch()
    return f"{JARS}/*"


def certified(folder):
    """Make an authority, and certificates by it for the broker and a client; give the client's settings."""

    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, cwd=folder)

    new = ("-newkey", "rsa:2048", "-nodes")
    openssl("req", "-x509", *new, "-subj", "/CN=authority", "-days", 1, "-keyout", "ca.key", "-out", "ca.pem")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for name in ("broker", "client"):
        openssl("req", *new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", 1, "-extfile", "names", "-out", f"{name}.crt")  # fmt: skip
    (folder / "broker.pem").write_text((folder / "broker.key").read_text() + (folder / "broker.crt").read_text())
    return {
        "security.protocol": "SSL",
        "ssl.ca.location": str(folder / "ca.pem"),
        "ssl.certificate.location": str(folder / "client.crt"),
        "ssl.key.location": str(folder / "client.key"),
    }


class Broker:
    """One broker; it keeps its topics when it is stopped and started again."""

    def __init__(self, folder, *, tls=False):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.port, self._process = folder, free_port(), None
        self._java, self._classes = java_of(folder), jars(folder)
        self._settings = folder / "broker.properties"
        text = SETTINGS + TLS * tls  # of a setting that is given twice the last counts
        self._settings.write_text(text.format(port=self.port, controller=free_port(), folder=folder))
        self.client = certified(folder) if tls else {}
        self._ran("kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", self._settings)

    @property
    def servers(self):
        return f"127.0.0.1:{self.port}"

    def url(self, topic):
        return f"kafka://{self.servers}/{topic}"

    def _command(self, main, *arguments):
        return [self._java, "-Xmx512m", "-cp", self._classes, main, *map(str, arguments)]

    def _ran(self, main, *arguments):
        done = subprocess.run(self._command(main, *arguments), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self):
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(self._command("kafka.Kafka", self._settings), stdout=log, stderr=log)
        end = time.monotonic() + STARTS_S
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
                return  # a client waits for the rest
            assert time.monotonic() < end, (self.folder / "broker.log").read_text()[-2000:]
            assert self._process.poll() is None, (self.folder / "broker.log").read_text()[-2000:]
            time.sleep(0.1)

    def stop(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOPS_S)
            self._process = None


@contextmanager
def running(folder, *, tls=False):
    broker = Broker(folder, tls=tls)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
