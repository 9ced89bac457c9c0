"""The remaining effort of a search: until a moment, for a number of nodes, and until it is asked to stop."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from workbench.checks import positive

_NODES_PER_S = 500_000  # nodes per second of the compiled searches, roughly, so that they stop in time


_asked: ContextVar[Callable[[], bool]] = ContextVar("asked_to_stop", default=lambda: False)


@contextmanager
def stopping_when(asked: Callable[[], bool]) -> Iterator[None]:
    """Let the searches in this context end with the best found so far as soon as `asked` returns True."""
    token = _asked.set(asked)
    try:
        yield
    finally:
        _asked.reset(token)


def asked_to_stop() -> bool:
    return _asked.get()()


def deadline(timeout_s: float | None) -> float:
    """Moment of the monotonic clock at which `timeout_s` from now are over; infinity for None."""
    if timeout_s is None or timeout_s == math.inf:
        return math.inf
    return time.monotonic() + positive("timeout_s", timeout_s, "seconds, or None for no limit")


@dataclass
class Effort:
    """The remaining effort: time until a moment of the monotonic clock, and nodes."""

    until: float
    nodes: float = math.inf

    @property
    def spent(self) -> bool:
        return self.nodes <= 0 or time.monotonic() >= self.until or asked_to_stop()

    def allowed(self, most: float) -> int:
        """Nodes that the next step may visit, at most `most`, at least 1."""
        if self.until < math.inf:
            most = min(most, (self.until - time.monotonic()) * _NODES_PER_S)
        return max(1, int(min(most, self.nodes)))

    def part(self, share: float) -> "Effort":
        """Return a share of the remaining effort."""
        now = time.monotonic()
        return Effort(now + (self.until - now) * share, self.nodes * share)
