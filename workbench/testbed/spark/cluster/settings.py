"""What must be known about a cluster to measure on it, and the executors that a budget becomes there."""

import hashlib
import ipaddress
import re
import socket
from dataclasses import dataclass

from workbench import bounds, units
from workbench.checks import within
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.records import Executor, check_place
from workbench.testbed.spark.cluster import environment as environments

LOCAL = "local"
_ADDRESS = re.compile(r"spark://[\w.\-]+:\d{1,5}(,[\w.\-]+:\d{1,5})*")
_SERVER = re.compile(r"k8s://(?P<scheme>https?)://(?P<host>[\w.\-]+|\[[\da-fA-F:.]+\])(:(?P<port>\d{1,5}))?(/\S*)?")
_HIGHEST_PORT = 65_535
_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]+:/")
_LOCAL_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})
_CONNECT_S = 5.0
_EXAMPLES = "hdfs://HOST/DIR, s3a://BUCKET/DIR, or file:///MOUNT/DIR for a shared mount"


def kind_of(master: str) -> str:
    """Return the kind of a master: ``"local"``, ``"standalone"``, ``"kubernetes"`` or ``"yarn"``."""
    kinds = {"standalone": _ADDRESS.fullmatch(master), "kubernetes": _SERVER.fullmatch(master)}
    found = master if master in (LOCAL, "yarn") else next((kind for kind, fits in kinds.items() if fits), None)
    if found is None or any(port > _HIGHEST_PORT for _, port in _addresses(found, master)):
        raise WorkbenchError(
            f"The master is {master!r}; it must be local, spark://HOST:PORT, k8s://https://HOST:PORT or yarn, with a "
            f"PORT of at most {_HIGHEST_PORT}. Correct it.",
            settings=("master",),
        )
    return found


def _addresses(kind: str, master: str) -> tuple[tuple[str, int], ...]:
    """Hosts and ports of a well-formed master."""
    if server := _SERVER.fullmatch(master):
        port = server["port"] or (80 if server["scheme"] == "http" else 443)
        return ((server["host"].strip("[]"), int(port)),)
    if kind != "standalone":
        return ()
    places = (one.rpartition(":") for one in master.removeprefix("spark://").split(","))
    return tuple((host, int(port)) for host, _, port in places)


@dataclass(frozen=True)
class Cluster:
    """A cluster to measure on.

    Everything else, such as credentials, the container image or the queue, comes from your ``spark-defaults.conf``
    (``SPARK_CONF_DIR``), as with ``spark-submit``.

    Parameters
    ----------
    master
        ``spark://HOST:PORT``, ``k8s://https://HOST:PORT`` or ``yarn``.
    checkpoint
        Folder for checkpoints that the driver and all executors reach, as a URI of Spark's file systems: ``hdfs:``,
        ``s3a:``, or ``file:`` for a shared mount.
    executor_slots
        Slots of one executor; a budget's slots must be a multiple.
    python
        Python interpreter of the executors: a path that exists there and here, or a name on their ``PATH``; None: the
        path of this one.
    environment
        Archive of the executors' Python and its packages, on this machine: ``.tar.gz``, ``.tgz`` or ``.zip``, as
        conda-pack and venv-pack make it. None: what the workers have.
    driver_host
        Address at which the executors reach this machine; None: the one from which it reaches the master.
    event_log
        Folder, as a URI, to which each deployment's event log is copied at its end; None: it is not kept.
    allocation_s
        Longest wait for executors, and for each of their Python workers to start, seconds.
    """

    master: str
    checkpoint: str = ""
    executor_slots: int = 1
    python: str | None = None
    driver_host: str | None = None
    event_log: str | None = None
    allocation_s: float = 120.0
    environment: str | None = None

    def __post_init__(self) -> None:
        if kind_of(self.master) == LOCAL:
            raise WorkbenchError("The master 'local' is not a cluster. Leave out the settings of a cluster.")
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
            environments.check_name(self.environment, self.python)
        within("allocation_s", self.allocation_s, bounds.LEAST_S, bounds.SECONDS, "seconds", ends="[]")

    @property
    def kind(self) -> str:
        """``"standalone"``, ``"kubernetes"`` or ``"yarn"``."""
        return kind_of(self.master)

    @property
    def identity(self) -> str:
        """What a measurement depends on, without the address: reports show no names of machines."""
        packed = [] if self.environment is None else [environments.digest(self.environment)]
        named = "\n".join((self.master, self.checkpoint, self.python or "", *packed))
        many = f"{self.executor_slots} slot{'s' * (self.executor_slots > 1)}"
        return f"{self.kind} cluster {hashlib.sha256(named.encode()).hexdigest()[:8]}, executors of {many}"

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Hosts and ports of the master; none for YARN, whose address is in Hadoop's configuration."""
        return _addresses(self.kind, self.master)

    def check_here(self) -> None:
        """Refuse files for the executors that are missing on this machine."""
        if self.environment is not None:
            environments.check_there(self.environment)

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
