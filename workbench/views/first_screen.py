"""What the first screens of all reports are made of: where figures come from, one table, reasons for care, tabs.

Every text given is escaped here.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from workbench import units
from workbench.advice import Advice
from workbench.escaping import for_html as escape

MOST_CARES = 4
_CHOSEN = ' class="chosen"'
ORIGINS = {"fluid": "SIMULATED", "recorded": "RECORDED", "observed": "OBSERVED"}
"""What the figures are where nothing was measured here, by the kind of the testbed; elsewhere they are MEASURED."""


class Chip(NamedTuple):
    """A cell that is a verdict: its words, and ``"safe"``, ``"risky"`` or ``"unsure"``, which colours it."""

    text: str
    style: str


def origin(kind: str) -> str:
    """Give the word that says where figures come from."""
    return ORIGINS.get(kind, "MEASURED")


def testbed_name(kind: str, identity: str) -> str:
    """Name a testbed for readers: without a cluster's address, a simulation's settings, or a table's digest."""
    named = {"fluid": "simulated engine (fluid)", "recorded": "a table of rates"}
    return named.get(kind, identity.split(", master", maxsplit=1)[0])


def header_html(word: str, facts: Iterable[str]) -> str:
    """Write where the figures come from, which no reader can miss, and what they are of."""
    words = escape(" · ".join(filter(None, facts)))
    return f'<p class="workbench-origin"><span class="origin {word.lower()}">{escape(word)}</span> {words}</p>'


def table_html(
    columns: Sequence[str], rows: Iterable[Sequence[str | Chip]], *, chosen: int | None = None, caption: str = ""
) -> str:
    """Write a table of few rows; the row `chosen` is marked."""
    head = "".join(f'<th scope="col">{_whole(name)}</th>' for name in columns)
    body = "".join(
        f"<tr{_CHOSEN * (number == chosen)}>{''.join(map(_cell, row))}</tr>" for number, row in enumerate(rows)
    )
    above = f"<caption>{_whole(caption)}</caption>" if caption else ""
    return (
        f'<div class="workbench-front"><table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def cares_html(reasons: Mapping[str, Advice]) -> str:
    """List the first reasons for care, at most four, each with what to do: commands stand out."""
    items = "".join(
        f"<li>{escape(reason)} <strong>{_advised(advice)}</strong></li>"
        for reason, advice in list(reasons.items())[:MOST_CARES]
    )
    return f'<ul class="workbench-cares">{items}</ul>' if items else ""


def _advised(advice: Advice) -> str:
    command = f"<code>{escape(advice.command)}</code>" if advice.command else ""
    said = ": ".join(filter(None, (escape(advice.words), command)))
    return said if advice.otherwise is None else f"{said}<br>{_advised(advice.otherwise)}"


def beside_html(*parts: str) -> str:
    """Put parts side by side where the page is wide enough."""
    shown = "".join(parts)
    return f'<div class="workbench-beside">{shown}</div>' if shown else ""


def tabs_html(name: str, panes: Mapping[str, Mapping[str, str]]) -> str:
    """Write texts to copy under tabs, which need no script and are all printed: by label, the texts by what they are.

    The name is unique on the page.
    """
    made = []
    for number, (label, texts) in enumerate(panes.items()):
        id_ = escape(f"tab-{name}-{number}")
        shown = "".join(
            f'<div>{escape(what)}<pre class="workbench-copy" tabindex="0" role="region" '
            f'aria-label="{escape(f"{what}, {label}")}">{escape(text)}</pre></div>'
            for what, text in texts.items()
        )
        made.append(
            f'<input type="radio" name="tabs-{escape(name)}" id="{id_}"{" checked" * (number == 0)}>'
            f'<label for="{id_}">{escape(label)}</label><div class="pane">{shown}</div>'
        )
    return f'<div class="workbench-tabs">{"".join(made)}</div>' if made else ""


def _cell(cell: str | Chip) -> str:
    if isinstance(cell, Chip):
        return f'<td><span class="verdict {cell.style}">{escape(cell.text)}</span></td>'
    return f"<td>{_whole(cell)}</td>"


def _whole(text: str) -> str:
    """Escape `text`, and keep each number on one line with its unit."""
    return escape(units.kept_whole(text))
