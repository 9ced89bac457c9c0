"""How answers look in a terminal, a file or a pipe: the answer first, one table, each note once, then paths.

Colours and bold are for terminals only; in files and pipes a sentence is one line, so that it can be searched for.
"""

import json
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rich.align import Align
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from workbench import units
from workbench.advice import Advice
from workbench.answers.answer import Answer, Fact
from workbench.cli.console import discard
from workbench.escaping import for_terminal

_WIDE = 120  # width of a file or a pipe, which have none
_LONG = 24  # a longer word may be broken, except in the first column, which has names
_EASY = 14  # a column of words becomes no narrower before other columns are left out
_UNBOUNDED = 10_000
_VERDICTS = {"safe": "green", "risky": "yellow", "unsure": "bold red"}
_GAP = "\N{BRAILLE PATTERN BLANK}"  # between a number and its unit while lines are broken, which rich does at any blank


class _Answers(Console):
    """Standard output; if the pipe is closed, the command continues, and writes its files.

    Texts and cells of tables cannot control the terminal: they are printed literally.
    """

    def on_broken_pipe(self) -> None:
        """Discard what is still unprinted."""
        discard(sys.stdout)

    def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401 - rich's own
        """Convert plain text to rich's."""
        return super().render_str(for_terminal(text), **options)


def console() -> Console:
    """Return the console of the answer: standard output, without colours in files, pipes and with NO_COLOR."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDE
    return _Answers(markup=False, highlight=False, emoji=False, width=width)


_FRAMELESS: Mapping[str, Any] = {"box": SIMPLE_HEAD, "pad_edge": False, "show_edge": False, "collapse_padding": True}


class Columns(Table):
    """A table that keeps its names; a heading after ``>`` is of figures, aligned to the right and never broken.

    Other columns fold between words. Where there is no room, columns leave, by their numbers in `spare`, the first of
    them first; what is still too wide is written one cell below the other. A number stays with its unit.
    """

    def __init__(self, *columns: str, spare: Sequence[int] = ()) -> None:
        super().__init__(**_FRAMELESS)
        self._spare = spare
        self._names = [one.removeprefix(">").replace("-\n", "").replace("\n", " ") for one in columns]
        for column in columns:
            name = column.removeprefix(">")
            justify: Literal["left", "right"] = "left" if name == column else "right"
            self.add_column(Align(name, justify), justify=justify, no_wrap=justify == "right", overflow="fold")

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:  # noqa: ANN401 - rich's own
        """Add a row whose numbers keep their units."""
        kept = (units.kept_whole(cell, _GAP) if isinstance(cell, str) else cell for cell in cells)
        super().add_row(*kept, **options)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lay the columns out in the available width."""
        names, wide = self._names, options.update(width=_UNBOUNDED)
        ranges = [
            [console.measure(one, options=wide) for one in (column.header, *column.cells)] for column in self.columns
        ]
        most = [max(one.maximum for one in each) for each in ranges]
        least = [
            full if column.no_wrap else min(max(one.minimum for one in each), full if number == 0 else _LONG)
            for number, (column, each, full) in enumerate(zip(self.columns, ranges, most, strict=True))
        ]
        between = console.measure(self, options=wide).maximum - sum(most)
        gap = between // max(len(names) - 1, 1)
        kept, left_out = list(range(len(names))), []
        easy = [one if at in self._spare else max(one, min(most[at], _EASY)) for at, one in enumerate(least)]
        for at in self._spare:
            if sum(easy[one] for one in kept) + gap * (len(kept) - 1) > options.max_width:
                kept.remove(at)
                left_out.append(names[at])
        if (room := options.max_width - sum(least[at] for at in kept) - gap * (len(kept) - 1)) < 0:
            yield from self._stacked(console)
            return
        widths = {at: least[at] for at in kept}
        while room and (short := [at for at in kept if widths[at] < most[at]]):
            widths[max(short, key=lambda at: most[at] / widths[at])] += 1
            room -= 1
        shown = Table(**_FRAMELESS)
        for at in kept:
            column = self.columns[at]
            shown.add_column(
                column.header, justify=column.justify, no_wrap=column.no_wrap, overflow="fold", width=widths[at]
            )
        for cells in zip(*(self.columns[at].cells for at in kept), strict=True):
            shown.add_row(*cells)
        for segment in shown.__rich_console__(console, options):
            yield segment._replace(text=segment.text.replace(_GAP, " ")) if isinstance(segment, Segment) else segment
        if left_out:
            yield Text(f"(a wider terminal also shows: {', '.join(left_out)})", style="dim")

    def _stacked(self, console: Console) -> RenderResult:
        for cells in zip(*(column.cells for column in self.columns), strict=True):
            first, *rest = (
                console.render_str(cell.replace(_GAP, " ")) if isinstance(cell, str) else cell for cell in cells
            )
            yield first
            for name, cell in zip(self._names[1:], rest, strict=True):
                if str(cell):
                    yield Padding(Text.assemble(f"{name}: ", cell), (0, 0, 0, 2))


