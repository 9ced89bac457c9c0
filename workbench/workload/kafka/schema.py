"""The columns of a topic's sample: those of its values, by a schema registry's schema, and those of the records."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from workbench import bounds
from workbench.checks import require, shown
from workbench.errors import WorkbenchError
from workbench.reading import parse_json, read_text

Kind = Literal["AVRO", "JSON"]
_AS_BYTES = "Leave it out: values are captured as bytes then, in the column value, and your query decodes them itself."
_EXAMPLES = (
    'an Avro record ({"type": "record", ...}), or a schema registry\'s answer ({"schema": "...", "schemaType": "AVRO"})'
)
HEADERS, VALUE = "_headers", "value"
COLUMNS: Mapping[str, str] = MappingProxyType(
    {"_key": "key", "_timestamp": "timestamp", "_partition": "partition", "_offset": "offset"}
)
"""Columns of a sample that come from the record itself, and their names in Spark's Kafka source."""

_TAKEN = frozenset({*COLUMNS, HEADERS, VALUE})


@dataclass(frozen=True)
class Schema:
    """The schema of a topic's values, as its file at `path` has it; of a JSON Schema only `number` is used."""

    path: Path
    kind: Kind
    definition: Mapping[str, Any]
    number: int | None = None  # its id in the registry; None if the file has none

    @property
    def said(self) -> str:
        """Kind, file and id of the schema, for a message."""
        number = "" if self.number is None else f" (id {self.number})"
        return f"the {'Avro' if self.kind == 'AVRO' else 'JSON'} schema {self.path.name}{number}"

    @property
    def digest(self) -> str:
        """Short name of the schema's content, whatever its file is called."""
        text = json.dumps([self.kind, self.number, self.definition], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def read_schema(path: str | Path) -> Schema:
    """Read an Avro schema, or a schema registry's answer."""
    what = f"The schema {path}"
    data = _json(read_text(path, what, bounds.SCHEMA_BYTES), what)
    if not isinstance(data.get("schema"), str):
        return Schema(Path(path), "AVRO", _record(data, what))
    kind, number = data.get("schemaType", "AVRO"), data.get("id")
    if kind == "PROTOBUF":
        raise WorkbenchError(f"{what} has the schemaType PROTOBUF, which is not read here. {_AS_BYTES}")
    allowed = " or ".join(get_args(Kind))
    require(kind in get_args(Kind), f"{what} has the schemaType {shown(kind)}; it must be {allowed}. {_AS_BYTES}")
    require(
        not data.get("references"),
        f"{what} refers to other schemas of the registry, which are not in the file. Write their definitions in "
        "place of their names, and save that as the schema.",
    )
    whole = number is None or (isinstance(number, int) and not isinstance(number, bool))
    require(whole, f"{what} has the id {shown(number)}; it must be a whole number. Correct it or remove it.")
    inside = _json(data["schema"], f"{what} has a text 'schema' that")
    return Schema(Path(path), kind, _record(inside, what) if kind == "AVRO" else inside, number)


def _json(text: str, what: str) -> dict[str, Any]:
    try:
        data = parse_json(text)
    except ValueError as error:
        raise WorkbenchError(f"{what} is not JSON: {error}. It must be {_EXAMPLES}.") from error
    if not isinstance(data, dict):
        raise WorkbenchError(f"{what} is {shown(data)}; it must be {_EXAMPLES}. Save that.")
    return data


def _record(definition: dict[str, Any], what: str) -> dict[str, Any]:
    """Return a definition if it is an Avro record whose values can become columns; refuse others."""
    if definition.get("type") == "object" or "$schema" in definition:
        raise WorkbenchError(
            f"{what} is a JSON Schema. JSON values become columns without one: leave it out, or save the registry's "
            'answer with "schemaType": "JSON".'
        )
    if definition.get("type") != "record":
        raise WorkbenchError(
            f"{what} has the type {shown(definition.get('type'))}; it must be a record, whose fields become columns: "
            f"{_EXAMPLES}. {_AS_BYTES}"
        )
    fields = definition.get("fields")
    require(bool(fields), f"{what} is a record without fields; it must have one at least. Correct it.")
    known = isinstance(fields, list) and all(isinstance(one, dict) and {"name", "type"} <= one.keys() for one in fields)
    named = known and "name" in definition
    require(named, f"{what} is not Avro schema: it and its fields need a name and a type. Correct it.")
    return definition


def named(fields: Iterable[str]) -> dict[str, str]:
    """Return the columns of a sample for the fields of its values; a field with a reserved name gets a "_"."""
    found: dict[str, str] = {}
    for name in fields:
        free = name
        while free in _TAKEN or free in found:
            free += "_"
        found[free] = name
    return found


def field_of(column: str) -> str:
    """Return the name of the field behind a sample's `column`; see `named`."""
    return column.removesuffix("_") if column.removesuffix("_") in _TAKEN else column
