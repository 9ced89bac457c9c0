"""The demo's study on a machine that is quiet, shared, limited, or disturbed now and then.

    python benchmarks/in_use.py [quiet busy quota bursts] [--study data/q5.yaml] [--verify 20000] [--measure 2]

`busy`: another process is busy on each core, at normal priority, all the time. `quota`: the workbench and all that it
starts may use 60 % of the machine, in a control group that it sees as a container sees its own; needs root. `bursts`:
all cores are busy for 20 s of each 45 s. Each kind plans the study in a new folder. Prints for each: seconds to the
first answer and to all; per budget the capacity over the quiet one, corrected by the speed of the cores, the same by
CPU seconds and waits apart, and whether its interval holds the quiet one so corrected; the widest interval; probes; and
each answer of the first and the last that is more than a factor of 1.5 off the quiet plan. With `--verify` a rate is
verified on two slots, and with `--measure` that many slots are measured, next to each kind, and their seconds printed.
What was planned is kept in .workbench/benchmark/in_use/KIND; a kind whose folder exists is read, not planned again.
"""

import argparse
import json
import multiprocessing
import re
import shutil
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from deployments import neighbour

from workbench.records import Measurement, core_speed_of
from workbench.speed import relative_speed
from workbench.study import read_planned

KEPT = Path(".workbench/benchmark/in_use")
KINDS = ("quiet", "busy", "quota", "bursts")
SHARE = 0.6
GROUP = Path("/sys/fs/cgroup/cpu/workbench-in-use")  # version 1 of control groups
AIMS = {"quota": (300, 600)}
FAR = 1.5
QUERY = ("nexmark:q5", "--slot-cpus", "0.3")
ANSWER = re.compile(r"^\[ *(\d+) s\] (answer after .*)")


@contextmanager
def limited():
    """Make a group of 60 % of the machine, and yield what runs a command in it."""
    GROUP.mkdir(exist_ok=True)
    (GROUP / "cpu.cfs_period_us").write_text("100000")
    (GROUP / "cpu.cfs_quota_us").write_text(str(round(SHARE * multiprocessing.cpu_count() * 100_000)))
    enter = f'echo $$ > {GROUP}/cgroup.procs; mount --bind {GROUP} {GROUP.parent}; exec "$@"'
    try:
        yield ["unshare", "-m", "bash", "-c", enter, "in-use"]
    finally:
        GROUP.rmdir()


@contextmanager
def beside(kind):
    """Do to the machine what `kind` says, and yield what stands before a command."""
    others = {"busy": lambda: neighbour(3600.0, 0.0), "bursts": lambda: neighbour(20.0, 25.0)}.get(kind, nullcontext)
    with others(), limited() if kind == "quota" else nullcontext([]) as before:
        yield before


def timed(command, folder, name):
    """Run the workbench in `folder`; give the seconds it took, and keep what it printed."""
    begun = time.monotonic()
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False)
    seconds = time.monotonic() - begun
    (folder / f"{name}.txt").write_text(f"{done.stdout}\n{done.stderr}\n{seconds:.0f} s, exit code {done.returncode}\n")
    return seconds, done


def carried_out(kind, study, verified, measured):
    """Plan the study next to `kind`, verify and measure; what was found is kept."""
    folder = KEPT / kind
    workbench = [str(Path(sys.executable).parent / "workbench")]
    if not (folder / "found.json").exists():
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was interrupted
        folder.mkdir(parents=True)
        data = folder / "data"
        data.symlink_to(Path("data").resolve())
        with beside(kind) as before:
            seconds, done = timed([*before, *workbench, "plan", str(study)], folder, "plan")
            found = {"seconds": seconds, "exit": done.returncode}
            if verified is not None:
                command = [*before, *workbench, "verify", *QUERY, "--slots", "2", "--rate", str(verified)]
                found["verify"] = timed(command, folder, "verify")[0]
            if measured is not None:
                command = [*before, *workbench, "measure", *QUERY, "--slots", str(measured)]
                found["measure"] = timed(command, folder, "measure")[0]
        (folder / "found.json").write_text(json.dumps(found))
    return folder, json.loads((folder / "found.json").read_text())


def plan_of(folder, study):
    return folder / ".workbench" / f"{'-'.join(Path(study).with_suffix('').parts)}-plan.json"


def measured_in(planned):
    return [run for run in planned.exploration.runs if isinstance(run, Measurement)]


