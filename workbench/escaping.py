"""Untrusted text, made harmless for the place where it is shown; for a shell, ``shlex.quote`` does it.

Study files, journals, data and logs may come from anybody. In every place a name comes out literally: it is not markup,
no formula and no command, it moves no cursor and turns no text around. Secrets are redacted on the way.
"""

import csv
import html
import io
import re
from collections.abc import Iterable

from workbench.redaction import redacted

# Control characters but tab and line feed; characters that reverse text, split lines or have no width; lone
# surrogates; and tags, which are invisible letters. Joiners stay: emoji and some scripts need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.IGNORECASE)


def visible(text: str) -> str:
    r"""Escape invisible characters, and those that control a terminal, as Python does: as ``\x1b``."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def for_terminal(text: str) -> str:
    """Make `text` safe to print."""
    return visible(redacted(text))


def for_html(text: str) -> str:
    """Make `text` safe between tags and in quoted attributes."""
    return html.escape(visible(redacted(text)))


def for_plotly(text: str) -> str:
    """Make `text` safe in a figure: plotly reads tags, entities and, in hover texts, templates such as ``%{x}``."""
    return html.escape(visible(redacted(text)), quote=False).replace("%{", "&#37;{")


def for_spreadsheet(cell: object) -> object:
    """Make a cell of a CSV file safe: a text, but no number, that a spreadsheet would run begins with an apostrophe."""
    if not isinstance(cell, str):
        return cell
    text = visible(redacted(cell))
    return f"'{text}" if cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell) else text


def csv_text(rows: Iterable[Iterable[object]], ends: str = "\n") -> str:
    """Write rows as comma-separated text with these line ends, safe for a spreadsheet."""
    text = io.StringIO()
    csv.writer(text, lineterminator=ends).writerows(map(for_spreadsheet, row) for row in rows)
    return text.getvalue()
