"""Options of ``workbench journal``."""

import argparse
from datetime import date

from workbench.cli.console import JOURNAL


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    journal = commands.add_parser(
        "journal",
        description="List what was measured, show one measurement, compare two, or remove what is not needed. Nothing "
        "is deleted unless you add --yes to prune.",
        epilog="A KEY is a measurement's name in the list, or its beginning: workbench journal show nexmark:q5/1a2b",
    )
    journal.set_defaults(action="list", keys=[])
    _shared(journal, JOURNAL, as_json=False)
    actions = journal.add_subparsers(metavar="ACTION", dest="action", help="list (the default), show, compare, prune")
    listed = actions.add_parser("list", description="List the measurements of a journal, with their sizes.")
    shown = actions.add_parser("show", description="Show one measurement: its rate, its probes, the plans that use it.")
    shown.add_argument("keys", nargs=1, metavar="KEY", help="the measurement")
    compared = actions.add_parser(
        "compare",
        description="Compare two measurements, and say whether chance explains the difference. Of one KEY, its last "
        "two measurements are compared.",
    )
    compared.add_argument("keys", nargs="+", metavar="KEY", help="one or two measurements, the earlier one first")
    pruned = actions.add_parser(
        "prune",
        description="Say what can be removed: the probes that their finished measurement holds itself, those of "
        "measurements that were given up, and the measurements that you name. What plans refer to stays. Nothing is "
        "removed without --yes.",
    )
    pruned.add_argument("keys", nargs="*", metavar="KEY", help="also remove all measurements that begin so")
    pruned.add_argument(
        "--before", type=_day, metavar="DATE", help="also remove those from before a day, as 2026-01-31"
    )
    pruned.add_argument(
        "--plans", nargs="+", default=[], metavar="FILE", help="plans whose measurements stay, next to the journal's"
    )
    pruned.add_argument("--yes", action="store_true", help="remove it")
    for one in (listed, shown, compared, pruned):
        _shared(one, argparse.SUPPRESS, as_json=argparse.SUPPRESS)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day; give one such as 2026-01-31") from None


def _shared(parser: argparse.ArgumentParser, journal: str, *, as_json: object) -> None:
    """Add what may stand before and after the action."""
    parser.add_argument("--journal", default=journal, metavar="FILE", help=f"where the runs are recorded ({JOURNAL})")
    parser.add_argument("--json", action="store_true", default=as_json, help="print JSON")
