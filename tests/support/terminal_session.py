"""Run a command of the workbench in a pseudo-terminal, and read what a reader would have in sight at the end."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from simulated_study import SIMULATED

ROOT = Path(__file__).parents[2]
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
STUDY = f"{SIMULATED}most_runs: 4\nform: linear\nprices: data/instances.csv\n"
SESSIONS = {
    "plan": ("study.yaml", "--output", "plan.json", "--journal", "journal.jsonl"),
    "place": ("data/placement.yaml", "--compare", "--draws", "5", "--timeout", "2"),
    "replay": ("q11", "data/day.csv", "--slots", "30", "--policy", "static", "ds2", "justin"),
}


def prepare(folder):
    """Put the study and the data that the sessions name into `folder`."""
    (folder / "study.yaml").write_text(STUDY)
    (folder / "data").symlink_to(ROOT / "data")


def command(name):
    return [sys.executable, "-m", "workbench.cli", name, *SESSIONS[name]]


def environment(**more):
    left_out = {"COLUMNS", "NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING"}
    kept = {key: value for key, value in os.environ.items() if key not in left_out}
    return kept | {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **more}


def in_terminal(name, folder, columns, **more):
    """Return what the session `name` writes to standard output; see `run_in_terminal`."""
    return run_in_terminal(command(name), folder, columns, **more)


def run_in_terminal(arguments, folder, columns, **more):
    """Return what a command writes to standard output in a terminal of `columns`; its progress goes elsewhere."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        arguments, cwd=folder, env=environment(**more), stdin=follower, stdout=follower, stderr=subprocess.DEVNULL
    )
    os.close(follower)
    written = b""
    while True:
        try:
            more_of_it = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not more_of_it:
            break
        written += more_of_it
    os.close(leader)
    assert process.wait() == 0, written
    return written.decode().replace("\r\n", "\n")


def plain(text):
    """Leave out the codes that colour and move."""
    return CODES.sub("", text)
