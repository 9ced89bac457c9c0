import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from event_log_lines import (
    BEGIN,
    SCANNED,
    committed,
    counting,
    job,
    node,
    operators_of,
    plan_of,
    progress,
    stage,
    state,
    task,
    write,
)

from workbench.errors import WorkbenchError
from workbench.metrics import slow_executors
from workbench.testbed.spark.log.event_log import BatchLog, Node, Stage, Task, _in_order, _nodes, _shuffled_by
from workbench.testbed.spark.log.operators import (
    SourceCost,
    check_read,
    dropped_late,
    executor_paces,
    fit_source,
    fullest_labels,
    input_rows,
    line,
    operator_edges,
    operator_metrics,
    operator_names,
    overhead,
    own_jobs,
    times_read,
)


def test_useful_seconds_are_run_seconds_without_a_quota_and_operators_are_fed_by_their_stages(batch):
    names = operator_names(fullest_labels([batch], [batch]))
    assert operator_edges([batch], names) == (("source", names[0]), (names[0], names[1]))
    assert operator_edges([batch], [*names, "3 map"]) == ()
    assert operator_edges([], names) == ()
    operators, samples = operator_metrics([batch], 2.0, 1.0, SourceCost(0.0, 0.0))
    source, scan, aggregate = operators
    assert (source.kind, source.records_out) == ("source", 300)
    assert scan.useful_s == pytest.approx(0.2)
    assert scan.busyness == pytest.approx(0.2 / (2 * 2.0))
    assert (scan.records_in, scan.records_out, scan.shuffle_bytes) == (300, 100, 1000)
    assert aggregate.key_skew == pytest.approx(1.5)
    assert {sample.operator for sample in samples} == {scan.operator, aggregate.operator}


def test_the_rate_is_busyness_times_true_rate_times_tasks_and_under_a_quota_all_cpu_time_is_shared_out(batch):
    operators, _ = operator_metrics(
        [replace(batch, executor_cpu_s=0.4, python_cpu_s=0.1, quota=True)], 2.0, 0.2, SourceCost(0.01, 0.0001)
    )
    for operator in operators:
        product = operator.busyness * operator.true_processing_rate * operator.tasks
        assert product == pytest.approx(operator.records_in / 2.0)
    operators, _ = operator_metrics(
        [replace(batch, executor_cpu_s=0.5, python_cpu_s=0.1, quota=True)], 2.0, 0.2, SourceCost(0.1, 0.0)
    )
    assert sum(operator.cpu_s for operator in operators) == pytest.approx(0.5)
    scan, aggregate = operators[1:]
    source = operators[0]
    assert source.useful_s == pytest.approx(2 * 0.1)
    assert source.cpu_s + scan.cpu_s == pytest.approx(0.2 + 0.1)  # the Python workers serve the scan alone
    assert aggregate.cpu_s == pytest.approx(0.2)
    assert source.useful_s + scan.useful_s == pytest.approx(0.3 / 0.2)


def test_samples_bear_what_the_executor_does_per_batch_at_one_rate_for_all_batches(batch):
    """Threads use 0.2 s in both; the executor 0.3 s more in one and 0.7 s in the other."""
    little, much = (replace(batch, executor_cpu_s=used, python_cpu_s=0.1, quota=True) for used in (0.6, 1.0))
    rate = overhead([little, much])
    assert rate == pytest.approx((0.3 + 0.7) / (2 * 0.2))
    one, other = (operator_metrics([work], 2.0, 0.2, SourceCost(), overhead_rate=rate)[1] for work in (little, much))
    assert one == other
    apart, further = (operator_metrics([work], 2.0, 0.2, SourceCost())[1] for work in (little, much))
    assert apart != further
    # the metrics of an observation still share out all that was used
    assert sum(
        o.cpu_s for o in operator_metrics([much], 2.0, 0.2, SourceCost(), overhead_rate=rate)[0]
    ) == pytest.approx(1.0)


