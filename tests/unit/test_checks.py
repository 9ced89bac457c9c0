import math
from fractions import Fraction

import numpy as np
import pytest
from capacity_runs import raises

from workbench import checks


@pytest.mark.parametrize("value", [2, 2.0, Fraction(2), np.float64(2), np.int64(2)])
def test_a_number_of_any_type_passes(value):
    assert checks.positive("cpus", value) == checks.not_negative("cpus", value) == checks.whole("slots", value) == 2
    assert isinstance(checks.whole("slots", value), int)


def test_the_ends_of_a_range_pass_if_their_bracket_is_square():
    assert checks.within("share", 0, 0, 1, ends="[)") == 0
    assert checks.within("share", 1, 0, 1, ends="(]") == 1
    assert checks.not_negative("io", 0) == 0
    assert checks.whole("seed", 0, least=0) == 0
    assert checks.whole("slots", 9, most=9) == 9


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: checks.positive("cpus", 0, "cores"), "cpus is 0; it must be a finite number above 0 (cores)."),
        (lambda: checks.whole("slots", 120_000, most=9), "slots is 120,000; it must be at most 9."),
        (lambda: checks.positive("cpus", value=True), "cpus is True; it must be a finite number above 0."),
        (lambda: checks.positive("cpus", 10**400), "cpus is 10,000,000,000"),
        (lambda: checks.not_negative("io", math.inf), "io is inf; it must be a finite number of at least 0."),
        (lambda: checks.not_negative("io", "1"), "io is '1'; it must be a finite number of at least 0."),
        (lambda: checks.whole("slots", "1,024"), "a whole number of at least 1. Write it without quotes and commas."),
        (lambda: checks.positive("rate", "2,000,000.5"), "number above 0. Write it without quotes and commas."),
        (lambda: checks.whole("slots", 1.5), "slots is 1.5; it must be a whole number of at least 1."),
        (lambda: checks.whole("slots", math.nan), "slots is nan; it must be a whole number of at least 1."),
        (lambda: checks.whole("slots", 10**5000, most=9), "slots is a number of thousands of digits; it must be at"),
        (lambda: checks.within("share", 1, 0, 1, ends="[)"), "share is 1; it must be at least 0 and below 1."),
        (lambda: checks.within("share", 0, 0, 1, ends="(]"), "share is 0; it must be above 0 and at most 1."),
        (lambda: checks.not_negatives("io of task {}", [0, -1]), "io of task 1 is -1; it must be a finite number of"),
        (lambda: checks.wholes("slots of worker {}", [1, -1]), "slots of worker 1 is -1; it must be a whole number of"),
        (lambda: checks.one_of("method", "fast", ("a", "b")), "method is 'fast'; use one of 'a', 'b'."),
        (lambda: checks.entries("tasks", "12"), "tasks is '12'; give a sequence of numbers, one for each."),
        (lambda: checks.same_length("task", 2, io=[1]), "io has 1 entries for 2 tasks; give one per task, in the same"),
    ],
)
def test_a_refusal_names_the_thing_the_value_and_what_is_allowed(check, message):
    with raises(message):
        check()
