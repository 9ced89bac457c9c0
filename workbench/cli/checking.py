"""``workbench doctor``: what this machine can do."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.text import Text

from workbench.cli import look
from workbench.cli.console import BAD_INPUT, DONE
from workbench.cli.masters import cluster_of
from workbench.dataflow import Budget, SlotProfile
from workbench.doctor import Finding, examine, examine_cluster


def run_doctor(options: argparse.Namespace) -> int:
    """Look at what this machine, or a cluster, has."""
    cluster = cluster_of(options)
    if cluster is None:
        findings = examine()
    else:
        findings = examine_cluster(cluster, Budget(options.slots, SlotProfile(1, options.memory_mb)))
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        _show(findings, "This machine" if cluster is None else "The cluster")
    return DONE if all(finding.fit or not finding.needed for finding in findings) else BAD_INPUT


def _show(findings: Sequence[Finding], place: str) -> None:
    """Print whether the place is fit, what was looked at, and how to fix what is missing."""
    out = look.console()
    missing = [finding for finding in findings if not finding.fit]
    needed = [finding.thing for finding in missing if finding.needed]
    verdict = f"{place} cannot measure yet: {', '.join(needed)}." if needed else f"{place} can measure."
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
