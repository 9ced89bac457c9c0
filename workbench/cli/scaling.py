"""``workbench replay``: policies on a load that moves."""

import argparse
import json

from workbench.capacity.measurement import write_whole
from workbench.cli.console import DONE, check_file
from workbench.errors import WorkbenchError
from workbench.scaling import replay
from workbench.simulation import PRESETS, RateTrace, preset
from workbench.study.scaling import POLICIES, initial_tasks, timelines_csv
from workbench.views import units


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    replayed = commands.add_parser("replay", help="what autoscaling policies would do on a load that moves, simulated")
    replayed.add_argument("query", metavar="QUERY", help=f"a simulated query: {', '.join(PRESETS)}")
    replayed.add_argument("rates", metavar="CSV", help="the load: columns of time (seconds) and rate (records/s)")
    replayed.add_argument("--time-column", default="time_s", metavar="NAME", help="column of the time (%(default)s)")
    replayed.add_argument(
        "--rate-column", default="rate_per_s", metavar="NAME", help="column of the rate (%(default)s)"
    )
    replayed.add_argument("--slots", type=int, required=True, help="slots at the beginning, dealt out by BIDS2")
    replayed.add_argument("--memory-mb", type=float, default=2048.0, help="memory of one slot, MiB (2048)")
    replayed.add_argument(
        "--policy", nargs="+", default=list(POLICIES), metavar="NAME", help=f"{', '.join(POLICIES)} (all of them)"
    )
    replayed.add_argument("--restart", type=float, default=10.0, help="downtime of a reconfiguration, seconds (10)")
    replayed.add_argument("--json", action="store_true", help="print JSON")
    replayed.add_argument("--output", metavar="FILE", help="every step of every policy as CSV")
    replayed.set_defaults(command=_replay)


def _replay(options: argparse.Namespace) -> int:
    check_file(options.output)
    model = preset(options.query.removeprefix("nexmark:"))
    trace = RateTrace.from_csv(options.rates, options.time_column, options.rate_column)
    unknown = [name for name in options.policy if name not in POLICIES]
    if unknown:
        raise WorkbenchError(f"There is no policy {unknown[0]!r}; use one of {', '.join(POLICIES)}.")
    tasks = initial_tasks(model, options.slots, options.memory_mb)
    lines = {
        name: replay(trace, model, POLICIES[name], tasks, memory_mb=options.memory_mb, restart_s=options.restart)
        for name in options.policy
    }
    rows = {name: line.summary() for name, line in lines.items()}
    if options.output:
        write_whole(options.output, timelines_csv(lines))
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        for name, row in rows.items():
            print(
                f"{name:8} at target {units.share(row['at_target']):>7}  p99 latency "
                f"{units.seconds(row['latency_p99_s']):>10}  {row['core_hours']:,.1f} core-hours  "
                f"{row['reconfigurations']:.0f} reconfigurations"
            )
    return DONE
