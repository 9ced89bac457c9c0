"""What your job brings along: its sink and checkpoint, Spark's own settings, packages, jars and files.

A value may name variables of the environment, ``${NAME}``. They are looked up where Spark starts, and never written
down: documents keep the name, and every text hides the value.
"""

import hashlib
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from urllib.parse import urlsplit

from workbench import bounds
from workbench.checks import shown
from workbench.errors import WorkbenchError
from workbench.reading import is_there
from workbench.redaction import VARIABLE, hide, is_secret, redacted

_NAME = re.compile(r"spark\.[\w.\-]+")
_PACKAGE = re.compile(r"[\w.\-]+:[\w.\-]+:[\w.\-]+")
_ENDINGS: Mapping[str, tuple[str, ...]] = {"jars": (".jar",), "py_files": (".py", ".zip", ".egg")}
_LEAST = 4  # shortest value that is hidden, in characters: a shorter one occurs in any text

_PARTITIONS = "partitions are planned, and must stay as planned"
_READ = "the workbench reads what it writes"
_TRUST = "the workbench makes a secret of its own for each run; a cluster's belongs in its spark-defaults.conf"
OURS: Mapping[str, str] = {
    "spark.master": "the study's key 'master' says where Spark runs",
    "spark.app.": "each deployment is an application of its own",
    "spark.submit.pyFiles": "use the study's key 'py_files'",
    "spark.submit.": "the workbench starts the driver itself",
    "spark.jars": "use the study's key 'jars'",
    "spark.jars.packages": "use the study's key 'packages'",
    "spark.files": "use the study's key 'files'",
    **dict.fromkeys(("spark.archives", "spark.yarn.dist.archives"), "use the study's key 'environment'"),
    "spark.pyspark.": "use the study's keys 'python' and 'environment'",
    "spark.executorEnv.PYTHONPATH": "use the study's key 'py_files'",
    "spark.executorEnv.PYTHONSAFEPATH": "a file in the current folder must take no library's place",
    **{
        f"spark.{name}": "it follows from the study's slots, slot_cpus and memory_mb"
        for name in (
            *("executor.cores", "executor.instances", "task.cpus", "cores.max", "memory.offHeap."),
            *("executor.memory", "executor.memoryOverhead", "executor.memoryOverheadFactor"),
            *("kubernetes.executor.request.cores", "kubernetes.executor.limit.cores"),
            "sql.streaming.stateStore.rocksdb.boundedMemoryUsage",
            "sql.streaming.stateStore.rocksdb.maxMemoryUsageMB",
        )
    },
    "spark.dynamicAllocation.": "a budget is measured with all its executors",
    "spark.speculation": "a task that runs twice is not a task's cost",
    "spark.kubernetes.executor.podNamePrefix": "the workbench removes its pods by their names",
    "spark.driver.memory": "the driver is the testbed's, and no part of the budget",
    **dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), "use the study's key 'driver_host'"),
    "spark.python.authenticate.socketTimeout": "use the study's key 'allocation_s'",
    "spark.local.dir": "the folder is the deployment's, and is removed with it",
    **dict.fromkeys(
        ("spark.hadoop.fs.file.impl", "spark.hadoop.fs.AbstractFileSystem.file.impl"),
        "local files are written without starting a process for each",
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "it belongs to how local files are written",
    "spark.eventLog.": _READ,
    "spark.sql.streaming.metricsEnabled": _READ,
    "spark.sql.streaming.numRecentProgressUpdates": _READ,
    **dict.fromkeys(
        ("spark.log.level", "spark.executor.syncLogLevel.enabled"),
        "logs of every batch would be part of what is measured",
    ),
    "spark.ui.": "the event log has all of it, and a deployment opens no port",
    "spark.redaction.": "what a log hides is decided by names that may hold secrets",
    "spark.authenticate": _TRUST,
    "spark.authenticate.": _TRUST,
    "spark.sql.shuffle.partitions": _PARTITIONS,
    "spark.sql.adaptive.": _PARTITIONS,
    "spark.sql.session.timeZone": "replayed event times are in UTC",
    "spark.sql.streaming.checkpointLocation": "use the study's key 'checkpoint'",
}
"""Settings that a study may not make, by name or, with a dot at the end, by prefix, each with the reason."""

