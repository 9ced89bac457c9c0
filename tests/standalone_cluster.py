"""Spark's own cluster manager from the PySpark wheel: a master and workers, each worker on a loopback address."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

import pyspark

from workbench.testbed.spark import find_java

HOME = Path(pyspark.__file__).parent
STARTS_S = 180.0
HOST = "127.0.0.1"


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


@dataclass
class Standalone:
    """A running cluster."""

    folder: Path
    port: int
    page: int
    processes: dict = field(default_factory=dict)
    addresses: list = field(default_factory=list)

    @property
    def master(self):
        return f"spark://{HOST}:{self.port}"

    def state(self):
        """What the master says of its workers and applications."""
        with urlopen(f"http://{HOST}:{self.page}/json/", timeout=30) as answer:
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

    def start(self, name, *arguments, address=HOST):
        """Start a daemon in a session of its own, so that all of a machine can be ended at once."""
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SPARK_HOME")}
        environment |= {
            "SPARK_HOME": str(HOME),
            "JAVA_HOME": find_java(self.folder).home,
            "SPARK_LOCAL_IP": address,
            "SPARK_DAEMON_MEMORY": "256m",
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(HOME / "bin" / "spark-class"), *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,  # executors inherit no folder from which the user's modules could be imported
                env=environment,
                start_new_session=True,
            )

    def kill(self, name):
        """End a daemon and everything that it started, as when its machine is lost."""
        process = self.processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def standalone(folder, *, workers=2, cores=1, memory="2g"):
    """Run a master and `workers` on 127.0.0.2 and so on, each with `cores` and `memory`."""
    cluster = Standalone(Path(folder), free_port(), free_port())
    try:
        cluster.start("master", "org.apache.spark.deploy.master.Master", "--host", HOST, "--port", cluster.port,
                      "--webui-port", cluster.page)  # fmt: skip
        for number in range(workers):
            address = f"127.0.0.{number + 2}"
            cluster.addresses.append(address)
            cluster.start(f"worker-{number}", "org.apache.spark.deploy.worker.Worker", "--host", address, "--cores",
                          cores, "--memory", memory, "--webui-port", 0, "-d", cluster.folder / f"work-{number}",
                          cluster.master, address=address)  # fmt: skip
        end = time.monotonic() + STARTS_S
        while cluster.alive() < workers:
            if time.monotonic() > end:
                raise TimeoutError((cluster.folder / "master.log").read_text()[-2000:])
            with suppress(subprocess.TimeoutExpired):
                cluster.processes["master"].wait(0.5)
        yield cluster
    finally:
        for name in list(cluster.processes):
            cluster.kill(name)


if __name__ == "__main__":  # a cluster to try by hand: python tests/standalone_cluster.py FOLDER
    with standalone(Path(sys.argv[1])) as running:
        sys.stdout.write(f"{running.master}\n")
        sys.stdout.flush()
        signal.pause()
