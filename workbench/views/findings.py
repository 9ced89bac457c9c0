"""Findings on a measurement, a plan, a decision and the forms of a model, each as one sentence."""

import math

from workbench import units
from workbench.dataflow import Budget
from workbench.metrics import WriteCost
from workbench.records import (
    NOOP,
    CapacityPlan,
    FormComparison,
    FormFit,
    Measurement,
    MstEstimate,
    MstInterval,
)
from workbench.scaling import JustinDecision
from workbench.speed import REFERENCE, RelativeSpeed, relative_speed

_LAW = "scaling"
_WOULD_TAKE = {
    "halves": "Of StreamBed's forms, its rule (by halves) would take {}",
    "leave-one-out": "Of StreamBed's forms, the error on a run left out favours {}",
    "first": "Of StreamBed's forms the first would be taken, because there are too few runs for any error: {}",
}
CHOICES = {
    "halves": "StreamBed's choice",
    "leave-one-out": "the least error on a run left out",
    "first": "the first form",
}
"""What chose among StreamBed's forms: its rule by halves, or what decides where that has too few runs."""

_LOST = 0.1  # of an interval, that growth may take
_SHOWN_S = 0.005
_SURE = 3.0  # standard errors, by which what a sink adds stands out
_CLEARLY = 1.05  # times the slots measured, from which on two digits say that it is more
_LIMITS = {
    "driver": "the driver's fixed work: a longer trigger interval would help, more slots would not",
    "driver, per task": "what tasks cost the driver: fewer partitions would help",
    "tasks, fixed": "what each task costs whatever its rows: fewer partitions or a longer trigger interval would help",
    "rows": "work on the rows, which more slots share",
    "log": "jobs on the table's log: a longer trigger interval would help",
    "state": "going through the state, which more slots share: a longer trigger interval would help, or rows that stay "
    "for less time",
}
_SPENT = {
    "driver": "for the driver",
    "driver, per task": "for the driver's work per task",
    "tasks, fixed": "of fixed work in tasks",
    "rows": "for the rows",
    "log": "for jobs on the table's log",
    "state": "to go through the state",
}

QUIET = frozenset({"stateless", "unchanged"})
"""Cases of Justin's that need no explanation."""


def origin(kind: str) -> str:
    """Return the word for the origin of figures, by the kind of the testbed."""
    return {"fluid": "SIMULATED", "recorded": "RECORDED", "observed": "OBSERVED"}.get(kind, "MEASURED")


def testbed_name(kind: str, identity: str) -> str:
    """Name a testbed for readers: without a cluster's address, a simulation's settings, or a table's digest."""
    named = {"fluid": "simulated engine (fluid)", "recorded": "a table of rates"}
    return named.get(kind, identity.split(", master", maxsplit=1)[0])


def where(budget: Budget, *, ran: bool = True) -> str:
    """Describe a deployment: ``"4 slots of 0.2 core at a 2 s interval"``; a simulated one has no interval."""
    slots = units.some(budget.slots, "slot")
    cpus = budget.profile.cpus
    cores = f"{units.number(cpus)} core{'s' if cpus > 1 else ''}"
    return f"{slots} of {cores}" + (f" at a {units.seconds(budget.interval_s)} interval" if ran else "")


def capacity(query: str, budget: Budget, estimate: MstEstimate, *, ran: bool = True) -> str:
    """Describe the rate that `query` sustains: if it is a lower bound only, none was sustained, or none judged yet."""
    if estimate.rate is None:
        least = min((probe.rate for probe in estimate.probes if probe.answered("overloaded")), default=None)
        if least is None:
            return f"No rate of {query} has been judged yet on {where(budget, ran=ran)}"
        return f"{query} sustained no rate that was tried, not even {units.rate(least)}, on {where(budget, ran=ran)}"
    bound = "at least " if estimate.limit != "query" else ""
    return f"{query} sustains {bound}{units.rate(estimate.middle)} on {where(budget, ran=ran)}"


def bracket(estimate: MstEstimate) -> str:
    """Describe between which rates the maximum is, and how wide that bracket is."""
    if estimate.rate is None:
        return "No rate was confirmed as sustained."
    if math.isinf(estimate.high):
        return f"{units.rate(estimate.low)} was confirmed as sustained; no higher rate was confirmed as too much."
    low, high = units.ends(estimate.low, estimate.high)
    width = units.chance(1 - estimate.low / estimate.high)
    return f"The maximum is between {low} (sustained) and {high} records/s (not sustained), {width} apart."


