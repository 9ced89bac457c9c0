"""What a comparison with an earlier run says, on a page and where it ends a schedule."""

import math
from contextlib import nullcontext
from dataclasses import replace

import pytest
from example_measurement import example_measurement

from workbench.answers.drifted import CapacityFellError, cards, refuse_loss, since
from workbench.dataflow import Budget, SlotProfile
from workbench.speed import RelativeSpeed
from workbench.study import Change, Drift
from workbench.study._drift import Difference, Promise, Scatter


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
SLOWER = RelativeSpeed(0.5, 0.43, 0.57)


def test_a_loss_is_advice_and_says_how_large_it_is():
    (card,) = cards(FOUND)
    assert "fell by 20.0 % since 2026-01-05 04:30 UTC; chance " in card.finding
    assert "q5 &lt;b&gt;" in card.heading_html()
    assert [row[0] for row in card.table.rows] == [one.thing for one in (FELL, SAME, OPEN)]
    assert card.table.rows[2][4] is None
    assert [round(value, 2) for value in card.table.rows[0][4:7]] == [-20, 4.76, 5]


LOST = "Outside the noise: Capacity of 4 slots at least -75.0 %. "
GONE_OF_SEVERAL = {"overall": SAME, "changes": (SAME, GONE)}


@pytest.mark.parametrize(
    ("found", "says", "refusal"),
    [
        ({}, "The capacity of q5 <b> fell by 20.0 % since ", r"fell by 20.0 % .* up to 4.8 %\. Look at what else"),
        ({"overall": SAME, "changes": (SAME,), "costs": (RISEN,)}, "The capacity of q5 <b> did not change", None),
        (GONE_OF_SEVERAL, f"{LOST}The capacity of q5 <b> did not change", r"on one budget \(Capacity of 4 slots\) f"),
        ({"overall": NOTHING, "changes": (GONE,)}, f"{LOST}Whether", "fell by at least 75.0 %"),
        ({"overall": GONE, "changes": (GONE,)}, "The capacity of q5 <b> fell by at least 75.0 % since", "q5 <b> fell"),
        ({"overall": OPEN, "changes": (OPEN,)}, "Whether the capacity of q5 <b> changed", None),
        ({"cores": SLOWER}, "The capacity of q5 <b> fell", r"up to 4.8 %\. The cores were 0.50 times as fast .* Look"),
        ({"cores": RelativeSpeed(0.9, 0.78, 1.04)}, "The capacity of q5 <b> fell", r"up to 4.8 %\. Look"),
    ],
)
def test_a_loss_is_said_first_makes_the_card_advice_and_can_end_a_schedule(found, says, refusal):
    (card,) = cards(replace(FOUND, **found))
    assert card.kind == ("health" if refusal else "result")
    assert card.finding.startswith(says)
    with pytest.raises(CapacityFellError, match=refusal) if refusal else nullcontext():
        refuse_loss(replace(FOUND, **found))


def test_plans_that_no_longer_hold_and_circumstances_have_cards_of_their_own():
    budget = Budget(4, SlotProfile(1.0, 512))
    promises = (
        Promise(1000.0, 1.1, budget, 1200.0, 1100.0, 1300.0, 4),
        Promise(2000.0, 1.1, budget, 1200.0, 1100.0, 1300.0, 9000),
    )
    made = cards(replace(FOUND, promises=promises, differences=(Difference("Machine: cores", "2", "4"),)))
    assert [card.name for card in made] == ["drift", "promises", "circumstances-changed"]
    assert made[1].kind == "health"
    assert made[1].finding.startswith("1 of 2 plans of the previous run holds")


def test_a_previous_file_that_does_not_fit_says_why(tmp_path):
    now = example_measurement()
    assert since("", now) == []
    (card,) = since(str(tmp_path / "none.json"), now)
    assert card.kind == "not-yet"
    assert "cannot be read" in card.finding
    replace(now, query="q1").to_json(tmp_path / "q1.json")
    (card,) = since(str(tmp_path / "q1.json"), now)
    assert "the query was q1 and is q5" in card.finding
