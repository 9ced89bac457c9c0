"""Runs that do not show the query's capacity: failed ones, lower bounds, outliers; and doubtful ones."""

import math
from dataclasses import dataclass, field, replace

import pytest
from example_measurement import failed_run

from workbench import units
from workbench.answers.measured import run_cards
from workbench.answers.planned import cards
from workbench.capacity import ConfigurationOptimizer, ResourceExplorer, Space, plan
from workbench.capacity.explore import conclude, exploration, overstatement
from workbench.capacity.model import Asked, check_runs
from workbench.capacity.model.outliers import advise
from workbench.errors import NoCapacityError, WorkbenchError
from workbench.journal import Journal, JournalError
from workbench.measuring import CapacityEstimator
from workbench.metrics import Batch, Disturbance
from workbench.records import FailedRun
from workbench.study import Study, read_planned, run_study, write_planned
from workbench.testbed import FluidTestbed
from workbench.workload import nexmark

STUDY = Study(
    "nexmark:q1", (2e6, 2e7), (2, 4, 8, 16), (512, 1024), testbed="fluid", slot_cpus=1.0, most_runs=9, choice="edge"
)
OUT_OF_MEMORY = "The driver ended by itself; use smaller slots or more memory."
SETTINGS = ("slot_cpus", "memory_mb")
SAID = "The driver ended by itself; use smaller slots or more memory (slot_cpus, memory_mb)."


@dataclass(frozen=True)
class Failing(FluidTestbed):
    """The fluid testbed, on which a budget fails where `fails` says so."""

    fails: object = None
    tried: list = field(default_factory=list)

    def deploy(self, query, budget, layout=None, *, repeat=None):
        self.tried.append((budget.slots, budget.profile.memory_mb))
        if self.fails(budget):
            raise WorkbenchError(OUT_OF_MEMORY, settings=SETTINGS)
        return super().deploy(query, budget, layout, repeat=repeat)


def concerns(findings):
    return {one.concern: one for one in findings}


def test_where_the_least_memory_fails_the_rest_is_explored_and_the_answer_says_so(tmp_path, journal):
    testbed = Failing(fails=lambda budget: budget.profile.memory_mb < 1024)
    made = run_study(STUDY, journal, testbed=testbed)
    runs = made.exploration.runs
    assert len(runs) == STUDY.most_runs
    assert [isinstance(run, FailedRun) for run in runs[:3]] == [True, True, False]  # those are not tried again
    assert testbed.tried.count((2, 512)) == 1
    assert {run.budget.profile.memory_mb for run in runs[2:]} == {1024}
    assert made.refused == ()
    assert {one.budget.profile.memory_mb for one in made.plans} == {1024}
    for one in made.plans:
        said = concerns(one.cards)["runs left out"]
        assert said.finding.startswith("2 of 9 runs do not show the query's capacity and are not fitted. ")
        assert f"Run 1 (2 slots of 512 MB): {SAID} Run 2 (16 slots of 512 MB): The minimal" in said.finding
        assert said.finding.endswith("At 512 MB per slot nothing could be measured, so that is not planned with.")
    (shown,) = [card for card in cards(made) if card.name == "doubts"]
    assert [row[1] for row in shown.table.rows if SAID in row[2]] == ["all"]  # once, not for every target
    write_planned(made, tmp_path / "plan.json")
    again = read_planned(tmp_path / "plan.json")
    assert again.exploration.left_out == made.exploration.left_out
    assert [one.budget for one in again.plans] == [one.budget for one in made.plans]


def test_what_failed_is_tried_again_by_the_next_command_and_nothing_else(journal, planned):
    half = run_study(
        replace(STUDY, most_runs=4), journal, testbed=Failing(fails=lambda budget: budget.profile.memory_mb < 1024)
    )
    assert list(half.exploration.left_out) == [0, 1]
    finished = [entry.key for entry in journal.entries("finished")]
    mended = Failing(fails=lambda _: False)
    made = run_study(STUDY, journal, testbed=mended)
    assert made.exploration.left_out == {}
    assert mended.tried[:2] == [(2, 512), (16, 512)]
    assert (2, 1024) not in mended.tried
    keys = [entry.key for entry in journal.entries("finished")]
    assert keys[: len(finished)] == finished
    assert len(keys) == len(set(keys)) == len(made.exploration.runs)
    assert [one.budget for one in made.plans] == [one.budget for one in planned.plans]