def written(measurement: Measurement) -> str:
    """Describe where the rows went and the checkpoint was, and what that took; "" where no query ran for it."""
    sink, seen = sink_of(measurement), writes_of(measurement)
    if sink is None:
        return ""
    checkpoint = measurement.machine.facts.get("checkpoint", "in memory")
    if sink == NOOP:
        said = f"Rows went to Spark's noop sink, which drops them, with the checkpoint {checkpoint}"
        said += ": your sink and your store cost more; name them in the study (sink, checkpoint)."
    else:
        said = f"Rows were written to {sink}, with the checkpoint {checkpoint}."
    if seen is None:
        return said
    adds = (
        ("to the driver's part of a batch", seen.batch_s, seen.batch_error_s),
        ("to each task", seen.task_s, seen.task_error_s),
        ("to each record", seen.record_s, seen.record_error_s),
    )
    known = [(what, took, _SURE * (error or 0.0)) for what, took, error in adds if took is not None]
    clear = [f"{units.seconds(took)} {what}" for what, took, most in known if took > most]
    hidden = [f"{what} (at most {about(took + most)})" for what, took, most in known if 0 < most >= took]
    if clear:
        said += f" The sink adds {', '.join(clear)}."
    if hidden:
        said += f" What it adds {', '.join(hidden)} does not stand out from the scatter of its batches."
    if seen.jobs_s:
        said += f" Jobs on the table's log take {units.seconds(seen.jobs_s)} of slot time in each batch."
    if seen.growth_s:
        count = max(1, round(_LOST * measurement.budget.interval_s / seen.growth_s))
        often = "after each batch" if count == 1 else f"every {units.count(count, 'batches')}"
        said += (
            f" Each batch takes {units.seconds(seen.growth_s)} longer than the one before: compact the table {often}, "
            "when a tenth of the interval is lost."
        )
    return said


def sink_of(measurement: Measurement) -> str | None:
    """Return the sink of a measurement: noop where Spark knew of no other; None where nothing was written."""
    return measurement.machine.facts.get("sink", NOOP) if measurement.testbed_kind == "spark" else None


def writes_of(measurement: Measurement) -> WriteCost | None:
    """Return what writing took at the rate; without an observation there, in the last probe that shows it."""
    seen = measurement.estimate.observation
    known = (probe.observation.writes for probe in reversed(measurement.estimate.probes))
    return seen.writes if seen is not None else next((one for one in known if one is not None), None)


def interval(found: MstInterval | None) -> str:
    """Describe the interval of a next deployment's maximum."""
    if found is None:
        return ""
    basis = (
        f"{found.repeats} measurements of this configuration"
        if found.repeats > 1
        else "known repeats on such machines, as this is the only measurement of this configuration"
    )
    low, high = units.ends(found.low, found.high, "records/s")
    return (
        f"Another deployment would sustain between {low} and {high} "
        f"({units.share(found.level)} interval; repeats differ by about {units.share(found.deviation)}, by {basis})."
    )


def form_name(form: str) -> str:
    """Name a form of the model in a sentence."""
    return "the scaling law" if form == _LAW else f"the {form} form"


def forms(found: FormComparison) -> str:
    """Compare the chosen form of StreamBed's with the plan's, what each asks for, and the evidence."""
    if found.chosen is None:
        return f"{units.some(found.runs, 'run')} cannot make a model of StreamBed's forms."
    asks = ""
    if found.targets:
        fit, rate = found.fit_of(found.chosen), units.rate(found.targets[-1].rate)
        slots = None if fit is None else fit.slots[-1]
        none = f"by which no number of slots carries {rate}"
        asks = none if slots is None else f"which asks for {units.some(slots, 'slot')} at {rate}"
    favoured = ", ".join(filter(None, (_WOULD_TAKE[found.rule].format(found.chosen), asks)))
    if found.used == found.chosen:
        return f"{favoured}; the plan uses it, because the study sets its form."
    planned = found.targets[-1].slots if found.targets else None
    own = form_name(found.used) + (f" ({units.some(planned, 'slot')})" if planned else "")
    return f"{favoured}; the plan uses {own} {_evidence(found)}."


def _evidence(found: FormComparison) -> str:
    """Explain why the plan uses its form instead of the chosen one, after its name."""
    if found.evidence == "set":
        return "because the study sets it"
    form, law = _left_out(found.fit_of(found.chosen)), _left_out(found.fit_of(_LAW))
    if found.evidence == "law":
        return f"because it misses a run left out by {law}, {found.chosen} by {form}"
    if found.evidence == "form":
        return (
            f"although {found.chosen} misses a run left out by {form}, the law by {law}. At the slots measured, the "
            "law is drawn to the brackets; at more slots, the form with the lower error usually predicts worse"
        )
    runs, few = units.some(found.runs, "run"), found.evidence == "too few"
    if not (form and law):
        return f"because {runs} are too few for an error on a run left out"
    return f"because {runs} {'are too few to' if few else 'do not'} distinguish them (a run left out: {form} and {law})"


def _left_out(fit: FormFit | None) -> str:
    """Return the relative error of a form on a run left out; empty where undefined."""
    share = None if fit is None else fit.left_out_share
    return "" if share is None else units.share(float(f"{share:.2g}"))


def deployment(plan: CapacityPlan) -> str:
    """Describe what to deploy, in a few words."""
    if plan.price is None:
        return plan.budget.words
    billed = f" ({plan.price.units})" if plan.price.units else ""
    return f"{plan.budget.words} on {plan.price.workers:,} x {plan.price.instance.name}{billed}"


