"""The quality of measurements on this machine: repeats, schedules, intervals, costs.

    python benchmarks/measurement.py repeats nexmark:q5 6
    python benchmarks/measurement.py schedules nexmark:q1 3
    python benchmarks/measurement.py intervals nexmark:q5
    python benchmarks/measurement.py costs .workbench/nexmark-q5.json
    python benchmarks/measurement.py verify .workbench/benchmark/nexmark-q5-run-1.json [--dataset ...]

Prints figures and ratios, asserts nothing. Each run is a new process; run nothing else on the machine. The latest
measurements of each query and schedule stay in .workbench/benchmark.
"""

import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from workbench import units
from workbench.errors import WorkbenchError
from workbench.measuring import fit_costs
from workbench.records import Measurement

MOST_SPREAD = 0.10
VERIFIED_LOW, VERIFIED_HIGH = 0.95, 1.25


def measure(label, query, *options):
    """Print one measurement in a new process, and return its JSON summary."""
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
            check=False,  # nothing sustained and source-bound are answers
        )
    if not done.stdout:
        raise SystemExit(done.returncode)
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
    print_lines(said_of_repeats([measure(f"{query} run {number + 1}", query) for number in range(int(count))]))


def said_of_repeats(results):
    """Whether the rates scatter by at most 10 %, and which of the reported intervals contain all of them."""
    rates = [result["rate"] or 0.0 for result in results]
    spread = (max(rates) - min(rates)) / max(rates) if any(rates) else math.nan
    yield f"(max - min) / max = {spread:.3f}: at most 0.10 is {'met' if spread <= MOST_SPREAD else 'NOT met'}"
    known = [result["interval"] for result in results if result["interval"]]
    held = sum(all(low <= rate <= high for rate in rates) for low, high in known)
    yield f"{held} of {len(results)} runs report an interval that contains all {len(rates)} rates"


def schedules(query, count):
    """Compare the adaptive schedule with StreamBed's on the same query and machine."""
    results = {"adaptive": [], "streambed": []}
    for number in range(int(count)):
        for schedule, taken in results.items():
            taken.append(measure(f"{query} {schedule} {number + 1}", query, "--schedule", schedule))
    print_lines(said_of_schedules(results))


def said_of_schedules(results):
    """Share of the time, width of the adaptive brackets, whether the brackets and the intervals overlap."""
    seconds = {schedule: sum(one["seconds"] for one in taken) for schedule, taken in results.items()}
    yield f"adaptive / streambed = {seconds['adaptive'] / seconds['streambed']:.3f} of the estimation time"
    brackets = {schedule: [bracket(one) for one in taken] for schedule, taken in results.items()}
    widest = max(high / low - 1 if low else math.inf for low, high in brackets["adaptive"])
    yield f"widest adaptive bracket {widest:.3f}"
    yield said_of_overlap("brackets", [each for schedule in brackets.values() for each in schedule])
    yield said_of_overlap("intervals", [one["interval"] for taken in results.values() for one in taken])


def bracket(result):
    return result["low"], math.inf if result["high"] is None else result["high"]


def said_of_overlap(what, spans):
    """Whether all spans (low, high) have a rate in common; a run without one counts."""
    known = [span for span in spans if span]
    lacking = f" ({len(spans) - len(known)} of {len(spans)} runs have none)" if len(known) < len(spans) else ""
    if not known:
        return f"no run has {what}"
    low, high = max(low for low, _ in known), min(high for _, high in known)
    shared = f"overlap from {units.rate(low)} to {units.rate(high)}" if low <= high else "do not all overlap"
    return f"the {what} {shared}{lacking}: {', '.join(said_of_span(span) for span in known)}"


def said_of_span(span):
    low, high = span
    return f"{units.rate(low)} to {units.rate(high) if math.isfinite(high) else 'no end'}"


def intervals(query):
    """The MST against the trigger interval."""
    for interval in ("1", "2", "5"):
        measure(f"{query} at {interval} s", query, "--interval", interval)


def costs(path):
    """Seconds = a + b x records per task, from the lower rates alone and from all rates."""
    measurement = Measurement.from_json(Path(path))
    print_lines(said_of_costs(measurement))
    if not measurement.costs:
        raise SystemExit(1)


def said_of_costs(measurement):
    """Each operator's costs from the lower rates alone, and the report's, from these and the answered probes."""
    if not measurement.costs:
        yield "the measurement has no costs; measure without --no-costs"
    samples = [sample for probe in measurement.load_curve for sample in probe.observation.samples]
    lower = {cost.operator: cost for cost in fit_costs(samples)}
    for full in measurement.costs:
        low = lower.get(full.operator)
        if not (low and low.per_record_s and full.per_record_s):
            yield f"{full.operator:24} too few different sizes"
            continue
        yield (
            f"{low.operator:24} up to half the MST: a {low.fixed_s:.4f} s, 1/b {1 / low.per_record_s:,.0f} records/s; "
            f"up to the MST: a {full.fixed_s:.4f} s, 1/b {1 / full.per_record_s:,.0f} records/s; "
            f"ratio {low.per_record_s / full.per_record_s:.3f}"
        )


def verify(path, *options):
    """Whether 0.95 x low holds and 1.25 x high does not: of the bracket and of the interval, each freshly deployed."""
    measurement = Measurement.from_json(Path(path))
    for what, span in ends(measurement):
        if span is None:
            print(f"{measurement.query}: its {what} lacks an end, so there is nothing to verify", flush=True)
            continue
        command = [sys.executable, "-m", "workbench.cli", *verify_arguments(measurement, *span), *options]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if not done.stdout:
            raise SystemExit(done.returncode)
        print_lines(said_of_verdicts(measurement.query, what, json.loads(done.stdout)))


def ends(measurement):
    """Bracket and interval as (low, high); None if one lacks an end."""
    estimate, interval = measurement.estimate, measurement.interval
    yield "bracket", (estimate.low, estimate.high) if estimate.low and math.isfinite(estimate.high) else None
    yield "interval", (interval.low, interval.high) if interval and interval.low else None


def verify_arguments(measurement, low, high):
    """Arguments of ``workbench verify`` on the budget that was measured."""
    budget = measurement.budget
    deployed = {
        "--slots": budget.slots,
        "--slot-cpus": budget.profile.cpus,
        "--memory-mb": budget.profile.memory_mb,
        "--interval": budget.interval_s,
    }
    given = [str(text) for pair in deployed.items() for text in pair]
    percent = [f"{100 * VERIFIED_LOW:g}", repr(100 * VERIFIED_HIGH * high / low)]
    return ["verify", measurement.query, *given, "--rate", repr(low), "--percent", *percent, "--json"]


def said_of_verdicts(query, what, verdicts):
    """One line for each of the two verdicts."""
    names = (f"{VERIFIED_LOW} x low", f"{VERIFIED_HIGH} x high")
    for name, expected, one in zip(names, ("sustained", "overloaded"), verdicts, strict=True):
        as_promised = "as promised" if one["verdict"] == expected else f"NOT {expected}"
        yield f"{query} at {name} of its {what}, {units.rate(one['rate'])}: {one['verdict']}, {as_promised}"


def print_lines(lines):
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    commands = {each.__name__: each for each in (repeats, schedules, intervals, costs, verify)}
    try:
        commands[sys.argv[1]](*sys.argv[2:])
    except WorkbenchError as error:
        sys.exit(str(error))
