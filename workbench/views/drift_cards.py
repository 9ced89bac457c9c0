"""The card of a comparison with an earlier run: what changed, and is it outside the noise."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from workbench import units
from workbench.errors import WorkbenchError
from workbench.records import Measurement
from workbench.study import Change, Drift, Planned, drift, read_planned, study_drift
from workbench.views.cards import Card, tabulate

TITLE = "What changed since the previous run?"

_WORDS = {"lower": "fell", "higher": "rose"}


def drift_cards(found: Drift) -> list[Card]:
    """Make the cards of `found`: the changes, the earlier plans, the circumstances that differ."""
    table = tabulate(
        f"Changes from {units.moment(found.before_at)} to {units.moment(found.now_at)}",
        dict.fromkeys((found.overall, *found.changes, *found.costs)),
        {
            "What": lambda one: one.thing,
            "Unit": lambda one: one.unit,
            "Before": lambda one: one.before,
            "Now": lambda one: one.now,
            "Change (%)": lambda one: None if one.ratio is None else 100 * (one.ratio - 1),
            "Fall by chance (up to %)": lambda one: 100 * one.fall_by_chance,
            "Rise by chance (up to %)": lambda one: 100 * one.rise_by_chance,
            "Judgement": lambda one: one.judgement,
        },
        opened=True,
    )
    made = [Card("drift", TITLE, finding(found), table=table, kind="health" if found.losses else "result")]
    if found.promises:
        made.append(_promises(found))
    if found.differences:
        made.append(_differences(found))
    return made


def finding(found: Drift) -> str:
    """Describe in a sentence or two what changed, a loss first."""
    overall, since = found.overall, f"since {units.moment(found.before_at)}"
    least = "" if overall.ratio is not None else "at least "
    if overall.judgement == "unknown":
        text = (
            f"Whether the capacity of {found.query} changed {since} is unknown: the maximum of no budget is known "
            "from both sides in both runs."
        )
    elif overall.judgement == "within noise":
        text = (
            f"The capacity of {found.query} did not change beyond the noise {since}: {_signed(overall)} where chance "
            f"explains {_chance(overall)}."
        )
    else:
        text = (
            f"The capacity of {found.query} {_WORDS[overall.judgement]} by {least}{_amount(overall)} {since}; "
            f"chance explains {_chance(overall)}."
        )
    text += found.other_cores()
    others = [
        each for each in (*found.changes, *found.costs) if each != overall and each.judgement in {"lower", "higher"}
    ]
    if not others:
        return text
    outside = f"Outside the noise: {', '.join(f'{each.thing} {_signed(each)}' for each in others)}."
    hidden = found.losses and overall.judgement != "lower"
    return f"{outside} {text}" if hidden else f"{text} {outside}"


def previous_measurement(path: str | None, now: Measurement) -> list[Card]:
    """Compare `now` with the measurement in the file `path`; no card without a path, the reason if it is unreadable."""
    return _since(path, lambda file: drift(Measurement.from_json(file), now))


def previous_plans(path: str | None, now: Planned) -> list[Card]:
    """Compare `now` with the study in the file `path`; no card without a path, the reason if it is unreadable."""
    return _since(path, lambda file: study_drift(read_planned(Path(file)), now))


def changes(path: str, now: Planned) -> list[Card]:
    """Compare `now` with the study in the file `path`, if there is one; the first card names the query."""
    first = Card(
        "drift", TITLE, "This is the first run of the study; the next one is compared with it.", kind="not-yet"
    )
    changed, *details = previous_plans(path, now) or [first]
    title = f"What changed for {now.study.query} since the previous run?"
    table = None if changed.table is None else replace(changed.table, opened=False)
    return [replace(changed, title=title, table=table), *details]


def _since(path: str | None, compare: Callable[[str], Drift]) -> list[Card]:
    if not path:
        return []
    try:
        return drift_cards(compare(path))
    except WorkbenchError as error:
        return [Card("drift", TITLE, str(error), kind="not-yet")]


def _promises(found: Drift) -> Card:
    kept = sum(promise.verdict == "holds" for promise in found.promises)
    broken = [promise for promise in found.promises if promise.verdict != "holds"]
    held = f"{kept} of {units.some(len(found.promises), 'plan')} of the previous run"
    text = f"{held} {'holds' if kept == 1 else 'hold'} with the margin by the present model."
    for promise in broken:
        then = "" if promise.slots_now is None else f"; planned now: {units.some(promise.slots_now, 'slot')}"
        text += (
            f" For {units.rate(promise.rate)} the plan was {units.some(promise.budget.slots, 'slot')}, now expected to "
            f"carry {units.rate(promise.expected)}: {_LONG[promise.verdict]}{then}."
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
    return Card(
        "promises", "Do the previous plans still hold?", text, table=table, kind="health" if broken else "result"
    )


_LONG = {"eats its margin": "enough, but with less margin than asked for", "too small": "too little"}


def _differences(found: Drift) -> Card:
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
    return Card("circumstances-changed", "Was it measured under the same circumstances?", text, table=table)


def _signed(change: Change) -> str:
    """Write a change with its sign, or its lower bound."""
    sign = "-" if change.bounds[1] < 1 else "+"
    return f"{'' if change.ratio is not None else 'at least '}{sign}{_amount(change)}"


def _amount(change: Change) -> str:
    """Relative change; where it is open, the end nearer to zero."""
    least, most = change.bounds
    return units.percent(1 - most if most < 1 else least - 1, 1)


def _chance(change: Change) -> str:
    """Describe how large a change in this direction chance explains."""
    if change.bounds[1] < 1:
        return f"a fall of up to {units.percent(change.fall_by_chance, 1)}"
    return f"a rise of up to {units.percent(change.rise_by_chance, 1)}"
