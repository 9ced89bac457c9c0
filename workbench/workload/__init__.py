"""Workloads: a query, the data it runs on, and the source that replays the data at a commanded rate."""

from workbench.workload.columns import as_spark, is_text, plain
from workbench.workload.dataset import (
    Replay,
    Shipped,
    first_rows,
    prepare,
    rows_per_s,
    schema_of,
)
from workbench.workload.dataset import check as check_dataset
from workbench.workload.inputs import check_inputs, prepare_inputs
from workbench.workload.keys import (
    JoinedKeys,
    KeyFrequencies,
    count_keys,
    count_keys_here,
    joined_shares,
    read_key_frequencies,
)
from workbench.workload.query import ENCODED, Dataset, EventClock, Generator, Input, OutputMode, Query, Unread
from workbench.workload.release import Command, Release, read_releases, write_command
from workbench.workload.script import Recorded, Script, ScriptBatches, ScriptQuery, ScriptSource, columns_of, sample_of
