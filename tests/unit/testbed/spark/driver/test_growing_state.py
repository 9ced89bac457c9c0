"""How long rows stay, and what a state that still grows will add, by a state whose times and costs are known."""

import random
from types import SimpleNamespace

import pytest

from workbench.errors import WorkbenchError
from workbench.testbed.spark.driver import growing_state
from workbench.testbed.spark.driver.growing_state import full, hurry, lacking_s, rows_held, stays
from workbench.testbed.spark.driver.live import CompletedBatch

STAYS = 660.0, 75.0  # seconds of event time: a join over ten minutes, after a deduplication
DRIVER_S, ROW_S, HELD_S = 0.5, 1e-5, 3e-6  # of a batch, of a row that enters, of a row in the state


class Settings(dict):
    set, unset = dict.__setitem__, dict.pop


class Query:
    """A query whose rows stay in operators for `stays`; a batch goes through all rows that they hold."""

    def __init__(self, stays=STAYS, counts=True, name="symmetricHashJoin", held_s=HELD_S, scatter=0.0):
        self.counts, self.name, self.held_s, self.scatter = counts, name, held_s, scatter
        self.stays, self.held, self.done = stays, [[] for _ in stays], []
        self.now = self.event_s = self.watermark_s = 0.0
        self.rows = self.leap_s = 0.0
        self.epoch, self.fails, self.retired = 0, False, False
        self.sides, self.interval_s, self.quota = False, 2.0, True
        self.shares = [1.0 for _ in stays]  # of the rows, that enter
        self.ahead = 0  # batches that Spark begins before it is known that enough are done
        self.noise = random.Random(7).gauss

    def start(self, *_):
        return self

    @property
    def since_empty(self):
        return self.done

    def retire(self, _):
        self.retired = True
        if self.fails:
            raise WorkbenchError("It failed.")

    def fixed_batches(self, rows, event_rate):
        self.epoch += 1
        self.rows, self.leap_s = rows, rows / event_rate

    def batches(self, _live, count):
        if self.fails:
            raise WorkbenchError("Its batches take too long.")
        return [self.batch(self.rows, self.leap_s) for _ in range(count + self.ahead)]

    def tick(self):
        self.batch(self.rows, self.leap_s)

    def batch(self, rows, leap_s):
        first_s, self.event_s = self.event_s, self.event_s + leap_s
        states = []
        for stay_s, share, held in zip(self.stays, self.shares, self.held, strict=True):
            held += [(first_s + leap_s * part / 8, share * rows / 8) for part in range(1, 9)]
            left = [one for one in held if one[0] <= self.watermark_s - stay_s]
            held[:] = held[len(left) :]
            removed, total = (sum(count for _, count in some) for some in (left, held))
            states.append({"operatorName": self.name, "numRowsTotal": total * self.counts})
            states[-1] |= {"numRowsRemoved": removed, "numRowsUpdated": share * rows}
        if self.sides:
            numbers = {key for state in states for key in state} - {"operatorName"}
            states = [{"operatorName": self.name} | {key: sum(state[key] for state in states) for key in numbers}]
        self.watermark_s = self.event_s
        took_s = DRIVER_S + ROW_S * rows + self.held_s * sum(count for held in self.held for _, count in held)
        took_s *= self.noise(1.0, self.scatter) * (1.0 if self.quota else 0.4)
        self.now += max(took_s, self.interval_s if not self.quota else 0.0)
        release = SimpleNamespace(first_us=first_s * 1e6, last_us=self.event_s * 1e6, records=rows, epoch=self.epoch)
        batch = SimpleNamespace(records=rows, duration_s=took_s)
        self.done.append(SimpleNamespace(batch=batch, release=release, progress={"stateOperators": states}))
        self.done[-1].batch_id, self.done[-1].quota = len(self.done), self.quota
        return self.done[-1]


