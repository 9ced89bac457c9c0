"""Jars that PySpark does not include: Spark's Kafka connector and your packages, fetched once from Maven."""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkbenchError
from workbench.records import JobSettings
from workbench.testbed.spark.machine.java import find_java

if TYPE_CHECKING:
    from pyspark import SparkContext

JARS = "WORKBENCH_KAFKA_JARS"
"""Environment variable with a folder of the connector's jars, for machines without access to Maven Central."""

_FOLDER = Path(".workbench/kafka-connector")
_NAME = "spark-sql-kafka-0-10_2.13"
_AVRO = "spark-avro_2.13"
_TRIED = "4.2.0"  # reads, writes and keeps its offsets on Spark 4.3.0
_NEEDED = (_NAME, "spark-token-provider-kafka-0-10_2.13", "kafka-clients", "commons-pool2")
_FETCH_S = 600.0
_IVY = """<ivy-module version="2.0">
<info organisation="workbench" module="connector"/>
<dependencies>
{dependencies}
</dependencies>
</ivy-module>
"""
_DEPENDENCY = '<dependency org="{}" name="{}" rev="{}" conf="default">{}</dependency>'
_OF_SINKS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "delta": {
            "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
            "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
            "4.0": "io.delta:delta-spark_2.13:4.0.0",
        },
        "iceberg": {
            "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
            "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
        },
    }
)  # by Spark's version, the newest first
_PACKAGES = Path(".workbench/packages")
_OF_SPARK = (
    '<exclude org="org.apache.spark" module="spark-(catalyst|common-utils|common-variant|core|graphx|hive|kvstore|'
    "launcher|mllib|mllib-local|network-common|network-shuffle|repl|sketch|sql|sql-api|streaming|tags|unsafe)_.*"
    '" matcher="regexp"/>'
)  # like Spark for packages
_IN_SPARK = (
    "org.apache.hadoop", "org.scala-lang", "org.scala-lang.modules", "org.slf4j", "at.yawk.lz4", "org.lz4",
    "org.xerial.snappy", "com.github.luben", "com.google.code.findbugs",
)  # fmt: skip
_EXCLUDED = "".join(f'<exclude org="{one}"/>' for one in _IN_SPARK)


def connector_jars(progress: Callable[[str], None] = lambda _: None, *, avro: bool = False) -> tuple[str, ...]:
    """Return the paths of the connector's jars, with `avro` also that of ``from_avro``; fetch them at the first use.

    Those of Spark's own version are preferred, and those of 4.2.0 are taken where that is not published.
    """
    needed = (*_NEEDED, _AVRO) if avro else _NEEDED
    named = os.environ.get(JARS)
    if named:
        return _complete(Path(named), needed)
    versions = tuple(dict.fromkeys((version("pyspark"), _TRIED)))
    for folder in (_FOLDER / one for one in versions):
        if (folder / "done").exists() and (not avro or any(folder.glob(f"{_AVRO}-*.jar"))):
            return _complete(folder, needed)
    progress("fetching Spark's Kafka connector from Maven Central")
    reason = ""
    for one in versions:
        reason = fetch_connector(one, _FOLDER / one)
        if not reason:
            return _complete(_FOLDER / one, needed)
    raise WorkbenchError(
        f"Spark's Kafka connector could not be fetched from Maven Central: {reason}. On a machine that can reach it, "
        f"fetch org.apache.spark:{_NAME} and {_AVRO}, version {versions[0]} (or {_TRIED}), with their dependencies, "
        f"copy the jars into a folder here, and name it in {JARS}."
    )


def fetch_connector(spark_version: str, folder: Path) -> str:
    """Fetch the connector and Avro of one version of Spark into `folder`; return why that failed, or nothing."""
    return _fetch([f"org.apache.spark:{name}:{spark_version}" for name in (_NAME, _AVRO)], folder, _EXCLUDED)


