"""``workbench measure`` and ``workbench verify``: one query on one budget."""

import argparse
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from workbench import defaults, units
from workbench.answers.answer import Fact, Unit, fields
from workbench.checks import within
from workbench.cli import look
from workbench.cli.console import BAD_INPUT, DONE, NOT_SUSTAINED, SOURCE_BOUND, check_files
from workbench.cli.options import flag
from workbench.cli.progress import progress
from workbench.cli.reporting import write_report
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
from workbench.records import Probe
from workbench.study import (
    Verified,
    cluster_changes,
    cluster_of,
    find_query,
    fitting,
    plan_to_verify,
    query_of,
    read_planned,
    read_study,
    spark_here,
    testbed_of,
    verify_plan,
)
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import quota_permitted, usable_cores
from workbench.workload import Query

_PROBES = 7  # undisturbed ones: more are seldom needed for the default tolerance
_PUBLISHED_TOLERANCE = 0.01  # StreamBed section IV: "the next value [of the target] is within 1% of the previous"

_VERDICTS: Mapping[str, int] = {"sustained": DONE, "overloaded": NOT_SUSTAINED, "source-bound": SOURCE_BOUND}
_OF_A_STUDY, _STUDIES = ("dataset", "event_time", "source", "output_mode"), {".yaml", ".yml"}
_OF_A_PLAN = ("slots", "slot_cpus", "memory_mb", "interval_s", *_OF_A_STUDY, "percent")


def run_measure(options: argparse.Namespace) -> int:
    """Bracket the maximum sustainable throughput."""
    check_files((options.report, options.output, options.journal), (options.dataset,))
    journal = Journal(options.journal)
    journal.check()
    query, budget, testbed = _asked(options)
    estimator = _estimator(options, budget.interval_s)
    name = "".join(letter if letter.isalnum() else "-" for letter in query.name)
    output = Path(options.output or f".workbench/{name}.json")
    with progress(runs=(1, 1)) as say:
        live = replace(testbed, progress=say)
        asked = Configuration(query, budget)
        events = measure(asked, live, estimator, journal, costs=not options.no_costs, output=output)
        measurement = result_of(events, say.show_event)
    from workbench.answers.measured import answer  # noqa: PLC0415 - it draws, and plotly takes as long as all else

    estimate, answered = measurement.estimate, answer(measurement)
    if options.json:
        look.document(answered.document() | {"measurement": str(output), "report": options.report})
    else:
        look.show(answered)
        look.whole(f"measurement: {output}")
    made = {"measurement": str(output.resolve())}
    complete = options.report is None or write_report("measure", made, options.report, quiet=options.json)
    if estimate.rate is None or not complete:
        return NOT_SUSTAINED
    return SOURCE_BOUND if estimate.limit == "source" else DONE


def run_verify(options: argparse.Namespace) -> int:
    """Run the query at each rate, or a plan's deployment at its rate and above its interval."""
    if options.query.endswith(".json"):
        return _verify_plan(options)
    if options.rate is None:
        raise WorkbenchError("verify needs a rate to run the query at. Give one, in records/s.", settings=("rate",))
    query, budget, testbed = _asked(options)
    for name, value in (("--rate", options.rate), *(("--percent", percent) for percent in options.percent)):
        within(name, value, 0, math.inf)
    rates = [options.rate * percent / 100 for percent in options.percent]
    with progress() as say:
        live = replace(testbed, progress=say, asked_rate=max(rates))
        made = result_of(verify(query, budget, live, CapacityEstimator(), rates), say.show_event)
    sustained = [probe.rate for probe in made if probe.answered("sustained")]
    highest = units.rate(max(sustained)) if sustained else "none of these rates"
    _print_probes(f"{query.name} sustained {highest}.", made, options.percent, as_json=options.json)
    return _code(min(made, key=lambda probe: probe.rate))


def _verify_plan(options: argparse.Namespace) -> int:
    _refuse_others(options, _OF_A_PLAN)
    planned = read_planned(Path(options.query))
    cluster = replace(planned.study, **cluster_changes(vars(options))).cluster
    testbed = replace(spark_here(), cluster=cluster, settings=planned.study.job_settings)
    plan = plan_to_verify(planned, testbed, options.rate)
    if plan.executor_slots is not None and cluster is not None and cluster.executor_slots != plan.executor_slots:
        raise WorkbenchError(
            f"--executor-slots is {cluster.executor_slots}, but {options.query} plans executors of "
            f"{plan.executor_slots}. Leave --executor-slots out."
        )
    with progress() as say:
        say(f"{plan.query} on {units.some(plan.budget.slots, 'slot')}, planned for {units.rate(plan.rate)}")
        live = replace(testbed, progress=say)
        found = result_of(verify_plan(planned, plan, live, CapacityEstimator()), say.show_event)
    said = (
        f"The plan for {units.rate(plan.rate)} {_outcome(found)}: {units.some(plan.budget.slots, 'slot')} of "
        f"{plan.budget.profile.cpus:g} core, capacity {units.rate(plan.expected_rate)} (90 %: "
        f"{units.scaled(plan.low, '')} to {units.scaled(plan.high, '')})."
    )
    _print_probes(said, (found.at_rate, found.above), (100.0, 100 * found.above.rate / plan.rate), as_json=options.json)
    if found.cores is not None and not options.json:
        look.line(f"The cores here are {found.cores.words('those that were measured')}.")
    return _code(found.at_rate)


