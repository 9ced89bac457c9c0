"""How long rows stay, and what a state that still grows will add, by a state whose times and costs are known."""

from types import SimpleNamespace

import pytest

from workbench.testbed.spark.driver import growing_state
from workbench.testbed.spark.driver.growing_state import lacking_s, stays

STAYS = 660.0, 75.0  # seconds of event time: a join over ten minutes, after a deduplication
DRIVER_S, ROW_S, HELD_S = 0.5, 1e-5, 3e-6  # of a batch, of a row that enters, of a row in the state


class Settings(dict):
    set, unset = dict.__setitem__, dict.pop


class Query:
    """A query whose rows stay in operators for `stays`; a batch goes through all rows that they hold."""

    def __init__(self, stays=STAYS, counts=True, name="symmetricHashJoin"):
        self.counts, self.name = counts, name
        self.stays, self.held, self.done = stays, [[] for _ in stays], []
        self.now = self.event_s = self.watermark_s = 0.0
        self.rows = self.leap_s = 0.0

    def start(self, *_):
        return self

    def retire(self, _):
        pass

    def fixed_batches(self, rows, event_rate):
        self.rows, self.leap_s = rows, rows / event_rate

    def batches(self, _live, count):
        return [self.batch(self.rows, self.leap_s) for _ in range(count)]

    def batch(self, rows, leap_s):
        first_s, self.event_s = self.event_s, self.event_s + leap_s
        states = []
        for stay_s, held in zip(self.stays, self.held, strict=True):
            held += [(first_s + leap_s * part / 8, rows / 8) for part in range(1, 9)]
            left = [one for one in held if one[0] <= self.watermark_s - stay_s]
            held[:] = held[len(left) :]
            removed, total = (sum(count for _, count in some) for some in (left, held))
            states.append({"operatorName": self.name, "numRowsTotal": total * self.counts})
            states[-1] |= {"numRowsRemoved": removed, "numRowsUpdated": rows}
        self.watermark_s = self.event_s
        took_s = DRIVER_S + ROW_S * rows + HELD_S * sum(count for held in self.held for _, count in held)
        self.now += took_s
        release = SimpleNamespace(first_us=first_s * 1e6, last_us=self.event_s * 1e6, records=rows)
        batch = SimpleNamespace(records=rows, duration_s=took_s)
        self.done.append(SimpleNamespace(batch=batch, release=release, progress={"stateOperators": states}))
        self.done[-1].batch_id = len(self.done)
        return self.done[-1]


@pytest.fixture
def seen(monkeypatch):
    def run(query):
        monkeypatch.setattr(growing_state, "now_s", lambda: query.now)
        return stays(query, None, SimpleNamespace(conf=Settings()))

    return run


@pytest.mark.parametrize("times", [0.1, 1.0, 30.0])
def test_the_time_that_rows_stay_is_found_for_each_operator(seen, times):
    found = seen(query := Query(tuple(times * stay_s for stay_s in STAYS)))
    assert found == {place: pytest.approx(times * stay_s, rel=0.35) for place, stay_s in enumerate(STAYS)}
    assert found[0] == pytest.approx(times * STAYS[0], rel=0.15)
    assert query.now < 60


def test_rows_that_never_leave_an_operator_say_nothing(seen):
    assert seen(Query((60.0, 1e12))) == {}


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("before", [1.0, 3.0])  # times the rate, when the state began to fill
def test_a_young_state_lacks_what_the_full_one_takes(before, counts):
    rate, times = 1_000.0, dict(enumerate(STAYS))
    young, full = Query(counts=counts), Query(counts=counts)
    for number in range(40):
        young.batch(rate * 2 * (before if number < 20 else 1.0), 2.0)
    for _ in range(400):
        full.batch(rate * 2, 2.0)
    taken_s = sum(one.batch.duration_s for one in young.done[-6:]) / 6
    lacking = lacking_s(young.done, 6, times, rate)
    assert taken_s + lacking == pytest.approx(full.done[-1].batch.duration_s, rel=0.1)
    assert full.done[-1].batch.duration_s > 1.5 * taken_s
    assert lacking_s(full.done, 6, times, rate) == pytest.approx(0.0, abs=0.02)


def test_nothing_is_lacking_where_it_is_not_known_how_long_rows_stay():
    young = Query()
    for _ in range(10):
        young.batch(2_000.0, 2.0)
    assert lacking_s(young.done, 6, {}, 1_000.0) == 0.0
    assert lacking_s(young.done[:1], 6, {0: 660.0}, 1_000.0) == 0.0
    groups = Query(counts=False, name="stateStoreSave")  # each update may be of a row that it has
    for _ in range(10):
        groups.batch(2_000.0, 2.0)
    assert lacking_s(groups.done, 6, {0: 660.0}, 1_000.0) == 0.0
