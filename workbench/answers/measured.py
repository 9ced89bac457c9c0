"""What a measurement says: the rate that a query sustains, what to know before relying on it, and what it rests on."""

import math
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from workbench import units
from workbench.advice import Advice
from workbench.answers import page
from workbench.answers.answer import COUNT, RATE, SECONDS, SHARE, Answer, Fact
from workbench.placement import measured_query
from workbench.records import Measurement, Probe, nearest_run
from workbench.study import Planned
from workbench.views import figures, findings
from workbench.views.cards import Card, Cell, facts_table, tabulate, times
from workbench.views.findings import origin, testbed_name
from workbench.views.health import Check, checks


def answer(measurement: Measurement) -> Answer:
    """Answer what rate the query of a measurement sustains."""
    estimate, ran = measurement.estimate, measurement.ran
    sections = (_batches, _operators, _dataflow, _source, _written, _inputs, _health, _circumstances)
    details = (
        findings.bracket(estimate),
        _found(measurement),
        findings.interval(measurement.interval) if ran else "",
        findings.written(measurement),
        _of_inputs(measurement),
    )
    return Answer(
        "capacity",
        f"What rate does {measurement.query} sustain?",
        f"{findings.capacity(measurement.query, measurement.budget, estimate, ran=ran)}.",
        origin(measurement.testbed_kind),
        (
            measurement.query,
            measurement.started_at[:10],
            testbed_name(measurement.testbed_kind, measurement.testbed),
            measurement.machine.processor or "",
            f"{units.count(measurement.budget.profile.memory_mb)} MB per slot",
        ),
        tuple(filter(None, details)),
        _facts(measurement),
        tuple(map(probe_row, estimate.probes)),
        "Probes of the estimate",
        listed=False,
        cautions={one.finding: Advice(one.advice) for one in checks(measurement) if one.advice and one.finding},
        draw=lambda: figures.draw_probes(figures.Probes(measurement.query, measurement.budget, estimate, ran)),
        evidence=tuple(partial(section, measurement) for section in sections),
    )


def cards(measurement: Measurement) -> list[Card]:
    """Make the cards of a measurement."""
    return page.cards(answer(measurement))


def run_cards(planned: Planned) -> list[Card]:
    """Make the cards of the fitted run nearest to the plan for the highest rate, or of the largest without a plan."""
    found = planned.exploration
    fitted = found.fitted_runs
    largest = max(reversed(fitted), key=lambda one: one.budget.slots)
    plan = max(planned.plans, key=lambda one: one.rate, default=None)
    run = nearest_run(fitted, largest.budget if plan is None else plan.budget) or largest
    row = next(row for row in found.fitted if found.runs[row] is run)
    where = f"Run {row + 1}, on {units.some(run.budget.slots, 'slot')}"
    shown = cards(run)
    return [replace(card, name=f"run-{card.name}", title=f"{where}: {card.title}", html="", of=where) for card in shown]


def _facts(measurement: Measurement) -> dict[str, Any]:
    estimate, budget, interval = measurement.estimate, measurement.budget, measurement.interval
    return {
        "query": measurement.query,
        "capacity": estimate.middle or None,
        "rate": estimate.rate,
        "low": estimate.low,
        "high": estimate.high if estimate.limit == "query" else None,
        "interval": [interval.low, interval.high] if interval else None,
        "interval_level": interval.level if interval else None,
        "limit": estimate.limit,
        "unbounded_state": measurement.unbounded_state,
        "probes": estimate.probed,
        "seconds": round(estimate.seconds, 1),
        "steady": estimate.steady,
        "disturbed": estimate.disturbed,
        "exhausted": estimate.exhausted,
        "slots": budget.slots,
        "slot_cpus": budget.profile.cpus,
        "memory_mb": budget.profile.memory_mb,
        "interval_s": budget.interval_s,
        "source_rate_limit": measurement.source_limit,
        "sink": findings.sink_of(measurement),
        "checkpoint": measurement.machine.facts.get("checkpoint"),
        "writes": None if (writes := findings.writes_of(measurement)) is None else asdict(writes),
    }


