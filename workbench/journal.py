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
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from workbench.checks import shown
from workbench.errors import WorkbenchError
from workbench.files import write_whole
from workbench.reading import parse_json
from workbench.redaction import may_hold_secret, redacted_values

VERSION = 1

_PIECE = 1 << 16  # bytes
_KEYS = {"v", "kind", "key", "data"}
_ENDS = 2  # of lines, before the last two are complete


class JournalError(WorkbenchError):
    """The file cannot be read or written: nothing measured from now on would be kept."""


@dataclass(frozen=True)
class Entry:
    """One finished line: what it is (`kind`), what it belongs to (`key`), and its plain JSON values."""

    kind: str
    key: str
    data: Any
    line: int = field(default=0, compare=False)  # its number
    size: int = field(default=0, compare=False)  # bytes, its end included


@dataclass
class _Places:
    """Where the finished lines of each key begin in a file, and their line numbers, as far as it has been read."""

    identity: tuple[int, int] | None = None
    end: int = 0
    lines: int = 0
    last: tuple[int, bytes] = (0, b"")
    of_key: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def still_of(self, handle: IO[bytes]) -> bool:
        """Whether the part that was read is unchanged: the file was neither replaced nor cut."""
        if self.identity != _identity(handle):
            return False
        start, line = self.last
        handle.seek(start)
        return handle.read(len(line)) == line


def _identity(handle: IO[bytes]) -> tuple[int, int]:
    status = os.fstat(handle.fileno())
    return status.st_dev, status.st_ino


def _last_lines(handle: IO[bytes]) -> tuple[int, bytes]:
    """Read the last two lines, as the last may be torn, and their offset; the whole file if it has fewer lines."""
    start, content = handle.seek(0, os.SEEK_END), b""
    while start > 0 and content.rstrip(b"\n").count(b"\n") < _ENDS:
        size = min(start, max(_PIECE, len(content)))
        start -= size
        handle.seek(start)
        content = handle.read(size) + content
    if start == 0:
        return 0, content
    cut = content.index(b"\n") + 1
    return start + cut, content[cut:]


