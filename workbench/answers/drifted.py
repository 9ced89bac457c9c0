"""What changed since an earlier run: whether chance explains it, whether earlier plans still hold, what differs."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from workbench import units
from workbench.answers import page
from workbench.answers.answer import SHARE, Answer, Fact, Unit
from workbench.errors import WorkbenchError
from workbench.records import Measurement
from workbench.study import Change, Drift, Planned, drift, read_planned, study_drift
from workbench.views.cards import Card, tabulate

_TITLE = "What changed since the previous run?"
_FELL_OR_ROSE = {"lower": "fell", "higher": "rose"}
_LACKS = {"eats its margin": "enough, but with less margin than asked for", "too small": "too little"}
_UP_TO = Unit(units.share, "up to %", 100.0)


class CapacityFellError(WorkbenchError):
    """The capacity is lower than before, beyond the noise."""


def answer(found: Drift) -> Answer:
    """Answer what changed between two runs, a loss first."""
    return Answer(
        "drift",
        _TITLE,
        _sentence(found),
        "",
        rows=tuple(map(_row, dict.fromkeys((found.overall, *found.changes, *found.costs)))),
        caption=f"Changes from {units.moment(found.before_at)} to {units.moment(found.now_at)}",
        listed=False,
        also=(partial(_promises, found), partial(_differences, found)),
    )


def cards(found: Drift) -> list[Card]:
    """Make the cards of what changed; a loss makes the first one advice."""
    lead, *rest = page.cards(answer(found), source=False)
    table = lead.table and replace(lead.table, opened=True)
    return [replace(lead, table=table, kind="health" if found.losses else "result"), *rest]


def since(path: str | None, now: Measurement | Planned) -> list[Card]:
    """Compare `now` with the run in the file `path`: no cards without a path, one card with the reason if it is bad."""
    if not path:
        return []
    try:
        if isinstance(now, Measurement):
            return cards(drift(Measurement.from_json(path), now))
        return cards(study_drift(read_planned(Path(path)), now))
    except WorkbenchError as error:
        return [Card("drift", _TITLE, str(error), kind="not-yet")]


def changes(path: str, now: Planned) -> list[Card]:
    """Compare `now` with the study in the file `path`, if there is one; the first card names the query."""
    first = Card(
        "drift", _TITLE, "This is the first run of the study; the next one is compared with it.", kind="not-yet"
    )
    changed, *details = since(path, now) or [first]
    title = f"What changed for {now.study.query} since the previous run?"
    return [replace(changed, title=title, table=changed.table and replace(changed.table, opened=False)), *details]


def refuse_loss(found: Drift) -> None:
    """Raise an error where capacity was lost, so that a scheduled run fails.

    Chance alone causes it once in 20 times at most: once in 40 by the overall capacity, once in 40 by any one budget's.
    """
    if found.losses:
        worst = found.losses[0]
        where = "" if worst is found.overall else f" on one budget ({worst.thing})"
        raise CapacityFellError(
            f"{_changed(found, worst, where)}{found.other_cores()} Look at what else changed, and measure again."
        )


def _row(one: Change) -> tuple[Fact, ...]:
    return (
        Fact(one.thing, "thing", "What"),
        Fact(one.unit, "unit", "Unit"),
        Fact(one.before, "before", "Before"),
        Fact(one.now, "now", "Now"),
        Fact(one.ratio, "ratio"),
        Fact(None if one.ratio is None else one.ratio - 1, name="Change", unit=SHARE),
        Fact(one.judgement, "judgement"),
        Fact(one.fall_by_chance, "fall_by_chance", "Fall by chance", _UP_TO),
        Fact(one.rise_by_chance, "rise_by_chance", "Rise by chance", _UP_TO),
        Fact(one.judgement, name="Judgement"),
    )


def _sentence(found: Drift) -> str:
    overall, at = found.overall, units.moment(found.before_at)
    if overall.judgement == "unknown":
        text = (
            f"Whether the capacity of {found.query} changed since {at} is unknown: the maximum of no budget is known "
            "from both sides in both runs."
        )
    elif overall.judgement == "within noise":
        text = (
            f"The capacity of {found.query} did not change beyond the noise since {at}: "
            f"{_amount(overall, signed=True)} where chance explains {_chance(overall)}."
        )
    else:
        text = _changed(found, overall)
    text += found.other_cores()
    each_by = [
        f"{each.thing} {_amount(each, signed=True)}"
        for each in (*found.changes, *found.costs)
        if each != overall and each.judgement in _FELL_OR_ROSE
    ]
    if not each_by:
        return text
    outside = f"Outside the noise: {', '.join(each_by)}."
    hidden = found.losses and overall.judgement != "lower"
    return f"{outside} {text}" if hidden else f"{text} {outside}"


def _changed(found: Drift, change: Change, where: str = "") -> str:
    """Describe how much the capacity fell or rose, and how much of that chance explains."""
    return (
        f"The capacity of {found.query}{where} {_FELL_OR_ROSE[change.judgement]} by {_amount(change)} since "
        f"{units.moment(found.before_at)}; chance explains {_chance(change)}."
    )


def _promises(found: Drift) -> list[Card]:
    if not found.promises:
        return []
    kept = sum(promise.verdict == "holds" for promise in found.promises)
    broken = [promise for promise in found.promises if promise.verdict != "holds"]
    held = f"{kept} of {units.some(len(found.promises), 'plan')} of the previous run"
    text = f"{held} {'holds' if kept == 1 else 'hold'} with the margin by the present model."
    for promise in broken:
        then = "" if promise.slots_now is None else f"; planned now: {units.some(promise.slots_now, 'slot')}"
        text += (
            f" For {units.rate(promise.rate)} the plan was {units.some(promise.budget.slots, 'slot')}, now expected to "
            f"carry {units.rate(promise.expected)}: {_LACKS[promise.verdict]}{then}."
        )
    table = tabulate(
        "Plans of the previous run",
        found.promises,
        {
            "Target (records/s)": lambda one: one.rate,
            "Planned then (slots)": lambda one: one.budget.slots,
            "Memory per slot (MB)": lambda one: one.budget.profile.memory_mb,
            "Capacity now (records/s)": lambda one: one.expected,
            "Interval low (records/s)": lambda one: one.low,
            "Interval high (records/s)": lambda one: one.high,
            "Planned now (slots)": lambda one: one.slots_now,
            "Judgement": lambda one: one.verdict,
        },
        opened=True,
    )
    title = "Do the previous plans still hold?"
    return [Card("promises", title, text, table=table, kind="health" if broken else "result")]


def _differences(found: Drift) -> list[Card]:
    if not found.differences:
        return []
    table = tabulate(
        "Circumstances that differ",
        found.differences,
        {"What": lambda one: one.thing, "Before": lambda one: one.before, "Now": lambda one: one.now},
        opened=True,
    )
    text = (
        f"{units.some(len(table.rows), 'circumstance')} differ{'s' if len(table.rows) == 1 else ''} "
        "between the two runs; a change of capacity may come from there."
    )
    return [Card("circumstances-changed", "Was it measured under the same circumstances?", text, table=table)]


def _amount(change: Change, *, signed: bool = False) -> str:
    """Write the relative change; of an open one, the end that is nearer to none, with 'at least'."""
    least, most = change.bounds
    fell = most < 1
    sign = ("-" if fell else "+") * signed
    return f"{'at least ' * (change.ratio is None)}{sign}{units.percent(1 - most if fell else least - 1, 1)}"


def _chance(change: Change) -> str:
    """Describe how large a change to this side chance explains."""
    if change.bounds[1] < 1:
        return f"a fall of up to {units.percent(change.fall_by_chance, 1)}"
    return f"a rise of up to {units.percent(change.rise_by_chance, 1)}"