def containers(plan: CapacityPlan) -> str:
    """Describe how many executors have the slots, how large they are with what Spark adds, and the driver."""
    executor, count = plan.executor, units.some(plan.executors, "executor")
    slots, total = units.some(executor.slots, "slot"), plan.executors * executor.slots
    cores = f"{executor.millicores / 1000:g}"
    spare = f"with room for {slots} each: {total:,}, of which the plan uses {plan.budget.slots:,}"
    held = f"of {slots}" if total == plan.budget.slots else spare
    driver = "a driver" if plan.price is None else "a driver, which the price does not include"
    added = units.count(executor.memory_mb - executor.slots * executor.profile.memory_mb)
    memory = f"{units.count(executor.memory_mb)} MB, {added} of it Spark's overhead"
    each = f"{cores} core{'s' * (cores != '1')} and {memory}"
    return f"{count} {held}. Each executor has {each}. Add {driver}."


def expected(plan: CapacityPlan, unit: str = "records/s") -> str:
    """Write a plan's capacity and its interval, with digits that differ; without `unit` where a heading has it."""
    low, high = units.ends(plan.low, plan.high)
    return f"{units.padded(plan.expected_rate, unit)} ({low} to {high})"


def beyond(plan: CapacityPlan) -> str:
    """Describe how far the slots of a plan are beyond those measured; empty if they are not."""
    if plan.extrapolation <= 1:
        return ""
    digits = 2 if plan.extrapolation >= _CLEARLY else 3
    return f"{units.number(plan.extrapolation, digits)} times the largest slot count measured"


def backlog(plan: CapacityPlan, outage_s: float) -> str:
    """Describe how long the backlog of an outage lasts, in whole minutes: the capacity is not known more exactly."""
    typical, at_worst = plan.catch_up_s(outage_s), plan.catch_up_s(outage_s, plan.low)
    said = f"After {about(outage_s)} down, the backlog at {units.rate(plan.rate)}"
    if not math.isfinite(typical):
        return f"{said} never clears."
    worst = f"{about(at_worst)} at" if math.isfinite(at_worst) else "never, at"
    return f"{said} is gone in about {about(typical)} ({worst} the interval's low end)."


def about(seconds: float) -> str:
    """Write a time in minutes, or in two digits where it is shorter."""
    return f"{units.count(seconds / 60)} min" if seconds >= 120 else units.seconds(float(f"{seconds:.2g}"))


def where_time_goes(plan: CapacityPlan) -> str:
    """Describe what the seconds of a batch go to, and what limits; empty where unknown."""
    known = plan.batch_parts
    if not known:
        return ""
    parts = ", ".join(
        f"{seconds:.2g} s {_SPENT.get(name, name)}" for name, seconds in known.items() if seconds >= _SHOWN_S
    )
    most = max(known, key=lambda name: known[name])
    total, interval = f"{sum(known.values()):.2g}", f"{plan.budget.interval_s:g}"
    return (
        f"A batch at this rate takes {total} s of the {interval} s interval: {parts}. "
        f"Most of it is {_LIMITS.get(most, most)}."
    )


def basis(plan: CapacityPlan) -> str:
    """Describe what a plan rests on."""
    share, taken = plan.source_share, ""
    if share is not None:
        taken = f"; the source that replayed the data took {units.percent(share)} of the slots' busy time"
    if plan.simulated:
        return f"It rests on {units.some(plan.runs, 'simulated run')}{taken}."
    how = {"observed": f"read from {plan.testbed}", "recorded": "with rates from a table"}
    where = how.get(plan.testbed_kind, f"measured on {plan.testbed}")
    return f"It rests on {units.some(plan.runs, 'run')} {where}{taken}."


def whose_cores(plan: CapacityPlan) -> str:
    """Name the cores that a plan counts; empty where those measured were not timed, and no price list asks."""
    instance, cores = None if plan.price is None else plan.price.instance, plan.cores
    if cores is None:
        if instance is None or instance.core_speed is None:
            return ""
        return f"It assumes that the cores of {instance.name} are as fast as those measured, which were not timed."
    here = relative_speed(cores.measured, REFERENCE)
    there = "" if here is None else f", {here.words('those of the reference machine')}"
    if not cores.other:
        return f"It assumes cores as fast as those measured: {cores.measured}{there}."
    counted = RelativeSpeed(cores.times, cores.low, cores.high).words("those measured")
    name = "another machine" if instance is None else instance.name
    return f"It assumes the cores of {name}, {counted}. Those measured: {cores.measured}{there}."


def decided(decision: JustinDecision) -> str:
    """Describe what Justin decided."""
    state, previous = decision.state, decision.previous
    tasks = units.some(state.tasks, "task")
    if state.level is None:
        return f"{tasks} without managed memory"
    change = state.level - (previous.level or 0)
    memory = {0: "the same memory each", 1: "twice the memory each", -1: "half the memory each"}[change]
    return f"{tasks} with {memory}"
