"""Options of every command that may measure on a cluster."""

import argparse

from workbench.cli.options.numbers import number, whole


def add_master(parser: argparse.ArgumentParser) -> None:
    """Add the master and the settings of a cluster; none has a default, so that a study's own stay."""
    group = parser.add_argument_group("cluster", "where Spark runs, if not on this machine; docs/clusters.md has more")
    group.add_argument("--master", metavar="URL", help="spark://HOST:PORT, k8s://https://HOST:PORT or yarn (local)")
    group.add_argument("--checkpoint", metavar="URI", help="folder that this machine and all executors reach")
    group.add_argument("--executor-slots", type=whole, metavar="N", help="slots of one executor (1)")
    group.add_argument("--python", metavar="PATH", help="the executors' Python: a path, or a name on their PATH")
    group.add_argument(
        "--environment",
        metavar="ARCHIVE",
        help="the executors' Python and packages, as conda-pack or venv-pack packs them",
    )
    group.add_argument("--driver-host", metavar="HOST", help="this machine's address as executors reach it")
    group.add_argument("--event-log", metavar="URI", help="folder to copy each deployment's event log to")
    group.add_argument("--allocation-s", type=number, metavar="SECONDS", help="longest wait for executors (120)")
