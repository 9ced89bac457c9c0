"""``workbench observe``: what a running query sustains, from its log."""

import argparse
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench import report, units
from workbench.cli import look, show_plan
from workbench.cli.console import DONE, NOT_SUSTAINED, check_files, complain, show, tell_partial
from workbench.cli.progress import progress
from workbench.cli.watching import watch
from workbench.records import planned_to_dict
from workbench.study import Observed, observe, planned_document, write_planned
from workbench.views.front import asked_for
from workbench.views.observed_findings import findings
from workbench.views.observed_front import comparison, doubts, facts, limit, outage, sentence, slots_twice


def run_observe(options: argparse.Namespace) -> int:
    """Read the log, say what it shows, and plan each target; or follow it."""
    if options.watch:
        return watch(options)
    output = Path(options.output or f".workbench/{Path(options.log).name}-plan.json")
    written = options.output or (str(output) if options.target or options.rows else None)
    check_files((written, options.report), (options.log, options.progress, options.prices, options.measured))
    with progress() as say:
        say(f"reading {options.log}")
        found = observe(
            options.log,
            query=options.query,
            progress=options.progress,
            interval_s=options.interval,
            slots=options.slots,
            slot_cpus=options.slot_cpus,
            targets=options.target,
            prices=options.prices,
            risk=options.risk,
            measured=options.measured,
            outage_min=options.outage,
            rows=options.rows,
            deadline_s=options.deadline,
            start_s=options.start,
        )
    if options.json:
        print(json.dumps(_as_json(found, 60 * options.outage), indent=1))
    else:
        _show(found, 60 * options.outage)
    if found.planned is not None and (found.planned.plans or options.output):
        write_planned(found.planned, output)
        if not options.json:
            what = "plans, with Spark's settings" if found.planned.plans else "the run, without a plan"
            look.path(look.console(), what, output)
    for rate, reason in () if found.planned is None else found.planned.refused:
        complain(f"no plan for {units.rate(rate)}: {reason}")
    if found.unplanned:
        complain(f"no plans: {found.unplanned}")
    complete = options.report is None or _report(options)
    told = found.headroom.rate is not None or found.headroom.at_least > 0 or found.ending is not None
    planned = not (options.target or options.rows) or (found.planned is not None and not found.planned.refused)
    return DONE if complete and planned and told else NOT_SUSTAINED


def _show(found: Observed, outage_s: float) -> None:
    """Print what the query sustains, what it is, what limits it, and the plans."""
    out = look.console()
    look.answer(out, sentence(found))
    for text in (limit(found), outage(found, outage_s), *comparison(found)):
        if text:
            look.line(out, text)
    for reason, advised in {**findings(found), **doubts(found)}.items():
        look.advice(out, reason, advised)
    table = look.table({"what": "left", "seen": "left"})
    table.columns[0].no_wrap = True  # names of a few words
    for name, value in facts(found).items():
        table.add_row(name, value)
    out.print(table)
    if found.planned is not None and found.planned.plans:
        out.print()
        out.print(show_plan.targets(found.planned.plans))
        for note in (slots_twice(found), *(said for plan in found.planned.plans for said in asked_for(plan))):
            if note:
                look.line(out, note)
        for said, advised in (*show_plan.reasons(found.planned.plans), *show_plan.notes(found.planned.plans)):
            look.advice(out, said, advised)


def _as_json(found: Observed, outage_s: float) -> dict[str, Any]:
    running, planned = found.running, found.planned
    told = asdict(found.headroom)
    if told["high"] == float("inf"):
        told["high"] = None
    return {
        "query": running.name,
        "application": running.application,
        "spark": running.spark,
        "slots": running.slots,
        "memory_mb": running.memory_mb,
        "interval_seen_s": running.interval_s,
        "headroom": told | {"left": found.headroom.left},
        "runs_end": running.ends,
        "runs": None if found.ending is None else asdict(found.ending),
        "batches_seen": {"with_rows": running.with_rows, "all": running.triggers, "starts": running.starts},
        "state": [asdict(one) for one in running.states],
        "findings": {said: str(advised) for said, advised in findings(found).items()},
        "limits": found.limits,
        "skew": None if found.skew is None else {"operator": found.skew[0], "times_the_mean": found.skew[1]},
        "catches_up": None if (seconds := found.catch_up_s(outage_s)) is None else math.isfinite(seconds),
        "catch_up_s": _finite(seconds),
        "compared": None if found.compared is None else asdict(found.compared),
        "plans": None if planned is None else planned_to_dict(planned_document(planned)),
        "unplanned": found.unplanned or None,
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or value == float("inf") else value


def _report(options: argparse.Namespace) -> bool:
    """Write the report; whether it is complete."""
    given = {
        "log": str(Path(options.log).resolve()),
        "query": options.query,
        "progress": options.progress and str(Path(options.progress).resolve()),
        "interval_s": options.interval,
        "slots": options.slots,
        "slot_cpus": options.slot_cpus,
        "targets": list(options.target) or None,
        "prices": options.prices and str(Path(options.prices).resolve()),
        "risk": options.risk,
        "measured": options.measured and str(Path(options.measured).resolve()),
        "outage_min": options.outage,
        "rows": options.rows,
        "deadline_s": options.deadline,
        "start_s": options.start,
    }
    made = report.render("observe", {name: value for name, value in given.items() if value is not None}, options.report)
    if not options.json:
        show(f"report: {Path(options.report).resolve()}")
    tell_partial(made.error)
    return made.complete
