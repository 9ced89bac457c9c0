"""Inject every fault that the tests know, and print what came of each.

    python benchmarks/faults.py [--times N] [--spark] [--only WORDS]
    python benchmarks/faults.py --results FILE.xml ...

The faults are the tests marked with ``fault``; each injects its own at random moments, the same in every run. A row is
one fault: how often it was injected, what the user sees, what was lost, what was left behind. ``--times`` is how often
a test of random moments injects its fault (20). ``--spark`` adds the faults of real Spark, which take minutes each. The
exit code is 1 if a test failed: its row says so. ``--results`` runs nothing: it prints the table of runs of the whole
suite, which wrote the files with ``pytest --junitxml``.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
_LONGEST = 160  # letters of what the user sees


def marked():
    """Files of tests that inject faults: to load all the others takes longer than to run these."""
    return [str(file) for file in sorted((ROOT / "tests").rglob("test_*.py")) if "mark.fault(" in file.read_text()]


def results(*files, every=True):
    """Row by row what the tests of some runs recorded; equal faults are one row.

    Unless `every` test is of a fault, those that recorded none are left out.
    """
    rows = {}
    for case in (case for file in files for case in ET.parse(file).getroot().iter("testcase")):  # noqa: S314 - pytest's
        failed = case.find("failure") is not None or case.find("error") is not None
        skipped = case.find("skipped")
        found = [json.loads(one.get("value")) for one in case.iter("property") if one.get("name") == "fault"]
        if not (found or every):
            continue
        for one in found or [{"fault": case.get("name"), "times": 0, "sees": [], "lost": "?", "left": "?"}]:
            row = rows.setdefault(one["fault"], one | {"times": 0, "sees": [], "result": "as it must"})
            if skipped is not None:
                row["result"] = f"skipped: {skipped.get('message')}"
                continue
            row["times"] += one["times"]
            row["sees"] += [text for text in one["sees"] if text not in row["sees"]]
            if failed:
                row["result"] = "FAILED"
    return list(rows.values())


def show(rows):
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("fault", "times", "what you see", "lost", "left behind", "result"):
        table.add_column(name, justify="right" if name == "times" else "left", overflow="fold")
    for row in rows:
        sees = row["sees"][0] if row["sees"] else ""
        others = f" (and {len(row['sees']) - 1} more)" if len(row["sees"]) > 1 else ""
        short = sees if len(sees) <= _LONGEST else f"{sees[:_LONGEST]}..."
        failed = row["result"] == "FAILED"
        table.add_row(
            row["fault"],
            str(row["times"]),
            short + others,
            "?" if failed else row["lost"],
            "?" if failed else row["left"],
            row["result"],
        )
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(table)
    console.print(f"{len(rows)} faults, injected {sum(row['times'] for row in rows)} times")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20, help="injections of a test at random moments (%(default)s)")
    parser.add_argument("--spark", action="store_true", help="also the faults of real Spark")
    parser.add_argument("--results", nargs="+", metavar="FILE", help="results of the suite, to print and run nothing")
    parser.add_argument("--only", metavar="WORDS", help="tests to select, as pytest -k")
    options = parser.parse_args(arguments)
    if options.results:
        rows = results(*options.results, every=False)
        show(rows)
        return 1 if any(row["result"] == "FAILED" for row in rows) else 0
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        file = Path(folder) / "results.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={file}", "-m"]
        command += ["fault" if options.spark else "fault and not spark and not kafka", *marked()]
        command += ["-k", options.only] if options.only else []
        done = subprocess.run(command, cwd=ROOT, env=os.environ | {"FAULT_TIMES": str(options.times)}, check=False)
        show(results(file))
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
