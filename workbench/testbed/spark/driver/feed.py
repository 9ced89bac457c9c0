"""The workbench's own rate-limited source as a feed of rows; `topic_feed` obeys the same commands."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkbenchError
from workbench.testbed.spark.log.batches import BatchLog
from workbench.workload import Command, Release, read_releases, write_command

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ReplayFeed:
    """Replays rows under a control file in `folder`."""

    restarts = False  # whether the query must start again to obey a command
    exhausted = False  # whether too few rows are left for a batch, so that the query must begin at the first row
    partitions = None  # partitions that the last batch read, where the feed chooses them

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._released: dict[int, Release] = {}
        self._offset = 0

    def streams(
        self,
        spark: "SparkSession",
        rows: Any,  # noqa: ANN401 - a Generator, or one for each input
        partitions: int,
    ) -> "Sequence[DataFrame]":
        """Return the query's inputs: `rows`, each input in a number of `partitions`."""
        from workbench.workload.source import rate_source  # noqa: PLC0415 - only the driver process loads Spark

        name = f"workbench_{self._folder.name}"
        several = [*enumerate(rows)] if isinstance(rows, tuple) else [(None, rows)]
        found = []
        for number, one in several:
            named = name if number is None else f"{name}_{number}"
            spark.dataSource.register(rate_source(one, self._folder, partitions, named, number))
            found.append(spark.readStream.format(named).load())
        return found

    def offer(self, command: Command) -> None:
        """Obey `command` from the next batch on, or from the next start of the query."""
        write_command(self._folder, command)

    def release(self, log: BatchLog) -> Release | None:
        """Return which rows a committed batch has taken; None if it does not belong to a command."""
        releases, self._offset = read_releases(self._folder, self._offset)
        self._released.update({release.last: release for release in releases if release.records})
        return self._released.pop(log.last_row, None)

    def starts(self, last_batch: int) -> bool:  # noqa: ARG002 - a topic's
        """Note that the query starts after batch `last_batch`; return whether its state must begin empty."""
        return False


def overtaken(topic: str) -> WorkbenchError:
    """Return the error for a topic that dropped records before they were read."""
    return WorkbenchError(
        f"Records of {topic} were dropped before they were read: its retention overtook the run, or it was deleted. "
        "Raise its retention, or fill a topic of its own (workbench fill), then run the same command again; what was "
        "measured is kept."
    )
