"""The command line: ``workbench doctor``, ``measure``, ``verify``, ``plan``, ``replay`` and ``report``.

Exit codes: 0 done (verify: sustained), 1 not sustained, no sustainable rate found or a partial report, 2 bad input
or an unfit machine, 3 the source was the limit, 70 a defect of the workbench, 130 interrupted.
Progress goes to standard error, and only to a terminal; results go to standard output.
"""

import argparse
import json
import math
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

from workbench import __version__
from workbench.capacity import (
    SIMPLE_QUERIES,
    STATEFUL_QUERIES,
    CapacityEstimator,
    Configuration,
    Measurement,
    Probe,
    measure,
    verify,
)
from workbench.capacity.measurement import write_whole
from workbench.dataflow import Budget, SlotProfile
from workbench.doctor import examine, quota_permitted
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.report import render
from workbench.scaling import replay
from workbench.simulation import PRESETS, RateTrace, preset
from workbench.study.catalogue import find_query
from workbench.study.planning import DryRun, dry_run, run_study, write_planned
from workbench.study.scaling import POLICIES, initial_tasks, timelines_csv
from workbench.study.spec import read_study
from workbench.testbed.spark import SparkTestbed
from workbench.testbed.spark.machine import usable_cores
from workbench.views import units
from workbench.workload.query import Query

