"""Demonstrate the project's promises in order, each with its figure.

    python benchmarks/acceptance.py [--needs minutes long spark browser] [--about PART] [--only WORDS] [--list]

The promises and their commands are in ``acceptance.toml``. All of them take a day on an idle machine, mostly on Spark.
``--needs`` selects a part; ``--needs minutes`` takes minutes on any machine. The output of each command is kept in
``artifacts/acceptance``. The exit code is 1 if a command fails or is missing.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "artifacts" / "acceptance"
NEEDS = ("minutes", "long", "spark", "browser")
ABOUT = ("measure", "plan", "place", "scale", "look")
SHOWN, FAILED, MISSING, LEFT_OUT = "shown", "FAILED", "MISSING", "left out"
_MOST_LINES = 40


class Promise(NamedTuple):
    """One entry of the file."""

    about: str
    shows: str
    run: tuple[str, ...]
    needs: str
    figure: str | None

    @property
    def name(self):
        return f"{self.about}-{'-'.join(re.findall('[a-z0-9]+', self.shows.lower())[:6])}"

    @property
    def missing(self):
        """Missing scripts and test files."""
        files = [word for command in self.run for word in shlex.split(command) if word.endswith(".py")]
        return [file for file in files if not (ROOT / file).is_file()]


def promises():
    entries = tomllib.loads((ROOT / "benchmarks" / "acceptance.toml").read_text())["promise"]
    for entry in entries:
        commands = entry["run"] if isinstance(entry["run"], list) else [entry["run"]]
        if entry["needs"] not in NEEDS:
            raise SystemExit(f"{entry['shows']!r} needs {entry['needs']!r}; use one of {NEEDS}.")
        yield Promise(entry["about"], entry["shows"], tuple(commands), entry["needs"], entry.get("figure"))


def show(promise):
    """Run a promise's commands; return its outcome, the seconds, and the lines with its figure."""
    if promise.missing:
        return MISSING, 0.0, [f"missing: {', '.join(promise.missing)}"]
    KEPT.mkdir(parents=True, exist_ok=True)
    begun, text, code = time.monotonic(), "", 0
    for command in promise.run:
        done = subprocess.run(
            [sys.executable, *shlex.split(command)],
            cwd=ROOT,
            env=os.environ | {"CI": "true"},  # a missing browser is a failure
            capture_output=True,
            text=True,
            check=False,
        )
        text += f"$ python {command}\n{done.stdout}{done.stderr}"
        code = code or done.returncode
    (KEPT / f"{promise.name}.txt").write_text(text)
    return (FAILED if code else SHOWN), time.monotonic() - begun, figure(promise, text, failed=bool(code))


def figure(promise, text, *, failed):
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith("$ ")]
    if failed or promise.figure is None:
        return lines[-1:]
    return [line for line in lines if re.search(promise.figure, line)][-_MOST_LINES:]


def main():
    parser = argparse.ArgumentParser(description="Demonstrate the project's promises, each with its figure.")
    parser.add_argument("--needs", nargs="+", choices=NEEDS, default=NEEDS, help="only promises that need one of these")
    parser.add_argument("--about", choices=ABOUT, help="only promises about this part")
    parser.add_argument("--only", default="", metavar="WORDS", help="only promises with these words")
    parser.add_argument("--list", action="store_true", help="list the promises and run nothing")
    options = parser.parse_args()
    asked = [
        one for one in promises() if options.about in {None, one.about} and options.only.lower() in one.shows.lower()
    ]
    if options.list:
        for one in asked:
            there = f"  (missing: {', '.join(one.missing)})" if one.missing else ""
            print(f"{one.about:7}  {one.needs:8} {one.shows}{there}")
        return 0
    outcomes = []
    for one in asked:
        wanted = one.needs in options.needs
        outcome, seconds, lines = show(one) if wanted else (LEFT_OUT, 0.0, [f"needs {one.needs}"])
        outcomes.append(outcome)
        print(f"{outcome:8}  {one.about}: {one.shows}  [{seconds:.0f} s]", flush=True)
        for line in lines:
            print(f"          {line}", flush=True)
    print(", ".join(f"{outcomes.count(word)} {word}" for word in (SHOWN, FAILED, MISSING, LEFT_OUT)))
    return 1 if FAILED in outcomes or MISSING in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
