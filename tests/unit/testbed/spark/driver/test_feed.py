"""How the rows of a topic are offered and counted; offsets and progress as Kafka's source reports them."""

import socket
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from workbench.errors import QueryError, WorkbenchError
from workbench.testbed.spark.driver import feed as feeds
from workbench.testbed.spark.driver.feed import TopicFeed, TopicRows, cap_for, check_broker, divided
from workbench.testbed.spark.log.event_log import BatchLog
from workbench.workload import Command
from workbench.workload.kafka import Topic

ROWS = TopicRows("kafka://localhost:9092/orders", pa.schema([("order", pa.int64())]))
BEGUN_S = 1_790_000_000.0


@pytest.fixture
def feed(monkeypatch):
    monkeypatch.delenv("WORKBENCH_KAFKA_CONFIG", raising=False)
    monkeypatch.setattr(feeds, "answers", lambda _: True)
    monkeypatch.setattr(feeds, "offsets_of", lambda *_: {0: (10, 1010), 1: (0, 1000)})
    return TopicFeed(ROWS)


def batch(number, at_s, start, end, latest=(1010, 1000), *, held=1.0):
    def by_partition(pair):
        return None if pair is None else {"orders": {str(part): offset for part, offset in enumerate(pair)}}

    source = {"startOffset": by_partition(start), "endOffset": by_partition(end), "latestOffset": by_partition(latest)}
    source["numInputRows"] = round(held * (sum(end) - sum(start or (10, 0))))
    stamp = datetime.fromtimestamp(BEGUN_S + at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return BatchLog(number, {"timestamp": stamp, "sources": [source]}, ())


def offered(feed, rate, rows, last_batch=-1):
    feed.offer(Command(1, rate, rows))
    return feed.starts(last_batch)


@pytest.fixture
def begun(feed):
    """The feed at 100 records/s, after the batch that pays for the start."""
    assert offered(feed, 100.0, 100)
    assert feed.release(batch(0, 0.0, None, (60, 50))) is None  # pays for the start
    return feed


def test_rows_are_counted_by_offsets_and_due_by_the_clock_what_is_taken_early_hides_no_later_lack(begun):
    feed = begun
    first = feed.release(batch(1, 1.0, (60, 50), (110, 100)))
    second = feed.release(batch(2, 2.0, (110, 100), (160, 150)))
    late = feed.release(batch(3, 3.5, (160, 150), (210, 200)))
    assert [one.records for one in (first, second, late)] == [100, 100, 100]
    assert [round(one.due, 2) for one in (first, second, late)] == [100, 200, 350]
    assert [round(one.queue, 2) for one in (first, second, late)] == [0, 0, 50]
    assert late.at_s - first.at_s == pytest.approx(2.5)
    assert divided(100, [1, 99_999]) == [1, 99]
    assert divided(100, [10, 10]) == [10, 10]


def test_what_is_taken_early_is_offered_early_and_hides_no_later_lack(begun):
    begun.release(batch(1, 1.3, (60, 50), (110, 100)))
    early = begun.release(batch(2, 2.0, (110, 100), (160, 150)))
    assert early.due == early.last == 200
    assert begun.release(batch(3, 4.0, (160, 150), (210, 200))).queue == pytest.approx(100)


def test_the_first_batch_without_offsets_begins_at_the_earliest(feed):
    offered(feed, None, 100)
    feed._ready_after = -1
    assert feed.release(batch(0, 0.0, None, (60, 50))).records == 100


def test_a_batch_that_was_cut_off_and_repeated_is_not_counted(feed):
    offered(feed, 100.0, 100)
    for number in range(3):
        feed.release(batch(number, number, (10, 0), (60, 50)))
    assert not offered(feed, 200.0, 200, last_batch=3)
    assert feed.release(batch(3, 5.0, (60, 50), (110, 100))) is None
    assert feed.release(batch(4, 6.0, (110, 100), (210, 200))) is None
    assert feed.release(batch(5, 7.0, (210, 200), (310, 300))).records == 200


def test_a_topic_half_of_whose_offsets_hold_no_record_is_refused(feed):
    offered(feed, 100.0, 100)
    feed.release(batch(0, 0.0, None, (60, 50), held=0.5))
    with pytest.raises(WorkbenchError, match=r"^Only 50 % of the 100 offsets .*9092/orders hold .* 99 % .*Fill a"):
        feed.release(batch(1, 1.0, (60, 50), (110, 100), held=0.5))


def test_few_offsets_without_a_record_are_made_up_for(feed):
    offered(feed, 200.0, 200)
    assert feed.cap == 200
    feed.release(batch(0, 0.0, None, (60, 50)))
    assert feed.release(batch(1, 1.0, (60, 50), (160, 150), held=0.995)).records == 199
    offered(feed, 200.0, 200, last_batch=1)
    assert feed.cap == 202


def test_records_that_a_query_reads_twice_count_once_and_so_do_the_partitions_that_a_batch_read(begun):
    assert begun.release(batch(1, 1.0, (60, 50), (110, 100), held=2.0)).records == 100
    assert begun.partitions == 2
    begun.release(batch(2, 2.0, (110, 100), (210, 100)))
    assert begun.partitions == 1


UNEVEN = [10_000 + 137 * number for number in range(100)]
IDLE = [50_000, 61_000, 72_000, 83_000] + 196 * [0]
FEW_LEFT = [500_000, 400_000] + 98 * [3]


@pytest.mark.parametrize("left", [UNEVEN, IDLE, 100 * [20_000], [1_000_000], [999_999, 1_000_001], FEW_LEFT])
@pytest.mark.parametrize("wanted", [1_000, 4_000, 4_040, 12_345])
def test_the_lowest_cap_with_which_the_rate_is_offered_is_chosen(left, wanted):
    def taken(cap):
        sizes, total = list(left), 0
        for _ in range(10):
            shares = divided(cap, [size for size in sizes if size])
            total += sum(shares)
            sizes = [size - share for size, share in zip([size for size in sizes if size], shares, strict=True)]
        return total / 10

    cap = cap_for(wanted, left)
    assert taken(cap - 1) < wanted <= taken(cap)
    assert taken(cap) - wanted < sum(size > 0 for size in left)  # equal partitions all round at once
    if left in (UNEVEN, IDLE):
        assert taken(cap) <= 1.005 * wanted


def test_a_topic_without_enough_for_a_batch_is_begun_again(feed):
    offered(feed, 100.0, 300)
    feed.release(batch(0, 0.0, None, (860, 850)))
    assert not feed.exhausted
    feed.release(batch(1, 1.0, (860, 850), (1000, 990)))
    assert feed.exhausted
    assert offered(feed, 100.0, 300, last_batch=1)
    assert not feed.exhausted


def test_a_topic_whose_retention_overtakes_the_run_is_named(begun, monkeypatch):
    monkeypatch.setattr(feeds, "offsets_of", lambda *_: {0: (61, 1010), 1: (0, 1000)})
    with pytest.raises(WorkbenchError, match=r"^Records of kafka://\S+/orders were dropped .* Raise its retention"):
        offered(begun, 100.0, 100, last_batch=0)


def test_a_topic_that_grows_goes_on(feed):
    offered(feed, 100.0, 300)
    feed.release(batch(0, 0.0, None, (1000, 990), latest=(5000, 5000)))
    assert not feed.exhausted


def test_a_topic_smaller_than_a_batch_is_refused_and_without_a_rate_several_batches_are_read_of_it(feed):
    with pytest.raises(WorkbenchError, match=r"holds 2,000 records, fewer than one batch of 3,000 .*Fill it"):
        offered(feed, 3000.0, 3000)
    offered(feed, None, 3000)
    assert feed._wanted == 250


def test_a_command_finds_that_no_broker_answers(feed, monkeypatch):
    monkeypatch.setattr(feeds, "answers", lambda _: False)
    with pytest.raises(WorkbenchError, match="No broker of kafka://localhost:9092/orders answers any longer"):
        offered(feed, 100.0, 100)


def test_a_broker_that_no_longer_answers_is_noticed():
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"kafka://127.0.0.1:{server.getsockname()[1]}/orders"
        check_broker(Topic.parse(url))
    with pytest.raises(QueryError, match=r"No broker of kafka://127.0.0.1:\d+/orders answers any longer\. Start"):
        check_broker(Topic.parse(url))
