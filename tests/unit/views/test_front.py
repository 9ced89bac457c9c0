"""The first screen of a plan: the verdicts, what to mind, and where the figures come from."""

from dataclasses import replace
from pathlib import Path

import html5lib
import pytest
from staged_runs import staged_exploration

from workbench import units
from workbench.capacity import plan
from workbench.records import CountedCores, InstanceType, ModelFinding, Outage, Price
from workbench.speed import CoreSpeed
from workbench.study import Planned, Study, read_planned
from workbench.study.carry_out import plan_targets
from workbench.views.cards import Card
from workbench.views.choices import choices
from workbench.views.first_screen import MOST_CARES, origin
from workbench.views.front import asked_for, capacity, deployment, front_html, risk, sentence, start_html
from workbench.views.plan_cards import cards

NBSP = "\N{NO-BREAK SPACE}"
NASTY = "jobs:<script>alert(1)</script>&amp;"


def planned(query="mine:orders", rates=(6_000, 12_000), **changes):
    found = staged_exploration()
    plans = tuple(replace(plan(found, rate, memory_mb=[600]), query=query, **changes) for rate in rates)
    study = Study(query, tuple(map(float, rates)), (2, 4, 8), (600,), deployment="separate")
    return Planned(study, found, plans, (), (), ())


def test_every_target_has_a_row_with_its_verdict():
    page = front_html(planned())
    for one in planned().plans:
        assert f">{one.verdict.level.replace(chr(39), '&#x27;')}</span>" in page
        assert f"<td>{capacity(one, '')}</td>".replace(" k", NBSP + "k") in page
        assert f"<td>{risk(one)}</td>".replace(" %", NBSP + "%") in page
    targets = page.partition("</table>")[0]
    assert targets.count("<tr>") == 3


def test_nobody_can_take_simulated_figures_for_measured_ones():
    assert [origin(kind) for kind in ("spark", "fluid", "recorded")] == ["MEASURED", "SIMULATED", "RECORDED"]
    assert '<span class="origin measured">MEASURED</span>' in front_html(planned())


def test_the_page_says_whose_cores_are_counted_and_escapes_their_name():
    stored = read_planned(Path(__file__).parents[3] / "data" / "q5.recorded.json")
    assert "It counts " not in front_html(stored)  # plans of an earlier version
    page = front_html(plan_targets(stored.study, stored.exploration, (), stored.instances))
    assert page.count("It counts cores as fast as those measured: arithmetic 0.25 ms, random reads 0.30 ms, ") == 1
    there = InstanceType(NASTY, "x", "y", 8, 16384, 0.5, "USD", "z", "2026", core_speed=0.5)
    other = replace(
        stored.plans[0],
        price=Price(there, 1, 4, 0.5, 0),
        cores=CountedCores(CoreSpeed(0.25e-3, 0.3e-3), 0.5, 0.43, 0.57),
    )
    page = front_html(replace(stored, plans=(other,)))
    assert NASTY not in page
    assert ", 0.50 times as fast as those measured (0.43 to 0.57); measured were arithmetic 0.25 ms, " in page
    assert "Risk against cost" not in page  # the model's risk is that of the cores measured


def test_the_low_end_of_an_interval_never_reads_as_the_rate():
    one = replace(planned().plans[0], expected_rate=22.4e6, low=21.9e6, high=22.8e6)
    assert capacity(one, "") == "22.4 M (21.9 M to 22.8 M)"


def test_a_target_without_a_plan_has_a_row_and_is_counted():
    made = replace(planned(), refused=((9_000.0, "too much"),))
    assert sentence(made).endswith(" No plan for 1 of 3 targets.")
    rows = front_html(made).partition("</table>")[0].split("<tr>")[2:]
    assert [("no plan" in row, f"{rate}{NBSP}k" in row) for row, rate in zip(rows, (6, 9, 12), strict=True)] == [
        (False, True),
        (True, True),
        (False, True),
    ]


def test_an_outage_and_the_lowest_load_are_answered_on_the_first_screen():
    one = replace(planned().plans[0], outage=Outage(600, 1200), low_slots=1, expected_rate=9e3, low=8e3)
    outage, lowest = asked_for(one)
    assert outage == (
        "After 10 min down, the backlog at 6 k records/s is gone in about 20 min (30 min at the interval's low end). "
        "You asked for 20 min."
    )
    assert lowest == f"At the lowest load 1 slot is enough, of the {one.budget.slots} planned for 6 k records/s."
    assert outage.replace("'", "&#x27;") in front_html(replace(planned(), plans=(one,)))
    assert asked_for(planned().plans[0]) == ()


def test_more_slots_are_no_riskier_because_some_may_stay_idle():
    class Widening:
        def risks(self, *_):
            return [0.5, 0.2, 0.9, 0.02, 0.005]

    one = planned().plans[0]
    own = replace(one, verdict=replace(one.verdict, risk=0.01))
    assert [choice.risk for choice in choices(Widening(), own)][2:] == [0.01, 0.01, 0.005]


