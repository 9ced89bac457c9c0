"""``workbench doctor``: what this machine can do."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.text import Text

from workbench.cli import look
from workbench.cli.console import BAD_INPUT, DONE
from workbench.doctor import Finding, examine


def run_doctor(options: argparse.Namespace) -> int:
    """Look at what this machine has."""
    findings = examine()
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        _show(findings)
    return DONE if all(finding.fit or not finding.needed for finding in findings) else BAD_INPUT


def _show(findings: Sequence[Finding]) -> None:
    """Print whether this machine is fit, what was looked at, and how to fix what is missing."""
    out = look.console()
    missing = [finding for finding in findings if not finding.fit]
    needed = [finding.thing for finding in missing if finding.needed]
    verdict = f"This machine cannot measure yet: {', '.join(needed)}." if needed else "This machine can measure."
    look.answer(out, verdict)
    table = look.table({"": "left", "thing": "left", "found": "left"})
    for finding in findings:
        mark = (
            Text("ok", style="green") if finding.fit else Text("LACK", style="bold red" if finding.needed else "yellow")
        )
        table.add_row(mark, finding.thing, finding.found)
    out.print(table)
    for finding in missing:
        look.line(out, f"{finding.thing}: fix: {finding.fix}{'' if finding.needed else ' (not needed to measure)'}")
