"""The cards of a planned study: the answer, the capacity model, the exploration, the settings for Spark, advice."""

import math
from collections.abc import Callable, Mapping, Sequence

import plotly.graph_objects as go

from workbench import units
from workbench.capacity import CapacityPlan, ModelFinding
from workbench.capacity.explore import Question, reasons
from workbench.records import Measurement, Run
from workbench.study import Planned, intervals_left_out
from workbench.views import findings
from workbench.views.cards import Card, Column, Table, fold, gather
from workbench.views.figures import (
    acquisition,
    capacity,
    convergence,
    draw_acquisition,
    draw_capacity,
    draw_convergence,
    draw_slot_shares,
    draw_stage_layout,
    draw_trigger_intervals,
    slot_shares,
    stage_layout,
    trigger_intervals,
)
from workbench.views.first_screen import testbed_name
from workbench.views.front import backlog, front_html, sentence, start_html
from workbench.views.model_cards import forms, safety

_DAY = "What would following the load save?"
_CHART = 400  # pixels, so that the page shows the answer and how to start it before its evidence
START = "start"
"""Name of the card that says how to start what was planned."""
OUTAGE_S = 600.0
"""Outage whose backlog is shown where the study names none, seconds."""


def cards(planned: Planned) -> list[Card]:
    """Make all cards; one that cannot be made becomes an error card and never hides the others."""
    front: tuple[Callable[[Planned], list[Card]], ...] = (_answer, _model, _start, forms)
    evidence: tuple[Callable[[Planned], list[Card]], ...] = (
        _spark,
        safety,
        _waiting,
        _day,
        _intervals,
        _advice,
        _doubts,
        _runs,
    )
    return [*gather(front, planned), *(fold(card) for card in gather(evidence, planned))]


def _answer(planned: Planned) -> list[Card]:
    title = f"What do I deploy for {planned.study.query}?"
    refused = [
        Card(f"refused-{rate:.0f}", units.rate(rate), reason, kind="no-plan") for rate, reason in planned.refused
    ]
    if not planned.plans:
        return refused
    currency = next((plan.price.instance.currency for plan in planned.plans if plan.price is not None), "")
    table = Table(
        "One row per target rate",
        (
            Column("Target", "records/s"),
            Column("Slots"),
            Column("Memory per slot", "MB"),
            Column("Trigger interval", "s"),
            Column("Capacity", "records/s"),
            Column("Interval low", "records/s"),
            Column("Interval high", "records/s"),
            Column("Workers"),
            Column("Worker type"),
            Column("Slots per worker, at most"),
            Column("Cost", f"{currency} per hour".strip()),
            Column("Cost", f"{currency} per month".strip()),
            Column("Extrapolation", "x"),
        ),
        tuple(_row(plan) for plan in planned.plans),
    )
    return [Card("answer", title, sentence(planned), table=table, html=front_html(planned)), *refused]


def _row(plan: CapacityPlan) -> tuple[str | float | None, ...]:
    price = plan.price
    return (
        plan.rate,
        plan.budget.slots,
        plan.budget.profile.memory_mb,
        plan.budget.interval_s,
        plan.expected_rate,
        plan.low,
        plan.high,
        None if price is None else price.workers,
        None if price is None else price.instance.name,
        None if price is None else price.slots_per_worker,
        None if price is None else price.per_hour,
        None if price is None else price.per_month,
        plan.extrapolation,
    )


def _model(planned: Planned) -> list[Card]:
    data = capacity(planned.exploration, planned.plans)
    finding = f"{data.finding}. The model is {findings.form_name(planned.exploration.model.form)}. " + (
        planned.plans[0].basis() if planned.plans else f"Its runs come from {_testbeds(planned)}."
    )
    if any(plan.on_other_cores for plan in planned.plans):
        finding += " The curve is that of the cores measured; plans count those of their instance type."
    return [
        Card(
            "model",
            "How does capacity grow with slots?",
            finding,
            draw_capacity(data).update_layout(height=_CHART),
        )
    ]


