"""Where a capture begins; how records are taken from the client: errors, ends that hold no record, other traffic."""

import bisect
import time
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka_records import Record

from workbench.errors import WorkbenchError
from workbench.workload.kafka import Limits, Topic, _capture
from workbench.workload.kafka._capture import _begin, _Reading
from workbench.workload.kafka._newest import ends_of

TOPIC = Topic("h:1", "orders")


class Consumer:
    """Gives batches of records, then none; `stands` is where it is in each partition."""

    def __init__(self, batches, stands=None):
        self.batches, self.stands, self.paused = list(batches), stands or {}, []

    def assign(self, places):
        self.assigned = {place.partition: place.offset for place in places}

    def consume(self, most, _seconds):
        return self.batches.pop(0)[:most] if self.batches else []

    def pause(self, places):
        self.paused += [place.partition for place in places]

    def position(self, places):
        for place in places:
            place.offset = self.stands.get(place.partition, -1001)
        return places


def reading(batches, ends, stands=None):
    begin = dict.fromkeys(ends, 0)
    ends = {number: (0, high) for number, high in ends.items()}
    return _Reading(Consumer(batches, stands), TOPIC, begin, ends, Limits(), lambda _: None)


def test_an_error_ends_a_capture():
    broken = Record(0, 0, KafkaError(KafkaError._TRANSPORT))
    with pytest.raises(KafkaException):
        reading([[Record(1, 0), broken, Record(1, 2)]], {0: 5, 1: 5}).read()


def test_records_come_in_parts(monkeypatch):
    monkeypatch.setattr(_capture, "_PART_ROWS", 2)
    said = []
    found = reading([[Record(0, place)] for place in range(5)], {0: 5})
    found.progress = said.append
    assert [part["_offset"].to_pylist() for part in found.read()] == [[0, 1], [2, 3], [4]]
    assert said == ["2 of about 5 records captured", "4 of about 5 records captured"]


def test_an_end_without_a_record_is_passed_while_others_write():
    late = [[Record(0, 7 + place)] for place in range(3)]  # offset 4 is the mark of a transaction
    found = reading([[Record(0, place) for place in range(4)], *late], {0: 5})
    assert [part.num_rows for part in found.read()] == [4]
    assert found.left == 0
    assert found.consumer.paused == [0]


def test_an_end_without_a_record_is_passed_where_nobody_writes():
    found = reading([[Record(0, place) for place in range(4)]], {0: 5}, stands={0: 5})
    found.read()
    assert found.left == 0


def test_a_partition_without_a_leader_is_told_although_another_has_traffic(monkeypatch):
    monkeypatch.setattr(_capture, "_SILENT_S", 0.0)
    found = reading([[Record(1, 5 + place)] for place in range(50)], {0: 5, 1: 5})
    with pytest.raises(WorkbenchError, match="gave no record for 0 s although 5 are left"):
        found.read()


NOW_MS = 1_790_000_000_000


class Sized(Record):
    def value(self):
        return b"x" * 1024


class Stamped(Consumer):
    """A topic whose records have the times of `stamps`, ms since 1970, by partition."""

    def __init__(self, stamps):
        last = [Sized(number, len(times) - 1) for number, times in stamps.items() if times]
        super().__init__([last])
        self.stamps = stamps

    def list_topics(self, name, timeout):  # noqa: ARG002
        known = SimpleNamespace(error=None, partitions=dict.fromkeys(self.stamps))
        return SimpleNamespace(topics={name: known})

    def get_watermark_offsets(self, place, timeout):  # noqa: ARG002
        return 0, len(self.stamps[place.partition])

    def offsets_for_times(self, places, timeout):  # noqa: ARG002
        for place in places:
            times = self.stamps[place.partition]
            first = bisect.bisect_left(times, place.offset)
            place.offset = first if first < len(times) else -1
        return places


@pytest.fixture
def begun(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: NOW_MS / 1000)

    def begin(stamps, **limits):
        topic = Stamped(stamps)
        first = _begin(topic, TOPIC, Limits(**limits), ends_of(topic, TOPIC))
        return {number: len(times) - first[number] for number, times in stamps.items()}

    return begin


def spread(count, seconds, before_s=0):
    """Times of `count` records within `seconds`, until `before_s` ago."""
    return [NOW_MS - round(1000 * (before_s + seconds * (1 - place / count))) for place in range(count)]


@pytest.mark.parametrize("before_s", [0, 5, 40_000_000])
def test_partitions_are_captured_since_one_moment(begun, before_s):
    taken = begun({0: spread(90_000, 900, before_s), 1: spread(10_000, 900, before_s), 2: []}, rows=10_000)
    assert 9_990 <= sum(taken.values()) <= 10_000
    assert taken[0] == pytest.approx(9_000, abs=20)
    assert taken[2] == 0


def test_a_partition_without_new_traffic_gives_nothing(begun):
    assert begun({0: spread(5_000, 50), 1: spread(50_000, 500, before_s=100)}, rows=1_000) == {0: 1_000, 1: 0}


def test_a_topic_with_less_than_is_asked_is_captured_whole(begun):
    assert begun({0: spread(500, 5), 1: spread(7, 500)}, rows=1_000) == {0: 500, 1: 7}


@pytest.mark.parametrize("at_ms", [NOW_MS - 5_000, NOW_MS + 3_600_000, 0])
def test_records_of_one_time_are_shared_in_proportion(begun, at_ms):
    taken = begun({0: 9_000 * [at_ms], 1: 1_000 * [at_ms]}, rows=1_000)
    assert taken == pytest.approx({0: 900, 1: 100}, abs=1)


def test_seconds_bound_what_is_captured(begun):
    assert begun({0: spread(6_000, 600), 1: spread(600, 600)}, seconds=60.0) == {0: 600, 1: 60}


def test_of_large_records_fewer_are_read_so_that_they_are_the_newest(begun):
    taken = begun({0: spread(50_000, 500), 1: spread(50_000, 500)}, megabytes=10)
    assert taken == pytest.approx({0: 4_864, 1: 4_864}, abs=100)  # 95 % of 10 MiB, of 1 KiB each
