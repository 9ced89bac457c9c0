"""The command line, as far as it goes without Spark."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from example_measurement import example_measurement

from workbench import cli
from workbench.cli import checking, measuring, planning, reporting
from workbench.cli.console import BAD_INPUT, DEFECT, DONE, INTERRUPTED, NOT_SUSTAINED, PIPE_CLOSED, SOURCE_BOUND
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import Finished
from workbench.speed import CoreSpeed
from workbench.study import read_planned, write_planned
from workbench.testbed.spark import Finding


@pytest.mark.parametrize(
    ("modules", "left_out"),
    [
        ("workbench.capacity, workbench.views, workbench.report", {"pyspark"}),
        ("workbench.cli", {"nbformat", "nbconvert", "papermill"}),
    ],
)
def test_nothing_is_imported_that_most_commands_do_not_need(modules, left_out):
    code = f"import sys, {modules}; sys.exit(bool({left_out} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("measure", "nexmark:q77"), "q77"),
        (("measure", "q5"), "not of the form"),
        (("measure", "nexmark:q5", "--slots", "1000"), "or smaller slots (--slots, --slot-cpus)"),
        (("measure", "nexmark:q5", "--memory-mb", "100"), "Spark needs 600 MB"),
        (("measure", "nexmark:q5", "--tolerance", "2"), "tolerance is 2.0"),
        (("measure", "nexmark:q5", "--minutes", "0"), "--minutes is 0.0"),
        (("measure", "nexmark:q5", "--minutes", "3", "--schedule", "streambed"), "has the published times"),
        (("measure", "nexmark:q5", "--dataset", "/nowhere.csv"), "does not exist"),
        (("measure", "nexmark:q5", "--source", "kafka"), "the data set is None, which is not a topic. Name one"),
        (("verify", "nexmark:q1", "--rate", "nan"), "--rate is nan; it must be a finite number above 0"),
        (("verify", "nexmark:q1", "--rate", "5", "--percent", "-3"), "--percent is -3"),
        (("measure", "nexmark:q1", "--journal", "."), "'.' is a folder; give the name of a file in it"),
        (("measure", "nexmark:q1", "--output", "/etc/hostname/x.json"), "cannot be written"),
        (("report", "/nowhere.json", "x.html"), "nowhere.json"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(refuses, monkeypatch, arguments, message):
    monkeypatch.setattr(measuring, "measure", None)  # nothing may be deployed
    monkeypatch.setattr(measuring, "verify", None)
    assert message in refuses(*arguments)


@pytest.mark.parametrize(
    ("options", "tolerance", "most_s"),
    [
        ((), 0.04, 7 * 14.0),
        (("--tolerance", "0.02", "--interval", "10"), 0.02, 7 * 70.0),
        (("--minutes", "3"), 0.04, 180.0),
        (("--schedule", "streambed"), 0.01, None),
        (("--schedule", "streambed-stateful"), 0.01, None),
        (("--schedule", "streambed", "--tolerance", "0.1"), 0.1, None),
    ],
)
def test_a_measurement_ends_in_time_and_streambeds_schedules_at_one_percent(
    run, monkeypatch, options, tolerance, most_s
):
    asked = []

    def measure(_configuration, _testbed, estimator, *_, **__):
        asked.append((estimator.tolerance, estimator.most_s))
        raise WorkbenchError("Enough.")

    monkeypatch.setattr(measuring, "measure", measure)
    run("measure", "nexmark:q1", *options)
    assert asked == [(tolerance, most_s)]


@pytest.mark.parametrize("grows", [False, True])
def test_a_rate_at_a_growing_state_is_told_from_a_maximum(capfd, monkeypatch, grows):
    found = replace(example_measurement(), unbounded_state=grows)

    def measure(*_, **__):
        yield Finished("key", found)
        return found

    monkeypatch.setattr(measuring, "measure", measure)
    cli.main(("measure", "nexmark:q3"))
    said = capfd.readouterr()
    assert ("The state grows with every record" in said.out) == grows
    assert re.fullmatch(r"\[ +0 s\] run 1/1 · .* records/s .*\n", said.err)
    cli.main(("measure", "nexmark:q3", "--json"))
    assert json.loads(capfd.readouterr().out)["unbounded_state"] == grows


def test_the_doctor_says_what_to_fix(prints, monkeypatch):
    findings = (
        Finding("Java", "none", fit=False, fix="install it"),
        Finding("browser", "none", fit=False, fix="install one", needed=False),
        Finding("clean", "1 folder", fit=False, fix="remove what is left", needed=False, command="rm -r x"),
    )
    monkeypatch.setattr(checking, "examine", lambda _: findings)
    monkeypatch.setattr(checking, "examine_speed", lambda: Finding("speed", "as fast", fit=True))
    output = prints("doctor", code=BAD_INPUT)
    assert output.endswith("clean: remove what is left (not needed to measure): rm -r x\n")
    marks = re.findall(r"^(MISSING|note) +(\w+)", output, re.MULTILINE)
    assert marks == [("MISSING", "Java"), ("note", "browser"), ("note", "clean")]
    assert json.loads(prints("doctor", "--json", code=BAD_INPUT))[0]["fix"] == "install it"


def test_this_machine_is_fit(prints, monkeypatch):
    monkeypatch.setattr("workbench.doctor.measure_speed", lambda _: CoreSpeed(0.5e-3, 0.57e-3))
    assert re.search(r"speed +0\.50 times as fast as those of the reference machine", prints("doctor"))


def test_the_doctor_says_what_it_does_while_it_does_it(capfd, monkeypatch):
    seen, java = [], Finding("Java", "", fit=True)
    monkeypatch.setattr("workbench.doctor._java", lambda: seen.append(capfd.readouterr().err) or java)
    monkeypatch.setattr("workbench.doctor.measure_speed", lambda _: seen.append(capfd.readouterr().err) or None)
    monkeypatch.setattr("workbench.doctor.relative_speed", lambda *_: None)
    cli.main(("doctor", "--json"))
    assert seen[0].endswith("s] looking at Java, by starting it\n")
    assert seen[1].endswith("s] timing the cores, for three seconds\n")


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert all(re.search(rf"^  {command} +\S", text, re.MULTILINE) for command in cli._MODULES)
    codes = re.findall(r"\b\d+\b", text.split("Exit codes:")[1])
    known = (DONE, NOT_SUSTAINED, BAD_INPUT, SOURCE_BOUND, DEFECT, INTERRUPTED, PIPE_CLOSED)
    assert codes == list(map(str, known))


IN_THE_JOURNAL, IN_ITS_HISTORY = (
    f"; {what}, and the same command goes on from there"
    for what in ("what was measured is in the journal", "what the study had measured is in its history")
)


@pytest.mark.parametrize(
    ("module", "function", "arguments", "kept"),
    [
        (measuring, "find_query", ("measure", "nexmark:q1"), IN_THE_JOURNAL),
        (planning, "read_study", ("plan", "study.yaml"), IN_THE_JOURNAL),
        (reporting.report, "render", ("report", "capacity", "out.html"), IN_ITS_HISTORY),
        (checking, "examine", ("doctor",), ""),
        (measuring, "find_query", ("verify", "nexmark:q1", "--rate", "5"), ""),
        (reporting.report, "render", ("report", "scaling", "out.html"), ""),
    ],
)
def test_an_interrupted_command_says_what_is_kept(run, monkeypatch, module, function, arguments, kept):  # noqa: PLR0917
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, function, interrupt)
    code, output = run(*arguments)
    assert (code, output.err) == (INTERRUPTED, f"workbench: {arguments[0]} was interrupted{kept}.\n")


@pytest.mark.parametrize("date", ["2026-02-30", "2026-13-01"])
def test_a_date_that_there_is_not_is_no_defect(tmp_path, refuses, date):
    (tmp_path / "p.yaml").write_text(f"study: {date}\n")
    report = ["report", "capacity", str(tmp_path / "r.html")]
    assert "cannot be read" in refuses(*report, "-f", str(tmp_path / "p.yaml"))
    assert "Traceback" not in refuses(*report, "-p", "most_runs", date)


def test_a_plan_s_executors_are_not_verified_in_another_size(tmp_path, refuses):
    found = read_planned(Path(__file__).parents[2] / "stored" / "plan-spark.json")
    on = replace(found.study, master="yarn", checkpoint="hdfs://n/c", executor_slots=2, slots=(2, 4), slot_cpus=1.0)
    plans = tuple(replace(one, executor_slots=2, budget=Budget(2, SlotProfile(1.0, 2048), 2.0)) for one in found.plans)
    write_planned(replace(found, study=on, plans=plans), tmp_path / "plan.json")
    said = refuses("verify", str(tmp_path / "plan.json"), "--executor-slots", "1")
    assert "--executor-slots is 1, but" in said
    assert "plans executors of 2. Leave --executor-slots out." in said
