"""The Nexmark generator against the published tables and distributions, and the winners of q6."""

import pickle
import re
import sys
from collections import Counter

import benchmark_script
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from plain_nexmark import draw_one

from workbench.errors import WorkbenchError
from workbench.workload import EventClock, Generator
from workbench.workload.nexmark import DEFAULT_CLOCK, SCHEMA, NexmarkGenerator, NexmarkSettings, events, query
from workbench.workload.nexmark.events import Draws, adjusted_numbers, channel_id, hot_id, last_ids, mix, pools
from workbench.workload.nexmark.inference import ImageGenerator
from workbench.workload.nexmark.queries import NAMES, Candidate, Winners
from workbench.workload.nexmark.settings import DEFAULTS

LONG = 500_000


@pytest.fixture(scope="module")
def long_stream():
    return events(0, LONG)


def column(table, record, name):
    """Values of a record's column where the record is present."""
    return table[record].combine_chunks().drop_null().field(name).to_numpy(zero_copy_only=False)


def ids_at(table, kind):
    return np.flatnonzero(table["event_type"].to_numpy() == kind).astype(np.int64)


# kind, latest person, latest auction, hot auction, hot bidder, hot seller, random auction, random person
TABLE = {
    0: (0, 0, -1, None, None, None, None, None),
    1: (1, 0, 0, None, None, 1000, None, (1000, 1010)),
    3: (1, 0, 2, None, None, 1000, None, (1000, 1010)),
    4: (2, 0, 2, 1000, 1001, None, (1000, 1012), (1000, 1010)),
    50: (0, 1, 2, None, None, None, None, None),
    51: (1, 1, 3, None, None, 1000, None, (1000, 1011)),
    54: (2, 1, 5, 1000, 1001, None, (1000, 1015), (1000, 1011)),
    1666: (2, 33, 101, 1100, 1001, None, (1001, 1111), (1000, 1043)),
    5001: (1, 100, 300, None, None, 1100, None, (1000, 1110)),
    5004: (2, 100, 302, 1300, 1101, None, (1202, 1312), (1000, 1110)),
    123456: (2, 2469, 7409, 8400, 3401, None, (8309, 8419), (2470, 3479)),
}


@pytest.mark.parametrize("event_id", TABLE)
def test_kinds_and_latest_ids_are_those_of_the_published_table(event_id):
    kind, person, auction, *_ = TABLE[event_id]
    table = events(event_id, event_id + 1)
    assert table["event_type"].to_pylist() == [kind]
    latest_person, latest_auction = last_ids(np.array([event_id]), DEFAULTS)
    assert (latest_person[0], latest_auction[0]) == (person, auction)
    row = table.to_pylist()[0]
    if kind == 0:
        assert row["person"]["id"] == 1000 + person
    if kind == 1:
        assert row["auction"]["id"] == 1000 + auction


def draws_of(event_id, record, name):
    """The values a reference takes at one event id over many seeds."""
    return Counter(
        events(event_id, event_id + 1, NexmarkSettings(seed=seed))[record].combine_chunks().field(name)[0].as_py()
        for seed in range(25)
    )


@pytest.fixture
def _small_pools(monkeypatch):
    """Texts of one seed for all: only the references matter, and making texts takes a while."""
    one = pools(DEFAULTS)
    module = sys.modules[NexmarkGenerator.__module__]  # the package's `events` is the function
    monkeypatch.setattr(module, "pools", lambda _: one)


@pytest.mark.usefixtures("_small_pools")
@pytest.mark.parametrize("event_id", [event_id for event_id, row in TABLE.items() if row[0] == 2])
def test_bids_refer_to_the_hot_and_random_ids_of_the_published_table(event_id):
    *_, hot_auction, hot_bidder, _, auctions, people = TABLE[event_id]
    seen = draws_of(event_id, "bid", "auction")
    assert seen.most_common(1)[0][0] == hot_auction
    assert len(seen) > 1
    assert all(auctions[0] <= auction <= auctions[1] for auction in seen if auction != hot_auction)
    seen = draws_of(event_id, "bid", "bidder")
    assert seen.most_common(1)[0][0] == hot_bidder
    assert all(people[0] <= bidder <= people[1] for bidder in seen if bidder != hot_bidder)


@pytest.mark.usefixtures("_small_pools")
@pytest.mark.parametrize("event_id", [event_id for event_id, row in TABLE.items() if row[0] == 1])
def test_auctions_refer_to_the_hot_and_random_sellers_of_the_published_table(event_id):
    hot_seller, people = TABLE[event_id][5], TABLE[event_id][7]
    seen = draws_of(event_id, "auction", "seller")
    assert seen.most_common(1)[0][0] == hot_seller
    assert all(people[0] <= seller <= people[1] for seller in seen)