DONE, NOT_SUSTAINED, BAD_INPUT, SOURCE_BOUND, DEFECT, INTERRUPTED = 0, 1, 2, 3, 70, 130
_DEFAULT_FRACTION = 0.4
_DEFAULT_SLOTS = 2
_DEFAULT_MEMORY_MB = 1024


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup stays in force
        signal.signal(signal.SIGHUP, _interrupt)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except WorkbenchError as error:
        print(f"workbench: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("workbench: interrupted; measure goes on where it was when you run it again.", file=sys.stderr)
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - a defect must not look like "not sustained" to a script
        traceback.print_exc()
        print("workbench: this is a defect of the workbench; please report it.", file=sys.stderr)
        return DEFECT


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _doctor(options: argparse.Namespace) -> int:
    findings = examine()
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        for finding in findings:
            print(f"{'ok  ' if finding.fit else 'LACK'}  {finding.thing:9} {finding.found}")
            if not finding.fit:
                print(f"      {'':9} mend: {finding.mend}{'' if finding.needed else ' (not needed to measure)'}")
    return DONE if all(finding.fit or not finding.needed for finding in findings) else BAD_INPUT


def _measure(options: argparse.Namespace) -> int:
    for path in (options.report, options.output, options.journal):
        _check_file(path)
    query, budget, testbed = _asked(options)
    published = STATEFUL_QUERIES if options.schedule == "streambed-stateful" else SIMPLE_QUERIES
    estimator = CapacityEstimator(
        tolerance=options.tolerance,
        schedule="streambed" if options.schedule.startswith("streambed") else "adaptive",
        max_rate=options.max_rate,
        published=published,
    )
    output = Path(options.output or f".workbench/{_file_name(query.name)}.json")
    measurement = measure(
        Configuration(query, budget),
        testbed,
        estimator,
        Journal(options.journal),
        costs=options.costs,
        progress=_progress(),
        output=output,
    )
    complete = True
    if options.report:
        report = render("measure", {"measurement": str(output.resolve())}, options.report)
        complete = report.complete
    estimate = measurement.estimate
    if options.json:
        print(json.dumps(_summary(measurement, output, options.report), indent=1))
    else:
        print(_sentence(measurement))
        print(f"measurement: {output}")
        if options.report:
            print(f"report: {Path(options.report).resolve()}")
    if estimate.rate is None or not complete:
        return NOT_SUSTAINED
    return SOURCE_BOUND if estimate.limit == "source" else DONE


def _verify(options: argparse.Namespace) -> int:
    query, budget, testbed = _asked(options)
    for name, value in (("--rate", options.rate), *(("--percent", percent) for percent in options.percent)):
        if not (math.isfinite(value) and value > 0):
            raise WorkbenchError(f"{name} is {value:g}; it must be a finite number above 0.")
    rates = [options.rate * percent / 100 for percent in options.percent]
    probes = verify(query, budget, testbed, CapacityEstimator(), rates, progress=_progress())
    if options.json:
        print(json.dumps([_verdict(probe, percent) for probe, percent in zip(probes, options.percent, strict=True)]))
    else:
        for probe, percent in zip(probes, options.percent, strict=True):
            verdict = _verdict(probe, percent)
            print(f"{percent:g} % = {units.rate(probe.rate)}: {verdict['verdict']}. {verdict['reason']}")
    lowest = min(probes, key=lambda probe: probe.rate)
    codes = {"sustained": DONE, "overloaded": NOT_SUSTAINED, "source-bound": SOURCE_BOUND}
    return codes.get(lowest.judgement.verdict if lowest.judgement else "", BAD_INPUT)


def _plan(options: argparse.Namespace) -> int:
    for path in (options.report, options.output, options.journal):
        _check_file(path)
    study = read_study(options.study)
    if options.dry_run:
        return _show_dry_run(dry_run(study), as_json=options.json)
    planned = run_study(study, Journal(options.journal), progress=_progress())
    output = Path(options.output or f".workbench/{Path(options.study).stem}-plan.json")
    write_planned(planned, output)
    complete = True
    if options.report:
        complete = render("plan", {"planned": str(output.resolve())}, options.report).complete
    if options.json:
        print(output.read_text(encoding="utf-8"))
    else:
        for plan in planned.plans:
            print(plan.sentence())
            for card in plan.cards:
                print(f"  note: {card.finding} {card.advice}")
        print(f"plans: {output}")
        if options.report:
            print(f"report: {Path(options.report).resolve()}")
    for rate, reason in planned.refused:
        print(f"workbench: no plan for {units.rate(rate)}: {reason}", file=sys.stderr)
    return DONE if complete and planned.plans and not planned.refused else NOT_SUSTAINED


def _show_dry_run(would: DryRun, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(asdict(would), indent=1))
        return DONE
    for budget in would.first:
        print(f"measure {budget.slots} slots of {budget.profile.memory_mb} MB")
    print(f"then up to {would.runs[1]} runs in all, {would.runs[0]} at least")
    print(f"about {would.seconds[0] / 60:.0f} to {would.seconds[1] / 60:.0f} minutes")
    return DONE


def _replay(options: argparse.Namespace) -> int:
    _check_file(options.output)
    model = preset(options.query.removeprefix("nexmark:"))
    trace = RateTrace.from_csv(options.rates, options.time_column, options.rate_column)
    unknown = [name for name in options.policy if name not in POLICIES]
    if unknown:
        raise WorkbenchError(f"There is no policy {unknown[0]!r}; use one of {', '.join(POLICIES)}.")
    tasks = initial_tasks(model, options.slots, options.memory_mb)
    lines = {
        name: replay(trace, model, POLICIES[name], tasks, memory_mb=options.memory_mb, restart_s=options.restart)
        for name in options.policy
    }
    rows = {name: line.summary() for name, line in lines.items()}
    if options.output:
        write_whole(options.output, timelines_csv(lines))
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        for name, row in rows.items():
            print(
                f"{name:8} at target {units.share(row['at_target']):>7}  p99 latency "
                f"{units.seconds(row['latency_p99_s']):>10}  {row['core_hours']:,.1f} core-hours  "
                f"{row['reconfigurations']:.0f} reconfigurations"
            )
    return DONE


def _report(options: argparse.Namespace) -> int:
    Measurement.from_json(options.measurement)  # refuses what is no measurement before a report is begun
    report = render("measure", {"measurement": str(Path(options.measurement).resolve())}, options.output)
    print(f"report: {report.path}")
    if not report.complete:
        print(f"workbench: the report is partial: {report.error}", file=sys.stderr)
    return DONE if report.complete else NOT_SUSTAINED


def _asked(options: argparse.Namespace) -> tuple[Query, Budget, SparkTestbed]:
    """Build what the options ask for, refusing what cannot be had before anything starts."""
    query = find_query(options.query, options.dataset, options.event_time, options.output_mode)
    fractions = quota_permitted()
    cpus, slots = options.slot_cpus, options.slots
    if cpus is None:
        cpus = _DEFAULT_FRACTION if fractions else 1.0
    if slots is None:
        slots = _DEFAULT_SLOTS if fractions else max(1, int(usable_cores()) - 1)
    budget = Budget(slots, SlotProfile(cpus, options.memory_mb), options.interval)
    testbed = SparkTestbed(slot_cpus="auto" if fractions else "cores", progress=_progress())
    testbed.check(budget)
    return query, budget, testbed


def _check_file(path: str | None) -> None:
    """Refuse a place that cannot be written to, before a long run."""
    if path is None:
        return
    if Path(path).is_dir():
        raise WorkbenchError(f"{path!r} is a folder; give the name of a file in it.")
    parent = next((place for place in Path(path).absolute().parents if place.exists()), Path())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise WorkbenchError(
            f"{path!r} cannot be written: {str(parent)!r} is no folder that may be written to. Choose another place."
        )


def _progress() -> Callable[[str], None]:
    if not sys.stderr.isatty():
        return lambda _: None
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begun:5.0f} s] {text}", file=sys.stderr, flush=True)

    return say


