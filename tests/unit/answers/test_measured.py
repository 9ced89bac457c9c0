"""Cards of a measurement: findings, health checks, and nothing lost when one card cannot be made."""

import math
from dataclasses import replace

import pytest
from example_measurement import example_measurement
from staged_runs import seeing

from workbench.answers.measured import answer, cards
from workbench.metrics import ExecutorPace, InputRows, WriteCost
from workbench.records import Measurement, structure, unstructure
from workbench.views import findings
from workbench.views.health import checks


@pytest.fixture(scope="module")
def measurement():
    return example_measurement()


def card_of(run, name):
    return next(card for card in cards(run) if card.name == name)


def test_the_dataflow_is_the_one_that_was_observed(measurement):
    names = [one.operator for one in measurement.estimate.observation.operators]
    edges = tuple((name, names[-1]) for name in names[:-1])
    assert card_of(measurement, "dataflow").finding.endswith("they are shown as a chain.")
    observed = card_of(seeing(measurement, edges=edges), "dataflow")
    assert "chain" not in observed.finding
    arrows = next(trace for trace in observed.figure.data if trace.uid == "graph-shuffle")
    assert len(arrows.x) == 3 * (len(edges) + 2)  # the source feeds the two that nobody feeds


def test_missing_results_are_not_yet_and_checks_that_could_not_be_made_are_counted(measurement):
    empty = replace(measurement.estimate, rate=None, low=0.0, observation=None)
    made = {card.name: card.kind for card in cards(replace(measurement, estimate=empty, source=None))}
    assert made["operators"] == made["source"] == "no-data"
    blind = replace(measurement, estimate=replace(measurement.estimate, observation=None))
    unknown = [check for check in checks(blind) if check.finding is None]
    assert unknown
    assert card_of(blind, "health").finding == (
        f"{10 - len(unknown)} of 10 checks passed; {len(unknown)} could not be made, because the run did not record "
        "what they need."
    )


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"exhausted": True}, "ask for a wider one (--tolerance) or for more time (--minutes;"),
        ({"limit": "source"}, "The rate is the source's, not the query's"),
        ({"contradictions": (12_900.0,)}, "The bracket encloses the rates in doubt"),
    ],
)
def test_estimates_flags_become_advice(measurement, change, advice):
    sick = replace(measurement, estimate=replace(measurement.estimate, **change))
    (advised,) = answer(sick).cautions.values()
    assert advice in advised.words
    health = card_of(sick, "health")
    assert health.finding == "1 of 10 checks led to advice."
    assert ("advice", advised.words) in [(row[1], row[3]) for row in health.table.rows]


def test_a_wide_bracket_is_told_from_no_rate_that_was_too_much(measurement):
    def advised(**changes):
        run = replace(measurement, estimate=replace(measurement.estimate, limit="none", **changes))
        return [check.question for check in checks(run) if check.advice]

    far = 2.5 * measurement.estimate.low
    assert advised(high=far, exhausted=True) == advised(high=far) == ["Were there enough probes?"]
    assert advised(high=math.inf) == ["Was a rate found that is too much?"]


def test_a_state_is_said_to_be_full_only_where_there_is_one(measurement):
    first, *others = measurement.estimate.probes
    probes = (replace(first, filled=True), *others)
    full = replace(measurement, estimate=replace(measurement.estimate, probes=probes))
    scan, *_ = measurement.estimate.observation.operators
    found = [{one.question: one.finding for one in checks(run)} for run in (full, seeing(full, operators=(scan,)))]
    said = [one["Was the state at its working size?"] for one in found]
    assert said == ["As many rows left the state as entered.", "No operator keeps state."]


def test_load_that_is_not_seen_is_not_known(measurement):
    def outcome(**machine):
        run = replace(measurement, machine=replace(measurement.machine, **machine))
        return next(row[1] for row in card_of(run, "health").table.rows if row[0] == "Was the machine left alone?")

    assert outcome() == "passed"
    for dedicated in (True, False):
        assert outcome(facts={"master": "kubernetes"}, dedicated=dedicated) == "not known"


@pytest.mark.parametrize(("partitions", "advised"), [(1, True), (3, True), (4, False), (100, False)])
def test_slots_that_read_nothing_of_a_topic_are_named(measurement, partitions, advised):
    *_, check = checks(seeing(measurement, source_partitions=partitions))
    assert check.question == "Did every slot read the topic?"
    assert bool(check.advice) is advised
    if partitions == 3:
        assert check.finding == "The topic has 3 partitions with records, so 1 of 4 slots had nothing to read."


