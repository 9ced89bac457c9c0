import math

import pytest

from workbench.capacity import Stage, micro_batch_layout
from workbench.errors import WorkbenchError

SCAN = Stage("scan", fixed_s=0.02, per_record_s=1e-5, source=True)
ENRICH = Stage("enrich", fixed_s=0.01, per_record_s=2e-5)
COUNT = Stage("count", fixed_s=0.1, per_record_s=4e-5, ratio=0.5, stateful=True)
TOP = Stage("top", fixed_s=0.05, per_record_s=1e-5, ratio=0.1, stateful=True)


def test_one_slot_count_is_one_wave_of_each_stage():
    found = micro_batch_layout([SCAN, ENRICH, COUNT, TOP], 4, 2.0, rate=50_000, batch_fixed_s=0.3)
    assert found.partitions == {"scan": 4, "enrich": 4, "count": 4, "top": 4}
    # 100,000 records: 0.02 + 0.25, 0.01 + 0.5, 0.1 + 0.5, 0.05 + 0.025
    assert found.batch_s == pytest.approx({4: 0.3 + 0.27 + 0.51 + 0.6 + 0.075})
    assert (found.best_s, found.max_regret_s, found.late) == (pytest.approx(found.batch_s), 0.0, ())


def test_the_parts_that_spark_can_set():
    found = micro_batch_layout([SCAN, ENRICH, COUNT, TOP], 4, rate=50_000)
    assert (found.source_partitions, found.repartitions, found.stateful_partitions) == ({"scan": 4}, {"enrich": 4}, 4)
    assert found.spark_conf() == {"spark.sql.shuffle.partitions": "4"}
    stateless = micro_batch_layout([SCAN, ENRICH], 4, rate=50_000)
    assert stateless.stateful_partitions is None
    assert stateless.spark_conf() == {"spark.sql.adaptive.streaming.stateless.enabled": "false"}


def test_a_frozen_count_serves_a_range_by_least_maximum_regret():
    # 1,000 records of 1 ms. At 2 slots: 2 tasks 0.1 + 0.5; 3 tasks 2 (0.1 + 1/3); 4 tasks 2 (0.1 + 0.25).
    # At 3 slots: 2 tasks 0.1 + 0.5; 3 tasks 0.1 + 1/3; 4 tasks 2 (0.1 + 0.25); 6 tasks 2 (0.1 + 1/6).
    # Regrets: 2 tasks (0, 1/6), 3 tasks (4/15, 0), 4 tasks (0.1, 4/15), 6 tasks (0.2, 0.1).
    count = Stage("count", fixed_s=0.1, per_record_s=1e-3, stateful=True)
    found = micro_batch_layout([count], [2, 3], 1.0, rate=1000)
    assert found.partitions == {"count": 2}
    assert found.regret_s == pytest.approx({2: 0.0, 3: 1 / 6})
    assert found.max_regret_s == pytest.approx(1 / 6)
    # With cheap tasks, 6 of them divide evenly among 2 and among 3 slots.
    cheap = Stage("count", fixed_s=1e-3, per_record_s=1e-3, stateful=True)
    found = micro_batch_layout([cheap], range(2, 4), 1.0, rate=1000)
    assert found.partitions == {"count": 6}
    assert found.regret_s == pytest.approx({2: 0.002, 3: 0.001})


def test_ties_go_to_the_smaller_count():
    free = Stage("count", fixed_s=0.0, per_record_s=1e-3, stateful=True)
    assert micro_batch_layout([free], 3, rate=1000).partitions == {"count": 3}  # 6, 9 and 12 are as good
    idle = Stage("count", fixed_s=0.1, per_record_s=1e-3, ratio=0.0, stateful=True)
    assert micro_batch_layout([idle], [2, 3], rate=1000).partitions == {"count": 1}
    nothing = Stage("map", fixed_s=0.0, per_record_s=0.0)
    assert micro_batch_layout([nothing], [2, 3], rate=1000).partitions == {"map": 1}


