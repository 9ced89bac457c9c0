"""The cluster that a command's options name."""

import argparse
from typing import Any

from workbench.errors import WorkbenchError
from workbench.study import CLUSTER_KEYS, Study
from workbench.testbed.spark import LOCAL, Cluster


def given(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of a cluster among the options, by their names in a study."""
    named = {name: getattr(options, name) for name in ("master", *CLUSTER_KEYS)}
    return {name: value for name, value in named.items() if value is not None}


def cluster_of(options: argparse.Namespace) -> Cluster | None:
    """Make the cluster that the options name; None: this machine."""
    settings = given(options)
    if settings.get("master", LOCAL) == LOCAL:
        for name in settings.keys() & {*CLUSTER_KEYS}:
            raise WorkbenchError(
                f"{name} is given without a cluster. Give the master, such as spark://HOST:7077, too, or leave it out.",
                settings=("master", name),
            )
        return None
    return Cluster(**settings)


def changes(options: argparse.Namespace) -> dict[str, Any]:
    """Return what the options change in a study: its master and the settings of a cluster, which leave the options."""
    settings = given(options)
    if settings.get("master") != LOCAL:
        return settings
    return {name: getattr(Study, name) for name in CLUSTER_KEYS} | settings
