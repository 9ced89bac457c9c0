"""What people see of an answer, as plain values that a snapshot can hold: terminal, page and JSON."""

import html
import json
import re

from workbench.cli import main

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_WIDTH = 240
_RUN = re.compile(r'\d{4}-\d\d-\d\d|(?<= · simulated engine \(fluid\)) · [^\n|"]*')
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


def undated(text):
    """Text without the days and the machine of runs that a test has made."""
    return _RUN.sub("DAY", text)


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


def facts(cards, most_rows=None):
    """Facts of a page: what each card asks and finds, the words of its markup, its table, its figure's data.

    Of tables of more than `most_rows` rows, the first and the last rows are kept.
    """
    return [
        {
            "card": f"{card.name}, {card.kind}{', folded' if card.folded else ''}: {card.title}",
            "finding": card.finding,
            "words": words(card.html),
            "table": None if card.table is None else _table(card.table, most_rows),
            "figure": None if card.figure is None else [_trace(one) for one in card.figure.data],
        }
        for card in cards
    ]


def page(cards, before=()):
    """Facts of a page, as lines; of a card that is on the page `before`, those that differ."""
    return lines(changed(facts(cards), facts(before)))


def changed(page, before):
    """Facts of a page without those that cards of the same title have on the page `before`."""
    known = {(one["card"], name): value for one in before for name, value in one.items() if name != "card"}
    return [
        {name: value for name, value in one.items() if known.get((one["card"], name), ...) != value} for one in page
    ]


def lines(value, name=""):
    """JSON of a value: what does not fit in a line has lines of its own, with the names that lead to it."""
    line = f"{name} {_json(value)}".strip()
    if not isinstance(value, dict | list) or len(line) <= _WIDTH:
        return line
    parts = dict(enumerate(value)) if isinstance(value, list) else dict(sorted(value.items()))
    long = {key: part for key, part in parts.items() if isinstance(value, list) or len(_json(part)) > _WIDTH / 2}
    packed = [{}]
    for key in (key for key in parts if key not in long):
        if len(_json(packed[-1] | {key: parts[key]})) > _WIDTH:
            packed.append({})
        packed[-1][key] = parts[key]
    short = [f"{name} {_json(row)}".strip() for row in packed if row]
    return "\n".join([*short, *(lines(part, f"{name}.{key}".strip(".")) for key, part in long.items())])


def words(markup):
    """Text of some markup, its elements apart."""
    return " | ".join(filter(None, (html.unescape(part).strip() for part in re.split(r"<[^>]*>", markup))))


def _table(table, most_rows):
    names = " | ".join(" ".join(column).strip() for column in table.columns)
    rows = [" | ".join(str(rounded(one)) for one in row) for row in table.rows]
    if most_rows is not None and len(rows) > most_rows:
        rows = [*rows[:3], f"{len(rows)} rows", rows[-1]]
    return [names, *rows]


def _json(value):
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _trace(trace):
    values = [float(one) for one in (trace.y if trace.y is not None else ()) if isinstance(one, int | float)]
    return f"{trace.uid}: {len(values)} values, {sum(values):.4g} in all"
