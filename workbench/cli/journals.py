"""``workbench journal``: list, show, compare and prune measurements."""

import argparse
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench import measuring, units
from workbench.advice import Advice
from workbench.answers.answer import COUNT, RATE, SECONDS, Fact, Unit, fields
from workbench.cli import look
from workbench.cli.console import DONE, JOURNAL
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.records import Measurement
from workbench.speed import relative_speed
from workbench.spelling import spelled_options
from workbench.study import drift

_DIGEST = 8  # letters of a key's digest that are shown: enough to distinguish measurements
_MOST_KEYS = 2


def run_journal(options: argparse.Namespace) -> int:
    """Carry out the requested action on the journal."""
    journal = Journal(options.journal)
    actions = {"list": _list, "show": _show, "compare": _compare, "prune": _prune}
    actions[options.action or "list"](journal, options)
    return DONE


def _list(journal: Journal, options: argparse.Namespace) -> None:
    held = measuring.read_contents(journal)
    if options.json:
        plans = _plans(journal)
        look.document([_as_json(one, plans) for one in held])
        return
    size, spare = sum(one.size for one in held), sum(one.spare for one in held)
    look.answer(f"{units.some(len(held), 'measurement')} in {journal.path}, {units.size(size)}.")
    if not held:
        look.line("Run workbench measure or workbench plan first, or name another file with --journal.")
        return
    table = look.Columns("measurement", ">slots", ">MB each", ">records/s", "measured", ">size")
    for one in held:
        budget = map(units.count, (one.budget.slots, one.budget.profile.memory_mb))
        sustained = "" if one.last is None else _sustained(one.last)
        table.add_row(_short(one), *budget, sustained, _when(one), units.size(one.size))
    look.put(table)
    if spare:
        where = "" if str(journal.path) == JOURNAL else f" {spelled_options({'journal': journal.path})}"
        advised = Advice("To remove that, run", f"workbench journal prune --yes{where}")
        look.advice(f"note: nothing reads {units.size(spare)} of it any more.", advised)


def _show(journal: Journal, options: argparse.Namespace) -> None:
    one = measuring.find_recorded(measuring.read_contents(journal), options.keys[0])
    plans = _plans(journal)
    if options.json:
        look.document(_as_json(one, plans))
        return
    from workbench.answers.measured import answer, probe_row  # noqa: PLC0415 - plotly takes as long as all else

    last = one.last
    look.answer(f"{one.key} is not finished." if last is None else answer(last).headline)
    facts = {
        "measurement": one.key,
        "on": _budget(one),
        "measured": _when(one),
        "testbed": "" if last is None else last.testbed,
        **one.machine.described(),
        "speed of the cores": "" if last is None or last.core_speed is None else str(last.core_speed),
        "size": units.size(one.size),
        "used by": ", ".join(measuring.files_referring(one, plans)) or "no plan next to the journal",
    }
    look.put(look.rows([(Fact(name, name="What"), Fact(said, name="Seen")) for name, said in facts.items() if said]))
    seen = one.state.history if last is None else last.estimate.probes
    if seen:
        look.put("", look.rows([probe_row(probe) for probe in seen]))
    if one.open_probes:
        probes = f"{units.some(one.open_probes, 'probe')} recorded of a measurement that is not finished"
        look.line(f"note: {probes}; the command that began it goes on from there.")


def _compare(journal: Journal, options: argparse.Namespace) -> None:
    from workbench.answers.drifted import answer  # noqa: PLC0415 - as above

    before, now = _two(measuring.read_contents(journal), options.keys)
    try:
        found, reason = drift(before, now), ""
    except WorkbenchError as error:  # another query or budget: side by side, without a judgement
        found, reason = None, str(error)
    answered = None if found is None else answer(found)
    cores = relative_speed(now.core_speed, before.core_speed)
    if options.json:
        compared = {
            "measurements": [fields(_figures(run)) for run in (before, now)],
            "changes": None if answered is None else answered.document(),
            "cores": None if cores is None else cores._asdict(),
            "why_not": reason or None,
        }
        look.document(compared)
        return
    look.answer(f"Side by side, without a judgement: {reason}" if answered is None else answered.headline)
    look.put(look.rows(_side_by_side(before, now)))
    if cores is not None and (found is None or not cores.differs):  # otherwise the answer says so
        look.line(f"The cores of the second were {cores.words('those of the first')}.")
    for one in () if found is None else found.differences:
        look.line(f"differs: {one.thing}: {one.before}, then {one.now}")


def _prune(journal: Journal, options: argparse.Namespace) -> None:
    plans = _plans(journal, options.plans)
    pruning = measuring.prune_journal(journal, options.keys, options.before, plans, remove=options.yes)
    if options.json:
        found = {
            "removed": options.yes,
            "bytes": pruning.size,
            "spare_lines": pruning.spare_lines,
            "spare_bytes": pruning.spare_size,
            "measurements": [one.key for one in pruning.removed],
            "kept": {one.key: list(files) for one, files in pruning.kept},
        }
        look.document(found)
        return
    size = units.size(pruning.size)
    if not pruning.size:
        look.answer(f"Nothing to remove from {journal.path}.")
    elif options.yes:
        look.answer(f"{size} removed from {journal.path}.")
    else:
        look.answer(f"{size} would be removed from {journal.path}. Nothing is removed yet: add --yes.")
    if pruning.spare_lines:
        spare = f"{units.some(pruning.spare_lines, 'line')} that nothing reads any more"
        what = "probes that their finished measurement holds, and measurements that were given up"
        look.line(f"{spare}, {units.size(pruning.spare_size)}: {what}")
    for one in pruning.removed:
        look.line(f"{_short(one)} on {_budget(one)}, {_when(one)}, {units.size(one.size)}")
    for one, files in pruning.kept:
        one_file = len(files) == 1
        what = f"refer{'s' * one_file} to it; remove {'that file' if one_file else 'those files'} first"
        look.line(f"kept: {_short(one)}: {', '.join(files)} {what}")