@pytest.fixture
def seen(monkeypatch):
    def run(query):
        monkeypatch.setattr(growing_state, "now_s", lambda: query.now)
        settings = Settings()
        found = stays(query, None, SimpleNamespace(conf=settings))
        assert query.retired
        assert not settings
        return found

    return run


@pytest.mark.parametrize("times", [0.1, 1.0, 30.0])
def test_the_time_that_rows_stay_is_found_for_each_operator(seen, times):
    found = seen(query := Query(tuple(times * stay_s for stay_s in STAYS)))
    assert found == {place: pytest.approx(times * stay_s, rel=0.35) for place, stay_s in enumerate(STAYS)}
    assert found[0] == pytest.approx(times * STAYS[0], rel=0.15)
    assert query.now < 60


def test_rows_of_before_do_not_hide_that_a_side_is_still_filling(seen):
    """They leave all at once, so the leaps end too soon: the longer side is full only after two of them."""
    both = Query((132.0, 12.0))
    both.sides, both.shares, both.ahead = True, [0.55, 0.45], 1
    (stay_s,) = seen(both).values()
    assert stay_s == pytest.approx(0.55 * 132 + 0.45 * 12, rel=0.08)


def test_a_join_that_takes_no_rows_any_more_says_nothing():
    query = Query((60.0,))
    for number in range(growing_state._PARTS):
        query.batch(0.0 if number > 4 else 1_000.0, 20.0)
    query.done[-1].progress["stateOperators"][0]["numRowsRemoved"] = 1
    assert growing_state.mean_stays(query.done) == {}


def test_rows_that_never_leave_an_operator_and_batches_that_take_too_long_say_nothing(seen):
    assert seen(Query((60.0, 1e12))) == {}
    slow = Query()
    slow.fails = True
    assert seen(slow) == {}


def test_a_state_whose_rows_cost_nothing_lacks_nothing_though_batches_scatter():
    lacking = []
    for seed in range(200):
        young = Query(held_s=0.0, scatter=0.03)
        young.noise = random.Random(seed).gauss
        for _ in range(30):
            young.batch(2_000.0, 2.0)
        lacking.append(lacking_s(young.done, 6, dict(enumerate(STAYS))))
    assert sum(one > 0 for one in lacking) <= 10  # 5 %


def test_a_state_that_is_far_younger_than_it_will_be_is_not_continued():
    young = Query((86_400.0,))
    for _ in range(30):
        young.batch(2_000.0, 2.0)
    assert lacking_s(young.done, 6, {0: 86_400.0}) == 0.0


def test_sides_of_a_join_may_stay_for_other_times(seen):
    one_side, other = STAYS
    both = Query((one_side, other))
    both.sides = True  # of one operator
    (stay_s,) = seen(both).values()
    assert stay_s == pytest.approx((one_side + other) / 2, rel=0.2)
    young, full = Query(counts=False), Query(counts=False)
    young.sides = full.sides = True
    for _ in range(60):
        young.batch(2_000.0, 2.0)  # 120 s: one side is full
    for _ in range(400):
        full.batch(2_000.0, 2.0)
    taken_s = sum(one.batch.duration_s for one in young.done[-6:]) / 6
    assert taken_s + lacking_s(young.done, 6, {0: stay_s}) == pytest.approx(full.done[-1].batch.duration_s, rel=0.15)


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("before", [0.33, 1.0, 3.0])  # times the rate, when the state began to fill
def test_a_young_state_lacks_what_the_full_one_takes(before, counts):
    rate, times = 1_000.0, dict(enumerate(STAYS))
    young, full = Query(counts=counts), Query(counts=counts)
    for number in range(40):
        young.batch(rate * 2 * (before if number < 20 else 1.0), 2.0)
    for _ in range(400):
        full.batch(rate * 2, 2.0)
    taken_s = sum(one.batch.duration_s for one in young.done[-6:]) / 6
    lacking = lacking_s(young.done, 6, times)
    assert taken_s + lacking == pytest.approx(full.done[-1].batch.duration_s, rel=0.1)
    assert full.done[-1].batch.duration_s > 1.5 * taken_s
    assert lacking_s(full.done, 6, times) == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("counts", [True, False])