def _sentence(measurement: Measurement) -> str:
    estimate, budget = measurement.estimate, measurement.budget
    where = (
        f"on {budget.slots} slots of {budget.profile.cpus:g} core and {budget.profile.memory_mb} MB "
        f"at a {budget.interval_s:g} s interval"
    )
    if estimate.rate is None:
        failed = len(estimate.probes) - 1
        return f"{measurement.query} sustains no rate that was tried {where}: all {failed} probes failed."
    upper = {
        "query": f"{units.rate(estimate.high)} was not sustained",
        "source": "the source cannot feed more: this is source-bound, the query may sustain more",
        "none": "nothing higher was tried",
    }[estimate.limit]
    return f"{measurement.query} sustains {units.rate(estimate.low)} {where}; {upper}."


def _summary(measurement: Measurement, output: Path, report: str | None) -> dict[str, Any]:
    estimate = measurement.estimate
    bounded = estimate.limit == "query"
    return {
        "query": measurement.query,
        "rate": estimate.rate,
        "low": estimate.low,
        "high": estimate.high if bounded else None,
        "limit": estimate.limit,
        "probes": len(estimate.probes) - 1,
        "seconds": round(estimate.seconds, 1),
        "steady": estimate.steady,
        "disturbed": estimate.disturbed,
        "exhausted": estimate.exhausted,
        "slots": measurement.budget.slots,
        "slot_cpus": measurement.budget.profile.cpus,
        "memory_mb": measurement.budget.profile.memory_mb,
        "interval_s": measurement.budget.interval_s,
        "source_rate_limit": measurement.source.rate_limit if measurement.source else None,
        "measurement": str(output),
        "report": report,
    }


def _verdict(probe: Probe, percent: float) -> dict[str, Any]:
    judgement = probe.judgement
    return {
        "percent": percent,
        "rate": probe.rate,
        "verdict": judgement.verdict if judgement else None,
        "consumed_share": judgement.consumed_share if judgement else None,
        "reason": judgement.reason if judgement else None,
    }