def test_the_sources_cost_is_fitted_over_its_tasks_alone_and_taken_out_of_the_scan(batch):
    assert fit_source([batch], 1.0).of(150) > 0
    operators, _ = operator_metrics([batch], 2.0, 1.0, SourceCost(0.01, 0.0001))
    source, scan, _ = operators
    assert source.useful_s == pytest.approx(2 * 0.01 + 300 * 0.0001)
    assert scan.useful_s == pytest.approx(0.2 - source.useful_s)
    quiet, busy = (
        fit_source([replace(batch, executor_cpu_s=used, python_cpu_s=0.1, quota=True)], 0.2) for used in (0.4, 1.0)
    )
    assert quiet == busy


def test_state_metrics_are_rocksdbs_and_the_state_kept_is_that_of_the_last_batch_not_a_sum(batch):
    aggregate = operator_metrics([batch], 2.0, 1.0, SourceCost())[0][2]
    assert aggregate.cache_hit_rate == pytest.approx(0.75)
    assert aggregate.state_latency_s == pytest.approx(0.0002)
    assert (aggregate.state_bytes, aggregate.state_rows_updated) == (1500, 9)
    later = replace(batch, progress=json.loads(json.dumps(batch.progress).replace("4096", "5000")))
    aggregate = operator_metrics([batch, later], 2.0, 1.0, SourceCost())[0][2]
    assert aggregate.state_kept_bytes == 5000


def test_the_line_is_exact_on_exact_points_never_negative_and_not_tilted_by_a_hiccup():
    assert line([(10, 3.0), (20, 5.0), (40, 9.0)]) == SourceCost(pytest.approx(1.0), pytest.approx(0.2))
    assert line([(10, 1.0), (20, 3.0)]).fixed_s == 0.0
    assert line([]) == SourceCost(0.0, 0.0)
    # seen on a real machine: the first batch took twice as long as the second of its size
    seen = [(312_500, 0.40), (312_500, 0.18), (937_500, 0.27), (937_500, 0.27), (625_000, 0.22), (625_000, 0.23)]
    assert line(seen).per_record_s == pytest.approx(0.09 / 625_000, rel=0.2)
    assert line([(10, 1.0), (10, 2.0), (10, 9.0)]) == SourceCost(0.0, pytest.approx(0.2))  # no size but one


@pytest.mark.parametrize(("left", "right"), [(4, 5), (5, 4)])
def test_each_side_of_a_join_has_its_own_state(log, left, right):
    """Spark lists the left side first, and which side's stage has the lower number is up to chance."""
    sides = [
        node("StateStoreSave", node("MicroBatchScan x", ids=SCANNED), ids={one: "time to commit"}) for one in (8, 9)
    ]
    plan = node("StreamingSymmetricHashJoin", *sides, ids={10: "time to commit"})
    events = [plan_of(3, plan), job(left, right, 6)]
    for number, accumulator, parents in ((right, 9, ()), (left, 8, ()), (6, 10, (left, right))):
        events += [counting(number, 0, accumulator, read=10), stage(number, parents)]
    batch = committed(log, events, state(1, 100), state(20, 2_000), state(300, 30_000))
    updated = {
        found.stage_id: one.state_rows_updated for found, one in zip(batch.stages, operators_of(batch), strict=True)
    }
    assert updated == {6: 1, left: 20, right: 300}


def test_an_operator_with_two_nodes_that_keep_state_has_the_state_of_both(log):
    """Duplicates are dropped by the key that is then counted: no shuffle is in between."""
    dropped = node("StreamingDeduplicate", node("Exchange"), ids={9: "time to commit"})
    plan = node("StateStoreSave", dropped, ids={8: "time to commit"})
    events = [plan_of(3, plan), job(1), counting(1, 0, 8, 9, read=10), stage(1)]
    (both,) = operators_of(committed(log, events, state(3, 100), state(10, 5_000)))
    assert (both.state_rows_updated, both.state_bytes, both.state_kept_bytes) == (13, 5_100, 5_100)


