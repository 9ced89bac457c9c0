"""Documents: a measurement is read as it was written, as are those in ``tests/stored``."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from example_measurement import example_measurement, on_cores
from simulated_run import SimulatedRun

from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator, fit_costs
from workbench.metrics import OperatorMetrics, SourceProfile, TaskSample
from workbench.placement import read_placement_input
from workbench.records import (
    CapacityPlan,
    Machine,
    Measurement,
    PlannedStudy,
    Probe,
    nearest_run,
    structure,
    unstructure,
    write_whole,
)
from workbench.records.documents import MAX_SAMPLES
from workbench.records.plan import plan_from_dict
from workbench.speed import CoreSpeed
from workbench.study import planned_start, read_planned

OPERATOR = OperatorMetrics("scan", "scan", 1, 10, 10, 0.1, 0.1, None, 0.1, 0)


def read_probe(data):
    return structure(data, Probe, "The recorded probe")


@pytest.fixture
def estimate():
    run = SimulatedRun()
    return CapacityEstimator(clock=run.clock, max_rate=5000.0).estimate(run)


@pytest.fixture
def measurement(estimate):
    samples = [TaskSample("scan", 100.0 * n, 0.1 + 0.01 * n) for n in range(1, 5)]
    return Measurement(
        query="q5",
        budget=SimulatedRun().budget,
        estimate=estimate,
        costs=fit_costs(samples),
        source=SourceProfile(0.01, 1e-6, math.inf),
        testbed="simulated",
        started_at="2026-01-31T12:00:00+00:00",
        testbed_kind="fluid",
        machine=Machine(processor="two cores", virtual=None, cores=2.0, facts={"Python": "3"}),
        settings={"tolerance": 0.01, "max_rate": math.inf, "schedule": "adaptive", "cap": None, "on": True, "n": 3},
    )


def test_a_measurement_is_read_as_it_was_written_in_strict_json_without_infinity(measurement, tmp_path):
    def refuse(constant):
        raise AssertionError(constant)

    path = tmp_path / "deep" / "m.json"
    measurement.to_json(path)
    assert Measurement.from_json(path) == measurement
    assert [file.name for file in path.parent.iterdir()] == ["m.json"]
    stored = json.loads(path.read_text(), parse_constant=refuse)
    assert (stored["version"], stored["estimate"]["high"], measurement.estimate.high) == (2, "inf", math.inf)


def test_a_link_stays_and_its_target_is_written(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    for text in ("one", "two"):
        write_whole(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "there" / "file").read_text() == text
    assert len(list(tmp_path.rglob("*"))) == 3


def test_standard_output_is_no_file_to_replace(tmp_path):
    script = "import sys; from workbench.records.measurement import write_whole; print('a', flush=True); "
    script += "write_whole('/dev/stdout', 'b')"
    with (tmp_path / "out").open("w") as out:
        subprocess.run([sys.executable, "-c", script], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "a\nb"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x" * 300, "", "File name too long"),
        ("a\0", "", "embedded null"),
        ("file/x", "", "Not a directory|File exists"),
        ("m", "\ud800", r"cannot hold '\\ud800', which is half a character"),
    ],
)
def test_what_cannot_be_written_is_told(tmp_path, name, text, message):
    (tmp_path / "file").touch()
    with pytest.raises(WorkbenchError, match=message):
        write_whole(tmp_path / name, text)
    assert len(list(tmp_path.iterdir())) == 1


def stored_and_read(probe, operator):
    full = replace(probe, observation=replace(probe.observation, operators=(operator,), quota_throttled=0.5))
    return full, read_probe(json.loads(json.dumps(unstructure(full), allow_nan=False)))


def test_probes_round_trip_through_json(estimate):
    for probe in estimate.probes:
        full, read = stored_and_read(probe, OPERATOR)
        assert read == full
    _, read = stored_and_read(replace(probe, started_s=np.float64(1.5), number=np.int64(4)), OPERATOR)
    assert (read.started_s, read.number) == (1.5, 4)
    # a rate over few time is as large as a number may be
    _, read = stored_and_read(probe, replace(OPERATOR, useful_s=1e-30, true_processing_rate=1e31))
    assert read.observation.operators[0].true_processing_rate == 1e18


def test_what_is_nearer_to_0_than_any_measurement_counts_as_0(estimate):
    stored = unstructure(estimate.probes[0])
    for written, read in ((5e-324, 0.0), (-1e-31, 0.0), (1e-30, 1e-30)):
        assert read_probe({**stored, "started_s": written}).started_s == read


def test_failed_write_leaves_the_old_file(measurement, tmp_path):
    path = tmp_path / "m.json"
    measurement.to_json(path)
    before = path.read_text()
    with pytest.raises(WorkbenchError, match="is NaN, which is never a result"):
        replace(measurement, estimate=replace(measurement.estimate, rate=math.nan)).to_json(path)
    assert path.read_text() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_many_samples_are_aggregated_and_keep_their_line(estimate):
    samples = tuple(TaskSample("scan", float(n), 0.5 + 0.01 * n) for n in range(1, MAX_SAMPLES + 500))
    probe = estimate.probes[1]
    stored = unstructure(replace(probe, observation=replace(probe.observation, samples=samples)))
    kept = read_probe(stored).observation.samples
    assert len(kept) <= 100
    (cost,) = fit_costs(kept)
    assert (cost.fixed_s, cost.per_record_s) == (pytest.approx(0.5), pytest.approx(0.01))


def operator_of(document):
    """Put an operator into the first probe of a stored measurement, and give it."""
    operator = vars(OPERATOR).copy()
    document["estimate"]["probes"][0]["observation"]["operators"] = [operator]
    return operator


def drop_low(document):
    del document["estimate"]["low"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(colour="red"), r"extra fields found \(colour\) @ \$"),
        (drop_low, r"required field missing @ \$\.estimate\.low"),
        (lambda d: d["budget"].update(slots="3"), r"'3' is not of type int @ \$\.budget\.slots"),
        (lambda d: d["budget"].update(slots=True), r"True is not of type int @ \$\.budget\.slots"),
        (lambda d: d["budget"].update(slots=0), r"slots is 0; .* @ \$\.budget"),
        (lambda d: d["estimate"].update(low="nan"), r"'nan' is not a number @ \$\.estimate\.low"),
        (lambda d: d["estimate"].update(low=None), r"None is not a number @ \$\.estimate\.low"),
        (lambda d: d["estimate"].update(limit="sky"), r"sky.* @ \$\.estimate\.limit"),
        (lambda d: d.update(source=3), r"expected a mapping @ \$\.source"),
        (lambda d: d.update(started_at="noon"), r"started_at is 'noon'; it must be an ISO 8601"),
        (
            lambda d: d["estimate"]["probes"][0]["observation"]["batches"][1].update(records=1.5),
            r"1\.5 is not of type int @ \$\.estimate\.probes\[0\]\.observation\.batches\[1\]\.records",
        ),
        (lambda d: d["estimate"].update(low=-1), r"low is -1\.0; it must be at least 0 @ \$\.estimate"),
        (lambda d: d["estimate"].update(rate=1e300), r"1e\+300 is beyond 1e\+18 @ \$\.estimate\.rate"),
        (lambda d: d["budget"].update(slots=10**40), r"1[0,]+ is beyond 1e\+18 @ \$\.budget\.slots"),
        (lambda d: d["estimate"]["probes"][0]["observation"].update(batches=[3] * 500), r"batches\[4\]; and 495 more"),
        (lambda d: d["machine"].update(slots=10**300), r"is not of type str @ \$\.machine\.slots"),
        (lambda d: d["settings"].update(n=[1]), r"\[1\] is not a text, a number, .* @ \$\.settings\['n'\]"),
        (lambda d: d["settings"].update(tolerance=1e300), r"1e\+300 is beyond 1e\+18 @ \$\.settings\['tolerance'\]"),
        (lambda d: operator_of(d).update(tasks=0), r"tasks is 0; it must be above 0 @ .*\.operators\[0\]"),
        (lambda d: operator_of(d).update(key_skew=-0.0), r"key_skew is 0; it must be above 0 @ .*\.operators\[0\]"),
        (lambda d: operator_of(d).update(key_skew="inf"), r"key_skew is inf; it must be finite @ .*\.operators\[0\]"),
    ],
)
def test_wrong_files_are_refused_by_key(measurement, tmp_path, change, message):
    path = tmp_path / "m.json"
    measurement.to_json(path)
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))
    with pytest.raises(WorkbenchError, match=rf"The measurement .*m\.json cannot be read: .*{message}.*measure again"):
        Measurement.from_json(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"cannot be read: No such file or directory\. Check the path"),
        ("{", r"is not JSON: .* Measure again"),
        ("[]", r"is a JSON list; it must be an object"),
        ('{"version": 3}', r"has version 3; this workbench reads version 2\. Read it with"),
    ],
)
def test_what_is_no_measurement_of_this_version_is_refused(tmp_path, text, message):
    if text is not None:
        (tmp_path / "m.json").write_text(text)
    with pytest.raises(WorkbenchError, match=message):
        Measurement.from_json(tmp_path / "m.json")


def test_the_cores_of_a_measurement_are_the_median_of_its_probes(tmp_path):
    measured = on_cores(example_measurement(), 0.25e-3, 0.285e-3, CoreSpeed(9.0, 9.0, 0.2))
    probes = list(measured.estimate.probes)
    probes[0] = replace(probes[0], observation=replace(probes[0].observation, cores=CoreSpeed(7.0, 7.0)))
    probes[1] = replace(probes[1], observation=replace(probes[1].observation, cores=None))
    measured = replace(measured, estimate=replace(measured.estimate, probes=tuple(probes)))
    assert measured.core_speed == CoreSpeed(0.25e-3, 0.285e-3, 0.2)  # only the machine's own figure has a Spark batch
    measured.to_json(tmp_path / "m.json")
    assert Measurement.from_json(tmp_path / "m.json").core_speed == measured.core_speed
    assert example_measurement().core_speed is None
    assert on_cores(example_measurement(), 0.0, 0.0).core_speed is None  # not timed, as of a cluster
    assert on_cores(example_measurement(), 0.0, 0.0, CoreSpeed(1.0, 2.0)).core_speed == CoreSpeed(1.0, 2.0)


def test_the_spark_batch_of_the_deployment_counts_where_the_machine_has_no_figure_of_its_own():
    probes = on_cores(example_measurement(), 0.25e-3, 0.285e-3).estimate.probes
    timed = [replace(one, observation=replace(one.observation, cores=CoreSpeed(1e-3, 2e-3, 0.1))) for one in probes]
    measured = example_measurement()
    measured = replace(measured, estimate=replace(measured.estimate, probes=tuple(timed)))
    assert measured.core_speed == CoreSpeed(1e-3, 2e-3, 0.1)
    measured = replace(measured, machine=replace(measured.machine, speed=CoreSpeed(9.0, 9.0)))
    assert measured.core_speed == CoreSpeed(1e-3, 2e-3, 0.1)


STORED = Path(__file__).parents[2] / "stored"
PLANS = ["plan-fluid.json", "plan-spark.json"]


def document(name):
    return json.loads((STORED / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PLANS)
def test_a_planned_study_is_the_same_after_writing_and_reading(name, tmp_path):
    planned = PlannedStudy.from_json(STORED / name)
    planned.to_json(tmp_path / "plan.json")
    assert PlannedStudy.from_json(tmp_path / "plan.json") == planned
    for plan in planned.plans:
        assert CapacityPlan.from_json(plan.to_json()) == plan


def test_a_plan_of_one_run_is_read_again(tmp_path):
    """Where its minutes were over, one run is enough to plan by, and so to show, place and replay."""
    stored = document("plan-fluid.json")
    stored["runs"] = stored["runs"][:1]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(stored), encoding="utf-8")
    assert read_planned(path).exploration.fitted == (0,)


def test_a_changed_plan_is_shown_as_it_is_stored(tmp_path):
    """Nothing is planned again: what is on the disk is what is shown, placed and replayed."""
    stored = document("plan-fluid.json")
    stored["plans"][0] |= {"expected_rate": 123.0}
    stored["plans"][0]["allocation"]["tasks"]["convert"] = 7
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(stored), encoding="utf-8")
    plan = read_planned(path).plans[0]
    assert (plan.expected_rate, plan.allocation.tasks["convert"]) == (123.0, 7)
    placed = read_placement_input(path, rate=plan.rate, workers=8, slots=8).problem
    assert dict(zip(placed.operators, placed.parallelism, strict=True))["convert"] == 7
    assert planned_start(path, plan.rate).tasks["convert"] == 7


@pytest.mark.parametrize("version", [1, 9, None])
def test_documents_of_another_version_say_plan_again(version, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document("plan-fluid.json") | {"version": version}), encoding="utf-8")
    with pytest.raises(WorkbenchError, match=rf"have version {version}; .* Plan again with workbench plan"):
        PlannedStudy.from_json(path)
    plan = document("plan-fluid.json")["plans"][0] | {"version": version}
    with pytest.raises(WorkbenchError, match=rf"has version {version}; .* Plan again with workbench plan"):
        plan_from_dict(plan)


def test_the_nearest_run_is_the_latest_of_several_on_one_budget():
    first = example_measurement()
    again, other = replace(first, testbed="again"), replace(first, budget=replace(first.budget, slots=9))
    assert nearest_run((first, again, other), first.budget) is again
    assert nearest_run((first, again, other), replace(first.budget, slots=8)) is other
    lower = replace(first, budget=replace(first.budget, slots=7))
    assert nearest_run((lower, other), replace(first.budget, slots=8)) is lower
    assert nearest_run((other, lower), replace(first.budget, slots=8)) is other
    unseen = replace(first, estimate=replace(first.estimate, observation=None, probes=()))
    assert nearest_run((first, unseen), first.budget) is first
    assert nearest_run((unseen,), first.budget) is None
