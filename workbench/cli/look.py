"""How answers look in a terminal, a file or a pipe: the answer first, one table, each note once, then paths.

Colours and bold are for terminals only; in files and pipes a sentence is one line, so that it can be searched for.
"""

import os
import sys
from collections.abc import Mapping
from typing import Any, Literal

from rich.align import Align
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from workbench.cli.console import discard_output
from workbench.escaping import for_terminal

_WIDE = 120  # columns of a file or a pipe, which have none of their own


class _Answers(Console):
    """Standard output; if its reader closes the pipe, the command goes on, and writes its files.

    Texts and cells of tables control no terminal: they come out as they are spelled.
    """

    def on_broken_pipe(self) -> None:
        """Discard what is still to be printed."""
        discard_output()

    def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401 - rich's own
        """Make a text of rich's of a plain one."""
        return super().render_str(for_terminal(text), **options)


def console() -> Console:
    """Make the console of the answer: standard output, its colours off by NO_COLOR, in files and in pipes."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDE
    return _Answers(markup=False, highlight=False, emoji=False, width=width)


def table(columns: Mapping[str, Literal["left", "right"]]) -> Table:
    """Make an empty table; figures belong into columns that are aligned right, and are never broken."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for name, justify in columns.items():
        header = Align(name, justify, vertical="bottom")  # of several lines, ends over its column
        made.add_column(header, justify=justify, no_wrap=justify == "right", overflow="fold")
    return made


def answer(out: Console, text: str) -> None:
    """Print the answer itself, bold on a terminal."""
    out.print(Text(for_terminal(text), style="bold"), soft_wrap=not out.is_terminal)


def line(out: Console, text: str) -> None:
    """Print a sentence or a note, broken between words on a terminal only."""
    out.print(text, soft_wrap=not out.is_terminal)


def path(out: Console, name: str, value: object) -> None:
    """Print where something was written, never broken, so that it can be copied."""
    out.print(f"{name}: {value}", soft_wrap=True)
