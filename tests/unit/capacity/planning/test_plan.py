"""What a plan has deployed fits the workers that it prices, catches up after an outage, and keeps records waiting."""

import ast
import itertools
import json
import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from batch_truths import Engine
from staged_runs import rated_run, staged_exploration

from workbench.answers.planned import cards
from workbench.capacity import plan
from workbench.capacity.explore import conclude
from workbench.capacity.planning import InstanceType, Question, ask, cheapest, read_instances
from workbench.capacity.planning.checks import check_fixed_time
from workbench.capacity.planning.workers import UNPRICED, Executor, kubernetes_reserve, slots_per_worker
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.metrics import Batch
from workbench.records import CapacityPlan, Outage
from workbench.study import Planned, Study
from workbench.testbed.spark.driver.session import spark_conf
from workbench.views.widgets import WhatIf

INSTANCES = read_instances(Path(__file__).parents[4] / "data" / "instances.csv")
LARGE = next(one for one in INSTANCES if one.name == "c6i.large")
ROOM = {"c6i.large": (1.93, 2972), "r6i.4xlarge": (15.89, 121428.32)}  # by the shares of kubernetes_reserve, by hand


@cache
def explored(cpus, memory_mb):
    return staged_exploration(cpus, memory_mb, costs=False)


def pod(made):
    """Cores and MiB of an executor's container, requested and at most."""
    both = made.kubernetes()["resources"]
    found = {
        (int(re.fullmatch(r"(\d+)m", one["cpu"])[1]) / 1000, int(re.fullmatch(r"(\d+)Mi", one["memory"])[1]))
        for one in (both["requests"], both["limits"])
    }
    (one,) = found
    return one


def room(cpus, memory_mb):
    kept_cpus, kept_mb = kubernetes_reserve(cpus, memory_mb)
    return cpus - kept_cpus, memory_mb - kept_mb


@pytest.mark.parametrize(
    ("cpus", "memory_mb", "kept"),
    [
        (2, 4096, (0.07, 1124)),
        (4, 16384, (0.08, 2762.4)),
        (16, 131072, (0.11, 9643.68)),
        (96, 393216, (0.31, 14886.56)),
        (1, 512, (0.06, 355)),
        (1, 1024, (0.06, 356)),
    ],
)
def test_a_node_keeps_what_is_published(cpus, memory_mb, kept):
    assert kubernetes_reserve(cpus, memory_mb) == pytest.approx(kept)


def test_a_container_is_more_than_its_slots():
    executor = Executor(4, SlotProfile(0.4, 1024))
    assert (executor.rocksdb_mb, executor.heap_mb, executor.overhead_mb) == (1638, 2458, 1638 + 410)
    assert (executor.millicores, executor.memory_mb) == (1600, 4506)
    small = Executor(1, SlotProfile(0.25, 512))
    assert (small.heap_mb, small.overhead_mb) == (600, 204 + 384)  # the least that Spark needs
    # 2 cores and 4096 MiB have room for four such slots, but not for their container and the system's
    assert slots_per_worker(2, 4096, SlotProfile(0.4, 1024), lambda *_: (0.0, 0.0)) == 3
    assert slots_per_worker(2, 4096, SlotProfile(0.4, 1024)) == 2
    assert slots_per_worker(2, 4096, SlotProfile(2.0, 1024)) == 0


ASKED = list(itertools.product((0.2, 0.4, 1 / 3, 1.0), (512, 1000, 2048), (3e3, 5e4, 1e6)))


