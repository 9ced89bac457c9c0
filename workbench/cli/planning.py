"""``workbench plan``: from a study to a deployment."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from workbench import report
from workbench.cli.console import DONE, JOURNAL, NOT_SUSTAINED, check_file, progress, tell_partial
from workbench.journal import Journal
from workbench.study.planning import DryRun, dry_run, run_study, write_planned
from workbench.study.spec import read_study
from workbench.views import units


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    planned = commands.add_parser("plan", help="how many slots of which memory for which rate: measure, model, plan")
    planned.add_argument("study", metavar="STUDY", help="YAML file: query, targets, slots, memory_mb and more")
    planned.add_argument("--dry-run", action="store_true", help="say what would be measured and how long it takes")
    planned.add_argument("--json", action="store_true", help="print JSON")
    planned.add_argument("--journal", default=JOURNAL, help="where every run is recorded (%(default)s)")
    planned.add_argument("--output", metavar="FILE", help="the plans as JSON (.workbench/STUDY-plan.json)")
    planned.add_argument("--report", metavar="FILE", help="also write one offline HTML file")
    planned.set_defaults(command=_plan)


def _plan(options: argparse.Namespace) -> int:
    for path in (options.report, options.output, options.journal):
        check_file(path)
    study = read_study(options.study)
    if options.dry_run:
        return _show_dry_run(dry_run(study), as_json=options.json)
    planned = run_study(study, Journal(options.journal), progress=progress())
    output = Path(options.output or f".workbench/{Path(options.study).stem}-plan.json")
    write_planned(planned, output)
    complete = True
    if options.report:
        made = report.render("plan", {"planned": str(output.resolve())}, options.report)
        tell_partial(made.error)
        complete = made.complete
    if options.json:
        print(output.read_text(encoding="utf-8"))
    else:
        for plan in planned.plans:
            print(plan.sentence())
            for card in plan.cards:
                print(f"  note: {card.finding} {card.advice}")
        print(f"plans: {output}")
        if options.report:
            print(f"report: {Path(options.report).resolve()}")
    for rate, reason in planned.refused:
        print(f"workbench: no plan for {units.rate(rate)}: {reason}", file=sys.stderr)
    return DONE if complete and planned.plans and not planned.refused else NOT_SUSTAINED


def _show_dry_run(would: DryRun, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(asdict(would), indent=1))
        return DONE
    for budget in would.first:
        print(f"measure {budget.slots} slots of {budget.profile.memory_mb} MB")
    print(f"then up to {would.runs[1]} runs in all, {would.runs[0]} at least")
    print(f"about {would.seconds[0] / 60:.0f} to {would.seconds[1] / 60:.0f} minutes")
    return DONE
