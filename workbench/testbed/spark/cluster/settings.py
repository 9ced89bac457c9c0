"""What must be known about a cluster to measure on it, and the executors and Spark settings of a budget there."""

import hashlib
import ipaddress
import math
import os
import re
import socket
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench import bounds, units
from workbench.checks import within
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.records import ENVIRONMENT_PYTHON, Executor, as_environment, check_place
from workbench.testbed.spark.cluster.storage import check_name, check_there, digest

LOCAL = "local"
_ADDRESS = re.compile(r"spark://[\w.\-]+:\d{1,5}(,[\w.\-]+:\d{1,5})*")
_SERVER = re.compile(r"k8s://(?P<scheme>https?)://(?P<host>[\w.\-]+|\[[\da-fA-F:.]+\])(:(?P<port>\d{1,5}))?(/\S*)?")
_HIGHEST_PORT = 65_535
_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]+:/")
_LOCAL_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})
_CONNECT_S = 5.0
_EXAMPLES = "hdfs://HOST/DIR, s3a://BUCKET/DIR, or file:///MOUNT/DIR for a shared mount"


@dataclass(frozen=True)
class Cluster:
    """A cluster to measure on.

    Everything else, such as credentials, the container image or the queue, comes from your ``spark-defaults.conf``
    (``SPARK_CONF_DIR``), as with ``spark-submit``.

    Parameters
    ----------
    checkpoint
        Folder for checkpoints that the driver and all executors reach, as a URI of Spark's file systems: ``hdfs:``,
        ``s3a:``, or ``file:`` for a shared mount.
    python
        Python interpreter of the executors: a path that exists there and here, or a name on their ``PATH``; None: the
        path of this one.
    environment
        Archive of the executors' Python and its packages, on this machine: ``.tar.gz``, ``.tgz`` or ``.zip``, as
        conda-pack and venv-pack make it. None: what the workers have.
    """

    master: str  # spark://HOST:PORT, k8s://https://HOST:PORT or yarn
    checkpoint: str = ""
    executor_slots: int = 1  # slots of one executor; a budget's slots must be a multiple
    python: str | None = None
    driver_host: str | None = None  # address at which executors reach this machine; None: as it reaches the master
    event_log: str | None = None  # URI of a folder to which each deployment's event log is copied; None: not kept
    allocation_s: float = 120.0  # longest wait for executors, and for each of their Python workers, to start, seconds
    environment: str | None = None

    def __post_init__(self) -> None:
        if self.master == LOCAL:
            raise WorkbenchError("The master 'local' is not a cluster. Leave out the settings of a cluster.")
        if not self.kind or any(port > _HIGHEST_PORT for _, port in self.addresses):
            raise WorkbenchError(
                f"The master is {self.master!r}; it must be local, spark://HOST:PORT, k8s://https://HOST:PORT or yarn, "
                f"with a PORT of at most {_HIGHEST_PORT}. Correct it.",
                settings=("master",),
            )
        if not self.checkpoint:
            raise WorkbenchError(
                f"The master {self.master!r} is a cluster, so checkpoints need a folder that this machine and all "
                f"executors reach. Give one as a URI: {_EXAMPLES}.",
                settings=("checkpoint",),
            )
        for name in ("checkpoint", "event_log"):
            self.check_place(name, getattr(self, name))
        if self.executor_slots < 1:
            raise WorkbenchError(
                f"An executor has {self.executor_slots} slots; it must have at least 1.", settings=("executor_slots",)
            )
        if self.environment is not None:
            check_name(self.environment, self.python)
        within("allocation_s", self.allocation_s, bounds.LEAST_S, bounds.SECONDS, "seconds", ends="[]")

    @property
    def kind(self) -> str:
        """``"standalone"``, ``"kubernetes"`` or ``"yarn"``."""
        server, addresses = _SERVER.fullmatch(self.master), _ADDRESS.fullmatch(self.master)
        kinds = {"standalone": addresses, "kubernetes": server, "yarn": self.master == "yarn"}
        return next((kind for kind, fits in kinds.items() if fits), "")

    @property
    def identity(self) -> str:
        """What a measurement depends on, without the address: reports show no names of machines."""
        packed = [] if self.environment is None else [digest(self.environment)]
        named = "\n".join((self.master, self.checkpoint, self.python or "", *packed))
        many = f"{self.executor_slots} slot{'s' * (self.executor_slots > 1)}"
        return f"{self.kind} cluster {hashlib.sha256(named.encode()).hexdigest()[:8]}, executors of {many}"

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Hosts and ports of the master; none for YARN, whose address is in Hadoop's configuration."""
        if server := _SERVER.fullmatch(self.master):
            port = server["port"] or (80 if server["scheme"] == "http" else 443)
            return ((server["host"].strip("[]"), int(port)),)
        if self.kind != "standalone":
            return ()
        places = (one.rpartition(":") for one in self.master.removeprefix("spark://").split(","))
        return tuple((host, int(port)) for host, _, port in places)

    def check_here(self) -> None:
        """Refuse files for the executors that are missing on this machine."""
        if self.environment is not None:
            check_there(self.environment)

    def check_place(self, name: str, place: str | None) -> None:
        """Refuse a place, of the setting `name`, that the executors cannot reach by its name."""
        if place is None:
            return
        check_place(name, place)
        if not _SCHEME.match(place):
            raise WorkbenchError(
                f"{name} is {place!r}; it must be the URI of a folder that this machine and the executors reach, "
                f"such as {_EXAMPLES}.",
                settings=(name,),
            )

    def check_servers(self, servers: str) -> None:
        """Refuse brokers at addresses by which the executors would look for them on their own machine."""
        hosts = [server.rpartition(":")[0].strip("[]") for server in servers.split(",")]
        if all(map(_loopback, hosts)) and not self._here():
            raise WorkbenchError(
                f"The topic's broker is at {servers}, which each executor takes for itself. Give the address by which "
                "the workers reach it; the broker must advertise that one, too (advertised.listeners).",
                settings=("dataset",),
            )

    def _here(self) -> bool:
        """Whether executors see this machine's loopback: a pod has its own, and a master's may be a tunnel's end."""
        at = [self.driver_host] if self.driver_host else []
        return self.kind == "standalone" and all(map(_loopback, [self.reach() or "", *at]))

    def executors(self, budget: Budget) -> tuple[int, Executor]:
        """Return how many executors `budget` needs, and one of them."""
        if budget.profile.cpus != int(budget.profile.cpus) or budget.profile.cpus < 1:
            raise WorkbenchError(
                f"A slot has {budget.profile.cpus:g} cores; on a cluster it must have whole cores, because Spark "
                "assigns whole cores. Use 1.",
                settings=("slot_cpus",),
            )
        if budget.slots % self.executor_slots:
            raise WorkbenchError(
                f"{units.some(budget.slots, 'slot')} cannot fill executors of {self.executor_slots} slots. Use a "
                f"multiple of {self.executor_slots} slots, or executors of 1 slot.",
                settings=("slots", "executor_slots"),
            )
        return budget.slots // self.executor_slots, Executor(self.executor_slots, budget.profile)

    def reach(self) -> str | None:
        """Connect to the master; return this machine's address on the way to it, None for YARN."""
        failed = []
        for host, port in self.addresses:
            try:
                with socket.create_connection((host, port), _CONNECT_S) as way:
                    return str(way.getsockname()[0])
            except (OSError, UnicodeError) as error:  # UnicodeError: of a name such as a..b
                failed.append(f"{host}:{port}: {getattr(error, 'strerror', None) or error}")
        if failed:
            raise WorkbenchError(
                f"The master {self.master} cannot be reached ({'; '.join(failed)}). Check that it runs, and that its "
                "address and the firewall between are right.",
                settings=("master",),
            )
        return None


