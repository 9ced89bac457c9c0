"""The append-only record of every measurement: one JSON object per line.

``{"v": 1, "kind": ..., "key": ..., "data": ...}``. A line is on the disk before ``append`` returns, so a crash
loses at most the line being written. Such a torn end is skipped by readers and cut off before the next append;
finished lines are only ever removed by ``prune``. A corrupt line before the last is not a crash's trace, so it is
reported instead of skipped.
"""

import fcntl
import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from workbench.errors import WorkbenchError
from workbench.files import write_whole

VERSION = 1


class JournalError(WorkbenchError):
    """The file cannot be read or written: nothing measured from now on would be kept."""


@dataclass(frozen=True)
class Entry:
    """One finished line: what it is (`kind`), what it belongs to (`key`) and its content, plain JSON values."""

    kind: str
    key: str
    data: Any


@dataclass(frozen=True)
class Line:
    """A finished line and the bytes that it takes, its end included."""

    entry: Entry
    size: int


class Journal:
    """An append-only JSON-lines file, safe against crashes and concurrent writers.

    Parameters
    ----------
    path
        The file; it and its folder are created by the first append.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def append(self, kind: str, key: str, data: object) -> None:
        """Write one line and wait until it is on the disk.

        Raises
        ------
        WorkbenchError
            When `data` is not made of JSON values (NaN and inf are not) or the file's last line is of another
            version.
        """
        try:
            text = json.dumps(
                {"v": VERSION, "kind": kind, "key": key, "data": data}, allow_nan=False, ensure_ascii=False
            )
        except (TypeError, ValueError) as error:
            raise WorkbenchError(
                f"An entry of kind {kind!r} cannot be written to {self.path}: {error}. Allowed are texts, finite "
                "numbers, true, false, null, lists and mappings with text keys; convert the rest first."
            ) from error
        new = not self.path.exists()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JournalError(
                f"The folder of the journal {self.path} cannot be made: {error.strerror}. Choose another file.",
                settings=("journal",),
            ) from error
        with self._locked("a+b", fcntl.LOCK_EX) as handle:
            handle.seek(0)
            content = handle.read()
            finished = self._finished(content)
            lines = content[:finished].rstrip(b"\n").split(b"\n")
            if lines[-1]:
                self._parse(lines[-1], len(lines))
            separator = b""
            if finished < len(content):
                handle.truncate(finished)
            elif content and not content.endswith(b"\n"):
                separator = b"\n"
            handle.write(separator + text.encode() + b"\n")
            handle.flush()
            os.fsync(handle.fileno())
        if new:
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def entries(self, kind: str | None = None, key: str | None = None) -> tuple[Entry, ...]:
        """Finished lines in order, of one kind and of one key if given; none if there is no file.

        Raises
        ------
        WorkbenchError
            When a line before the last is corrupt, or a line is of another version.
        """
        found = (line.entry for line in self.lines())
        return tuple(
            entry for entry in found if (kind is None or entry.kind == kind) and (key is None or entry.key == key)
        )

    def lines(self) -> tuple[Line, ...]:
        """Finished lines in order, with their sizes; see `entries`."""
        if not self.path.exists():
            return ()
        with self._locked("rb", fcntl.LOCK_SH) as handle:
            return tuple(line for _, line in self._read(handle.read()))

    def prune(self, chosen: Callable[[Sequence[Line]], Collection[int]]) -> tuple[Line, ...]:
        """Remove lines, all of them or none, and return these; nobody can append in between.

        Parameters
        ----------
        chosen
            Given the finished lines, says which to remove, by their place.

        Raises
        ------
        WorkbenchError
            When the file cannot be read, or a new one cannot be written: it then stays as it was.
        """
        if not self.path.exists():
            return ()
        with self._locked("r+b", fcntl.LOCK_EX) as handle:
            found = self._read(handle.read())
            places = frozenset(chosen([line for _, line in found]))
            if places:
                self._replace(b"".join(text + b"\n" for place, (text, _) in enumerate(found) if place not in places))
        return tuple(line for place, (_, line) in enumerate(found) if place in places)

    def _read(self, content: bytes) -> list[tuple[bytes, Line]]:
        texts = content[: self._finished(content)].split(b"\n")
        return [
            (text, Line(self._parse(text, number), len(text) + 1)) for number, text in enumerate(texts, start=1) if text
        ]

    def _replace(self, content: bytes) -> None:
        """Put another file in the place of this one, while it is locked."""
        mode = self.path.stat().st_mode
        write_whole(self.path, content)
        self.path.chmod(mode)

    def check(self) -> None:
        """Refuse a file that cannot be read and appended to, before a long run.

        Raises
        ------
        WorkbenchError
            When it is there and may not be.
        """
        if self.path.exists():
            with self._locked("a+b", fcntl.LOCK_SH):
                pass

    @contextmanager
    def _locked(self, mode: str, lock: int) -> Iterator[IO[bytes]]:
        try:
            while True:
                with open(self.path, mode) as handle:  # noqa: PTH123 - the mode is checked by callers, not by mypy
                    fcntl.flock(handle, lock)
                    if self._is_there(handle):
                        yield handle  # closing the file releases the lock
                        return
        except OSError as error:
            raise JournalError(
                f"The journal {self.path} cannot be read or written: {error.strerror}. What is in it stays. Make room, "
                "restore the permission, or choose another file.",
                settings=("journal",),
            ) from error

    def _is_there(self, handle: IO[bytes]) -> bool:
        """Whether the open file is the journal still, which `prune` may have replaced before the lock was free."""
        try:
            return os.path.samestat(os.fstat(handle.fileno()), self.path.stat())
        except FileNotFoundError:  # moved away or removed by somebody: a history does so with a finished run's
            return False

    @staticmethod
    def _finished(content: bytes) -> int:
        """Length of `content` without a torn last line.

        A last line without its newline is whole if it is valid JSON: no proper part of an object is.
        """
        start = content.rstrip(b"\n").rfind(b"\n") + 1
        try:
            json.loads(content[start:] or b"null")
        except ValueError:
            return start
        return len(content)

    def _parse(self, line: bytes, number: int) -> Entry:
        where = f"Line {number} of the journal {self.path}"
        try:
            record = json.loads(line)
        except ValueError as error:
            raise WorkbenchError(
                f"{where} is corrupt ({error}); a line must be one JSON object. Restore the file from a copy, "
                "or delete that line."
            ) from error
        if not isinstance(record, dict) or record.keys() != {"v", "kind", "key", "data"}:
            raise WorkbenchError(
                f"{where} is not an entry: it must be a JSON object with v, kind, key and data. Delete that line, or "
                "give another file."
            )
        if record["v"] != VERSION:
            raise WorkbenchError(
                f"{where} has version {record['v']!r}; this workbench reads version {VERSION}. Read it with the "
                "workbench that wrote it, or start a new journal."
            )
        return Entry(record["kind"], record["key"], record["data"])
