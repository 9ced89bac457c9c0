from dataclasses import replace

import pytest

from workbench.errors import WorkbenchError
from workbench.measuring import judge
from workbench.measuring.verdict import backlog_trend
from workbench.metrics import Batch, Disturbance, Observation, OperatorMetrics, WriteCost

RATE = 1000.0


def seen(backlogs, rate=RATE, interval=2.0, **fields):
    """Batches every interval with these backlogs; rows fall due at `rate`."""
    batches, released = [], 0.0
    for number, backlog in enumerate(backlogs):
        due = rate * interval * (number + 1)
        rows = due - backlog - released
        released += rows
        batches.append(Batch(number * interval, 1.0, round(rows), due, backlog))
    return Observation(fields.pop("commanded", rate), interval * (len(backlogs) - 1), tuple(batches), **fields)


def test_a_flat_backlog_is_sustained_and_too_few_rows_are_not_by_the_share_that_is_asked():
    judgement = judge(seen([0] * 11))
    assert judgement.verdict == "sustained"
    assert judgement.consumed_share == 1.0
    assert judgement.reason == "100 % of the 20 k due rows were consumed and the backlog did not grow."
    judgement = judge(seen([40 * n for n in range(11)]))
    assert judgement.verdict == "overloaded"
    assert judgement.reason == "Only 98 % of the 20 k due rows were consumed; 99 % are needed."
    noisy = seen([0, 300, 0, 300, 0, 0, 0, 0, 0, 0, 240])
    assert judge(noisy).verdict == "overloaded"
    assert judge(noisy, 0.98).verdict == "sustained"
    idle = Observation(0.0, 10.0, tuple(Batch(2.0 * n, 1.0, 0, 0.0, 0.0) for n in range(6)))
    assert judge(idle).verdict == "sustained"


def test_batches_count_as_long_as_they_will_be_with_all_of_their_state():
    young = seen([0] * 11, lacking_s=0.8)
    judgement = judge(young, interval_s=2.0)
    assert judgement.verdict == "sustained"
    assert "took 1.00 s of 2 s on average, 1.80 s with the state" in judgement.reason
    judgement = judge(replace(young, lacking_s=1.2), interval_s=2.0)
    assert judgement.verdict == "overloaded"
    assert "2.20 s with the state" in judgement.reason
    doubt = Disturbance(other_load=0.5)
    assert judge(replace(young, lacking_s=1.2, disturbance=doubt), interval_s=2.0).verdict == "disturbed"


def test_exact_line_that_grows_fails_although_its_error_is_zero():
    judgement = judge(seen([10 * n for n in range(11)]))  # 0.5 % of the rate: consumed 99.5 %
    assert judgement.verdict == "overloaded"
    assert judgement.slope_error == pytest.approx(0, abs=1e-9)
    assert judgement.backlog_slope == pytest.approx(5.0)
    assert "the backlog grew by 5 records/s" in judgement.reason
    assert judge(seen([10 * n for n in range(11)]), check_trend=False).verdict == "sustained"


@pytest.mark.parametrize(
    ("backlogs", "rate"),
    [
        ([0.1 * n for n in range(11)], RATE),
        ([0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1], 3.0),  # rounded to whole rows
        ([0, 90, 10, 80, 0, 100, 20, 70, 10, 90, 30], RATE),  # noise without a trend
        ([0] * 4, RATE),
    ],
)
def test_a_backlog_that_does_not_clearly_grow_is_sustained(backlogs, rate):
    assert judge(seen(backlogs, rate=rate)).verdict == "sustained"


def test_validity_comes_before_the_verdict():
    grown = seen([100 * n for n in range(11)])
    assert judge(grown).verdict == "overloaded"
    assert judge(replace(grown, disturbance=Disturbance(steal=0.06))).verdict == "disturbed"
    assert judge(replace(grown, disturbance=Disturbance(steal=0.05))).verdict == "overloaded"
    assert judge(replace(grown, source_rate_limit=1199.0)).verdict == "source-bound"
    assert judge(replace(grown, source_rate_limit=1200.0)).verdict == "overloaded"
    assert judge(replace(grown, commanded_rate=1020.0)).verdict == "not-offered"
    assert judge(replace(grown, commanded_rate=1005.0)).verdict == "overloaded"


