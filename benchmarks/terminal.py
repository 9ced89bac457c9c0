"""Record what `plan`, `place --compare` and `replay` show in a terminal of 80 columns: docs/gallery/terminal.md.

python benchmarks/terminal.py
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from terminal_session import SESSIONS, STUDY, in_terminal, plain, prepare  # noqa: E402

PAGE = ROOT / "docs" / "gallery" / "terminal.md"


def page(columns=80):
    """Run the sessions, and write them down as a page."""
    parts = [
        "# In a terminal",
        f"Recorded in {columns} columns by `python benchmarks/terminal.py`. The plan is for a simulated testbed:",
        f"```yaml\n{STUDY}```",
    ]
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        for name, arguments in SESSIONS.items():
            shown = "\n".join(line.rstrip() for line in plain(in_terminal(name, folder, columns)).splitlines())
            parts.append(f"```text\n$ workbench {' '.join((name, *arguments))}\n{shown}\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
