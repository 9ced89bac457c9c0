"""An event time inside JSON texts, such as those of Kafka's column ``value``: ``value.time`` is a field of them.

Each text is cut into what is before its event time, the event time, which becomes a column as any other, and what is
after it. A replay writes the new event time between the two parts.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import QueryError

_BEFORE = "__before"
_RECORDS_OWN = "timestamp"
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?")
_DATE, _SECONDS, _MICRO = 10, 19, 6  # characters up to the date, to the whole seconds, and most digits after them


@dataclass(frozen=True)
class Inside:
    """Where an event time is in the texts of a column, and how it is written.

    Parameters
    ----------
    column, field
        The column, and the path of the field in its JSON, with dots.
    binary
        Whether the column holds bytes.
    between, digits, zone
        Of an ISO text: what is between date and time, the digits after the seconds, and whether it has a zone.
    """

    column: str
    field: str
    binary: bool = True
    between: str = "T"
    digits: int = 0
    zone: bool = False

    @classmethod
    def named(cls, event_time: str | None, names: Sequence[str]) -> "Inside | None":
        """Read ``COLUMN.FIELD``; None where it is a column itself, or its first part is none."""
        column, _, field = (event_time or "").partition(".")
        return cls(column, field) if field and column in names and event_time not in names else None

    @property
    def event_time(self) -> str:
        """The column that the event times become."""
        return f"{self.column}.{self.field}"

    def cut(self, table: pa.Table) -> tuple["Inside", pa.Table]:
        """Cut the texts of a table; return how they were written, too.

        Raises
        ------
        QueryError
            When some of them have no such field.
        """
        path = r"\s*:\s*\{.*?".join(f'"{re.escape(part)}"' for part in self.field.split("."))
        pattern = rf'(?s)^(?P<before>.*?{path}\s*:\s*"?)(?P<at>[^",}}\]]+)(?P<after>.*)$'
        column = table[self.column]
        try:
            parts = pc.extract_regex(column.cast(pa.string()).combine_chunks(), pattern)
        except pa.ArrowException as error:
            raise self._refused(table.num_rows, table.num_rows) from error
        if parts.null_count:
            raise self._refused(parts.null_count, table.num_rows)
        before, times, after = (parts.field(name) for name in ("before", "at", "after"))
        times = pc.utf8_trim_whitespace(times)
        first = times[0].as_py() if len(times) else ""
        written = replace(self, binary=pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type))
        if found := _ISO.fullmatch(first):
            written = replace(written, between=found[1], digits=len(found[2] or ""), zone=bool(found[3]))
        elif first.lstrip("-").isdigit():
            times = times.cast(pa.int64())
        place = table.schema.get_field_index(self.column)
        cut = table.set_column(place, self.column, after)
        return written, cut.append_column(_BEFORE, before).append_column(self.event_time, times)

    def schema(self, cut: pa.Schema) -> pa.Schema:
        """Give the columns of the texts as they were, of those of the `cut` ones."""
        kept = [one for one in cut if one.name not in {_BEFORE, self.event_time}]
        kind = pa.binary() if self.binary else pa.string()
        return pa.schema([one.with_type(kind) if one.name == self.column else one for one in kept], cut.metadata)

    def joined(self, cut: pa.RecordBatch, due: pa.Array) -> pa.RecordBatch:
        """Write the event times of `cut` into its texts; records of a broker get the time `due` as their own."""
        times = cut.column(self.event_time)
        if pa.types.is_integer(times.type):
            texts: tuple[Any, ...] = (times.cast(pa.string()),)
        else:  # strftime takes twenty times as long
            whole = times.cast(pa.timestamp("us")).cast(pa.string())
            end = _SECONDS + bool(self.digits) + min(self.digits, _MICRO)
            date, time = pc.utf8_slice_codeunits(whole, 0, _DATE), pc.utf8_slice_codeunits(whole, _DATE + 1, end)
            texts = (date, self.between, time, "Z" * self.zone)
        values = pc.binary_join_element_wise(cut.column(_BEFORE), *texts, cut.column(self.column), "")
        schema = self.schema(cut.schema)
        given = {one.name: cut.column(one.name) for one in schema} | {self.column: values}
        own = schema.field(_RECORDS_OWN).type if _RECORDS_OWN in given else None
        if own is not None and pa.types.is_timestamp(own):
            given[_RECORDS_OWN] = due
        return pa.RecordBatch.from_arrays([given[one.name].cast(one.type) for one in schema], schema=schema)

    def _refused(self, wrong: int, rows: int) -> QueryError:
        return QueryError(
            f"{wrong:,} of {rows:,} values of the column {self.column!r} have no JSON field {self.field!r} to take the "
            "event time from. Name another field, or a column."
        )
