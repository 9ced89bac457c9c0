"""Files that appear whole or not at all."""

import glob
import os
import re
import socket
import tempfile
from pathlib import Path

import psutil

from workbench.errors import WorkbenchError

_HOST = re.sub(r"\W", "", socket.gethostname())[:40]
_STREAMS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))  # where open files have a second name


def write_whole(path: str | os.PathLike[str], text: str | bytes, mode: int = 0o600) -> None:
    """Write `text`, or bytes as they are, to `path`, all of it or nothing; folders are made.

    Its owner alone may read the file unless `mode` says otherwise, whatever the umask is.

    A symbolic link stays, and what it points to is written. What is not a regular file, such as a pipe, or another name
    of an open file, such as ``/dev/stdout``, is written straight, at its end.
    """
    try:
        data = text.encode("utf-8") if isinstance(text, str) else text
        if Path(path).absolute().parent in _STREAMS or (Path(path).exists() and not Path(path).is_file()):
            with Path(path).open("ab") as stream:
                stream.write(data)
        else:
            _replace(Path(os.path.realpath(path)), data, mode)
    except UnicodeEncodeError as error:
        half = error.object[error.start : error.end]
        raise WorkbenchError(
            f"{os.fspath(path)!r} cannot hold {half!r}, which is half a character; rename it."
        ) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise WorkbenchError(f"{os.fspath(path)!r} cannot be written: {reason}. Choose another place.") from error


def _replace(target: Path, data: bytes, mode: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name[:40]}.{_HOST}."  # another host's processes are not known here
    for left in target.parent.glob(f"{glob.escape(prefix)}*-*.tmp"):  # of writers of this file that were killed
        writer = left.name.removeprefix(prefix).partition("-")[0]
        if writer.isdigit() and not psutil.pid_exists(int(writer)):
            left.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(prefix=f"{prefix}{os.getpid()}-", suffix=".tmp", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
