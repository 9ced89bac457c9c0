"""What a plan rests on, as cards: its model and other forms, how to start it, its settings, its runs, its doubts."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import plotly.graph_objects as go

from workbench import units
from workbench.capacity import CapacityPlan, Exploration, ModelFinding
from workbench.capacity.explore import Question, reasons
from workbench.capacity.model import IN_PROPORTION, MARGIN, SHARED_CORES, SHARING_IN_PROPORTION
from workbench.checks import SLACK
from workbench.records import Measurement, script_of
from workbench.study import Planned, intervals_left_out
from workbench.views import figures, findings
from workbench.views.cards import Card, Cell, Column, Table, finite, headings, tabulate, times
from workbench.views.findings import testbed_name
from workbench.views.parts import part

START = "start"  # name of the card that shows how to start what was planned
OUTAGE_S = 600.0  # outage whose backlog is shown if the study names none, seconds
_DAY = "What would following the load save?"
_CHART = 400  # pixels: a page shows the answer and how to start it before its evidence


def _refused(planned: Planned) -> list[Card]:
    return [Card(f"refused-{rate:.0f}", units.rate(rate), reason, kind="no-plan") for rate, reason in planned.refused]


def _model(planned: Planned) -> list[Card]:
    data = figures.capacity(planned.exploration, planned.plans)
    named = dict.fromkeys(testbed_name(run.testbed_kind, run.testbed) for run in planned.exploration.measurements)
    finding = f"{data.finding}. The model is {findings.form_name(planned.exploration.model.form)}. " + (
        findings.basis(planned.plans[0]) if planned.plans else f"Its runs come from {', '.join(named)}."
    )
    if any(plan.on_other_cores for plan in planned.plans):
        finding += " The curve is that of the cores measured; plans count those of their instance type."
    figure = figures.draw_capacity(data).update_layout(height=_CHART)
    return [Card("model", "How does capacity grow with slots?", finding, figure)]


def _start(planned: Planned) -> list[Card]:
    """Show the command that starts each plan, and the skeleton of its job, to copy: one tab per target."""
    if not planned.plans:
        return []
    panes = {
        f"{units.rate(plan.rate)}: {units.some(plan.budget.slots, 'slot')}": {
            "The command": plan.command(),
            "The job, job.py" if script_of(plan.query) is None else "What to set in your script": plan.job(),
        }
        for plan in planned.plans
    }
    finding = "Copy the text of both, and replace the words in capitals; one tab per target."
    return [Card(START, "How do I start it?", finding, html=part("tabs", START, panes))]


def forms(planned: Planned) -> list[Card]:
    """Compare StreamBed's forms and the law: the slots that each needs for every target, and its error."""
    title, found = "Would another model give another answer?", planned.forms
    finding = f"{findings.forms(found)}{_assumed(planned.exploration)}"
    if found.chosen is None:
        return [Card("forms", title, finding, kind="no-data")]
    carried = [one for one in found.targets if one.slots is not None]
    columns = (
        *headings(("Form", "Coefficients", "Error on a run left out (records/s)", "Error on a run left out (%)")),
        *headings(("Error on the upper half (records/s)", "Error on the upper half (%)")),
        *(Column(f"Slots at {units.rate(one.rate)}") for one in found.targets),
        *(Column(f"Capacity of {units.some(one.slots or 0, 'slot')}", "records/s") for one in carried),
    )
    rows = tuple(
        (
            f"{fit.form}, {findings.CHOICES[found.rule]}" if fit.form == found.chosen else fit.form,
            ", ".join(units.scaled(one, "") for one in fit.coefficients),
            fit.left_out,
            times(100, fit.left_out_share),
            fit.upper_half,
            times(100, fit.upper_half_share),
            *fit.slots,
            *(rate for rate in fit.predicted if rate is not None),
        )
        for fit in found.fits
    )
    slots, rates = [one.slots for one in found.targets], [one.expected_rate for one in carried]
    plan = ("the plan", found.used, None, None, None, None, *slots, *rates)
    caption = f"Forms, and the slots that each asks for with a margin of {MARGIN:g}"
    table = Table(caption, columns, (*rows, plan) if found.targets else rows, opened=True)
    return [Card("forms", title, finding, figures.draw_model_forms(planned.exploration, found), table)]


