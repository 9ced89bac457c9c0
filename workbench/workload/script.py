"""A script unchanged: one of the streaming queries that it starts, and what was found in it.

A script is named by how it is called, and the query by its number in the order in which they start:
``"job.py#1"``, or ``"job.py localhost:9092 orders#2"`` with arguments. ``"spark-pipeline.yml#1"`` is the first flow of
a project of Declarative Pipelines. The analysed plan of a query shows its watermarks, and the columns of its state and
joins.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import bounds
from workbench.checks import require, shown
from workbench.errors import WorkbenchError
from workbench.reading import is_there, parse_yaml, read_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KAFKA_COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
)
"""Columns of Spark's Kafka source."""

FILES = ("csv", "json", "orc", "parquet", "text", "xml")
"""Spark's kinds of files, which are also names of methods that read and write them."""

_NAMED = re.compile(r"(?P<file>[^\s:]+\.(?:py|sql|ya?ml))(?P<arguments>(?:\s.*)?)", re.DOTALL)
_NUMBERED = re.compile(r"(?P<call>.*)#(?P<number>[1-9]\d{0,3})", re.DOTALL)
_DEFINING = (".py", ".sql")


@dataclass(frozen=True)
class Script:
    """One streaming query of a script; called with the rows of its sources, it returns the DataFrame that it writes."""

    file: str  # path of the script
    arguments: tuple[str, ...] = ()  # its command line after its name
    number: int = 1  # number of the query among those that the script starts, from 1

    @classmethod
    def named(cls, name: str) -> "Script | None":
        """Parse a name, with or without the number of a query; None for names of another kind."""
        numbered = _NUMBERED.fullmatch(name)
        found = _NAMED.fullmatch(numbered["call"] if numbered else name)
        if found is None:
            return None
        require(
            is_there(found["file"]),
            f"The script {found['file']!r} is not there. Run the command in its folder, or write its path.",
        )
        try:
            arguments = tuple(shlex.split(found["arguments"]))
        except ValueError as error:
            raise WorkbenchError(
                f"The arguments of the script {name!r} cannot be read: {error}. Write them as in a shell."
            ) from error
        return cls(found["file"], arguments, int(numbered["number"]) if numbered else 1)

    @property
    def call(self) -> str:
        """File and arguments, as in a shell."""
        return shlex.join((self.file, *self.arguments)) if self.arguments else self.file

    @property
    def name(self) -> str:
        """The name of the query in a study."""
        return f"{self.call}#{self.number}"

    @property
    def path(self) -> Path:
        """The script's file."""
        return Path(self.file).resolve()

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that define the script: its own and, for a project, those that define its flows."""
        project = self.path.suffix in {".yml", ".yaml"}
        return (self.path, *Project.read(self.path).files) if project else (self.path,)

    def __call__(self, *streams: "DataFrame") -> "DataFrame":
        """Run the script until the query starts, with `streams` as its sources, and return what it would write."""
        from workbench.workload.recording import arriving  # noqa: PLC0415 - in Spark's processes only

        return arriving(self, streams)


@dataclass(frozen=True)
class ScriptBatches:
    """What a script's query, built in this process, passes to ``foreachBatch``; it writes only to `place`, if given."""

    script: Script
    function: str  # its name; "foreachBatch" if it has none

    def __call__(self, batch: "DataFrame", number: int, place: str = "") -> None:
        """Write a batch."""
        from workbench.workload.elsewhere import call  # noqa: PLC0415 - in Spark's processes only

        call(self, batch, number, place)


@dataclass(frozen=True)
class ScriptSource:
    """A source that a script reads."""

    name: str  # from its topic, table or path; a sample is given by this name
    format: str  # Spark's name of its kind; "table" for a table
    options: Mapping[str, str]  # with its place, without secrets
    schema: str | None  # as JSON of a StructType; None if only a sample shows it
    line: int  # line in which the script reads it


@dataclass(frozen=True)
class ScriptQuery:
    """A streaming query that a script starts; texts are "" for what it does not have."""

    name: str  # name given by the script
    sources: tuple[str, ...]
    sink: str  # where it writes: as a study names it, such as "parquet PLACE", or in words, such as "table NAME"
    trigger: str  # such as "processingTime=10 seconds"
    output_mode: str
    watermarks: tuple[str, ...]  # columns and delays
    line: int  # line in which the script starts it
    refusal: str = ""  # why Spark refuses to start it
    checkpoint: str = ""
    beyond: str = ""  # why what its function writes cannot be put elsewhere
    file: str = ""  # file of the project that defines it
    keys: tuple[str, ...] = ()  # columns of its groups and deduplication
    joins: tuple[str, ...] = ()  # columns of its joins


@dataclass(frozen=True)
class Recorded:
    """What a script was found to do; its sources and queries are in the order in which it reads and starts them."""

    sources: tuple[ScriptSource, ...] = ()
    queries: tuple[ScriptQuery, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)  # settings of Spark that it makes
    notes: tuple[str, ...] = ()  # what was left out or cannot be recorded, each with its line
    lacking: str = ""  # source at which the script ended, as nothing shows its columns
    failure: str = ""  # why it ended early


