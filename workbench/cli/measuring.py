"""``workbench measure`` and ``workbench verify``: one query on one budget."""

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench import defaults, report
from workbench.cli.console import (
    BAD_INPUT,
    DONE,
    JOURNAL,
    KEPT,
    NOT_SUSTAINED,
    SOURCE_BOUND,
    check_file,
    tell_partial,
)
from workbench.cli.progress import progress
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import (
    SIMPLE_QUERIES,
    STATEFUL_QUERIES,
    CapacityEstimator,
    Configuration,
    measure,
    result_of,
    verify,
)
from workbench.records import Measurement, Probe
from workbench.study import find_query
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import quota_permitted, usable_cores
from workbench.views import findings, units
from workbench.workload import Query

_PUBLISHED_TOLERANCE = 0.01  # StreamBed section IV: "the next value [of the target] is within 1% of the previous"


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands to the parser."""
    deployed = _deployment_options()
    measured = commands.add_parser(
        "measure",
        parents=[deployed],
        description="Deploy a query on this machine and try rates until the highest that it sustains is bracketed. "
        "Every probe is recorded in the journal: a measurement that was interrupted goes on from its last.",
    )
    measured.add_argument(
        "--tolerance", type=float, help="relative width of the bracket (0.04; StreamBed's schedules: 0.01)"
    )
    measured.add_argument(
        "--schedule",
        choices=["adaptive", "streambed", "streambed-stateful"],
        default="adaptive",
        help="how rates are tried: adaptive, or StreamBed's published times for simple or stateful queries",
    )
    measured.add_argument("--max-rate", type=float, metavar="R", help="highest rate to try, records/s")
    measured.add_argument(
        "--no-costs", dest="costs", action="store_false", help="leave out the runs for fixed and per-record costs"
    )
    measured.add_argument("--journal", default=JOURNAL, help="where every probe is recorded (%(default)s)")
    measured.add_argument("--output", metavar="FILE", help="the measurement as JSON (.workbench/QUERY.json)")
    measured.add_argument("--report", metavar="FILE", help="also write one offline HTML file")
    measured.set_defaults(command=_measure, kept=KEPT)

    verified = commands.add_parser(
        "verify",
        parents=[deployed],
        description="Deploy a query on this machine and run it at a rate, or at shares of it. The exit code says "
        "whether the lowest was sustained.",
    )
    verified.add_argument("--rate", type=float, required=True, help="records/s")
    verified.add_argument(
        "--percent", type=float, nargs="+", default=[100, 120, 150], help="shares of the rate to run (100 120 150)"
    )
    verified.set_defaults(command=_verify)


def _measure(options: argparse.Namespace) -> int:
    for path in (options.report, options.output, options.journal):
        check_file(path)
    journal = Journal(options.journal)
    journal.check()
    query, budget, testbed = _asked(options)
    estimator = _estimator(options)
    output = Path(options.output or f".workbench/{_file_name(query.name)}.json")
    with progress() as say:
        live = replace(testbed, progress=say)
        events = measure(Configuration(query, budget), live, estimator, journal, costs=options.costs, output=output)
        measurement = result_of(events, say.tell)
    complete = True
    if options.report:
        made = report.render("measure", {"measurement": str(output.resolve())}, options.report)
        tell_partial(made.error)
        complete = made.complete
    estimate = measurement.estimate
    if options.json:
        print(json.dumps(_summary(measurement, output, options.report), indent=1))
    else:
        print(_sentence(measurement))
        if measurement.unbounded_state and estimate.rate is not None:
            print(findings.growing_state(estimate))
        if measurement.interval is not None:
            print(findings.interval(measurement.interval))
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
    with progress() as say:
        live = replace(testbed, progress=say)
        probes = result_of(verify(query, budget, live, CapacityEstimator(), rates), say.tell)
    if options.json:
        print(json.dumps([_verdict(probe, percent) for probe, percent in zip(probes, options.percent, strict=True)]))
    else:
        for probe, percent in zip(probes, options.percent, strict=True):
            verdict = _verdict(probe, percent)
            print(f"{percent:g} % = {units.rate(probe.rate)}: {verdict['verdict']}. {verdict['reason']}")
    lowest = min(probes, key=lambda probe: probe.rate)
    codes = {"sustained": DONE, "overloaded": NOT_SUSTAINED, "source-bound": SOURCE_BOUND}
    return codes.get(lowest.judgement.verdict if lowest.judgement else "", BAD_INPUT)


def _estimator(options: argparse.Namespace) -> CapacityEstimator:
    as_published = options.schedule.startswith("streambed")
    tolerance = options.tolerance
    if tolerance is None:
        tolerance = _PUBLISHED_TOLERANCE if as_published else defaults.TOLERANCE
    return CapacityEstimator(
        tolerance=tolerance,
        schedule="streambed" if as_published else "adaptive",
        max_rate=options.max_rate,
        published=STATEFUL_QUERIES if options.schedule == "streambed-stateful" else SIMPLE_QUERIES,
    )


def _asked(options: argparse.Namespace) -> tuple[Query, Budget, SparkTestbed]:
    """Build what the options ask for, refusing what cannot be had before anything starts."""
    query = find_query(options.query, options.dataset, options.event_time, options.output_mode)
    fractions = quota_permitted()
    cpus, slots = options.slot_cpus, options.slots
    if cpus is None:
        cpus = defaults.SLOT_CPUS if fractions else 1.0
    if slots is None:
        slots = defaults.SLOTS if fractions else max(1, int(usable_cores()) - 1)
    budget = Budget(slots, SlotProfile(cpus, options.memory_mb), options.interval)
    testbed = SparkTestbed(slot_cpus="auto" if fractions else "cores")
    testbed.check(budget)
    return query, budget, testbed


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
        "query": f"{units.rate(estimate.low)} was sustained, {units.rate(estimate.high)} was not",
        "source": "the source cannot feed more: this is source-bound, the query may sustain more",
        "none": "nothing higher was tried",
    }[estimate.limit]
    least = "" if estimate.limit == "query" else "at least "
    return f"{measurement.query} sustains {least}{units.rate(estimate.middle)} {where}; {upper}."


def _summary(measurement: Measurement, output: Path, report: str | None) -> dict[str, Any]:
    estimate = measurement.estimate
    bounded = estimate.limit == "query"
    return {
        "query": measurement.query,
        "capacity": estimate.middle or None,
        "rate": estimate.rate,
        "low": estimate.low,
        "high": estimate.high if bounded else None,
        "interval": [measurement.interval.low, measurement.interval.high] if measurement.interval else None,
        "interval_level": measurement.interval.level if measurement.interval else None,
        "limit": estimate.limit,
        "unbounded_state": measurement.unbounded_state,
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


def _deployment_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("query", metavar="QUERY", help="nexmark:q5, or module:function of your own")
    options.add_argument("--slots", type=int, help="tasks that run at once (2; whole cores: all but one)")
    options.add_argument("--slot-cpus", type=float, metavar="CORES", help="cores of one slot (0.4; without quotas 1)")
    options.add_argument("--memory-mb", type=int, default=defaults.MEMORY_MB, help="memory of one slot, MiB (1024)")
    options.add_argument("--interval", type=float, default=defaults.INTERVAL_S, help="trigger interval, seconds (2)")
    options.add_argument("--dataset", metavar="PATH", help="Parquet, CSV or JSON file or folder that feeds the query")
    options.add_argument("--event-time", metavar="COLUMN", help="its event-time column, replaced on replay")
    options.add_argument("--output-mode", choices=["append", "update", "complete"], help="Spark's output mode")
    options.add_argument("--json", action="store_true", help="print JSON")
    return options
