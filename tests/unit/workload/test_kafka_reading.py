"""How records are taken from the client: errors among them, ends that hold no record, other traffic."""

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka_records import Record

from workbench.errors import WorkbenchError
from workbench.workload.kafka import Limits, Topic, _capture
from workbench.workload.kafka._capture import _Reading, _shared, _State

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


def reading(folder, batches, ends, stands=None):
    state = _State(TOPIC.url, {}, dict.fromkeys(ends, 0), ends)
    return _Reading(Consumer(batches, stands), TOPIC, state, Limits(), folder, lambda _: None)


def test_records_before_and_after_an_error_are_kept(tmp_path):
    broken = Record(0, 0, KafkaError(KafkaError._TRANSPORT))
    found = reading(tmp_path, [[Record(1, 0), Record(1, 1), broken, Record(1, 2)]], {"0": 5, "1": 5})
    with pytest.raises(KafkaException):
        found.read()
    found.write()
    assert found.state.following == {"0": 0, "1": 3}
    assert found.state.rows == 3


def test_an_end_without_a_record_is_passed_while_others_write(tmp_path):
    late = [[Record(0, 7 + place)] for place in range(3)]  # offset 4 is the mark of a transaction
    found = reading(tmp_path, [[Record(0, place) for place in range(4)], *late], {"0": 5})
    found.read()
    found.write()
    assert (found.state.rows, found.state.left) == (4, 0)
    assert found.consumer.paused == [0]


def test_an_end_without_a_record_is_passed_where_nobody_writes(tmp_path):
    found = reading(tmp_path, [[Record(0, place) for place in range(4)]], {"0": 5}, stands={0: 5})
    found.read()
    assert found.state.left == 0


def test_a_partition_without_a_leader_is_told_although_another_has_traffic(tmp_path, monkeypatch):
    monkeypatch.setattr(_capture, "_SILENT_S", 0.0)
    found = reading(tmp_path, [[Record(1, 5 + place)] for place in range(50)], {"0": 5, "1": 5})
    with pytest.raises(WorkbenchError, match="gave no record for 0 s although 5 are left"):
        found.read()


@pytest.mark.parametrize(
    ("rows", "there", "shared"),
    [
        (100, {0: 10, 1: 1000}, {0: 10, 1: 90}),
        (9, {0: 100, 1: 100, 2: 100}, {0: 3, 1: 3, 2: 3}),
        (1000, {0: 0, 1: 7}, {0: 0, 1: 7}),
    ],
)
def test_what_a_partition_has_not_goes_to_the_others(rows, there, shared):
    assert _shared(rows, there) == shared
