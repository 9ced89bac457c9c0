"""Record what `plan`, `place --compare` and `replay` show in terminals and in a file: docs/gallery/terminal.md.

python benchmarks/terminal.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from terminal_session import SESSIONS, STUDY, command, environment, in_terminal, plain, prepare  # noqa: E402

PAGE = ROOT / "docs" / "gallery" / "terminal.md"
WIDTHS = (80, 120)


def in_file(name, folder):
    """Return what lands in a file that both streams are sent to: a line for each step, then the answer."""
    done = subprocess.run(
        command(name), cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True
    )
    return done.stdout.decode()


def page():
    """Run the sessions, and write them down as a page."""
    parts = [
        "# In a terminal, and in a file",
        "Recorded by `python benchmarks/terminal.py`. The plan is for a simulated testbed:",
        f"```yaml\n{STUDY}```",
    ]
    shows = {f"{columns} columns": lambda name, columns=columns: in_terminal(name, folder, columns)
             for columns in WIDTHS}  # fmt: skip
    shows["A file"] = lambda name: in_file(name, folder)
    for title, show in shows.items():
        parts.append(f"## {title}")
        for name, arguments in SESSIONS.items():
            with tempfile.TemporaryDirectory() as folder:
                prepare(Path(folder))
                shown = "\n".join(line.rstrip() for line in plain(show(name)).splitlines())
            parts.append(f"```text\n$ workbench {' '.join((name, *arguments))}\n{shown}\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
