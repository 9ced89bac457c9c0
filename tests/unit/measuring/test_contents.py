"""Pruning a journal: whatever is removed, measuring goes on as if it were still there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.dataflow import Budget, SlotProfile
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Configuration, measure, replay, result_of
from workbench.measuring.contents import prune_journal, read_contents, read_references
from workbench.testbed import FluidTestbed
from workbench.workload import nexmark

CONFIGURATION = Configuration(nexmark.query("q1"), Budget(2, SlotProfile(1.0, 1024)))
ESTIMATOR = CapacityEstimator(tolerance=0.02)


class Killed(BaseException):
    """As kill -9."""


def measured(journal, dies_after=None, *, reuse=False):
    events = []

    def listen(event):
        events.append(event)
        if len(events) == dies_after:
            raise Killed

    try:
        return result_of(measure(CONFIGURATION, FluidTestbed(), ESTIMATOR, journal, reuse=reuse), listen), events
    except Killed:
        return None, events


def test_a_finished_measurement_is_reused_after_pruning(journal):
    first, _ = measured(journal)
    size = journal.path.stat().st_size
    assert prune_journal(journal, remove=True).size == size - journal.path.stat().st_size > size / 4
    again, events = measured(journal, reuse=True)
    assert again == first
    assert len(events) == 1


@given(st.lists(st.sampled_from([None, 1, 2, 3]), max_size=4))
def test_pruning_changes_nothing_that_is_read(tmp_path_factory, runs):
    journal = Journal(tmp_path_factory.mktemp("pruned") / "j.jsonl")
    for dies_after in runs:
        measured(journal, dies_after)
    held = read_contents(journal)
    before = [replay(journal, one.key) for one in held]
    would = prune_journal(journal)
    assert prune_journal(journal, remove=True) == would
    after = read_contents(journal)
    assert [one.state for one in after] == before == [replay(journal, one.key) for one in after]
    assert [one.size for one in after] == [one.size - one.spare for one in held]
    assert not prune_journal(journal, remove=True).size


@pytest.mark.parametrize(
    "text",
    [
        '{"runs": 5}',
        '{"started_at": []}',
        '{"started_at": "x", "query": {}, "testbed": "t"}',
        "[1]",
        "{",
        '{"runs": [7]}',
    ],
)
def test_a_stray_file_next_to_the_journal_refers_to_nothing(tmp_path, text):
    (tmp_path / "other.json").write_text(text)
    assert not read_references([tmp_path / "other.json"])
