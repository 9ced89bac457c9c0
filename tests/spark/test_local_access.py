"""Who else on the machine gets at a deployment: nobody without its secret, which no command line and no file has."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

# Starts the session of a deployment, counts by key with state in an executor, and looks at all of it from outside.
SCRIPT = """
import json
import socket
import sys
from contextlib import suppress
from pathlib import Path

import psutil
from one_slot import one_slot

from workbench.testbed.spark.driver.session import end_session, start_session

folder = Path.cwd()
spec = one_slot(folder)
spark = start_session(spec)
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1000).option("numPartitions", 2).load()
counted = rows.groupBy((rows["value"] % 7).alias("key")).count()
query = counted.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(folder / "state"))
query = query.trigger(availableNow=True).start()
query.awaitTermination()
processes, commands, places = [], [], []
for process in psutil.Process().children(recursive=True):
    with suppress(psutil.NoSuchProcess):  # a Python worker that ended since, or that nobody has waited for yet
        command, listening = process.cmdline(), process.net_connections("inet")
        processes.append(process)
        commands.append(command)
        places += listening
(executor,) = (one for one, line in zip(processes, commands) if "CoarseGrainedExecutorBackend" in " ".join(line))
secret = executor.environ().get("_SPARK_AUTH_SECRET", "")
found = {
    "rows": query.lastProgress.numInputRows,
    "state": query.lastProgress.stateOperators[0].numRowsUpdated,
    "secret": len(secret),
    "in commands": secret in repr(commands),
    "listening": [one.laddr.ip for one in places if one.status == psutil.CONN_LISTEN or one.type == socket.SOCK_DGRAM],
    "in files": [str(one) for one in folder.rglob("*") if one.is_file() and secret.encode() in one.read_bytes()],
    "log": [one.read_text(errors="replace") for one in (folder / "eventlog").iterdir()],
}
end_session(spark)
Path("found.json").write_text(json.dumps(found))
"""
LOOPBACK = ("127.", "::1", "::ffff:127.")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deployment")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    log = folder / "jvm.log"
    assert done.returncode == 0, done.stderr[-3000:] + (log.read_text()[-3000:] if log.exists() else "")
    return json.loads(Path(folder, "found.json").read_text())


def test_a_query_with_state_runs_where_every_process_must_know_the_secret(found):
    assert found["rows"] == 1000
    assert found["state"] == 7
    assert found["secret"] == 64


def test_the_secret_is_on_no_command_line_and_in_no_file(found):
    assert not found["in commands"]
    assert found["in files"] == []


def test_the_event_log_says_that_processes_authenticate_and_hides_the_secret(found):
    (log,) = found["log"]
    assert '"spark.authenticate":"true"' in log
    assert '"spark.authenticate.secret":"*********(redacted)"' in log


def test_everything_listens_on_loopback(found):
    assert found["listening"]
    assert [address for address in found["listening"] if not address.startswith(LOOPBACK)] == []
