"""What the doctor sees of a cluster before anything is measured."""

import io
import json
import os
import socket
import subprocess
from contextlib import nullcontext
from dataclasses import asdict, replace
from unittest.mock import MagicMock

import pytest
from cluster_examples import FOUR, SHARED, STANDALONE

from workbench import cli
from workbench.errors import WorkbenchError
from workbench.testbed.spark import Cluster, look, look_at
from workbench.testbed.spark.look import check_authentication


def test_a_cluster_whose_processes_do_not_authenticate_is_warned_of():
    spark = MagicMock()
    spark.sparkContext.getConf.return_value = {"spark.authenticate": "true"}
    assert check_authentication(spark) == "spark.authenticate is on"
    spark.sparkContext.getConf.return_value = {}
    with pytest.raises(WorkbenchError, match=r"spark\.authenticate is not on: .* Set it to true"):
        check_authentication(spark)


def test_what_is_not_needed_does_not_end_the_look(monkeypatch):
    def lacking():
        raise WorkbenchError("It is off.")

    steps = [("authentication", lacking, False), ("executors", lacking, True), ("workers", lacking, True)]
    monkeypatch.setattr(look, "_steps", lambda *_: steps)
    asked, result = json.dumps({"cluster": asdict(STANDALONE), "budget": asdict(FOUR)}), io.StringIO()
    monkeypatch.setattr("sys.stdin", io.StringIO(asked))
    monkeypatch.setattr(look, "answering", lambda: nullcontext(result))
    look.main()
    seen = [json.loads(line) for line in result.getvalue().splitlines()]
    assert [(one["thing"], one["needed"]) for one in seen] == [("authentication", False), ("executors", True)]


def test_a_master_that_does_not_answer_is_named_and_the_doctor_says_so(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and not listening
        nobody = Cluster(f"spark://127.0.0.1:{taken.getsockname()[1]}", SHARED)
        with pytest.raises(WorkbenchError, match=r"cannot be reached \(127\.0\.0\.1:\d+: Connection refused\)\. Check"):
            nobody.reach()
        (seen,) = look_at(nobody, FOUR)
        assert (seen.thing, seen.found) == ("cluster", "not reached")
        assert cli.main(["doctor", "--master", nobody.master, "--checkpoint", SHARED]) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert "The cluster cannot measure yet: cluster." in said
    assert f"The master {nobody.master} cannot be reached" in said
    with pytest.raises(WorkbenchError, match=r"cannot be reached \(a\.\.b:7077: .*label"):
        Cluster("spark://a..b:7077", SHARED).reach()


def test_a_budget_that_fills_no_executors_is_no_matter_of_the_master():
    (seen,) = look_at(replace(STANDALONE, executor_slots=2), replace(FOUR, slots=1))
    assert (seen.thing, seen.found) == ("executors", "not fit")
    assert "1 slot cannot fill executors of 2 slots" in seen.fix


class Stopped(subprocess.Popen):
    """A process that stops itself, and whose time is over then."""

    def communicate(self, asked=None, timeout=None):
        if timeout is None:
            return super().communicate(asked)
        os.waitpid(self.pid, os.WUNTRACED)
        raise subprocess.TimeoutExpired(self.args, timeout)


def test_what_was_seen_before_the_time_was_over_is_kept_and_the_users_folder_hides_nothing(tmp_path, monkeypatch):
    (tmp_path / "signal.py").write_text("raise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    line = '{"thing": "application", "found": "has room", "fit": true}'
    (tmp_path / "lib").mkdir()
    stopping = f"print({line!r}, flush=True); os.kill(os.getpid(), signal.SIGSTOP)"
    (tmp_path / "lib" / "stopping.py").write_text(f"import os, signal\ndef main(): {stopping}\n")
    monkeypatch.syspath_prepend(tmp_path / "lib")
    monkeypatch.setattr(look, "_MODULE", "stopping")
    monkeypatch.setattr(subprocess, "Popen", Stopped)
    with socket.create_server(("127.0.0.1", 0)) as server:
        seen = look_at(Cluster(f"spark://127.0.0.1:{server.getsockname()[1]}", SHARED), FOUR)
    assert [(one.thing, one.found) for one in seen] == [
        ("cluster", "reached"),
        ("application", "has room"),
        ("cluster", "no answer for 4 executors"),
    ]
    assert seen[-1].fix == "Spark did not finish within 540 s."
