"""What the analysed plan of a streaming query shows: its watermarks, and the columns of its state and joins."""

import re
from collections.abc import Iterable, Iterator, Mapping

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
    """Return the columns of expressions, under each name that they have in a plan from the source on.

    A field of a column that was decoded has its own name.
    """
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