def probe_row(probe: Probe) -> tuple[Fact, ...]:
    """Make the row of a probe."""
    observation, judgement = probe.observation, probe.judgement
    whole = observation.batches[1:]
    finite, (verdict, reason) = math.isfinite(probe.rate), figures.outcome(probe)
    mean_s = math.fsum(batch.duration_s for batch in whole) / len(whole) if whole else None
    return (
        Fact(probe.number, name="Probe", unit=COUNT),
        Fact(probe.rate if finite else None, name="Commanded", unit=RATE),
        Fact(observation.consumed_rate, name="Consumed", unit=RATE),
        Fact(judgement.consumed_share if judgement else None, name="Consumed share", unit=SHARE, shown="wide"),
        Fact(verdict, name="Verdict"),
        Fact(probe.started_s, name="Began", unit=SECONDS, shown="data"),
        Fact(observation.offered_rate if finite else None, name="Offered", unit=RATE, shown="data"),
        Fact(judgement.backlog_slope if judgement else None, name="Backlog slope", unit=RATE, shown="data"),
        Fact(mean_s, name="Mean batch time", unit=SECONDS, shown="data"),
        Fact(len(whole), name="Whole batches", unit=COUNT, shown="data"),
        Fact(reason, name="Reason", shown="data"),
    )


def _found(measurement: Measurement) -> str:
    """Describe how the rate was found and, if it took any time, how long that took."""
    if measurement.testbed_kind == "recorded":
        return "Taken from the table."
    estimate = measurement.estimate
    how, time = ("Measured", "") if measurement.ran else ("Found", " of simulated time")
    return f"{how} by {units.some(estimate.probed, 'probe')} in {units.seconds(estimate.seconds)}{time}."


def _batches(measurement: Measurement) -> list[Card]:
    if not measurement.ran:
        return []
    data = figures.batch_times(measurement.query, measurement.budget, measurement.estimate, measurement.load_curve)
    title = "How does a batch's time grow with its size?"
    rows = [batch.records for batch, _ in data.batches]
    if not rows:
        return [Card("batches", title, "No probe was made after the warm-up.", kind="no-data")]
    part = (
        ""
        if data.line is None
        else f" The fixed part is {units.share(data.line.fixed / data.interval_s)} of the interval."
    )
    ends = f"{units.scaled(min(rows), '')} to {units.scaled(max(rows), 'records')}"
    finding = f"{data.finding}.{part} Seen were batches of {ends}."
    judged = (probe for probe in measurement.estimate.probes if probe.judgement is not None)
    made: list[tuple[Cell, Probe]] = [(probe.number, probe) for probe in judged]
    made += [("lower load", probe) for probe in measurement.load_curve]
    table = tabulate(
        "Whole micro-batches of the probes and of the runs at lower rates",
        [(name, batch) for name, probe in made for batch in probe.observation.batches[1:]],
        {
            "Probe": lambda one: one[0],
            "Records": lambda one: one[1].records,
            "Batch time (s)": lambda one: one[1].duration_s,
            "Backlog (records)": lambda one: one[1].backlog,
        },
    )
    return [Card("batches", title, finding, figures.draw_batch_times(data), table)]


