"""The state of a running query, from its progress events: rows, memory, growth, and the cost of keeping it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from workbench.testbed.spark import rows_of, seconds_of

DAY_S = 86_400.0
_KEPT = 512  # most readings of an operator; then every other one is dropped
_FEWEST = 20  # fewest readings that show growth
_GROWN = 0.05  # of the state; if it changes by less, it does not grow
_HITS = (
    ("rocksdbReadBlockCacheHitCount", "rocksdbReadBlockCacheMissCount"),
    ("loadedMapCacheHitCount", "loadedMapCacheMissCount"),
)
_PER_BATCH = "rocksdb"  # prefix of metrics that count per batch; others count since the start
_FILES = "rocksdbSstFileSize"
_COMPACTION = ("rocksdbTotalCompactionLatencyMs", "rocksdbCommitCompactLatency")
_COUNTED = frozenset((*_COMPACTION, *chain(*_HITS)))
_BROKEN = (TypeError, ValueError, AttributeError, OverflowError)


@dataclass(frozen=True)
class StateSeen:
    """An operator with state."""

    operator: str  # Spark's name, or its index
    # partitions, instances: of its state, and stores of all of them together: a join of two streams has four in a
    # partition. 0: not known
    partitions: int
    instances: int
    # rows, memory_bytes: at the end; the memory as Spark counts it, of the whole operator
    rows: int
    memory_bytes: int
    # rows_per_day, memory_per_day: how fast they grow; 0 where they come and go, and of memory where RocksDB keeps the
    # rows on disk: what it takes is caches, which fill
    rows_per_day: float
    memory_per_day: float
    # commit_s, batch_s: of a batch, their means: committing, summed over partitions; from trigger to commit
    commit_s: float
    batch_s: float
    hit_rate: float | None  # share of reads that a cache answered; None: not known
    compaction_s: float | None  # of a batch, its mean, summed over partitions; None: not known
    dropped: int  # rows that came after the watermark had passed them
    # lag_s, lag_grew_s: how far the watermark is behind the batches at the end, and by how much more than when it first
    # moved; None without one, or before it moved
    lag_s: float | None
    lag_grew_s: float = 0.0
    # how fast RocksDB's files grow with its rows, bytes; without them it is what compaction takes away again
    disk_per_day: float = 0.0

    def in_turns_s(self, summed_s: float, slots: int) -> float:
        """Return how long work of `summed_s` over all partitions lasts, in turns on the slots; 0: unknown."""
        if not self.partitions:
            return 0.0
        turns = -(-self.partitions // slots) if slots else 1
        return summed_s / self.partitions * turns

    def full_s(self, memory_bytes: float) -> float | None:
        """Seconds until the growing state takes `memory_bytes`; 0 if it does already, None if it never will."""
        if self.memory_bytes >= memory_bytes:
            return 0.0
        if self.memory_per_day <= 0:
            return None
        return (memory_bytes - self.memory_bytes) / self.memory_per_day * DAY_S


@dataclass
class _Operator:
    name: str = ""
    partitions: int = 0
    instances: int = 0
    readings: list[tuple[float, int, int, int]] = field(default_factory=list)  # time, rows, bytes in memory, on disk
    every: int = 1  # one of this many readings is kept
    seen: int = 0
    batches: int = 0
    commit_ms: float = 0.0
    batch_s: float = 0.0
    dropped: int = 0
    custom: dict[str, float] = field(default_factory=dict)

    def take(self, told: Mapping[str, Any], at_s: float, batch_s: float, *, ran: bool) -> None:
        self.name = str(told.get("operatorName") or self.name)
        self.partitions = int(told.get("numShufflePartitions") or self.partitions)
        self.instances = int(told.get("numStateStoreInstances") or self.instances)
        custom = told.get("customMetrics") or {}
        if ran:
            self.dropped += int(told.get("numRowsDroppedByWatermark") or told.get("numLateInputs") or 0)
            if told.get("commitTimeMs"):
                self.batches += 1
                self.commit_ms += float(told["commitTimeMs"])
                self.batch_s += batch_s
            for name in _COUNTED & custom.keys():
                before = self.custom.get(name, 0.0) if name.startswith(_PER_BATCH) else 0.0
                self.custom[name] = before + float(custom[name] or 0)
        if self.seen % self.every == 0:
            sizes = told.get("numRowsTotal"), told.get("memoryUsedBytes"), custom.get(_FILES)
            rows, memory, files = (int(size or 0) for size in sizes)
            self.readings.append((at_s, rows, memory, files))
        self.seen += 1
        if len(self.readings) >= _KEPT:
            del self.readings[1::2]
            self.every *= 2

    def summary(self, place: int, lag_s: float | None, lag_grew_s: float) -> StateSeen:
        _, rows, memory, _ = self.readings[-1]
        at_s, all_rows, all_bytes, all_files = np.array(self.readings, dtype=float).T
        rows_per_day = _per_day(at_s, all_rows)
        compaction = next((self.custom[name] for name in _COMPACTION if name in self.custom), None)
        hits = next(
            (
                self.custom[hit] / (self.custom[hit] + self.custom[miss])
                for hit, miss in _HITS
                if {hit, miss} <= self.custom.keys() and self.custom[hit] + self.custom[miss] > 0
            ),
            None,
        )
        batches = max(1, self.batches)
        return StateSeen(
            self.name or f"operator {place}", self.partitions, self.instances, rows, memory, rows_per_day,
            0.0 if all_files.any() else _per_day(at_s, all_bytes), self.commit_ms / 1000 / batches,
            self.batch_s / batches, hits, None if compaction is None else compaction / 1000 / batches, self.dropped,
            lag_s, lag_grew_s, _per_day(at_s, all_files) if rows_per_day else 0.0,
        )  # fmt: skip


def _per_day(at_s: np.ndarray, sizes: np.ndarray) -> float:
    """Growth of a size per day: over the second half of the readings, and only where its minima rise, too."""
    if len(sizes) < _FEWEST or at_s[-1] <= at_s[0]:
        return 0.0
    thirds = np.array_split(sizes, 3)
    lows = [float(np.quantile(third, 0.1)) for third in thirds]
    if not lows[0] < lows[1] < lows[2] or lows[2] - lows[1] < _GROWN * lows[2]:
        return 0.0
    half = len(sizes) // 2
    return float(np.polyfit(at_s[half:] - at_s[half], sizes[half:], 1)[0]) * DAY_S


@dataclass
class StateSeries:
    """Readings of the state from progress events so far; their memory is bounded."""

    operators: list[_Operator] = field(default_factory=list)
    lag_s: float | None = None
    first_lag_s: float | None = None

    def take(self, progress: Mapping[str, Any], at_s: float, batch_s: float) -> None:
        """Take a progress event in; ignore what is not as Spark writes it."""
        with suppress(*_BROKEN):
            told = progress.get("stateOperators") or ()
            self.operators += [_Operator() for _ in range(len(self.operators), len(told))]
            rows = rows_of(progress)
            ran = bool(rows) or "addBatch" in progress["durationMs"]  # else it repeats the cost of the last batch
            watermark = (progress.get("eventTime") or {}).get("watermark")
            if rows and watermark and (passed_s := seconds_of(watermark)) > 0:
                self.lag_s = at_s - passed_s
                self.first_lag_s = self.lag_s if self.first_lag_s is None else self.first_lag_s
            for operator, one in zip(self.operators, told, strict=False):
                operator.take(one, at_s, batch_s, ran=ran)

    def summary(self) -> tuple[StateSeen, ...]:
        """Return each operator that was seen."""
        seen = enumerate(self.operators, 1)
        grew = 0.0 if self.lag_s is None or self.first_lag_s is None else self.lag_s - self.first_lag_s
        return tuple(operator.summary(place, self.lag_s, grew) for place, operator in seen if operator.readings)