JOINED: Mapping[str, str] = {
    "spark.driver.extraJavaOptions": " ",
    "spark.executor.extraJavaOptions": " ",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.executor.extraClassPath": os.pathsep,
}
"""Settings to which yours are appended, each with the separator. They are read when a JVM starts."""

NOOP, FUNCTION = "noop", "foreachBatch"
_ALL = ("append", "update", "complete")
MODES: Mapping[str, tuple[str, ...]] = {
    NOOP: _ALL,
    "parquet": ("append",),
    "delta": ("append", "complete"),
    "iceberg": ("append", "complete"),
    "kafka": _ALL,
    FUNCTION: _ALL,
}
"""Output modes that a sink allows, by its kind."""

_SINK_NEEDS: Mapping[str, Mapping[str, str]] = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
}
"""Settings of Spark without which a sink is not found, by its kind; a job's own replace them."""

_PLACED = ("parquet", "delta", "iceberg")
_TOPIC = re.compile(r"kafka://[^/\s]+/[\w.\-]+")
_OWN = re.compile(r"[\w.]+:[^\W\d]\w*|[^\s:]+\.py:[^\W\d]\w*")
_SCHEME = re.compile(r"([a-z][a-z0-9+.\-]+):/")
_EXAMPLES = (
    "noop, parquet PLACE, delta PLACE, iceberg PLACE, kafka://HOST:PORT/TOPIC, or module:function for foreachBatch"
)


@dataclass(frozen=True)
class Sink:
    """Where a query writes, as a study names it in one text; see `parse`."""

    kind: str = NOOP
    # a folder, as a path or the URI of a file system of Spark's; of Kafka a topic, ``kafka://HOST:PORT/TOPIC``. Runs
    # write to places of their own in it, or next to it. "": nowhere, or where its function writes
    place: str = ""
    function: str = ""  # ``module:function`` that ``foreachBatch`` calls; "" for another kind

    @classmethod
    def parse(cls, text: str) -> "Sink":
        """Read the text of a study.

        It is ``noop``, ``parquet PLACE``, ``delta PLACE``, ``iceberg PLACE``, ``kafka://HOST:PORT/TOPIC``, or
        ``module:function`` for ``foreachBatch``, with a place that it takes as its argument `place` or without one.

        Raises `WorkbenchError` when it names no sink, or lacks or has too much of a place.
        """
        first, _, place = text.strip().partition(" ")
        place = place.strip()
        if _TOPIC.fullmatch(text.strip()):
            return cls("kafka", text.strip())
        check_place("sink", place)
        if first in _PLACED and place:
            return cls(first, place)
        if first == NOOP and not place:
            return cls()
        if _OWN.fullmatch(first):
            return cls(FUNCTION, place, first)
        lacks = " It lacks its place, a folder." if first in _PLACED else ""
        raise WorkbenchError(f"sink is {shown(text)}; it must be one of {_EXAMPLES}.{lacks}", settings=("sink",))

    @property
    def words(self) -> str:
        """The sink's kind for a reader, without its place: reports show no paths."""
        return self.function or self.kind

    @property
    def warning(self) -> str:
        """Warning for users that each run writes for real; "" if it does not."""
        if self.kind == "kafka":
            return f"every batch is written for real, to a topic of its own next to {self.place}, deleted afterwards"
        if self.place:
            return f"every batch is written for real, to a folder of its own in {self.place}, removed afterwards"
        return self.function and (
            f"every batch goes to {self.function} for real, which writes where it always does: name a place after it, "
            "and it gets a folder of its own there as its argument 'place'"
        )


def is_uri(place: str) -> bool:
    """Whether a place begins with its file system, and so may be on another machine."""
    found = _SCHEME.match(place)
    return found is not None and found[1] != "file"


def path_of(place: str) -> str:
    """Return the path of a place on this machine."""
    return urlsplit(place).path if place.startswith("file:") else place