def test_what_foreach_batch_runs_is_the_work_of_the_querys_own_nodes(log):
    """A write within foreachBatch has an execution of its own, whose plan knows the batch as existing rows only."""
    own = node("Execute Append", node("Scan ExistingRDD", ids={20: "number of output rows"}))
    events = [
        BEGIN[0],
        plan_of(4, own),
        job(1, 2, execution=4, **{"spark.sql.execution.root.id": "3"}),
        task(1, 0, scanned=100, wrote=40),
        stage(1),
        counting(2, 0, 8, 20, read=40),
        stage(2, parents=[1]),
    ]
    scan, count = operators_of(committed(log, events, state(9, 1_500)))
    assert (scan.scans, scan.records_in) == (True, 100)
    assert (count.kind, count.state_bytes) == ("aggregate", 1_500)


OWN, SNAPSHOT = {"spark.sql.execution.root.id": "3"}, "Scan ExistingRDD Delta Table State #7 - file:/lake/_delta_log"


def of_two_jobs(log, plan):
    """A batch that runs one more job of two stages, with this plan."""
    events = [
        BEGIN[0],
        plan_of(4, plan),
        job(1),
        task(1, 0, scanned=100, wrote=40),
        stage(1),
        job(2, 3, execution=4, **OWN),
    ]
    events += [*(task(2, number, read=10) for number in range(4)), stage(2), task(3, 0, read=4), stage(3, parents=[2])]
    return committed(log, events, state(9, 1_500))


@pytest.mark.parametrize(
    "plan",
    [
        node("Exchange", node(SNAPSHOT, ids={20: "number of output rows"})),
        # Spark cuts the text of a long path
        node(
            "Exchange",
            node("Scan json") | {"simpleString": "FileScan json Location: DeltaLogFileIndex(1 paths)[s3a:..."},
        ),
    ],
    ids=["snapshot", "file"],
)
def test_jobs_on_a_tables_log_are_none_of_the_querys_operators(log, plan):
    """Delta reads its log in each batch, and writes it out whole at every tenth."""
    batch = of_two_jobs(log, plan)
    assert [found.stage_id for found in batch.stages] == [1]
    assert [found.stage_id for found in batch.jobs] == [2, 3]
    assert [found.operator for found in operators_of(batch)] == ["1 scan"]
    assert own_jobs([batch, replace(batch, jobs=())], 1.0) == (
        [pytest.approx(0.5), 0.0],
        pytest.approx(0.5 / (0.4 / 4 + 0.1)),
    )
    limited = replace(batch, executor_cpu_s=0.9, quota=True)  # the tasks use .3 s: each is charged three times its own
    assert own_jobs([limited], 0.5)[0] == [pytest.approx(5 * 0.05 * 3 / 0.5)]
    assert batch.threads_cpu_s == pytest.approx(6 * 0.05)


@pytest.mark.parametrize(
    "plan",
    [
        node("Exchange", node("Scan ExistingRDD", ids={20: "number of output rows"})),
        node("Exchange", node("Scan ExistingRDD mergeMaterializedSource")),
        node("Exchange", node("InMemoryTableScan")),
        node("Scan"),
        node("Execute SaveIntoDataSourceCommand"),
        node("Exchange", node(SNAPSHOT), node("MicroBatchScan x", ids={27: "number of output rows"})),
    ],
    ids=lambda plan: plan["children"][-1]["nodeName"] if plan["children"] else plan["nodeName"],
)
def test_jobs_that_may_read_the_batch_are_the_querys(log, plan):
    batch = of_two_jobs(log, plan)
    assert ([found.stage_id for found in batch.stages], batch.jobs) == ([1, 2, 3], ())


