"""``workbench replay``: policies on a changing load."""

import argparse
from dataclasses import fields

from workbench.cli import look
from workbench.cli.console import DONE, check_files
from workbench.cli.progress import progress
from workbench.errors import WorkbenchError
from workbench.records import write_whole
from workbench.study import Scenario


def run_replay(options: argparse.Namespace) -> int:
    """Replay the load under each policy, and compare them."""
    check_files((options.output,), (options.query, options.rates, options.prices))
    given = {one.name: getattr(options, one.name) for one in fields(Scenario)}
    given["settings"] = {}
    for text in options.settings:
        name, _, value = text.partition("=")
        try:
            given["settings"][name] = float(value)
        except ValueError as error:
            raise WorkbenchError(
                f"--setting {text} is not NAME=VALUE with a number; such as utilization_target=0.7."
            ) from error
    scenario = Scenario(**{name: value for name, value in given.items() if value is not None})
    trace = scenario.trace()
    with progress() as say:
        found = scenario.replay(trace, say)
    if options.output:
        write_whole(options.output, found.csv())
    from workbench.answers.replayed import answer  # noqa: PLC0415 - it draws, and plotly takes as long as all else

    made = answer(found)
    if options.json:
        look.document(made.document())
    else:
        look.show(made)
        if options.output:
            look.whole(f"steps: {options.output}, where latency_s is {found.steps_latency}")
    return DONE