def _loopback(host: str) -> bool:
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host.lower().rstrip(".") in _LOCAL_NAMES
    found = getattr(found, "ipv4_mapped", None) or found
    return found.is_loopback or found.is_unspecified


def asked(count: int, executor: Executor) -> str:
    """Describe what is requested of a cluster."""
    cores = executor.millicores // 1000
    return (
        f"{count} executor{'s' * (count != 1)} of {cores} core{'s' * (cores != 1)} and {executor.heap_mb:,} MB of heap"
    )


SLOTS = {
    "standalone": "cores that a standalone cluster counts but does not limit",
    "kubernetes": "cores that Kubernetes limits (CPU limit equal to the request)",
    "yarn": "cores that YARN counts but does not limit",
}
"""What a slot's cores are, by the kind of cluster; Kubernetes alone has hard limits."""

_POD = "spark.kubernetes.driver.pod.name"


def cluster_conf(cluster: Cluster, budget: Budget, address: str | None) -> dict[str, str]:
    """Return the settings that differ from those of a deployment on this machine."""
    count, executor = cluster.executors(budget)
    bound = {"spark.driver.bindAddress": address} if address else {}
    host = {"spark.driver.host": cluster.driver_host or address or ""}
    settings = {"spark.cores.max": str(count * executor.millicores // 1000)}
    if cluster.kind != "standalone":
        overhead = f"{executor.overhead_mb}m"
        settings = {"spark.submit.deployMode": "client", "spark.executor.memoryOverhead": overhead}
    if cluster.kind == "kubernetes":  # pods are requested as a plan exports them
        settings |= {
            "spark.kubernetes.executor.request.cores": f"{executor.millicores}m",
            "spark.kubernetes.executor.limit.cores": f"{executor.millicores}m",
            "spark.kubernetes.executor.podNamePrefix": f"workbench-{uuid.uuid4().hex[:8]}",
        }
    elif cluster.kind == "yarn" and not {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & os.environ.keys():
        raise WorkbenchError(
            "The master is 'yarn', but neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set. Set one of them to the folder "
            "of your cluster's client configuration."
        )
    if cluster.environment is not None:
        archives = "spark.yarn.dist.archives" if cluster.kind == "yarn" else "spark.archives"
        settings |= {
            archives: as_environment(str(Path(cluster.environment).resolve())),
            "spark.pyspark.python": ENVIRONMENT_PYTHON,
            "spark.pyspark.driver.python": sys.executable,
        }
    return {
        **bound,
        **(host if any(host.values()) else {}),
        "spark.executor.instances": str(count),
        "spark.executor.cores": str(executor.millicores // 1000),
        "spark.executor.memory": f"{executor.heap_mb}m",
        "spark.task.cpus": str(int(budget.profile.cpus)),
        "spark.dynamicAllocation.enabled": "false",
        "spark.speculation": "false",
        # A busy worker starts Python slowly; Spark reads whole seconds only.
        "spark.python.authenticate.socketTimeout": f"{math.ceil(cluster.allocation_s)}s",
        **settings,
    }


def owner(
    given: Callable[[str], str | None],
    environment: Mapping[str, str] = os.environ,
    namespace: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace"),
) -> dict[str, str]:
    """Return the setting by which Kubernetes collects the executors with the pod that this process runs in."""
    pod = environment.get("HOSTNAME") if "KUBERNETES_SERVICE_HOST" in environment else None
    if not pod or given(_POD) or not namespace.is_file():
        return {}
    here = namespace.read_text(encoding="utf-8").strip()
    return {_POD: pod} if here == (given("spark.kubernetes.namespace") or "default") else {}


def merged_with_yours(cluster: Cluster, given: Callable[[str], str | None], java_options: str) -> dict[str, str]:
    """Return the settings that depend on those of your ``spark-defaults.conf``."""
    options = "spark.executor.extraJavaOptions"
    return {
        options: " ".join(filter(None, (given(options), java_options))),
        **(owner(given) if cluster.kind == "kubernetes" else {}),
    }
