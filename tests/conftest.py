"""What holds for all tests."""

import json
import os
import random
import sys
from dataclasses import asdict, dataclass, field

import published_runs
import pytest
from examples import SHARE
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

# How long an example takes depends on what else the machine does. The examples are the same in every run: a red test
# is due to a change. To try others: pytest --hypothesis-profile=others --hypothesis-seed=N.
settings.register_profile("workbench", deadline=None, derandomize=True, max_examples=round(100 * SHARE))
settings.register_profile("others", deadline=None, derandomize=False)  # also where CI is set
settings.load_profile("workbench")

TIMES = int(os.environ.get("FAULT_TIMES", "1"))
"""How often a test injects its fault at random moments; ``make test-all`` and ``benchmarks/faults.py`` set it."""


@pytest.fixture(autouse=True)
def _own_path(monkeypatch):
    """Take back what a test puts on the path: loading a user's module leaves its folder there."""
    monkeypatch.setattr(sys, "path", [*sys.path])


def unskipped(report):
    """Fail what is skipped where `CI` is set, for there everything is installed and permitted; published runs apart."""
    ci = os.environ.get("CI", "").lower() not in {"", "0", "false"}
    if report.skipped and ci and not hasattr(report, "wasxfail"):
        *_, reason = report.longrepr
        if published_runs.ABSENT not in reason:
            report.outcome, report.longrepr = "failed", f"In CI nothing may be skipped. {reason}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport():
    return unskipped((yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report():
    return unskipped((yield))


class ByFile(LoadFileScheduling):
    """Let one process run the tests of a file, or of a folder that shares a broker or a Spark session."""

    def _split_scope(self, nodeid):
        shared = (folder for folder in ("tests/kafka", "tests/spark") if nodeid.startswith(f"{folder}/"))
        return next(shared, None) or super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return ByFile(config, log)


@dataclass
class Injected:
    """What a test of a fault injected, and what came of it: a row of the table of ``benchmarks/faults.py``."""

    fault: str
    times: int = 0
    sees: list[str] = field(default_factory=list)
    lost: str = "nothing"
    left: str = "nothing"

    def moments(self, most, times=TIMES):
        """Give random moments from 1 to `most`: the same in every run, another selection for each fault."""
        return random.Random(self.fault).sample(range(1, most + 1), min(times, most))

    def seen(self, text):
        """Count one injection, and keep what the user was shown."""
        self.times += 1
        if text not in self.sees:
            self.sees.append(text)


@pytest.fixture
def journal(tmp_path):
    from workbench.journal import Journal

    return Journal(tmp_path / "journal.jsonl")


@pytest.fixture(scope="module")
def planned(request, tmp_path_factory):
    """The ``STUDY`` of the test's module, carried out once."""
    from workbench.journal import Journal
    from workbench.study import run_study

    return run_study(request.module.STUDY, Journal(tmp_path_factory.mktemp("planned") / "journal.jsonl"))


@pytest.fixture
def injected(request):
    """Record what a test marked with ``fault(name)`` injects; it counts itself."""
    found = Injected(*request.node.get_closest_marker("fault").args)
    yield found
    request.node.user_properties.append(("fault", json.dumps(asdict(found))))


def pytest_runtest_teardown(item):
    """Record the fault of a marked test that does not count: injected once, or as often as the mark says."""
    marker = item.get_closest_marker("fault")
    if marker is not None and "injected" not in item.fixturenames:
        found = Injected(*marker.args, times=marker.kwargs.get("times", 1), sees=[marker.kwargs["sees"]])
        item.user_properties.append(("fault", json.dumps(asdict(found))))
