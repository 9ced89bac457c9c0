"""Who else on the machine gets at a deployment: nobody without its secret, which no command line and no file has."""

import socket
import stat
from pathlib import Path
from tempfile import gettempdir

import psutil
import pytest
import toy_query

from workbench.dataflow import Budget, SlotProfile
from workbench.testbed import SparkTestbed

pytestmark = pytest.mark.spark

VARIABLE = "_SPARK_AUTH_SECRET"  # where Spark gives it to its executors
LOOPBACK = ("127.", "::1", "::ffff:127.")


@pytest.fixture(scope="module")
def deployed():
    """One short deployment, looked at from outside: its processes, what they listen on, and its folders."""
    testbed = SparkTestbed(slot_cpus="cores", warmup_cap_s=2)
    with testbed.deploy(toy_query.query(), Budget(1, SlotProfile(1.0, 1200), 1.0)) as run:
        run.set_rate(500.0)
        consumed = run.observe(2).consumed_records
        processes = psutil.Process().children(recursive=True)
        lines = [" ".join(process.cmdline()) for process in processes]
        listening = [
            place.laddr.ip
            for process in processes
            for place in process.net_connections("inet")
            if place.status == psutil.CONN_LISTEN or place.type == socket.SOCK_DGRAM
        ]
        executor = next(one for one in processes if "CoarseGrainedExecutorBackend" in " ".join(one.cmdline()))
        secret = executor.environ().get(VARIABLE)
        folders = _folders(lines)
        files = {file: file.read_bytes() for folder in folders for file in folder.rglob("*") if file.is_file()}
        modes = {folder: stat.S_IMODE(folder.stat().st_mode) for folder in folders}
    return consumed, secret, lines, listening, files, modes, run.machine


def _folders(lines):
    words = " ".join(lines).replace('"', " ").replace(":", " ").replace("=", " ").split()
    places = (gettempdir(), "/dev/shm")
    found = {"/".join(word.split("/")[:n]) for word in words for n in (3, 4) if "/workbench-" in word}
    return [Path(one) for one in sorted(found) if any(one.startswith(f"{place}/workbench-") for place in places)]


def test_a_query_runs_where_every_process_must_know_the_secret(deployed):
    consumed, secret, *_ = deployed
    assert consumed > 0
    assert secret is not None
    assert len(secret) == 64


def test_the_secret_is_in_no_list_of_processes_and_no_file(deployed):
    _, secret, lines, _, files, _, machine = deployed
    assert secret not in "\n".join(lines)
    assert any("eventlog" in file.parts for file in files)
    assert [file for file, content in files.items() if secret.encode() in content] == []
    assert secret not in repr(machine)


def test_the_event_log_says_that_processes_authenticate_and_hides_the_secret(deployed):
    log = b"".join(content for file, content in deployed[4].items() if "eventlog" in file.parts)
    assert b'"spark.authenticate":"true"' in log
    assert b'"spark.authenticate.secret":"*********(redacted)"' in log


def test_everything_listens_on_loopback(deployed):
    listening = deployed[3]
    assert listening
    assert [address for address in listening if not address.startswith(LOOPBACK)] == []


def test_its_folders_are_its_owners_alone(deployed):
    modes = deployed[5]
    assert modes
    assert set(modes.values()) == {0o700}