def _two(held: Sequence[measuring.Recorded], names: Sequence[str]) -> tuple[Measurement, Measurement]:
    if len(names) > _MOST_KEYS:
        raise WorkbenchError(f"{len(names)} keys are given; two measurements can be compared. Give one or two.")
    found = [measuring.find_recorded(held, name) for name in names]
    finished = [run for one in found for run in one.state.finished[-(1 if len(found) == _MOST_KEYS else 2) :]]
    if len(finished) < _MOST_KEYS:
        lacking = next((one.key for one in found if one.last is None), found[0].key)
        there = units.some(len(finished) if len(found) == 1 else 0, "finished measurement")
        raise WorkbenchError(f"{lacking} has {there}; it takes two to compare. Give another key, or measure it again.")
    return finished[0], finished[1]


def _plans(journal: Journal, more: Sequence[str] = ()) -> measuring.References:
    """Read which measurements the plans next to the journal, and `more` of them, refer to."""
    missing = next((file for file in more if not Path(file).is_file()), None)
    if missing is not None:
        raise WorkbenchError(f"The plans {missing!r} do not exist; check the path.", settings=("plans",))
    return measuring.read_references([*sorted(journal.path.parent.glob("*.json")), *map(Path, more)])


def _short(one: measuring.Recorded) -> str:
    query, _, digest = one.key.rpartition("/")
    return f"{query}/{digest[:_DIGEST]}"


def _when(one: measuring.Recorded) -> str:
    if one.last is None:
        return "not finished"
    times = len(one.state.finished)
    return one.last.started_at[:10] + (f", {times} times" if times > 1 else "")


def _budget(one: measuring.Recorded | Measurement) -> str:
    last = one.last if isinstance(one, measuring.Recorded) else one
    interval = "" if last is not None and not last.ran else f" at {one.budget.interval_s:g} s"
    return f"{one.budget.words}{interval}"


def _sustained(run: Measurement, unit: str = "") -> str:
    """Return the capacity in words; for a run that sustained no rate, its upper bound."""
    estimate = run.estimate
    nothing = estimate.low == 0 and estimate.limit == "query"
    return f"< {units.scaled(estimate.high, unit)}" if nothing else units.scaled(estimate.middle, unit)


def _side_by_side(before: Measurement, now: Measurement) -> list[tuple[Fact, ...]]:
    operators = dict.fromkeys(cost.operator for run in (before, now) for cost in run.costs)
    pairs = zip(_figures(before, operators), _figures(now, operators), strict=True)
    return [
        (Fact(first.name, name="What"), Fact(first.text, name="First"), Fact(second.text, name="Second"))
        for first, second in pairs
        if first.name and (first.text or second.text)
    ]


def _of_budget(budget: Budget) -> dict[str, float]:
    sizes = {"slots": budget.slots, "slot_cpus": budget.profile.cpus, "memory_mb": budget.profile.memory_mb}
    return {**sizes, "interval_s": budget.interval_s}


def _figures(run: Measurement, operators: Iterable[str] = ()) -> tuple[Fact, ...]:
    """Return what a measurement found, with the costs of `operators`."""
    estimate, speed = run.estimate, run.core_speed
    costs = {cost.operator: cost.per_record_s for cost in run.costs}
    return (
        Fact(run.query, "query", "query"),
        Fact(_budget(run), name="on"),
        Fact(run.started_at, "started_at", "measured", Unit(units.moment)),
        Fact(estimate.middle or None, "capacity"),
        Fact(_sustained(run, "records/s"), name="sustains"),
        Fact(estimate.low, "low", "at least", RATE),
        Fact(estimate.high if math.isfinite(estimate.high) else None, "high", "at most", RATE),
        Fact(run.testbed, "testbed"),
        *(Fact(size, name) for name, size in _of_budget(run.budget).items()),
        Fact(None if speed is None else asdict(speed), "core_speed", "cores", Unit(lambda _: str(speed))),
        Fact(estimate.probed, name="probes", unit=COUNT),
        *(Fact(costs.get(one) or None, name=f"{one}, s per record", unit=SECONDS) for one in operators),
    )


def _as_json(one: measuring.Recorded, plans: measuring.References) -> dict[str, Any]:
    return {
        "key": one.key,
        **_of_budget(one.budget),
        "machine": one.machine.described(),
        "finished": [fields(_figures(run)) for run in one.state.finished],
        "open_probes": one.open_probes,
        "bytes": one.size,
        "spare_bytes": one.spare,
        "used_by": list(measuring.files_referring(one, plans)),
    }
