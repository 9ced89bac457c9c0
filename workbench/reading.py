"""How documents are read: whole files of a bounded size, as strict JSON, YAML or CSV.

Strict means that a key given twice is refused (PyYAML and Python's json keep the last), that ``1e6`` is a number in
YAML too (YAML 1.1 has it as a text), and that no number begins with a zero. What is nested too deeply is refused before
anything recurses into it.
"""

import csv
import io
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import yaml

from workbench import bounds
from workbench.checks import shown
from workbench.errors import WorkbenchError

_EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$")
_DIGITS = re.compile(r"[-+]?0[0-9]+$")
_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\x00\x00")
_LONGEST_REASON, _LONGEST_LIST = 300, 120  # characters in a message


class _StrictLoader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:  # noqa: ANN401 - the base class's
        """Compose a mapping as written: a merge key, which adds keys, is followed later."""
        node = super().compose_mapping_node(anchor)
        _once([(key.value, None) for key, _ in node.value if isinstance(key, yaml.ScalarNode)])
        return node

    def construct_yaml_int(self, node: Any) -> int:  # noqa: ANN401 - the base class's
        """Read a whole number in base ten, or after 0x and 0b: YAML takes 024 for 20."""
        _refuse_leading_zero(node.value)
        return super().construct_yaml_int(node)

    def construct_yaml_float(self, node: Any) -> float:  # noqa: ANN401 - the base class's
        """Read a number."""
        _refuse_leading_zero(node.value)
        return super().construct_yaml_float(node)


def _refuse_leading_zero(text: str) -> None:
    """Refuse what a comma makes of a number in a list: ``[1,024]`` is 1 and 024."""
    if re.match(r"[-+]?0[\d_]", text):
        raise ValueError(f"{text} begins with a zero; write numbers without commas: 1024, not 1,024")


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Make a mapping, with each key once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"key {shown(twice)} appears twice; only the last would be kept")
    return found


for _tag, _pattern in (("float", _EXPONENT), ("int", _DIGITS)):
    _StrictLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, list("-+0123456789"))
_StrictLoader.add_constructor("tag:yaml.org,2002:int", _StrictLoader.construct_yaml_int)
_StrictLoader.add_constructor("tag:yaml.org,2002:float", _StrictLoader.construct_yaml_float)


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether a file or folder is there; none is under a name that is too long, or has a NUL."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def read_text(
    path: str | os.PathLike[str], what: str, most_bytes: int = bounds.DOCUMENT_BYTES, *, errors: str = "strict"
) -> str:
    """Read a file in UTF-8; `what` names it in errors; `errors` is that of ``bytes.decode``."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(most_bytes + 1)
        if len(content) <= most_bytes:
            return content.decode("utf-8-sig", errors)
    except UnicodeDecodeError as error:
        wrong, place = error.object[error.start], error.start
        raise WorkbenchError(f"{what} is not text in UTF-8: byte {wrong:#x} at {place}. Save it as UTF-8.") from error
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise WorkbenchError(f"{what} cannot be read: {reason[:_LONGEST_REASON]}. Check the path.") from error
    raise WorkbenchError(
        f"{what} is larger than {most_bytes / bounds.MEBIBYTE:g} MiB. Check the path, or cut the file."
    )


def parse_json(text: str | bytes, *, by_hand: bool = False) -> Any:  # noqa: ANN401 - JSON
    """Read one JSON document; in one that is written by hand, a repeated key is refused."""
    try:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        if _deep(data):
            _check_nesting(json.loads(text), math.inf)
        return json.loads(text, object_pairs_hook=_once if by_hand else None)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def parse_yaml(text: str) -> object:
    """Read one YAML document of plain values."""
    if len(text) > bounds.YAML_BYTES:
        raise ValueError(f"it is larger than {bounds.YAML_BYTES / bounds.MEBIBYTE:g} MiB")
    try:
        loader = _StrictLoader(text)
        try:
            value = loader.get_single_data()
        finally:
            loader.dispose()
        _check_nesting(value)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split()).replace(_NO_FILE, "in line")) from error
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except (ValueError, OverflowError) as error:  # of a date, or of a number
        raise ValueError(" ".join(str(error).split())[:_LONGEST_REASON]) from error
    except (TypeError, KeyError, IndexError, AttributeError) as error:  # PyYAML's
        raise ValueError("a value does not fit its tag, such as !!timestamp") from error
    return value


def read_rows(
    path: str | os.PathLike[str], what: str, columns: Sequence[str], advice: str
) -> Iterator[tuple[int, Mapping[str, str | None]]]:
    """Read a CSV file with a header; yield the line number of each row, and its cells by column, which may be None."""
    reader = csv.DictReader(io.StringIO(read_text(path, what, bounds.TABLE_BYTES), newline=""))
    try:
        header = list(reader.fieldnames or ())
        for problem, wrong in (
            ("no", [column for column in columns if column not in header]),
            ("more than one", [column for column in columns if header.count(column) > 1]),
        ):
            if wrong:
                named = ", ".join(header) or "no columns"
                named = named if len(named) <= _LONGEST_LIST else f"{named[:_LONGEST_LIST]}..."
                raise WorkbenchError(
                    f"{what} has {problem} column {', '.join(map(shown, wrong))}; its first line names "
                    f"{named}. {advice}"
                )
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise WorkbenchError(
            f"{what} cannot be read as CSV: {error}, in line {reader.line_num}. Save it as CSV in UTF-8."
        ) from error


def finite_cell(text: str | None, here: str, column: str) -> float:
    """Read a finite number of a CSV file; `here` names its line."""
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise WorkbenchError(f"{here} has {shown(text)} in column {column!r}; it must be a finite number.")
    return value


_NO_FILE = 'in "<unicode string>", line'  # PyYAML's place in a text
_TOO_DEEP = f"it is nested more than {bounds.NESTING} deep"


def _deep(data: bytes) -> bool:
    """Whether the brackets of `data` may be nested too deeply; those within texts count too."""
    brackets = data.translate(_STEPS, _BRACKETS)
    return len(brackets) > bounds.NESTING and max(accumulate(2 * one - 1 for one in brackets)) > bounds.NESTING


def _check_nesting(value: object, most: float = bounds.VALUES) -> None:
    """Refuse what is nested too deeply, or has more than `most` values once its aliases are unfolded."""
    level, depth, count = [one for one in [value] if isinstance(one, dict | list)], 0, 1
    while level:
        depth += 1
        if depth > bounds.NESTING:
            raise ValueError(_TOO_DEEP)
        children = [child for one in level for child in (one.values() if isinstance(one, dict) else one)]
        count += len(children)
        if count > most:
            raise ValueError(f"it has more than {most:,} values")
        level = [child for child in children if isinstance(child, dict | list)]
