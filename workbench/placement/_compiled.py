"""Inner loops compiled on first use, kept next to the sources, run without the interpreter's lock.

A compiled function is cached by the time stamp of its own file only, so functions that call each other share a file.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def must_compile() -> bool:
    """Whether nothing is compiled on this machine yet, so that a first search takes about half a minute longer."""
    return not any((Path(__file__).parent / "__pycache__").glob("*.nbi"))


def compiled(function: Function) -> Function:
    """Compile `function` on its first call, and cache it; if no cache can be written, each process compiles it."""
    try:
        made = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no directory for the cache
        made = numba.njit(nogil=True)(function)
    return cast("Function", made)


def inlined(function: Function) -> Function:
    """Inline `function` into compiled callers, where a call would cost more than its body."""
    return cast("Function", numba.njit(nogil=True, inline="always")(function))
