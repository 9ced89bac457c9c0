"""What a plan says: a row for every target, its doubts, the deployments next to it, and what it rests on."""

from dataclasses import replace

import html5lib
import pytest
from batch_truths import Engine
from figure_checks import check_figure
from staged_runs import laid_out, staged_exploration

from workbench.answers import page
from workbench.answers.measured import run_cards
from workbench.answers.page import MOST_CAUTIONS
from workbench.answers.planned import answer, cards
from workbench.capacity import ModelFinding, Stage, plan
from workbench.capacity.explore import conclude
from workbench.capacity.planning import InstanceType, cheapest
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.records import CountedCores, Machine, Price, Refusal, plan_to_dict
from workbench.report import show_measurement, show_planned
from workbench.speed import CoreSpeed
from workbench.study import Planned, Study
from workbench.views.findings import containers

NASTY = "jobs:<script>alert(1)</script>&amp;"
LARGE = InstanceType("large", "x", "y", 8, 16384, 0.5, "USD", "z", "2026")
STUDY = Study(
    "nexmark:q1", (2e6, 2e7, 1e15), (2, 8, 16), (512,), testbed="fluid", slot_cpus=1.0, most_runs=4, form="linear"
)


def staged(query="mine:orders", rates=(6_000, 12_000), **changes):
    found = staged_exploration()
    plans = tuple(replace(plan(found, rate, memory_mb=[600]), query=query, **changes) for rate in rates)
    study = Study(query, tuple(map(float, rates)), (2, 4, 8), (600,), deployment="separate")
    return Planned(study, found, plans, (), (), ())


def lead(planned):
    """The first card of a page, without the others' figures."""
    (card,) = page.cards(replace(answer(planned), also=(), evidence=()))
    return card


def named(name, made):
    (card,) = [card for card in cards(made) if card.name.startswith(name)]
    return card


def column(name, rows):
    return [next((fact for fact in row if fact.name == name), None) for row in rows]


def test_a_plan_of_an_earlier_version_has_no_verdict():
    made = answer(staged(verdict=None))
    assert [fact.text for fact in column("Verdict", made.rows)] == ["", ""]
    assert made.listings == ()
    assert made.headline.endswith(" MB.")


def test_the_headline_is_the_highest_target_that_can_be_relied_on():
    made = staged(rates=(6_000, 12_000, 18_000))
    low, *high = (replace(one, verdict=replace(one.verdict, level="safe")) for one in made.plans)
    unsure = [replace(one, verdict=replace(one.verdict, level="don't rely on it yet")) for one in high]
    said = answer(replace(made, plans=(low, *unsure))).headline
    assert said.startswith("mine:orders at 6 k records/s needs ")
    assert said.endswith("Don't rely on the plan for 12 k records/s and 18 k records/s yet.")
    said = answer(replace(made, plans=tuple(unsure))).headline
    assert said.startswith("mine:orders at 18 k records/s needs ")
    assert said.endswith(": don't rely on it yet.")


@pytest.mark.parametrize(("chance", "text"), [(0.0, "under 0.1 %"), (0.0042, "0.4 %"), (0.237, "24 %")])
def test_risks_are_rounded_to_what_one_can_stand_for(chance, text):
    made = staged(rates=(6_000,))
    one = made.plans[0]
    judged = replace(made, plans=(replace(one, verdict=replace(one.verdict, risk=chance)),))
    (fact,) = column("Risk of falling short", answer(judged).rows)
    assert fact.text == text


def finding(concern, value, text, **more):
    return ModelFinding(concern, value, text, f"correct {text}", **more)