def test_order_within_groups_is_the_published_permutation_and_shows_in_event_times():
    numbers = np.arange(8)
    assert adjusted_numbers(numbers, 10).tolist() == [0, 3, 6, 9, 2, 5, 8, 1]
    assert adjusted_numbers(numbers, 100).tolist() == [0, 53, 6, 59, 12, 65, 18, 71]
    assert sorted(adjusted_numbers(np.arange(1000), 100).tolist()) == list(range(1000))
    times = events(0, 8, NexmarkSettings(group_size=10))["dateTime"].cast(pa.int64()).to_numpy()
    assert ((times - DEFAULT_CLOCK.origin_us) // 100).tolist() == [0, 3, 6, 9, 2, 5, 8, 1]


@pytest.mark.parametrize(("generators", "expected"), [(1, [0, 0, 1, 1, 100]), (8, [0, 7, 8, 8, 800])])
def test_times_at_ten_thousand_a_second_are_the_published_ones(generators, expected):
    clock = EventClock(DEFAULT_CLOCK.origin_us, 0, 100.0 * generators)
    batch = next(NexmarkGenerator().batches(0, 1001, clock))
    ms = (batch["dateTime"].cast(pa.int64()).to_numpy() - clock.origin_us) // 1000
    assert ms[[0, 9, 10, 11, 1000]].tolist() == expected


def test_spacing_below_a_microsecond_does_not_collapse():
    clock = EventClock(DEFAULT_CLOCK.origin_us, 0, 0.1)  # 10 million a second
    batch = next(NexmarkGenerator().batches(0, 1000, clock))
    times = batch["dateTime"].cast(pa.int64()).to_numpy() - clock.origin_us
    assert times[-1] == 99
    assert len(set(times.tolist())) == 100


@pytest.mark.parametrize(
    ("spacing_us", "horizons"),
    [(100.0, (166, 167)), (800.0, (1332, 1333)), (1.0, (1, 2)), (0.1, (0, 1)), (0.8, (1, 2))],
)
def test_auctions_last_as_long_as_published(spacing_us, horizons):
    clock = EventClock(DEFAULT_CLOCK.origin_us, 0, spacing_us)
    table = pa.Table.from_batches(NexmarkGenerator().batches(0, 60_000, clock), SCHEMA)
    auctions = table.filter(pc.equal(table["event_type"], 1))
    starts = auctions["dateTime"].cast(pa.int64()).to_numpy()
    expires = auctions["auction"].combine_chunks().field("expires").cast(pa.int64()).to_numpy()
    lifetimes = (expires - starts) // 1000
    low, high = horizons
    assert lifetimes.min() == 1
    assert max(1, 2 * low) - 1 <= lifetimes.max() <= max(1, 2 * high)
    assert lifetimes.mean() == pytest.approx((low + high) / 2 + 0.5, rel=0.03, abs=0.6)


def test_kinds_come_in_the_exact_proportions_and_skew_is_the_published_one(long_stream):
    kinds = long_stream["event_type"].to_numpy().reshape(-1, 50)
    assert (np.sort(kinds, axis=1) == [0] + [1] * 3 + [2] * 46).all()
    bids = ids_at(long_stream, 2)
    person, auction = last_ids(bids, DEFAULTS)
    on, by = column(long_stream, "bid", "auction") - 1000, column(long_stream, "bid", "bidder") - 1000
    late = bids > 100_000  # once a thousand people are active
    assert np.mean(on == hot_id(auction, 100)) == pytest.approx(0.5045, abs=0.003)
    assert np.mean(on > auction) == pytest.approx(0.045, abs=0.002)
    assert (by <= person + 11).all()  # the first person id is added once; the Flink generator adds it twice
    hot_bidder = hot_id(person, 100) + 1
    assert np.mean((by == hot_bidder)[late]) == pytest.approx(0.7502, abs=0.003)
    assert np.mean(((by > person) & (by != hot_bidder))[late]) == pytest.approx(0.0025, abs=0.0005)
    rows = events(5000, 5050)
    bidders = Counter(column(rows, "bid", "bidder").tolist())
    assert bidders.most_common(1)[0][0] == 1101
    assert max(column(rows, "person", "id")) == 1100


def test_prices_and_reserves_are_log_uniform_and_shares_of_query_results_the_published_ones(long_stream):
    price = column(long_stream, "bid", "price")
    assert price.min() >= 100
    assert price.max() <= 10**8
    assert np.median(price) == pytest.approx(100_000, rel=0.05)
    assert price.mean() == pytest.approx(7_238_234, rel=0.02)
    assert np.mean(price < 10_000) == pytest.approx(1 / 3, abs=0.004)
    assert np.mean(price > 1_000_000) == pytest.approx(1 / 3, abs=0.004)
    more = column(long_stream, "auction", "reserve") - column(long_stream, "auction", "initialBid")
    assert more.min() >= 100
    assert np.median(more) == pytest.approx(100_000, rel=0.15)
    state = column(long_stream, "person", "state")
    local = dict(zip(column(long_stream, "person", "id"), np.isin(state, ["OR", "ID", "CA"]), strict=True))
    seller, category = column(long_stream, "auction", "seller"), column(long_stream, "auction", "category")
    exists = [(local[s], c) for s, c in zip(seller, category, strict=True) if s in local]
    assert np.mean(category == 10) == pytest.approx(0.2, abs=0.01)
    cold = [is_local for s, is_local in zip(seller, (local.get(s) for s in seller), strict=True) if s % 100]
    assert np.mean([is_local for is_local in cold if is_local is not None]) == pytest.approx(0.5, abs=0.02)
    assert len(exists) > 0.99 * len(seller)


def test_channels_are_hot_half_of_the_time_and_mostly_carry_an_id(long_stream):
    channel, url = column(long_stream, "bid", "channel"), column(long_stream, "bid", "url")
    hot = np.isin(channel, ["Google", "Facebook", "Baidu", "Apple"])
    assert np.mean(hot) == pytest.approx(0.5, abs=0.005)
    with_id = np.array(["&channel_id=" in text for text in url])
    assert not with_id[hot].any()
    assert np.mean(hot | with_id) == pytest.approx(0.95, abs=0.005)
    form = re.compile(r"https://www\.nexmark\.com/[a-z_]{3,4}/[a-z_]{3,4}/[a-z_]{3,4}/item\.htm\?query=1")
    assert all(form.match(text) for text in url[:2000])
    assert len(set(zip(channel, url, strict=True))) == len(set(channel))


def test_extra_fills_records_up_to_their_average_size_in_the_characters_asked_for(long_stream):
    lengths = np.array([len(text) for text in column(long_stream, "bid", "extra")])
    assert (lengths.min(), lengths.max()) == (54, 81)
    counts = np.bincount(lengths)[54:]
    assert counts.max() / counts.min() < 1.15
    texts = ("name", "emailAddress", "creditCard", "city", "state", "extra")
    person = 8 + sum(np.mean([len(t) for t in column(long_stream, "person", name)]) for name in texts)
    auction = 48 + sum(
        np.mean([len(t) for t in column(long_stream, "auction", name)]) for name in ("itemName", "description", "extra")
    )
    assert person == pytest.approx(200, rel=0.02)
    assert auction == pytest.approx(500, rel=0.02)
    small = events(0, 500, NexmarkSettings(person_bytes=0, auction_bytes=0, bid_bytes=31))  # already larger
    for record in ("person", "auction", "bid"):
        assert set(column(small, record, "extra")) == {""}
    letters = "".join(column(events(0, 20_000), "bid", "extra"))
    assert set(letters) == set("abcdefghijklmnopqrstuvwxyz")
    original = "".join(column(events(0, 20_000, NexmarkSettings(characters="original")), "bid", "extra"))
    assert min(original) >= "H"
    assert np.mean([c < "a" for c in original]) == pytest.approx(0.48, abs=0.01)
    assert original.count("c") / len(original) == pytest.approx(0.019, abs=0.002)


def test_texts_and_channel_ids_are_as_published():
    texts = pools(DEFAULTS)["descriptions"].texts.to_pylist()
    assert all(text == text.strip(" ") and len(text) <= 99 for text in texts)
    assert np.mean([len(text) for text in texts]) == pytest.approx(51, rel=0.03)
    joined = "".join(texts)
    assert joined.count(" ") / len(joined) == pytest.approx(1 / 13, rel=0.07)
    assert [channel_id(number) for number in range(4)] == [0, -2147483648, 1073741824, 1073741824]


def test_random_words_are_splitmix64_and_another_seed_gives_other_rows():
    """The published first outputs of splitmix64 from state 0."""
    golden = 0x9E3779B97F4A7C15
    assert [mix(golden * k % 2**64) for k in (1, 2, 3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    ids = np.array([0, 1, 10**12])
    assert Draws(5, ids).words(7).tolist() == [draw_one(5, int(i), 7) for i in ids]
    first, other = (events(0, 2000, NexmarkSettings(seed=seed)).to_pylist() for seed in (3, 4))
    assert all(a != b for a, b in zip(first, other, strict=True))


def test_late_events_keep_their_content_and_have_the_share_and_delay_asked_for():
    late = events(0, 50_000, NexmarkSettings(late_probability=0.1, late_delay_s=3.0))
    times = events(0, 50_000)["dateTime"].cast(pa.int64()).to_numpy()
    delay = times - late["dateTime"].cast(pa.int64()).to_numpy()
    assert np.mean(delay > 0) == pytest.approx(0.1, abs=0.005)
    assert delay[delay > 0].min() >= 1000
    assert 2_950_000 < delay.max() <= 3_000_000
    assert late["bid"].equals(events(0, 50_000)["bid"])


def test_generator_is_a_small_value_that_pickles_makes_moderate_batches_and_refuses_a_backward_range():
    generator = NexmarkGenerator(NexmarkSettings(seed=9))
    copy = pickle.loads(pickle.dumps(generator))  # noqa: S301
    assert isinstance(copy, Generator)
    assert copy == generator
    assert len(pickle.dumps(generator)) < 2000
    assert next(copy.batches(5, 10, DEFAULT_CLOCK)).schema == copy.schema()
    sizes = [batch.num_rows for batch in NexmarkGenerator().batches(0, 101_000, DEFAULT_CLOCK)]
    assert sum(sizes) == 101_000
    assert max(sizes) <= 50_000
    assert events(7, 7).schema == SCHEMA
    with pytest.raises(WorkbenchError, match="first <= last"):
        events(5, 4)


def test_average_row_size_counts_channel_and_url():
    average_row_bytes = benchmark_script.load("generator").average_row_bytes
    planned = 0.02 * 200 + 0.06 * 500 + 0.92 * 100
    assert planned + 50 < average_row_bytes() < planned + 90
    assert average_row_bytes(NexmarkSettings(bid_bytes=1100)) == pytest.approx(average_row_bytes() + 920, rel=0.02)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("group_size", size) for size in (953, 1906, 0)),
        *(("seed", seed) for seed in (-1, 1.5)),
        ("people", 0),
        ("hot_auction_ratio", 0),
        ("bid_bytes", 10**6),
        *(("late_probability", share) for share in (1.1, float("nan"))),
        ("late_delay_s", 0),
        ("characters", "emoji"),
    ],
)
def test_wrong_settings_are_refused_by_name(name, value):
    with pytest.raises(WorkbenchError, match="953" if name == "group_size" and value else name):
        NexmarkSettings(**{name: value})


