"""What a job brings along in a real deployment: settings, a jar, a module, a file, and no secret that is kept."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

SECRET = "hunter2xyz-of-the-job"  # noqa: S105

# Compiles a function into a jar, then starts the session of a deployment with it.
SCRIPT = """
import json
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
commands = []
for process in psutil.Process().children(recursive=True):
    with suppress(psutil.NoSuchProcess):
        commands.append(process.cmdline())


def here(_):
    import helper_of_job
    from pyspark import SparkFiles

    return helper_of_job.NAME, Path(SparkFiles.get("rates.csv")).read_text()


TRIPLED = "java_method('mine.Tripled', 'of', id)"
value = spark.sparkContext.getConf().get("spark.my.thing")
found = {
    "tripled": [row[0] for row in spark.range(0, 3, 1, 1).selectExpr(TRIPLED).collect()],
    "here": spark.sparkContext.parallelize([0], 1).map(here).first(),
    "ansi": spark.conf.get("spark.sql.ansi.enabled"),
    "value": value,
    "in commands": value in repr(commands),
    "in files": [str(one) for one in run.rglob("*") if one.is_file() and value.encode() in one.read_bytes()],
}
end_session(spark)
Path("found.json").write_text(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deployment")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "JOBS_VALUE": SECRET}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    log = folder / "run" / "jvm.log"
    assert done.returncode == 0, done.stderr[-3000:] + (log.read_text()[-3000:] if log.exists() else "")
    return json.loads(Path(folder, "found.json").read_text())


def test_a_function_from_a_jar_runs_on_the_executor(found):
    assert found["tripled"] == ["0", "3", "6"]


def test_tasks_find_modules_and_files(found):
    assert found["here"] == ["helped", "EUR,1.1"]


def test_settings_hold_and_a_variable_is_replaced_and_kept_nowhere(found):
    assert (found["ansi"], found["value"]) == ("false", SECRET)
    assert not found["in commands"]
    assert found["in files"] == []
