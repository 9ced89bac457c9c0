"""Spark's own cluster manager from the PySpark wheel: a master and workers, each worker on an address of its own.

The addresses are of the loopback network or, where ``apart``, of network namespaces: then a worker reaches the driver
and the other workers over a bridge only, as over a network, and shares no port with them.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

import pyspark

from workbench.testbed.spark import CpuQuota, find_java
from workbench.testbed.spark.driver.cores import COMPILERS
from workbench.testbed.spark.machine.quota import family

HOME = Path(pyspark.__file__).parent
WORKERS = 2
STARTS_S, ENDS_S = 180.0, 20.0
LOOPBACK = "127.0.0.1"


def free_port():
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def ip(*arguments):
    subprocess.run(["ip", *map(str, arguments)], check=True, capture_output=True, text=True)


@contextmanager
def namespaces():
    """Make a network namespace for each worker on a bridge; give the bridge's address, and theirs by name.

    It raises OSError or CalledProcessError where this machine has no ``ip``, or does not permit it.
    """
    number = os.getpid() % 250
    bridge, network = f"workbench{number}", f"10.213.{number}"
    with ExitStack() as made:
        ip("link", "add", bridge, "type", "bridge")
        made.callback(ip, "link", "del", bridge)
        ip("addr", "add", f"{network}.1/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        addresses = {}
        for place in range(WORKERS):
            name, link = f"{bridge}-{place}", f"wb{number}-{place}"
            ip("netns", "add", name)
            made.callback(ip, "netns", "del", name)  # and its end of the link with it
            ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", link, "master", bridge, "up")
            addresses[name] = f"{network}.{place + 2}"
            ip("-n", name, "addr", "add", f"{addresses[name]}/24", "dev", "eth0")
            for one in ("lo", "eth0"):
                ip("-n", name, "link", "set", one, "up")
        yield f"{network}.1", addresses


@dataclass
class Standalone:
    """A running cluster."""

    folder: Path
    host: str
    port: int
    page: int
    processes: dict = field(default_factory=dict)
    addresses: list = field(default_factory=list)
    quotas: dict = field(default_factory=dict)

    @property
    def master(self):
        return f"spark://{self.host}:{self.port}"

    def state(self):
        """What the master says of its workers and applications."""
        with urlopen(f"http://{self.host}:{self.page}/json/", timeout=30) as answer:
            return json.load(answer)

    def alive(self):
        """Number of live workers; 0 while the master does not answer."""
        with suppress(OSError):
            return sum(one["state"] == "ALIVE" for one in self.state()["workers"])
        return 0

    def executors(self):
        """Processes of executors on the workers."""
        listed = subprocess.run(["ps", "-wweo", "args"], capture_output=True, text=True, check=True).stdout
        ours = tuple(f"--worker-url spark://Worker@{address}:" for address in self.addresses)
        return [line for line in listed.splitlines() if any(worker in line for worker in ours)]

    def start(self, name, *arguments, address, namespace=None):
        """Start a daemon in a session of its own, so that all of a machine can be ended at once."""
        inside = ["ip", "netns", "exec", namespace] if namespace else []
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SPARK_HOME")}
        environment |= {
            "SPARK_HOME": str(HOME),
            "JAVA_HOME": find_java(self.folder).home,
            "SPARK_LOCAL_IP": address,
            "SPARK_DAEMON_MEMORY": "256m",
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*inside, str(HOME / "bin" / "spark-class"), *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,  # executors inherit no folder from which the user's modules could be imported
                env=environment,
                start_new_session=True,
            )

    def limit(self, name, cpus):
        """Let a worker and its executors use `cpus` cores, the compilers apart, as slots here do; None: all."""
        if name not in self.quotas:
            self.quotas[name] = CpuQuota.create(f"{self.folder.name}-{name}")
            self.quotas[name].add(self.processes[name].pid)
        self.quotas[name].limit(cpus)
        for process in family(self.processes[name].pid):
            self.quotas[name].exempt(process, COMPILERS)

    def kill(self, name):
        """End a daemon and everything that it started, as when its machine is lost."""
        process = self.processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if name in self.quotas:
            quota, end = self.quotas.pop(name), time.monotonic() + ENDS_S
            while quota.processes() and time.monotonic() < end:
                time.sleep(0.1)
            quota.remove()


@contextmanager
def standalone(folder, *, cores=1, apart=False):
    """Run a master and two workers, each with `cores` that are counted, and where `apart` with a network of its own."""
    with ExitStack() as stack:
        if apart:
            host, addresses = stack.enter_context(namespaces())
        else:
            host, addresses = LOOPBACK, {number: f"127.0.0.{number + 2}" for number in range(WORKERS)}
        cluster = Standalone(Path(folder), host, free_port(), free_port())
        stack.callback(lambda: [cluster.kill(name) for name in list(cluster.processes)])
        cluster.start("master", "org.apache.spark.deploy.master.Master", "--host", host, "--port", cluster.port,
                      "--webui-port", cluster.page, address=host)  # fmt: skip
        for number, (name, address) in enumerate(addresses.items()):
            cluster.addresses.append(address)
            cluster.start(f"worker-{number}", "org.apache.spark.deploy.worker.Worker", "--host", address, "--cores",
                          cores, "--memory", "2g", "--webui-port", 0, "-d", cluster.folder / f"work-{number}",
                          cluster.master, address=address, namespace=name if apart else None)  # fmt: skip
        end = time.monotonic() + STARTS_S
        while cluster.alive() < WORKERS:
            if time.monotonic() > end:
                raise TimeoutError((cluster.folder / "master.log").read_text()[-2000:])
            with suppress(subprocess.TimeoutExpired):
                cluster.processes["master"].wait(0.5)
        yield cluster


if __name__ == "__main__":  # a cluster to try by hand: python tests/support/standalone_cluster.py FOLDER
    with standalone(Path(sys.argv[1])) as running:
        sys.stdout.write(f"{running.master}\n")
        sys.stdout.flush()
        signal.pause()
