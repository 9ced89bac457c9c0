"""What executors run: modules of the workbench and the user in a zip file, and an archive of installed packages.

Spark unpacks the archive next to each executor, with the Python in it. The driver stays this process's interpreter.
But Spark starts the executors' Python on this machine too, by the same relative path, to plan the source's batches; so
a stand-in for it is where the JVM is started.
"""

import functools
import hashlib
import shlex
import sys
import sysconfig
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import workbench
from workbench.errors import WorkbenchError
from workbench.records import ENVIRONMENT_PYTHON

_SUFFIXES = (".tar.gz", ".tgz", ".zip")
_MAKE = "conda pack -o environment.tar.gz, or venv-pack -o environment.tar.gz"
_NAME = "workbench-code.zip"
_HOME = Path(workbench.__file__).resolve().parent
_INSTALLED = {"site-packages", "dist-packages"}


def check_name(path: str, python: str | None) -> None:
    """Refuse a file that is not an archive, and a second interpreter."""
    if not path.endswith(_SUFFIXES):
        raise WorkbenchError(
            f"environment is {path!r}; it must be an archive that ends in {', '.join(_SUFFIXES)}, as {_MAKE} makes it. "
            "To name an interpreter that exists on the workers, use python.",
            settings=("environment", "python"),
        )
    if {*",#"} & {*path}:
        raise WorkbenchError(
            f"environment is {path!r}; Spark reads a comma and # in it as the end of a name. Rename the file.",
            settings=("environment",),
        )
    if python is not None:
        raise WorkbenchError(
            f"environment is {path!r}, and python is {python!r}: the executors' Python is the archive's own. Leave one "
            "of them out.",
            settings=("environment", "python"),
        )


def check_there(path: str) -> None:
    """Refuse an archive that is missing on this machine."""
    if not Path(path).is_file():
        raise WorkbenchError(
            f"The environment {path!r} is not a file on this machine, from which Spark gives it to the executors. "
            f"Check the path, or make it: {_MAKE}.",
            settings=("environment",),
        )


def digest(path: str) -> str:
    """Return a digest of the archive's content; the same for a copy elsewhere."""
    check_there(path)
    seen = Path(path).stat()
    return _digest(path, seen.st_size, seen.st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _digest(path: str, _size: int, _changed_ns: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stand_in(folder: Path) -> str:
    """Write this process's interpreter under the archive's name into `folder`; return the name, relative to it."""
    place = folder / ENVIRONMENT_PYTHON
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f'#!/bin/sh\ncd {shlex.quote(str(Path.cwd()))} && exec {shlex.quote(sys.executable)} "$@"\n')
    place.chmod(0o700)
    return ENVIRONMENT_PYTHON


def pack(folder: Path, modules: Iterable[ModuleType] | None = None) -> Path:
    """Write the workbench and those of `modules` (default: all loaded) that are the user's into a zip file in `folder`.

    A module of the user is one that is neither Python's nor installed. Of a package, all modules are packed; a
    module that is imported for the first time inside a task is packed only then.
    """
    target = folder / _NAME
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for file in sorted(_HOME.rglob("*.py")):
            archive.write(file, f"{_HOME.name}/{file.relative_to(_HOME).as_posix()}")
        for name, file in sorted(set(_own(list(sys.modules.values()) if modules is None else modules))):
            archive.write(file, name)
    return target


def _own(modules: Iterable[ModuleType]) -> Iterator[tuple[str, Path]]:
    """Name in the archive and file of every module of the user."""
    for module in modules:
        file = Path(getattr(module, "__file__", None) or "")
        name = getattr(module, "__name__", "")
        if file.suffix != ".py" or name == "__main__" or not _users(file.resolve()):
            continue
        place = name.replace(".", "/")
        if file.name != "__init__.py":
            yield f"{place}.py", file
            continue
        for part in file.parent.rglob("*.py"):
            yield f"{place}/{part.relative_to(file.parent).as_posix()}", part


def _users(file: Path) -> bool:
    python = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
    return file.is_file() and not (_INSTALLED & {*file.parts} or _HOME in file.parents or python & {*file.parents})
