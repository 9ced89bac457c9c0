"""Slow drawing that follows quick moves: the newest one, at intervals, and always the last one."""

import asyncio
from collections.abc import Callable

from IPython.core.getipython import get_ipython

_PAUSE_S = 0.15


def _kernels() -> asyncio.AbstractEventLoop | None:
    if getattr(get_ipython(), "kernel", None) is None:
        return None  # a loop may run for something else, and no page waits for it
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Throttled:
    """Run the newest of many jobs: at once if the last one is long done, else when the pause is over.

    The pause, `pause_s` seconds, lets the page draw. The `loop` that waits is the kernel's; without one, nothing waits.
    """

    def __init__(
        self, pause_s: float = _PAUSE_S, loop: Callable[[], asyncio.AbstractEventLoop | None] = _kernels
    ) -> None:
        self._pause_s, self._loop = pause_s, loop
        self._newest: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._free_s = 0.0

    def do(self, job: Callable[[], None]) -> None:
        """Run `job` in place of a waiting one."""
        loop = self._loop()
        if loop is None:
            job()
            return
        self._newest = job
        if self._timer is None:
            wait_s = self._free_s - loop.time()
            if wait_s > 0:
                self._timer = loop.call_later(wait_s, self._do_newest)
            else:
                self._do_newest()

    def drop(self) -> None:
        """Drop the waiting job."""
        self._newest = None

    def _do_newest(self) -> None:
        self._timer, job, self._newest = None, self._newest, None
        if job is None:
            return
        try:
            job()
        finally:
            if (loop := self._loop()) is not None:
                self._free_s = loop.time() + self._pause_s
