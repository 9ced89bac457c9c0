"""What a log shows of a running query: what it sustains, what limits it, what an outage costs, what to mind."""

import math
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from workbench import units
from workbench.advice import Advice
from workbench.answers import page
from workbench.answers import planned as of_a_plan
from workbench.answers.answer import Answer, Fact, Unit
from workbench.answers.observed_changes import changes
from workbench.metrics import slow_executors
from workbench.observing import EndingRuns, StateSeen
from workbench.records import EndingRun
from workbench.study import Observed
from workbench.views.cards import Card, fold, gather, tabulate
from workbench.views.figures import draw_head_room
from workbench.views.findings import about

_TIGHT = 0.3  # share left above the peak; with less a query is not safe
_WAITING = 0.7  # CPU seconds over run seconds; with less, tasks wait for something
_EVEN, _SKEWED = 1.05, 1.5
_PARTS = {
    "driver": "the driver's fixed work",
    "driver, per task": "the driver's work for each task",
    "tasks, fixed": "what every task costs before its first row",
    "rows": "the rows themselves",
    "log": "jobs on the table's log",
    "state": "going through the state",
}
_OF_FILES = ("FileStreamSource", "DeltaSource", "CloudFilesSource")
_MOST_ROWS = 2000  # of a page, so that it is small enough to send
_RATE = Unit(partial(units.rate, digits=2), "records/s")
_LEFT = Unit(lambda share: units.share(round(share, 2)), "%", 100.0)


def answer(found: Observed, outage_s: float) -> Answer:
    """Answer what a running query sustains, and what it takes to catch up after an outage."""
    running = found.running
    begun = datetime.fromtimestamp(running.batches[0].start_s, UTC).date().isoformat() if running.batches else ""
    said = filter(None, (_limit(found), _outage(found, outage_s), *_comparison(found), _slots_twice(found)))
    return Answer(
        "head-room",
        f"How much head-room does {running.name} have?",
        _sentence(found),
        "OBSERVED",
        tuple(filter(None, (running.name, begun, running.application, running.spark and f"Spark {running.spark}"))),
        tuple(said),
        _document(found, outage_s),
        (_row(found, outage_s),),
        "Head-room at the peak of the load",
        cautions={**changes(found), **_doubts(found)},
        about=_what_it_is(found),
        draw=lambda: draw_head_room(found, _sentence(found).removesuffix(".")),
        evidence=(partial(_batches, found), partial(_operators, found)),
    )


def cards(found: Observed, outage_s: float) -> list[Card]:
    """Make the cards of a running query, with the plans after the head-room."""
    lead, *evidence = page.cards(answer(found, outage_s))
    return [lead, *gather((partial(_plans, found),)), *evidence]


def _row(found: Observed, outage_s: float) -> tuple[Fact, ...]:
    room = found.headroom
    told, at_least = room.rate is not None, room.at_least
    least = f"at least {units.rate(at_least, 2)}" if at_least else "not identifiable"
    ends = f"{units.scaled(room.low, '', 2)} to {units.scaled(room.high, '', 2)}"
    word, style = _verdict(found)
    seconds = None if _ends(found) else found.catch_up_s(outage_s)
    peak, left = (None, None) if _ends(found) else (room.peak_rate or None, room.left)
    caught_up = None if seconds is None else "never" if math.isinf(seconds) else f"in about {about(seconds)}"
    down = (Fact(caught_up, "", f"Catches up after {units.seconds(outage_s)} down", shown="wide"),)
    return (
        Fact(word, name="Head-room", verdict=style),
        Fact(room.rate, name="Sustains", unit=_RATE) if told else Fact(least, name="Sustains"),
        Fact(ends if told else None, name="90 % interval"),
        Fact(peak, name="Peak", unit=_RATE),
        Fact(left, name="Left at the peak", unit=_LEFT),
        *(down if outage_s else ()),
    )


