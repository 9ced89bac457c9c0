"""``workbench doctor``: what this machine can do, and the bundle that a maintainer needs to repeat a failure."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.text import Text

from workbench import units
from workbench.advice import Advice
from workbench.bundle import collect, write
from workbench.cli import look
from workbench.cli.console import BAD_INPUT, DONE, check_files
from workbench.cli.progress import progress
from workbench.dataflow import Budget, SlotProfile
from workbench.doctor import examine, examine_cluster, examine_speed
from workbench.errors import WorkbenchError
from workbench.study import cluster_of
from workbench.testbed.spark import Finding


def run_doctor(options: argparse.Namespace) -> int:
    """Examine this machine or a cluster, or collect what repeats a failure."""
    if options.bundle is not None:
        return _bundle(options)
    for name in ("yes", "study"):
        if getattr(options, name):
            raise WorkbenchError(f"--{name} is given without --bundle. Add --bundle FILE, or leave --{name} out.")
    cluster = cluster_of(vars(options))
    with progress() as say:
        if cluster is None:
            looked = examine(say.keep)
            say.keep("timing the cores, for three seconds")
            findings = (*looked, examine_speed())
        else:
            say.keep(f"starting Spark and {units.some(options.slots, 'slot')} on the cluster")
            findings = examine_cluster(cluster, Budget(options.slots, SlotProfile(1, options.memory_mb)))
    if options.json:
        look.document([asdict(finding) for finding in findings])
    else:
        _show(findings, "This machine" if cluster is None else "The cluster")
    return DONE if all(finding.fit or not finding.needed for finding in findings) else BAD_INPUT


def _show(findings: Sequence[Finding], place: str) -> None:
    missing = [finding for finding in findings if not finding.fit]
    needed = [finding.thing for finding in missing if finding.needed]
    cannot = (
        f"{place} cannot measure yet: {', '.join(needed)}. You can plan from the simulated engine, recorded rates and "
        "event logs."
    )
    look.answer(cannot if needed else f"{place} can measure.")
    table = look.Columns("", "thing", "found")
    for finding in findings:
        lacks = ("MISSING", "bold red") if finding.needed else ("note", "yellow")
        mark, style = ("ok", "green") if finding.fit else lacks
        table.add_row(Text(mark, style=style), finding.thing, finding.found)
    look.put(table)
    for finding in missing:
        words = f"{finding.fix}{'' if finding.needed else ' (not needed to measure)'}"
        look.advice(f"{finding.thing}:", Advice(words, finding.command))


def _bundle(options: argparse.Namespace) -> int:
    check_files((options.bundle,), (options.journal, options.study))
    target = Path(options.bundle)
    parts = collect(Path(options.journal), None if options.study is None else Path(options.study))
    if options.json:
        listed = [{"name": part.name, "what": part.what, "bytes": part.size} for part in parts]
        look.document({"bundle": str(target), "written": options.yes, "parts": listed})
    else:
        what, size = "has" if options.yes else "would have", units.size(sum(part.size for part in parts))
        look.answer(f"The bundle {what} {units.some(len(parts), 'file')}, {size}:")
        table = look.Columns("file", ">size", "what")
        for part in parts:
            table.add_row(part.name, units.size(part.size), part.what)
        look.put(table)
        look.line(
            "Secrets, your home folder and the names of you and of this machine are replaced. An error of your query "
            "may quote a value of your data: read the bundle before you send it.",
        )
        if not options.yes:
            look.line("Nothing is written yet: add --yes.")
    if options.yes:
        write(parts, target)
        if not options.json:
            look.whole(f"bundle: {target.resolve()}")
    return DONE
