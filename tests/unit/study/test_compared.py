"""A log next to a study that was measured, whose rates are known; and what follows an outage, by a plain queue."""

import json
import math
import re
from dataclasses import replace

import pytest
from queued_batches import queued
from written_logs import a_day, capacity, events, written

from workbench.checks import shown
from workbench.cli import main
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.observing import headroom, read_log
from workbench.study import Study, observe, read_planned, run_study, write_planned
from workbench.study.observed import _worked_off_s, compare
from workbench.study.planned import plan_targets

ON_FOUR = capacity(4, 2.0)  # of the log's query


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return written(tmp_path_factory.mktemp("logs") / "app-1", events(a_day(0.6 * ON_FOUR)))


@pytest.fixture
def measured(tmp_path):
    """Write the plans of a study with slots of half a core; give a function of its rate of one slot."""

    def made(per_slot, slot_cpus=0.5, scatter=0.0, **asked):
        table = tmp_path / "table.csv"
        off = (1 + scatter, 1 - scatter) * 3
        rows = [f"1024,{slots},{per_slot * slots * by}" for slots, by in zip((2, 4, 8, 8, 16), off, strict=False)]
        table.write_text("\n".join(["memory_mb,slots,rate", *rows]) + "\n")
        study = Study(
            "orders", (1000.0,), (2, 4, 8, 16), (1024,), testbed="recorded", table=str(table), slot_cpus=slot_cpus,
            choice="edge", most_runs=5, interval_s=2.0, form="linear", **asked,
        )  # fmt: skip
        write_planned(run_study(study, Journal(tmp_path / "journal.jsonl")), tmp_path / "plans.json")
        return tmp_path / "plans.json"

    return made


def test_the_same_cores_agree(log, measured):
    found = observe(log, measured=measured(ON_FOUR / 8)).compared
    assert found.slots == 8  # of half a core, for four of one
    assert found.rate == pytest.approx(ON_FOUR, rel=0.01)
    assert found.times == pytest.approx(1, abs=0.05)
    assert found.agrees


def test_cores_that_do_twice_the_work_need_half_as_many(log, measured):
    seen = observe(log, targets=(2 * ON_FOUR, 4 * ON_FOUR), measured=measured(ON_FOUR / 16))
    found = seen.compared
    assert found.times == pytest.approx(2, abs=0.1)
    assert not found.agrees
    margin = 1.1
    for target, (_, slots) in zip((2 * ON_FOUR, 4 * ON_FOUR), found.takes, strict=True):
        assert slots == pytest.approx(margin * 4 * target / seen.headroom.rate, abs=1.01)


@pytest.mark.parametrize("cpus", [0.05, 0.1, 0.4])
def test_as_many_slots_of_the_same_size_are_taken_as_the_model_takes(log, measured, cpus):
    running = replace(read_log(log), cpus=cpus)
    plans = read_planned(measured(1000.0, slot_cpus=cpus))
    found = headroom(running.batches, 2.0)
    times = compare(running, found, plans).times
    targets = tuple(times * 1000.0 * slots for slots in range(2, 17))
    takes = [plans.exploration.model.slots_for(target / times, 1024) for target in targets]
    assert {3, 6} < set(takes)  # of which the product with 0.1, over 0.1, is a little more
    assert compare(running, found, plans, targets).takes == tuple(zip(targets, takes, strict=True))


@pytest.mark.parametrize("asked", [{}, {"margin": 1.5}, {"risk": 0.02}, {"outage_s": 600, "catch_up_s": 600}])
def test_slots_answer_the_question_that_the_plans_answer(log, measured, asked):
    running = replace(read_log(log), cpus=0.5)
    plans = read_planned(measured(ON_FOUR / 4, **asked, scatter=0.03))
    found = headroom(running.batches, 2.0)
    times = compare(running, found, plans).times
    targets = (ON_FOUR, 2 * ON_FOUR, 3 * ON_FOUR)
    planned = plan_targets(replace(plans.study, targets=targets), plans.exploration).plans
    held = compare(running, found, plans, tuple(times * target for target in targets))
    assert [slots for _, slots in held.takes] == [plan.budget.slots for plan in planned]


