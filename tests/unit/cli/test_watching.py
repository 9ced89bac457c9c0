"""``workbench observe --watch``: what is served, and how it ends; ``workbench plan --alerts``: when its alerts fire."""

import json
import re
import shutil
import socket
import subprocess
from dataclasses import replace
from http.client import HTTPConnection
from types import SimpleNamespace

import pytest
import yaml
from staged_runs import staged_exploration
from written_logs import BEGUN, TRUE, a_day, events, progress

from workbench.capacity import plan
from workbench.cli import main
from workbench.records import EndingRun, Gauge, ScriptFacts, alert_rules, exposition
from workbench.study import observe

SAMPLE = re.compile(r'(\w+)\{query="((?:[^"\\]|\\.)*)"\} (\S+)')
MADE = replace(plan(staged_exploration(1), 20_000, memory_mb=[600]), testbed_kind="spark", query="orders")


def served(text):
    return {name: float(value) for name, _, value in SAMPLE.findall(text)}


def scraped(address):
    port, _, path = address.removeprefix("http://127.0.0.1:").partition("/")
    asked = HTTPConnection("127.0.0.1", int(port), timeout=5)
    asked.request("GET", f"/{path}")
    answer = asked.getresponse()
    return answer.status, answer.headers["Content-Type"], answer.read().decode()


def watched(path, capsys, monkeypatch, *steps, more=()):
    """What is served after each step; the watch ends with Ctrl-C."""
    pages, addresses, waiting = [], [], iter(steps)

    def sleep(_seconds):
        if not addresses:
            addresses.extend(re.findall(r"http://\S+/metrics", capsys.readouterr().out))
        status, kind, page = scraped(addresses[0])
        assert (status, kind.split(";")[:2]) == (200, ["text/plain", " version=0.0.4"])
        pages.append(page)
        step = next(waiting, None)
        if step is None:
            assert scraped(addresses[0].removesuffix("metrics"))[0] == 404
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr("workbench.cli.observing.time", SimpleNamespace(sleep=sleep))
    assert main(["observe", str(path), "--watch", "--port", "0", *more]) == 0
    with pytest.raises(ConnectionError):
        scraped(addresses[0])
    return pages


def test_a_growing_log_is_served(tmp_path, capsys, monkeypatch):
    path = tmp_path / "app-1"
    lines = [json.dumps(one) + "\n" for one in events(a_day(0.5 * TRUE))]
    half = len(lines) // 2

    def writes(text):
        return lambda: path.open("a").write(text) and None

    pages = watched(path, capsys, monkeypatch, writes("".join(lines[:half])), writes("".join(lines[half:])))
    assert pages[0] == ""
    assert 0 < len(served(pages[1])) <= len(served(pages[2]))
    for line in pages[2].splitlines():
        assert SAMPLE.fullmatch(line) or line.startswith(("# HELP workbench_", "# TYPE workbench_"))
    found, seen = observe(path), served(pages[2])
    room = found.headroom
    assert seen[Gauge.CAPACITY] == room.rate
    assert (seen[Gauge.CAPACITY_LOW], seen[Gauge.CAPACITY_HIGH]) == (room.low, room.high)
    assert seen[Gauge.HEADROOM] == room.left
    assert seen[Gauge.CATCH_UP_S] == found.catch_up_s(600)
    assert seen[Gauge.INTERVAL_S] == 2.0
    recent = [one for one in found.running.batches if one.start_s + one.batch_s > found.running.ended_s - 60]
    assert seen[Gauge.BATCH_S] == pytest.approx(sum(one.batch_s for one in recent) / len(recent))
    assert seen[Gauge.RATE] == pytest.approx(sum(one.rows for one in recent) / 2.0 / len(recent), rel=0.01)
    assert seen[Gauge.LAST_BATCH] == found.running.ended_s


def test_a_log_without_its_interval_is_served_as_far_as_it_is_known(tmp_path, capsys, monkeypatch):
    path = tmp_path / "progress"
    path.write_text(
        "".join(json.dumps(progress(n, 100 + n, BEGUN + n**2, batch_s=0.2)["progress"]) + "\n" for n in range(30))
    )
    (page,) = watched(path, capsys, monkeypatch)
    assert Gauge.BATCH_S in served(page)
    assert not {Gauge.INTERVAL_S, Gauge.CAPACITY, Gauge.HEADROOM} & set(served(page))
    (page,) = watched(path, capsys, monkeypatch, more=("--interval", "2"))
    assert served(page)[Gauge.INTERVAL_S] == 2.0


def test_what_a_watch_does_not_answer_and_a_port_that_is_taken_are_refused(tmp_path, refuses):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for more, said in (
            (("--target", "1000", "--slot-cpus", "1", "--json"), "--slot-cpus, --target, --json: with --watch"),
            (("--port", "70000"), "'70000' is not a port; give 0 to 65535"),
            (("--port", port), f"Port {port} of 127.0.0.1 cannot be served"),
        ):
            assert said in refuses("observe", tmp_path / "log", "--watch", *more)


