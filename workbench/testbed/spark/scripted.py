"""What a script does, found in a process of its own: ``python -m workbench.testbed.spark.scripted``.

It takes the script and the samples of its sources as JSON, and gives `workbench.workload.Recorded` as JSON.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict

import cattrs

from workbench.errors import WorkbenchError
from workbench.records import state_settings
from workbench.redaction import redacted
from workbench.testbed.spark.driver.process import environment_of_modules
from workbench.testbed.spark.driver.session import batch_session, last_line
from workbench.workload import Recorded, Script

_LONGEST_S = 300.0
_STATE_MB = 256


def look_at_script(script: Script, samples: Sequence[tuple[str, str]]) -> Recorded:
    """Run a script in a process of its own, with its streams recorded instead of carried out.

    Parameters
    ----------
    samples
        A sample for each source: the source's name, or "" for the next one, and the path of a file.

    Raises
    ------
    WorkbenchError
        When the process does not end, or ends by itself.
    """
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "workbench.testbed.spark.scripted"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,
            env=environment_of_modules(),
        )
        try:
            found, _ = process.communicate(json.dumps([script.file, script.arguments, samples]), _LONGEST_S)
        except subprocess.TimeoutExpired as error:
            raise WorkbenchError(
                f"The script {script.call} does not come to its end within {_LONGEST_S:g} s, although its streams are "
                "not carried out. Take out what computes for long, or plan a function of it."
            ) from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(0)
        if not found:
            last = redacted(last_line(said.read())) or "it said nothing"
            raise WorkbenchError(f"The process that runs the script {script.call} ended: {last}. Run it by itself.")
    return cattrs.structure(json.loads(found), Recorded)


def main() -> None:
    """Look at the script that standard input names."""
    file, arguments, samples = json.load(sys.stdin)
    ours = os.dup(1)
    os.dup2(2, 1)  # what the script prints is not a result
    from workbench.workload.recording import look  # noqa: PLC0415 - with Spark

    with batch_session() as spark:
        for name, value in state_settings(_STATE_MB).items():  # as in every deployment
            spark.conf.set(name, value)
        found = look(Script(file, tuple(arguments)), spark, [(name, path) for name, path in samples])
    with os.fdopen(ours, "w") as result:
        json.dump(asdict(found), result)


if __name__ == "__main__":
    main()
