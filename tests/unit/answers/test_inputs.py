"""A measurement of several inputs says what each of them had."""

from dataclasses import replace

from example_measurement import example_measurement

from workbench.answers import measured
from workbench.metrics import InputRows


def test_the_rate_backlog_and_selectivity_of_each_input_are_told():
    alone = example_measurement()
    seen = alone.estimate.observation
    rows = (
        InputRows("orders", round(0.75 * seen.consumed_records), 30.0, ("1 scan filter",), 0.92),
        InputRows("payments", round(0.25 * seen.consumed_records), 10.0),
    )
    both = replace(alone, estimate=replace(alone.estimate, observation=replace(seen, inputs=rows)))
    (said,) = set(measured.answer(both).details) - set(measured.answer(alone).details)
    assert said.startswith("The inputs have their parts of it: orders ")
    assert "payments" in said
    (card,) = [card for card in measured.cards(both) if card.name == "inputs"]
    assert [row[0] for row in card.table.rows] == ["orders", "payments"]
    assert [round(row[2]) for row in card.table.rows] == [75, 25]
    assert card.table.rows[0][3:] == (30.0, 0.92, "1 scan filter")
    assert "inputs" not in [card.name for card in measured.cards(alone)]
