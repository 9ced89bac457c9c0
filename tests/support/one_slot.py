"""Scripts that start a session of one slot without a testbed, each in a process of its own."""

import json
import os
import subprocess
import sys

from workbench.dataflow import Budget, SlotProfile
from workbench.testbed.spark.driver.session import DeploymentSpec


def one_slot(folder, **more):
    """The specification of a deployment in `folder`, with `more` fields."""
    return DeploymentSpec(
        name="count",
        build=None,
        generator=None,
        output_mode="update",
        budget=Budget(1, SlotProfile(1.0, 1200), 1.0),
        folder=folder,
        disk=folder,
        source_partitions=1,
        state_partitions=2,
        **more,
    )


def carried_out(script, folder, **variables):
    """What a script, whose session is in the folder ``run``, writes to ``found.json`` in `folder`."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | variables
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    log = folder / "run" / "jvm.log"
    assert done.returncode == 0, done.stderr[-3000:] + (log.read_text()[-3000:] if log.exists() else "")
    return json.loads((folder / "found.json").read_text())