def _document(found: Observed, outage_s: float) -> dict[str, Any]:
    running = found.running
    seconds = found.catch_up_s(outage_s)
    return {
        "query": running.name,
        "application": running.application,
        "spark": running.spark,
        "slots": running.slots,
        "memory_mb": running.memory_mb,
        "interval_seen_s": running.interval_s,
        "headroom": {key: _finite(value) for key, value in asdict(found.headroom).items()}
        | {"left": found.headroom.left},
        "runs_end": running.ends,
        "runs": None if found.ending is None else asdict(found.ending),
        "batches_seen": {"with_rows": running.with_rows, "all": running.triggers, "starts": running.starts},
        "state": [asdict(one) for one in running.states],
        "findings": {said: str(advised) for said, advised in changes(found).items()},
        "limits": found.limits,
        "skew": None if found.skew is None else {"operator": found.skew[0], "times_the_mean": found.skew[1]},
        "catches_up": None if seconds is None else math.isfinite(seconds),
        "catch_up_s": _finite(seconds),
        "compared": None if found.compared is None else asdict(found.compared),
    }


def _finite(value: Any) -> Any:  # noqa: ANN401 - JSON
    return None if value == math.inf else value


def _sentence(found: Observed) -> str:
    """Describe what the query sustains and what is left, or why that is not identifiable."""
    running, room = found.running, found.headroom
    where = f"{running.name} on {units.some(running.slots, 'slot')}" if running.slots else running.name
    if found.ending is not None:
        return _runs_of(where, found.ending, found.run)
    if room.rate is None:
        option = "" if room.interval_s or not room.batches else " Name it with --interval."
        return f"What {where} sustains is not identifiable from its log: {room.why_not}.{option}{_bound(found)}"
    ends = f"{units.scaled(room.low, '', 2)} to {units.scaled(room.high, '', 2)}"
    left = room.left
    if left is None or left <= 0:
        rest = f"its peak asked for {units.rate(room.peak_rate, 2)}, which is more"
    else:
        rest = f"its peak asked for {units.rate(room.peak_rate, 2)}, so {units.share(round(left, 2))} more would fit"
    cap = ""
    if room.capped and room.admitted_rate is not None:
        cap = f", but the cap on its batches ({_cap(found)}) admits {units.rate(room.admitted_rate, 2)}"
    return f"{where} sustains {units.rate(room.rate, 2)} (90 %: {ends}){cap}; {rest}."


def _ends(found: Observed) -> bool:
    """Whether its runs take what waits and end, and no interval was asked about, so that their rate is no load."""
    return found.ending is not None and found.headroom.interval_s == found.ending.full_s


def _cap(found: Observed) -> str:
    """Name the option that limits a batch of its sources."""
    of_files = found.running.sources and all(one.startswith(_OF_FILES) for one in found.running.sources)
    return "maxFilesPerTrigger or maxBytesPerTrigger" if of_files else "maxOffsetsPerTrigger"


def _runs_of(where: str, ending: EndingRuns, asked: EndingRun | None) -> str:
    """Describe how long runs that end take, and how long the requested one would take on the same slots."""
    said = (
        f"A run of {where} takes what there is and ends: usually {units.scaled(ending.rows, 'rows')} in "
        f"{about(ending.lasts_s)}, at most {units.scaled(ending.most_rows, 'rows')} in {about(ending.most_s)}. Full "
        f"batches are processed at {units.rate(ending.rate, 2)}; the largest holds {ending.largest:,} rows."
    )
    if asked is None:
        return said
    lasts_s = asked.lasts_s(ending.rate)
    kept = "within" if lasts_s <= asked.deadline_s else "beyond"
    asked_s = about(asked.deadline_s)
    return f"{said} So {units.scaled(asked.rows, 'rows')} take about {about(lasts_s)}, {kept} the {asked_s} asked for."


def _bound(found: Observed) -> str:
    """Describe the load, and the least that is sustained; empty where neither is known."""
    room = found.headroom
    if not room.mean_rate:
        return ""
    held = "all batches have the same number of rows, so a cap may limit them: they take"
    what = held if room.may_be_held else "its load is"
    load = f"{what} {units.rate(room.mean_rate, 2)}, {units.rate(room.peak_rate, 2)} at the peak"
    least = f"it sustains at least {units.rate(room.at_least, 2)}" if room.at_least else ""
    said = "; ".join(filter(None, (least, load)))
    return f" {said[0].upper()}{said[1:]}."


def _verdict(found: Observed) -> tuple[str, str]:
    """Judge the head-room at the peak, by the rate and its interval's low end; return a word and its style."""
    room = found.headroom
    if _ends(found):
        return ("its runs end", "")
    if room.rate is None:
        enough = room.at_least > room.peak_rate * (1 + _TIGHT) and not room.may_be_held
        return ("safe, by a bound", "safe") if enough else ("not identifiable", "unsure")
    admitted = math.inf if room.admitted_rate is None else room.admitted_rate
    if min(room.low, admitted) > room.peak_rate * (1 + _TIGHT):
        return ("safe", "safe")
    if room.capped:
        return ("limited by its cap", "risky")
    return ("risky", "risky") if room.rate > room.peak_rate else ("behind at the peak", "unsure")


