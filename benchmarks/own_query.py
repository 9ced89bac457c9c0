"""``workbench plan`` on the README's query: its two files, real Spark, a plan and a report.

    python benchmarks/own_query.py

Prints the command's output, its minutes and its exit code.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def example(kind):
    """The README's first block in language `kind`."""
    return re.search(rf"^```{kind}\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[1]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "jobs.py").write_text(example("python"))
        (folder / "study.yaml").write_text(example("yaml"))
        (folder / "data").symlink_to(ROOT / "data")
        begun = time.monotonic()
        command = [sys.executable, "-m", "workbench.cli", "plan", "study.yaml", "--report", "plan.html"]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
        minutes = (time.monotonic() - begun) / 60
        page = folder / "plan.html"
        size = f"{page.stat().st_size / 1e6:.2f} MB" if page.exists() else "none"
        print(done.stdout.rstrip())
        print(f"{minutes:.1f} minutes, exit code {done.returncode}, report {size}")
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