def sample_of(samples: Sequence[tuple[str, str]], number: int, name: str) -> str | None:
    """Return the sample of source `number`: the one with its name, or else the unnamed one in its place."""
    unnamed = [path for key, path in samples if not key]
    return dict(samples).get(name) or (unnamed[number] if number < len(unnamed) else None)


@dataclass(frozen=True)
class Project:
    """A project of Declarative Pipelines, as its specification has it; files are in the order of their names."""

    files: tuple[Path, ...]  # Python and SQL files that define its datasets and flows
    storage: str = ""  # where the project keeps checkpoints; "" without
    settings: Mapping[str, str] = field(default_factory=dict)  # Spark's settings

    @classmethod
    def read(cls, path: Path) -> "Project":
        """Read a specification. Raises WorkbenchError if it is invalid, or names no existing file."""
        what = f"The pipeline {path.name}"
        try:
            said: Any = parse_yaml(read_text(path, what, bounds.YAML_BYTES))
        except ValueError as error:
            raise WorkbenchError(f"{what} cannot be read as YAML: {error}. Correct it.") from error
        named = said.get("libraries") if isinstance(said, Mapping) else None
        patterns = [pattern for one in (named if isinstance(named, list) else ()) if (pattern := _pattern(one))]
        if not patterns:
            raise WorkbenchError(
                f"{what} has the libraries {shown(named)}; a pipeline's name its files, as in "
                "'libraries: [{glob: {include: transformations/**}}]'. Name spark-pipeline.yml."
            )
        files = {file for one in patterns for file in path.parent.glob(one) if file.suffix in _DEFINING}
        if not files:
            raise WorkbenchError(f"{what} names {', '.join(patterns)}, and no .py or .sql file is there. Correct it.")
        settings = said.get("configuration") or {}
        return cls(
            tuple(sorted(one.resolve() for one in files if "__pycache__" not in one.parts)),
            str(said.get("storage") or ""),
            {str(name): str(value) for name, value in settings.items()} if isinstance(settings, Mapping) else {},
        )


def _pattern(library: Any) -> str:  # noqa: ANN401 - whatever YAML has
    """Return the pattern of one of the libraries; ``FOLDER/**`` names the files in it, and below."""
    inner = library.get("glob") if isinstance(library, Mapping) else None
    included = inner.get("include") if isinstance(inner, Mapping) else None
    text = str(included or "").removeprefix("./")
    return f"{text}/*" if text.endswith("**") else text


_WATERMARK = re.compile(r"EventTimeWatermark [^\n]*?(\w+)#\d+[^,\n]*, ([^\n]+)")
_COLUMN = re.compile(r"(\w+)#(\d+)L?(?:-T\w+)?((?:\.\w+)*)")
_MADE = re.compile(r"(?s)(.*) AS \w+#(\d+)L?(?:-T\w+)?")
_JOIN = re.compile(r"\bJoin \w+, (.+)")
_GROUPED = re.compile(r"\b(?:Aggregate|Deduplicate|DeduplicateWithinWatermark) (\[.*)")
_WINDOWS = {"window", "session_window"}
_LISTED = re.compile(r"\b(?:Project|Aggregate) (\[.*)")


def watermarks_of(plan: str) -> tuple[str, ...]:
    """Return the columns of watermarks with their delays."""
    return tuple(dict.fromkeys(f"{column}, {delay.strip()}" for column, delay in _WATERMARK.findall(plan)))


def grouped_by(plan: str) -> tuple[str, ...]:
    """Return the columns of groups and deduplication, see `columns_of`, except windows."""
    grouped = (", ".join(_split(found[1])) for line in plan.splitlines() if (found := _GROUPED.search(line)))
    return columns_of(grouped, plan)


def joined_by(plan: str) -> tuple[str, ...]:
    """Return the columns that joins compare, see `columns_of`, only those compared by ``=``."""
    joins = (part for found in _JOIN.findall(plan) for part in re.split(r" AND | OR ", found))
    return columns_of((part for part in joins if " = " in part or " <=> " in part), plan)


def columns_of(expressions: Iterable[str], plan: str) -> tuple[str, ...]:
    """Return the columns of expressions, under each name that they, or fields of them, have from the source on."""
    made = {
        found[2]: found[1]
        for line in plan.splitlines()
        if (listed := _LISTED.search(line))
        for one in _split(listed[1].replace("], [", ", "))
        if (found := _MADE.fullmatch(one))
    }
    return tuple(dict.fromkeys(name for one in expressions for name in _names(one, made)))


def _names(text: str, made: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of an expression's columns, and of those that they are `made` of."""
    for name, number, path in _COLUMN.findall(text):
        if path:
            yield path[1:]
            continue
        if name in _WINDOWS:
            continue
        if not name.startswith("_groupingexpression"):  # Spark's own
            yield name
        if number in made:
            yield from _names(made[number], {key: one for key, one in made.items() if key != number})


def _split(listed: str) -> Iterator[str]:
    """Yield the expressions of the list in brackets with which a text begins."""
    depth, begun = 0, 1
    for at, one in enumerate(listed):
        depth += (one in "([{") - (one in ")]}")
        if (depth == 1 and one == ",") or (depth == 0 and at):
            yield listed[begun:at].strip()
            begun = at + 1
        if depth == 0 and at:
            return