class Journal:
    """An append-only JSON-lines file, safe against crashes and concurrent writers; the first append makes it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._places = _Places()

    def append(self, kind: str, key: str, data: object) -> None:
        """Write one line and wait until it is on the disk. Secrets in its texts are redacted.

        Raises WorkbenchError when `data` is not made of JSON values (NaN and inf are not), or the file's last line is
        of another version.
        """
        try:
            text = _line(kind, key, data)
            if may_hold_secret(text):
                text = _line(kind, key, redacted_values(data))
        except (TypeError, ValueError) as error:
            raise WorkbenchError(
                f"An entry of kind {kind!r} cannot be written to {self.path}: {error}. Allowed are texts, finite "
                "numbers, true, false, null, lists and mappings with text keys; convert the rest first."
            ) from error
        new = not self._exists()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JournalError(
                f"The folder of the journal {self.path} cannot be made: {error.strerror}. Choose another file.",
                settings=("journal",),
            ) from error
        with self._locked("a+b", fcntl.LOCK_EX) as handle:
            start, content = _last_lines(handle)
            finished = self._finished(content)
            last = content[:finished].rstrip(b"\n").rpartition(b"\n")[2]
            if last:
                try:
                    self._parse(last, 0)
                except WorkbenchError:  # again, with its number
                    handle.seek(0)
                    self._parse(last, 1 + handle.read(start + finished).rstrip(b"\n").count(b"\n"))
            separator = b""
            if finished < len(content):
                handle.truncate(start + finished)
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
        """Finished lines in order, of one kind and key if given; a corrupt line before the last is refused."""
        if not self._exists():
            return ()
        if key is None:
            with self._locked("rb", fcntl.LOCK_SH) as handle:
                found = [entry for _, _, entry in self._lines(handle)]
        else:
            found = self._of(key)
        return tuple(entry for entry in found if kind is None or entry.kind == kind)

    def _of(self, key: str) -> list[Entry]:
        """Finished lines of one key; if the file was read before, reads only these and the lines appended since."""
        with self._locked("rb", fcntl.LOCK_SH) as handle:
            if not self._places.still_of(handle):
                self._places = _Places(_identity(handle))
            places = self._places
            for start, line, entry in self._lines(handle, places.end, places.lines):
                places.of_key.setdefault(entry.key, []).append((start, entry.line))
                places.last, places.end = (start, line), start + len(line)
                places.lines = entry.line if line.endswith(b"\n") else entry.line - 1
            found = []
            for start, number in places.of_key.get(key, ()):
                handle.seek(start)
                found.append(self._parse(handle.readline(), number))
        return found

    def _lines(self, handle: IO[bytes], start: int = 0, before: int = 0) -> Iterator[tuple[int, bytes, Entry]]:
        """Read the finished lines from `start` on, after `before` others, each with where it begins."""
        handle.seek(start)
        for number, line in enumerate(iter(handle.readline, b""), before + 1):
            if line.strip(b"\n"):
                try:
                    entry = self._parse(line, number)
                except WorkbenchError:
                    rest = iter(lambda: handle.read(_PIECE), b"")
                    if self._finished(line) == 0 and not any(piece.strip(b"\n") for piece in rest):
                        return  # torn
                    raise
                yield start, line, entry
            start += len(line)

    def prune(self, chosen: Callable[[Sequence[Entry]], Collection[int]]) -> tuple[Entry, ...]:
        """Remove the finished lines that `chosen` names by their place, all or none, and return them.

        Nobody can append in between. Raises WorkbenchError when the file cannot be read, or a new one cannot be
        written: it then stays as it was.
        """
        if not self._exists():
            return ()
        with self._locked("r+b", fcntl.LOCK_EX) as handle:
            found = [*self._lines(handle)]
            places = frozenset(chosen([entry for _, _, entry in found]))
            if places:
                mode = self.path.stat().st_mode
                left = (line.rstrip(b"\n") + b"\n" for place, (_, line, _) in enumerate(found) if place not in places)
                write_whole(self.path, b"".join(left))
                self.path.chmod(mode)
        return tuple(entry for place, (*_, entry) in enumerate(found) if place in places)

    def check(self) -> None:
        """Refuse a file that is there and cannot be read and appended to, before a long run."""
        if self._exists():
            with self._locked("a+b", fcntl.LOCK_SH):
                pass

    @contextmanager
    def _locked(self, mode: str, lock: int) -> Iterator[IO[bytes]]:
        if self._exists() and not self.path.is_file():  # a pipe or a device may never end
            raise self._refused("is not a regular file. Choose another file.")
        try:
            while True:
                with open(self.path, mode, opener=lambda path, flags: os.open(path, flags, 0o600)) as handle:
                    fcntl.flock(handle, lock)
                    if self._is_there(handle):
                        yield handle  # closing the file releases the lock
                        return
        except OSError as error:
            raise self._refused(
                f"cannot be read or written: {error.strerror}. What is in it stays. Make room, restore the permission, "
                "or choose another file."
            ) from error

    def _refused(self, why: str) -> JournalError:
        return JournalError(f"The journal {self.path} {why}", settings=("journal",))

    def _exists(self) -> bool:
        try:
            return self.path.exists()
        except OSError as error:  # its name is too long, or its folder is not ours
            raise self._refused(f"cannot be read or written: {error.strerror}. Choose another file.") from error

    def _is_there(self, handle: IO[bytes]) -> bool:
        """Whether the open file is still the journal: `prune` may have replaced it before the lock was free."""
        try:
            return os.path.samestat(os.fstat(handle.fileno()), self.path.stat())
        except FileNotFoundError:  # moved away or removed: a history moves the journal of a finished run
            return False

    @staticmethod
    def _finished(content: bytes) -> int:
        """Length of `content` without a torn last line, which is not JSON: no proper part of an object is."""
        start = content.rstrip(b"\n").rfind(b"\n") + 1
        try:
            json.loads(content[start:] or b"null")
        except (ValueError, RecursionError):
            return start
        return len(content)

    def _parse(self, line: bytes, number: int) -> Entry:
        where = f"Line {number} of the journal {self.path}"
        try:
            record = parse_json(line)
        except ValueError as error:
            raise WorkbenchError(
                f"{where} is corrupt ({error}); a line must be one JSON object. Restore the file from a copy, "
                "or delete that line."
            ) from error
        if not isinstance(record, dict) or record.keys() != _KEYS:
            raise WorkbenchError(
                f"{where} is not an entry: it must be a JSON object with v, kind, key and data. Delete that line, or "
                "give another file."
            )
        if record["v"] != VERSION:
            raise WorkbenchError(
                f"{where} has version {shown(record['v'])}; this workbench reads version {VERSION}. Read it with the "
                "workbench that wrote it, or start a new journal."
            )
        if not (isinstance(record["kind"], str) and isinstance(record["key"], str)):
            raise WorkbenchError(f"{where} has a kind or key that is not text. Delete that line, or give another file.")
        return Entry(record["kind"], record["key"], record["data"], number, len(line.rstrip(b"\n")) + 1)


def _line(kind: str, key: str, data: object) -> str:
    return json.dumps({"v": VERSION, "kind": kind, "key": key, "data": data}, allow_nan=False, ensure_ascii=False)
