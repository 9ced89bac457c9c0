"""The session of a deployment: it has what a job brings along, and nobody gets at it without a secret, kept nowhere."""

import pytest
from one_slot import carried_out

pytestmark = pytest.mark.spark

SECRET = "hunter2xyz-of-the-job"  # noqa: S105

# Compiles a function into a jar, starts the session of a deployment with it, counts by key with state in an executor,
# and looks at all of it from outside.
SCRIPT = """
import json
import socket
import zipfile
from contextlib import suppress
from pathlib import Path

import psutil
from one_slot import one_slot

from workbench.records import JobSettings
from workbench.testbed.spark import batch_session
from workbench.testbed.spark.driver.session import end_session, start_session

SOURCE = '''
package mine;

public class Tripled {
    public static String of(long number) {
        return String.valueOf(3 * number);
    }
}
'''

folder = Path.cwd()
with batch_session() as spark:
    compiler = spark._jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(SOURCE)
    with zipfile.ZipFile("tripled.jar", "w") as jar:
        jar.writestr("mine/Tripled.class", bytes(compiler.getBytecodes()["mine.Tripled"]))
Path("helper_of_job.py").write_text("NAME = 'helped'")
Path("rates.csv").write_text("EUR,1.1")
settings = JobSettings(
    spark={"spark.sql.ansi.enabled": "false", "spark.my.thing": "${JOBS_VALUE}"},
    jars=("tripled.jar",),
    py_files=("helper_of_job.py",),
    files=("rates.csv",),
)
run = folder / "run"
run.mkdir()
spec = one_slot(run, settings=settings, jars=(str(Path("tripled.jar").resolve()),))
spark = start_session(spec)
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1000).option("numPartitions", 2).load()
counted = rows.groupBy((rows["value"] % 7).alias("key")).count()
query = counted.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(run / "state"))
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


def here(_):
    import helper_of_job
    from pyspark import SparkFiles

    return helper_of_job.NAME, Path(SparkFiles.get("rates.csv")).read_text()


def in_files(value):
    return [str(one) for one in run.rglob("*") if one.is_file() and value.encode() in one.read_bytes()]


tripled = spark.range(0, 3, 1, 1).selectExpr("java_method('mine.Tripled', 'of', id)")
value = spark.sparkContext.getConf().get("spark.my.thing")
found = {
    "rows": query.lastProgress.numInputRows,
    "state": query.lastProgress.stateOperators[0].numRowsUpdated,
    "secret": len(secret),
    "in commands": [one for one in (secret, value) if one in repr(commands)],
    "listening": [one.laddr.ip for one in places if one.status == psutil.CONN_LISTEN or one.type == socket.SOCK_DGRAM],
    "log": [one.read_text(errors="replace") for one in (run / "eventlog").iterdir()],
    "tripled": [row[0] for row in tripled.collect()],
    "here": spark.sparkContext.parallelize([0], 1).map(here).first(),
    "ansi": spark.conf.get("spark.sql.ansi.enabled"),
    "value": value,
}
found["in files"] = in_files(secret) + in_files(value)  # after all that may write
end_session(spark)
Path("found.json").write_text(json.dumps(found))
"""
LOOPBACK = ("127.", "::1", "::ffff:127.")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return carried_out(SCRIPT, tmp_path_factory.mktemp("deployment"), JOBS_VALUE=SECRET)


def test_a_query_with_state_runs_where_every_process_must_know_the_secret(found):
    assert found["rows"] == 1000
    assert found["state"] == 7
    assert found["secret"] == 64


def test_secrets_are_on_no_command_line_and_in_no_file(found):
    assert not found["in commands"]
    assert found["in files"] == []


def test_the_event_log_says_that_processes_authenticate_and_hides_the_secret(found):
    (log,) = found["log"]
    assert '"spark.authenticate":"true"' in log
    assert '"spark.authenticate.secret":"*********(redacted)"' in log


def test_everything_listens_on_loopback(found):
    assert found["listening"]
    assert [address for address in found["listening"] if not address.startswith(LOOPBACK)] == []


def test_a_function_from_a_jar_runs_on_the_executor_and_tasks_find_modules_and_files(found):
    assert found["tripled"] == ["0", "3", "6"]
    assert found["here"] == ["helped", "EUR,1.1"]


def test_settings_hold_and_a_variable_is_replaced(found):
    assert (found["ansi"], found["value"]) == ("false", SECRET)
