"""``workbench doctor``: what this machine can do."""

import argparse
import json
from dataclasses import asdict

from workbench.cli.console import BAD_INPUT, DONE
from workbench.doctor import examine


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    doctor = commands.add_parser(
        "doctor",
        description="Check whether this machine can measure, draw and report, and show how to fix what is missing; the "
        "exit code is 2 if something is lacking that measuring needs.",
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.set_defaults(command=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    findings = examine()
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        for finding in findings:
            print(f"{'ok  ' if finding.fit else 'LACK'}  {finding.thing:9} {finding.found}")
            if not finding.fit:
                print(f"      {'':9} fix: {finding.fix}{'' if finding.needed else ' (not needed to measure)'}")
    return DONE if all(finding.fit or not finding.needed for finding in findings) else BAD_INPUT
