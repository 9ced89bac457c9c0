import pytest

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator, judge
from workbench.testbed import RecordedRate, RecordedTestbed

TABLE = [
    RecordedRate(512, 2, 1000.0),
    RecordedRate(512, 2, 1100.0),
    RecordedRate(512, 8, 4000.0),
    RecordedRate(2048, 2, 1050.0),
]


def budget(slots=2, memory=512):
    return Budget(slots, SlotProfile(1.0, memory))


def estimate(testbed, **where):
    with testbed.deploy("q1", budget(**where)) as run:
        return CapacityEstimator(clock=testbed.clock).estimate(run)


@pytest.mark.parametrize("rate", [1.0, 37.3, 5000.0, 2e8])
def test_it_sustains_up_to_the_recorded_rate_and_no_more(rate):
    testbed = RecordedTestbed([RecordedRate(512, 2, rate)])
    with testbed.deploy("q1", budget()) as run:
        for share, verdict in ((0.5, "sustained"), (1.0, "sustained"), (1.05, "overloaded"), (3.0, "overloaded")):
            run.set_rate(share * rate)
            run.settle(4.0)
            assert judge(run.observe(100.0)).verdict == verdict


def test_repeats_come_in_the_order_of_the_table_which_is_part_of_the_testbed():
    testbed = RecordedTestbed(TABLE)
    rates = [estimate(testbed).rate for _ in range(3)]
    assert rates[0] == pytest.approx(1000.0, rel=0.011)
    assert rates[1] == pytest.approx(1100.0, rel=0.011)
    assert rates[2] == rates[0]  # from the first again
    with RecordedTestbed(TABLE).deploy("q1", budget(), repeat=1) as run:
        run.set_rate(1080.0)
        assert judge(run.observe(20.0)).verdict == "sustained"

    def identity(*rows):
        return RecordedTestbed(rows).identity

    first, repeat, other = RecordedRate(512, 2, 1000.0), RecordedRate(512, 2, 1100.0), RecordedRate(512, 8, 4000.0)
    assert identity(first, repeat, other) == identity(other, first, repeat)
    assert identity(first, repeat) != identity(repeat, first)  # the order of repeats counts
    assert identity(first) != identity(repeat)


def test_what_is_not_in_the_table_is_refused_with_the_nearest():
    testbed = RecordedTestbed(TABLE)
    nearest = r"on 3 slots of 512 MB; the nearest are 2 slots of 512 MB; 8 slots of 512 MB; 2 slots of 2,048 MB\. Ask"
    for use in (
        lambda: testbed.deploy("q1", budget(slots=3)).__enter__(),
        lambda: testbed.count("q1", budget(slots=3)),
    ):
        with pytest.raises(WorkbenchError, match=f"no measurement of query 'q1' {nearest}"):
            use()
    assert [testbed.count("q1", budget(slots=slots)) for slots in (2, 8)] == [2, 1]


def test_a_table_of_several_queries_and_a_file_with_columns_of_its_own(tmp_path):
    testbed = RecordedTestbed([RecordedRate(512, 2, 10.0, "q1"), RecordedRate(512, 2, 20.0, "q2")])
    with testbed.deploy("nexmark:q2", budget()) as run:
        run.set_rate(19.0)
        assert judge(run.observe(100.0)).verdict == "sustained"
    with pytest.raises(WorkbenchError, match="has no query 'q3'; it has q1, q2"), testbed.deploy("q3", budget()):
        pass
    path = tmp_path / "runs.csv"
    path.write_text("query,mb_per_worker,n,seen\nq1,8192,2,1000\nq1,8192,2,1100.5\nq2,16384,3,5e6\n")
    testbed = RecordedTestbed.from_csv(path, memory="mb_per_worker", slots="n", rate="seen", memory_unit_mb=1 / 16)
    with testbed.deploy("q2", budget(3, 1024)) as run:
        run.set_rate(4.9e6)
        assert judge(run.observe(20.0)).verdict == "sustained"
    assert testbed.operators("q2") == ()
    assert testbed.identity.startswith("recorded, 3 measurements (")


HEAD = "memory_mb,slots,rate\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"The table .*runs\.csv cannot be read"),
        (HEAD, "The table of recorded measurements is empty"),
        (f"{HEAD}512,2,1\n512,x,1\n", r"Line 3 of .*runs\.csv has 'x' in column 'slots'; it must be a finite number"),
        (f"{HEAD}512,2\n", r"Line 2 of .* has None in column 'rate'; it must be a finite number"),
        (f"{HEAD}512,2.5,1\n", r"Line 2 of .*: slots of a recorded .* is 2\.5; it must be a whole number"),
        (f"{HEAD}512,2,-1\n", r"Line 2 of .*: The rate of .* is -1.0; it must be above 0 and at most 1e.15"),
        (f"{HEAD}512,1e8,1\n", r"Line 2 of .*: slots of .* is 100,000,000; it must be at most 100,000"),
    ],
)
def test_a_file_with_a_fault_is_refused(tmp_path, text, message):
    path = tmp_path / "runs.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(WorkbenchError, match=message):
        RecordedTestbed.from_csv(path)