def _testbeds(planned: Planned) -> str:
    named = (testbed_name(run.testbed_kind, run.testbed) for run in planned.exploration.measurements)
    return ", ".join(dict.fromkeys(named))


def _start(planned: Planned) -> list[Card]:
    if not planned.plans:
        return []
    finding = "Copy the text of both files, and replace the words in capitals; one tab per target."
    return [Card(START, "How do I start it?", finding, html=start_html(planned.plans))]


def _intervals(planned: Planned) -> list[Card]:
    if not planned.sweep:
        return []
    left_out = intervals_left_out(planned.sweep)
    data = trigger_intervals(
        [run for run in planned.sweep if isinstance(run, Measurement) and run.budget.interval_s not in left_out]
    )
    finding = " ".join(
        (f"{data.finding}.", *(f"Not planned with is {one:g} s: {why}" for one, why in left_out.items()))
    )
    return [Card("intervals", "What does more latency buy?", finding, draw_trigger_intervals(data))]


def _waiting(planned: Planned) -> list[Card]:
    """Say how long records wait at the target rate, and how long a backlog lasts."""
    if not planned.plans:
        return []
    outage_s = OUTAGE_S if planned.study.outage_s is None else planned.study.outage_s
    timed = all(plan.has_interval for plan in planned.plans)
    title = "How long do records wait, and how long does a backlog last?" if timed else "How long does a backlog last?"
    finding = f"{backlog(max(planned.plans, key=lambda plan: plan.rate), outage_s)} {_waits(planned.plans)}".rstrip()
    rows = tuple(
        (
            plan.rate,
            *([_finite(plan.latency_s(0.5)), _finite(plan.latency_s(0.99))] if timed else []),
            _finite(plan.catch_up_s(outage_s) / 60),
            _finite(plan.catch_up_s(outage_s, plan.low) / 60),
        )
        for plan in planned.plans
    )
    table = Table(
        "One row per target rate",
        (
            Column("Target", "records/s"),
            *([Column("Latency, median", "s"), Column("Latency, 99 %", "s")] if timed else []),
            Column(f"Caught up after {units.seconds(outage_s)}", "min"),
            Column("Caught up at the low end", "min"),
        ),
        rows,
    )
    return [Card("waiting", title, finding, table=table)]


def _waits(plans: Sequence[CapacityPlan]) -> str:
    """Say how long records wait for the end of their batch at the largest rate for which that is known."""
    batches = [plan for plan in plans if plan.has_interval and math.isfinite(plan.latency_s(0.5))]
    if not batches:
        return ""
    plan = max(batches, key=lambda one: one.rate)
    return (
        f"At {units.rate(plan.rate)} half of the records wait at most {units.seconds(plan.latency_s(0.5))} for the end "
        f"of their batch, and 99 % at most {units.seconds(plan.latency_s(0.99))}."
    )