def _assumed(exploration: Exploration) -> str:
    """Describe what the scaling law assumes of more slots, after a space; empty if it is the usual assumption."""
    slots = math.floor(exploration.model.sharing_slots + SLACK)
    if slots <= max(run.budget.slots for run in exploration.runs):
        return ""
    return (
        " Before any run, the scaling law assumes growth in proportion with a probability of "
        f"{units.percent(SHARING_IN_PROPORTION)} up to {slots:,} slots, which share at most {SHARED_CORES:g} cores of "
        f"one machine, and of {units.percent(IN_PROPORTION)} beyond; otherwise slots lose what those of published "
        "systems lost."
    )


def _settings(planned: Planned) -> Iterator[Card]:
    for plan in planned.plans:
        conf = plan.spark_conf()
        rows: list[tuple[str, str | float]] = sorted(conf.items())
        if plan.has_interval:
            rows.append(("trigger interval, in the query's writeStream.trigger", f"{plan.budget.interval_s:g} s"))
        if plan.layout is not None:
            rows += _counts("partitions of {}", plan.layout.partitions)
        if plan.low_layout is not None:
            rows += _counts("partitions of {}, restarted at the lowest load", plan.low_layout.partitions)
        if plan.allocation is not None:
            rows += _counts("tasks of {}", plan.allocation.tasks)
        shares, figure = _shares(plan)
        not_spark = "The last rows are not Spark settings: set them in your query." * (len(rows) > len(conf))
        start = f"Start it with these settings: {findings.containers(plan)}"
        finding = " ".join(filter(None, (shares, start, not_spark, findings.where_time_goes(plan))))
        table, title = Table("Settings", headings(("Setting", "Value")), tuple(rows)), f"for {units.rate(plan.rate)}?"
        yield Card(f"settings-{plan.rate:.0f}", f"How is it configured {title}", finding, figure, table)


def _counts(name: str, counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(name.format(one), count) for one, count in counts.items()]


def _shares(plan: CapacityPlan) -> tuple[str, go.Figure | None]:
    """Show how the slots divide among operators that run in parallel, or stages of a batch, as far as is known."""
    if plan.allocation is not None and plan.allocation.tasks:
        finding = figures.slot_shares(plan.allocation, plan.expected_rate)
        return f"{finding}.", figures.draw_slot_shares(plan.allocation, finding)
    if plan.layout is not None and plan.layout.stages:
        finding = figures.stage_layout(plan.layout, timed=not plan.batch_parts)
        return f"{finding}.", figures.draw_stage_layout(plan.layout, finding)
    return "", None


def _safety(planned: Planned) -> list[Card]:
    """Plot the risk of missing the largest target against the price of workers of the planned type."""
    plan = max(planned.plans, key=lambda plan: plan.rate, default=None)
    if plan is None or planned.elsewhere(plan):
        return []
    price, verdict, slots = plan.price, plan.verdict, plan.budget.slots
    own = None  # without a verdict
    if verdict is not None and verdict.risk is not None:
        own = figures.RiskPoint(slots, float(slots) if price is None else price.per_month, verdict.risk)
    data = figures.cost_risk(
        planned.exploration.model,
        plan.rate,
        plan.budget.profile,
        None if price is None else price.instance,
        planned=own,
        executor_slots=plan.executor_slots,
    )
    cost = f"{data.currency} a month" if data.currency else "slots"
    columns = (Column("Slots"), Column("Cost", cost), Column("Risk of falling short", "%"))
    rows = tuple((point.slots, point.cost, 100 * point.risk) for point in data.points)
    table = Table("Deployments and their risk", columns, rows)
    return [Card("safety", "What does safety cost?", f"{data.finding}.", figures.draw_cost_risk(data), table)]


