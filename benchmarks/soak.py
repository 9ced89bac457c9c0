"""What is left behind by long use: nothing may grow with the rounds.

    python benchmarks/soak.py [PART ...] [--rounds N] [--spark N] [--moves N] [--probes N] [--plot FILE.png]

Parts: ``simulated``, deploy, probe and release in one process on the simulated testbed (100 times); ``spark``, the same
on real Spark (10 times, a minute each); ``panel``, a what-if panel that is moved (10,000 times); ``journal``, a journal
of 100,000 probes opened by a plan, a report, and a report of what changed since. The first three watch the process:
resident memory, threads, open files, child processes, control groups, temporary files. Each is flat if its slope over
the second half of the rounds is below what is said here. What was measured is kept in ``artifacts/soak.json``;
``--plot`` draws all that is there.
"""

import argparse
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

KEPT = ROOT / "artifacts" / "soak.json"
MOST_MB = 5.0  # over the second half of the rounds
MOST_OTHERS = 0.5
STUDY = """query: nexmark:q11
targets: [1500000]
slots: [4, 8, 12]
memory_mb: [512, 1024]
testbed: fluid
slot_cpus: 1
interval_s: 5
most_runs: 7
"""


ELSEWHERE = []
"""Temporary folders that this process made outside its own, such as in shared memory."""


def noting(make):
    """Wrap ``tempfile.mkdtemp``, so that what is made elsewhere can be looked for."""

    def made(*arguments, **named):
        folder = make(*arguments, **named)
        if Path(folder).parent != Path(tempfile.gettempdir()):
            ELSEWHERE.append(folder)
        return folder

    return made


def watch():
    """What this process holds now, by name."""
    gc.collect()
    process = psutil.Process()
    mine = {process.pid, *(child.pid for child in process.children(recursive=True))}
    return {
        "memory, MB": process.memory_info().rss / (1 << 20),
        "threads": process.num_threads(),
        "open files": process.num_fds(),
        "child processes": len(mine) - 1,
        "control groups": sum(1 for _ in Path("/sys/fs/cgroup").glob(f"**/workbench-{process.pid}-*")),
        "temporary files": sum(1 for _ in Path(tempfile.gettempdir()).iterdir()) + sum(map(os.path.exists, ELSEWHERE)),
    }


def judged(name, rounds, seen):
    """Print the slope of everything watched, and whether it is flat."""
    print(f"{name}: {rounds:,} rounds, watched {len(seen)} times")
    print(f"{'':18}{'first':>10}{'half':>10}{'last':>10}{'per round':>13}")
    half = len(seen) // 2
    result = {"rounds": rounds, "seen": seen, "flat": {}}
    for what in seen[0]:
        values = [one[what] for one in seen]
        at = np.linspace(0, rounds, len(seen))
        slope = float(np.polyfit(at[half:], values[half:], 1)[0]) if len(seen) - half > 1 else 0.0
        grown = slope * (at[-1] - at[half])
        flat = bool(grown <= (MOST_MB if what.endswith("MB") else MOST_OTHERS))
        result["flat"][what] = flat
        verdict = "flat" if flat else f"GROWS by {grown:.1f} in the second half"
        print(f"{what:18}{values[0]:10.1f}{values[half]:10.1f}{values[-1]:10.1f}{slope:13.5f}  {verdict}")
    print(flush=True)
    return result


def simulated(options, folder):
    from workbench.dataflow import Budget, SlotProfile
    from workbench.journal import Journal
    from workbench.measuring import CapacityEstimator, Configuration, measure, result_of
    from workbench.study import find_query
    from workbench.testbed import FluidTestbed

    query = find_query("nexmark:q11")
    testbed, journal, seen = FluidTestbed(), Journal(folder / "journal.jsonl"), []
    for number in range(options.rounds):
        asked = Configuration(query, Budget(8, SlotProfile(1.0, 1024), 5.0), repeat=number)
        result_of(measure(asked, testbed, CapacityEstimator(), journal))
        seen.append(watch())
    return judged("deploy, probe and release, simulated", options.rounds, seen)


def spark(options, folder):  # noqa: ARG001 - like the others
    from workbench.dataflow import Budget, SlotProfile
    from workbench.testbed import SparkTestbed
    from workbench.testbed.spark import quota_permitted
    from workbench.workload.nexmark import query as nexmark

    cpus = 0.4 if quota_permitted() else 1.0
    testbed = SparkTestbed(slot_cpus="auto" if cpus < 1 else "cores", warmup_cap_s=1.0)
    seen = [watch()]
    for _ in range(options.spark):
        with testbed.deploy(nexmark("q1"), Budget(1, SlotProfile(cpus, 1024), 1.0)) as live:
            live.set_rate(1000.0)
            live.observe(3.0)
        seen.append(watch())
    return judged("deploy, probe and release, on Spark", options.spark, seen)