def test_a_concern_is_said_once_at_its_worst_and_what_is_settled_last():
    settled = finding("keys", 9.0, "even", settled=True)
    made = staged()
    one, other = made.plans
    plans = (
        replace(one, cards=(settled, finding("hot key", 2.0, "mild"), finding("few runs", 3.0, "few"))),
        replace(other, cards=(settled, finding("hot key", 3.0, "worst"), finding("late batches", 1.0, "late"))),
    )
    safe = tuple(replace(plan, verdict=replace(plan.verdict, level="safe")) for plan in plans)
    said = list(answer(replace(made, plans=safe)).cautions)
    assert said == ["12 k records/s: worst", "6 k records/s: few", "12 k records/s: late", "even"]
    risky = tuple(replace(plan, verdict=replace(plan.verdict, level="risky", reason="why")) for plan in plans)
    said = list(answer(replace(made, plans=risky)).cautions)
    weighed = ["12 k records/s: worst", "12 k records/s: late", "even"]  # a verdict weighs how few runs there are
    assert said == ["6 k records/s: why", "12 k records/s: why", *weighed]


def test_a_page_shows_at_most_four_cautions_and_all_findings_once_as_evidence_with_their_targets():
    found = tuple(finding(one, 2.0, f"about {one}") for one in ("hot key", "late batches", "source share", "keys", "x"))
    assert lead(staged(cards=found)).html.count("<li>") == MOST_CAUTIONS
    far, near = finding("extrapolation", 12.0, "far"), finding("extrapolation", 3.0, "near")
    both = finding("levels off", 0.9, "levels off")
    made = staged()
    one, other = made.plans
    plans = (replace(one, cards=(far, both)), replace(other, cards=(near, both)))
    assert set(named("doubts", replace(made, plans=plans)).table.rows) >= {
        ("extrapolation", "6 k records/s", "far", "correct far"),
        ("extrapolation", "12 k records/s", "near", "correct near"),
        ("levels off", "all", "levels off", "correct levels off"),
    }


def test_deployments_next_to_the_planned_one_have_its_verdicts_risk_and_more_slots_no_more(monkeypatch):
    made = staged()
    for one, beside in zip(made.plans, answer(made).listings, strict=True):
        slots, risks = ([fact.value for fact in column(name, beside.rows)] for name in ("Slots", "Risk"))
        assert slots[beside.chosen] == one.budget.slots
        assert risks[beside.chosen] == one.verdict.risk
        assert slots == sorted(set(slots))
        assert risks == sorted(risks, reverse=True)
    assert lead(made).html.count('<tr class="chosen">') == 2
    made = staged(rates=(6_000,))
    one = made.plans[0]
    own = replace(made, plans=(replace(one, verdict=replace(one.verdict, risk=0.01)),))
    monkeypatch.setattr(type(made.exploration.model), "risks", lambda *_: [0.5, 0.2, 0.9, 0.02, 0.005])
    (beside,) = answer(own).listings
    assert [fact.value for fact in column("Risk", beside.rows)][beside.chosen :] == [0.01, 0.01, 0.005]


@pytest.mark.parametrize("several", [True, False])
def test_where_nothing_is_left_to_choose_nothing_is_listed(monkeypatch, several):
    made = staged(rates=(6_000,))
    one = made.plans[0]
    least = replace(one, budget=replace(one.budget, slots=1 + several), verdict=replace(one.verdict, risk=0.0))
    monkeypatch.setattr(type(made.exploration.model), "risks", lambda *given: [0.0] * len(given[3]))
    assert bool(answer(replace(made, plans=(least,))).listings) == several


def test_deployments_have_whole_executors_or_whole_workers():
    made = staged(rates=(6_000,))
    one = made.plans[0]
    size = one.budget.slots // 2
    own = replace(one, budget=replace(one.budget, slots=2 * size), executors=2, executor_slots=size)
    (beside,) = answer(replace(made, plans=(own,))).listings
    assert [fact.value for fact in column("Slots", beside.rows)] == [size, 2 * size, 3 * size, 4 * size]
    for workers in (1, 3):
        price = Price(LARGE, workers, 3, 0.5 * workers, 0)
        beside = answer(staged(rates=(12_000,), price=price)).listings[0]
        assert column("Workers", beside.rows)[beside.chosen].value == workers
        assert ("only worker" in beside.caption) == (workers == 1)