def test_a_stage_has_at_most_its_partitions_and_state_the_least_of_them():
    topic = Stage("scan", 0.02, 1e-5, source=True, max_partitions=3)
    few = Stage("few", 0.02, 1e-5, stateful=True, max_partitions=2)
    found = micro_batch_layout([topic, few, COUNT], 8, rate=50_000)
    assert found.partitions == {"scan": 3, "few": 2, "count": 2}


def test_the_load_may_grow_with_the_slots():
    rates = {2: 20_000.0, 4: 40_000.0}
    found = micro_batch_layout([COUNT], rates, 2.0, rate=rates)
    assert found.best_s == pytest.approx({2: 0.1 + 0.4, 4: 0.1 + 0.4})


def test_a_restart_lets_all_but_the_frozen_count_follow_the_slots():
    stages, span = [SCAN, ENRICH, COUNT, TOP], range(2, 9)
    frozen = micro_batch_layout([COUNT, TOP], span, rate=50_000)
    count = frozen.stateful_partitions
    for slots in span:
        after = micro_batch_layout(stages, slots, rate=50_000, stateful_partitions=count)
        assert after.partitions == {"scan": slots, "enrich": slots, "count": count, "top": count}
        free = micro_batch_layout(stages, slots, rate=50_000)
        assert after.batch_s[slots] - free.batch_s[slots] == pytest.approx(frozen.regret_s[slots])
    assert frozen.max_regret_s < micro_batch_layout(stages, span, rate=50_000).max_regret_s


def test_a_frozen_count_is_taken_as_it_is():
    assert micro_batch_layout([SCAN, COUNT], 2, rate=1000, stateful_partitions=200).partitions == {
        "scan": 2,
        "count": 200,
    }


def test_late_batches_are_told():
    found = micro_batch_layout([COUNT], [1, 8], 1.0, rate=50_000)
    assert found.late == (1,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "A stage's name is empty; give it a name."),
        ({"fixed_s": -1.0}, "fixed_s of stage 'count' is -1.0; it must be a finite number of at least 0."),
        ({"per_record_s": math.nan}, "per_record_s of stage 'count' is nan; it must be"),
        ({"ratio": math.inf}, "ratio of stage 'count' is inf; it must be"),
        (
            {"source": True},
            "Stage 'count' is both source and stateful; Spark reads state behind a shuffle, so these are",
        ),
        ({"max_partitions": 0}, "max_partitions of stage 'count' is 0; it must be a whole number of at least 1."),
    ],
)
def test_a_stage_says_what_is_wrong(change, message):
    good = {"name": "count", "fixed_s": 0.1, "per_record_s": 1e-5, "stateful": True}
    with pytest.raises(WorkbenchError) as error:
        Stage(**{**good, **change})
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stages": []}, "The query has no stages; give at least one."),
        ({"stages": [COUNT, COUNT]}, "Two stages are named 'count'; rename one."),
        ({"slots": []}, "There are no slot counts; give at least one."),
        ({"slots": [2, 0]}, "The slot count is 0; it must be a whole number of at least 1."),
        ({"slots": 2.5}, "The slot count is 2.5; it must be a whole number"),
        ({"interval_s": 0.0}, "The trigger interval is 0.0; it must be a finite number above 0 (seconds)."),
        ({"rate": math.inf}, "The rate is inf; it must be a finite number above 0 (records/s)."),
        ({"rate": {2: 5.0}, "slots": [2, 3]}, "There is no rate for 3 slots (given: 2); give one for each slot count"),
        ({"batch_fixed_s": -0.1}, "batch_fixed_s is -0.1; it must be a finite number of at least 0."),
        ({"stateful_partitions": 0}, "stateful_partitions is 0; it must be a whole number of at least 1."),
        (
            {"stages": [SCAN], "stateful_partitions": 8},
            "stateful_partitions is 8, but no stage is stateful; leave it out, or mark the stages that share the",
        ),
        ({"max_waves": 0}, "max_waves is 0; it must be a whole number of at least 1."),
    ],
)
def test_a_layout_says_what_is_wrong(change, message):
    with pytest.raises(WorkbenchError) as error:
        micro_batch_layout(**{"stages": [COUNT], "slots": 2, "rate": 1000.0, **change})
    assert str(error.value).startswith(message)