def _waiting(planned: Planned) -> list[Card]:
    """Describe how long records wait at the target rate, and how long a backlog lasts."""
    plans = planned.plans
    if not plans:
        return []
    outage_s = OUTAGE_S if planned.study.outage_s is None else planned.study.outage_s
    timed = all(plan.has_interval for plan in plans)
    title = "How long do records wait, and how long does a backlog last?" if timed else "How long does a backlog last?"
    largest = max(plans, key=lambda plan: plan.rate)
    finding = findings.backlog(largest, outage_s)
    batches = [plan for plan in plans if plan.has_interval and math.isfinite(plan.latency_s(0.5))]
    if batches:
        plan = max(batches, key=lambda one: one.rate)
        finding += (
            f" At {units.rate(plan.rate)} half of the records wait at most {units.seconds(plan.latency_s(0.5))} for "
            f"the end of their batch, and 99 % at most {units.seconds(plan.latency_s(0.99))}."
        )
    known: dict[str, Callable[[CapacityPlan], Cell]] = {"Target (records/s)": lambda plan: plan.rate}
    if timed:
        known["Latency, median (s)"] = lambda plan: finite(plan.latency_s(0.5))
        known["Latency, 99 % (s)"] = lambda plan: finite(plan.latency_s(0.99))
    known[f"Caught up after {units.seconds(outage_s)} (min)"] = lambda plan: finite(plan.catch_up_s(outage_s) / 60)
    known["Caught up at the low end (min)"] = lambda plan: finite(plan.catch_up_s(outage_s, plan.low) / 60)
    table = tabulate("One row per target rate", plans, known)
    return [Card("waiting", title, finding, table=table)]


def _day(planned: Planned) -> list[Card]:
    chosen = next((plan for plan in planned.plans if plan.day is not None), None)
    if chosen is None or chosen.day is None:
        missing = "No plan carries the day's peak, so none can be compared with following the load. Leave targets out."
        return [] if planned.study.day is None else [Card("day", _DAY, missing, kind="no-data")]
    day, whole_day = chosen.day, sum(chosen.day.hours)
    slot_hours, static_slot_hours = day.over(day.slots), whole_day * day.static_slots
    finding = (
        f"{units.some(day.static_slots, 'slot')} all day {'is' if day.static_slots == 1 else 'are'} "
        f"{units.number(static_slot_hours)} slot hours. A deployment that "
        f"follows the load every {units.seconds(3600 * day.hours[0])} takes {min(day.slots):,} to {max(day.slots):,} "
        f"slots and {units.number(slot_hours)} slot hours, {units.share(1 - slot_hours / static_slot_hours)} less"
    )
    if day.costs is not None and day.static_cost is not None and chosen.price is not None:
        costs = f"{units.number(day.over(day.costs))} instead of {units.number(whole_day * day.static_cost)}"
        finding += f"; in whole workers {costs} {chosen.price.instance.currency}"
    columns = headings(("From (h)", "Highest rate (records/s)", "Slots"))
    began = [number * day.hours[0] for number in range(len(day.hours))]  # only the last one may be shorter
    table = Table("The day, step by step", columns, tuple(zip(began, day.rates, day.slots, strict=True)))
    note = " Restarts are not counted: replay the day against the plan to see them."
    return [Card("day", _DAY, f"{finding}.{note}", table=table)]


def _intervals(planned: Planned) -> list[Card]:
    if not planned.sweep:
        return []
    left_out = intervals_left_out(planned.sweep)
    runs = [run for run in planned.sweep if isinstance(run, Measurement) and run.budget.interval_s not in left_out]
    lacking = (f"The {one:g} s interval was left out: {why}" for one, why in left_out.items())
    finding = " ".join((f"{figures.trigger_intervals(runs)}.", *lacking))
    return [Card("intervals", "What does more latency buy?", finding, figures.draw_trigger_intervals(runs))]


