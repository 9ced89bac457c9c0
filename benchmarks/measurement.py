"""What the measurements are worth on this machine: repeats, schedules, intervals, costs.

    python benchmarks/measurement.py repeats nexmark:q5 6
    python benchmarks/measurement.py schedules nexmark:q1 3
    python benchmarks/measurement.py intervals nexmark:q5
    python benchmarks/measurement.py costs .workbench/nexmark-q5.json

Prints figures and ratios, asserts nothing. Each run is a fresh process; leave the machine alone meanwhile. Its
measurements stay in .workbench/benchmark, the latest of each query and schedule.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from workbench.capacity import Measurement, fit_costs
from workbench.views import units


def measure(label, query, *options):
    """One measurement in a fresh process, printed: its JSON summary."""
    kept = Path(".workbench/benchmark")
    kept.mkdir(parents=True, exist_ok=True)
    output = kept / f"{label.replace(' ', '-').replace(':', '-')}.json"
    command = [sys.executable, "-m", "workbench.cli", "measure", query, "--json", "--no-costs"]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*command, "--journal", f"{folder}/journal.jsonl", "--output", str(output), *options],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    result = json.loads(done.stdout)
    show(label, result, time.monotonic() - begun)
    return result


def show(label, result, wall_s):
    high = units.rate(result["high"]) if result["high"] else "-"
    print(
        f"{label:24} low {units.rate(result['low']):>18} high {high:>18} probes {result['probes']:2} "
        f"estimate {result['seconds']:6.1f} s wall {wall_s:6.1f} s disturbed {result['disturbed']}",
        flush=True,
    )


def repeats(query, count):
    """Spread of the MST over fresh processes."""
    results = [measure(f"{query} run {number + 1}", query) for number in range(int(count))]
    rates = [result["rate"] for result in results]
    held = sum(
        all(result["interval"][0] <= rate <= result["interval"][1] for rate in rates)
        for result in results
        if result["interval"]
    )
    print(
        f"(max - min) / max = {(max(rates) - min(rates)) / max(rates):.3f}; "
        f"{held} of {len(results)} reported intervals contain all {len(rates)} rates"
    )


def schedules(query, count):
    """The adaptive schedule beside StreamBed's on the same query and machine."""
    results = {"adaptive": [], "streambed": []}
    for number in range(int(count)):
        for schedule, taken in results.items():
            taken.append(measure(f"{query} {schedule} {number + 1}", query, "--schedule", schedule))
    seconds = {schedule: sum(one["seconds"] for one in taken) for schedule, taken in results.items()}
    spans = [one["interval"] for taken in results.values() for one in taken]
    overlap = min(high for _, high in spans) >= max(low for low, _ in spans)
    print(
        f"adaptive / streambed = {seconds['adaptive'] / seconds['streambed']:.3f} of the estimation time; "
        f"widest adaptive bracket {max(one['high'] / one['low'] - 1 for one in results['adaptive']):.3f}; "
        f"the intervals {'overlap' if overlap else 'do not all overlap'}"
    )


def intervals(query):
    """The MST against the trigger interval."""
    for interval in ("1", "2", "5"):
        measure(f"{query} at {interval} s", query, "--interval", interval)


def costs(path):
    """Seconds = a + b x records per task, from the lower rates alone and from all rates."""
    measurement = Measurement.from_json(Path(path))
    lower = [sample for probe in measurement.load_curve for sample in probe.observation.samples]
    probes = [sample for probe in measurement.estimate.probes for sample in probe.observation.samples]
    for low, full in zip(fit_costs(lower), fit_costs([*lower, *probes]), strict=True):
        if not (low.per_record_s and full.per_record_s):
            print(f"{low.operator:24} too few different sizes")
            continue
        print(
            f"{low.operator:24} up to half the MST: a {low.fixed_s:.4f} s, 1/b {1 / low.per_record_s:,.0f} records/s; "
            f"up to the MST: a {full.fixed_s:.4f} s, 1/b {1 / full.per_record_s:,.0f} records/s; "
            f"ratio {low.per_record_s / full.per_record_s:.3f}"
        )


if __name__ == "__main__":
    {"repeats": repeats, "schedules": schedules, "intervals": intervals, "costs": costs}[sys.argv[1]](*sys.argv[2:])
