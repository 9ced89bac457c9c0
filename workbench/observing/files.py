"""Event logs as Spark leaves them: one file, or a folder of rolling files; plain or compressed; perhaps still written.

Lines are read one after the other, so memory does not grow with the log, and lines of no use here are not parsed. A
last line that is torn is left out.
"""

import io
import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from workbench.errors import WorkbenchError

USEFUL = frozenset(
    {
        "SparkListenerLogStart",
        "SparkListenerApplicationStart",
        "SparkListenerEnvironmentUpdate",
        "SparkListenerExecutorAdded",
        "SparkListenerExecutorRemoved",
        "SparkListenerJobStart",
        "SparkListenerTaskEnd",
        "SparkListenerStageCompleted",
        "SparkListenerSQLExecutionStart",
        "SparkListenerSQLAdaptiveExecutionUpdate",
        "QueryStartedEvent",
        "QueryProgressEvent",
        "QueryIdleEvent",
        "QueryTerminatedEvent",
    }
)
"""Events that say something of a query's capacity, by the last part of their names."""

UNREADABLE: dict[str, Any] = {}
"""What a line within a log that cannot be read gives."""

_NAME = re.compile(rb'\s*\{"Event":"[\w.$]*?([A-Za-z]+)"')
_ROLLING = re.compile(r"events_(\d+)_")
_CODECS = (".zstd", ".lz4", ".snappy")
_LZ4, _SNAPPY = b"LZ4Block", b"\x82SNAPPY\x00"
_LZ4_HEAD, _SNAPPY_HEAD = struct.Struct("<8sBiii"), struct.Struct(">8sii")
_LZ4_PLAIN = 0x10
_PIECE = 1 << 16  # bytes: what follows the last whole piece of a file that is still written is lost
_LONGEST = 1 << 26  # bytes of a line
_MOST = 1 << 28  # bytes of a block that a header may announce


def read_events(path: str | Path) -> Iterator[dict[str, Any]]:
    """Read the useful events of a log in order.

    Parameters
    ----------
    path
        A file, or the folder of a rolling log (``eventlog_v2_...``).

    Raises
    ------
    WorkbenchError
        When it cannot be read, holds logs of several applications, or does not begin as an event log. Lines that
        cannot be read further on are given as `UNREADABLE`.
    """
    seen = 0
    for file, is_last in _in_order(path):
        number = 0
        try:
            with _opened(file) as lines:
                for line in _whole(lines, last=is_last):
                    number += 1
                    try:
                        event = _parsed(line)
                    except _NotALogError:
                        if not seen:
                            raise
                        event = UNREADABLE
                    if event is not None:
                        yield event
                    seen += 1
        except OSError as error:
            raise WorkbenchError(
                f"The event log {file} cannot be read: {error.strerror or error}. Check the path and its permissions."
            ) from error
        except _NotALogError as error:
            raise WorkbenchError(
                f"{file} is no event log of Spark: line {number} is {error}. Give a file or folder that Spark wrote "
                "with spark.eventLog.enabled=true."
            ) from error
    if not seen:
        raise WorkbenchError(f"The event log {path} is empty. Wait until the application has written to it.")


def _in_order(path: str | Path) -> Iterator[tuple[Path, bool]]:
    """Give the files of a log, each with whether it is the last."""
    try:
        files = log_files(path)
    except OSError as error:  # a name too long, a folder that may not be read
        raise WorkbenchError(
            f"The event log {str(path)[:200]} cannot be read: {error.strerror or error}. Check the path."
        ) from error
    for place, file in enumerate(files, 1):
        yield file, place == len(files)


def log_files(path: str | Path) -> list[Path]:
    """Give the files of a log in order: the file itself, or what a folder of a rolling log holds.

    Raises
    ------
    WorkbenchError
        When there is none, or a folder holds several applications.
    """
    place = Path(path)
    if place.is_file():
        return [place]
    if not place.is_dir():
        if elsewhere := re.match(r"(hdfs|s3a?|gs|abfss?|wasbs?):", str(path)):
            copy = {"h": f"hdfs dfs -get {path} .", "s": f"aws s3 cp --recursive {path} log"}.get(elsewhere[1][0], "")
            raise WorkbenchError(
                f"The event log {path} is in a store that is not read from here. Copy it first"
                + (f", for example with: {copy}" if copy else ".")
            )
        raise WorkbenchError(f"The event log {path} does not exist. Give a file, or the folder of a rolling log.")
    rolling = {one: int(found[1]) for one in place.iterdir() if (found := _ROLLING.match(one.name))}
    if rolling:
        compacted = max((rolling[one] for one in rolling if _compact(one)), default=0)
        kept = [one for one in rolling if rolling[one] > compacted or (rolling[one] == compacted and _compact(one))]
        return sorted(kept, key=lambda one: rolling[one])  # what a compact file replaces may still be there
    logs = sorted(one for one in place.iterdir() if not one.name.startswith("."))
    if len(logs) == 1:
        return log_files(logs[0])
    names = ", ".join(one.name for one in logs[:5]) + (", ..." if len(logs) > 5 else "")
    raise WorkbenchError(
        f"{path} holds {len(logs)} entries ({names or 'nothing'}); an event log is one file, or one folder "
        "eventlog_v2_.... Give one of them."
    )


