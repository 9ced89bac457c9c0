"""How many executors an operator should have, and how many shards each (Elasticutor, section 5.3)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workbench import units
from workbench.checks import not_negative, not_negatives, require, whole
from workbench.scaling.elastic.assignment import DEFAULT_THRESHOLD

HIGHLY_DYNAMIC = 16.0  # key shuffles per minute of the paper's highly dynamic workload
LEAST_SHARDS, MOST_SHARDS = 256, 1024
SHARDS_PER_TASK = 8  # 4 to 8 balance well (section 3.1)
HEADROOM = 2  # an executor may grow to twice its even share of the cores


@dataclass(frozen=True)
class ExecutorAdvice:
    """Executors of one operator (the paper's y), shards per executor (z), and why."""

    executors: int
    shards: int
    reasons: tuple[str, ...]


def advise_executors(
    nodes: int,
    node_cores: int,
    *,
    operator_cores: int | None = None,
    data_intensity: float = 0.0,
    shuffles_per_minute: float = 0.0,
    key_counts: Sequence[float] | None = None,
) -> ExecutorAdvice:
    """Return the executors and shards for one operator by the rules of section 5.3.

    One executor per node; two if records are large or the popularity of keys changes often, because few executors then
    pay for remote cores and migration; never as many as cores, which would be the static paradigm. Eight shards per
    task that an executor may grow to, between 256 and 1024, in powers of two.

    Parameters
    ----------
    operator_cores
        Cores that the operator needs; all cores of the cluster by default.
    data_intensity
        Bytes/s in and out per core.
    key_counts
        Frequency of every key, if known: a key is never split, so there are no more useful shards than keys and no
        more useful cores than total / largest. Where only the most frequent keys are counted, pass the shares of
        `KeyTrace.from_counts`, which spreads the others.
    """
    nodes, node_cores = whole("nodes", nodes, 1), whole("node_cores", node_cores, 1)
    cores = nodes * node_cores if operator_cores is None else whole("operator_cores", operator_cores, 1)
    intensive = not_negative("data_intensity", data_intensity) > DEFAULT_THRESHOLD
    dynamic = not_negative("shuffles_per_minute", shuffles_per_minute) >= HIGHLY_DYNAMIC
    reasons = []
    if intensive or dynamic:
        executors = 2 * nodes
        cause = "many bytes per core" if intensive else "frequent shuffles of the keys"
        reasons.append(f"two executors per node: {cause} make remote cores expensive")
    else:
        executors = nodes
        reasons.append("one executor per node: each can grow on its own node")
    if executors > max(1, cores // 2):
        executors = max(1, cores // 2)
        reasons.append(f"at most {executors}: with fewer than two cores each, executors could not shrink or grow")
    tasks = max(node_cores, math.ceil(HEADROOM * cores / executors))
    shards = min(MOST_SHARDS, max(LEAST_SHARDS, 2 ** math.ceil(math.log2(SHARDS_PER_TASK * tasks))))
    sizes = [f"{shards:,} shards each: {SHARDS_PER_TASK} per task, within {LEAST_SHARDS} to {MOST_SHARDS}"]
    if key_counts is not None:
        counted = not_negatives("The count of key {}", key_counts)
        require(any(counted), "key_counts has no key with a count above 0. Count the keys, or leave it out.")
        keys = sum(count > 0 for count in counted)
        if keys < executors * shards:
            shards = max(1, keys // executors)
            each, there = "is" if shards == 1 else "are", "is" if keys == 1 else "are"
            sizes = [f"{units.some(shards, 'shard')} each {each} enough: there {there} only {units.some(keys, 'key')}"]
        useful = math.fsum(counted) / max(counted)
        if useful < cores:
            few = f"{useful:.3g}"
            sizes.append(
                f"with {few} core{'s' * (few != '1')} the most frequent key alone fills a core; more cores do not help"
            )
    reasons += sizes
    return ExecutorAdvice(executors, shards, tuple(reasons))