def _day(planned: Planned) -> list[Card]:
    """Say what following the day's load would save."""
    chosen = next((plan for plan in planned.plans if plan.day is not None), None)
    if chosen is None or chosen.day is None:
        missing = "No plan carries the day's peak, so none can be compared with following the load. Leave targets out."
        return [] if planned.study.day is None else [Card("day", _DAY, missing, kind="no-data")]
    day = chosen.day
    saved = 1 - day.slot_hours / day.static_slot_hours
    finding = (
        f"{units.some(day.static_slots, 'slot')} all day {'is' if day.static_slots == 1 else 'are'} "
        f"{units.number(day.static_slot_hours)} slot hours. A deployment that "
        f"follows the load every {units.seconds(3600 * day.hours[0])} takes {min(day.slots):,} to {max(day.slots):,} "
        f"slots and {units.number(day.slot_hours)} slot hours, {units.share(saved)} less"
    )
    if day.cost is not None and day.whole_static_cost is not None and chosen.price is not None:
        currency = chosen.price.instance.currency
        finding += (
            f"; in whole workers {units.number(day.cost)} instead of {units.number(day.whole_static_cost)} {currency}"
        )
    columns = (Column("From", "h"), Column("Highest rate", "records/s"), Column("Slots"))
    began = [number * day.hours[0] for number in range(len(day.hours))]  # only the last may be shorter
    rows = tuple(zip(began, day.rates, day.slots, strict=True))
    note = " Restarts are not counted: replay the day against the plan to see them."
    table = Table("The day, step by step", columns, rows)
    return [Card("day", _DAY, finding + "." + note, table=table)]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _advice(planned: Planned) -> list[Card]:
    """One card for each concern, with the targets that it is about."""
    concerns: dict[str, list[tuple[CapacityPlan, ModelFinding]]] = {}
    of_the_runs = {one.concern for one in planned.exploration.findings}
    for plan in planned.plans:
        for card in plan.cards:
            if card.concern in of_the_runs:
                continue  # of the runs, not of a target: see `_doubts`
            concerns.setdefault(card.concern, []).append((plan, card))
    made = [_concern_card(concern, found) for concern, found in concerns.items()]
    ratios = [plan.overstatement for plan in planned.plans if plan.overstatement is not None]
    if ratios:
        rates = "Simulated" if planned.plans[0].simulated else "Measured"
        finding = (
            f"{rates} rates are {units.share(ratios[0])} of what the optimizer expects (median of the runs), because "
            "it assumes that operators scale linearly and do not disturb each other. The plan uses those rates, so it "
            "is not affected."
        )
        made.append(Card("overstatement", "How optimistic is the slot optimizer?", finding))
    return made


def _concern_card(concern: str, found: list[tuple[CapacityPlan, ModelFinding]]) -> Card:
    """Say the worst of a concern in words, and all of it in a table where it is about several targets."""
    plan, worst = max(found, key=lambda one: one[1].value)
    others = f" ({len(found)} targets, see the table)" if len(found) > 1 else ""
    table = Table(
        "One row per target rate",
        (Column("Target", "records/s"), Column("Finding"), Column("Advice")),
        tuple((one.rate, card.finding, str(card.advised)) for one, card in found),
    )
    return Card(
        concern.replace(" ", "-"),
        concern.capitalize(),
        f"At {units.rate(plan.rate)}{others}: {worst.finding} {worst.advised}",
        table=table if len(found) > 1 else None,
        kind="health",
    )


def _doubts(planned: Planned) -> list[Card]:
    """Say once what is doubtful about the runs, which all targets rest on."""
    return [
        Card(one.concern.replace(" ", "-"), one.concern.capitalize(), f"{one.finding} {one.advised}", kind="health")
        for one in planned.exploration.findings
    ]


def _spark(planned: Planned) -> list[Card]:
    made = []
    for plan in planned.plans:
        rows: list[tuple[str, str | float]] = sorted(plan.spark_conf().items())
        if plan.has_interval:
            rows.append(("trigger interval, in the query's writeStream.trigger", f"{plan.budget.interval_s:g} s"))
        if plan.layout is not None:
            rows += _counts("partitions of {}", plan.layout.partitions)
        if plan.low_layout is not None:
            rows += _counts("partitions of {}, restarted at the lowest load", plan.low_layout.partitions)
        if plan.allocation is not None:
            rows += _counts("tasks of {}", plan.allocation.tasks)
        shares, figure = _dealt_out(plan)
        cores = f"{plan.executor.millicores / 1000:g}"
        container = f"{cores} core{'s' * (cores != '1')} and {units.count(plan.executor.memory_mb)} MB"
        notes = (
            f"Start it with these settings: {plan.room()}.",
            f"Each executor is a container of {container}.",
            "" if plan.price is None else "The driver is not included in the price.",
            "The last rows are not Spark settings: set them in your query."
            if len(rows) > len(plan.spark_conf())
            else "",
            plan.where_time_goes(),
        )
        made.append(
            Card(
                f"settings-{plan.rate:.0f}",
                f"How is it configured for {units.rate(plan.rate)}?",
                shares + " ".join(filter(None, notes)),
                figure,
                Table("Settings", (Column("Setting"), Column("Value")), tuple(rows)),
            )
        )
    return made


