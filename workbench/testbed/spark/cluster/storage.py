"""Folders of a cluster, by Spark's own file systems."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from py4j.protocol import Py4JError

from workbench.errors import WorkbenchError

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


def cause_of(text: str) -> str:
    """Return the innermost cause that a Java error names, else its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by:").strip() for line in lines if line.startswith(("Caused by:", ": "))]
    return (causes[-1] if causes else lines[0] if lines else "no reason given").removeprefix(": ").rstrip(".")[:300]
