"""What a script does, determined in a separate process.

`main` takes the script and the samples of its sources as JSON, and gives `workbench.workload.Recorded` as JSON.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

import cattrs

from workbench.errors import WorkbenchError
from workbench.records import state_settings
from workbench.redaction import redacted
from workbench.testbed.spark.driver.process import answering, ask_apart
from workbench.testbed.spark.driver.session import batch_session, last_line
from workbench.workload import Recorded, Script

_LONGEST_S = 300.0
_STATE_MB = 256


def look_at_script(script: Script, samples: Sequence[tuple[str, str]]) -> Recorded:
    """Run a script in a separate process, with its streams recorded instead of carried out.

    Of each source, `samples` have its name, or "" for the next one, and the path of a file. The error is a
    `WorkbenchError` when the process does not end, or ends by itself.
    """
    asked = [script.file, script.arguments, samples]
    found, said, in_time = ask_apart("workbench.testbed.spark.scripted", asked, _LONGEST_S)
    if not in_time:
        raise WorkbenchError(
            f"The script {script.call} does not end within {_LONGEST_S:g} s, although its streams are "
            "not run. Take out what computes for long, or plan a function of it."
        )
    if not found:
        last = redacted(last_line(said)) or "it printed nothing"
        raise WorkbenchError(f"The process that runs the script {script.call} ended: {last}. Run it alone.")
    return cattrs.structure(json.loads(found), Recorded)


def main() -> None:
    """Examine the script that standard input names."""
    file, arguments, samples = json.load(sys.stdin)
    with answering() as result:
        from workbench.workload.recording import look  # noqa: PLC0415 - with Spark

        with batch_session() as spark:
            for name, value in state_settings(_STATE_MB).items():  # as in every deployment
                spark.conf.set(name, value)
            found = look(Script(file, tuple(arguments)), spark, [(name, path) for name, path in samples])
        json.dump(asdict(found), result)