def check_place(name: str, place: str) -> None:
    """Refuse a place that would keep a secret."""
    try:
        password = urlsplit(place).password
    except ValueError as error:  # its text may show a password
        raise WorkbenchError(
            f"{name} is {place.rpartition('@')[2]!r}, which is not a URI. Correct it.", settings=(name,)
        ) from error
    if password:
        raise WorkbenchError(
            f"{name} has a password in its address, which would be kept in journals and plans. Put credentials into "
            "your spark-defaults.conf, or into the study's key 'spark' as ${NAME}, a variable of the environment.",
            settings=(name,),
        )


@dataclass(frozen=True)
class JobSettings:
    """What your job brings along; settings of the workbench and written-out secrets are refused."""

    # Spark's settings by name, as written: variables are not replaced
    spark: Mapping[str, str] = field(default_factory=dict, hash=False)
    packages: tuple[str, ...] = ()  # Maven coordinates, ``GROUP:ARTIFACT:VERSION``
    # jars, py_files, files: paths on this machine: jars for the class path; ``.py``, ``.zip`` and ``.egg`` for
    # Python's; files that tasks find with ``SparkFiles.get``
    jars: tuple[str, ...] = ()
    py_files: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    sink: str = NOOP
    # folder in which each run makes one for its checkpoint: a path, or the URI of a file system of Spark's. "": in
    # memory; on a cluster, the cluster's
    checkpoint: str = ""

    def __post_init__(self) -> None:
        Sink.parse(self.sink)
        check_place("checkpoint", self.checkpoint)
        for name, value in self.spark.items():
            _check_setting(name, value)
        for one in self.packages:
            if not _PACKAGE.fullmatch(one):
                raise WorkbenchError(
                    f"packages has {shown(one)}; write Maven coordinates, GROUP:ARTIFACT:VERSION, such as "
                    "io.delta:delta-spark_2.13:4.0.0.",
                    settings=("packages",),
                )
        for key, endings in _ENDINGS.items():
            for one in getattr(self, key):
                if not one.endswith(endings):
                    raise WorkbenchError(
                        f"{key} has {shown(one)}; name files that end in {' or '.join(endings)}.", settings=(key,)
                    )

    def __bool__(self) -> bool:
        return self.sink != NOOP or any(getattr(self, one.name) for one in fields(self) if one.name != "sink")

    @property
    def writes(self) -> Sink:
        """Where the query writes."""
        return Sink.parse(self.sink)

    @property
    def places(self) -> dict[str, str]:
        """Folders that runs write into, by the study's key; a sink's function without a place names none."""
        sink = self.writes
        named = {"sink": "" if sink.kind == "kafka" else sink.place, "checkpoint": self.checkpoint}
        return {key: place for key, place in named.items() if place}

    @property
    def needed(self) -> dict[str, str]:
        """Spark's settings as written, with those that the sink needs."""
        return {**_SINK_NEEDS.get(self.writes.kind, {}), **self.spark}

    @property
    def listed(self) -> str:
        """Names of everything that is brought along, without values; "" without any."""
        return ", ".join((*self.spark, *self.packages, *(Path(path).name for _, path in self._paths())))

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables of the environment in values."""
        return tuple(dict.fromkeys(name for value in self.spark.values() for name in VARIABLE.findall(value)))

    @property
    def identity(self) -> str:
        """What a measurement depends on: names, values as written, and the content of files; "" without any.

        A variable's value is not part of it: another password measures the same.
        """
        if not self:
            return ""
        digest = hashlib.sha256()
        for part in (repr(sorted(self.spark.items())), repr(self.packages)):
            digest.update(part.encode())
        if self.sink != NOOP or self.checkpoint:
            digest.update(repr((self.sink, self.checkpoint)).encode())
        for key, path in self._paths():
            digest.update(repr((key, Path(path).name)).encode())
            try:
                with Path(path).open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
            except OSError as error:
                raise WorkbenchError(
                    f"{key} has {shown(path)}, which cannot be read: {error.strerror}. Correct it.", settings=(key,)
                ) from error
        return f"settings of the job {digest.hexdigest()[:8]}"

    def resolved(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Spark's settings with the variables replaced; their values are hidden in every text from now on.

        Raises `WorkbenchError` when a variable is not set, or is too short to be hidden.
        """
        for name in self.variables:
            value = environ.get(name)
            if value is None:
                raise WorkbenchError(
                    f"The variable {name} is not set, and the study's key 'spark' names it. Set it: export {name}=...",
                    settings=("spark",),
                )
            if len(value) < _LEAST:
                raise WorkbenchError(
                    f"The variable {name} has {len(value)} characters; it takes {_LEAST} to be hidden in texts. Write "
                    "its value into the study, or use a longer one.",
                    settings=("spark",),
                )
            hide(value)
        return {key: VARIABLE.sub(lambda found: environ[found[1]], value) for key, value in self.needed.items()}

    def check_here(self, environ: Mapping[str, str] = os.environ) -> None:
        """Refuse what is missing on this machine, before anything starts."""
        self.resolved(environ)
        for key, path in self._paths():
            if not Path(path).is_file():
                raise WorkbenchError(f"{key} has {shown(path)}, which is not a file here. Correct it.", settings=(key,))
        for key, place in self.places.items():
            if is_uri(place):
                continue
            folder = Path(path_of(place))
            there = next(one for one in (folder, *folder.absolute().parents) if is_there(one))
            if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
                reason = "is not a folder" if not there.is_dir() else "cannot be written to"
                raise WorkbenchError(
                    f"{key} names {shown(str(folder))}, and {there} {reason}. Name another.", settings=(key,)
                )

    def conf(self, given: Mapping[str, str]) -> dict[str, str]:
        """Add the settings, as written, to those `given`: the study's replace them, and `JOINED` are appended."""
        return {
            **given,
            **{
                key: JOINED[key].join(filter(None, (given.get(key), value))) if key in JOINED else value
                for key, value in self.needed.items()
            },
        }

    def options(self, packages: Sequence[str] = (), py_files: Sequence[str] = ()) -> list[str]:
        """Return the options of ``spark-submit`` for all but the settings, after what the job itself needs."""
        listed = {
            "--packages": (*packages, *self.packages),
            "--jars": self.jars,
            "--py-files": (*py_files, *self.py_files),
            "--files": self.files,
        }
        return [f"{option} {shlex.quote(','.join(dict.fromkeys(these)))}" for option, these in listed.items() if these]

    def _paths(self) -> Iterator[tuple[str, str]]:
        for key in ("jars", "py_files", "files"):
            for path in getattr(self, key):
                yield key, path


