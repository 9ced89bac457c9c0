"""Wrong input made from right input: one value, line or cell of a document is changed, or its bytes are."""

import copy
import csv
import io
import json
import random
import re

import yaml

NUMBERS = (
    0, -1, 1, 2, 0.5, -0.5, 3, 1e-300, 1e300, -1e300, float("nan"), float("inf"), float("-inf"), 100_000_000, 10**12,
    2**31, 2**63, 2**64, 10**40, 10**400, 5e-324, 1e17, 1e308, -(10**400),
)  # fmt: skip
TEXTS = (
    "", " ", "x", "none", "inf", "nan", "-1", "1e400", "a" * 5_000, "é", "日本語", "\u202e", "\ud83d", "\0", "a\nb",
    "../../etc/passwd", "/dev/zero", "/", ".", "1,2", "=1+1", "<script>alert(1)</script>", "[red]x[/red]", "[/]", "{0}",
    "%s", "q1", "source",
)  # fmt: skip
VALUES = (*NUMBERS, *TEXTS, None, True, False, [], {}, [[]], [None], {"": None}, [0] * 3)
RAW = (
    "[" * 1_500 + "]" * 1_500, '{"a":' * 1_500 + "1" + "}" * 1_500, "9" * 5_000, "1" + "0" * 300, "-0.0", "1E400",
)  # fmt: skip
RAW_YAML = (
    *RAW, "!!python/object/apply:os.system ['touch pwned']", "*nowhere", "&a [*a]", "2024-13-45", "2024-01-01", "0x1F",
    "1_000", "1:30", "!!set {a, b}", "!!binary aGk=", "!!float nan", "!x y", "? [a, b]", "'", "{", "- a\n b: [", "~",
    "yes", "&b [1, 2]", "!!int 'x'", "!!timestamp x", "<<: {a: 1}", "!!python/tuple [1]", "9" * 50,
)  # fmt: skip
ARGUMENTS = (
    "0", "-1", "1", "2", "1e300", "-1e300", "nan", "inf", "-inf", "100000000", "1" + "0" * 40, "1e-300", "5e-324", "x",
    "", " ", "a" * 5_000, "\u202e", "\udce9", "../x", "/dev/null", ".", "0.5", "1,2", "4x4", "=", "a=1", "a=nan", "--",
    "--json", "9" * 5_000, "1.5", "1e18", "10000", "日本語", "[red]", "{}", "%s", "3", "7", "0.9", "100", "1000",
)  # fmt: skip
STATEMENTS = tuple(
    r"""
raise SystemExit(3)
import sys; sys.exit(0)
exit('bye')
raise BaseException('x')
raise Exception
raise GeneratorExit
import nowhere
1/0
raise MemoryError
raise RecursionError('deep')
f = lambda: f(); f()
raise StopIteration
import os; os.chdir('/')
print('x' * 100_000)
raise BrokenPipeError
raise type('E', (Exception,), {'__str__': lambda self: 1/0})
raise UnicodeDecodeError('utf-8', b'', 0, 1, 'x')
import warnings; warnings.warn('careful')
raise Exception('a' * 100_000)
raise Exception('\ud83d')
raise OSError
del __name__
raise ExceptionGroup('x', [ValueError()])
import sys; sys.stdout = None
return None
return 5
return float('nan'), None
yield
x =
	x
async def g(): ...
__getattr__ = lambda name: 1/0
""".strip("\n").split("\n")
)
BYTES = (
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\n", b"\r", b'"', b"'", b",", b"[", b"{", b"}", b":", b"\x1b[31m", b"9" * 400,
    b"-", b"a" * 200_000,
)  # fmt: skip

_RAW_MARK, _TWICE_MARK = re.compile(r'"?@raw(\d+)@"?'), "@twice@"


# Errors of a content that is no longer what it was; PyYAML's of odd tags are of many kinds.
_NO_LONGER = (ValueError, TypeError, LookupError, AttributeError, RecursionError, yaml.YAMLError, csv.Error)


def mutate(content, suffix, chance):
    """Change `content` of a file that ends in `suffix` once to three times."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        content = _once(content, suffix, chance)
    return content


def _once(content, suffix, chance):
    structured = {".json": _json, ".yaml": _yaml, ".jsonl": _json_lines, ".csv": _csv, ".py": _python}.get(suffix)
    if structured is not None and chance.random() < 0.85:
        try:
            return structured(content, chance)
        except _NO_LONGER:
            pass
    return _bytes(content, chance)


def _json(content, chance):
    tree = json.loads(content)
    changed = change(tree, chance, len(RAW))
    return _unmarked(json.dumps(changed), RAW).encode("utf-8", "surrogatepass")


def _yaml(content, chance):
    tree = yaml.safe_load(content)
    changed = change(tree, chance, len(RAW_YAML))
    return _unmarked(_flow(changed), RAW_YAML).encode("utf-8", "surrogatepass")


def _json_lines(content, chance):
    lines = content.split(b"\n")
    place = chance.randrange(len(lines))
    if chance.random() < 0.8:
        lines[place] = _json(lines[place], chance)
    else:
        _shuffle_rows(lines, place, chance)
    return b"\n".join(lines)


def _flow(value):
    """Write YAML's flow style: JSON, but for the numbers that JSON lacks."""
    text = json.dumps(value, default=str)
    for name, written in (("NaN", ".nan"), ("-Infinity", "-.inf"), ("Infinity", ".inf")):
        text = re.sub(rf"(?<=[\[ :]){name}(?=[,\]\}}])", written, text)
    return text


def _unmarked(text, raw):
    text = text.replace(_TWICE_MARK, "")
    return _RAW_MARK.sub(lambda mark: raw[int(mark[1])], text)


def change(tree, chance, raw=0):
    """Change one place of a tree of mappings and lists; `raw` is the number of texts that can be put in unquoted."""
    tree = copy.deepcopy(tree)
    places = list(_places(tree))
    if not places:
        return chance.choice(VALUES)
    holder, key = chance.choice(places)
    value = holder[key]
    kind = chance.randrange(10)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[chance.choice((f"{key}s", str(key)[1:], f"{_TWICE_MARK}{chance.choice(list(holder))}", "x"))] = value
    elif kind == 2 and isinstance(holder, list):
        holder[key:key] = [copy.deepcopy(value)] * chance.choice((1, 1, 5, 500))
    elif kind == 3:
        other, place = chance.choice(places)
        holder[key] = copy.deepcopy(other[place])
    elif kind == 4 and raw:
        holder[key] = f"@raw{chance.randrange(raw)}@"
    elif isinstance(value, int | float) and not isinstance(value, bool) and kind < 8:
        holder[key] = chance.choice(NUMBERS) if kind == 5 else _scaled(value, chance)
    else:
        holder[key] = chance.choice(VALUES)
    return tree


def _scaled(value, chance):
    factor = chance.choice((-1, 0, 0.001, 0.1, 10, 1000, 1e9, 1.5))
    try:
        scaled = value * factor
        return int(scaled) if isinstance(value, int) and chance.random() < 0.7 else scaled
    except (OverflowError, ValueError):
        return factor


def _places(tree):
    """Yield (holder, key) of every value."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield tree, key
            yield from _places(value)
    elif isinstance(tree, list):
        for key, value in enumerate(tree):
            yield tree, key
            yield from _places(value)


def _csv(content, chance):
    rows = list(csv.reader(io.StringIO(content.decode())))
    place = chance.randrange(len(rows))
    kind = chance.randrange(6)
    if kind < 4 and rows[place]:
        cell = chance.randrange(len(rows[place]))
        if kind == 0:
            del rows[place][cell]
        elif kind == 1:
            rows[place].insert(cell, rows[place][chance.randrange(len(rows[place]))])
        else:
            rows[place][cell] = str(chance.choice((*NUMBERS, *TEXTS, "a" * 200_000, "1e999")))[:300_000]
    else:
        _shuffle_rows(rows, place, chance)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "surrogatepass")


def _shuffle_rows(rows, place, chance):
    """Drop, repeat, move or empty a row."""
    row = rows.pop(place)
    kind = chance.randrange(5)
    if kind == 1:
        rows[place:place] = [row] * chance.choice((2, 2, 3_000))
    elif kind == 2:
        rows.insert(chance.randrange(len(rows) + 1), row)
    elif kind == 3:
        rows.insert(place, row[:0])
    elif kind == 4:
        rows[place + 1 :] = []


def _python(content, chance):
    lines = content.decode().split("\n")
    place = chance.randrange(len(lines))
    if chance.random() < 0.25:
        del lines[place]
    else:
        indent = re.match(r" *", lines[place])[0]
        lines[place:place] = [indent + line for line in chance.choice(STATEMENTS).split("\n")]
    return "\n".join(lines).encode()


def _bytes(content, chance):
    start = chance.randrange(len(content) + 1)
    end = min(len(content), start + chance.choice((0, 1, 1, 4, 30, len(content))))
    kind = chance.randrange(5)
    if kind == 0:
        return content[:start]
    if kind == 1:
        return content[:start] + content[end:]
    if kind == 2:
        return content[:start] + content[start:end] * 2 + content[end:]
    if kind == 3 and start < len(content):
        return content[:start] + bytes([content[start] ^ (1 << chance.randrange(8))]) + content[start + 1 :]
    return content[:start] + chance.choice(BYTES) + content[end:]


def mutate_arguments(arguments, fixed, chance):
    """Change the arguments after the first `fixed`."""
    changed = list(arguments)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if len(changed) <= fixed:
            break
        place = chance.randrange(fixed, len(changed))
        kind = chance.randrange(8)
        if kind == 0:
            del changed[place]
        elif kind == 1:
            changed.insert(place, changed[chance.randrange(fixed, len(changed))])
        elif kind == 2 and "=" in changed[place]:
            changed[place] = f"{changed[place].partition('=')[0]}={chance.choice(ARGUMENTS)}"
        else:
            values = [number for number in range(fixed, len(changed)) if not changed[number].startswith("--")]
            changed[chance.choice(values or [place])] = chance.choice(ARGUMENTS)
    return tuple(changed)


def seeded(*parts):
    """Make the random numbers of one input."""
    return random.Random(":".join(map(str, parts)))
