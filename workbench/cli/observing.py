"""``workbench observe``: what a running query sustains, from its log."""

import argparse
import json
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from workbench import units
from workbench.answers import planned as of_a_plan
from workbench.cli import look
from workbench.cli.console import DONE, NOT_SUSTAINED, check_files, print_error
from workbench.cli.progress import progress
from workbench.cli.reporting import write_report
from workbench.cli.watching import watch
from workbench.records import CapacityPlan, planned_to_dict
from workbench.study import observe, planned_document, write_planned

_FILES = ("log", "progress", "prices", "measured")


def run_observe(options: argparse.Namespace) -> int:
    """Read the log, print what it shows, and plan each target; or follow it."""
    if options.watch:
        return watch(options)
    output = Path(options.output or f".workbench/{Path(options.log).name}-plan.json")
    asks = options.targets or options.rows
    written = options.output or (str(output) if asks else None)
    check_files((written, options.report), (options.log, options.progress, options.prices, options.measured))
    asked = {name: getattr(options, name) for name in signature(observe).parameters if hasattr(options, name)}
    with progress() as say:
        say(f"reading {options.log}")
        found = observe(**asked)
    from workbench.answers.observed import answer  # noqa: PLC0415 - it draws, and plotly takes as long as all else

    made = answer(found, 60 * options.outage_min)
    if options.json:
        plans = None if found.planned is None else planned_to_dict(planned_document(found.planned))
        print(json.dumps(made.document() | {"plans": plans, "unplanned": found.unplanned or None}, indent=1))
    else:
        look.show(look.console(), made)
        if found.planned is not None and found.planned.plans:
            _show_plans(found.planned.plans)
    if found.planned is not None and (found.planned.plans or options.output):
        write_planned(found.planned, output)
        if not options.json:
            what = "plans, with Spark's settings" if found.planned.plans else "the run, without a plan"
            look.path(look.console(), what, output)
    for rate, reason in () if found.planned is None else found.planned.refused:
        print_error(f"no plan for {units.rate(rate)}: {reason}")
    if found.unplanned:
        print_error(f"no plans: {found.unplanned}")
    complete = _report(options, asked)
    told = found.headroom.rate is not None or found.headroom.at_least > 0 or found.ending is not None
    planned = not asks or (found.planned is not None and not found.planned.refused)
    return DONE if complete and planned and told else NOT_SUSTAINED


def _show_plans(plans: Sequence[CapacityPlan]) -> None:
    out = look.console()
    out.print()
    out.print(look.rows(of_a_plan.rows(plans)))
    for note in (said for plan in plans for said in of_a_plan.asked_for(plan)):
        look.line(out, note)
    for said, advised in of_a_plan.cautions(plans).items():
        look.advice(out, f"note: {said}", advised)


def _report(options: argparse.Namespace, asked: Mapping[str, Any]) -> bool:
    """Write the report; return whether it is complete."""
    files = {name: str(Path(path).resolve()) for name in _FILES if (path := asked[name])}
    given = {**asked, **files, "targets": list(options.targets) or None}
    known = {name: value for name, value in given.items() if value is not None}
    return write_report("observe", known, options.report, quiet=options.json)