def shell_setting(name: str, value: str) -> str:
    """Write ``--conf`` of a setting for a shell, which replaces the variables that the value names."""
    if not VARIABLE.search(value):
        return f"--conf {shlex.quote(f'{name}={value}')}"
    parts = VARIABLE.split(value)  # text, name, text, name, ..., text
    written = "".join(
        f"${{{part}}}" if place % 2 else re.sub(r'([\\"$`])', r"\\\1", part) for place, part in enumerate(parts)
    )
    return f'--conf "{name}={written}"'


def why_ours(name: str) -> str:
    """Say why a study may not make the setting, by `OURS`; "" if it may."""
    return next((why for own, why in OURS.items() if name == own or (own.endswith(".") and name.startswith(own))), "")


def _check_setting(name: object, value: object) -> None:
    wrong = ""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > bounds.TEXT:
        wrong = f" has {shown(name)}; write Spark's own names, spark.NAME."
    elif not isinstance(value, str) or "\0" in value or "\n" in value or len(value) > bounds.TEXT:
        wrong = f": {name} must be a text of one line and at most {bounds.TEXT:,} characters."
    elif reason := why_ours(name):
        wrong = f" sets {name}, which the workbench must set itself: {reason}. Remove it."
    elif name in JOINED and VARIABLE.search(value):
        wrong = (
            f": {name} names a variable, and what starts a JVM is read by all users of a machine. Put the secret into "
            "a setting of its own."
        )
    else:
        literal = VARIABLE.sub("", value)
        if (is_secret(name) and value == literal != "") or redacted(literal) != literal:
            wrong = (
                f": {name} looks like a secret, which would be kept in plans and journals. Write the name of a "
                f"variable of the environment instead: {name}: '${{NAME}}'."
            )
    if wrong:
        raise WorkbenchError(f"The study's key 'spark'{wrong}", settings=("spark",))