@pytest.mark.parametrize("place", range(len(INSTANCES)), ids=[one.name for one in INSTANCES])
def test_every_pod_fits_on_the_worker_that_is_priced(place):
    """Each question is asked of one instance; of all of them, that whole executors fit is checked one by one below."""
    instance = INSTANCES[place]
    for cpus, memory_mb, rate in ASKED[place :: len(INSTANCES)]:
        made = plan(explored(cpus, memory_mb), rate, memory_mb=[memory_mb], instances=[instance])
        cores, container_mb = pod(made)
        free_cores, free_mb = ROOM.get(instance.name, room(instance.vcpus, instance.memory_mb))
        assert cores <= free_cores + 1e-9
        assert container_mb <= free_mb
        conf = made.spark_conf()
        assert int(conf["spark.executor.instances"]) == made.price.workers
        slots = int(conf["spark.executor.cores"])
        assert made.budget.slots <= slots * made.price.workers < made.budget.slots + made.price.workers
        assert cores == pytest.approx(slots * cpus, abs=1e-3)
        for kind in ("request", "limit"):
            assert conf[f"spark.kubernetes.executor.{kind}.cores"] == f"{math.ceil(slots * cpus * 1000 - 1e-6)}m"
        heap, beside = (int(conf[f"spark.executor.memory{part}"].removesuffix("m")) for part in ("", "Overhead"))
        assert heap + beside == container_mb
        assert heap + int(conf["spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"]) >= slots * memory_mb - 1


def test_without_prices_executors_are_of_a_usual_size_and_another_memory_fits_where_one_does_not():
    made = plan(explored(1.0, 1024), 2e6, memory_mb=[1024])
    cores, container_mb = pod(made)
    assert made.budget.slots > 500
    assert made.executor.slots == 15
    assert made.executors == math.ceil(made.budget.slots / 15)
    assert cores <= room(*UNPRICED)[0]
    assert container_mb <= room(*UNPRICED)[1]
    large = plan(explored(20.0, 1024), 5e4, memory_mb=[1024])  # no usual worker holds one slot
    assert (large.executor.slots, large.executors) == (1, large.budget.slots)
    few = plan(explored(1.0, 1024), 3e3, memory_mb=[1024])
    assert (few.executor.slots, few.executors) == (2, 1)
    made = plan(explored(1.0, 512), 2e4, memory_mb=[512, 16384], instances=[LARGE])
    assert made.budget.profile.memory_mb == 512


def test_the_plan_s_json_and_settings_hold_what_is_exported_and_was_measured_with():
    made = plan(staged_exploration(), 2e4, memory_mb=[600], instances=INSTANCES)
    written = json.loads(made.to_json())
    assert written["spark_conf"] == made.spark_conf()
    assert written["kubernetes"] == made.kubernetes()
    assert written["job"] == made.job()
    assert written["executors"] == made.executors == made.price.workers
    made = plan(staged_exploration(), 2e4, memory_mb=[600])
    measured = spark_conf(made.budget, Path("/folder"), Path("/disk"), made.budget.slots)
    same = made.spark_conf().keys() & measured.keys()
    for name, value in measured.items():
        if name.startswith(("spark.sql.adaptive", "spark.sql.streaming.stateStore", "spark.sql.streaming.minBatches")):
            assert name in same
            if "maxMemoryUsage" not in name:  # an executor's, not the whole testbed's
                assert made.spark_conf()[name] == value


def test_the_job_is_python_with_the_plans_numbers():
    made = plan(staged_exploration(), 2e4, memory_mb=[600])
    tree = ast.parse(replace(made, query='odd "name" \\ of mine').job())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    options = {call.args[0].value: call.args[1].value for call in calls if call.func.attr == "option"}
    admitted = made.expected_rate * made.budget.interval_s
    assert admitted * 0.99 < options["maxOffsetsPerTrigger"] <= admitted
    assert len(str(options["maxOffsetsPerTrigger"]).rstrip("0")) <= 3
    assert options["minPartitions"] == max(made.layout.source_partitions.values(), default=made.budget.slots)
    (trigger,) = (call for call in calls if call.func.attr == "trigger")
    assert trigger.keywords[0].value.value == f"{1000 * made.budget.interval_s:.0f} milliseconds"


MEDIUM = InstanceType("medium", "x", "y", 8, 32768, 1.0, "USD", "test", "2026-01")


def test_a_plan_has_executors_of_the_size_that_was_measured():
    made = plan(explored(1.0, 1024), 2e4, memory_mb=[1024], executor_slots=2.0)  # a whole number of any type
    assert Question(20_000, 600, worker_slots=6, worker_price=1.0, executor_slots=2.0).executor_slots == 2
    slots = made.budget.slots
    assert (made.executor.slots, made.executors) == (2, math.ceil(slots / 2))
    assert made.spark_conf()["spark.executor.cores"] == "2"
    assert int(made.spark_conf()["spark.executor.instances"]) * 2 == slots
    assert plan(explored(1.0, 1024), 2e4, memory_mb=[1024]).executors == 1
    assert type(made).from_json(made.to_json()) == made