def _file_name(query: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in query)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="workbench",
        description="How many slots of which memory does my streaming query need? Measure it, model it, plan it.",
        epilog="Exit codes: 0 done (verify: sustained), 1 not sustained, 2 bad input, 3 source-bound, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    doctor = commands.add_parser("doctor", help="what this machine can do, and the mend for each lack")
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.set_defaults(command=_doctor)

    deployed = _deployment_options()
    measured = commands.add_parser(
        "measure", parents=[deployed], help="find the maximum sustainable throughput of a query on a budget"
    )
    measured.add_argument("--tolerance", type=float, default=0.04, help="relative width of the bracket (0.04)")
    measured.add_argument(
        "--schedule",
        choices=["adaptive", "streambed", "streambed-stateful"],
        default="adaptive",
        help="how rates are tried: adaptive, or StreamBed's published times for simple or stateful queries",
    )
    measured.add_argument("--max-rate", type=float, metavar="R", help="highest rate to try, records/s")
    measured.add_argument(
        "--no-costs", dest="costs", action="store_false", help="leave out the runs that tell fixed from record costs"
    )
    measured.add_argument(
        "--journal", default=".workbench/journal.jsonl", help="where every probe is recorded (%(default)s)"
    )
    measured.add_argument("--output", metavar="FILE", help="the measurement as JSON (.workbench/QUERY.json)")
    measured.add_argument("--report", metavar="FILE", help="also write one offline HTML file")
    measured.set_defaults(command=_measure)

    verified = commands.add_parser("verify", parents=[deployed], help="run a query at a rate: sustained or not")
    verified.add_argument("--rate", type=float, required=True, help="records/s")
    verified.add_argument(
        "--percent", type=float, nargs="+", default=[100, 120, 150], help="shares of the rate to run (100 120 150)"
    )
    verified.set_defaults(command=_verify)

    planned = commands.add_parser("plan", help="how many slots of which memory for which rate: measure, model, plan")
    planned.add_argument("study", metavar="STUDY", help="YAML file: query, targets, slots, memory_mb and more")
    planned.add_argument("--dry-run", action="store_true", help="say what would be measured and how long it takes")
    planned.add_argument("--json", action="store_true", help="print JSON")
    planned.add_argument(
        "--journal", default=".workbench/journal.jsonl", help="where every run is recorded (%(default)s)"
    )
    planned.add_argument("--output", metavar="FILE", help="the plans as JSON (.workbench/STUDY-plan.json)")
    planned.add_argument("--report", metavar="FILE", help="also write one offline HTML file")
    planned.set_defaults(command=_plan)

    replayed = commands.add_parser("replay", help="what autoscaling policies would do on a load that moves, simulated")
    replayed.add_argument("query", metavar="QUERY", help=f"a simulated query: {', '.join(PRESETS)}")
    replayed.add_argument("rates", metavar="CSV", help="the load: columns of time (seconds) and rate (records/s)")
    replayed.add_argument("--time-column", default="time_s", metavar="NAME", help="column of the time (%(default)s)")
    replayed.add_argument(
        "--rate-column", default="rate_per_s", metavar="NAME", help="column of the rate (%(default)s)"
    )
    replayed.add_argument("--slots", type=int, required=True, help="slots at the beginning, dealt out by BIDS2")
    replayed.add_argument("--memory-mb", type=float, default=2048.0, help="memory of one slot, MiB (2048)")
    replayed.add_argument(
        "--policy", nargs="+", default=list(POLICIES), metavar="NAME", help=f"{', '.join(POLICIES)} (all of them)"
    )
    replayed.add_argument("--restart", type=float, default=10.0, help="downtime of a reconfiguration, seconds (10)")
    replayed.add_argument("--json", action="store_true", help="print JSON")
    replayed.add_argument("--output", metavar="FILE", help="every step of every policy as CSV")
    replayed.set_defaults(command=_replay)

    reported = commands.add_parser("report", help="make the HTML report of a measurement again")
    reported.add_argument("measurement", help="JSON file of a measurement")
    reported.add_argument("output", help="the HTML file to write")
    reported.set_defaults(command=_report)
    return parser


def _deployment_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("query", metavar="QUERY", help="nexmark:q5, or module:function of your own")
    options.add_argument("--slots", type=int, help="tasks that run at once (2; whole cores: all but one)")
    options.add_argument("--slot-cpus", type=float, metavar="CORES", help="cores of one slot (0.4; without quotas 1)")
    options.add_argument("--memory-mb", type=int, default=_DEFAULT_MEMORY_MB, help="memory of one slot, MiB (1024)")
    options.add_argument("--interval", type=float, default=2.0, help="trigger interval, seconds (2)")
    options.add_argument("--dataset", metavar="PATH", help="Parquet, CSV or JSON file or folder that feeds the query")
    options.add_argument("--event-time", metavar="COLUMN", help="its event-time column, replaced on replay")
    options.add_argument("--output-mode", choices=["append", "update", "complete"], help="Spark's output mode")
    options.add_argument("--json", action="store_true", help="print JSON")
    return options


if __name__ == "__main__":
    sys.exit(main())
