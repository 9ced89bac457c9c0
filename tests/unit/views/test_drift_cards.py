"""What the cards of a comparison say."""

import math
from dataclasses import replace

import pytest
from example_measurement import example_measurement

from workbench.dataflow import Budget, SlotProfile
from workbench.speed import RelativeSpeed
from workbench.study import Change, Drift
from workbench.study._drift import Difference, Promise, Scatter
from workbench.views.drift_cards import drift_cards, finding, previous_measurement


def change(thing, least, most, noise, unit="records/s"):
    """A change that is between `least` and `most` times as large, where `noise` is the rise that chance explains."""
    ends = [math.log(end) if end else -math.inf for end in (least, most)]
    return Change(thing, unit, 100.0, None, *ends, math.log1p(noise))


FELL = change("Capacity over 3 budgets", 0.8, 0.8, 0.05, "")
SAME = change("Capacity of 2 slots", 0.99, 0.99, 0.1)
OPEN = change("Capacity of 4 slots", 0, math.inf, 0.1)
GONE = change("Capacity of 4 slots", 0, 0.25, 0.1)
RISEN = change("Cost of 2 window", 1.4, 1.4, 0.1, "s per record")
NOTHING = change("Capacity over 0 budgets", 0, math.inf, 0, "")
FOUND = Drift("q5 <b>", "2026-01-05T04:30:00+00:00", "2026-01-12T04:30:00+00:00", FELL, (SAME, OPEN), (), Scatter())


def test_a_loss_is_advice_and_says_how_large_it_is():
    (card,) = drift_cards(FOUND)
    assert card.kind == "health"
    assert card.finding.startswith("The capacity of q5 <b> fell by 20.0 % since ")
    assert "q5 &lt;b&gt;" in card.heading_html()
    assert [row[0] for row in card.table.rows] == [one.thing for one in (FELL, SAME, OPEN)]
    assert card.table.rows[2][4] is None
    assert [round(value, 2) for value in card.table.rows[0][4:7]] == [-20, 4.76, 5]


LOST = "Outside the noise: Capacity of 4 slots at least -75.0 %. "


@pytest.mark.parametrize(
    ("found", "kind", "says"),
    [
        ({"overall": SAME, "changes": (SAME,), "costs": (RISEN,)}, "result", "The capacity of q5 <b> did not change"),
        ({"overall": SAME, "changes": (SAME, GONE)}, "health", f"{LOST}The capacity of q5 <b> did not change"),
        ({"overall": NOTHING, "changes": (GONE,)}, "health", f"{LOST}Whether"),
        ({"overall": GONE, "changes": (GONE,)}, "health", "The capacity of q5 <b> fell by at least 75.0 % since"),
        ({"overall": OPEN, "changes": (OPEN,)}, "result", "Whether the capacity of q5 <b> changed"),
    ],
)
def test_a_loss_is_said_first_and_makes_the_card_advice(found, kind, says):
    (card,) = drift_cards(replace(FOUND, **found))
    assert card.kind == kind
    assert card.finding.startswith(says)


def test_other_cores_are_said_with_the_change():
    assert "The cores were 0.50 times as fast" in finding(replace(FOUND, cores=RelativeSpeed(0.5, 0.43, 0.57)))
    assert "The cores were" not in finding(replace(FOUND, cores=RelativeSpeed(0.9, 0.78, 1.04)))


def test_plans_that_no_longer_hold_and_circumstances_have_cards_of_their_own():
    budget = Budget(4, SlotProfile(1.0, 512))
    promises = (
        Promise(1000.0, 1.1, budget, 1200.0, 1100.0, 1300.0, 4),
        Promise(2000.0, 1.1, budget, 1200.0, 1100.0, 1300.0, 9000),
    )
    cards = drift_cards(replace(FOUND, promises=promises, differences=(Difference("Machine: cores", "2", "4"),)))
    assert [card.name for card in cards] == ["drift", "promises", "circumstances-changed"]
    assert cards[1].kind == "health"
    assert cards[1].finding.startswith("1 of 2 plans of the previous run holds")


def test_a_previous_file_that_does_not_fit_says_why(tmp_path):
    now = example_measurement()
    assert previous_measurement("", now) == []
    (card,) = previous_measurement(str(tmp_path / "none.json"), now)
    assert card.kind == "not-yet"
    assert "cannot be read" in card.finding
    replace(now, query="q1").to_json(tmp_path / "q1.json")
    (card,) = previous_measurement(str(tmp_path / "q1.json"), now)
    assert "the query was q1 and is q5" in card.finding
