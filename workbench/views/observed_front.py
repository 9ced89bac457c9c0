"""What a running query's log says, in words: one sentence, what limits it, what an outage costs, what it is."""

import math

import numpy as np

from workbench import units
from workbench.advice import Advice
from workbench.metrics import slow_executors
from workbench.observing import EndingRuns, StateSeen
from workbench.records import CapacityPlan, EndingRun
from workbench.study import Observed
from workbench.views.first_screen import Chip, cares_html, header_html, table_html
from workbench.views.front import about
from workbench.views.observed_findings import findings

_TIGHT, _NONE = 0.3, 0.0  # left over the peak
_WAITING = 0.7  # CPU seconds over run seconds, under which tasks wait for something
_EVEN, _SKEWED = 1.05, 1.5
_PARTS = {
    "driver": "the driver's fixed work",
    "driver, per task": "the driver's work for each task",
    "tasks, fixed": "what every task costs before its first row",
    "rows": "the rows themselves",
}


def sentence(found: Observed) -> str:
    """Say what the query sustains and what it has left, or why that is not identifiable."""
    running, room = found.running, found.headroom
    where = f"{running.name} on {units.some(running.slots, 'slot')}" if running.slots else running.name
    if found.ending is not None:
        return runs_of(where, found.ending, found.run)
    if room.rate is None:
        return f"What {where} sustains is not identifiable from its log: {room.why_not}.{_bound(found)}"
    ends = f"{units.scaled(room.low, '', 2)} to {units.scaled(room.high, '', 2)}"
    left = room.left
    if left is None or left <= _NONE:
        rest = f"its peak asked for {units.rate(room.peak_rate, 2)}, which is more"
    else:
        rest = f"its peak asked for {units.rate(room.peak_rate, 2)}, so {units.share(round(left, 2))} more would fit"
    cap = ""
    if room.capped and room.admitted_rate is not None:
        cap = f", but the cap on its batches (maxOffsetsPerTrigger) admits {units.rate(room.admitted_rate, 2)}"
    return f"{where} sustains {units.rate(room.rate, 2)} (90 %: {ends}){cap}; {rest}."


def runs_of(where: str, ending: EndingRuns, asked: EndingRun | None) -> str:
    """Say what runs that end take, and how long the one that is asked for would take on the same slots."""
    said = (
        f"A run of {where} takes what there is and ends: usually {units.scaled(ending.rows, 'rows')} in "
        f"{about(ending.lasts_s)}, at most {units.scaled(ending.most_rows, 'rows')} in {about(ending.most_s)}. Full "
        f"batches are worked off at {units.rate(ending.rate, 2)}; the largest holds {ending.largest:,} rows."
    )
    if asked is None:
        return said
    lasts_s = asked.lasts_s(ending.rate)
    kept = "within" if lasts_s <= asked.deadline_s else "beyond"
    asked_s = about(asked.deadline_s)
    return f"{said} So {units.scaled(asked.rows, 'rows')} take about {about(lasts_s)}, {kept} the {asked_s} asked for."


def _bound(found: Observed) -> str:
    """Say what is sustained at least, and the load; empty where neither is known."""
    room = found.headroom
    if not room.mean_rate:
        return ""
    load = f"its load is {units.rate(room.mean_rate, 2)}, {units.rate(room.peak_rate, 2)} at the peak"
    least = f"it sustains at least {units.rate(room.at_least, 2)}" if room.at_least else ""
    said = "; ".join(filter(None, (least, load)))
    return f" {said[0].upper()}{said[1:]}."


def verdict(found: Observed) -> Chip:
    """Judge the head-room at the peak: of the rate, and of its interval's low end."""
    room = found.headroom
    if room.rate is None:
        enough = room.at_least > room.peak_rate * (1 + _TIGHT)
        return Chip("safe, by a bound", "safe") if enough else Chip("not identifiable", "unsure")
    admitted = math.inf if room.admitted_rate is None else room.admitted_rate
    if min(room.low, admitted) > room.peak_rate * (1 + _TIGHT):
        return Chip("safe", "safe")
    if room.capped:
        return Chip("held by its cap", "risky")
    return Chip("risky", "risky") if room.rate > room.peak_rate else Chip("behind at the peak", "unsure")


