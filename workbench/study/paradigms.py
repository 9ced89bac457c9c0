"""Elasticutor's paradigms on one load: a keyed operator, its cluster and its keys, by names and numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import TypeVar

from workbench import bounds
from workbench.errors import WorkbenchError
from workbench.scaling.elastic import (
    PARADIGMS,
    ElasticCluster,
    ElasticSettings,
    ExecutorAdvice,
    KeyedOperator,
    ParadigmRun,
    advise_executors,
    compare_paradigms,
)
from workbench.simulation import KeyTrace, RateTrace
from workbench.study.scaling import series_csv, whole_numbers

KEYED = "keyed"
"""Name of the keyed operator, as a query of ``workbench replay``."""
MOST_SECONDS = 3600.0  # a paradigm is simulated in steps of 10 ms
SERIES = ("paradigm", "time_s", "throughput_per_s", "latency_s")
_WARM_UP_SHARE, _WARM_UP_S = 0.1, 10.0
_AS_THEY_ARE: Mapping[str, float] = MappingProxyType({})
Group = TypeVar("Group", KeyedOperator, ElasticSettings)


@dataclass(frozen=True, eq=False)
class ReplayedParadigms:
    """A load on a keyed operator under several paradigms, and how many executors and shards Elasticutor has for it."""

    trace: RateTrace
    operator: KeyedOperator
    cluster: ElasticCluster
    runs: tuple[ParadigmRun, ...]
    advice: ExecutorAdvice

    @property
    def rows(self) -> dict[str, dict[str, float]]:
        """One row of `ParadigmRun.summary` by paradigm."""
        return {run.paradigm: run.summary() for run in self.runs}


def replay_paradigms(
    trace: RateTrace,
    keys: KeyTrace,
    paradigms: Sequence[str] = PARADIGMS,
    *,
    cluster: ElasticCluster | None = None,
    settings: Mapping[str, float] = _AS_THEY_ARE,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> ReplayedParadigms:
    """Replay `trace`, for at most an hour, on one keyed operator under each of `paradigms`, with the same keys.

    The totals exclude the first 10 s, or the first tenth of a shorter load. By default there are 4 nodes of 8 cores
    with one executor each; `settings` are fields of `KeyedOperator` and `ElasticSettings` that differ from the
    defaults.
    """
    unknown = [name for name in paradigms if name not in PARADIGMS]
    if unknown or not paradigms:
        missing = f"There is no paradigm {unknown[0]!r}" if unknown else "There are no paradigms"
        raise WorkbenchError(f"{missing}; use one of {', '.join(PARADIGMS)}.")
    if trace.duration_s > MOST_SECONDS:
        raise WorkbenchError(
            f"The load lasts {trace.duration_s:g} s; a keyed operator is replayed for at most {MOST_SECONDS:g} s. "
            "Cut the load to the part of interest."
        )
    known = [one.name for kind in (KeyedOperator, ElasticSettings) for one in fields(kind)]
    strange = [name for name in settings if name not in known]
    if strange:
        raise WorkbenchError(f"A keyed operator has no setting {strange[0]!r}; it has {', '.join(known)}.")
    nodes = ElasticCluster(nodes=4, node_cores=8) if cluster is None else cluster
    if nodes.cores > bounds.KEYED_CORES:
        raise WorkbenchError(
            f"The workers have {nodes.cores:,} slots; a keyed operator is replayed on at most {bounds.KEYED_CORES:,}. "
            "Give fewer workers, or fewer slots of each.",
            settings=("workers", "worker_slots"),
        )
    operator = _with(KeyedOperator(executors=nodes.nodes, upstream=nodes.nodes), settings)
    runs = compare_paradigms(
        operator,
        nodes,
        keys,
        [name for name in PARADIGMS if name in paradigms],
        rate=trace,
        warm_up_s=min(_WARM_UP_S, _WARM_UP_SHARE * trace.duration_s),
        settings=_with(ElasticSettings(), settings),
        seed=seed,
        progress=progress,
    )
    advice = advise_executors(nodes.nodes, nodes.node_cores, key_counts=keys.shares.tolist())
    return ReplayedParadigms(trace, operator, nodes, runs, advice)


def paradigms_csv(replayed: ReplayedParadigms) -> str:
    """Write throughput and mean latency of every second of every paradigm as comma-separated text."""
    runs = replayed.runs
    return series_csv(SERIES, ((run.paradigm, (run.time_s, run.throughput_series, run.latency_series)) for run in runs))


def _with(group: Group, settings: Mapping[str, float]) -> Group:
    """Return `group` with those of `settings` that it has."""
    own = {one.name for one in fields(group)}
    return replace(group, **whole_numbers({name: value for name, value in settings.items() if name in own}))