def test_rows_that_came_late_are_told(measurement):
    late = (answer(seeing(measurement, dropped_late=share)).cautions for share in (0.01, 0.011))
    assert [[reason.split(" of the rows")[0] for reason in found] for found in late] == [[], ["1.1 %"]]


def test_disturbed_probes_and_an_idle_quota_are_named(measurement):
    first = measurement.estimate.probes[1]
    disturbed = replace(first, judgement=replace(first.judgement, disturbed=True))
    idle = seeing(measurement, quota_throttled=0.0)
    sick = replace(idle, estimate=replace(idle.estimate, probes=(idle.estimate.probes[0], disturbed)))
    found = {check.question: check.finding for check in checks(sick) if check.advice}
    assert found["Was the machine left alone?"].startswith("Probe 1 had to be judged although")
    assert "held the slots back in 0 % of its periods" in found["Did the slots' CPU quota bind?"]


def test_a_slow_executor_of_a_cluster_is_named(measurement, tmp_path):
    """With one executor nobody asks; a JSON file of the measurement keeps what was seen."""
    question = "Were the executors equally fast?"
    assert question not in [check.question for check in checks(measurement)]
    for times, advised in ((1.2, False), (1.3, True)):
        paces = (ExecutorPace("0", "10.0.0.2", 1 / times), ExecutorPace("1", "10.0.0.3", times))
        run = seeing(measurement, executors=paces)
        run.to_json(tmp_path / "run.json")
        assert Measurement.from_json(tmp_path / "run.json").estimate.observation.executors == paces
        (found,) = (check for check in checks(run) if check.question == question)
        assert bool(found.advice) == advised
        assert ("Executor 1 on 10.0.0.3 took 1.3 times as long" in found.finding) == advised


def test_what_writing_costs_and_how_a_table_grows_is_said(measurement):
    measurement = replace(measurement, testbed_kind="spark")

    def ran(cost, **facts):
        machine = replace(measurement.machine, facts={**measurement.machine.facts, **facts})
        return seeing(replace(measurement, machine=machine), writes=cost)

    assert "noop" in findings.written(measurement)  # of a measurement that knows of no other sink
    assert findings.written(replace(measurement, testbed_kind="observed")) == ""
    cost = WriteCost(0.1, 0.02, None, 0.08, 0.05, 2e-6, 0.5, 0.0012, 60)
    grows = ran(cost, sink="delta", checkpoint="s3a")
    text = findings.written(grows)
    assert "written to delta, with the checkpoint s3a" in text
    assert "80 ms to the driver's part of a batch, 50 ms to each task, 2 µs to each record" in text
    assert "takes 1.2 ms longer than the one before: compact the table every 167 batches" in text  # a tenth of 2 s
    unsure = replace(cost, batch_error_s=0.03, task_error_s=0.01, record_error_s=1e-6, jobs_s=0.0, jobs_error_s=0.0)
    text = findings.written(ran(unsure, sink="delta"))
    assert "The sink adds 50 ms to each task. What it adds to the driver's part of a batch (at most 170 ms), to" in text
    assert "to each record (at most 5 µs) does not stand out from the scatter of its batches." in text
    shown = dict(card_of(ran(unsure, sink="delta"), "writes").table.rows)
    assert shown["The sink adds to the driver, per batch"] == "80 ms (standard error 30 ms)"
    assert "compact" not in findings.written(ran(replace(cost, growth_s=0.0), sink="delta"))
    assert dict(card_of(grows, "writes").table.rows)["Rows written per record read"] == "0.5"
    stored = structure(unstructure(grows), Measurement, "It")
    assert stored.estimate.observation.writes == cost
    assert answer(stored).facts["writes"]["growth_s"] == 0.0012


def test_the_rate_backlog_and_selectivity_of_each_input_are_shown(measurement):
    seen = measurement.estimate.observation
    rows = (
        InputRows("orders", round(0.75 * seen.consumed_records), 30.0, ("1 scan filter",), 0.92),
        InputRows("payments", round(0.25 * seen.consumed_records), 10.0),
    )
    both = seeing(measurement, inputs=rows)
    (said,) = set(answer(both).details) - set(answer(measurement).details)
    assert said.startswith("The inputs have their parts of it: orders ")
    assert "payments" in said
    card = card_of(both, "inputs")
    assert [row[0] for row in card.table.rows] == ["orders", "payments"]
    assert [round(row[2]) for row in card.table.rows] == [75, 25]
    assert card.table.rows[0][3:] == (30.0, 0.92, "1 scan filter")
    assert "inputs" not in [card.name for card in cards(measurement)]
