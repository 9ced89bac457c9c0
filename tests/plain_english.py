"""Report words that CONTRIBUTING.md says not to write, in prose, docstrings, comments, messages and notebooks.

Usage: ``python tests/plain_english.py [PATH...]``; without paths, all files that git knows. The exit code is 1 if it
finds any.
"""

import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GUIDE = ROOT / "CONTRIBUTING.md"
SUFFIXES = (".md", ".py", ".ipynb", ".yaml", ".yml", ".toml", ".html", ".css", ".js")
# Stored documents stay as they were written; this file and the guide name the words.
LINE = "\n"
LEFT_OUT = ("tests/stored/", "tests/plain_english.py", "tests/unit/project/test_plain_english.py")


def word_list(guide: str) -> dict[str, str]:
    """Each word not to write, with what to write, from the table in the guide."""
    rows = re.findall(r"^\| (`.+`) \| (.+) \|$", guide, flags=re.MULTILINE)
    return {word: instead for words, instead in rows for word in re.findall(r"`([^`]+)`", words)}


def pattern(words: dict[str, str]) -> re.Pattern[str]:
    """Whole words, in any case; a line break counts as a space."""
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile(
        r"(?<![\w`.-])(?:" + "|".join(re.escape(w).replace(r"\ ", r"\s+") for w in longest_first) + r")(?![\w`(=-])",
        flags=re.IGNORECASE,
    )


def prose(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """The passages of a file that people read, each with the number of its first line."""
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)}:
                yield token.start[0], token.string
    elif path.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            yield 1, "".join(cell["source"])
    elif path.suffix == ".md":
        if path == GUIDE:
            text = re.sub(r"^\|.*\|$", "", text, flags=re.MULTILINE)
        text = re.sub(r"^```.*?^```", lambda m: "\n" * m.group().count("\n"), text, flags=re.MULTILINE | re.DOTALL)
        yield 1, re.sub(r"`[^`\n]*`", "``", text)
    else:
        yield 1, text


def findings(paths: list[Path], guide: str) -> list[str]:
    """One line per finding: where, what, and what to write instead."""
    words = word_list(guide)
    instead = {word.casefold(): text for word, text in words.items()}
    search = pattern(words)
    return [
        f"{path.relative_to(ROOT)}:{line + text.count(LINE, 0, match.start())}: '{match.group()}'; write: "
        + instead[re.sub(r"\s+", " ", match.group()).casefold()]
        for path in paths
        for line, text in prose(path, path.read_text(encoding="utf-8"))
        for match in search.finditer(text)
    ]


def files(arguments: list[str]) -> list[Path]:
    """The files to read: those that git knows or does not ignore, below the given paths."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [
        ROOT / name
        for name in listed
        if name.endswith(SUFFIXES) and not name.startswith(LEFT_OUT) and (ROOT / name).exists()
    ]


if __name__ == "__main__":
    found = findings(files(sys.argv[1:]), GUIDE.read_text(encoding="utf-8"))
    print(*found, sep="\n")
    sys.exit(bool(found))
