"""Files as Spark and its users leave them: one file, a rolling log's folder, or a folder of many; may be compressed.

What is still written is read as far as it goes.
"""

import gzip
import io
import os
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from workbench.errors import WorkbenchError

_ROLLING = re.compile(r"events_(\d+)_")
_LZ4, _SNAPPY = b"LZ4Block", b"\x82SNAPPY\x00"
_LZ4_HEAD, _SNAPPY_HEAD = struct.Struct("<8sBiii"), struct.Struct(">8sii")
_LZ4_PLAIN = 0x10
_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zstd"}  # with which a file begins, whatever its name
_PIECE = 1 << 16  # bytes: at the end of a file that is still written, an incomplete piece is lost
_PIECE_GROWING = 1 << 8  # bytes of a followed file: an incomplete piece waits for the next event
_MOST = 1 << 28  # largest block that a header may announce, bytes
_NAMED = 5  # most entries of a folder that an error names


def log_files(path: str | Path) -> list[Path]:
    """Return the files at a path in order: the file itself, those of a rolling log's folder, or all in a folder."""
    try:
        return _files(Path(path), str(path))
    except OSError as error:  # a name that is too long, or a folder without permission
        raise WorkbenchError(
            f"The log {str(path)[:200]} cannot be read: {error.strerror or error}. Check the path."
        ) from error


def _files(place: Path, path: str) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        if elsewhere := re.match(r"(hdfs|s3a?|gs|abfss?|wasbs?|dbfs):", path):
            copy = {"h": f"hdfs dfs -get {path} .", "s": f"aws s3 cp --recursive {path} log"}.get(elsewhere[1][0], "")
            raise WorkbenchError(
                f"The log {path} is in a store that is not read from here. Copy it first"
                + (f", for example with: {copy}" if copy else ".")
            )
        raise WorkbenchError(f"The log {path} does not exist. Give a file, or a folder of files.")
    entries = [one for one in place.iterdir() if not one.name.startswith((".", "_"))]
    rolling = {one: int(found[1]) for one in entries if (found := _ROLLING.match(one.name))}
    if rolling:
        compact = {one for one in rolling if one.suffix == ".compact"}
        last = max((rolling[one] for one in compact), default=0)
        kept = [one for one in rolling if rolling[one] > last or (rolling[one] == last and one in compact)]
        return sorted(kept, key=lambda one: rolling[one])  # the files that a compact file replaces may still exist
    if len(entries) == 1:
        return _files(entries[0], str(entries[0]))
    inside = (one for one in place.rglob("*") if one.is_file() and one.suffix != ".crc")
    hidden = (".", "_")
    return sorted(one for one in inside if not any(part.startswith(hidden) for part in one.relative_to(place).parts))


def entries_of(path: str | Path) -> str:
    """Name the entries of a folder, for an error."""
    entries = sorted(one.name for one in Path(path).iterdir() if not one.name.startswith("."))
    named = ", ".join(entries[:_NAMED]) + ", ..." * (len(entries) > _NAMED)
    return f"{len(entries)} entries ({named or 'nothing'})"


class Growing(io.RawIOBase):
    """A file that is still written, and may disappear and come back: at its end, more is waited for.

    One that is replaced or made shorter, as by a rotation of logs, is read from its new beginning. `is_over` says
    whether another file has followed it. `wait` is called where there is nothing to read; what it raises ends the
    reading.
    """

    def __init__(self, file: Path, is_over: Callable[[], bool], wait: Callable[[], None]) -> None:
        self._path, self._is_over, self._wait = file, is_over, wait
        self._file = file.open("rb", buffering=0)

    def readable(self) -> bool:
        """Return True: the file can be read."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a buffer, as of RawIOBase
        """Fill a buffer with the available bytes, and wait for some; 0 once another file has followed."""
        while True:
            if count := self._file.readinto(buffer):
                return count
            is_over, is_replaced = self._is_over(), self._is_replaced()
            if count := self._file.readinto(buffer):  # bytes written before the next file was seen
                return count
            if is_replaced:
                with suppress(FileNotFoundError):  # it disappeared again
                    old, self._file = self._file, self._path.open("rb", buffering=0)
                    old.close()
            elif is_over:
                return 0
            elif os.fstat(self._file.fileno()).st_size < self._file.tell():
                self._file.seek(0)
            else:
                self._wait()

    def _is_replaced(self) -> bool:
        try:
            there, here = self._path.stat(), os.fstat(self._file.fileno())
        except OSError:
            return False
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def opened(file: Path, live: io.RawIOBase | None = None) -> io.BufferedReader:
    """Open a file, and decompress it according to its first bytes or its name; `live` is the same file as it grows."""
    suffix = file.name.removesuffix(".compact").removesuffix(".inprogress")
    suffix = suffix[suffix.rfind(".") :] if "." in suffix else ""
    if suffix == ".lzf":
        raise WorkbenchError(
            f"{file} is compressed with lzf, which the workbench does not read. Set spark.eventLog.compress=false, "
            "or spark.eventLog.compression.codec=zstd."
        )
    if suffix == ".zstd" and live is not None:  # it takes the bytes there are
        return io.BufferedReader(_Blocks(_zstd(live, _PIECE_GROWING), live))
    raw: io.BufferedReader = file.open("rb") if live is None else io.BufferedReader(live)
    if live is None:
        suffix = _MAGIC.get(raw.peek(4)[:2], _MAGIC.get(raw.peek(4)[:4], suffix))
    if suffix == ".gz":
        return io.BufferedReader(gzip.GzipFile(fileobj=raw))
    blocks = {".zstd": lambda: _zstd(raw, _PIECE), ".lz4": lambda: _lz4(raw), ".snappy": lambda: _snappy(raw)}
    return io.BufferedReader(_Blocks(blocks[suffix](), raw)) if suffix in blocks else raw


class _Blocks(io.RawIOBase):
    """Decompressed blocks as one stream."""

    def __init__(self, blocks: Iterator[bytes], raw: IO[bytes] | io.RawIOBase) -> None:
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


def _zstd(raw: IO[bytes] | io.RawIOBase, piece: int) -> Iterator[bytes]:
    """Decompress; leave out what a file that is still written lacks at its end."""
    stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    while True:
        try:
            block = stream.read(piece)
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
