"""Defaults of every measurement: those of ``measure``, of ``verify``, of studies and of the notebooks."""

SLOTS = 2  # slots of a budget
SLOT_CPUS = 0.4  # cores of a slot where the machine permits CPU quotas; a whole core elsewhere
MEMORY_MB = 1024  # memory of a slot, MiB
INTERVAL_S = 2.0  # trigger interval, seconds
TOLERANCE = 0.04  # relative width of the bracket of an estimate
WARMUP_MIN_S = 30.0  # shortest warm-up, seconds
WARMUP_CAP_S = 100.0  # longest warm-up, seconds: of the code without a quota, and of the run on its slots
PATIENCE_S = 10.0  # longest wait of an estimate for a quiet machine, seconds in all
MAX_REPEATS = 1  # how often a rate that failed is repeated, where other load or cold code may be the reason
ROCKSDB_SHARE = 0.4  # share of the slots' memory that RocksDB may use; the rest is heap
LEAST_HEAP_MB = 600  # smallest heap that Spark starts with, MiB