def _operators(measurement: Measurement) -> list[Card]:
    title = "Which operator does the work?"
    observation = measurement.estimate.observation
    if observation is None or not observation.operators:
        text = "No rate was sustained, so there is no observation at a maximum. Give more slots or probe lower rates."
        text = text if observation is None else f"The testbed {measurement.testbed} reports no operators."
        return [Card("operators", title, text, kind="no-data")]
    finding, busiest = figures.operators(measurement.query, observation), figures.busiest_operator(observation)
    fitted = {cost.operator: cost for cost in measurement.costs}
    table = tabulate(
        "Operators at the maximum sustained rate",
        ((metric, fitted.get(metric.operator)) for metric in observation.operators),
        {
            "Operator": lambda one: one[0].operator,
            "Tasks": lambda one: one[0].tasks,
            "Busyness (%)": lambda one: 100 * one[0].busyness,
            "True rate (records/s per task)": lambda one: one[0].true_processing_rate,
            "In (records)": lambda one: one[0].records_in,
            "Out (records)": lambda one: one[0].records_out,
            "CPU (s)": lambda one: one[0].cpu_s,
            "Shuffle (bytes)": lambda one: one[0].shuffle_bytes,
            "State (bytes)": lambda one: one[0].state_bytes,
            "Cache hits (%)": lambda one: times(100, one[0].cache_hit_rate),
            "State read (µs)": lambda one: times(1e6, one[0].state_latency_s),
            "Key skew (ratio)": lambda one: one[0].key_skew,
            "Fixed cost a (ms per task)": lambda one: times(1e3, one[1].fixed_s if one[1] else None),
            "Cost b (µs per record)": lambda one: times(1e6, one[1].per_record_s if one[1] else None),
        },
        opened=True,
    )
    if busiest is None:
        return [Card("operators", title, f"{finding}.", table=table)]
    said = (
        f": its tasks are busy {units.share(busiest.busyness)} of the time and process "
        f"{units.rate(busiest.true_processing_rate)} each while busy"
    )
    figure = figures.draw_operators(observation, finding)
    return [Card("operators", title, f"{finding}{said}.", figure, table)]


def _dataflow(measurement: Measurement) -> list[Card]:
    observation = measurement.estimate.observation
    if observation is None or not observation.operators:
        return []  # the previous card has the reason
    measured = measured_query(measurement.query, observation.operators, observation.edges or None)
    data = figures.observed_graph(measured.dataflow, observation)
    text = ". Which operator feeds which was not observed: they are shown as a chain." if measured.guessed else "."
    return [Card("dataflow", "How do the records flow?", data.finding + text, figures.draw_dataflow_graph(data))]


def _source(measurement: Measurement) -> list[Card]:
    title, source = "What does the source cost?", measurement.source
    if not measurement.ran:
        return []
    if source is None:
        text = "The source's profile is not recorded, so its share is not known."
        return [Card("source", title, text, kind="no-data")]
    finding = (
        f"Releasing one record takes the source {units.seconds(source.per_record_s)} of CPU time; alone it "
        f"releases {units.rate(source.rate_limit)} at most."
    )
    facts: dict[str, Cell | bool] = {
        "Fixed CPU time per task and batch": units.seconds(source.fixed_s),
        "CPU time per record": units.seconds(source.per_record_s),
        "Highest rate of the source alone": units.rate(source.rate_limit),
    }
    if rate := measurement.estimate.rate:
        part = rate * source.per_record_s / measurement.budget.cpus
        finding += f" At the sustained rate that is {units.share(part)} of the slots' cores."
    return [Card("source", title, finding, table=facts_table("Profile of the source", facts))]


def _written(measurement: Measurement) -> list[Card]:
    seen = findings.writes_of(measurement)
    if seen is None or not measurement.ran:
        return []
    facts: dict[str, Cell | bool] = {
        "Sink": findings.sink_of(measurement),
        "Checkpoint": measurement.machine.facts.get("checkpoint"),
        "The sink adds to the driver, per batch": _erring(seen.batch_s, seen.batch_error_s),
        "The sink adds to a task, whatever its rows": _erring(seen.task_s, seen.task_error_s),
        "The sink adds to a task, per record read": _erring(seen.record_s, seen.record_error_s),
        "Jobs on the table's log, slot time per batch": _erring(seen.jobs_s or None, seen.jobs_error_s),
        "Rows written per record read": seen.written,
        "Driver, of a batch, without any task": units.seconds(seen.outside_s),
        "Driver, offsets and commits to the checkpoint": units.seconds(seen.log_s),
        "Task, state of a partition to the checkpoint": units.seconds(seen.state_s),
        "More with each batch": units.seconds(seen.growth_s),
        "Batches that shows": seen.batches,
    }
    known = {name: value for name, value in facts.items() if value not in {None, units.UNKNOWN}}
    table = facts_table("What writing took", known)
    return [Card("writes", "What does writing cost?", findings.written(measurement), table=table)]


