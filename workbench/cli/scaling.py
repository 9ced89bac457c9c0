"""``workbench replay``: policies on a load that changes."""

import argparse
import json

from workbench.cli import look
from workbench.cli.console import DONE, check_files
from workbench.cli.progress import progress
from workbench.errors import WorkbenchError
from workbench.records import write_whole
from workbench.study import Replayed, Scenario, paradigms_csv, timelines_csv


def run_replay(options: argparse.Namespace) -> int:
    """Replay the load under each policy, and compare them."""
    check_files((options.output,), (options.query, options.rates, options.prices))
    scenario = Scenario(
        options.query,
        options.rates,
        options.time_column,
        options.rate_column,
        slots=options.slots,
        plan_rate=options.plan_rate,
        memory_mb=options.memory_mb,
        managed_mb=options.managed_mb,
        policies=options.policy or (),
        settings=dict(_setting(text) for text in options.setting),
        restart_s=options.restart,
        response=options.response or (),
        workers=options.workers,
        worker_slots=options.worker_slots,
        worker_cpus=options.worker_cpus,
        worker_io_mb=options.worker_io_mb,
        worker_net_mb=options.worker_net_mb,
        prices=options.prices,
        instance=options.instance,
        hot_key=options.hot_key or (),
        shuffle_keys=options.shuffle_keys or (),
        keys=options.keys or (),
        seed=options.seed,
    )
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