def test_the_rows_held_are_counted_and_those_of_a_full_state_are_foretold(counts):
    rate, times = 1_000.0, dict(enumerate(STAYS))
    young, full = Query(counts=counts), Query(counts=counts)
    young.shares = full.shares = [1.0, 0.5]
    for _ in range(20):
        young.batch(rate * 2, 2.0)
    for _ in range(400):
        full.batch(rate * 2, 2.0)
    (now,), (in_time,) = rows_held(young.done, 4, times), rows_held(full.done, 4, times)
    assert now.rows < in_time.rows / 2
    assert {now.kind, in_time.kind} == {"join"}
    assert now.stays_s == pytest.approx(STAYS[0] + STAYS[1] / 2, rel=0.01)
    assert in_time.stays_s == pytest.approx(now.stays_s, rel=0.01)
    assert in_time.rows == pytest.approx(rate * in_time.stays_s, rel=0.02)
    assert rows_held(young.done, 4, {}) == ()
    assert rows_held(young.done, 4, {0: 86_400.0}) == ()  # far younger than it will be
    repeats = Query((75.0,), counts=counts, name="dedupe")
    groups = Query(counts=False, name="stateStoreSave")
    for _ in range(20):
        repeats.batch(rate * 2, 2.0)
        groups.batch(rate * 2, 2.0)
    assert [one.kind for one in rows_held(repeats.done, 4, {0: 75.0})] == ["deduplicate"]
    assert rows_held(groups.done, 4, times) == ()


def test_nothing_is_lacking_where_it_is_not_known_how_long_rows_stay():
    young = Query()
    for _ in range(10):
        young.batch(2_000.0, 2.0)
    assert lacking_s(young.done, 6, {}) == 0.0
    assert lacking_s(young.done[:1], 6, {0: 660.0}) == 0.0
    groups = Query(counts=False, name="stateStoreSave")  # each update may be of a row that it has
    for _ in range(10):
        groups.batch(2_000.0, 2.0)
    assert lacking_s(groups.done, 6, {0: 660.0}) == 0.0


def batch(at_s, *states, records=100, name="stateStoreSave"):
    """A batch of 2 s, with (rows updated, rows removed) of each state."""
    listed = [
        {"operatorName": name, "numRowsUpdated": updated, "numRowsRemoved": removed} for updated, removed in states
    ]
    progress = {"durationMs": {"triggerExecution": 2000}, "stateOperators": listed}
    release = SimpleNamespace(at_s=at_s, records=records, due=0.0, queue=0.0)
    return CompletedBatch(int(at_s), progress, (), release=release)


@pytest.mark.parametrize(
    ("batches", "now_s", "expected"),
    [
        ([], 100, False),  # nothing is known yet
        ([batch(0), batch(2)], 4, True),  # no state
        ([batch(0, (0, 0)), batch(2, (0, 0))], 100, False),  # no row has reached it
        ([batch(0, (5, 0)), batch(2, (5, 0))], 100, False),  # nothing left it
        ([batch(0, (0, 0), records=1)], 4, False),  # the batch that starts the clock
        ([batch(0, (5, 0)), batch(14, (5, 3))], 23, False),  # the first left after 16 s
        ([batch(0, (5, 0)), batch(14, (5, 3)), batch(16, (5, 0))], 32, True),
        ([batch(0, (5, 0), (0, 0)), batch(14, (5, 3), (1, 0))], 40, False),  # the second state has rows now
        ([batch(0, (5, 0), (0, 0)), batch(14, (5, 3), (1, 0)), batch(18, (5, 3), (1, 1))], 29, False),
        ([batch(0, (5, 0), (0, 0)), batch(14, (5, 3), (1, 0)), batch(18, (5, 3), (1, 1))], 40, True),
        ([batch(0, (5, 0), (0, 0)), batch(14, (5, 3), (0, 0))], 32, True),  # a state without rows is not a state
    ],
)
def test_full(batches, now_s, expected):
    assert full(batches, now_s) is expected