@pytest.mark.parametrize(("partitions", "verdict"), [(None, "not-offered"), (4, "not-offered"), (100, "sustained")])
def test_a_topics_partitions_are_each_offered_whole_records(partitions, verdict):
    above = replace(seen([0] * 11, rate=1026.0), commanded_rate=1000.0, source_partitions=partitions)
    assert judge(above).verdict == verdict


def test_reasons_of_failed_rates_name_what_else_may_be_the_reason():
    grown = seen([40 * n for n in range(11)])
    failed = "Only 98 % of the 20 k due rows were consumed; 99 % are needed, which may not be the query's: "
    assert "others took 30.0 %" in judge(replace(grown, disturbance=Disturbance(throttled=0.3))).reason
    slowed = replace(grown, disturbance=Disturbance(steal=0.01, slowdown=0.12))
    assert judge(slowed).reason.startswith(f"{failed}the slots' cores were 12.0 % slower")
    assert judge(replace(grown, compiling=0.16)).verdict == "warming"
    assert judge(replace(grown, compiling=0.11)).verdict == "overloaded"
    assert judge(replace(grown, compiling=0.8)).reason.startswith(f"{failed}compilers used 0.8 cores")


def test_slots_that_idle_or_are_kept_from_their_quota_are_not_at_capacity():
    """In a crowded machine batches of five rows took four seconds, and "4 records/s" was called a maximum."""
    late = replace(seen([80 * n for n in range(11)]), quota_throttled=0.0, disturbance=Disturbance(other_load=0.89))
    for accept in (False, True):
        judgement = judge(late, accept_disturbed=accept, success=1.0)
        assert (judgement.verdict, judgement.repeatable) == ("not-at-capacity", True)
    used_up = replace(late, quota_throttled=0.8)
    assert judge(used_up, accept_disturbed=True, success=1.0).verdict == "overloaded"
    work = OperatorMetrics("1 scan", "map", 2, 1, 1, 12.0, 0.3, None, 12.0, 0)
    worked = replace(late, operators=(replace(work, useful_s=36.0),))  # their even share was all of their quota
    assert judge(worked, slots=2, success=1.0).verdict == "disturbed"
    assert judge(worked, accept_disturbed=True, slots=2, success=1.0).verdict == "overloaded"
    grown = replace(seen([80 * n for n in range(11)]), operators=(work,))  # busy 12 of 2 x 20 s, batches of 1 of 2 s
    for accept in (False, True):
        judgement = judge(grown, accept_disturbed=accept, slots=2, interval_s=2.0, success=1.0)
        assert (judgement.verdict, judgement.repeatable) == ("not-at-capacity", True)
    assert judge(grown, slots=None).verdict == "overloaded"  # operators side by side share no slots
    busy = replace(grown, operators=(replace(work, useful_s=30.0),))
    assert judge(busy, slots=2, interval_s=2.0).verdict == "overloaded"
    logs = replace(grown, writes=WriteCost(0.0, 0.0, jobs_s=1.8, jobs_at_once=1.0))  # in each of the ten batches
    assert judge(logs, slots=2, interval_s=2.0).verdict == "overloaded"
    of_old = replace(grown, writes=WriteCost(0.0, 0.0, jobs_s=1.8))
    assert judge(of_old, slots=2, interval_s=2.0).verdict == "not-at-capacity"


