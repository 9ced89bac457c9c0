"""Options of ``workbench report``."""

import argparse

from workbench.cli.options.numbers import number


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    reported = commands.add_parser(
        "report",
        description="Render a report as one HTML file that opens offline. NAME is capacity (carries a study out and "
        "compares it with its previous run), plan, measure, observe, papers, placement, scaling, the path of a report "
        "notebook, or a JSON file that measure or plan wrote.",
        epilog="A failed step gives a partial report that says what failed, and exit code 1. For example: "
        "workbench report capacity capacity.html -p study data/q5.yaml",
    )
    reported.add_argument("name", metavar="NAME", help="which report")
    reported.add_argument("output", metavar="FILE", nargs="?", help="the HTML file to write")
    reported.add_argument(
        "-p", "--parameter", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help="set a parameter"
    )
    reported.add_argument("-f", "--file", metavar="YAML", help="set the parameters in this file")
    reported.add_argument(
        "--executed", action="store_true", help="NAME is a notebook that a scheduler has run: only write it as HTML"
    )
    reported.add_argument("--parameters", action="store_true", help="list the report's parameters and end")
    reported.add_argument("--title", help="of the page")
    reported.add_argument("--timeout", type=number, metavar="S", help="longest time of one step, seconds")
    reported.add_argument("--json", action="store_true", help="print JSON")
