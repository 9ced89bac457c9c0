"""CAPSys's six queries (section 6.1) as query models, from the authors' published profiles.

Tasks, loads of one task and source rates are those of the public artefact, repository CASP-Systems-BU/CAPSys (Apache
License 2.0): ``scripts/caps-go/json/singlequery_8slot`` for four workers of eight slots, rates and the tasks of the
large deployment in ``scripts/expjson/multi.json``. Operators are unchained (section 6.1), sources are tasks.

How they are read here: `cpu` is in thousandths of a core of the whole process, RocksDB's threads included, up to 1.88
cores for one task of Q2-join; a task is one thread in the engine, so CPU counts in pairs of cores and the fullest task
stays below one. `io` is read as kB/s of state, `net` as MB/s of output (Q3-inf then sends 391 kB a record, an image
of 128 x 128 pixels in three channels of doubles). Every operator passes on as many records as it gets; costs per record
are such that the loads are the published ones. Windows cost their average: no bursts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.simulation.model import OperatorModel, QueryModel

_PAIR_OF_CORES = 2000.0
_KB, _MB = 1e3, 1e6


class _Row(NamedTuple):
    name: str
    tasks: int
    cpu: float
    io: float
    net: float
    feeds: str | None
    rate: float = 0.0  # of a source, records/s


_PROFILES: Mapping[str, tuple[_Row, ...]] = {
    "Q1-sliding": (
        _Row("source", 1, 54.558, 0, 1.69155, "transform", 18_000),
        _Row("transform", 6, 387.207, 0, 0.13944, "sliding window"),
        _Row("sliding window", 18, 666.877, 15_360.4, 0.32494, "sink"),
        _Row("sink", 1, 18.712, 0, 0, None),
    ),
    "Q2-join": (
        _Row("auctions", 4, 700.597, 0, 23.68631, "transform auctions", 52_000),
        _Row("transform auctions", 6, 700.348, 0, 7.24478, "window join"),
        _Row("persons", 1, 147.609, 0, 4.25130, "transform persons", 20_800),
        _Row("transform persons", 1, 270.402, 0, 3.91315, "window join"),
        _Row("window join", 8, 1880.537, 23_089.6, 0.22532, "sink"),
        _Row("sink", 1, 30.667, 0, 0, None),
    ),
    "Q3-inf": (
        _Row("source", 5, 741.652, 0, 44.60072, "transform", 570),
        _Row("transform", 8, 826.991, 0, 27.86468, "compress"),
        _Row("compress", 6, 769.730, 0, 1.78991, "inference"),
        _Row("inference", 4, 1045.162, 0, 0.07635, "sink"),
        _Row("sink", 1, 19.747, 0, 0, None),
    ),
    "Q4-join": (
        _Row("auctions", 6, 639.070, 0, 29.36402, "incremental join", 58_000),
        _Row("persons", 2, 360.102, 0, 11.65289, "filter", 52_200),
        _Row("filter", 2, 387.266, 0, 5.82683, "incremental join"),
        _Row("incremental join", 12, 756.727, 3_261.8, 0.84874, "sink"),
        _Row("sink", 1, 135.466, 0, 0, None),
    ),
    "Q5-aggregate": (
        _Row("auctions", 2, 240.997, 0, 6.24178, "join", 50_000),
        _Row("bids", 2, 93.400, 0, 2.20989, "join", 50_000),
        _Row("join", 12, 620.266, 29_620.1, 0.27521, "aggregate"),
        _Row("aggregate", 6, 533.683, 219_697.7, 0.55025, "sink"),
        _Row("sink", 1, 26.735, 0, 0, None),
    ),
    "Q6-session": (
        _Row("source", 4, 137.013, 0, 5.71068, "session window", 60_000),
        _Row("session window", 18, 750.642, 19_329.6, 0.01952, "sink"),
        _Row("sink", 1, 17.025, 0, 0, None),
    ),
}

CAPSYS_QUERIES: tuple[str, ...] = tuple(_PROFILES)  # names that `capsys_query` knows


@dataclass(frozen=True)
class ProfiledQuery:
    """A query with the deployment it was profiled in."""

    model: QueryModel
    tasks: Mapping[str, int]
    rate: float

    @property
    def profiles(self) -> dict[str, OperatorProfile]:
        """Unit costs by operator."""
        return {name: model.profile for name, model in self.model.operators.items()}

    def rates(self, rate: float | None = None) -> dict[str, float]:
        """Records/s of every source at `rate` of all together, by default the profiled one."""
        total = self.rate if rate is None else rate
        return {name: total * share for name, share in self.model.source_shares.items()}

    def rate_for(self, tasks: Mapping[str, int]) -> float:
        """Rate at which the operator of most CPU has the load per task that it was profiled at."""
        fullest = max(_PROFILES[self.model.name], key=lambda row: row.cpu)
        return self.rate * tasks[fullest.name] / fullest.tasks


@lru_cache(maxsize=len(CAPSYS_QUERIES))
def capsys_query(name: str) -> ProfiledQuery:
    """One of CAPSys's queries: ``"Q1-sliding"``, ``"Q2-join"``, ``"Q3-inf"``, ``"Q4-join"``, ``"Q5-aggregate"``, ..."""
    if name not in _PROFILES:
        raise WorkbenchError(f"CAPSys has no query {name!r}; it has {', '.join(CAPSYS_QUERIES)}. Use one of these.")
    rows = _PROFILES[name]
    arriving = {row.name: row.rate for row in rows}  # records/s of every operator
    for row in rows:  # they stand after those that feed them
        if row.feeds is not None:
            arriving[row.feeds] += arriving[row.name]
    total = sum(row.rate for row in rows)
    flow = Dataflow(
        name,
        tuple(Operator(row.name, "source" if row.rate else "operator", row.io > 0) for row in rows),
        tuple(Edge(row.name, row.feeds) for row in rows if row.feeds is not None),
    )
    models = {
        row.name: OperatorModel(
            OperatorProfile(
                row.cpu / _PAIR_OF_CORES * row.tasks / arriving[row.name],
                row.io * _KB * row.tasks / arriving[row.name],
                row.net * _MB * row.tasks / arriving[row.name],
                0.0 if row.feeds is None else 1.0,
            )
        )
        for row in rows
    }
    shares = {row.name: row.rate / total for row in rows if row.rate}
    return ProfiledQuery(
        QueryModel(flow, models, source_shares=shares), MappingProxyType({row.name: row.tasks for row in rows}), total
    )
