"""Fields inside JSON texts, such as those of Kafka's column ``value``: the event time ``value.time``, or a key.

Each text is cut into what is before such a field, its value, which becomes a column as any other, and what is after
it. A replay writes the new values between the parts.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import QueryError

_PART = "__part_"
_RECORDS_OWN = "timestamp"
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?")
_DATE, _SECONDS, _MICRO = 10, 19, 6  # characters to the end of the date, and of whole seconds; most digits after them


@dataclass(frozen=True)
class Inside:
    """Fields inside the texts of a column, and their format."""

    column: str
    field: str = ""  # path of the event time in the JSON, with dots; "": the event time is not inside
    renewed: tuple[str, ...] = ()  # paths of the fields whose values differ in each pass over the data
    fields: tuple[str, ...] = ()  # all of these fields, in the order of the texts
    binary: bool = True  # whether the column holds bytes
    between: str = "T"  # format of an event time as ISO text: the character between date and time,
    digits: int = 0  # the number of digits after the seconds,
    zone: bool = False  # and whether it has a zone

    @classmethod
    def named(cls, event_time: str | None, names: Sequence[str], renew: Sequence[str] = ()) -> "Inside | None":
        """Parse ``COLUMN.FIELD`` of the event time and of renewed fields; None if none is inside a column."""
        asked = (one for one in (event_time or "", *renew) if one not in names)
        inside = [one for one in asked if one.partition(".")[0] in names and one.partition(".")[2]]
        columns = dict.fromkeys(one.partition(".")[0] for one in inside)
        if len(columns) > 1:
            raise QueryError(
                f"{', '.join(inside)} are inside the columns {' and '.join(columns)}; the event time and what is "
                "renewed must be inside one column. Name fields of one of them.",
                settings=("inputs",),
            )
        paths = {one: one.partition(".")[2] for one in inside}
        renewed = tuple(paths[one] for one in renew if one in paths)
        return cls(next(iter(columns)), paths.get(event_time or "", ""), renewed) if columns else None

    def named_here(self, field: str) -> str:
        """Name the column that the values of a field become."""
        return f"{self.column}.{field}"

    def cut(self, table: pa.Table) -> tuple["Inside", pa.Table]:
        """Cut the texts of a table, which all have these fields in the order of the first; return the format, too."""
        column = table[self.column]
        try:
            texts = column.cast(pa.string()).combine_chunks()
        except pa.ArrowException as error:
            raise self._refused(table.num_rows, table.num_rows) from error
        fields, pattern = self._order(next((one for one in texts[:1].to_pylist() if one), ""))
        parts = pc.extract_regex(texts, pattern)
        if parts.null_count:
            raise self._refused(parts.null_count, table.num_rows)
        binary = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
        written = replace(self, fields=fields, binary=binary)
        place = table.schema.get_field_index(self.column)
        cut = table.set_column(place, self.column, parts.field(f"part{len(fields)}"))
        for number, field in enumerate(fields):
            before, values = parts.field(f"part{number}"), parts.field(f"value{number}")
            if field == self.field:
                kind, values = _timed(values)
                written = replace(written, **kind)
            elif len(before) and not before[0].as_py().endswith('"'):
                values = self._whole(values, field)
            cut = cut.append_column(f"{_PART}{number}", before).append_column(self.named_here(field), values)
        return written, cut

    def _order(self, text: str) -> tuple[tuple[str, ...], str]:
        """Return the fields in the order of a text, and the pattern that cuts such texts at them."""
        ends = {
            one: found.end() if (found := re.match(f"(?s).*?{_path(one)}", text)) else math.inf
            for one in (self.field, *self.renewed)
            if one
        }
        pattern, at = "", 0
        for number, (field, end) in enumerate(sorted(ends.items(), key=lambda one: one[1])):
            keys = field.split(".")
            steps = [_path(".".join(keys[first:])) for first in range(len(keys))]  # one object may have several fields
            matches = (re.compile(f"(?s).*?{step}").match(text, at) for step in steps)
            ended = (step for step, one in zip(steps, matches, strict=True) if one and one.end() == end)
            step = next(ended, steps[0])
            pattern += rf'(?P<part{number}>.*?{step})(?P<value{number}>[^",}}\]]+)'
            at = int(min(end, len(text)))
        return tuple(sorted(ends, key=ends.__getitem__)), f"(?s)^{pattern}(?P<part{len(ends)}>.*)$"

    def _whole(self, values: pa.Array, field: str) -> pa.Array:
        try:
            return pc.utf8_trim_whitespace(values).cast(pa.int64())
        except pa.ArrowException as error:
            raise QueryError(
                f"renew has {self.named_here(field)!r}, whose values are not all whole numbers, or all texts. Name "
                "another field.",
                settings=("inputs",),
            ) from error

    def schema(self, cut: pa.Schema) -> pa.Schema:
        """Return the columns before the cut, from the `cut` ones."""
        made = {self.named_here(one) for one in self.fields}
        kept = [one for one in cut if one.name not in made and not one.name.startswith(_PART)]
        kind = pa.binary() if self.binary else pa.string()
        return pa.schema([one.with_type(kind) if one.name == self.column else one for one in kept], cut.metadata)

    def joined(self, cut: pa.RecordBatch, due: pa.Array) -> pa.RecordBatch:
        """Write the values of `cut` into its texts; records of a broker get the time `due` as their own."""
        values = pc.binary_join_element_wise(*self._parts(cut), cut.column(self.column), "")
        schema = self.schema(cut.schema)
        given = {one.name: cut.column(one.name) for one in schema} | {self.column: values}
        own = schema.field(_RECORDS_OWN).type if self.field and _RECORDS_OWN in given else None
        if own is not None and pa.types.is_timestamp(own):
            given[_RECORDS_OWN] = due
        return pa.RecordBatch.from_arrays([given[one.name].cast(one.type) for one in schema], schema=schema)

    def _parts(self, cut: pa.RecordBatch) -> Iterator[Any]:
        for number, field in enumerate(self.fields):
            yield cut.column(f"{_PART}{number}")
            values = cut.column(self.named_here(field))
            if field != self.field or pa.types.is_integer(values.type):
                yield values.cast(pa.string())
                continue
            whole = values.cast(pa.timestamp("us")).cast(pa.string())  # strftime takes twenty times as long
            end = _SECONDS + bool(self.digits) + min(self.digits, _MICRO)
            yield from (pc.utf8_slice_codeunits(whole, 0, _DATE), self.between)
            yield from (pc.utf8_slice_codeunits(whole, _DATE + 1, end), "Z" * self.zone)

    def _refused(self, wrong: int, rows: int) -> QueryError:
        fields = ", ".join(filter(None, (self.field, *self.renewed)))
        takes = "to take the event time from" if not self.renewed else "in the order of the first value"
        return QueryError(
            f"{wrong:,} of {rows:,} values of the column {self.column!r} have no JSON field {fields!r} {takes}. Name "
            "another field, or a column."
        )


def _timed(values: pa.Array) -> tuple[dict[str, Any], pa.Array]:
    """Return the format of event times, and the times in a form that can be read."""
    times = pc.utf8_trim_whitespace(values)
    first = times[0].as_py() if len(times) else ""
    if found := _ISO.fullmatch(first):
        return {"between": found[1], "digits": len(found[2] or ""), "zone": bool(found[3])}, times
    return {}, times.cast(pa.int64()) if first.lstrip("-").isdigit() else times


def _path(field: str) -> str:
    """Return a pattern of everything up to the value of a field, from its first key on."""
    return r"\s*:\s*\{.*?".join(f'"{re.escape(part)}"' for part in field.split(".")) + r'\s*:\s*"?'
