"""The partitions that a source is read in, apart from those of the shuffles after it."""

import json

import pytest
from written_logs import TRUE, a_day, events, progress_of, written

from workbench.observing import read_log


def test_the_partitions_of_a_topic_are_not_those_of_the_shuffle(tmp_path):
    seen = read_log(written(tmp_path / "log", events(a_day(0.5 * TRUE), readers=3, partitions=200)))
    assert {(block.partitions, block.source_partitions) for block in seen.blocks} == {(200, 3)}
    assert {block.observation.source_partitions for block in seen.blocks} == {3}
    assert seen.facts["source partitions"] == (
        "3: more slots than 3 do not speed up reading; set the source's option minPartitions"
    )


@pytest.mark.parametrize(("readers", "said"), [(4, None), (12, "12")])
def test_a_source_with_partitions_enough_is_no_limit(tmp_path, readers, said):
    seen = read_log(written(tmp_path / "log", events(a_day(0.5 * TRUE), readers=readers)))
    assert seen.facts.get("source partitions") == said


def test_a_source_that_is_no_topic_and_has_as_many_partitions_has_none_of_its_own(tmp_path):
    """It is given more as slots are added, which a topic is not."""
    log = [json.loads(json.dumps(event)) for event in events(a_day(0.5 * TRUE))]
    topic = read_log(written(tmp_path / "topic", log))
    for told in progress_of(log):
        told["sources"][0]["description"] = "RateStreamV2[rowsPerSecond=1]"
    generated = read_log(written(tmp_path / "log", log))
    assert {block.observation.source_partitions for block in topic.blocks} == {4}
    assert {block.observation.source_partitions for block in generated.blocks} == {None}