def package_jars(packages: Sequence[str], progress: Callable[[str], None] = lambda _: None) -> tuple[str, ...]:
    """Return the paths of the jars of `packages`, ``GROUP:ARTIFACT:VERSION``, and of what they need that Spark lacks.

    They are fetched at the first use.
    """
    if not packages:
        return ()
    folder = _PACKAGES / hashlib.sha256(repr(sorted(packages)).encode()).hexdigest()[:12]
    if not (folder / "done").exists():
        progress(f"fetching {', '.join(packages)} from Maven Central")
        if reason := _fetch(packages, folder, _OF_SPARK):
            raise WorkbenchError(
                f"The packages {', '.join(packages)} could not be fetched from Maven Central: {reason}. Correct them, "
                "or name their jars in the study's key 'jars'.",
                settings=("packages",),
            )
    return tuple(sorted(str(path.resolve()) for path in folder.glob("*.jar")))


def sink_packages(settings: JobSettings) -> tuple[str, ...]:
    """Return the package that the sink needs with this Spark, if any, unless the job brings its own."""
    kind = settings.writes.kind
    known, here = _OF_SINKS.get(kind, {}), version("pyspark")
    if not known or any(f"{kind}-spark" in Path(one).name for one in (*settings.packages, *settings.jars)):
        return ()
    found = known.get(".".join(here.split(".")[:2]))
    if found is None:
        newest = next(iter(known))
        raise WorkbenchError(
            f"The sink {kind} has no release for Spark {here} that the workbench knows; the newest is for Spark "
            f"{newest}, {known[newest]}. Install pyspark {newest}, name a newer release in the study's key 'packages', "
            "or measure with the sink parquet.",
            settings=("sink",),
        )
    return (found,)


def connector_version(jars: tuple[str, ...]) -> str:
    """Version of the connector among `jars`."""
    (found,) = (Path(jar).stem.removeprefix(f"{_NAME}-") for jar in jars if Path(jar).name.startswith(_NAME))
    return found


def load_here(jars: tuple[str, ...], jvm: Any) -> None:  # noqa: ANN401 - py4j's view of the JVM
    """Let the driver's JVM, which is running, find the classes of `jars`; your own class path stays as it is."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for jar in jars:
        loader.addURL(jvm.java.io.File(jar).toURI().toURL())


def bring(jars: tuple[str, ...], settings: JobSettings, context: "SparkContext") -> None:
    """Make the executors fetch `jars` and the files of `settings` from the driver before their next task."""
    for jar in jars:
        context._jsc.addJar(jar)  # noqa: SLF001 - PySpark has no such method
    for path in settings.py_files:
        context.addPyFile(str(Path(path).resolve()))
    for path in settings.files:
        context.addFile(str(Path(path).resolve()))


def _complete(folder: Path, needed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the jars in `folder` that are needed; each must be there once."""
    found = sorted(str(path.resolve()) for path in folder.glob("*.jar"))
    for name in needed:
        count = sum(Path(jar).name.startswith(f"{name}-") for jar in found)
        if count != 1:
            raise WorkbenchError(
                f"The folder {folder} has {count or 'no'} {name}-VERSION.jar; Spark's Kafka connector needs one each "
                f"of {', '.join(needed)}. Correct it, or unset {JARS} to have them fetched."
            )
    return tuple(jar for jar in found if Path(jar).name.startswith(needed))


def _fetch(packages: Sequence[str], folder: Path, excluded: str) -> str:
    """Fetch packages with the Ivy that PySpark includes; return why that failed, or nothing."""
    import pyspark  # noqa: PLC0415 - importing the workbench must not import pyspark

    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    with tempfile.TemporaryDirectory(prefix="ivy-") as scratch:
        asked = Path(scratch, "ivy.xml")
        dependencies = "\n".join(_DEPENDENCY.format(*one.split(":"), excluded) for one in packages)
        asked.write_text(_IVY.format(dependencies=dependencies), encoding="utf-8")
        java = f"{find_java(Path(scratch)).home}/bin/java"
        pattern = f"{folder.resolve()}/[artifact]-[revision].[ext]"
        command = [java, "-jar", str(ivy), "-ivy", str(asked), "-confs", "default", "-retrieve", pattern,
                   "-cache", f"{scratch}/cache"]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_S, check=False)
        except subprocess.TimeoutExpired:
            return f"nothing came within {_FETCH_S:g} s"
    fetched = [folder / "-".join(one.split(":")[1:]) for one in packages]
    if done.returncode or not all(Path(f"{one}.jar").exists() for one in fetched):
        lines = (line.strip(" \t:") for line in done.stdout.splitlines())
        return next((line for line in lines if "not found" in line or "ERROR" in line), "no reason was given")
    (folder / "done").touch()
    return ""