def test_without_a_price_deployments_next_to_a_plan_have_whole_executors():
    made = planned()
    one = made.plans[0]
    size = one.budget.slots // 2
    own = replace(one, budget=replace(one.budget, slots=2 * size), executors=2, executor_slots=size)
    found = choices(made.exploration.model, own)
    assert [choice.slots for choice in found] == [size, 2 * size, 3 * size, 4 * size]
    assert [choice.slots for choice in found if choice.planned] == [2 * size]


def test_without_a_price_risk_is_set_against_slots():
    assert f"Risk by slots, 6{NBSP}k{NBSP}records/s" in front_html(planned())


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        (1, "If the only worker is lost, the query stands still."),
        (3, "If a worker is lost, the row above the planned one is left."),
    ],
)
def test_the_table_of_risks_says_what_is_left_when_a_worker_is_lost(workers, said):
    instance = InstanceType("m.large", "a", "b", 4.0, 16_384.0, 0.1, "USD", "c", "2026-01-01")
    price = Price(instance, workers, 3, 0.1 * workers, 0)
    assert said in front_html(planned(price=price))


def test_texts_of_the_user_are_texts():
    finding = ModelFinding("hot key", 3.0, f"about {NASTY}", f"split {NASTY}")
    page = front_html(planned(NASTY, cards=(finding,)))
    assert "<script>" not in page
    html5lib.HTMLParser(strict=True).parseFragment(page)


def test_at_most_four_reasons_for_care_each_with_its_remedy_and_once():
    concerns = ("hot key", "late batches", "python workers", "source share", "state not known", "keys")
    findings = tuple(ModelFinding(one, 2.0, f"about {one}", f"correct {one}") for one in concerns)
    page = front_html(planned(cards=findings))
    assert page.count("<li>") == MOST_CARES
    assert page.count("about hot key") <= 1


@pytest.mark.parametrize(("chance", "text"), [(0.0, "under 0.1 %"), (0.0042, "0.4 %"), (0.237, "24 %")])
def test_risks_are_rounded_to_what_one_can_stand_for(chance, text):
    one = planned().plans[0]
    assert risk(replace(one, verdict=replace(one.verdict, risk=chance))) == text


def test_a_plan_of_an_earlier_version_has_no_verdict():
    page = front_html(planned(verdict=None))
    assert 'class="verdict' not in page
    assert sentence(planned(verdict=None)).endswith(" MB.")


def test_evidence_is_folded_and_answers_are_not():
    made = cards(planned())
    front = [card for card in made if not card.folded]
    assert [card.name for card in front][:2] == ["answer", "model"]
    assert [card.name for card in front][2:] == ["start", "forms"]
    assert 'class="workbench-card result folded"' in next(card for card in made if card.folded).heading_html()
    assert "folded" not in Card("a", "b", "c").heading_html()


@pytest.mark.parametrize(("before", "shown"), [(0, False), (1, True)])
def test_choices_are_shown_where_there_is_something_to_choose(monkeypatch, before, shown):
    """Where the planned deployment is the least, and more lower no risk that can be read, there is nothing."""
    made = planned(rates=(6_000,))
    one = choices(made.exploration.model, made.plans[0])[0]
    found = [replace(one, risk=0.0, planned=number == before) for number in range(3)]
    monkeypatch.setattr("workbench.views.front.choices", lambda *_: found)
    assert ("Risk by slots" in front_html(made)) == shown


def test_choices_are_the_deployments_beside_the_planned_one_which_has_the_risk_of_its_verdict():
    made = planned()
    one = made.plans[0]
    found = choices(made.exploration.model, one)
    assert [choice.slots for choice in found if choice.planned] == [one.budget.slots]
    assert [choice.risk for choice in found if choice.planned] == [one.verdict.risk]
    assert [choice.slots for choice in found] == sorted({choice.slots for choice in found})
    risks = [choice.risk for choice in found if not choice.planned]
    assert risks == sorted(risks, reverse=True)
    assert choices(made.exploration.model, replace(one, verdict=None)) == ()


def test_the_planned_row_alone_is_marked():
    page = front_html(planned(rates=(6_000,)))
    assert page.count('<tr class="chosen">') == page.count("planned</td>") == 1


def test_what_starts_a_plan_can_be_copied_and_is_escaped():
    made = planned(NASTY)
    page = start_html(made.plans)
    assert page.count('type="radio"') == len(made.plans)
    assert page.count(" checked") == 1
    assert "spark-submit" in page
    assert "<script>" not in page
    html5lib.HTMLParser(strict=True).parseFragment(page)


def test_thousands_have_commas_in_prose_and_tables_and_none_in_documents():
    one = planned().plans[0]
    budget = replace(one.budget, slots=3670, profile=replace(one.budget.profile, memory_mb=1024))
    large = replace(one, budget=budget, executors=1200)
    for said in (deployment(large), large.sentence()):
        assert "3,670 slots" in said
        assert "1,024 MB" in said
    assert large.room() == "1,200 executors with room for 4 slots each: 4,800, of which the plan uses 3,670"
    assert '"slots": 3670' in large.to_json()
    assert "3,670" not in large.to_json().partition('"cards"')[0]
    assert units.percent(12.345) == "1,234 %"