@pytest.mark.parametrize(
    ("name", "said"), [("q11:tumblin", "did you mean 'q11:tumbling'"), ("zzz", "q1, q2, q3, q5, q6, q8, q11")]
)
def test_unknown_query_names_the_nearest(name, said):
    with pytest.raises(WorkbenchError, match=said):
        query(name)


@pytest.mark.parametrize("name", NAMES)
def test_catalogue_gives_named_queries_with_a_generator_and_no_others(name):
    found = query(name, NexmarkSettings(seed=2))
    assert found.name == f"nexmark:{name}"
    assert isinstance(found.dataset, Generator)
    assert found.event_time in found.dataset.schema().names


def test_images_repeat_by_number():
    whole = pa.Table.from_batches(ImageGenerator().batches(0, 30, DEFAULT_CLOCK))
    part = pa.Table.from_batches(ImageGenerator().batches(10, 20, DEFAULT_CLOCK))
    assert whole.slice(10, 10).combine_chunks().equals(part.combine_chunks())


def test_highest_bid_wins_and_the_earliest_of_equals_until_the_watermark_reaches_the_expiry():
    winners = Winners([], [])
    for time, price in ((5, 100), (9, 300), (3, 300), (1, 200)):
        winners.offer(Candidate(auction=1, expires_us=1000, time_us=time, price=price))
    assert winners.leading[1] == Candidate(1, 1000, 3, 300)
    winners = Winners([Candidate(1, 2000, 0, 50)], [])
    assert [list(winners.close(at_us)) for at_us in (1999, 2000, 9999)] == [[], [(1, 50)], []]


def test_average_is_over_the_ten_latest_winning_bids_and_rounds_half_up():
    winners = Winners([], [(time, 1000 * time) for time in range(10)])
    winners.offer(Candidate(7, 100, 99, 10_005))
    total = sum(1000 * time for time in range(1, 10)) + 10_005
    assert list(winners.close(100)) == [(7, int(total / 10 + 0.5))]
    assert winners.recent[0] == (1, 1000)
    assert list(Winners([Candidate(1, 1, 2, 4)], [(1, 3)]).close(1)) == [(1, 4)]
    older = Winners([Candidate(1, 100, 1, 9999)], [(time, 10) for time in range(10, 20)])  # is not counted
    assert list(older.close(100)) == [(1, 10)]


def test_next_expiry_is_rounded_up_to_a_millisecond():
    assert Winners([], []).next_expiry_ms() is None
    assert Winners([Candidate(1, 5001, 0, 1), Candidate(2, 7000, 0, 1)], []).next_expiry_ms() == 6