def by_cpu(run):
    """Return the capacity from CPU seconds and waits, records/s: the median wait, and a line through CPU seconds."""
    budget, batches = run.budget, []
    for probe in run.estimate.probes:
        seen, done = probe.observation, [batch for batch in probe.observation.batches[1:] if batch.records]
        if done and seen.operators:
            cpu_s = sum(operator.cpu_s or 0.0 for operator in seen.operators) / len(done)
            rows = sum(batch.records for batch in done) / len(done)
            batches.append((rows, cpu_s, statistics.median(batch.duration_s for batch in done)))
    rows, cpu_s, took_s = (np.array(column) for column in zip(*batches, strict=True))
    per_row, fixed = np.polyfit(rows, cpu_s, 1) if len(set(rows)) > 1 else (0.0, 0.0)
    if per_row <= 0 or fixed < 0:  # the code was still getting faster
        per_row, fixed = np.median(cpu_s / rows), 0.0
    cores = budget.slots * budget.profile.cpus
    wait_s = np.median(took_s - (fixed + per_row * rows) / cores)
    return float((budget.interval_s - wait_s - fixed / cores) * cores / per_row / budget.interval_s)


def compare(kind, folder, found, study, quiet):
    """Print a kind's figures next to the quiet ones."""
    printed = (folder / "plan.txt").read_text()
    answers = [(int(at), text) for at, text in (m.groups() for m in map(ANSWER.match, printed.splitlines()) if m)]
    aims = AIMS.get(kind, (200, 480))
    first = answers[0][0] if answers else None
    print(f"\n{kind}: first answer {first} s (aim {aims[0]}), all {found['seconds']:.0f} s (aim {aims[1]})", end="")
    print("".join(f", {name} {found[name]:.0f} s" for name in ("verify", "measure") if name in found))
    if not plan_of(folder, study).exists():
        print(f"  no plan: {printed.strip().splitlines()[-2:]}")
        return
    planned = read_planned(plan_of(folder, study))
    runs, usual = measured_in(planned), measured_in(quiet)
    faster = relative_speed(core_speed_of(runs), core_speed_of(usual))
    times = faster.times if faster else 1.0
    print(f"  cores {times:.2f} times as fast as when quiet; {sum(len(run.estimate.probes) for run in runs)} probes")
    held = []
    for run in runs:
        if not run.estimate.rate:
            print(f"  {run.budget.slots} slots: no capacity")
            continue
        there = [one.estimate.rate for one in usual if one.budget == run.budget and one.estimate.rate]
        low, high = (run.interval.low, run.interval.high) if run.interval else (run.estimate.low, run.estimate.high)
        ratios = [run.estimate.rate / rate / times for rate in there]
        held += [low <= rate * times <= high for rate in there]
        shown, cpu = (
            ", ".join(f"{ratio:.2f}" for ratio in each) or "n/a"
            for each in (ratios, [by_cpu(run) / rate / times for rate in there])
        )
        print(
            f"  {run.budget.slots} slots: {run.estimate.rate:,.0f}, over quiet {shown}, by CPU seconds {cpu}; "
            f"another deployment {low:,.0f} to {high:,.0f} (x{high / low:.2f}), {len(run.estimate.probes)} probes, "
            f"{run.estimate.seconds:.0f} s"
        )
    if held:
        print(f"  intervals that hold the quiet ones: {sum(held)} of {len(held)}")
    for plan, before in zip(planned.plans, quiet.plans, strict=False):
        if plan.rate == before.rate:
            off = plan.budget.slots / before.budget.slots
            far = " FAR" if max(off, 1 / off) > FAR and abs(plan.budget.slots - before.budget.slots) > 1 else ""
            slots = f"{plan.budget.slots} slots, quiet {before.budget.slots}{far}"
            print(f"  {plan.rate:,.0f}: {slots}; x{plan.high / plan.low:.2f}")
    for at, text in answers:
        print(f"  {at:4d} s {text[:110]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--study", type=Path, default=Path("data/q5.yaml"))
    parser.add_argument("--verify", type=float)
    parser.add_argument("--measure", type=int)
    options = parser.parse_args()
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"the kind is {unknown.pop()!r}; it must be one of {', '.join(KINDS)}")
    quiet_folder = KEPT / "quiet"
    if "quiet" not in options.kinds and not plan_of(quiet_folder, options.study).exists():
        parser.error("the quiet plan is what the others are compared with: run the kind quiet first")
    kinds = sorted(options.kinds, key=KINDS.index)
    done = {kind: carried_out(kind, options.study, options.verify, options.measure) for kind in kinds}
    quiet = read_planned(plan_of(quiet_folder, options.study))
    for kind, (folder, found) in done.items():
        compare(kind, folder, found, options.study, quiet)


if __name__ == "__main__":
    main()