def test_a_journal_that_fails_ends_the_study_at_once(journal, monkeypatch):
    append, appended = Journal.append, []

    def full(self, kind, key, data):
        appended.append(kind)
        if len(appended) > 8:
            raise JournalError("The journal cannot be read or written: No space left on device.")
        append(self, kind, key, data)

    monkeypatch.setattr(Journal, "append", full)
    with pytest.raises(JournalError, match="No space left"):
        run_study(STUDY, journal, testbed=FluidTestbed())
    assert len(appended) == 9


def test_a_query_that_always_fails_ends_after_the_corners_with_the_reason_first(journal):
    testbed = Failing(fails=lambda _: True)
    with pytest.raises(WorkbenchError) as raised:
        run_study(replace(STUDY, memory_mb=(512,)), journal, testbed=testbed)
    message = str(raised.value)
    assert message.startswith(SAID)
    assert message.count(SAID) == 1
    assert "None of 2 runs gives a capacity; a model needs at least 2. Run 1 (2 slots of 512 MB), 2 (16" in message
    assert testbed.tried == [(2, 512)]


def test_one_reason_for_all_runs_is_all_that_is_said(planned):
    first, second, third = planned.exploration.runs[:3]
    runs = [failed_run(run, "Spark refuses the query.") for run in (first, second)]
    with pytest.raises(WorkbenchError) as raised:
        conclude(runs, "")
    assert str(raised.value) == "Spark refuses the query."
    assert not isinstance(raised.value, NoCapacityError)
    other = failed_run(third, "It ran out of memory.")
    with pytest.raises(WorkbenchError, match=r"refuses the query\. It ran out of memory\. None of 3 runs gives"):
        conclude([*runs, other], "")


def test_the_edge_goes_on_where_it_can(journal):
    testbed = Failing(fails=lambda budget: budget.slots == 6 and budget.profile.memory_mb == 512)
    optimizer = ConfigurationOptimizer(testbed, CapacityEstimator(tolerance=0.04), journal)
    explorer = ResourceExplorer(optimizer, Space((2, 4, 6), (512, 2048)), choice="edge", most_calls=8, estimates=2)
    found = explorer.run(nexmark.query("q2"))
    assert testbed.tried.count((6, 512)) == 1
    budgets = [(run.budget.slots, run.budget.profile.memory_mb) for run in found.runs]
    assert budgets[4:] == [(4, 512)] * 2 + [(4, 2048)] * 2 + [(6, 2048)] * 4
    assert list(found.left_out) == [1]


@pytest.mark.parametrize(
    ("disturbance", "said", "advice"),
    [
        (Disturbance(other_load=0.53), " while other processes took much of the machine.", "End what else runs"),
        (
            Disturbance(throttled=0.53),
            " while only part of the machine's cores was available.",
            "Measure where cores are",
        ),
        (Disturbance(other_load=0.1), ".", "Give a slot more"),
    ],
)
def test_what_else_hindered_a_run_that_sustains_no_rate_is_named(planned, disturbance, said, advice):
    runs = list(planned.exploration.measurements)
    estimate = runs[1].estimate
    probe = estimate.probes[-1]
    hindered = replace(probe, observation=replace(probe.observation, disturbance=disturbance))
    probes = (*estimate.probes[:-1], hindered)
    runs[1] = replace(runs[1], estimate=replace(estimate, rate=None, low=0.0, observation=None, probes=probes))
    found = conclude(runs, "ended", choice="edge")
    assert found.left_out[1] == f"no rate was sustained down to {units.rate(estimate.high)}{said}"
    assert advise([runs[1]]).startswith(advice)