@pytest.mark.parametrize("instances", [(), (MEDIUM,)])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_the_slots_of_a_plan_fill_whole_executors(size, instances):
    for rate in (3e3, 2e4, 5e4):
        made = plan(explored(1.0, 1024), rate, memory_mb=[1024], instances=instances, executor_slots=size)
        usual = plan(explored(1.0, 1024), rate, memory_mb=[1024])
        assert made.budget.slots == size * made.executors
        assert made.least_slots == size * math.ceil(usual.budget.slots / size)
        assert instances or made.budget.slots == made.least_slots
        assert made.executor.slots == size


def test_low_slots_and_the_cheapest_memory_are_those_of_whole_executors():
    found = staged_exploration(slots=(2, 2, 4, 4, 8, 8))
    usual = plan(found, 20_000, memory_mb=[600], low_rate=9_000)
    made = plan(found, 20_000, memory_mb=[600], low_rate=9_000, executor_slots=5)
    assert usual.low_slots % 5
    assert made.low_slots == 5 * math.ceil(usual.low_slots / 5)
    runs = [
        replace(run, budget=Budget(run.budget.slots, SlotProfile(1.0, memory)))
        for memory, per_slot in ((1000, 3000.0), (1300, 3600.0))
        for run in staged_exploration(per_slot=per_slot, costs=False).runs
    ]
    found = conclude(runs, "measured", growth="tasks")
    for rate in range(8_000, 30_000, 2_000):
        paired = plan(found, rate, memory_mb=[1000, 1300], margin=1.0, executor_slots=4)
        whole = [4 * math.ceil(found.model.slots_for(rate, memory, 1.0) / 4) * memory for memory in (1000, 1300)]
        assert paired.budget.slots * paired.budget.profile.memory_mb == min(whole)


def test_executors_never_step_over_the_most_that_is_sustained():
    engine = Engine(noise=0.01, driver_task_s=0.02)
    runs = [engine.run(slots, divided=(32, 48) * (slots == 32), cpus=1.0) for slots in (16, 16, 32)]
    found = conclude(runs, "measured", choice="edge")
    (most,), (beyond,) = found.model.predict([[1024, 16]]), found.model.predict([[1024, 32]])
    assert beyond < most  # more tasks take more of the driver
    rate = most / 1.095
    assert plan(found, rate, memory_mb=[1024], margin=1.0, executor_slots=16).budget.slots == 16
    assert plan(found, rate, memory_mb=[1024]).budget.slots in range(17, 32)
    for ask_for in (
        lambda: plan(found, rate, memory_mb=[1024], executor_slots=16),
        lambda: ask(found, Question(rate, 1024, worker_slots=16, executor_slots=16)),
    ):
        with pytest.raises(WorkbenchError, match=r"in executors of 16 sustains 3.* 16 slots sustain the most"):
            ask_for()


@pytest.mark.parametrize("size", [0, -2, 1.5])
def test_a_size_that_no_executor_has_is_refused(size):
    for use in (
        lambda: plan(explored(1.0, 1024), 2e4, memory_mb=[1024], executor_slots=size),
        lambda: Question(20_000, 600, worker_slots=6, executor_slots=size),
        lambda: cheapest([MEDIUM], 4, SlotProfile(1.0, 1024), size),
    ):
        with pytest.raises(WorkbenchError, match=f"slots of an executor is {size}; it must be a whole number"):
            use()


@pytest.mark.parametrize(("worker", "words"), [(4, "Use 3, or another mul"), (2, "Use 3")])
def test_workers_that_hold_no_whole_executors_are_refused(worker, words):
    message = rf"The slots of a worker are {worker}; they must fill whole executors of 3, as measured\. {words}"
    with pytest.raises(WorkbenchError, match=message):
        Question(20_000, 600, worker_slots=worker, executor_slots=3)


