"""``workbench replay``: policies on a changing load."""

import argparse
import json
from dataclasses import fields

from workbench.cli import look
from workbench.cli.console import DONE, check_files
from workbench.cli.progress import progress
from workbench.errors import WorkbenchError
from workbench.records import write_whole
from workbench.study import Replayed, Scenario, paradigms_csv, timelines_csv


def run_replay(options: argparse.Namespace) -> int:
    """Replay the load under each policy, and compare them."""
    check_files((options.output,), (options.query, options.rates, options.prices))
    given = {one.name: getattr(options, one.name) for one in fields(Scenario)}
    given["settings"] = dict(map(_setting, options.settings))
    scenario = Scenario(**{name: value for name, value in given.items() if value is not None})
    trace = scenario.trace()
    with progress() as say:
        found = scenario.replay(trace, say)
    if options.output:
        steps = timelines_csv(found.timelines) if isinstance(found, Replayed) else paradigms_csv(found)
        write_whole(options.output, steps)
    from workbench.answers.replayed import answer  # noqa: PLC0415 - it draws, and plotly takes as long as all else

    if options.json:
        print(json.dumps(answer(found).document(), indent=1))
    else:
        look.show(look.console(), answer(found))
    return DONE


def _setting(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError as error:
        raise WorkbenchError(
            f"--setting {text} is not NAME=VALUE with a number; such as utilization_target=0.7."
        ) from error