def _doubts(found: Observed) -> dict[str, Advice]:
    """Return why the verdict is not safe, each with a remedy; empty if it is safe or nothing is known."""
    room = found.headroom
    if room.rate is None or _verdict(found)[1] in {"safe", ""}:
        return {}
    tight, room_asked = room.peak_rate * (1 + _TIGHT), f"less than {units.percent(_TIGHT)} above the peak"
    if room.admitted_rate is not None and room.admitted_rate <= min(room.low, tight):
        admitted = units.rate(room.admitted_rate, 2)
        return {f"The cap on its batches admits {admitted}, {room_asked}.": Advice(f"Raise {_cap(found)}.")}
    rate = float(f"{tight:.2g}")
    plans = () if found.planned is None else found.planned.plans
    safe = [plan.rate for plan in plans if plan.verdict is not None and plan.verdict.level == "safe"]
    planned = [plan.rate for plan in plans if plan.rate == rate or (plan.rate > rate and plan.rate in safe)]
    advised = (
        Advice(f"See what is planned for {units.rate(min(planned))}.")
        if planned
        else Advice("Run", found.asked.observe(rate, found.asked.risk))
    )
    return {f"The interval's low end, {units.scaled(room.low, '', 2)}, is {room_asked}.": advised}


def _slots_twice(found: Observed) -> str:
    """Explain why the plan for the slots in use has another interval than the log; empty if they are equal."""
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


def _limit(found: Observed) -> str:
    """Name the largest part of a batch at the sustained rate; empty where it is not known."""
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


def _outage(found: Observed, outage_s: float) -> str:
    """Describe how long the query needs to catch up after an outage at its peak; empty where that is not known."""
    seconds, at_worst = found.catch_up_s(outage_s), found.catch_up_s(outage_s, at_worst=True)
    if seconds is None or at_worst is None or not outage_s or _ends(found):
        return ""
    said = f"After an outage of {units.seconds(outage_s)} at the peak it"
    if math.isinf(seconds):
        return f"{said} never catches up."
    worst = f"{about(at_worst)} at" if math.isfinite(at_worst) else "never at"
    return f"{said} has caught up in about {about(seconds)} ({worst} the interval's low end)."


def _comparison(found: Observed) -> list[str]:
    """Describe what a measured study expects of as many cores, and the slots for each target with its growth."""
    held = found.compared
    if held is None:
        return []
    ends = f"{units.scaled(held.low, '', 2)} to {units.scaled(held.high, '', 2)}"
    name = found.running.name
    whose = "" if held.query == name else f", of {held.query} (the log is of {name}),"
    said = (
        f"The study that was measured{whose} expects {units.rate(held.rate, 2)} (90 %: {ends}) from the same number of "
        f"cores, {units.count(held.slots, 'of its slots')}: "
    )
    said += "the two agree" if held.agrees else f"a core here does {held.times:.2g} times the work of a measured one"
    takes = []
    for rate, slots in held.takes:
        held_by = "are out of reach" if slots is None else f"take {units.some(slots, 'slot')} of this kind"
        takes.append(f"{units.rate(rate)} {held_by}")
    return [f"{said}.", *([f"With the growth that was measured, {', and '.join(takes)}."] if takes else [])]