def _counts(name: str, counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(name.format(one), count) for one, count in counts.items()]


def _dealt_out(plan: CapacityPlan) -> tuple[str, go.Figure | None]:
    """Show where the slots go: to operators that run side by side, or to the stages of a batch, as far as is known."""
    if plan.allocation is not None and plan.allocation.tasks:
        shares = slot_shares(plan.allocation, plan.expected_rate)
        return f"{shares.finding}. ", draw_slot_shares(shares)
    if plan.layout is not None and plan.layout.stages:
        layout = stage_layout(plan.layout, timed=not plan.batch_parts)
        return f"{layout.finding}. ", draw_stage_layout(layout)
    return "", None


def _bracket(run: Run) -> tuple[float | None, float | None, float | None]:
    """Capacity, lower and upper end, records/s; a failed run has none."""
    if not isinstance(run, Measurement):
        return None, None, None
    estimate = run.estimate
    return estimate.middle or None, estimate.low, estimate.high if math.isfinite(estimate.high) else None


def _runs(planned: Planned) -> list[Card]:
    """Show the loop's record: why each budget was asked for, what was expected and measured, and the cost after it."""
    found, study = planned.exploration, planned.study
    whys = reasons(found.runs, study.space, study.seed, choice=study.choice, estimates=study.estimates)
    rows = tuple(
        (
            row + 1,
            run.budget.slots,
            run.budget.profile.memory_mb,
            why.words,
            len(run.estimate.probes) if isinstance(run, Measurement) else None,
            run.estimate.seconds if isinstance(run, Measurement) else 0.0,
            run.predicted_rate,
            *_bracket(run),
            _finite(cost),
            "yes" if row in found.fitted else "no",
        )
        for row, (run, why, cost) in enumerate(zip(found.runs, whys, found.costs, strict=True))
    )
    columns = (
        Column("Run"),
        Column("Slots"),
        Column("Memory per slot", "MB"),
        Column("Asked for as"),
        Column("Probes"),
        Column("Time", "s"),
        Column("BIDS2's objective", "records/s"),
        Column("MST", "records/s"),
        Column("Low", "records/s"),
        Column("High", "records/s"),
        Column("Cost after it", "records/s"),
        Column("Fitted"),
    )
    data = convergence(found)
    figure = draw_convergence(data) if any(map(math.isfinite, data.costs)) else None  # from four runs on
    finding = f"{_taken(found.measurements, len(rows))} {data.finding[0].upper()}{data.finding[1:]}."
    title = "Which runs is it based on, and why those?"
    record = Card("runs", title, finding, figure, Table("The loop's record: runs in order", columns, rows))
    asked = [row for row, why in enumerate(whys) if why.acquired is not None]
    if not asked:
        return [record]
    last = acquisition(Question(whys[asked[-1]], study.space, found.runs[: asked[-1]]))
    return [
        record,
        Card("acquisition", "Why was the last budget asked for?", f"{last.finding}.", draw_acquisition(last)),
    ]


def _taken(measured: Sequence[Measurement], runs: int) -> str:
    """Say how many runs there were, how long they took, and of simulated ones how they were simulated."""
    total = units.seconds(sum(run.estimate.seconds for run in measured))
    said = units.some(runs, "run")
    kind = measured[0].testbed_kind if measured else ""
    if kind == "fluid":
        return f"{said}, {total} of simulated time, by {measured[0].testbed}."
    if kind in {"recorded", "observed"}:
        return f"{said}, taken from {measured[0].testbed}."
    return f"{said} took {total} to measure."