def _code(probe: Probe) -> int:
    return _VERDICTS.get(probe.judgement.verdict if probe.judgement else "", BAD_INPUT)


def _outcome(found: Verified) -> str:
    if found.carries is None:
        return "could not be tested"
    if not found.carries:
        return "fails"
    if found.bounded is None:
        return "carries its rate; above its interval it could not be tested"
    return "holds" if found.bounded else "carries more than its interval says"


def _refuse_others(options: argparse.Namespace, names: Iterable[str]) -> None:
    """Refuse options that a plan or a study sets itself."""
    for name in names:
        if getattr(options, name) != options.usual[name]:
            raise WorkbenchError(f"{flag(name)} is given, but {options.query} sets it. Leave {flag(name)} out.")


def _print_probes(said: str, made: Sequence[Probe], percents: Sequence[float], *, as_json: bool) -> None:
    rows = list(map(_row, made, percents))
    if as_json:
        print(json.dumps(list(map(fields, rows))))
    else:
        look.answer(said)
        look.put(look.rows(rows))


def _row(probe: Probe, percent: float) -> tuple[Fact, ...]:
    judged = probe.judgement
    return (
        Fact(percent, "percent", "Share", Unit(lambda value: units.share(value / 100))),
        Fact(probe.rate, "rate", "Records/s", Unit(lambda value: units.scaled(value, ""))),
        Fact(judged and judged.verdict, "verdict"),
        Fact("-" if judged is None else judged.verdict, name="Verdict"),
        Fact(judged and judged.consumed_share, "consumed_share"),
        Fact(judged and judged.reason, "reason", "Reason"),
    )


def _estimator(options: argparse.Namespace, interval_s: float) -> CapacityEstimator:
    as_published = options.schedule.startswith("streambed")
    usual = _PUBLISHED_TOLERANCE if as_published else defaults.TOLERANCE
    estimator = CapacityEstimator(
        tolerance=usual if options.tolerance is None else options.tolerance,
        schedule="streambed" if as_published else "adaptive",
        max_rate=options.max_rate,
        published=STATEFUL_QUERIES if options.schedule == "streambed-stateful" else SIMPLE_QUERIES,
    )
    minutes = options.minutes
    if minutes is None:
        return estimator if as_published else replace(estimator, most_s=_PROBES * estimator.probe_s(interval_s))
    if as_published:
        raise WorkbenchError(
            f"--minutes is {minutes:g}, but the schedule {options.schedule} has the published times. Leave out "
            "--minutes, or choose the schedule adaptive."
        )
    return replace(estimator, most_s=60 * within("--minutes", minutes, 0.0, math.inf))


def _asked(options: argparse.Namespace) -> tuple[Query, Budget, SparkTestbed]:
    """Build what the options request, and refuse what is unavailable before anything starts."""
    if Path(options.query).suffix in _STUDIES:
        return _of_study(options)
    with progress() as say:
        rows = (options.dataset, options.event_time, options.output_mode, options.source)
        query = find_query(options.query, *rows, progress=say)
    cluster = cluster_of(vars(options))
    fractions = cluster is None and quota_permitted()
    cpus, slots = options.slot_cpus, options.slots
    if slots is None:
        slots = defaults.SLOTS if fractions or cluster else max(1, int(usable_cores()) - 1)
    usual = defaults.SLOT_CPUS if fractions else 1.0
    profile = SlotProfile(usual if cpus is None else cpus, options.memory_mb)
    budget = Budget(slots, profile, options.interval_s)
    testbed = SparkTestbed(cluster=cluster, slot_cpus="auto" if fractions else "cores")
    testbed.check(budget)
    return query, budget, testbed


def _of_study(options: argparse.Namespace) -> tuple[Query, Budget, SparkTestbed]:
    """Build what a study describes, on the budget of the options, or else its largest."""
    _refuse_others(options, _OF_A_STUDY)
    cpus = {} if options.slot_cpus is None else {"slot_cpus": options.slot_cpus}
    study = read_study(options.query, cluster_changes(vars(options)) | cpus)
    testbed = testbed_of(study, lambda _: None)
    if study.log is not None:
        raise WorkbenchError(f"{options.query} is a study of the log {study.log}: nothing is run. Plan it instead.")
    if not isinstance(testbed, SparkTestbed):
        raise WorkbenchError(
            f"{options.query} is a study on the {study.testbed} testbed, not on Spark. Plan it instead."
        )
    study, smaller = fitting(study, testbed)
    with progress() as say:
        if smaller and not options.slots:
            say.keep(smaller)
        query = query_of(study, partial(find_query, progress=say))
    memory_mb = study.memory_mb[-1] if options.memory_mb == defaults.MEMORY_MB else options.memory_mb
    interval_s = study.interval_s if options.interval_s == defaults.INTERVAL_S else options.interval_s
    budget = Budget(options.slots or study.slots[-1], SlotProfile(study.slot_cpus, memory_mb), interval_s)
    testbed.check(budget)
    return query, budget, testbed
