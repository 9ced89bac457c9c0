"""What people see of an answer, as plain values that a snapshot can hold: terminal, page and JSON."""

import html
import json
import re

from workbench.cli import main

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_MOST_ROWS = 20
_RUN = re.compile(r"\d{4}-\d\d-\d\d|(?<= · simulated engine \(fluid\)) · [^\n|]*")
_TIMES = re.compile(r" *\d+(\.\d+)?\s(ms|µs|s)\b")


def terminal(arguments, capsys, monkeypatch, columns):
    """Text of a command on a terminal of `columns`, without its colours."""
    with monkeypatch.context() as patched:
        patched.setenv("COLUMNS", str(columns))
        patched.setenv("TTY_COMPATIBLE", "1")
        main(arguments)
    lines = _ESCAPES.sub("", capsys.readouterr().out).splitlines()
    return "\n".join(line.rstrip() for line in lines)


def check_terminals(arguments, capsys, monkeypatch, snapshot, without=str):
    """Compare what a command prints at 80 and at 120 columns; `without` leaves out what differs from run to run."""
    for columns in (80, 120):
        printed = terminal(arguments, capsys, monkeypatch, columns)
        assert without(printed) == snapshot(name=f"terminal of {columns}")


def in_json(arguments, capsys, *codes):
    """JSON document of a command that ends with 0 or another of these exit codes."""
    assert main([*arguments, "--json"]) in {0, *codes}
    return json.loads(capsys.readouterr().out)


def undated(value):
    """Text, or the facts of a card, without the days and the machine of runs that a test has made."""
    if isinstance(value, dict):
        return {name: undated(one) for name, one in value.items()}
    return _RUN.sub("DAY", value) if isinstance(value, str) else value


def untimed(text):
    """Text without the times that a search took, which differ from run to run."""
    return _TIMES.sub(" TIME", text)


def rounded(value):
    """The values of a document, floats to six digits."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def page(cards, written=lambda row: json.dumps([rounded(one) for one in row], ensure_ascii=False)):
    """Facts of a page: what each card asks and finds, the words of its markup, its table, its figure's data.

    Each row of a table is `written` in a line, by default with all its types.
    """
    return [
        {
            "name": card.name,
            "title": card.title,
            "finding": card.finding,
            "kind": card.kind,
            "folded": card.folded,
            "words": words(card.html),
            "table": None if card.table is None else list(map(written, card.table.rows)),
            "columns": None if card.table is None else " | ".join(" ".join(one).strip() for one in card.table.columns),
            "figure": None if card.figure is None else [_trace(one) for one in card.figure.data],
        }
        for card in cards
    ]


def brief(cards):
    """The same in words, and of long tables the first and the last rows."""
    shown = page(cards, lambda row: " | ".join(str(rounded(one)) for one in row))
    for card in shown:
        rows = card["table"] or []
        card["table"] = rows if len(rows) <= _MOST_ROWS else [*rows[:3], f"{len(rows)} rows", rows[-1]]
        card["columns"] = card["columns"] or ""
    return shown


def document(told):
    """Fields of a JSON document, each on a line, floats to six digits."""
    if isinstance(told, list):
        return [document(one) for one in told]
    return {key: json.dumps(rounded(value)) for key, value in told.items()}


def words(markup):
    """Text of some markup, its elements apart."""
    return " | ".join(filter(None, (html.unescape(part).strip() for part in re.split(r"<[^>]*>", markup))))


def _trace(trace):
    values = [float(one) for one in (trace.y if trace.y is not None else ()) if isinstance(one, int | float)]
    return f"{trace.uid}: {len(values)} values, {sum(values):.4g} in all"
