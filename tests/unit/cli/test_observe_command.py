"""``workbench observe``: what a log says, printed, as JSON, as plans, as a page."""

import re
import shlex

import pytest
from simulated_study import PRICES
from written_logs import TRUE, a_day, events, written

from workbench.cli import main


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return written(tmp_path_factory.mktemp("logs") / "app-1", events(a_day(0.5 * TRUE)))


def test_plans_start_from_the_log_and_are_read_again(log, tmp_path):
    assert main(["observe", str(log), "--target", "40000", "120000", "--output", "plan.json"]) == 0
    (tmp_path / "day.csv").write_text("time_s,rate_per_s\n0,20000\n600,40000\n1200,20000\n")
    assert main(["replay", "plan.json", "day.csv", "--policy", "static"]) == 0


def test_without_a_trigger_interval_one_is_asked_for(tmp_path, prints):
    behind = written(tmp_path / "behind", events(a_day(1.2 * TRUE, night=0.95, batches=200)))
    said = " ".join(prints("observe", str(behind), code=1).split())
    assert "there is no trigger interval, or one shorter than its batches of" in said
    assert "give the longest batch that you accept as the interval" in said
    assert "which is more" in prints("observe", str(behind), "--interval", "2")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["none"], "The log none does not exist"),
        (["{log}", "--query", "other"], "has no batches of 'other'"),
        (["{log}", "--interval", "-1"], "interval is -1"),
        (["{log}", "--slot-cpus", "-3"], "slot's cpus is -3"),
        (["{log}", "--outage", "-5"], "outage is -5"),
        (["{log}", "--target", "-5"], "targets[0] is -5.0"),
        (["{log}", "--prices", "none.csv"], "none.csv"),
        (["{log}", "--report", "no/such/folder/x/page.html"], None),
        (["{log}", "--progress", "none.jsonl"], "so those of none.jsonl are not used"),
    ],
)
def test_bad_input_is_named(log, run, arguments, text):
    code, said = run("observe", *(one.format(log=log) for one in arguments))
    assert "Traceback" not in said.err
    if text is not None:
        assert code == 2
        assert text in said.err


def test_a_study_starts_from_a_log(log, prints, refuses, tmp_path):
    study = tmp_path / "study.yaml"
    text = (
        f"query: orders\ntargets: [50000]\nslots: [4]\nmemory_mb: [{{}}]\ntestbed: observed\nlog: {log}\nslot_cpus: 1\n"
    )
    study.write_text(text.format(1126))
    said = prints("plan", str(study))
    assert "orders at 50 k records/s needs 4 slots of 1 core and 1,126 MB" in said
    assert "OBSERVED" in said
    assert f"is a study of the log {log}" in refuses("measure", str(study))
    study.write_text(text.format(512))
    assert "runs on 4 slots of 1,126 MB" in refuses("plan", str(study))
    study.write_text("query: orders\ntargets: [1]\nslots: [4]\nmemory_mb: [1]\ntestbed: observed\n")
    assert "The observed testbed needs an event log" in refuses("plan", str(study))


def test_the_page_leads_with_the_head_room_and_escapes_names_of_the_log(tmp_path):
    evil, page = "<script>alert(1)</script>", tmp_path / "page.html"
    log = written(tmp_path / "app-2", events(a_day(0.5 * TRUE), name=evil))
    assert main(["observe", str(log), "--target", "50000", "--report", str(page)]) == 0
    html = page.read_text()
    assert "How much head-room does &lt;script&gt;alert(1)&lt;/script&gt; have?" in html
    assert html.count(">OBSERVED<") == 1
    assert "What do I deploy for &lt;script" in html
    assert evil not in html
    assert "This result is missing" not in html


def test_advice_is_for_a_log_and_for_the_risk_that_was_asked_for(log, run, prints):
    by_margin = prints("observe", str(log), "--target", "40000", "100000")
    assert f"Run: workbench observe {log.name} --target 100000 --risk 0.05" in by_margin
    assert "Repeat runs" not in by_margin
    assert "Make at least" not in by_margin
    code, by_risk = run("observe", log, "--target", "40000", "120000", "--risk", "0.02")
    assert code == 1
    assert "Set a lower rate, accept a larger risk, lengthen" in by_risk.err
    assert "instead of by margin" not in by_risk.out


def test_the_command_that_is_advised_keeps_the_options_and_can_be_run(tmp_path, run, prints):
    behind = written(tmp_path / "a log", events(a_day(1.2 * TRUE, night=0.95, batches=200)))
    said = prints("observe", str(behind), "--interval", "2", "--risk", "0.02")
    (advised,) = re.findall(r"Run: workbench (observe .+)", said)
    assert re.fullmatch(r"observe 'a log' --interval 2(\.0)? --target \d+ --risk 0\.02", advised)
    assert "Give the interval" not in run(*shlex.split(advised))[1].err


def test_advice_repeats_every_option_and_the_plans_keep_them(log, prints, tmp_path):
    from workbench.study import read_planned

    prices = tmp_path / "prices.csv"
    prices.write_text(PRICES)
    prints("observe", log, "--target", "40000", "--output", "before.json")
    given = ["--interval", "2", "--slot-cpus", "1", "--prices", str(prices), "--outage", "15"]
    given += ["--measured", str(tmp_path / "before.json")]
    said = prints("observe", log, "--target", "100000", *given, "--output", "plan.json")
    again = (
        f"workbench observe {log.name} --interval 2 --slot-cpus 1 --prices prices.csv --outage 15 "
        "--measured before.json --target 100000 --risk 0.05"
    )
    assert again in said
    assert read_planned(tmp_path / "plan.json").exploration.asked.observe(100000, 0.05) == again
    assert str(tmp_path) not in (tmp_path / "plan.json").read_text()