@pytest.mark.parametrize(
    ("changes", "said", "advice"),
    [
        ({"limit": "source", "high": math.inf}, "so the query carries at least {low}.", "Explore fewer or slower"),
        (
            {"limit": "none", "high": math.inf, "exhausted": True},
            "the query carries at least {low}.",
            "Raise the tolerance",
        ),
        (
            {"limit": "none", "high": math.inf},
            "the highest rate allowed was reached before a rate was too high, so the query carries at least {low}.",
            "Allow higher rates",
        ),
        ({"rate": None, "low": 0.0, "observation": None}, "no rate was sustained down to {high}.", "Give a slot more"),
        (
            {"rate": None, "low": 0.0, "observation": None, "exhausted": True},
            "no rate was sustained down to {high} before the probes ran out.",
            "Give a slot more memory_mb, or more slot_cpus. Or, where budgets share a deployment, set",
        ),
    ],
)
def test_what_is_no_capacity_is_not_fitted_and_is_said(planned, changes, said, advice):
    first, second, *others = planned.exploration.measurements
    runs = [first, second, *(run for run in others if run.budget != second.budget)]
    ends = {end: units.rate(getattr(runs[1].estimate, end)) for end in ("low", "high")}
    runs[1] = replace(runs[1], estimate=replace(runs[1].estimate, **changes))
    found = conclude(runs, "ended", choice="edge")
    assert 1 not in found.fitted
    assert list(found.left_out) == [1]
    assert found.left_out[1].endswith(said.format(**ends))
    without = conclude([*runs[:1], *runs[2:]], "ended", choice="edge")
    assert found.model.predict([[512, 40]]) == pytest.approx(without.model.predict([[512, 40]]))
    one = plan(found, 2e6, memory_mb=(512, 1024))
    card = concerns(one.cards)["runs left out"]
    assert f"Run 2 (16 slots of 512 MB): {found.left_out[1]}" in card.finding
    assert card.advice.startswith(advice)


def test_what_another_run_on_the_same_budget_shows_needs_no_remedy(planned):
    runs = planned.exploration.measurements
    wide = replace(runs[1].estimate, limit="none", high=3 * runs[1].estimate.low, exhausted=True)
    loose, others = replace(runs[1], estimate=wide), [run for run in runs if run.budget != runs[1].budget]
    (card,) = conclude([loose, *runs], "ended", choice="edge").findings
    assert "Run 1 (16 slots of 512 MB): the probes ran out while the maximum was anywhere from " in card.finding
    assert (card.advice, card.settled) == ("", True)
    (card,) = conclude([loose, *others], "ended", choice="edge").findings
    assert card.advice.startswith("Raise the tolerance")
    assert not card.settled


def full_run(run):
    """Make a run whose batches take 7 s at a high rate and at a low one, at a trigger interval of 5 s."""
    probe = next(one for one in run.estimate.probes if one.answered("overloaded"))
    batches = tuple(Batch(7.0 * number, 7.0, 9000, 9000, 0.0) for number in range(3))
    failed = replace(probe, filled=True, observation=replace(probe.observation, batches=batches))
    probes = tuple(replace(failed, rate=rate) for rate in (9000.0, 2000.0))
    estimate = replace(run.estimate, rate=None, low=0.0, observation=None, probes=probes)
    return replace(run, budget=replace(run.budget, interval_s=5.0), estimate=estimate, tasks=None)


def test_a_batch_that_fits_no_interval_is_named_with_a_longer_one_and_ends_the_exploration(planned, journal):
    runs = [full_run(run) for run in planned.exploration.measurements[:2]]
    with pytest.raises(WorkbenchError) as raised:
        conclude(runs, "ended")
    assert "even at a low rate a batch took 7.0 s, over the trigger interval of 5 s" in str(raised.value)
    assert "interval_s: 28" in str(raised.value)
    run = full_run(planned.exploration.measurements[0])
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), journal)
    explorer = ResourceExplorer(optimizer, Space((1, run.budget.slots), (512,), 1.0, 5.0))
    explorer.tell(run)
    assert "longer than the trigger interval" in explorer.reason()


