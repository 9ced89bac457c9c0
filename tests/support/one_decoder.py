"""Samples of topics that are decoded by one process with one Spark session: starting both takes most of a capture."""

import json
import subprocess
import sys
import tempfile
from contextlib import contextmanager

from workbench.testbed.spark.driver.process import environment_of_modules

SERVES = """
import io, json, sys
from contextlib import nullcontext
from workbench.testbed.spark.driver.process import answering
from workbench.testbed.spark.kafka import decoding

asked = sys.stdin
with answering() as answers, decoding.batch_session(json.loads(asked.readline())) as spark:
    decoding.batch_session = lambda _: nullcontext(spark)
    for line in asked:
        said = io.StringIO()
        sys.stdin, decoding.answering = io.StringIO(line), lambda said=said: nullcontext(said)
        decoding.main()
        spark.catalog.clearCache()
        print(said.getvalue(), file=answers, flush=True)
"""


@contextmanager
def decoding(jars):
    """Yield a replacement of `ask_apart` for samples; Spark starts with the first one."""
    process = None
    with tempfile.TemporaryFile() as said:

        def ask(_, asked):
            nonlocal process
            if process is None:
                process = subprocess.Popen(
                    [sys.executable, "-P", "-c", SERVES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said,
                    text=True, env=environment_of_modules(),
                )  # fmt: skip
                process.stdin.write(json.dumps(jars) + "\n")
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            said.seek(0)
            return answer, said.read().decode(errors="replace")[-1000:]

        yield ask
        if process is not None:
            process.communicate()
