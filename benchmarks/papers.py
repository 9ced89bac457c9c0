"""The recorded results of the five papers' figures: made again, compared with the file, or written to it.

    python benchmarks/papers.py [PAPER ...] [--only "Figure 6" ...] [--record]
    python benchmarks/papers.py [PAPER ...] --headlines

``--headlines`` prints the numbers that the papers give next to ours as a table (CSV), then how many figures and tables
have which status, and how many headlines agree.

Figures that take minutes are read from ``data/papers`` by the notebook and the report. This makes them and prints each
point that differs from the file by more than 1 %; ``--record`` writes the file. Everything is seeded, so nothing
differs unless the code did, except where a search or solver is stopped by the clock (CAPSys, Table 3, Figures 8 and
10b). Prints seconds of each figure; asserts nothing.
"""

import argparse
import csv
import io
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import capsys_runs
import elasticutor_runs
import streambed_runs

from workbench.errors import WorkbenchError
from workbench.papers import FOLDER, PAPERS, counted, recorded

RUNS = {"streambed": streambed_runs.RUNS, "capsys": capsys_runs.RUNS, "elasticutor": elasticutor_runs.RUNS}
COLUMNS = ("figure", "input", "panel", "series", "x", "y", "low", "high")
CLOSE = 0.01


def slow(paper):
    """What makes each recorded result of a paper, by figure and input."""
    return {
        (number, chosen): make
        for number, make in RUNS.get(paper, {}).items()
        for chosen in PAPERS[paper].figure(number).inputs or ("",)
    }


def written(results):
    """Text of the file of recorded series, by figure and input; numbers with four digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for (number, chosen), series in results.items():
        for one in series:
            none = (None,) * len(one.x)
            for x, *values in zip(one.x, one.y, one.low or none, one.high or none, strict=True):
                place = x if isinstance(x, str) else f"{x:.6g}"
                numbers = ["" if value is None else f"{value:.4g}" for value in values]
                writer.writerow([number, chosen, one.panel, one.name, place, *numbers])
    return text.getvalue()


def differing(before, after):
    """Points of a figure that changed, as text."""
    old = {(one.panel, one.name, x): y for one in before for x, y in zip(one.x, one.y, strict=True)}
    for one in after:
        for x, y in zip(one.x, one.y, strict=True):
            was = old.get((one.panel, one.name, x))
            if (was is None) != (y is None) or (y is not None and abs(was - y) > CLOSE * max(abs(was), abs(y))):
                yield f"    {one.panel}, {one.name}, {x}: {was} is now {y}"


def kept(paper, key):
    try:
        return recorded(paper, *key)
    except WorkbenchError:
        return ()


def headlines(papers):
    """Print each headline, and the counts."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("paper", "figure", "input", "headline", "unit", "published", "ours", "verdict"))
    found = []
    for paper in papers:
        for figure in PAPERS[paper].figures:
            for one in figure.compare_all():
                head, ours = one.headline, "" if one.ours is None else f"{one.ours:.3g}"
                writer.writerow((paper, one.number, head.only, head.what, head.unit, head.said, ours, one.verdict))
                found.append(one)
    statuses = Counter(figure.status.removesuffix(", because") for paper in papers for figure in PAPERS[paper].figures)
    for what, counts in (("figures and tables", statuses), ("headlines", counted(found))):
        print(f"# {sum(counts.values())} {what}: {', '.join(f'{count} {name}' for name, count in counts.items())}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=", ".join(PAPERS))
    parser.add_argument("--only", nargs="*", default=[], metavar="FIGURE", help="these figures or tables")
    parser.add_argument("--record", action="store_true", help="write the files")
    parser.add_argument("--headlines", action="store_true", help="print the papers' numbers next to ours")
    options = parser.parse_args()
    if options.headlines:
        headlines(options.papers or PAPERS)
        return
    for paper in options.papers or PAPERS:
        for key, make in slow(paper).items():
            if options.only and key[0] not in options.only:
                continue
            begun = time.perf_counter()
            made = tuple(make(key[1]))
            print(f"{paper} {' '.join(key)}: {time.perf_counter() - begun:.0f} s", flush=True)
            for line in differing(kept(paper, key), made):
                print(line)
            if options.record:
                results = {one: kept(paper, one) for one in slow(paper)} | {key: made}
                (FOLDER / "papers" / f"{paper}.csv").write_text(written(results), encoding="utf-8")


if __name__ == "__main__":
    main()
