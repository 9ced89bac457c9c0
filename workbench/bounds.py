"""Size limits of everything that is read: far above what is sensible, too low to fill memory or to take forever."""

MEBIBYTE = 1 << 20

YAML_BYTES = MEBIBYTE // 2  # largest study, placement or parameters as YAML
SCHEMA_BYTES = MEBIBYTE  # largest schema of a topic's values
DOCUMENT_BYTES = 256 * MEBIBYTE  # largest measurement, plans or other JSON document
TABLE_BYTES = 64 * MEBIBYTE  # largest CSV of rates, prices or responses; of a data set only the first GiB is replayed
NESTING = 64  # deepest list or mapping within another of a document
VALUES = 1_000_000  # most values of a YAML document, its aliases unfolded
TEXT = 4_096  # longest text of a study, such as a path, in characters

RATE = 1e15  # highest rate, records/s
LEAST_RATE = 1e-3  # lowest target rate, records/s
TASKS = 100_000  # most slots or tasks of one deployment that is measured, simulated or placed
KEYED_CORES = 2_048  # most cores on which a keyed operator is simulated: its time grows with their square
MEMORY_MB, WORKER_MEMORY_MB = 1 << 24, 1 << 27  # most memory of a slot, and of a worker, MiB: 16 and 128 TiB
CPUS = 1_024  # most cores of a slot
LEAST_CPUS = 0.001  # fewest cores of a slot
LEAST_S = 0.001  # shortest interval, seconds
SECONDS = 7 * 86_400  # longest interval, wait or outage, seconds: a week
TARGETS = 10_000  # most target rates of a study
GRID = 100  # most slot counts, or memory profiles, of a study
INTERVALS = 100  # most trigger intervals of a study
RUNS = 1_000  # most runs of an exploration, and repeats of a probe
MINUTES = 10_080  # longest time for the runs of a study, minutes: a week
DRAWS = 100_000  # most random placements
MARGIN = 100  # largest factor between capacity and rate
SEED = 2**32 - 1  # largest seed
NUMBER = 10**18  # largest number of a measurement or plan
LEAST_NUMBER = 1e-30  # smallest such number: one nearer to 0 is a rounding error, and counts as 0
WORKER_CPUS = 10_000  # most cores of a priced worker
LEAST_CORE_SPEED, CORE_SPEED = 0.01, 100  # lowest and highest speed of a priced worker's cores, over the reference's
LEAST_PRICE, PRICE = 1e-6, 1e9  # lowest and highest price of a worker for an hour, in any currency