def renamed(plans, **changes):
    """Change settings of the study in a file of plans."""
    stored = json.loads(plans.read_text())
    plans.write_text(json.dumps(stored | {"study": stored["study"] | changes}))
    return plans


@pytest.mark.parametrize(
    ("changes", "named"), [({}, ""), ({"query": "their_orders"}, r", of their_orders \(the log is of orders\),")]
)
def test_the_terminal_says_so(log, measured, capsys, changes, named):
    path = renamed(measured(ON_FOUR / 16), **changes)
    assert main(["observe", str(log), "--target", str(2 * ON_FOUR), "--measured", str(path)]) in {0, 1}
    said = " ".join(capsys.readouterr().out.split())
    expects = r"expects (39|40).* k records/s .* from the same number of cores, 8 of its slots: a core here does 2"
    assert re.search(f"The study that was measured{named} {expects}", said)
    assert re.search(r"With the growth that was measured, 16\d k records/s take [89] slots of this kind", said)


def test_what_cannot_be_compared_is_refused(log, measured):
    with pytest.raises(WorkbenchError, match="nothing is known of other"):  # without the parts of a batch
        observe(log, interval_s=4.0, measured=measured(ON_FOUR / 8))
    with pytest.raises(WorkbenchError, match="a study of 'orders' on the simulated engine"):
        observe(log, measured=renamed(measured(ON_FOUR / 8), testbed="fluid", table=None))


INTERVAL_S, RATE = 2.0, 20_000.0


def simulated_s(load, fixed_share, outage_s):
    """Seconds from the restart until a batch takes no more rows than an interval brings."""

    def lasts(_, rows):
        return fixed_share * INTERVAL_S + (1 - fixed_share) * rows / RATE

    most_s = outage_s + 100_000
    for fires, rows, _, _ in queued(lambda at_s: load * RATE * at_s, lasts, INTERVAL_S, most_s, from_s=outage_s):
        if fires > outage_s and rows <= 1.001 * load * RATE * INTERVAL_S:
            return fires - outage_s
    return math.inf


@pytest.mark.parametrize("fixed_share", [0.02, 0.2, 0.5])
@pytest.mark.parametrize("load", [0.3, 0.8, 0.95])
@pytest.mark.parametrize("outage_s", [60.0, 600.0, 3600.0])
def test_large_batches_pay_their_fixed_part_once(load, fixed_share, outage_s):
    found = _worked_off_s(outage_s, load, fixed_share * INTERVAL_S, INTERVAL_S)
    assert found == pytest.approx(simulated_s(load, fixed_share, outage_s), rel=0.02, abs=INTERVAL_S)


@pytest.mark.parametrize("load", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("fixed_share", [0.1, 0.45, 0.8])
@pytest.mark.parametrize("outage_s", [1.0, 2.0, 2.2, 3.0, 3.9])
def test_an_outage_of_few_intervals_takes_the_batches_that_it_takes(load, fixed_share, outage_s):
    batch_s, passed_s = outage_s, 0.0
    while not passed_s or batch_s > INTERVAL_S:
        batch_s = (fixed_share + (1 - fixed_share) * load * batch_s / INTERVAL_S) * INTERVAL_S
        passed_s += batch_s
    assert _worked_off_s(outage_s, load, fixed_share * INTERVAL_S, INTERVAL_S) == pytest.approx(passed_s)


@pytest.mark.parametrize("fixed_share", [0.5, 0.9, 0.999])
def test_a_load_that_is_all_but_the_rate_never_catches_up(fixed_share):
    assert _worked_off_s(600.0, math.nextafter(1.0, 0.0), fixed_share * INTERVAL_S, INTERVAL_S) == math.inf


@pytest.mark.parametrize("minutes", [-5.0, 10_081.0, 1e308, math.inf, math.nan])
def test_an_outage_that_is_none_is_refused_before_the_log_is_read(minutes):
    said = f"The outage is {shown(minutes)}; it must be at least 0 and at most 10080 (minutes)."
    with pytest.raises(WorkbenchError, match=re.escape(said)):
        observe("nowhere", outage_min=minutes)
