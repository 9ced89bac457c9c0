"""What is said of a running query, and of restarts, beyond what the goldens hold."""

from pathlib import Path

import numpy as np
import pytest
from written_logs import BEGUN, TRUE, a_day, events, executor, progress, progress_of, written

from workbench.advice import Advice
from workbench.answers.observed import answer
from workbench.answers.replayed import over_restarts
from workbench.observing import as_measurement
from workbench.simulation import RateTrace
from workbench.spelling import spelled
from workbench.study import observe, replay_restarts
from workbench.views.health import checks

LOG = Path(__file__).parents[3] / "data" / "q5-eventlog.zstd"


def test_an_outage_has_a_column_only_where_one_is_asked_about():
    found = observe(LOG)
    named = [[fact.name for fact in answer(found, outage_s).rows[0]] for outage_s in (600.0, 0.0)]
    assert named[0] == [*named[1], "Catches up after 10 min down"]


def test_who_ran_the_command_that_was_advised_is_advised_what_it_planned():
    (first,) = answer(observe(LOG), 0.0).cautions.values()
    assert first.command == f"workbench observe {spelled(LOG)} --target 83000"
    (then,) = answer(observe(LOG, targets=[83_000]), 0.0).cautions.values()
    assert then == Advice("See what is planned for 83 k records/s.")
    (too_far,) = answer(
        observe(LOG, targets=[50_000, 200_000]), 0.0
    ).cautions.values()  # one is too low, of the other nobody is sure
    assert too_far.command


def test_a_start_on_other_slots_changes_neither_limits_nor_skew_of_these(tmp_path):
    log = list(events(a_day(0.5 * TRUE)))
    usual = observe(written(tmp_path / "usual", log), interval_s=2.0)
    after = events(a_day(0.5 * TRUE, batches=40), whole=False, begun=BEGUN + 1000, first=200, run="r-2", slots=8,
                   partitions=64)  # fmt: skip
    found = observe(written(tmp_path / "log", [*log, executor("1", 4), *after]), interval_s=2.0)
    assert (found.partitions, found.limits) == (usual.partitions, pytest.approx(usual.limits))
    assert answer(found, 0.0).about["partitions"] == "4"
    after = list(events(a_day(0.8 * TRUE, batches=40), whole=False, begun=BEGUN + 1000, first=200, run="r-2", slots=8))
    for told in (event["Task Info"] for event in after if event["Event"] == "SparkListenerTaskEnd"):
        if told["Partition ID"] == 0:
            told["Accumulables"][0]["Update"] = str(5 * int(told["Accumulables"][0]["Update"]))
    found = observe(written(tmp_path / "log", [*log, executor("1", 4), *after]), interval_s=2.0)
    assert found.skew == usual.skew
    assert answer(found, 0.0).about["skew"].startswith("none")


def test_batches_and_events_that_are_left_out_are_both_named(tmp_path):
    log = list(events(a_day(0.5 * TRUE)))
    after = events(a_day(0.5 * TRUE, batches=6), whole=False, begun=BEGUN + 1000, first=200, run="r-2", slots=8)
    broken = {"Event": "SparkListenerExecutorAdded"}
    log = written(tmp_path / "log", [*log, broken, executor("1", 4), *after])
    said = answer(observe(log, interval_s=2.0), 0.0).about
    assert said["on other slots"] == "1 batch, left out but for the peak"
    assert said["left out"].startswith("1 event of another form")


def test_a_log_of_files_is_not_said_to_read_a_topic(tmp_path):
    log = list(events(a_day(0.5 * TRUE), readers=3, partitions=12))
    for told in progress_of(log):
        told["sources"][0]["description"] = "FileStreamSource[file:/orders]"
    found = observe(written(tmp_path / "log", log), interval_s=2.0)
    measured = as_measurement(found.running, found.headroom)
    assert measured.estimate.observation.source_partitions == 3
    assert not [check for check in checks(measured) if "topic" in f"{check.question}{check.finding}{check.advice}"]


def test_a_cap_is_named_by_the_options_of_the_source(tmp_path):
    log = list(events(np.minimum(0.5 * TRUE, a_day(0.6 * TRUE))))
    for told in progress_of(log):
        full = told["sources"][0]["numInputRows"] > 0.99 * TRUE
        told["sources"][0]["metrics"] = {"numFilesOutstanding": "9" if full else "0"}
    for source, options in (("KafkaV2[x]", "maxOffsetsPerTrigger"), ("DeltaSource[x]", "maxFilesPerTrigger")):
        for told in progress_of(log):
            told["sources"][0]["description"] = source
        said = answer(observe(written(tmp_path / "log", log)), 0.0)
        assert f"the cap on its batches ({options}" in said.headline
        assert f"Raise {options}" in str([*said.cautions.values()])


def test_runs_that_end_have_no_peak_that_they_are_behind(tmp_path):
    """Full batches follow each other, and take what they can: that is no load."""
    told = []
    for run in range(3):
        at_s = BEGUN + 86_400.0 * run
        for number in range(20):
            told.append(progress(20 * run + number, 50_000, at_s, batch_s=4.0, run=f"r-{run}")["progress"])
            at_s += 4.004
    said = answer(observe(written(tmp_path / "nightly", told)), 600.0)
    facts = {fact.name: fact.text for fact in said.rows[0]}
    assert facts["Head-room"] == "its runs end"
    assert not facts["Peak"] + facts["Left at the peak"] + facts["Catches up after 10 min down"]
    assert "never" not in " ".join([said.headline, *said.details])


def test_a_log_whose_batches_are_all_of_the_start_promises_nothing(tmp_path):
    said = answer(observe(written(tmp_path / "log", progress_of(events(a_day(0.5 * TRUE, batches=4))))), 0.0)
    facts = {fact.name: fact.text for fact in said.rows[0]}
    assert not facts["Peak"]
    assert "--interval" not in said.headline
    assert said.about["batches read"] == "0"


def test_a_state_that_is_not_in_rocksdb_is_not_advised_to_set_it(tmp_path):
    told = progress_of(events(a_day(0.5 * TRUE)))
    loaded = {"loadedMapCacheHitCount": 65, "loadedMapCacheMissCount": 35}
    for custom, named in ((loaded, False), (loaded | {"rocksdbCommitCompactLatency": 0}, True)):
        kept = {"operatorName": "dedupe", "numShufflePartitions": 4, "commitTimeMs": 4_000, "customMetrics": custom}
        log = written(tmp_path / "log", [one | {"stateOperators": [kept]} for one in told])
        said = answer(observe(log, slots=4), 0.0).cautions
        assert len(said) == 2
        assert ("rocksdb" in str([*said.values()])) is named


def test_a_longer_restart_keeps_up_less_and_static_does_not_mind():
    day = RateTrace.steps([(1200, 300_000), (3600, 1_000_000)])
    found = over_restarts(replay_restarts("q11", day, slots=12, policies=("static", "ds2"), restarts_s=(5.0, 300.0)))
    rows = {(row["restart_s"], name): row for row, name in zip(found.document(), ["static", "ds2"] * 2, strict=True)}
    assert rows[5.0, "ds2"]["at_target"] > rows[300.0, "ds2"]["at_target"]
    assert rows[5.0, "static"] | {"restart_s": 300.0} == rows[300.0, "static"]
    assert rows[300.0, "ds2"]["downtime_s"] >= rows[5.0, "ds2"]["downtime_s"] + 295.0
    assert found.headline.startswith("ds2 keeps up ")
    assert "static" not in found.headline
