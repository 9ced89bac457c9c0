"""A table of names and values."""

from collections.abc import Mapping

from workbench.views.cards import Cell, Column, Table


def facts_table(caption: str, facts: Mapping[str, Cell | bool]) -> Table:
    """Name and value, as text; values keep all digits."""
    rows = tuple((name, _fact(value)) for name, value in facts.items())
    return Table(caption, (Column("What"), Column("Value")), rows, opened=True)


def _fact(value: Cell | bool) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)
