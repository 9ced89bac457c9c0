"""What a maintainer needs to repeat a failure, as one file; and the record of the last failure that goes into it.

A bundle has versions, what the doctor found, the last failure with the logs of its deployment, the study, and the end
of the journal. It has no data and no results. Secrets are redacted, and so are your home folder and the names of you
and of your machine.
"""

import getpass
import json
import platform
import re
import socket
import traceback
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from io import BytesIO
from pathlib import Path

import yaml

from workbench import __version__
from workbench.doctor import examine
from workbench.errors import WorkbenchError
from workbench.reading import parse_json, parse_yaml, read_text
from workbench.records import write_whole
from workbench.redaction import redacted, redacted_values

FAILURE = "last-failure.json"
_DISTRIBUTION = "streaming-capacity-workbench"
_MOST_BYTES = 1 << 20  # largest part: of a longer one, the end is kept
_MOST_LINES = 100  # of the journal
_SHORTEST = 3  # shortest name that is replaced; a shorter one occurs in many words
_STAMP = (1980, 1, 1, 0, 0, 0)  # of every part, so that equal bundles are equal files


@dataclass(frozen=True)
class Part:
    """One file of a bundle: its name in it, what it is, and its text."""

    name: str
    what: str
    text: str

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.text.encode("utf-8", "replace"))


def record_failure(error: BaseException, command: Sequence[str], folder: Path) -> Path | None:
    """Write what failed to `folder`, for a later bundle, and return the path; None if that fails."""
    record = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [anonymous(one) for one in command],
        "error": anonymous("".join(traceback.format_exception(error))),
    }
    target = folder / FAILURE
    try:
        write_whole(target, _json(record))
    except WorkbenchError:  # the disk may be full: the error itself must be seen
        return None
    return target


def collect(journal: Path, study: Path | None = None) -> tuple[Part, ...]:
    """Collect the parts of a bundle."""
    failure = None
    with suppress(OSError, ValueError):
        failure = json.loads((journal.parent / FAILURE).read_text(encoding="utf-8"))
    failure = failure if isinstance(failure, dict) else None
    parts = [
        Part("versions.json", "versions of the workbench, Python, the system and the packages", _json(_versions())),
        Part("doctor.json", "what the doctor finds", _json([asdict(finding) for finding in examine()])),
    ]
    if failure is not None:
        parts.append(Part(FAILURE, "the last failure: command, error, logs", _json(failure)))
    named = study or _study_of(failure)
    if named is not None:
        parts.append(Part("study.yaml", "the study, with the last parts of its paths", _study(named)))
    with suppress(OSError):
        if journal.is_file():  # a pipe or a device may never end
            parts.append(Part("journal-end.jsonl", f"the last {_MOST_LINES} lines of the journal", _end_of(journal)))
    return tuple(Part(part.name, part.what, anonymous(part.text)) for part in parts)


def write(parts: Sequence[Part], target: Path) -> None:
    """Write the parts to one ZIP file, all of it or nothing."""
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as bundle:
        for part in parts:
            bundle.writestr(zipfile.ZipInfo(part.name, _STAMP), part.text.encode("utf-8", "replace"))
    write_whole(target, content.getvalue())


def anonymous(text: str) -> str:
    """Return `text` without secrets, without your home folder, and without the names of you and of your machine."""
    text = redacted(text)
    names = {socket.gethostname(): "HOST"}
    with suppress(RuntimeError):  # a container's user may have no home
        if (home := Path.home()) != Path("/"):
            text = text.replace(str(home), "~")
    with suppress(KeyError, OSError):  # nor a name
        names.setdefault(getpass.getuser(), "USER")
    for name, instead in names.items():
        if len(name) >= _SHORTEST and name not in {"root", "localhost"}:
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", instead, text)
    return text


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _versions() -> dict[str, object]:
    needed: Sequence[str] = ()
    with suppress(PackageNotFoundError):  # run from its folder
        needed = requires(_DISTRIBUTION) or ()
    found: dict[str, str] = {}
    for requirement in needed:
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return {
        "workbench": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "packages": found,
    }


def _study_of(failure: Mapping[str, object] | None) -> Path | None:
    """Find the study in the command that failed."""
    command = failure.get("command") if failure is not None else None
    words = [word for word in command if isinstance(word, str)] if isinstance(command, list) else []
    named = (Path(word).expanduser() for word in words if word.endswith((".yaml", ".yml")))
    return next((path for path in named if path.is_file()), None)


def _study(path: Path) -> str:
    """Read a study, of its paths only the last parts; text that is not YAML, perhaps the failure, stays unchanged."""
    text = read_text(path, f"The study {str(path)!r}", errors="replace")[:_MOST_BYTES]
    try:
        given = parse_yaml(text)
    except ValueError:
        return text
    if not isinstance(given, dict):
        return text
    return yaml.safe_dump(redacted_values(_without_folders(given)), sort_keys=False, allow_unicode=True)


def _without_folders(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_folders(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_folders(one) for one in value]
    return Path(value).name if isinstance(value, str) and "/" in value and "://" not in value else value


def _end_of(journal: Path) -> str:
    """Read the last lines of a journal; a line that is too long is left out."""
    with journal.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _MOST_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return "".join(f"{_redacted_line(line)}\n" for line in lines[-_MOST_LINES:])


def _redacted_line(line: str) -> str:
    """Redact the values of a line, however its JSON is written; a torn line stays as it is."""
    try:
        return json.dumps(redacted_values(parse_json(line)), ensure_ascii=False)
    except ValueError:
        return line