def test_what_is_sustained_in_spite_of_everything_or_but_for_one_late_batch_is_sustained():
    for fields in ({"disturbance": Disturbance(other_load=0.6)}, {"compiling": 1.5}):
        judgement = judge(replace(seen([0] * 11), **fields))
        assert (judgement.verdict, judgement.disturbed) == ("sustained", False)
    late = seen([0, 300, *9 * [300]])
    assert judge(late, 0.99).verdict == "overloaded"
    assert judge(late, 0.99, interval_s=2.0).verdict == "sustained"
    slow = replace(late, batches=tuple(replace(one, duration_s=1.95) for one in late.batches))
    assert judge(slow, 0.99, interval_s=2.0).verdict == "overloaded"


def test_disturbed_but_judged_is_flagged():
    grown = seen([40 * n for n in range(11)])
    judgement = judge(replace(grown, disturbance=Disturbance(other_load=0.3)), accept_disturbed=True)
    assert (judgement.verdict, judgement.disturbed) == ("overloaded", True)
    assert "judged although others took 30.0 %" in judgement.reason
    assert not judge(grown, accept_disturbed=True).disturbed
    judgement = judge(replace(grown, disturbance=Disturbance(slowdown=0.12)), accept_disturbed=True)
    assert "judged although the slots' cores were 12.0 % slower" in judgement.reason


def test_a_rate_far_too_high_for_any_disturbance_counts_at_once():
    far = seen([1200 * n for n in range(11)])  # two fifths were consumed
    assert far.consumed_records == pytest.approx(0.4 * far.due_records, rel=0.05)
    for taken, verdict in ((0.06, "overloaded"), (0.12, "overloaded"), (0.2, "disturbed")):
        judgement = judge(replace(far, disturbance=Disturbance(other_load=taken)))
        assert (judgement.verdict, judgement.disturbed) == (verdict, False)
    cold = replace(far, disturbance=Disturbance(other_load=0.06), compiling=1.5)
    assert judge(cold).verdict == "disturbed"


@pytest.mark.parametrize("bound", [0.01, 0.2])
def test_disturbed_is_what_lies_beyond_the_bound_that_was_given(bound):
    loads = [Disturbance(other_load=share * bound) for share in (0.9, 1.1)]
    around = [replace(seen([40 * n for n in range(11)]), disturbance=load) for load in loads]
    judged = [judge(each, max_disturbance=bound, accept_disturbed=True) for each in around]
    assert [judgement.disturbed for judgement in judged] == [False, True]
    assert judge(around[1], max_disturbance=bound).verdict == "disturbed"


def test_the_trend_is_the_textbook_regression_of_three_whole_batches_at_least():
    from scipy.stats import linregress

    observation = seen([0, 30, 10, 80, 0, 120, 20])
    expected = linregress([b.start_s for b in observation.batches], [b.backlog for b in observation.batches])
    assert backlog_trend(observation) == pytest.approx((expected.slope, expected.stderr))
    with pytest.raises(WorkbenchError, match=r"1,000 records/s has 2 whole batches; .* at least 3\. Use a shorter"):
        judge(seen([0] * 3))


def test_batches_that_take_far_too_long_are_overloaded():
    batches = tuple(Batch(20.0 * n, 20.0, 2000, 1000.0 * (2 + 20 * n), 18_000.0 * n) for n in range(2))
    slow = Observation(RATE, 20.0, batches)
    assert judge(slow).verdict == "overloaded"
    assert judge(slow).consumed_share == pytest.approx(0.1)
    assert judge(slow).reason.startswith("No more than 2 batches were completed, of up to 20.0 s each, though their")
    assert judge(replace(slow, source_rate_limit=1100.0)).verdict == "source-bound"
    assert judge(replace(slow, disturbance=Disturbance(steal=0.06))).verdict == "disturbed"
    assert judge(replace(slow, disturbance=Disturbance(steal=0.06, open=0.5))).verdict != "disturbed"
    others = replace(slow, disturbance=Disturbance(other_load=0.5, open=0.2))
    assert judge(others).reason.endswith("and the slots had quota left 20.0 % of the time.")
    assert judge(replace(slow, batches=batches[:1], elapsed_s=0.0)).verdict == "overloaded"
