"""The setting of Elasticutor's experiments: a cluster of equal nodes and one operator with keyed state."""

from dataclasses import dataclass

from workbench.checks import not_negative, positive, whole


@dataclass(frozen=True)
class ElasticCluster:
    """Nodes of equal size.

    Parameters
    ----------
    nodes, node_cores
        n and c_i of Elasticutor.
    network_bytes_per_s
        Network of each node, in each direction; 1 Gbit/s in the paper.
    """

    nodes: int = 32
    node_cores: int = 8
    network_bytes_per_s: float = 125e6

    def __post_init__(self) -> None:
        whole("nodes", self.nodes, 1)
        whole("node_cores", self.node_cores, 1)
        positive("network_bytes_per_s", self.network_bytes_per_s)

    @property
    def cores(self) -> int:
        """Cores of all nodes."""
        return self.nodes * self.node_cores


@dataclass(frozen=True)
class KeyedOperator:
    """A stateful operator whose keys are hashed to shards; defaults as in Elasticutor, section 5.1.

    Parameters
    ----------
    cpu_s
        Mean CPU seconds per record.
    variation
        Squared coefficient of variation of the CPU seconds; N(mu, 0.5 mu) in the paper, in ms.
    record_bytes, output_bytes
        Size of a record, and of its output; the paper's operator has no consumer.
    shard_bytes
        State of one shard.
    executors, shards
        y executors with z shards each. The static and resource-centric paradigms use the same ``y * z`` shards.
    upstream
        Executors that send to this operator, spread evenly over the nodes.
    queue
        Records that may wait for a core before the sources are held back; not in the paper. An executor's receive
        buffer has 1024 in Storm, and eight cores share that of an elastic executor. With 1024 per core, queues last a
        second, even out keys that are shuffled every four, and the throughput rises with the shuffles (Figure 6).
    """

    cpu_s: float = 1e-3
    variation: float = 0.5
    record_bytes: float = 128.0
    output_bytes: float = 0.0
    shard_bytes: float = 32 * 1024.0
    executors: int = 32
    shards: int = 256
    upstream: int = 32
    queue: int = 128

    def __post_init__(self) -> None:
        positive("cpu_s", self.cpu_s)
        for name in ("variation", "record_bytes", "output_bytes", "shard_bytes"):
            not_negative(name, getattr(self, name))
        for name in ("executors", "shards", "queue"):
            whole(name, getattr(self, name), 1)
        whole("upstream", self.upstream, 0)