def test_a_worker_is_priced_with_whole_executors_and_slots_of_whole_cores_are_in_the_settings():
    found = {cpus: plan(explored(cpus, 1024), 1e4, memory_mb=[1024]) for cpus in (0.4, 1.0, 2.0)}
    assert [one.spark_conf()["spark.task.cpus"] for one in found.values()] == ["1", "1", "2"]
    for cpus, one in found.items():
        cores = int(one.spark_conf()["spark.executor.cores"])
        assert cores == one.executor.slots * max(1, int(cpus))
    held = [slots_per_worker(8, 32768, SlotProfile(1.0, 1024), executor_slots=size) for size in (None, 3, 8)]
    assert held == [7, 6, 0]
    made = plan(explored(1.0, 1024), 5e4, memory_mb=[1024], instances=[MEDIUM], executor_slots=3)
    assert made.price.slots_per_worker == 6
    assert made.price.workers == math.ceil(made.executors / 2)
    assert made.price.idle_slots == 6 * made.price.workers - made.budget.slots >= 0
    assert made.executor.slots == 3
    cores, container_mb = pod(made)
    free_cores, free_mb = room(8, 32768)
    assert (2 * cores <= free_cores, 2 * container_mb <= free_mb) == (True, True)


@pytest.mark.parametrize("cpus", [0.2, 1 / 3, 1.0])
@pytest.mark.parametrize("memory_mb", [512, 1000, 4096])
def test_executors_on_a_worker_are_as_many_as_fit_one_by_one(cpus, memory_mb):
    for instance, size in itertools.product(INSTANCES, (1, 2, 5)):
        one = Executor(size, SlotProfile(cpus, memory_mb))
        cores, free_mb = room(instance.vcpus, instance.memory_mb)
        count = 0
        while (count + 1) * one.millicores <= 1000 * cores + 1e-6 and (count + 1) * one.memory_mb <= free_mb + 1e-6:
            count += 1
        found = slots_per_worker(instance.vcpus, instance.memory_mb, one.profile, executor_slots=size)
        assert found == count * size


def test_a_question_is_answered_with_executors_of_the_size_that_was_measured():
    found = staged_exploration(slots=(2, 2, 4, 4, 8, 8))
    for price, size in itertools.product((0.0, 1.0), (1, 2, 3)):
        asked = Question(20_000, 600, worker_slots=6, worker_price=price, executor_slots=size)
        answered = ask(found, asked)
        assert answered.plan.budget.slots == size * answered.plan.executors
        assert answered.plan.executor.slots == size
        assert answered.workers == math.ceil(answered.plan.budget.slots / 6)


MEMORY = [600]
FOUND = staged_exploration()  # 3,000 records/s per slot
OUTAGE = Outage(600, 1200)


def backlog_after(chosen, outage_s, seconds):
    """Records waiting `seconds` after an outage, record by record of a plain model."""
    return max(0.0, chosen.rate * outage_s - (chosen.expected_rate - chosen.rate) * seconds)


def test_the_backlog_of_the_outage_is_gone_in_time_and_a_short_one_asks_for_no_more_than_the_margin():
    chosen = plan(FOUND, 20_000, memory_mb=MEMORY, outage=OUTAGE)
    assert chosen.margin == pytest.approx(1.5)
    assert backlog_after(chosen, 600, 1200) == 0
    assert chosen.catch_up_s(600) <= 1200
    fewer = replace(chosen, expected_rate=float(FOUND.model.predict([[600, chosen.budget.slots - 1]])[0]))
    assert backlog_after(fewer, 600, 1200) > 0
    assert chosen.budget.slots > plan(FOUND, 20_000, memory_mb=MEMORY).budget.slots
    usual = plan(FOUND, 20_000, memory_mb=MEMORY)
    assert plan(FOUND, 20_000, memory_mb=MEMORY, outage=Outage(10, 3600)).budget == usual.budget
    risky = plan(FOUND, 20_000, memory_mb=MEMORY, risk=0.05)
    after = plan(FOUND, 20_000, memory_mb=MEMORY, risk=0.05, outage=OUTAGE)
    assert after.budget.slots > risky.budget.slots
    assert after.low * 1.02 >= 1.5 * 20_000  # the end that a risk of 5 % goes by