def _doubts(planned: Planned) -> list[Card]:
    """List everything doubtful about the runs and the plans, each finding once, with its targets."""
    found: dict[ModelFinding, list[str]] = {one: [] for one in planned.exploration.findings}
    for plan in planned.plans:
        for one in plan.cards:
            found.setdefault(one, []).append(units.rate(plan.rate))
    if not found:
        return []
    of_all = {0, len(planned.plans)}
    table = tabulate(
        "Each finding once",
        found.items(),
        {
            "About": lambda one: one[0].concern,
            "Targets": lambda one: "all" if len(one[1]) in of_all else ", ".join(one[1]),
            "Finding": lambda one: one[0].finding,
            "What to do": lambda one: str(one[0].advised),
        },
        opened=True,
    )
    concerns = ", ".join(dict.fromkeys(one.concern for one in found))
    finding = f"{units.some(len(found), 'finding')} on the model, the runs and the plans: {concerns}."
    return [Card("doubts", "What is doubtful, and what helps?", finding, table=table, kind="health")]


def _overstatement(planned: Planned) -> list[Card]:
    ratio = next((plan.overstatement for plan in planned.plans if plan.overstatement is not None), None)
    if ratio is None:
        return []
    finding = (
        f"{'Simulated' if planned.plans[0].simulated else 'Measured'} rates are {units.share(ratio)} of what the "
        "optimizer expects (median of the runs), because it assumes that operators scale linearly and do not disturb "
        "each other. The plan uses those rates, so it is not affected."
    )
    return [Card("overstatement", "How optimistic is the slot optimizer?", finding)]


def _runs(planned: Planned) -> list[Card]:
    """Show the record of the exploration: why each budget was chosen, the expected and measured rates, and the cost."""
    found, study = planned.exploration, planned.study
    whys = reasons(found.runs, study.space, study.seed, choice=study.choice, estimates=study.estimates)
    made = [(row, run, run if isinstance(run, Measurement) else None) for row, run in enumerate(found.runs)]
    table = tabulate(
        "The loop's record: runs in order",
        made,
        {
            "Run": lambda one: one[0] + 1,
            "Slots": lambda one: one[1].budget.slots,
            "Memory per slot (MB)": lambda one: one[1].budget.profile.memory_mb,
            "Asked for as": lambda one: whys[one[0]].words,
            "Probes": lambda one: one[2].estimate.probed if one[2] else None,
            "Time (s)": lambda one: one[2].estimate.seconds if one[2] else 0.0,
            "BIDS2's objective (records/s)": lambda one: one[1].predicted_rate,
            "MST (records/s)": lambda one: (one[2].estimate.middle or None) if one[2] else None,
            "Low (records/s)": lambda one: one[2].estimate.low if one[2] else None,
            "High (records/s)": lambda one: finite(one[2].estimate.high) if one[2] else None,
            "Model error after it (records/s)": lambda one: finite(found.costs[one[0]]),
            "Fitted": lambda one: "yes" if one[0] in found.fitted else "no",
        },
    )
    ended = figures.convergence(found)
    figure = figures.draw_convergence(found) if any(map(math.isfinite, found.costs)) else None  # from four runs on
    finding = f"{_taken(found.measurements, len(made))} {ended[0].upper()}{ended[1:]}."
    title = "Which runs is it based on, and why those?"
    record = Card("runs", title, finding, figure, table)
    asked = [row for row, why in enumerate(whys) if why.acquired is not None]
    if not asked:
        return [record]
    last = Question(whys[asked[-1]], study.space, found.runs[: asked[-1]])
    drawn = figures.draw_acquisition(last)
    return [record, Card("acquisition", "Why was the last budget asked for?", f"{last.sentence}.", drawn)]


def _taken(measured: Sequence[Measurement], runs: int) -> str:
    """Describe how many runs there were, how long they took, and how simulated ones were simulated."""
    total = units.seconds(sum(run.estimate.seconds for run in measured))
    said = units.some(runs, "run")
    kind = measured[0].testbed_kind if measured else ""
    if kind == "fluid":
        return f"{said}, {total} of simulated time, by {measured[0].testbed}."
    if kind in {"recorded", "observed"}:
        return f"{said}, taken from {measured[0].testbed}."
    return f"The probes of {said} took {total}."


AT_ONCE = (_refused, _model, _start, forms)  # what a page shows unfolded after the answer
ON_REQUEST = (_settings, _safety, _waiting, _day, _intervals, _overstatement, _doubts, _runs)  # what a page folds
