"""What the just-in-time compilers of a cluster's executors have used: the code is warm when they have little to do."""

import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def compilers(spark: "SparkSession", tasks: int, names: tuple[str, ...]) -> Callable[[], float]:
    """Give a function that returns CPU seconds of the compiler so far, the mean of the executors.

    A Python task finds its executor's JVM among the processes above it. Executors that no task has met yet are left
    out, and without Linux's ``/proc`` nothing is seen, which counts as 0.
    """
    used: dict[str, float] = {}

    def mean() -> float:
        used.update(_on_executors(spark, tasks, names))
        return statistics.fmean(used.values()) if used else 0.0

    return mean


def _on_executors(spark: "SparkSession", tasks: int, names: tuple[str, ...]) -> Sequence[tuple[str, float]]:
    """Look at the executors of `tasks` tasks. The inner function crosses by value and needs nothing that is shipped."""

    def look(_: object) -> Iterator[tuple[str, float]]:
        import platform  # noqa: PLC0415 - in the executor
        from contextlib import suppress  # noqa: PLC0415
        from pathlib import Path  # noqa: PLC0415

        def stat(path: Path) -> tuple[str, list[str]]:
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
            return name, rest.split()

        with suppress(OSError):
            process = os.getpid()
            while stat(Path(f"/proc/{process}/stat"))[0] != "java":
                process = int(stat(Path(f"/proc/{process}/stat"))[1][1])  # its parent
            ticks = 0
            for thread in Path(f"/proc/{process}/task").iterdir():
                with suppress(OSError):
                    name, fields = stat(thread / "stat")
                    ticks += (int(fields[11]) + int(fields[12])) * name.startswith(names)
            yield f"{platform.node()} {process}", ticks / os.sysconf("SC_CLK_TCK")

    found: Sequence[tuple[str, float]] = (
        spark.sparkContext.parallelize(range(tasks), tasks).mapPartitions(look).collect()
    )
    return found
