"""The input of a number, and the smallest input that fails as it does."""

import json
import re
from dataclasses import replace
from pathlib import PurePath

import yaml

from fuzzing.mutations import mutate, mutate_arguments, seeded
from fuzzing.readers import run
from fuzzing.sandbox import carry_out

_TRIES = 400


def case_of(reader, seed, number):
    """Make input `number` of a reader."""
    chance = seeded(reader.name, seed, number)
    case = reader.cases[number % len(reader.cases)]
    if not case.changed:
        return replace(case, arguments=mutate_arguments(case.arguments, case.fixed, chance))
    changed = mutate(case.files[case.changed], PurePath(case.changed).suffix or ".jsonl", chance)
    return replace(case, files={**case.files, case.changed: changed})


def shrunk(case, reader, outcome):
    """Make `case` smaller as long as it fails in the same way; what takes long is tried less often."""
    left = _TRIES if outcome.seconds < 1 else 20
    found = True
    while found and left > 0:
        found = False
        for smaller in _smaller(case):
            left -= 1
            if next(carry_out([smaller], run, reader.sense)).signature == outcome.signature:
                case, found = smaller, True
                break
            if left <= 0:
                break
    return case


def _smaller(case):
    if not case.changed:
        arguments = case.arguments
        for place in range(case.fixed, len(arguments)):
            yield replace(case, arguments=arguments[:place] + arguments[place + 1 :])
        return
    content = case.files[case.changed]
    for smaller in _smaller_content(content, PurePath(case.changed).suffix):
        if len(smaller) < len(content):
            yield replace(case, files={**case.files, case.changed: smaller})


def _smaller_content(content, suffix):
    """Leave out halves of the lines, then single ones; of a tree its entries."""
    if suffix in {".json", ".yaml"}:
        try:
            tree = json.loads(content) if suffix == ".json" else yaml.safe_load(content)
        except (ValueError, yaml.YAMLError, RecursionError):
            tree = None
        for one in _smaller_trees(tree):
            yield json.dumps(one).encode()
    lines = content.split(b"\n")
    size = len(lines) // 2
    while size >= 1:
        for start in range(0, len(lines), size):
            yield b"\n".join(lines[:start] + lines[start + size :])
        size //= 2
    if len(lines) == 1:
        for size in (len(content) // 2, len(content) // 8):
            for start in range(0, len(content), max(1, size)):
                yield content[:start] + content[start + max(1, size) :]


def _smaller_trees(tree):
    if isinstance(tree, dict):
        for key in tree:
            yield {name: value for name, value in tree.items() if name != key}
        for key, value in tree.items():
            for smaller in _smaller_trees(value):
                yield {**tree, key: smaller}
    elif isinstance(tree, list):
        for place, value in enumerate(tree):
            yield tree[:place] + tree[place + 1 :]
            for smaller in _smaller_trees(value):
                yield [*tree[:place], smaller, *tree[place + 1 :]]


def written_as_test(reader, case, outcome):
    """Write a failing case as a test, to be named and given its message."""
    name = re.sub(r"\W+", "_", f"{reader.name} {outcome.where}").strip("_").lower()
    shown = repr(case.files[case.changed]) if case.changed else "None"
    if len(shown) > 3_000:
        shown = f"{shown[:3_000]} ... {len(shown):,} characters"
    write = f"\n    Path({case.changed!r}).write_bytes({shown})" if case.changed else ""
    return (
        f"\ndef test_{name}(tmp_path, monkeypatch, capsys):\n    monkeypatch.chdir(tmp_path){write}\n"
        f"    assert main({list(case.arguments)!r}) == 2\n    assert capsys.readouterr().err == ...\n"
        f"# now: {outcome.signature}: {outcome.message.strip().splitlines()[-1] if outcome.message.strip() else ''}\n"
    )
