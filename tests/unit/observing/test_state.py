"""State, as progress events show it."""

import pytest
from written_logs import BEGUN, events, progress, stamp, written

from workbench.answers.observed_changes import changes
from workbench.observing import read_log
from workbench.study import observe

CUSTOM = {"ReadBlockCacheHitCount": 60, "ReadBlockCacheMissCount": 40, "CommitCompactLatency": 20_000}
CUSTOM = {f"rocksdb{name}": value for name, value in CUSTOM.items()}


def kept(rows, memory, *, lag_s=60.0, dropped=0, commit_ms=40_000):
    """Write progress events of an hour whose state has `rows(n)` rows and `memory(n)` bytes."""
    told = []
    for number in range(180):
        at_s = BEGUN + 20.0 * number
        one = progress(number, 1000 + 10 * (number % 50), at_s, batch_s=4.0)["progress"]
        state = {
            "operatorName": "stateStoreSave",
            "numRowsTotal": round(rows(number)),
            "numRowsUpdated": 100,
            "memoryUsedBytes": round(memory(number)),
            "numShufflePartitions": 200,
            "numStateStoreInstances": 800,
            "commitTimeMs": commit_ms,
            "numRowsDroppedByWatermark": dropped,
            "customMetrics": CUSTOM,
        }
        told.append(one | {"stateOperators": [state], "eventTime": {"watermark": stamp(at_s - lag_s - number)}})
    return told


@pytest.fixture
def grows(tmp_path):
    return written(tmp_path / "grows", kept(lambda n: 1000.0 * (n + 1), lambda n: 5e5 * (n + 1), dropped=2))


def test_what_progress_tells_of_the_state(grows):
    (state,) = read_log(grows).states
    assert (state.operator, state.partitions, state.instances) == ("stateStoreSave", 200, 800)
    assert (state.rows, state.memory_bytes, state.dropped) == (180_000, 90_000_000, 360)
    assert state.rows_per_day == pytest.approx(1000 * 86_400 / 20, rel=0.01)
    assert state.memory_per_day == pytest.approx(5e5 * 86_400 / 20, rel=0.01)
    assert state.full_s(190e6) == pytest.approx(200 * 20, rel=0.01)
    assert state.hit_rate == pytest.approx(0.6)
    assert state.lag_s == pytest.approx(239)
    assert state.lag_grew_s == pytest.approx(179)


def test_a_trigger_that_ran_no_batch_repeats_what_the_one_before_cost(grows, tmp_path):
    """Up to Spark 3, a trigger that finds nothing is logged with the operators of the batch before it."""
    told = kept(lambda n: 1000.0 * (n + 1), lambda n: 5e5 * (n + 1), dropped=2)
    for number in range(170, 179):  # nothing comes for 3 minutes: the watermark waits
        one = told[number] = {**told[number], "durationMs": {"latestOffset": 3, "triggerExecution": 5}}
        one["sources"] = [{**one["sources"][0], "numInputRows": 0}]
        state = one["stateOperators"][0]
        one["stateOperators"] = [{**state, "numRowsUpdated": 0, "numRowsDroppedByWatermark": 0, "commitTimeMs": 90_000}]
        one["eventTime"] = told[169]["eventTime"]
    told.insert(0, {**told[170], "timestamp": stamp(BEGUN - 20)})
    (state,), (plain,) = (read_log(one).states for one in (written(tmp_path / "idle", told), grows))
    assert (state.commit_s, state.batch_s, state.compaction_s) == (plain.commit_s, plain.batch_s, plain.compaction_s)
    assert (state.lag_s, state.lag_grew_s) == (plain.lag_s, plain.lag_grew_s)
    assert state.rows == plain.rows


@pytest.mark.parametrize("grows", [True, False])
def test_what_rocksdb_keeps_grows_on_disk(tmp_path, grows):
    """Its memory is caches, which fill up and then stay, and its files grow until they are compacted."""
    told = kept(lambda n: 1000.0 * (n * grows + 1), lambda n: 5e5 * (n + 1))
    for number, one in enumerate(told):
        one["stateOperators"][0]["customMetrics"] = {**CUSTOM, "rocksdbSstFileSize": 3_000 * number}
    (state,) = read_log(written(tmp_path / "rocksdb", told)).states
    assert state.memory_bytes == 90_000_000
    assert (state.memory_per_day, state.full_s(1e9)) == (0.0, None)
    assert state.disk_per_day == pytest.approx(3_000 * 86_400 / 20 * grows, rel=0.01)


@pytest.mark.parametrize(("slots", "seconds"), [(4, 10.0), (50, 0.8), (200, 0.2), (300, 0.2), (0, 0.2)])
def test_commits_run_in_turns_of_the_slots(grows, slots, seconds):
    (state,) = read_log(grows).states
    assert state.in_turns_s(state.commit_s, slots) == pytest.approx(seconds)


def test_state_that_comes_and_goes_does_not_grow(tmp_path):
    saw = written(tmp_path / "saw", kept(lambda n: 1e6 + 5e5 * (n % 30), lambda n: 1e8 + 1e6 * (n % 30)))
    (state,) = read_log(saw).states
    assert (state.rows_per_day, state.memory_per_day) == (0.0, 0.0)
    assert state.full_s(1e12) is None
    assert state.full_s(1e6) == 0.0


def test_what_the_state_costs_is_named_with_a_remedy(grows):
    said = changes(observe(grows, interval_s=20.0, slots=40))
    named = " ".join(said)
    for part in ("grows by", "Committing the state", "compacts", "answers 60 % of the reads", "dropped 360 rows"):
        assert part in named
    assert all(advice.words for advice in said.values())
    assert not any("stores on" in one for one in said)
    assert any("800 stores on 8 slots" in one for one in changes(observe(grows, interval_s=20.0, slots=8)))


def test_a_query_whose_state_is_in_order_has_no_finding(tmp_path):
    told = [
        one | {"stateOperators": [one["stateOperators"][0] | {"customMetrics": {}}]}
        for one in kept(lambda _: 1e6, lambda _: 1e8, commit_ms=1000)
    ]
    assert not changes(observe(written(tmp_path / "calm", told), interval_s=20.0, slots=200))


def test_when_state_meets_the_memory_is_told_where_the_log_has_it(tmp_path):
    log = list(events([20_000.0 + 100 * (n % 60) for n in range(200)]))
    for number, one in enumerate(event["progress"] for event in log if "progress" in event):
        one["stateOperators"] = [{"numRowsUpdated": 1, "numRowsTotal": number, "memoryUsedBytes": 2**20 * number}]
    said = changes(observe(written(tmp_path / "log", log)))
    assert any("meets the 4.4 GiB of its slots in" in one for one in said)
