"""Slots that a smaller budget does not have: sleeping tasks hold them in the executor of a larger one."""

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from workbench import units
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WAIT_S = 30.0
_LOOK_S = 0.25


class HeldSlots:
    """Holds slots of one executor, until a file in `folder` is gone."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self._context = spark.sparkContext
        self._flag = folder / "held"
        self._thread: threading.Thread | None = None

    def hold(self, count: int) -> None:
        """Hold `count` slots instead of those held now, and return when they are taken."""
        self.release()
        if count < 1:
            return
        self._flag.touch()
        flag = str(self._flag)
        job = self._context.parallelize(range(count), count)
        self._thread = threading.Thread(
            target=lambda: job.foreachPartition(lambda _: _sleep_while(flag)), name="held slots", daemon=True
        )
        self._thread.start()
        end = time.monotonic() + _WAIT_S
        while self._running() < count:
            if time.monotonic() > end or not self._thread.is_alive():
                raise WorkbenchError(
                    f"Spark did not give {units.some(count, 'slot')} to the tasks that hold them within "
                    f"{_WAIT_S:.0f} s, so no smaller budget can be measured in this deployment. Measure each budget in "
                    "its own (in a study deployment: separate)."
                )
            time.sleep(_LOOK_S)

    def release(self) -> None:
        """Release all slots that are held."""
        self._flag.unlink(missing_ok=True)
        if self._thread is not None:
            self._thread.join(_WAIT_S)
            self._thread = None

    def _running(self) -> int:
        tracker = self._context.statusTracker()
        stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
        return sum(stage.numActiveTasks for stage in stages if stage is not None)


def _sleep_while(flag: str) -> None:
    """Sleep until the file `flag` is gone; a task's body."""
    while Path(flag).exists():
        time.sleep(_LOOK_S)
