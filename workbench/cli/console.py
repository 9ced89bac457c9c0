"""What the commands share: exit codes, progress on a terminal, files refused before a long run."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from workbench.errors import WorkbenchError

DONE, NOT_SUSTAINED, BAD_INPUT, SOURCE_BOUND, DEFECT, INTERRUPTED = 0, 1, 2, 3, 70, 130
JOURNAL = ".workbench/journal.jsonl"


def check_file(path: str | None) -> None:
    """Refuse a place that cannot be written to, before a long run."""
    if path is None:
        return
    if Path(path).is_dir():
        raise WorkbenchError(f"{path!r} is a folder; give the name of a file in it.")
    parent = next((place for place in Path(path).absolute().parents if place.exists()), Path())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise WorkbenchError(
            f"{path!r} cannot be written: {str(parent)!r} is no folder that may be written to. Choose another place."
        )


def progress() -> Callable[[str], None]:
    """Say what goes on, to standard error and only if it is a terminal."""
    if not sys.stderr.isatty():
        return lambda _: None
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begun:5.0f} s] {text}", file=sys.stderr, flush=True)

    return say