@pytest.mark.parametrize("settings", [{}, {"risk": 0.05}, {"outage": OUTAGE}])
def test_a_question_takes_the_slots_of_a_plan(settings):
    found = staged_exploration(slots=(2, 2, 4, 4, 8, 8))
    planned = plan(found, 20_000, memory_mb=MEMORY, **settings)
    answered = ask(found, Question(20_000, 600, **settings)).plan
    assert (answered.margin, answered.budget) == (planned.margin, planned.budget)
    assert answered.catch_up_s(600) == pytest.approx(planned.catch_up_s(600))


def test_records_wait_for_a_trigger_and_their_batch_and_without_spare_capacity_for_ever():
    chosen = plan(FOUND, 20_000, memory_mb=MEMORY)
    assert chosen.catch_up_s(600, chosen.rate) == math.inf
    assert chosen.catch_up_s(600, 2 * chosen.rate) == pytest.approx(600)
    chosen = replace(plan(FOUND, 20_000, memory_mb=MEMORY), layout=None)
    interval, busy = chosen.budget.interval_s, chosen.rate / chosen.expected_rate
    assert chosen.latency_s(0.5) == pytest.approx((0.5 + busy) * interval)
    assert chosen.latency_s(0.99) == pytest.approx((0.99 + busy) * interval)
    assert replace(chosen, rate=2 * chosen.expected_rate).latency_s(0.5) == math.inf


@pytest.mark.parametrize(
    ("capacity", "said"), [({}, "is gone in about"), ({"expected_rate": 20_000.0, "low": 19_000.0}, "never clears.")]
)
def test_the_plan_its_document_and_its_report_say_so(capacity, said):
    chosen = plan(FOUND, 20_000, memory_mb=MEMORY, outage=OUTAGE)
    assert CapacityPlan.from_json(chosen.to_json()) == chosen
    study = Study("nexmark:q5", (20_000.0,), (2, 4, 8), (600,), outage_s=600, catch_up_s=1200)
    made = Planned(study, FOUND, (replace(chosen, **capacity),))
    card = next(one for one in cards(made) if one.name == "waiting")
    assert f"After 10 min down, the backlog at 20 k records/s {said}" in card.finding


def test_the_panel_begins_where_a_plan_for_a_long_outage_is():
    long = Outage(86_400, 43_200.0)
    chosen = plan(FOUND, 20_000, memory_mb=MEMORY, outage=long)
    study = Study("nexmark:q5", (20_000.0,), (2, 4, 8), (600,), outage_s=long.outage_s, catch_up_s=long.catch_up_s)
    panel = WhatIf(Planned(study, FOUND, (chosen,)))
    assert panel.question().outage == long
    assert panel.answer.plan.budget.slots == chosen.budget.slots


def test_a_batch_that_takes_much_of_the_interval_whatever_its_size_is_said():
    exploration = staged_exploration()
    run = exploration.fitted_runs[-1]

    def takes(fixed_s):
        probe, sizes = run.estimate.probes[-1], (1_000, 1_000, 3_000, 5_000, 7_000)
        batches = tuple(Batch(2.0 * at, fixed_s + 1e-5 * rows, rows, 0.0, 0.0) for at, rows in enumerate(sizes))
        judged = replace(probe, observation=replace(probe.observation, batches=batches))
        return replace(run, estimate=replace(run.estimate, probes=(judged,)), load_curve=())

    assert check_fixed_time([takes(0.4)], 2.0) is None
    assert check_fixed_time([rated_run(2, 512, 1e4)], 2.0) is None  # simulated
    found = check_fixed_time([replace(takes(0.2), budget=replace(run.budget, slots=1)), takes(1.0)], 2.0)
    assert (found.concern, found.value) == ("fixed time", pytest.approx(0.5))
    assert found.finding == "On 8 slots every batch takes 1 s whatever its size, 50 % of the 2 s interval."
    assert "lengthen the interval (to 4 s or more)" in found.advice
    assert check_fixed_time([takes(1.0)], 4.0) is None
    made = plan(replace(exploration, runs=(*exploration.runs[:-1], takes(1.0))), 20_000, memory_mb=[600])
    assert [one.finding for one in made.cards if one.concern == "fixed time"] == [found.finding]