def test_more_slots_are_priced_on_the_cheapest_listed_type():
    small = replace(LARGE, name="small", vcpus=2, memory_mb=4096)
    roomy = replace(LARGE, name="roomy", vcpus=64, memory_mb=262144, price_per_hour=1.2)
    fast = replace(roomy, name="fast", price_per_hour=0.01, core_speed=2.0)  # the risks are not of its cores
    budget = staged(rates=(12_000,)).plans[0].budget
    price = cheapest((small,), budget.slots, budget.profile)
    made = staged(rates=(12_000,), price=price)
    (beside,), (alike,) = (answer(replace(made, instances=listed)).listings for listed in ((small, roomy, fast), ()))
    assert [fact.text for fact in column("Workers", alike.rows)] == [f"{n} x small" for n in (1, 2, 3, 4)]
    assert [fact.value for fact in column("USD a month", alike.rows)] == [365, 730, 1095, 1460]
    workers = [fact.text for fact in column("Workers", beside.rows)]
    assert workers == ["1 x small", "2 x small", "1 x roomy", "1 x roomy"]
    assert [fact.value for fact in column("USD a month", beside.rows)] == [365, 730, 876, 876]
    for name in ("Slots", "Risk"):
        assert column(name, beside.rows) == column(name, alike.rows)


def test_other_cores_have_no_risk_of_the_model_and_the_name_of_their_type_is_text():
    named = replace(LARGE, name=NASTY, core_speed=0.5)
    cores = CountedCores(CoreSpeed(0.25e-3, 0.285e-3), 0.5, 0.43, 0.57)
    made = staged(price=Price(named, 1, 4, 0.5, 0), cores=cores)
    assert answer(made).listings == ()
    assert NASTY not in lead(made).html


def test_what_starts_a_plan_has_a_tab_for_each():
    made = staged()
    start = named("start", made)
    assert start.html.count('type="radio"') == len(made.plans)
    assert start.html.count(" checked") == 1
    assert "spark-submit" in start.html


def test_rates_that_are_nearly_the_same_have_cards_of_their_own(planned):
    names = [card.name for card in cards(replace(planned, refused=(Refusal(1e30, "No."), Refusal(1e31, "No."))))]
    assert len(set(names)) == len(names)
    assert names[1:3] == ["refused-1000000000000000019884624838656", "refused-9999999999999999635896294965248"]


def test_without_a_plan_there_are_no_rows_and_no_price_of_safety(planned):
    none = replace(planned, plans=())
    names = [card.name for card in cards(none)]
    assert answer(none).rows == ()
    assert "safety" not in names
    assert "forms" in names


def test_counts_are_numbers_in_csv_and_have_commas_on_the_page(planned):
    one = planned.plans[1]
    many = dict.fromkeys(one.allocation.tasks, 8055)
    large = replace(
        one, allocation=replace(one.allocation, tasks=many), price=Price(LARGE, 8055, 1, 4027.5, 0), executors=1200
    )
    made = {card.name: card for card in cards(replace(planned, plans=(large,)))}
    settings = made[f"settings-{one.rate:.0f}"]
    for name in many:
        assert f"tasks of {name},8055\r\n" in settings.table.csv()
    assert ">8,055</td>" in settings.table_html()
    assert ",8055,large," in made["answer"].table.csv()
    assert "8,055 x large" in made["answer"].html
    assert containers(large).startswith("1,200 executors with room for 1 slot each: 1,200, of which the plan uses ")


def test_what_an_executor_has_in_addition_to_its_slots_is_named():
    one = replace(staged().plans[0], budget=Budget(2, SlotProfile(0.4, 1024)))
    assert "Each executor has 0.8 cores and 2,432 MB, 384 of it Spark's overhead. Add a driver." in containers(one)