def _erring(took: float | None, error: float | None) -> str:
    """Write a duration, with its standard error where that is known."""
    return units.seconds(took) + (f" (standard error {units.seconds(error)})" if error and took is not None else "")


def _of_inputs(measurement: Measurement) -> str:
    """Describe the rate of each of several inputs; empty for a single input."""
    seen = measurement.estimate.observation
    if seen is None or not seen.inputs or not seen.elapsed_s:
        return ""
    rates = [f"{one.name} {units.rate(one.records / seen.elapsed_s)}" for one in seen.inputs]
    return f"The inputs have their parts of it: {', '.join(rates)}."


def _inputs(measurement: Measurement) -> list[Card]:
    said, seen = _of_inputs(measurement), measurement.estimate.observation
    if not said or seen is None:
        return []
    total, elapsed_s = max(1, sum(one.records for one in seen.inputs)), seen.elapsed_s
    table = tabulate(
        "Inputs at the maximum sustained rate",
        seen.inputs,
        {
            "Input": lambda one: one.name,
            "Rate (records/s)": lambda one: one.records / elapsed_s,
            "Share (%)": lambda one: 100 * one.records / total,
            "Backlog (records)": lambda one: one.backlog,
            "Records out per record in": lambda one: one.selectivity,
            "Read by": lambda one: ", ".join(one.operators),
        },
        opened=True,
    )
    return [Card("inputs", "What does each input give?", said, table=table)]


def _health(measurement: Measurement) -> list[Card]:
    made = list(checks(measurement))
    outcomes = [_outcome(check) for check in made]
    advising, unknown = outcomes.count("advice"), outcomes.count("not known")
    finding = (
        f"{advising} of {len(made)} checks led to advice."
        if advising
        else f"{outcomes.count('passed')} of {len(made)} checks passed."
    )
    if unknown:
        finding = f"{finding[:-1]}; {unknown} could not be made, because the run did not record what they need."
    table = tabulate(
        "Health checks",
        made,
        {
            "Check": lambda check: check.question,
            "Outcome": _outcome,
            "Seen": lambda check: check.finding or "not recorded",
            "What to do": lambda check: check.advice,
        },
        opened=True,
    )
    return [Card("health", "Health checks", finding, table=table)]


def _outcome(check: Check) -> str:
    if check.finding is None:
        return "not known"
    return "advice" if check.advice else "passed"


def _circumstances(measurement: Measurement) -> list[Card]:
    budget = measurement.budget
    facts: dict[str, Cell | bool] = {
        "Query": measurement.query,
        "Testbed": measurement.testbed,
        "Started": measurement.started_at,
        "Slots": budget.slots,
        "Cores per slot": budget.profile.cpus,
        "Memory per slot (MB)": budget.profile.memory_mb,
        **({"Trigger interval (s)": budget.interval_s} if measurement.ran else {}),
        **{f"Machine: {name}": value for name, value in measurement.machine.described().items()},
        **({} if measurement.core_speed is None else {"Speed of the cores": str(measurement.core_speed)}),
        **{f"Setting: {name}": value for name, value in measurement.settings.items()},
        "Workbench version": measurement.workbench_version,
    }
    finding = (
        f"{measurement.query} ran with {findings.where(budget, ran=measurement.ran)} and "
        f"{units.count(budget.profile.memory_mb)} MB per slot on {measurement.testbed}. "
        "Every figure here comes from this run."
    )
    table = facts_table("Circumstances of the measurement", facts)
    return [Card("circumstances", "How was it measured?", finding, table=table)]