def _compact(file: Path) -> bool:
    return file.name.endswith(".compact")


class _NotALogError(Exception):
    """A line that no event log has; the message says what it is."""


def _whole(lines: IO[bytes], *, last: bool) -> Iterator[bytes]:
    """Give the lines; the last one only where it is complete, or another file follows."""
    try:
        while line := lines.readline(_LONGEST):
            if len(line) == _LONGEST and not line.endswith(b"\n"):
                raise _NotALogError(f"longer than {_LONGEST >> 20} MiB")
            if line.strip() and (line.endswith(b"\n") or not last or _complete(line)):
                yield line
    except EOFError:  # the file ends within a compressed block: it is still written
        return


def _complete(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Give the event of a line; None if it is of no use here."""
    found = _NAME.match(line)
    if found is None or found[1].decode() in USEFUL:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            raise _NotALogError(repr(line[:40].decode("utf-8", "replace"))) from None
        if not isinstance(event, dict) or not isinstance(event.get("Event"), str):
            raise _NotALogError(f"{line[:40].decode('utf-8', 'replace')!r}, not an event")
        return event if re.split(r"[.$]", event["Event"])[-1] in USEFUL else None
    return None


def _opened(file: Path) -> IO[bytes]:
    """Open a log's file, decompressed as its name says."""
    suffix = file.name.removesuffix(".compact").removesuffix(".inprogress")
    suffix = suffix[suffix.rfind(".") :] if "." in suffix else ""
    if suffix not in _CODECS:
        if suffix == ".lzf":
            raise WorkbenchError(
                f"{file} is compressed with lzf, which the workbench does not read. Set spark.eventLog.compress=false, "
                "or spark.eventLog.compression.codec=zstd."
            )
        return file.open("rb")
    raw = file.open("rb")
    if suffix == ".zstd":
        return io.BufferedReader(_Blocks(_zstd(raw), raw))
    return io.BufferedReader(_Blocks(_lz4(raw) if suffix == ".lz4" else _snappy(raw), raw))


class _Blocks(io.RawIOBase):
    """Decompressed blocks as one stream."""

    def __init__(self, blocks: Iterator[bytes], raw: IO[bytes]) -> None:
        self._blocks, self._raw, self._left = blocks, raw, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a buffer, as of RawIOBase
        while not self._left:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._left = block
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


def _zstd(raw: IO[bytes]) -> Iterator[bytes]:
    """Decompress; what a file that is still written lacks at its end is left out."""
    stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    while True:
        try:
            block = stream.read(_PIECE)
        except OSError as error:
            if "Truncated" in str(error):
                return
            raise
        if not block:
            return
        yield block


def _lz4(raw: IO[bytes]) -> Iterator[bytes]:
    """Decompress the blocks of lz4-java's LZ4BlockOutputStream: magic, method, sizes, checksum, data."""
    codec = pa.Codec("lz4_raw")
    while len(head := raw.read(_LZ4_HEAD.size)) == _LZ4_HEAD.size:
        magic, token, size, plain_size, _ = _LZ4_HEAD.unpack(head)
        if magic != _LZ4 or not (0 <= size <= _MOST and 0 <= plain_size <= _MOST):
            raise OSError("it is not in lz4's blocks")
        data = raw.read(size)
        if len(data) < size:
            return
        if size:
            yield data if token & 0xF0 == _LZ4_PLAIN else codec.decompress(data, plain_size, asbytes=True)


def _snappy(raw: IO[bytes]) -> Iterator[bytes]:
    """Decompress the blocks of snappy-java's SnappyOutputStream: a header, then size and data of each."""
    codec = pa.Codec("snappy")
    head = raw.read(_SNAPPY_HEAD.size)
    if head and _SNAPPY_HEAD.unpack(head.ljust(_SNAPPY_HEAD.size, b"\0"))[0] != _SNAPPY:
        raise OSError("it is not in snappy's blocks")
    while len(head := raw.read(4)) == 4:
        (size,) = struct.unpack(">i", head)
        if not 0 <= size <= _MOST:
            raise OSError("it is not in snappy's blocks")
        data = raw.read(size)
        if len(data) < size:
            return
        yield codec.decompress(data, _plain_size(data), asbytes=True)


def _plain_size(data: bytes) -> int:
    """Read the size that raw snappy data begin with, a variable-length number."""
    size = 0
    for shift, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << (7 * shift)
        if not byte & 0x80:
            return size
    raise OSError("it is not in snappy's blocks")
