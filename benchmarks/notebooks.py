"""Run each notebook as a user does, from top to bottom and not in quick mode: 01 and 02 measure on real Spark.

    python benchmarks/notebooks.py [01_measure 02_plan ...]

Prints the minutes of each from a cold start, and its errors. The tour has `newcomer.py`.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import papermill

ROOT = Path(__file__).parents[1]
TOUR = "00_tour"
SPARK = ("01_measure", "02_plan")  # wait for their measurements if nobody watches
ERROR = "✖ Error"


def errors(notebook):
    """Number of error cards and tracebacks in the cells and widgets."""
    state = notebook.metadata.get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {}).get("state", {})
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    outputs += [output for widget in state.values() for output in widget["state"].get("outputs", ())]
    return sum(output["output_type"] == "error" or ERROR in str(output.get("data")) for output in outputs)


def run(name):
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        shutil.copytree(ROOT / "notebooks", folder / "notebooks", ignore=shutil.ignore_patterns(".*", "reports"))
        shutil.copytree(ROOT / "data", folder / "data")
        ran = folder / "ran.ipynb"
        begun = time.monotonic()
        try:
            papermill.execute_notebook(
                folder / "notebooks" / f"{name}.ipynb",
                ran,
                {"wait": True} if name in SPARK else {},
                cwd=folder / "notebooks",
                progress_bar=False,
            )
        except papermill.PapermillExecutionError as error:
            print(f"{name}: {error.ename}: {error.evalue}")
            return False
        minutes = (time.monotonic() - begun) / 60
        wrong = errors(nbformat.read(ran, as_version=4))
        print(f"{name}: {minutes:.1f} minutes, {wrong} errors", flush=True)
        return not wrong


def main(names):
    outcomes = [run(name) for name in names]
    return all(outcomes)


if __name__ == "__main__":
    found = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb") if path.stem != TOUR)
    sys.exit(0 if main(sys.argv[1:] or found) else 1)