def doubts(found: Observed) -> dict[str, Advice]:
    """Say why the verdict is not safe, with what to do; empty where it is, or where nothing is known."""
    room = found.headroom
    if room.rate is None or verdict(found).style == "safe":
        return {}
    tight, room_asked = room.peak_rate * (1 + _TIGHT), f"less than {units.percent(_TIGHT)} above the peak"
    if room.admitted_rate is not None and room.admitted_rate <= min(room.low, tight):
        admitted = units.rate(room.admitted_rate, 2)
        return {f"The cap on its batches admits {admitted}, {room_asked}.": Advice("Raise maxOffsetsPerTrigger.")}
    rate = float(f"{tight:.2g}")
    plans = () if found.planned is None else found.planned.plans
    planned = [plan.rate for plan in plans if plan.rate == rate or (plan.rate > rate and _safe(plan))]
    advised = (
        Advice(f"See what is planned for {units.rate(min(planned))}.")
        if planned
        else Advice("Run", found.asked.observe(rate, found.asked.risk))
    )
    return {f"The interval's low end, {units.scaled(room.low, '', 2)}, is {room_asked}.": advised}


def _safe(plan: CapacityPlan) -> bool:
    return plan.verdict is not None and plan.verdict.level == "safe"


def slots_twice(found: Observed) -> str:
    """Say why the plan of the slots that run has another interval than the log; empty where it has not."""
    plans = () if found.planned is None else found.planned.plans
    room = found.headroom
    if room.rate is None:
        return ""
    of_log = [units.scaled(end, "", 2) for end in (room.low, room.high)]
    own = [plan for plan in plans if plan.budget.slots == found.running.slots]
    if all([units.scaled(end, "", 2) for end in (plan.low, plan.high)] == of_log for plan in own):
        return ""
    return (
        f"At the slots that run now, the log alone gives {' to '.join(of_log)}; the plan also allows for doubts about "
        "the model."
    )


def limit(found: Observed) -> str:
    """Say what takes most of a batch at the rate sustained; empty where that is not known."""
    shares = found.limits
    if not shares:
        return ""
    most = max(shares, key=lambda name: shares[name])
    said = f"At that rate {units.share(round(shares[most], 2))} of a batch goes to {_PARTS[most]}"
    if most == "rows" and found.parts is not None and len(found.parts.stages) > 1:
        room = found.headroom
        rows, (shuffled, read) = (room.rate or 0.0) * room.interval_s, found.partitions
        costs = {
            stage.name: math.ceil(count / found.running.slots) * float(stage.rows_s(np.array(rows / count)))
            for stage, count in ((stage, read if stage.source else shuffled) for stage in found.parts.stages)
        }
        worst = max(costs, key=lambda name: costs[name])
        said += f", most of it in {worst!r}"
    return f"{said}."


def outage(found: Observed, outage_s: float) -> str:
    """Say how long the query needs to catch up after an outage at its peak; empty where that is not known."""
    seconds, at_worst = found.catch_up_s(outage_s), found.catch_up_s(outage_s, at_worst=True)
    if seconds is None or at_worst is None or not outage_s:
        return ""
    said = f"After an outage of {units.seconds(outage_s)} at the peak it"
    if math.isinf(seconds):
        return f"{said} never catches up."
    surely = f"{about(at_worst)} at" if math.isfinite(at_worst) else "never at"
    return f"{said} has caught up in about {about(seconds)} ({surely} the interval's low end)."


def comparison(found: Observed) -> list[str]:
    """Say what a study that was measured expects of the same cores, and what targets take with its growth."""
    held = found.compared
    if held is None:
        return []
    ends = f"{units.scaled(held.low, '', 2)} to {units.scaled(held.high, '', 2)}"
    name = found.running.name
    whose = "" if held.query == name else f", of {held.query} (the log is of {name}),"
    said = (
        f"The study that was measured{whose} expects {units.rate(held.rate, 2)} (90 %: {ends}) of as many cores, "
        f"{units.count(held.slots, 'of its slots')}: "
    )
    said += "the two agree" if held.agrees else f"a core here does {held.times:.2g} times the work of a measured one"
    takes = []
    for rate, slots in held.takes:
        held_by = "are out of reach" if slots is None else f"take {units.some(slots, 'slot')} of this kind"
        takes.append(f"{units.rate(rate)} {held_by}")
    return [f"{said}.", *([f"With the growth that was measured, {', and '.join(takes)}."] if takes else [])]


