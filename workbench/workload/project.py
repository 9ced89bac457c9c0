"""A project of Spark's Declarative Pipelines, as its specification ``spark-pipeline.yml`` describes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench import bounds
from workbench.checks import shown
from workbench.errors import WorkbenchError
from workbench.reading import parse_yaml, read_text

_DEFINING = (".py", ".sql")


@dataclass(frozen=True)
class Project:
    """The content of a specification; its files are in the order of their names."""

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