def test_a_join_is_full_when_both_sides_are():
    def joined(count, left_after, right_after):
        return [
            batch(
                2.0 * number,
                (200, 100 * (number > left_after) + 100 * (number > right_after)),
                name="symmetricHashJoin",
            )
            for number in range(count)
        ]

    assert not full(joined(30, left_after=40, right_after=5), 60.0)
    assert full(joined(60, left_after=30, right_after=5), 120.0)
    bursts = [
        batch(2.0 * number, (200, 1000 * (number > 9 and not number % 5)), name="symmetricHashJoin")
        for number in range(24)
    ]
    assert full(bursts, 48.0)  # the rows of a window leave together


@pytest.mark.parametrize("share", [0.06, 0.15, 0.5])
def test_a_join_is_not_full_while_its_smaller_side_grows(share):
    query = Query((600.0, 10.0))
    query.sides = True
    found = []
    for _ in range(60):
        query.batch(2_000.0, 2.0)
        last = query.done[-1]
        last.release.at_s, last.duration_s = last.release.first_us / 1e6, 2.0
        state = last.progress["stateOperators"][0]
        state["numRowsTotal"] = 0  # not counted
        state["numRowsUpdated"], state["numRowsRemoved"] = 2_000, 0 if query.event_s < 14 else 2_000 * (1 - share)
        found.append(full(query.done, query.event_s))
    assert not any(found)


def test_a_hurry_takes_no_fewer_rows_than_the_rate(monkeypatch):
    query = Query((20.0,))
    query.interval_s = 10.0
    hurried(monkeypatch, query, 100.0, {0: 0.0})
    assert min(one.batch.records for one in query.done) >= 1_000


def hurried(monkeypatch, query, rate, stays):
    """Whether the state of `query` is full after a hurry, and the seconds that this takes."""
    monkeypatch.setattr(growing_state, "now_s", lambda: query.now)
    begun, query.quota = query.now, False
    filled = hurry(query, query, rate, stays, 60.0)
    query.quota = True
    return filled, query.now - begun


@pytest.mark.parametrize("rate", [500.0, 2_000.0])
def test_a_state_fills_sooner_on_all_cores(monkeypatch, rate):
    query = Query((660.0, 75.0), counts=False)
    query.sides = True
    for _ in range(22):
        query.batch(rate * 2.0, 2.0)
    filled, took_s = hurried(monkeypatch, query, rate, {0: 370.0})
    assert filled
    assert took_s < 60
    for _ in range(6):
        query.batch(rate * 2.0, 2.0)
    assert sum(count for held in query.held for _, count in held) == pytest.approx(735 * rate, rel=0.1)
    assert lacking_s(query.done, 6, {0: 370.0}) == 0.0


def test_what_a_hurry_cannot_fill_is_added(monkeypatch):
    rate, stay_s = 4_000.0, 6_600.0
    query = Query((stay_s,), held_s=2e-8)
    for _ in range(22):
        query.batch(rate * 2.0, 2.0)
    filled, took_s = hurried(monkeypatch, query, rate, {0: stay_s})
    assert not filled
    assert took_s == pytest.approx(60.0, abs=15)
    assert stay_s / 4 < query.event_s < stay_s
    for _ in range(6):
        query.batch(rate * 2.0, 2.0)
    lacking = lacking_s(query.done, 6, {0: stay_s})
    assert lacking > 0.1
    full_s = DRIVER_S + ROW_S * rate * 2.0 + query.held_s * rate * stay_s
    assert query.done[-1].batch.duration_s + lacking == pytest.approx(full_s, rel=0.1)