def test_a_stage_that_scans_the_batch_is_the_querys_whatever_its_plan(log):
    events = [BEGIN[0], plan_of(4, node(SNAPSHOT)), job(1, execution=4, **OWN), task(1, 0, scanned=100), stage(1)]
    batch = committed(log, events, state(9, 1_500))
    assert ([found.stage_id for found in batch.stages], batch.jobs) == ([1], ())


def test_a_batch_of_a_sinks_own_jobs_alone_is_none_without_stages(log):
    events = [BEGIN[0], plan_of(4, node(SNAPSHOT)), job(1, execution=4, **OWN), task(1, 0, read=10), stage(1)]
    batch = committed(log, events, state(9, 1_500))
    assert ([found.stage_id for found in batch.stages], batch.jobs) == ([1], ())


def test_jobs_are_the_querys_where_sparks_plans_do_not_show_what_reads_the_batch(log):
    unknown = [job(1), task(1, 0, scanned=100), stage(1), job(2, execution=4, **OWN), task(2, 0, read=10), stage(2)]
    batch = committed(log, unknown, state(9, 1_500))
    assert ([found.stage_id for found in batch.stages], batch.jobs) == ([1, 2], ())


def test_a_stage_is_fed_by_the_one_whose_output_it_takes_from_an_earlier_job(log):
    """An adaptive plan runs each shuffle as a job, and the next job lists its stage under another number, skipped."""
    made = [{"Stage ID": number, "RDD Info": [{"RDD ID": rdd}]} for number, rdd in ((1, 70), (2, 70), (3, 80))]
    events = [
        BEGIN[0],
        job(1) | {"Stage Infos": made[:1]},
        task(1, 0, scanned=100, wrote=40),
        stage(1),
        job(2, 3) | {"Stage Infos": made[1:]},
        counting(3, 0, 8, read=40),
        stage(3, parents=[2]),
    ]
    batch = committed(log, events, state(9, 1_500))
    names = operator_names(fullest_labels([batch], [batch]))
    assert operator_edges([batch], names) == (("source", names[0]), names)


def test_partitions_that_adaptive_plans_put_together_are_no_skew(log):
    """Of two batches with equal partitions one is small, so Spark reads all of its partitions in one task."""
    few = [*BEGIN, task(1, 0, scanned=100), stage(1), progress()]
    many = [*BEGIN, *(task(1, number, scanned=25) for number in range(4)), stage(1), progress()]
    write(log.path, few + many)
    works = [batch for _, batch in log.poll()]
    scan = operator_metrics(works, 2.0, 1.0, SourceCost())[0][1]
    assert scan.key_skew == pytest.approx(1.0)
    assert (scan.tasks, scan.records_in) == (4, 200)


def shuffled(keys, *children):
    """A shuffle that a stage reads."""
    return node("Exchange", *children, ids={9: "records read"}) | {
        "simpleString": f"Exchange hashpartitioning({keys}, 2)"
    }


def test_operators_know_the_columns_that_their_shuffle_goes_by_and_whether_it_has_partial_sums():
    partial = node("HashAggregate") | {"simpleString": "HashAggregate(keys=[w#1], functions=[partial_sum(amount#3)])"}
    below = node("Project", ids={}) | {"simpleString": "Project [buyer#7L AS customer_id#5L, amount#3]"}
    partial["children"] = [below]
    plan = node("StateStoreSave", shuffled("window#1-T5ms, customer_id#5L", node("WholeStageCodegen (1)", partial)))
    found = _shuffled_by([*_nodes(plan, {9: 4})])
    assert found == (("customer_id", "buyer"), True)
    joined = node("StreamingSymmetricHashJoin", shuffled("order_id#1L", node("Filter")), shuffled("paid#2L", below))
    assert _shuffled_by([*_nodes(joined, {9: 4})]) == (("order_id", "paid"), False)
    assert _shuffled_by([*_nodes(joined, {})]) == ((), False)  # another stage reads it
    below["simpleString"] = "Project [a#1, ... 30 more fields]"
    assert _shuffled_by([*_nodes(joined, {9: 4})]) == ((), False)


