"""How large that may be which is read: files and texts, and the numbers in them, in one place.

The bounds are far above what makes sense, and low enough that what is within them neither fills the memory nor takes
forever.
"""

MEBIBYTE = 1 << 20

YAML_BYTES = MEBIBYTE // 2
"""Largest study, placement or parameters as YAML."""
SCHEMA_BYTES = MEBIBYTE
"""Largest schema of a topic's values."""
DOCUMENT_BYTES = 256 * MEBIBYTE
"""Largest measurement, plans or other JSON document."""
TABLE_BYTES = 64 * MEBIBYTE
"""Largest CSV file of rates, prices or responses; a data set has no bound, because only its first GiB is replayed."""
NESTING = 64
"""Deepest list or mapping within another of a document."""
VALUES = 1_000_000
"""Most values of a YAML document, its aliases unfolded."""
TEXT = 4_096
"""Longest text of a study, such as a path, in characters."""

RATE = 1e15
"""Highest rate, records/s."""
LEAST_RATE = 1e-3
"""Lowest target rate, records/s."""
TASKS = 100_000
"""Most slots or tasks of one deployment that is measured, simulated or placed."""
KEYED_CORES = 2_048
"""Most cores on which a keyed operator is simulated: its time grows with their square."""
MEMORY_MB, WORKER_MEMORY_MB = 1 << 24, 1 << 27
"""Most memory of a slot, and of a worker, MiB: 16 and 128 TiB."""
CPUS = 1_024
"""Most cores of a slot."""
LEAST_CPUS = 0.001
"""Fewest cores of a slot."""
LEAST_S = 0.001
"""Shortest interval, seconds."""
SECONDS = 7 * 86_400
"""Longest interval, wait or outage, seconds: a week."""
TARGETS = 10_000
"""Most target rates of a study."""
GRID = 100
"""Most slot counts, or memory profiles, of a study."""
INTERVALS = 100
"""Most trigger intervals of a study."""
RUNS = 1_000
"""Most runs of an exploration, and repeats of a probe."""
MINUTES = 10_080
"""Longest time for the runs of a study, minutes: a week."""
DRAWS = 100_000
"""Most random placements."""
MARGIN = 100
"""Largest capacity asked for over a rate."""
SEED = 2**32 - 1
"""Largest seed."""
NUMBER = 10**18
"""Largest number of a measurement or plan."""
LEAST_NUMBER = 1e-30
"""Smallest number of a measurement or plan: what is nearer to 0 is left over of a calculation, and counts as 0."""
WORKER_CPUS = 10_000
"""Most cores of a priced worker."""
LEAST_CORE_SPEED, CORE_SPEED = 0.01, 100
"""Slowest and fastest cores of a priced worker, times those of the reference machine."""
LEAST_PRICE, PRICE = 1e-6, 1e9
"""Lowest and highest price of a worker for an hour, in any currency."""
