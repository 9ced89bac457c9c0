"""A measurement over a testbed that simulates: journalled, resumed, complete."""

from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from simulated_run import SimulatedRun

from workbench.capacity import CapacityEstimator
from workbench.dataflow import Budget, SlotProfile
from workbench.journal import Journal
from workbench.metrics import SourceProfile
from workbench.study import measure, verify
from workbench.workload import nexmark

BUDGET = Budget(1, SlotProfile(1.0, 1024))
QUERY = nexmark.query("q1")


class Killed(BaseException):
    """As kill -9: nothing after it is done."""


class FakeRun(SimulatedRun):
    facts = {"spark": "none"}  # noqa: RUF012
    source = SourceProfile(0.0, 1e-6, 1e9)

    def __init__(self, die_after):
        super().__init__()
        self.left = die_after

    def observe(self, seconds):
        if self.left == 0:
            raise Killed
        self.left -= 1
        return super().observe(seconds)


@dataclass
class FakeTestbed:
    master: str = "fake"
    slot_cpus: str = "cores"
    die_after: int = -1
    runs: list = field(default_factory=list)

    @contextmanager
    def deploy(self, query, budget):
        assert (query, budget) == (QUERY, BUDGET)
        self.runs.append(FakeRun(self.die_after))
        yield self.runs[-1]


def run(journal, die_after=-1):
    testbed = FakeTestbed(die_after=die_after)
    estimator = CapacityEstimator(tolerance=0.02, clock=lambda: testbed.runs[-1].now)
    return measure(QUERY, BUDGET, testbed, estimator, journal), testbed.runs[-1]


def test_a_measurement_has_the_bracket_of_the_truth_and_the_load_curve(tmp_path):
    measurement, simulated = run(Journal(tmp_path / "j.jsonl"))
    assert measurement.estimate.low <= simulated.truth <= measurement.estimate.high * 1.01
    assert [round(probe.rate / measurement.estimate.rate, 2) for probe in measurement.load_curve] == [0.15, 0.3, 0.5]
    assert measurement.query == "nexmark:q1"


@pytest.mark.parametrize("die_after", range(0, 14, 2))
def test_a_killed_measurement_repeats_no_finished_probe_and_ends_as_an_undisturbed_one(tmp_path, die_after):
    undisturbed, _ = run(Journal(tmp_path / "calm.jsonl"))
    journal = Journal(tmp_path / "j.jsonl")
    with pytest.raises(Killed):
        run(journal, die_after)
    finished = [entry.data["rate"] for entry in journal.entries() if entry.kind in ("probe", "load")]
    resumed, simulated = run(journal)
    assert resumed.estimate.low == undisturbed.estimate.low
    assert resumed.estimate.high == undisturbed.estimate.high
    commanded = [rate for _, rate in simulated.commands]
    assert not set(commanded) & {rate for rate in finished if rate != "inf"}
    kinds = [entry.kind for entry in journal.entries()]
    assert kinds.count("probe") == len(undisturbed.estimate.probes)
    assert kinds.count("load") == 3


def test_a_finished_measurement_is_measured_anew(tmp_path):
    journal = Journal(tmp_path / "j.jsonl")
    first, _ = run(journal)
    _, again = run(journal)
    assert len(again.commands) >= len(first.estimate.probes)


def test_verify_tells_sustained_from_not():
    testbed = FakeTestbed()
    truth = FakeRun(-1).truth
    probes = verify(QUERY, BUDGET, testbed, CapacityEstimator(), [0.9 * truth, 1.2 * truth])
    assert [probe.judgement.verdict for probe in probes] == ["sustained", "overloaded"]