def test_the_run_that_is_shown_in_full_is_the_latest_fitted_one_nearest_to_the_plan():
    made = staged()
    two, four, eight = made.exploration.runs
    loose = replace(four, estimate=replace(four.estimate, limit="none", high=3 * four.estimate.low))
    found = conclude([loose, two, four, replace(four), eight], "5 runs were made", growth="tasks")
    low, high = (replace(one, budget=run.budget) for one, run in zip(made.plans, (two, four), strict=True))
    made = replace(made, exploration=found, plans=(low, high))
    assert {card.of for card in run_cards(made)} == {"Run 4, on 4 slots"}
    assert {card.of for card in run_cards(replace(made, plans=()))} == {"Run 5, on 8 slots"}
    row = named("runs", made).table.rows[3]
    assert f"Measured by {row[4]} probes in " in run_cards(made)[0].finding


def test_a_batch_has_one_time_and_its_partitions_one_figure(planned):
    stages = [Stage("scan", 0.01, 1e-5, source=True), Stage("count", 0.05, 1e-4, stateful=True)]
    one = planned.plans[0]
    laid = replace(
        one,
        budget=replace(one.budget, interval_s=2.0),
        testbed_kind="spark",
        allocation=None,
        layout=laid_out(stages, 4, 2.0, rate=30_000),
        batch_parts={"driver": 0.37, "tasks, fixed": 0.38, "rows": 0.8},
    )
    card = named("settings", replace(planned, plans=(laid,)))
    figure = check_figure(card.figure)
    assert [trace.uid for trace in figure.data] == ["layout-partitions"]  # one slot count: no curve over several
    assert "takes 1.6 s of the 2 s interval" in card.finding
    assert "batches take at most" not in card.finding
    assert laid.latency_s(0.5) == pytest.approx(1 + 1.55)
    assert named("settings", replace(planned, plans=(replace(laid, layout=None),))).figure is None


@pytest.mark.parametrize(
    ("machine", "cpus", "says"),
    [
        (Machine(slots="a CPU quota", cores=2.0), 0.2, True),
        (Machine(slots="a CPU quota", cores=2.0), 0.4, False),  # up to 4 slots share 1.6 cores, and 4 were measured
        (Machine(), 0.2, False),
    ],
)
def test_what_the_law_assumes_of_slots_that_share_a_core_is_said(planned, machine, cpus, says):
    engine = Engine(noise=0.02)
    runs = [engine.run(n, divided=(16,) * (n == 4), cpus=cpus, machine=machine) for n in (1, 2, 4)]
    explored = replace(planned, exploration=conclude(runs, "measured", choice="edge"), plans=())
    card = named("forms", explored)
    assert ("of 80 % up to 8 slots, which share at most 1.6 cores of one machine, and of 60 %" in card.finding) == says
    assert ("Before any run" in card.finding) == says


def test_the_last_question_to_the_gaussian_process_is_shown(planned):
    runs = planned.exploration.runs
    longer = conclude((*runs, runs[-1]), "ended", choice="edge", growth="tasks")
    card = named("acquisition", replace(planned, exploration=longer))
    assert card.folded
    assert card.finding.startswith("After 4 runs the explorer asks for ")


def test_no_path_and_no_plans_are_told_apart(tmp_path):
    for show, parameter in ((show_planned, "planned"), (show_measurement, "measurement")):
        with pytest.raises(WorkbenchError, match=f"set the parameter '{parameter}'"):
            show("", "")
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(WorkbenchError, match="holds no plans"):
        show_planned(str(tmp_path / "x.json"), "")


def test_the_rows_have_the_figures_of_the_plans_document(planned):
    for row, one in zip(answer(planned).rows, planned.plans, strict=False):
        document = plan_to_dict(one)
        assert {fact.key: fact.value for fact in row if fact.key} == {
            key: document[key] for key in ("expected_rate", "low", "high", "extrapolation")
        }


def test_texts_of_the_user_are_texts():
    made = staged(NASTY, cards=(ModelFinding("hot key", 3.0, f"about {NASTY}", f"split {NASTY}"),))
    for card in cards(made):
        assert "<script>" not in card.heading_html()
        html5lib.HTMLParser(strict=True).parseFragment(card.html)
