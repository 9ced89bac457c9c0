"""The README's promise to a newcomer, on real Spark: your own query and CSV, in the tour's notebook, to plan and page.

    python benchmarks/newcomer.py [FOLDER]

Puts the README's example query and a CSV file next to a copy of the notebooks, fills in the first cell, and runs all
cells. Prints the minutes in total and of each run, the answer, and its certainty. A killed benchmark continues when it
is started again with the same FOLDER; its minutes then cover the last start only.
"""

import html
import itertools
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import papermill

ROOT = Path(__file__).parents[1]
GIVEN = {
    "query": "orders_of_mine:orders_per_minute",
    "dataset": "../mine.csv",
    "event_time": "time",
    "targets": [20_000, 60_000, 200_000],
    "wait": True,
}
ROWS, SHOPS = 5_000, 300


def own_query():
    """The first Python example of the README that is a module."""
    text = (ROOT / "README.md").read_text()
    (module,) = re.findall(r"^```python\n(# jobs.py\n.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return module


def own_data():
    seconds = ((9 * 3600 + number // 2, number * number % SHOPS) for number in itertools.count())
    rows = (
        f"2026-05-04T{at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d}Z,till-{shop},{shop % 17 + 1}\n"
        for at, shop in seconds
    )
    return "time,shop,items\n" + "".join(itertools.islice(rows, ROWS))


def prepare(folder):
    if not (folder / "notebooks").exists():
        shutil.copytree(ROOT / "notebooks", folder / "notebooks", ignore=shutil.ignore_patterns(".*", "reports"))
        shutil.copytree(ROOT / "data", folder / "data")
        (folder / "notebooks" / "orders_of_mine.py").write_text(own_query())
        (folder / "mine.csv").write_text(own_data())


def shown(notebook):
    """Findings of the cards that the notebook's widgets show."""
    state = notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    for widget in state.values():
        for output in widget["state"].get("outputs", ()):
            yield from re.findall(r"<h2>(.*?)</h2><p>(.*?)</p>", output.get("data", {}).get("text/html", ""))


def main(folder):
    prepare(folder)
    begun = time.monotonic()
    papermill.execute_notebook(
        folder / "notebooks" / "00_tour.ipynb",
        folder / "ran.ipynb",
        GIVEN,
        cwd=folder / "notebooks",
        progress_bar=False,
    )
    minutes = (time.monotonic() - begun) / 60
    page = folder / "notebooks" / "reports" / "tour.html"
    print(f"own query and CSV file to plan and page: {minutes:.1f} minutes (aim: 15)")
    print(f"page: {page.stat().st_size / 1e6:.2f} MB")
    for title, finding in shown(nbformat.read(folder / "ran.ipynb", as_version=4)):
        if title in {"What do I deploy?", "How sure is that?", "Which runs is it based on?"} or "Error" in title:
            print(html.unescape(re.sub("<.*?>", "", f"{title} {finding}")))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