def show(answered: Answer) -> None:
    """Print an answer: its headline, its rows, their origin, further sentences, and what to mind."""
    answer(answered.headline)
    if answered.rows:
        put(rows(answered.rows))
    for text in (answered.source, *answered.details, *answered.in_words):
        line(text)
    for reason, advised in answered.cautions.items():
        advice(f"note: {reason}", advised)
    if answered.about:
        made = rows([(Fact(name, name="What"), Fact(seen, name="Seen")) for name, seen in answered.about.items()])
        made.columns[0].no_wrap = True  # names of a few words
        put(made)


def rows(made: Sequence[Sequence[Fact]]) -> Table:
    """Make the table of an answer's rows; on narrow terminals, dispensable columns are left out."""
    seen = [[fact for fact in row if fact.name and fact.shown != "data"] for row in made]
    columns = [list(column) for column in zip(*seen, strict=True)]
    wide = [at for at, column in enumerate(columns) if column[0].shown == "wide"]
    found = Columns(*map(_head, columns), spare=wide)
    for row in seen:
        found.add_row(*(Text(fact.text, style=_VERDICTS[fact.verdict]) if fact.verdict else fact.text for fact in row))
    return found


def _head(column: Sequence[Fact]) -> str:
    """Return the heading for `Columns`; that of figures in lines that are hardly wider than these."""
    name = column[0].name
    name = name if name[1:2].isupper() else name[:1].lower() + name[1:]
    if all(isinstance(fact.value, str) or fact.value is None for fact in column):
        return name
    width = max(*map(len, name.split()), *(len(fact.text) for fact in column))
    return f">{textwrap.fill(name, width, break_long_words=False, break_on_hyphens=False)}"


def document(plain: object) -> None:
    """Print what --json asks for."""
    print(json.dumps(plain, indent=1))


def put(*made: Table | str) -> None:
    """Print tables, with an empty line for ``""``."""
    for one in made:
        console().print(one)


def answer(text: str) -> None:
    """Print the answer itself, bold on a terminal."""
    line(Text(for_terminal(text), style="bold"))


def line(text: str | Text) -> None:
    """Print a sentence or a note, broken between words on a terminal only."""
    out = console()
    out.print(text, soft_wrap=not out.is_terminal)


def advice(reason: str, advised: Advice) -> None:
    """Print why something must be done, and what; an alternative follows on a line of its own.

    On a terminal the command it ends with has a line of its own, never broken, so that it can be copied.
    """
    said = f"{reason} {advised.words}".strip()
    if advised.command and console().is_terminal:
        line(f"{said}:")
        whole(f"  {advised.command}")
    else:
        line(": ".join(filter(None, (said, advised.command))))
    if advised.otherwise is not None:
        advice("", advised.otherwise)


def whole(text: str) -> None:
    """Print a command, or where something was written: never broken, so that it can be copied."""
    console().print(text, soft_wrap=True)
