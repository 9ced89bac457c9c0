"""Kill a measurement on Spark in the middle of its estimate, then run the same command again.

    python benchmarks/killed.py [nexmark:q1]

Prints what the killed command left (processes, control groups and folders of the testbed), which probes the second
command reused and which it made. Takes about eight minutes.
"""

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from workbench.journal import Journal

BEFORE_KILL = 1  # probe after the warm-up: q1's estimate may need no more than two
PATIENCE_S, GRACE_S = 900, 60
PLACES = (Path(tempfile.gettempdir()), Path("/dev/shm"), *Path("/sys/fs/cgroup").glob("cpu*"), Path("/sys/fs/cgroup"))  # noqa: S108 - looked at only


def left_behind():
    """Folders, control groups and processes of deployments."""
    found = {str(path) for place in PLACES if place.is_dir() for path in place.glob("workbench-*")}
    for process in psutil.process_iter(["cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or ())
        ours = "workbench.testbed.spark" in line or "CoarseGrainedExecutorBackend" in line
        if ours and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.add(f"process {process.pid}")
    return found


def probes(journal):
    """(number, phase, rate, attempt) of the recorded probes, in order."""
    if not journal.exists():
        return []
    entries = Journal(journal).entries("probe")
    return [tuple(entry.data[name] for name in ("number", "phase", "rate", "attempt")) for entry in entries]


def wait(done, seconds):
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        time.sleep(0.2)
    return done()


def main(query):
    before = left_behind()
    with tempfile.TemporaryDirectory(prefix="killed-") as made:
        journal = Path(made) / "journal.jsonl"
        options = ["--journal", str(journal), "--output", f"{made}/measured.json", "--no-costs", "--json"]
        command = [sys.executable, "-m", "workbench.cli", "measure", query, *options]
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        if not wait(lambda: len(probes(journal)) > BEFORE_KILL or first.poll() is not None, PATIENCE_S):
            first.kill()
            raise SystemExit("the first probes did not come")
        first.send_signal(signal.SIGKILL)
        first.wait()
        kept = probes(journal)
        print(f"killed after {len(kept)} probes, the warm-up among them", flush=True)
        wait(lambda: not left_behind() - before, GRACE_S)
        left = left_behind() - before
        print(f"left behind: {', '.join(sorted(left)) or 'nothing'}", flush=True)
        second = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        after = probes(journal)
        repeated = sum(probe in kept for probe in after[len(kept) :])
        print(
            f"the same command: exit code {second.returncode}, took over {len(kept)} probes, made "
            f"{len(after) - len(kept)}, repeated {repeated}"
        )
    return 1 if left or repeated or second.returncode or after[: len(kept)] != kept else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:] or ["nexmark:q1"]))