def facts(found: Observed) -> dict[str, str]:
    """Say what the query is, by name."""
    running, room = found.running, found.headroom
    operators = tuple(
        dict.fromkeys(operator.operator for block in running.blocks for operator in block.observation.operators)
    )
    seen = "as the log shows" if running.interval_s == room.interval_s else "as you say"
    interval = f"{units.seconds(room.interval_s)}, {seen}" if room.interval_s else "none: it runs as fast as it can"
    known = {
        "application": " · ".join(filter(None, (running.application, running.spark and f"Spark {running.spark}"))),
        "source": ", ".join(dict.fromkeys(running.sources)),
        "sink": running.sink,
        "operators": ", ".join(operators),
        "slots": "" if not running.slots else _slots(found),
        "partitions": str(max((block.partitions for block in running.usual_blocks), default="")),
        "trigger interval": interval if running.batches else "",
        "load": f"{units.rate(room.mean_rate)} in the mean, {units.rate(room.peak_rate)} at the peak"
        if room.mean_rate
        else "",
        "state": "; ".join(map(_state, running.states)),
        "batches read": f"{units.count(room.batches)}, {units.share(round(room.behind, 3))} of them longer than the "
        "interval",
        "beyond what was seen": _reach(found),
        "on other slots": f"{units.count(room.left_out, 'batch' if room.left_out == 1 else 'batches')}, left out but "
        "for the peak"
        if room.left_out
        else "",
        "cap": ""
        if room.admitted_rate is None
        else f"batches are held to {units.rate(room.admitted_rate, 2)} (maxOffsetsPerTrigger); full ones work off a "
        "backlog and do not count for the peak",
        "skew": _skew(found),
        "cores": _cores(found),
        "executors": _executors(found),
        **running.facts,
        "ended": running.stopped or "",
    }
    return {name: value for name, value in known.items() if value}


def front_html(found: Observed, outage_s: float) -> str:
    """Write the first screen; every text of the log's is escaped."""
    room, running = found.headroom, found.running
    runs = () if found.planned is None else found.planned.exploration.measurements
    seen = (running.name, *(run.started_at[:10] for run in runs[:1]), running.application)
    header = header_html("OBSERVED", (*seen, running.spark and f"Spark {running.spark}"))
    told = room.rate is not None
    seconds = found.catch_up_s(outage_s)
    caught_up = "" if seconds is None else "never" if math.isinf(seconds) else f"in about {about(seconds)}"
    down = {f"Catches up after {units.seconds(outage_s)} down": caught_up} if outage_s else {}
    columns = ("Head-room", "Sustains", "90 % interval", "Peak", "Left at the peak", *down)
    row: tuple[str | Chip, ...] = (
        verdict(found),
        units.rate(room.rate, 2)
        if room.rate is not None
        else f"at least {units.rate(room.at_least, 2)}"
        if room.at_least
        else "not identifiable",
        f"{units.scaled(room.low, '', 2)} to {units.scaled(room.high, '', 2)}" if told else "",
        units.rate(room.peak_rate, 2),
        "" if room.left is None else units.share(round(room.left, 2)),
        *down.values(),
    )
    return header + table_html(columns, [row]) + cares_html({**findings(found), **doubts(found)})


def _slots(found: Observed) -> str:
    running = found.running
    told = running.cpu_share is not None
    return f"{running.slots:,} of {running.memory_mb:,} MB" if told else f"{running.slots:,}, as you say"


def _state(state: StateSeen) -> str:
    """Say what an operator keeps."""
    where = f" in {units.some(state.partitions, 'partition')}" if state.partitions else ""
    stores = f" and {units.some(state.instances, 'store')}" if state.instances else ""
    return f"{state.operator} keeps {units.some(state.rows, 'row')}, {units.size(state.memory_bytes)}{where}{stores}"


def _reach(found: Observed) -> str:
    room = found.headroom
    if room.rate is None:
        return ""
    if room.reach <= 1:
        return "nothing: batches as large as at that rate were seen"
    return f"batches {units.number(room.reach)} times as large as the largest seen"


def _skew(found: Observed) -> str:
    if found.skew is None:
        return ""
    operator, times = found.skew
    if times < _EVEN:
        return f"none: the tasks of {operator!r} read alike"
    warning = "; more slots help less than their number says" if times >= _SKEWED else ""
    return f"the fullest task of {operator!r} has {units.number(times)} times the mean{warning}"


def _executors(found: Observed) -> str:
    """Whether they were equally fast, in the busiest block; empty where one executor was not compared with another."""
    blocks = found.running.blocks
    paces = max(blocks, key=lambda block: block.rows).observation.executors if blocks else ()
    if not paces:
        return ""
    slow = slow_executors(paces)
    if not slow:
        return f"all alike: the slowest took {max(pace.times for pace in paces):.2f} times as long as the others"
    return f"{slow[0].sentence}: a batch waits for it, so look at what else its worker does"


def _cores(found: Observed) -> str:
    share = found.running.cpu_share
    if share is None:
        return ""
    said = f"tasks used {units.share(round(share, 2))} of the time that they ran"
    if share >= _WAITING:
        return said
    return (
        f"{said}: the rest they waited (input, Python, garbage collection, shared cores), so a core of this "
        "cluster is not a core of another"
    )
