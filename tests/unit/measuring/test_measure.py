"""A measurement over a testbed that simulates: journalled, resumed, complete."""

import json
import math
from contextlib import contextmanager
from dataclasses import replace

import pytest
from simulated_run import SimulatedRun

from workbench.dataflow import Budget, SlotProfile
from workbench.journal import Journal
from workbench.measuring import LOAD_CURVE, CapacityEstimator, Configuration, Probed, events, measure, result_of, verify
from workbench.metrics import SourceProfile, TaskSample
from workbench.records import Machine, Measurement, structure
from workbench.workload import nexmark
from workbench.workload.nexmark.queries import NAMES

BUDGET = Budget(1, SlotProfile(1.0, 1024))
QUERY = nexmark.query("q1")


class Killed(BaseException):
    """As kill -9: nothing after it is done."""


class FakeTestbed(SimulatedRun):
    """A testbed and its only run."""

    identity = kind = "fake"
    machine, source = Machine(facts={"spark": "none"}), SourceProfile(0.0, 1e-6, 1e9)

    def __init__(self, die_after=-1, sample_s=1e-6, query=QUERY):
        super().__init__()
        self.left, self.sample_s, self.query, self.deployed = die_after, sample_s, query, False

    @contextmanager
    def deploy(self, query, budget, layout=None, *, repeat=None):  # noqa: ARG002
        assert (query, budget, layout) == (self.query, BUDGET, None)
        self.deployed = True
        yield self

    def observe(self, seconds):
        if self.left == 0:
            raise Killed
        self.left -= 1
        seen = super().observe(seconds)
        samples = [TaskSample("all", batch.records, self.sample_s * batch.records) for batch in seen.batches]
        return replace(seen, samples=tuple(samples))


def run(journal, die_after=-1, per_record_s=1e-6, query=QUERY, listen=events.ignore, **settings):
    testbed, estimator = FakeTestbed(die_after, per_record_s, query), CapacityEstimator(tolerance=0.02)
    measured = result_of(measure(Configuration(query, BUDGET), testbed, estimator, journal, **settings), listen)
    return measured, testbed if testbed.deployed else None


def test_a_measurement_has_the_bracket_of_the_truth_and_the_load_curve_and_each_probe_that_so_far(journal):
    heard = []
    measurement, simulated = run(journal, listen=heard.append)
    probes = [event for event in heard if isinstance(event, Probed)]
    assert (probes[0].low, probes[0].high) == (0.0, math.inf)
    assert (probes[-1].low, probes[-1].high) == (measurement.estimate.low, measurement.estimate.high)
    answered = [(one.probe.rate, one.low, one.high) for one in probes if one.probe.answered("sustained")]
    assert all(low >= rate or high < math.inf for rate, low, high in answered)
    assert measurement.estimate.low <= simulated.truth <= measurement.estimate.high * 1.01
    assert [round(probe.rate / measurement.estimate.rate, 2) for probe in measurement.load_curve] == list(LOAD_CURVE)
    assert measurement.query == "nexmark:q1"


@pytest.mark.fault("a measurement is killed at any probe", sees="what the shell says; the same command goes on")
@pytest.mark.parametrize("die_after", range(0, 12, 2))
def test_a_killed_measurement_repeats_no_finished_probe_and_ends_as_an_undisturbed_one(tmp_path, journal, die_after):
    undisturbed, _ = run(Journal(tmp_path / "calm.jsonl"))
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
    assert kinds.count("load") == len(LOAD_CURVE)


def test_costs_are_added_to_a_recorded_measurement_that_lacks_them(journal):
    bare, _ = run(journal, costs=False, reuse=True)
    assert bare.load_curve == ()
    with pytest.raises(Killed):
        run(journal, die_after=3, reuse=True)
    whole, simulated = run(journal, reuse=True)
    assert len(whole.load_curve) == len(LOAD_CURVE)
    assert (whole.estimate.low, whole.estimate.high) == (bare.estimate.low, bare.estimate.high)
    assert whole.interval == bare.interval  # one measurement, not two
    commanded = {rate for _, rate in simulated.commands}
    assert commanded <= {probe.rate for probe in whole.load_curve}
    kinds = [entry.kind for entry in journal.entries()]
    assert kinds.count("probe") == len(bare.estimate.probes)
    assert kinds.count("load") == len(LOAD_CURVE)
    assert run(journal, reuse=True) == (whole, None)
    assert run(journal, costs=False, reuse=True) == (whole, None)
    again, _ = run(journal)
    assert again.interval.repeats == 2


