"""What is known of the source, and when it is looked at again."""

import json
import math

import pytest

from workbench.dataflow import Budget, SlotProfile
from workbench.testbed.spark.driver.live import CompletedBatch
from workbench.testbed.spark.driver.source_alone import SourceAlone
from workbench.workload import Release

FOUR = Budget(4, SlotProfile(0.2, 1024), 2.0)
ONE = Budget(1, SlotProfile(0.2, 1024), 2.0)


def batch(rows, seconds):
    offsets = {"startOffset": json.dumps({"n": 0}), "endOffset": json.dumps({"n": rows})}
    progress = {"sources": [offsets], "durationMs": {"triggerExecution": 1000 * seconds}}
    return CompletedBatch(0, progress, (), release=Release(1, 0.0, 0, rows, 0, 0, 0.0, 0.0))


def batches(fixed_s, per_record_s, sizes=(5_000, 15_000, 10_000)):
    return [batch(rows, fixed_s + per_record_s * rows) for rows in sizes]


def known(fixed_s=0.2, per_record_s=1e-5):
    source = SourceAlone(FOUR)
    source.keep(batches(fixed_s, per_record_s), FOUR)
    return source


def test_its_limit_is_what_fits_beside_its_fixed_part_and_there_is_none_while_it_is_unknown():
    assert SourceAlone(FOUR).profile(FOUR).rate_limit == math.inf
    source = known(0.2, 1e-5)
    assert source.profile(FOUR).rate_limit == pytest.approx(1.8 / (2.0 * 1e-5), rel=1e-3)
    assert source.profile(ONE).rate_limit == pytest.approx(1.8 / (2.0 * 4e-5), rel=1e-3)  # a quarter of the CPUs
    assert source.profile(FOUR, scans=2).rate_limit == pytest.approx(0.9 / (2.0 * 1e-5), rel=1e-3)


def test_a_rate_near_the_limit_is_reason_to_look_again():
    source = known()
    limit = source.profile(FOUR).rate_limit
    assert not source.doubtful(limit / 1.21, FOUR)
    assert source.doubtful(limit / 1.19, FOUR)
    assert source.doubtful(limit / 2, FOUR, scans=2)
    assert source.doubtful(limit / 2, ONE)
    assert not source.doubtful(math.inf, FOUR)  # it asks for what fits, whatever that is
    for _ in range(2):  # at most
        assert source.doubtful(1e9, FOUR)
        source.keep(batches(0.2, 1e-5), FOUR)
    assert not source.doubtful(1e9, FOUR)


def test_the_faster_look_counts():
    source = known(0.2, 4e-5)
    slow = source.profile(FOUR).rate_limit
    source.keep(batches(0.2, 1e-5), FOUR)
    assert source.profile(FOUR).rate_limit == pytest.approx(4 * slow, rel=1e-3)
    source.keep(batches(0.2, 9e-5), FOUR)  # a neighbour came
    assert source.profile(FOUR).rate_limit == pytest.approx(4 * slow, rel=1e-3)
    source = known(0.2, 4e-5)
    source.keep(batches(0.2, 4e-5), ONE)  # one slot reads as fast as four did: four read four times as fast
    assert source.profile(FOUR).rate_limit == pytest.approx(1.8 / (2.0 * 1e-5), rel=1e-3)