def panel(options, folder):
    from workbench.journal import Journal
    from workbench.study import read_study, run_study
    from workbench.views.widgets import WhatIf

    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    what_if = WhatIf(run_study(read_study(folder / "study.yaml"), Journal(folder / "journal.jsonl")))
    middle, every, seen = what_if.rate.value, max(1, options.moves // 50), []
    for number in range(options.moves):
        what_if.rate.value = middle * (1 + 0.3 * np.sin(number))
        if number % 10 == 5:
            what_if.lost.value = not what_if.lost.value
        if number % every == 0:
            seen.append(watch())
    if what_if.alarm.widget.value:
        print(f"the panel says: {what_if.alarm.widget.value}")
    return judged("a what-if panel, moved", options.moves, seen)


def journal(options, folder):
    """Open a large journal by commands, each in a process of its own."""
    from growth import others, write_journal

    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    path = folder / "journal.jsonl"
    write_journal(path, options.probes, others)
    kept = folder / "runs" / "study"
    kept.mkdir(parents=True)
    (kept / "study.txt").write_text("../study.yaml", encoding="utf-8")
    shutil.copy(path, kept)
    print(f"a journal of {options.probes:,} probes, {path.stat().st_size / (1 << 20):,.0f} MB")
    print(f"{'opened by':44}{'CPU seconds':>12}{'peak MB':>9}{'exit':>6}", flush=True)
    report = ["report", "capacity", "out.html", "-p", "study", "study.yaml", "-p", "history", "runs"]
    steps = {
        "plan --dry-run": ["plan", "study.yaml", "--journal", "journal.jsonl", "--dry-run"],
        "plan": ["plan", "study.yaml", "--journal", "journal.jsonl", "--output", "plan.json"],
        "plan again, all of it from the journal": ["plan", "study.yaml", "--journal", "journal.jsonl"],
        "report capacity": report,
        "report capacity again, with what changed": report,
    }
    rows = {}
    for name, arguments in steps.items():
        rows[name] = opened(arguments, folder)
        print(f"{name:44}{rows[name][0]:12.1f}{rows[name][1]:9.0f}{rows[name][2]:6}", flush=True)
    print()
    return {"probes": options.probes, "rows": rows}


def opened(arguments, folder):
    """CPU seconds, peak memory (MB) and exit code of a command."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "workbench.cli", *arguments]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        errors = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        print(errors.strip()[-500:])
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, process.returncode


PARTS = {"simulated": simulated, "panel": panel, "journal": journal, "spark": spark}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}; all if left out")
    parser.add_argument("--rounds", type=int, default=100, help="on the simulated testbed")
    parser.add_argument("--spark", type=int, default=10, help="rounds on Spark")
    parser.add_argument("--moves", type=int, default=10_000, help="of the panel")
    parser.add_argument("--probes", type=int, default=100_000, help="in the journal")
    parser.add_argument("--plot", metavar="FILE", help="draw all that was measured")
    options = parser.parse_args()
    unknown = set(options.parts) - {*PARTS}
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; use some of {', '.join(PARTS)}")
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    tempfile.mkdtemp = noting(tempfile.mkdtemp)
    for name in options.parts or ([] if options.plot else PARTS):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as temporary:
            tempfile.tempdir = temporary  # apart from those of other processes
            kept[name] = PARTS[name](options, Path(folder))
            tempfile.tempdir = None
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    if options.plot:
        plot(kept, options.plot)


def plot(kept, path):
    """Memory over the rounds of each part, as a share of the rounds."""
    import plotly.graph_objects as go
    from picture import save

    figure = go.Figure(layout={"template": "plotly_white", "width": 760, "height": 320})
    for name, part in kept.items():
        if "seen" in part:
            memory = [one["memory, MB"] for one in part["seen"]]
            share = np.linspace(0, 100, len(memory))
            figure.add_scatter(x=share, y=memory, name=f"{name}: {part['rounds']:,} rounds", mode="lines")
    figure.update_layout(
        title="Memory over long use", xaxis_title="rounds, % of all", yaxis_title="resident memory, MB", font_size=12
    )
    figure.update_yaxes(rangemode="tozero")
    save(figure, path)


if __name__ == "__main__":
    main()
