"""The README's own query, from its two files to a plan and a report, on a real Spark."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from workbench.doctor import quota_permitted
from workbench.journal import Journal
from workbench.study.planning import run_study
from workbench.study.spec import read_study
from workbench.testbed import RecordedRate, RecordedTestbed, SparkTestbed

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not quota_permitted(), reason="slots of two fifths of a core need CPU quotas"),
]

ROOT = Path(__file__).parents[2]
SHORT = {"tolerance": 0.5, "warmup_s": 10, "choice": "edge"}


class Killed(BaseException):
    """As kill -9: nothing after it is done."""


@dataclass(frozen=True)
class KilledAtTheThird(SparkTestbed):
    """Spark as far as a journal can tell, which answers from a table and dies at its third deployment."""

    table: RecordedTestbed = field(
        default_factory=lambda: RecordedTestbed([RecordedRate(1024, slots, 30_000.0 * slots) for slots in (1, 3)])
    )
    deployed: list = field(default_factory=list)

    @property
    def clock(self):
        return self.table.clock

    def deploy(self, query, budget, layout=None, *, repeat=None):
        self.deployed.append(budget.slots)
        if len(self.deployed) == 3:
            raise Killed
        return self.table.deploy(query, budget, layout, repeat=repeat)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files that the README tells to write, with less patience than it has."""
    code, study = (
        re.search(rf"^```{kind}\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[1]
        for kind in ("python", "yaml")
    )
    (tmp_path / "jobs.py").write_text(code)
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(yaml.safe_load(study) | SHORT))
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("jobs", None)


def test_a_query_of_one_s_own_is_planned_and_a_killed_plan_goes_on(folder):
    first = KilledAtTheThird()
    with pytest.raises(Killed):
        run_study(read_study("study.yaml"), Journal("journal.jsonl"), testbed=first)
    assert first.deployed == [1, 3, 2]

    command = ["-m", "workbench.cli", "plan", "study.yaml", "--journal", "journal.jsonl", "--report", "plan.html"]
    done = subprocess.run(
        [sys.executable, *command, "--json"], cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )

    assert done.returncode == 0, done.stderr
    planned = json.loads(done.stdout)
    assert [plan["rate"] for plan in planned["plans"]] == [20_000, 60_000, 200_000]
    slots = [plan["budget"]["slots"] for plan in planned["plans"]]
    assert slots == sorted(slots)
    assert slots[0] >= 1
    assert all(plan["price"]["per_hour"] > 0 for plan in planned["plans"])
    assert len(planned["taken_from_journal"]) == 2
    run = planned["runs"][2]
    assert (run["query"], run["budget"]["slots"]) == ("jobs:orders_per_minute", 2)
    assert run["estimate"]["rate"] > 0
    assert run["machine"]["spark"].startswith("4.")
    assert any("aggregate" in operator["operator"] for operator in run["estimate"]["observation"]["operators"])
    page = (folder / "plan.html").read_text()
    assert "What do I deploy?" in page
    assert "jobs:orders_per_minute" in page