def test_the_run_that_is_shown_in_full_is_none_that_failed(planned):
    runs = [replace(run, costs=()) for run in planned.exploration.measurements]
    assert runs[1].budget == runs[6].budget == runs[8].budget
    runs[8] = failed_run(runs[8], SAID)
    shown = run_cards(replace(planned, exploration=conclude(runs, "ended", choice="edge")))
    assert {card.title.partition(":")[0] for card in shown} == {"Run 7, on 16 slots"}


def test_where_the_source_bounds_all_runs_there_is_no_model_and_it_ends_after_the_corners(planned, journal):
    runs = [
        replace(run, estimate=replace(run.estimate, limit="source", high=math.inf))
        for run in planned.exploration.measurements
    ]
    with pytest.raises(WorkbenchError, match=r"^None of 9 runs .* the source was the limit.* so that the query is"):
        conclude(runs, "ended", choice="edge")
    assert overstatement(runs) is None
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), journal)
    explorer = ResourceExplorer(optimizer, STUDY.space)
    for run in runs[:4]:
        assert explorer.ask() == run.budget
        explorer.tell(run)
    assert explorer.reason() == "no corner of the space gave a capacity"


def test_doubtful_runs_are_fitted_and_named_on_one_card(planned):
    runs = list(planned.exploration.measurements)
    runs[0] = replace(runs[0], estimate=replace(runs[0].estimate, steady=False))
    wide = replace(runs[3].estimate, exhausted=True, steady=False, low=1e6, high=1.25e6)
    runs[3] = replace(runs[3], estimate=wide)
    disturbed = tuple(
        probe if probe.judgement is None else replace(probe, judgement=replace(probe.judgement, disturbed=True))
        for probe in runs[4].estimate.probes
    )
    runs[4] = replace(runs[4], estimate=replace(runs[4].estimate, probes=disturbed))
    found = conclude(runs, "ended", choice="edge")
    assert found.fitted == tuple(range(9))
    (card,) = found.findings
    assert card.concern == "doubtful runs"
    assert card.finding.startswith("3 of 9 fitted runs are doubtful. Run 1 (2 slots of 512 MB): the warm-up was not")
    assert "the probes ran out with a bracket 25 % wide. Run 5 " in card.finding
    assert planned.exploration.findings == ()
    (card,) = conclude([runs[0], *planned.exploration.measurements[1:]], "ended", choice="edge").findings
    assert card.finding.startswith("1 of 9 fitted runs is doubtful. Run 1 ")
    assert card.advice == "Raise warmup_s or tolerance in the study, then run"


def test_runs_that_only_had_too_few_probes_do_not_ask_for_a_quiet_machine(planned):
    runs = list(planned.exploration.measurements)
    probes = tuple(one for one in runs[3].estimate.probes if one.judgement is None or not one.judgement.repeatable)
    wide = replace(runs[3].estimate, exhausted=True, low=1e6, high=1.25e6, probes=probes)
    for estimate, advice in (
        (wide, "Check the plan with workbench verify."),
        (replace(wide, steady=False), "When the machine is quiet, run"),
    ):
        runs[3] = replace(runs[3], estimate=estimate)
        (card,) = check_runs(runs, range(9), {}, Asked("spark"))
        assert card.finding.endswith("the probes ran out with a bracket 25 % wide.")
        assert card.advice == advice


def test_rates_that_are_fitted_are_the_middles_of_the_brackets_and_each_run_is_looked_at_once(planned, monkeypatch):
    runs = planned.exploration.fitted_runs
    middles = [math.sqrt(run.estimate.low * run.estimate.high) for run in runs]
    assert planned.exploration.rates.tolist() == pytest.approx(middles)
    assert all(run.estimate.low < middle < run.estimate.high for run, middle in zip(runs, middles, strict=True))
    looked = []
    why = exploration.why_no_capacity
    monkeypatch.setattr(exploration, "why_no_capacity", lambda run: looked.append(run) or why(run))
    runs = planned.exploration.runs * 20
    costs = exploration.costs_of(runs)
    assert len(costs) == len(runs) == len(looked)
    assert costs[:3] == (math.inf,) * 3