# --- rows that were released and never read, or that came too late

SCAN = Node("MicroBatchScan", "", {"number of output rows": 1}, scan=0)


def read_of(released, *read, scanned=True, dropped=0):
    """A batch with one stage per number of rows in `read`."""
    stages = tuple(
        Stage(n, (), (Task(0, rows, 0, 1.0, 1.0, 0, 0.0),), (SCAN,) if scanned else ()) for n, rows in enumerate(read)
    )
    source = {"startOffset": {"n": 0}, "endOffset": {"n": released}}
    return BatchLog(0, {"sources": [source], "stateOperators": [{"numRowsDroppedByWatermark": dropped}]}, stages)


def test_what_every_scan_read_whole_passes_and_rows_that_were_never_read_are_no_throughput():
    check_read("q", [read_of(100, 100, 100), read_of(50, 50, 50)])
    check_read("q", [read_of(100, 60, scanned=False)])  # which stage reads is not known
    check_read("q", [])
    with pytest.raises(WorkbenchError, match=r"'q' released 200 rows, .* read 190, so its rate is unknown.* \(limit\)"):
        check_read("q", [read_of(100, 100), read_of(100, 90)])


@pytest.mark.parametrize(("dropped", "share"), [(0, 0.0), (5, 0.05), (50, 50 / 145)])
def test_the_share_that_came_late_is_told_and_when_most_are_late_there_is_no_rate(dropped, share):
    kept = [SimpleNamespace(state_rows_updated=95), SimpleNamespace(state_rows_updated=None)]
    assert dropped_late("q", [read_of(100, 100, dropped=dropped)], kept) == pytest.approx(share)
    with pytest.raises(WorkbenchError, match=r"'q' drops 90 % of what reaches its state"):
        dropped_late("q", [read_of(100, 100, dropped=90)], [SimpleNamespace(state_rows_updated=10)])


# --- several inputs

FILTER = Node("Filter", "", {"number of output rows": 1})
JOIN = Node("StreamingSymmetricHashJoin", "", {"number of output rows": 1}, 0)


def source(number, read, last=300):
    return {"startOffset": {"n": 0}, "endOffset": {"n": last, "input": number}, "numInputRows": read}


def reading(number, read, written, *places):
    tasks = (Task(0, read, written, 0.1, 0.1, 0, 0.0),)
    return Stage(number, (), tasks, (FILTER, *(Node("MicroBatchScan", "", {}, None, place) for place in places)))


@pytest.fixture
def two_inputs():
    """200 orders of which half pass a filter, and 100 payments; then they are joined."""
    joined = Stage(2, (0, 1), (Task(0, 200, 50, 0.1, 0.1, 0, 0.0),), (JOIN,))
    stages = (reading(0, 200, 100, 0), reading(1, 100, 100, 1), joined)
    return BatchLog(0, {"sources": [source(0, 200), source(1, 100)]}, stages)


def test_rows_backlog_and_selectivity_are_told_by_input(two_inputs):
    orders, payments = input_rows(
        ("orders", "payments"), [two_inputs] * 2, 30.0, fullest_labels([two_inputs], [two_inputs])
    )
    assert (orders.name, orders.records, orders.selectivity) == ("orders", 400, 0.5)
    assert (payments.name, payments.records, payments.selectivity) == ("payments", 200, 1.0)
    assert (orders.backlog, payments.backlog) == (pytest.approx(20), pytest.approx(10))
    assert (orders.operators, payments.operators) == (("1 scan filter",), ("2 scan filter",))
    assert input_rows((), [two_inputs], 0.0, ()) == ()
    both = replace(two_inputs, stages=(reading(0, 300, 300, 0, 1),))
    orders, payments = input_rows(("orders", "payments"), [both], 0.0, fullest_labels([both], [both]))
    assert (orders.records, orders.selectivity, orders.operators) == (200, None, ())
    assert payments.selectivity is None


