"""A replayed data set on a cluster: Spark copies its file to every executor."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from workbench.workload.dataset import Replay
from workbench.workload.query import EventClock


@dataclass(frozen=True)
class Shipped:
    """Replays `replay` from the copy of its file that ``SparkContext.addFile`` has made.

    Parameters
    ----------
    replay
        With the file's name in place of its path.
    columns
        Its columns, so that only executors need the file.
    """

    replay: Replay
    columns: pa.Schema

    def schema(self) -> pa.Schema:
        """Columns of the data set."""
        return self.columns

    def batches(self, first: int, last: int, clock: EventClock) -> Iterator[pa.RecordBatch]:
        """Rows `first` to `last` of the endless loop over the data."""
        from pyspark import SparkFiles  # noqa: PLC0415 - in the executors

        return replace(self.replay, path=SparkFiles.get(self.replay.path)).batches(first, last, clock)
