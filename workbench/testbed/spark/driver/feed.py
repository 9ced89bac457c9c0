"""What feeds a query with rows: the workbench's own rate-limited source, or another that obeys the same commands."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from workbench.testbed.spark.log.batches import BatchLog
from workbench.workload import Command, Release, read_releases, write_command

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Feed(Protocol):
    """Feeds one query."""

    @property
    def restarts(self) -> bool:
        """Whether the query must start again to obey a command."""
        ...

    @property
    def exhausted(self) -> bool:
        """Whether too few rows are left for a batch, so that it must begin again at its first row."""
        ...

    @property
    def partitions(self) -> int | None:
        """Partitions that the last batch read where the feed chooses them itself; None: as many as it was asked for."""
        ...

    def streams(
        self,
        spark: "SparkSession",
        rows: Any,  # noqa: ANN401 - each its own
        partitions: int,
    ) -> "Sequence[DataFrame]":
        """Return the query's inputs."""
        ...

    def offer(self, command: Command) -> None:
        """Obey `command` from the next batch on, or from the next start of the query."""
        ...

    def release(self, log: BatchLog) -> Release | None:
        """Return which rows a committed batch has taken; None if it does not belong to a command."""
        ...

    def starts(self, last_batch: int) -> bool:
        """Hear that the query starts and has begun batches up to `last_batch`; whether its state must begin empty."""
        ...


class ReplayFeed:
    """Replays rows under a control file in `folder`."""

    restarts = exhausted = False
    partitions = None

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
        """Read `rows`, each input in a number of `partitions`."""
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
        """Write the control file."""
        write_command(self._folder, command)

    def release(self, log: BatchLog) -> Release | None:
        """Find the release of a batch in the log that the source writes."""
        releases, self._offset = read_releases(self._folder, self._offset)
        self._released.update({release.last: release for release in releases if release.records})
        return self._released.pop(log.last_row, None)

    def starts(self, last_batch: int) -> bool:  # noqa: ARG002 - the protocol's
        """Give False."""
        return False
