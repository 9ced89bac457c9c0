"""How everything measures by default: ``measure``, ``verify``, studies and the notebooks alike."""

SLOTS = 2
"""Slots of a budget."""

SLOT_CPUS = 0.4
"""Cores of a slot where the machine permits CPU quotas; a whole core elsewhere."""

MEMORY_MB = 1024
"""Memory of a slot, MiB."""

INTERVAL_S = 2.0
"""Trigger interval, seconds."""

TOLERANCE = 0.04
"""Relative width of the bracket of an estimate."""

WARMUP_MIN_S = 30.0
"""Shortest warm-up, seconds."""

WARMUP_CAP_S = 100.0
"""Longest warm-up, seconds: of the code without a quota, and of the run on its slots."""

PATIENCE_S = 10.0
"""Longest wait of an estimate for a quiet machine, seconds in all."""

MAX_REPEATS = 1
"""How often a rate that failed is repeated, where other load or cold code may be the reason."""

ROCKSDB_SHARE = 0.4
"""Share of the slots' memory that RocksDB may use; the rest is heap."""

LEAST_HEAP_MB = 600
"""Smallest heap that Spark starts with, MiB."""