def test_a_query_s_name_is_escaped_and_what_is_not_known_left_out():
    text = exposition({'a "b" \\': {Gauge.CATCH_UP_S: float("inf"), Gauge.PEAK: None}, "c": {Gauge.CATCH_UP_S: 2}})
    assert text.splitlines() == [
        f"# HELP workbench_catch_up_seconds {Gauge.CATCH_UP_S.what}",
        "# TYPE workbench_catch_up_seconds gauge",
        'workbench_catch_up_seconds{query="a \\"b\\" \\\\"} +Inf',
        'workbench_catch_up_seconds{query="c"} 2.0',
    ]


def values(*, batch_s=1.0, rate=1000.0, state=0.0):
    return {Gauge.BATCH_S: batch_s, Gauge.RATE: rate, Gauge.STATE_BYTES: state}


MEMORY = MADE.executors * MADE.executor.rocksdb_mb * 2**20
CASES = [
    (values(), set()),
    (values(batch_s=1.59), set()),
    (values(batch_s=1.61), {"WorkbenchBatchNearInterval"}),
    (values(rate=0.999 * MADE.low), set()),
    (values(rate=1.001 * MADE.low), {"WorkbenchRateOverCapacity"}),
    (values(state=MEMORY), set()),
    (values(state=MEMORY + 1024), {"WorkbenchStateOverMemory"}),
]


def by_parser(rules, gauges, _folder):
    """Alerts that fire, for rules of the form ``gauge{query="..."} > number``."""
    fired = set()
    for group in yaml.safe_load(rules)["groups"]:
        for rule in group["rules"]:
            name, query, least = re.fullmatch(r'(\w+)\{query="([^"]+)"\} > (\S+)', rule["expr"]).groups()
            assert query == "orders"
            assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
            if gauges[name] > float(least):
                fired.add(rule["alert"])
    return fired


def by_promtool(rules, gauges, folder):
    """Alerts that fire where each gauge keeps its value for ten minutes: all fail, as none is expected."""
    (folder / "rules.yaml").write_text(rules)
    alerts = re.findall(r"alert: (\w+)", rules)
    series = [{"series": f'{name}{{query="orders"}}', "values": f"{value!r}x10"} for name, value in gauges.items()]
    asked = [{"eval_time": "5m", "alertname": alert, "exp_alerts": []} for alert in alerts]
    test = {"interval": "1m", "input_series": series, "alert_rule_test": asked}
    (folder / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}))
    command = ["promtool", "test", "rules", "test.yaml"]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    fired = {alert for alert in alerts if f'alertname="{alert}"' in done.stdout + done.stderr}
    assert bool(done.returncode) == bool(fired)
    return fired


# CI has no Prometheus; where there is one, it is asked as well.
CHECKS = [by_parser, *([by_promtool] if shutil.which("promtool") else [])]


@pytest.mark.parametrize("fired_by", CHECKS)
@pytest.mark.parametrize(("gauges", "fires"), CASES)
def test_alerts_fire_beyond_what_the_plan_is_sure_of(gauges, fires, fired_by, tmp_path):
    assert fired_by(alert_rules([MADE]), gauges, tmp_path) == fires


def test_each_plan_has_a_group_and_each_kind_its_rules(tmp_path):
    plans = [MADE, replace(MADE, rate=20_001, stateful=False), replace(MADE, stateful=False, run=EndingRun(4e8, 2700))]
    text = alert_rules([*plans, replace(MADE, query='{{ "odd" }}\\', rate=3)])
    groups = yaml.safe_load(text)["groups"]
    assert [len(group["rules"]) for group in groups] == [3, 2, 3]
    assert len({group["name"] for group in groups}) == 3
    assert "{{ \\" not in json.dumps([rule["annotations"] for group in groups for rule in group["rules"]])
    if by_promtool in CHECKS:
        (tmp_path / "rules.yaml").write_text(text)
        subprocess.run(["promtool", "check", "rules", tmp_path / "rules.yaml"], check=True, capture_output=True)


def test_a_plan_s_alerts_are_written_for_prometheus_to_read(tmp_path, prints):
    table = "memory_mb,slots,rate\n" + "".join(f"1024,{slots},{1000 * slots}\n" for slots in (2, 4, 8))
    (tmp_path / "rates.csv").write_text(table)
    study = {"query": "shops:orders", "testbed": "recorded", "table": "rates.csv", "targets": [5000]}
    study |= {"slots": [2, 4, 8], "memory_mb": [1024]}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    assert "alerting rules: alerts.yaml" in prints("plan", "study.yaml", "--alerts", "alerts.yaml")
    (group,) = yaml.safe_load((tmp_path / "alerts.yaml").read_text())["groups"]
    assert "WorkbenchRateOverCapacity" in [rule["alert"] for rule in group["rules"]]
    assert (tmp_path / "alerts.yaml").stat().st_mode & 0o777 == 0o644


def test_rules_select_the_name_that_a_script_gives_its_query():
    named = replace(MADE, query="job.py#1", script=ScriptFacts("revenue"))
    rules = yaml.safe_load(alert_rules([named]))["groups"][0]["rules"]
    assert all('query="revenue"' in rule["expr"] for rule in rules)
    assert "queryName" not in alert_rules([named, MADE])
    assert "# The study has no name of the script" in alert_rules([replace(named, script=None)])
    assert '.queryName("job.py#1"), which' in alert_rules([replace(named, script=None)])
