"""The offsets of a topic: where its partitions begin and end, and where to begin to read its newest records."""

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from workbench.errors import WorkbenchError
from workbench.workload.kafka._client import consuming
from workbench.workload.kafka.topic import Topic

ASK_S = 10.0  # for metadata
_AGAIN_S = 0.2
_NO_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
_NEAR = 0.02  # of the rows that are wanted: within it, partitions are cut in proportion
_FIRST_STEP_MS = 1000

Ends = Mapping[int, tuple[int, int]]
"""First offset, and that after the last, of each partition."""


def offsets_of(topic: Topic, settings: Mapping[str, Any] | None = None) -> dict[int, tuple[int, int]]:
    """Return the earliest offset of each partition, and the one after its last record."""
    with consuming(topic, settings or {}) as consumer:
        return ends_of(consumer, topic)


def ends_of(consumer: Consumer, topic: Topic) -> dict[int, tuple[int, int]]:
    """Give the ends of every partition, as `offsets_of` does."""
    known = consumer.list_topics(topic.name, timeout=ASK_S).topics.get(topic.name)
    if known is not None and known.error is not None and known.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
        raise KafkaException(known.error)
    if known is None or known.error is not None or not known.partitions:
        raise WorkbenchError(f"The topic {topic.url} does not exist. Check its name.")
    return {number: end_of(consumer, topic, number) for number in sorted(known.partitions)}


def end_of(consumer: Consumer, topic: Topic, number: int) -> tuple[int, int]:
    """Give the first offset of a partition and the one after its last; a broker that has just started has no leader."""
    until = time.monotonic() + ASK_S
    while True:
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic.name, number), timeout=ASK_S)
        except KafkaException as error:
            if error.args[0].code() not in _NO_LEADER or time.monotonic() > until:
                raise
            time.sleep(_AGAIN_S)
        else:
            return low, high


def offsets_at(consumer: Consumer, topic: Topic, at_ms: int, ends: Ends) -> dict[int, int]:
    """Give the first offset of every partition with a record of that time or later."""
    found = {}
    for place in consumer.offsets_for_times(
        [TopicPartition(topic.name, number, at_ms) for number in ends], timeout=ASK_S
    ):
        if place.error is not None:
            raise KafkaException(place.error)
        low, high = ends[place.partition]
        found[place.partition] = max(low, min(place.offset, high) if place.offset >= 0 else high)
    return found


def newest(  # noqa: PLR0917
    consumer: Consumer, topic: Topic, rows: int, begin: Mapping[int, int], ends: Ends, now_ms: int
) -> dict[int, int]:
    """Give where to begin so that the newest `rows` records are read, of all partitions those since one moment.

    `begin` is where more than as many records begin; times are ms since 1970.
    """

    def at(at_ms: int) -> dict[int, int]:
        found = offsets_at(consumer, topic, at_ms, ends)
        return {number: max(begin[number], offset) for number, offset in found.items()}

    late_ms, back_ms = now_ms + 1, _FIRST_STEP_MS
    late, early_ms, early = at(late_ms), 0, dict(begin)
    if behind(late, ends) > rows:  # stamped in the future
        return _between(late, {number: high for number, (_, high) in ends.items()}, rows, ends)
    while now_ms > back_ms:
        tried = at(now_ms - back_ms)
        if behind(tried, ends) > rows:
            early_ms, early = now_ms - back_ms, tried
            break
        late_ms, late = now_ms - back_ms, tried
        back_ms *= 2
    while late_ms - early_ms > 1 and behind(early, ends) - behind(late, ends) > _NEAR * rows:
        middle_ms = (early_ms + late_ms) // 2
        tried = at(middle_ms)
        if behind(tried, ends) > rows:
            early_ms, early = middle_ms, tried
        else:
            late_ms, late = middle_ms, tried
    return _between(early, late, rows, ends)


def _between(early: Mapping[int, int], late: Mapping[int, int], rows: int, ends: Ends) -> dict[int, int]:
    """Give the offsets with `rows` records behind them, between `early` ones with more and `late` ones with fewer."""
    before, after = behind(early, ends), behind(late, ends)
    share = (rows - after) / max(1, before - after)
    return {number: late[number] - int(share * (late[number] - early[number])) for number in ends}


def behind(begin: Mapping[int, int], ends: Ends) -> int:
    """Count the offsets of all partitions from `begin` on."""
    return sum(high - begin[number] for number, (_, high) in ends.items())
