"""Folders of a cluster, by Spark's own file systems, and what executors run: a zip of code, an archive of packages.

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
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from py4j.protocol import Py4JError

import workbench
from workbench.errors import WorkbenchError
from workbench.records import ENVIRONMENT_PYTHON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OTHER_FOLDER = "Name a folder that both reach: hdfs:, s3a:, or file: on a shared mount."
_NO_S3A = "S3AFileSystem not found"


def check_shared(spark: "SparkSession", folder: str, files: int, key: str = "checkpoint") -> None:
    """Make `folder`, and check that executors read in it what this machine writes; `key` of a study names it."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - only the driver process loads Spark

    names = [f"{folder}/reached-{number}" for number in range(files)]
    try:
        for name in names:
            system, path = _at(spark._jvm, spark._jsc.hadoopConfiguration(), name)  # noqa: SLF001 - py4j's only door
            file = system.create(path)
            file.write(bytearray(b"reached\n"))
            file.close()
        found = spark.read.text(names).count()
    except (Py4JError, PySparkException) as error:
        raise WorkbenchError(
            f"The folder {folder} cannot be written here and read by the executors: {cause_of(str(error))}. "
            f"{_remedy(spark, str(error)) or _OTHER_FOLDER}",
            settings=(key,),
        ) from error
    if found != files:
        raise WorkbenchError(
            f"Executors read {found} of {files} files in {folder} that this machine wrote. {_OTHER_FOLDER}",
            settings=(key,),
        )


def check_log_folder(spark: "SparkSession", folder: str) -> None:
    """Check, before anything is measured, that this machine can write the event log into `folder`, a URI."""
    try:
        system, path = _at(spark._jvm, spark._jsc.hadoopConfiguration(), f"{folder.rstrip('/')}/reached-{uuid4().hex}")  # noqa: SLF001
        system.create(path).close()  # makes the folder where it is missing, as copying does
        system.delete(path, False)  # noqa: FBT003 - one file
    except Py4JError as error:
        raise WorkbenchError(
            f"The event log cannot be kept in {folder}: {cause_of(str(error))}. "
            f"{_remedy(spark, str(error)) or 'Name a folder that this machine can write to, or leave it out.'}",
            settings=("event_log",),
        ) from error


def _remedy(spark: "SparkSession", text: str) -> str:
    """Return the next step where `text` says that Spark lacks the file system of s3a, as PySpark does; else ""."""
    if _NO_S3A not in text:
        return ""
    version = spark._jvm.org.apache.hadoop.util.VersionInfo.getVersion()  # type: ignore[union-attr]  # noqa: SLF001
    return f"Add spark.jars.packages: org.apache.hadoop:hadoop-aws:{version} to your spark-defaults.conf."


def remove(spark: "SparkSession", folder: str) -> str:
    """Remove `folder`, if it is there and can be; return why it cannot, "" if it is gone."""
    try:
        system, path = _at(spark._jvm, spark._jsc.hadoopConfiguration(), folder)  # noqa: SLF001
        system.delete(path, True)  # noqa: FBT003 - with what is in it
    except Py4JError as error:
        return cause_of(str(error))
    return ""


def names_in(spark: "SparkSession", folder: str) -> list[str]:
    """Name what is in `folder`, a URI; empty if it does not exist."""
    system, path = _at(spark._jvm, spark._jsc.hadoopConfiguration(), folder)  # noqa: SLF001
    return [one.getPath().getName() for one in system.listStatus(path)] if system.exists(path) else []


def copy_into(jvm: Any, configuration: Any, file: Path, folder: str) -> None:  # noqa: ANN401 - py4j is not typed
    """Copy a local file into `folder`, a URI, which is made where it is missing."""
    system, path = _at(jvm, configuration, f"{folder.rstrip('/')}/{file.name}")
    system.mkdirs(path.getParent())
    system.copyFromLocalFile(jvm.org.apache.hadoop.fs.Path(file.as_uri()), path)


def _at(jvm: Any, configuration: Any, uri: str) -> tuple[Any, Any]:  # noqa: ANN401
    path = jvm.org.apache.hadoop.fs.Path(uri)
    return path.getFileSystem(configuration), path


def cause_of(text: str, most: int = 300) -> str:
    """Return up to `most` letters of the innermost cause that a Java error names, else its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by:").strip() for line in lines if line.startswith(("Caused by:", ": "))]
    return (causes[-1] if causes else lines[0] if lines else "no reason given").removeprefix(": ").rstrip(".")[:most]


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