def test_of_a_thousand_finished_measurements_only_the_one_that_is_reused_is_read(journal, monkeypatch):
    first, _ = run(journal)
    line = journal.path.read_text().splitlines()[-1]
    with journal.path.open("a") as file:
        file.write(f"{line}\n" * 999)
    read = []
    monkeypatch.setattr(events, "structure", lambda data, kind, what: read.append(kind) or structure(data, kind, what))
    assert run(journal, reuse=True) == (first, None)
    assert read.count(Measurement) == 1


def test_a_measurement_knows_that_its_querys_state_grows_without_bound_as_q3s_alone_does(tmp_path, journal):
    bounded, _ = run(journal)
    growing, _ = run(Journal(tmp_path / "g.jsonl"), query=replace(QUERY, unbounded_state=True))
    assert (bounded.unbounded_state, growing.unbounded_state) == (False, True)
    growing.to_json(tmp_path / "m.json")
    again = Measurement.from_json(tmp_path / "m.json")
    assert (again.unbounded_state, again.interval) == (True, growing.interval)
    assert [name for name in NAMES if nexmark.query(name).unbounded_state] == ["q3"]


def test_verify_tells_sustained_from_not():
    testbed = FakeTestbed()
    rates = [0.9 * testbed.truth, 1.2 * testbed.truth]
    probes = result_of(verify(QUERY, BUDGET, testbed, CapacityEstimator(clock=testbed.clock), rates))
    assert [probe.judgement.verdict for probe in probes] == ["sustained", "overloaded"]


def test_costs_come_from_one_deployment(journal):
    with pytest.raises(Killed):
        run(journal, die_after=4, per_record_s=1e-6)
    resumed, _ = run(journal, per_record_s=2e-6)
    assert [entry.kind for entry in journal.entries()].count("deployed") == 2
    assert resumed.costs[0].per_record_s == pytest.approx(2e-6)


def test_the_interval_rests_on_what_the_journal_knows_of_this_configuration(tmp_path, journal):
    first, _ = run(journal)
    again, _ = run(journal)
    elsewhere, _ = run(Journal(tmp_path / "other.jsonl"))
    assert (first.interval.repeats, again.interval.repeats, elsewhere.interval.repeats) == (1, 2, 1)
    assert first.interval.low < first.estimate.low < first.estimate.high < first.interval.high
    assert first.interval.low < again.interval.low


def test_probes_of_a_process_that_measured_the_same_meanwhile_are_left_out(journal):
    first, _ = run(journal)
    theirs = journal.entries("probe")[0]
    journal.append("probe", theirs.key, theirs.data)
    again, simulated = run(journal)
    assert again.estimate.low == first.estimate.low
    assert len(simulated.commands) >= len(first.estimate.probes)


def test_what_was_recorded_of_an_estimate_that_cannot_go_on_is_given_up(tmp_path, journal):
    with pytest.raises(Killed):
        run(journal, die_after=10)
    lines = [json.loads(line) for line in journal.path.read_text().splitlines()]
    for line in lines:  # as after a hiccup of the source's profile
        if line["kind"] == "probe":
            line["data"]["observation"]["source_rate_limit"] = 1e-9
    journal.path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    measured, _ = run(journal)
    calm, _ = run(Journal(tmp_path / "calm.jsonl"))
    assert (measured.estimate.low, measured.estimate.high) == (calm.estimate.low, calm.estimate.high)
    (given_up,) = journal.entries("given up")
    assert "The source alone releases too little" in given_up.data["reason"]