def _what_it_is(found: Observed) -> dict[str, str]:
    running, room = found.running, found.headroom
    operators = dict.fromkeys(one.operator for block in running.blocks for one in block.observation.operators)
    seen = "as the log shows" if running.interval_s == room.interval_s else "as you say"
    interval = f"{units.seconds(room.interval_s)}, {seen}" if room.interval_s else "none: it runs as fast as it can"
    memory = ", as you say" if running.cpu_share is None else f" of {running.memory_mb:,} MB"
    interval = "none: its runs end" if _ends(found) else interval
    load = f"{units.rate(room.mean_rate)} on average, {units.rate(room.peak_rate)} at the peak"
    admitted = f"batches are limited to {units.rate(room.admitted_rate, 2)} ({_cap(found)})"
    longer = f", {units.share(round(room.behind, 3))} of them longer than the interval"
    longer = longer if room.interval_s and not _ends(found) else ""
    cap = f"{admitted}; full batches clear a backlog and do not count for the peak"
    known = {
        "application": " · ".join(filter(None, (running.application, running.spark and f"Spark {running.spark}"))),
        "source": ", ".join(dict.fromkeys(running.sources)),
        "sink": running.sink,
        "operators": ", ".join(operators),
        "slots": "" if not running.slots else f"{running.slots:,}{memory}",
        "partitions": str(max((block.partitions for block in running.usual_blocks), default="")),
        "trigger interval": interval if running.batches else "",
        "load": load if room.mean_rate else "",
        "state": "; ".join(map(_state, running.states)),
        "batches read": f"{units.count(room.batches)}{longer}",
        "beyond what was seen": _reach(found),
        "on other slots": f"{_batches_of(room.left_out)}, left out but for the peak" if room.left_out else "",
        "cap": "" if room.admitted_rate is None else cap,
        "skew": _skew(found),
        "cores": _cores(found),
        "executors": _executors(found),
        **running.facts,
        "ended": running.stopped or "",
    }
    return {name: value for name, value in known.items() if value}


def _batches_of(number: int) -> str:
    return units.count(number, "batch" if number == 1 else "batches")


def _state(state: StateSeen) -> str:
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
        return f"none: the tasks of {operator!r} read equally much"
    warning = "; more slots help less than their number says" if times >= _SKEWED else ""
    return f"the fullest task of {operator!r} has {units.number(times)} times the mean{warning}"


def _executors(found: Observed) -> str:
    """Compare the executors' speed in the busiest block; empty where there is nothing to compare."""
    blocks = found.running.blocks
    paces = max(blocks, key=lambda block: block.rows).observation.executors if blocks else ()
    if not paces:
        return ""
    slow = slow_executors(paces)
    if not slow:
        return f"equally fast: the slowest took {max(pace.times for pace in paces):.2f} times as long as the others"
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


def _plans(found: Observed) -> list[Card]:
    if found.planned is not None and found.planned.plans:
        lead, *rest = of_a_plan.cards(found.planned, source=False)  # the first card has the origin of the figures
        return [lead, *map(fold, rest)]
    reasons = [found.unplanned] if found.unplanned else []
    reasons += (
        [] if found.planned is None else [f"{units.rate(one.rate)}: {one.reason}" for one in found.planned.refused]
    )
    return [Card("plans", "What do other rates take?", " ".join(reasons), kind="no-data")] if reasons else []


def _batches(found: Observed) -> Iterable[Card]:
    batches = found.running.batches
    every = -(-len(batches) // _MOST_ROWS)
    if not batches:
        return
    table = tabulate(
        "Batches" if every == 1 else f"One in {every} batches",
        batches[::every],
        {
            "Begun after (s)": lambda one: round(one.start_s - batches[0].start_s, 3),
            "Rows": lambda one: one.rows,
            "Batch time (s)": lambda one: one.batch_s,
            "Slots": lambda one: one.slots,
        },
    )
    yield Card("batches", "Which batches were read?", f"{_batches_of(len(batches))} with rows.", table=table)


def _operators(found: Observed) -> list[Card]:
    if not found.running.blocks:
        return []
    busiest = max(found.running.blocks, key=lambda block: block.rows)
    seen = busiest.observation.operators
    table = tabulate(
        "Operators",
        seen,
        {
            "Operator": lambda one: one.operator,
            "Tasks": lambda one: one.tasks,
            "Rows in": lambda one: one.records_in,
            "Busy (%)": lambda one: round(100 * one.busyness, 1),
            "Rows/s of a task": lambda one: (
                None if one.true_processing_rate is None else round(one.true_processing_rate)
            ),
            "Fullest task (times the mean)": lambda one: None if one.key_skew is None else round(one.key_skew, 2),
        },
        opened=True,
    )
    worst = max(seen, key=lambda one: one.busyness, default=None)
    said = (
        "No operator was seen."
        if worst is None
        else f"In its busiest {units.seconds(busiest.observation.elapsed_s)} {worst.operator} keeps its tasks busy "
        f"{units.share(round(worst.busyness, 2))} of the time."
    )
    return [Card("operators", "Which operator does the work?", said, table=table)]
