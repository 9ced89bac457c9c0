"""Find the words that CONTRIBUTING.md advises against: ``python tests/plain_english.py [PATH ...]``.

Only prose is checked: Markdown, comments, docstrings and text of more than one word. Names in code and code spans are
left alone. Without a path, every file that git tracks is checked. Ends with 1 if a word is found.
"""

import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "CONTRIBUTING.md"
WHOLE = (".md", ".yaml", ".yml", ".toml", ".j2", "Makefile")  # checked from the first character to the last
_SPAN = re.compile(r"(`+)[^`\n]+?\1")
_FIELD = re.compile(r"\{[^{}]*\}")  # of an f-string
_GAP = r"""["']?\s[\s#"']*"""  # a phrase may continue on the next line of a comment or a text


class Finding(NamedTuple):
    """A word, where it is, and what to write."""

    place: str
    word: str
    advice: str

    def __str__(self) -> str:
        return f"{self.place}: {self.word!r}; write: {self.advice}"


def word_list(guide: str) -> dict[str, str]:
    """Read the table of the style guide: each phrase, and what to write."""
    rows = re.findall(r"^\| (`[^|]+`) \| ([^|]+) \|$", guide, re.MULTILINE)
    return {phrase: advice for phrases, advice in rows for phrase in re.findall("`([^`]+)`", phrases)}


def findings(text: str, kind: str, words: dict[str, str]) -> Iterator[tuple[int, str, str]]:
    """Give line, word and advice for every listed word in the prose of `text`."""
    alternatives = "|".join(
        _GAP.join(map(re.escape, phrase.split())) for phrase in sorted(words, key=len, reverse=True)
    )
    listed = re.compile(rf"(?<![\w.-])(?:{alternatives})(?![\w(=-])", re.IGNORECASE)
    prose = _SPAN.sub(_blank, _python_prose(text) if kind == ".py" else text)
    for match in listed.finditer(prose):
        word = re.sub(_GAP, " ", match[0])
        yield prose.count("\n", 0, match.start()) + 1, word, words[word.lower()]


def check(path: Path, words: dict[str, str]) -> Iterator[Finding]:
    """Check one file; a file of another kind has no findings."""
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    if path.suffix == ".ipynb":
        for number, cell in enumerate(json.loads(path.read_text())["cells"], 1):
            kind = ".md" if cell["cell_type"] == "markdown" else ".py"
            for line, word, advice in findings("".join(cell["source"]), kind, words):
                yield Finding(f"{name}:cell {number}:{line}", word, advice)
    elif path.suffix == ".py" or path.name.endswith(WHOLE):
        for line, word, advice in findings(path.read_text(), path.suffix, words):
            yield Finding(f"{name}:{line}", word, advice)


def _python_prose(text: str) -> str:
    """Blank everything but comments and texts with a space in them; positions stay."""
    lines = [[" "] * len(line) for line in text.splitlines()]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if not _is_prose(token):
            continue
        shown = _FIELD.sub(_blank, token.string) if token.string[:1] in "fF" else token.string
        row, column = token.start
        for offset, part in enumerate(shown.split("\n")):
            begin = 0 if offset else column
            lines[row - 1 + offset][begin : begin + len(part)] = part
    return "\n".join("".join(line) for line in lines)


def _is_prose(token: tokenize.TokenInfo) -> bool:
    if token.type == tokenize.COMMENT:
        return True
    middle = getattr(tokenize, "FSTRING_MIDDLE", None)  # from Python 3.12 on
    return token.type in {tokenize.STRING, middle} and " " in token.string.strip()


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def tracked(paths: list[str]) -> list[Path]:
    """Files below `paths` that git tracks."""
    listed = subprocess.run(["git", "ls-files", *paths], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def main(paths: list[str]) -> int:
    """Print the findings; return 1 if there are any."""
    words = word_list(GUIDE.read_text())
    found = [finding for path in tracked(paths) for finding in check(path, words)]
    for finding in found:
        print(finding)  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main([str(Path(path).resolve()) for path in sys.argv[1:]]))