def test_the_rows_of_all_inputs_count_once_also_if_read_twice_and_are_all_read(two_inputs):
    (found, *_), _ = operator_metrics([two_inputs], 1.0, 1.0, SourceCost())
    assert found.records_in == found.records_out == 300
    assert times_read(two_inputs) == 1
    check_read("q", [two_inputs])
    again = replace(two_inputs, progress={"sources": [source(0, 200), source(1, 100), source(0, 200)]})
    assert again.of_inputs == {0: 200, 1: 100}
    assert times_read(again) == 2
    twice = replace(two_inputs, progress={"sources": [source(0, 400), source(1, 200)]})
    assert twice.of_inputs == {0: 200, 1: 100}
    unread = replace(two_inputs, progress={"sources": [source(0, 200)]})
    with pytest.raises(WorkbenchError, match=r"released 300 rows, but the query read 200"):
        check_read("q", [unread])
    alone = replace(
        two_inputs, progress={"sources": [{"startOffset": None, "endOffset": {"n": 300}, "numInputRows": 300}]}
    )
    assert alone.of_inputs == {}
    assert times_read(alone) == 2  # stages that scan


def test_stages_that_read_are_in_the_order_of_the_plan_however_spark_numbers_them(two_inputs):
    one, two, joined = two_inputs.stages
    swapped = {0: replace(two, stage_id=0), 1: replace(one, stage_id=1), 2: joined}
    assert [stage.scan for stage in _in_order(swapped)] == [0, 1, None]
    assert _in_order({0: one, 1: two, 2: joined}) == two_inputs.stages


# --- executors side by side


def executed(*stages):
    """A batch of stages, each with (executor, records, seconds) for its tasks."""
    made = tuple(
        Stage(
            number,
            (),
            tuple(
                Task(place, records, 0, seconds, seconds, 0, 0.0, executor, f"10.0.0.{executor}")
                for place, (executor, records, seconds) in enumerate(tasks)
            ),
            (),
        )
        for number, tasks in enumerate(stages)
    )
    return BatchLog(0, {}, made)


def test_each_executor_is_compared_stage_by_stage_and_key_skew_is_no_slow_worker():
    paces = executor_paces([executed([("0", 1000, 1.0), ("1", 1000, 2.5), ("2", 1000, 1.0)])] * 3)
    assert [(one.executor, one.host) for one in paces] == [("0", "10.0.0.0"), ("1", "10.0.0.1"), ("2", "10.0.0.2")]
    assert [one.times for one in paces] == pytest.approx([2 / 3.5, 2.5, 2 / 3.5])
    (slow,) = slow_executors(paces)
    assert slow.sentence == "Executor 1 on 10.0.0.1 took 2.5 times as long as the others per record"
    # One executor does more of the costly stage, at the same pace as the other.
    cheap, costly = [("0", 1000, 1.0), ("1", 600, 0.6)], [("0", 600, 6.0), ("1", 1000, 10.0)]
    assert [one.times for one in executor_paces([executed(cheap, costly)])] == pytest.approx([1.0, 1.0])
    skewed = [("0", 1000, 1.0), ("1", 10, 0.5)]  # mostly the fixed time of a task
    assert executor_paces([executed(skewed)]) == ()
    fair = [("0", 500, 0.5), ("1", 500, 0.5)]
    assert slow_executors(executor_paces([executed(fair, skewed)])) == []
    assert executor_paces([executed([("0", 1000, 1.0), ("0", 1000, 9.0)])]) == ()
    assert executor_paces([executed([("0", 0, 1.0), ("1", 0, 9.0)])]) == ()
    assert executor_paces([executed([("0", 100, 0.0), ("1", 100, 0.0)])]) == ()
    assert executor_paces([]) == ()
