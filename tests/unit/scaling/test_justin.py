from operator import call

import pytest
from refusals import refusals

from workbench.scaling import JustinVariant, MemoryState, StateMetrics, justin, justin_decisions

MS = 1e-3
FINE, PRESSED = StateMetrics(0.9, 0.3 * MS), StateMetrics(0.72, 0.3 * MS)


def explained(previous, proposed, *metrics, **options):
    """Decide for one operator, from its metrics now and before."""
    now, before = ({} if one is None else {"o": one} for one in (*metrics, None)[:2])
    return justin_decisions({"o": MemoryState(*previous)}, {"o": proposed}, now, before, **options)["o"]


def decide(*seen, **options):
    state = explained(*seen, **options).state
    return (state.tasks, state.level, state.scaled_up)


ROWS = {  # previous, p*, now, before, expected
    "stateless": [
        ((4, 0, False), 7, None, None, (7, None, False)),
        ((4, None, False), 4, None, None, (4, None, False)),
        ((4, 1, True), 7, None, PRESSED, (7, None, False)),
    ],
    "unchanged": [  # capacity suffices
        ((4, 1, False), 4, StateMetrics(0.1, 9 * MS), None, (4, 1, False)),
        ((4, 1, True), 4, FINE, PRESSED, (4, 1, False)),
    ],
    "grow again": [  # more memory helped
        ((4, 1, True), 7, StateMetrics(0.72, 0.9 * MS), StateMetrics(0.72, 1.1 * MS), (4, 2, True)),
        ((4, 1, True), 7, StateMetrics(0.73, 1.2 * MS), StateMetrics(0.72, 1.1 * MS), (4, 2, True)),
        ((4, 1, True), 7, StateMetrics(0.99, 0.1 * MS), StateMetrics(0.98, 0.1 * MS), (4, 2, True)),  # no pressure
    ],
    "top level": [  # it helped, but there is no level left
        ((4, 2, True), 7, StateMetrics(0.72, 0.9 * MS), StateMetrics(0.72, 1.1 * MS), (7, 2, False))
    ],
    "roll back": [  # it did not help
        ((4, 1, True), 7, StateMetrics(0.72, 1.1 * MS), StateMetrics(0.72, 1.1 * MS), (7, 0, False)),
        ((4, 2, True), 7, StateMetrics(0.60, 1.2 * MS), StateMetrics(0.72, 1.1 * MS), (7, 1, False)),
        ((4, 1, True), 7, StateMetrics(0.60, 1.2 * MS), None, (7, 0, False)),
    ],
    "scale up": [  # pressure
        ((4, 1, False), 7, PRESSED, None, (4, 2, True)),
        ((4, 0, False), 7, StateMetrics(0.99, 1.01 * MS), None, (4, 1, True)),
        ((9, 0, False), 3, StateMetrics(0.6, 0.3 * MS), None, (9, 1, True)),  # a scale-in becomes a scale-up
    ],
    "pressure at the top": [  # pressure, but no level left
        ((4, 2, False), 7, StateMetrics(0.1, 0.3 * MS), None, (7, 2, False))
    ],
    "scale out": [  # no pressure
        ((4, 1, False), 7, FINE, None, (7, 1, False)),
        ((4, 1, False), 7, StateMetrics(0.80, 1 * MS), None, (7, 1, False)),  # exactly at the thresholds
        ((4, 1, False), 7, StateMetrics(None, None), None, (7, 1, False)),  # no accesses
    ],
}


@pytest.mark.parametrize(
    ("case", "row", "expected"), [(case, row, expected) for case, rows in ROWS.items() for *row, expected in rows]
)
def test_decision_table(case, row, expected):
    assert decide(*row) == expected
    found = explained(*row)
    assert (found.case, bool(found.reason)) == (case, True)


def test_reported_path_of_q11_needs_two_levels():
    slow, faster = StateMetrics(0.5, 2 * MS), StateMetrics(0.9, 0.5 * MS)
    assert decide((1, 0, False), 3, slow) == (1, 1, True)
    assert decide((1, 1, True), 6, faster, slow) == (1, 2, True)  # three levels: 632 MB
    assert decide((1, 1, True), 6, faster, slow, max_level=2) == (6, 1, False)  # two: (6; 316), as printed


GUARD, GIVES, RELEASED = JustinVariant("exceeds"), JustinVariant(give_back_hit_rate=0.95), JustinVariant(once=True)
HYSTERESIS, SAME = JustinVariant(min_gain=0.05), StateMetrics(0.72, 1.1 * MS)


@pytest.mark.parametrize(
    ("row", "options", "expected"),
    [
        # an operator that turns stateful counts as level 0
        (((4, None, False), 7, FINE), {}, (7, 0, False)),
        (((4, None, False), 4, PRESSED), {}, (4, 0, False)),
        (((4, None, False), 7, PRESSED), {}, (4, 1, True)),
        # thresholds are parameters
        (((4, 0, False), 7, FINE), {"hit_rate": 0.95}, (4, 1, True)),
        (((4, 0, False), 7, FINE), {"latency_s": 0.2 * MS}, (4, 1, True)),
        # the guard of the comment
        (((9, 0, False), 3, PRESSED), {"variant": GUARD}, (3, 0, False)),
        (((9, 1, True), 3, FINE, PRESSED), {"variant": GUARD}, (3, 1, False)),
        (((4, 1, False), 7, PRESSED), {"variant": GUARD}, (4, 2, True)),
        # hysteresis
        (((4, 1, True), 7, StateMetrics(0.73, 1.1 * MS), SAME), {}, (4, 2, True)),
        (((4, 1, True), 7, StateMetrics(0.73, 1.1 * MS), SAME), {"variant": HYSTERESIS}, (7, 0, False)),
        (((4, 1, True), 7, StateMetrics(0.72, 1.0 * MS), SAME), {"variant": HYSTERESIS}, (4, 2, True)),
        # memory is given back, but not where accesses are slow
        (((9, 2, False), 3, StateMetrics(0.96, 0.1 * MS)), {"variant": GIVES}, (3, 1, False)),
        (((9, 2, False), 3, StateMetrics(0.94, 0.1 * MS)), {"variant": GIVES}, (3, 2, False)),
        (((9, 2, False), 12, StateMetrics(0.99, 0.1 * MS)), {"variant": GIVES}, (12, 2, False)),
        (((9, 0, False), 3, StateMetrics(0.99, 0.1 * MS)), {"variant": GIVES}, (3, 0, False)),
        (((9, 2, False), 3, StateMetrics(0.99, 1.1 * MS)), {"variant": GIVES}, (3, 2, False)),
        # the released operator scales out after a scale-up whether or not it helped; the next may come later
        *(
            ((state, tasks, now, PRESSED), {"variant": RELEASED}, (tasks, 1, False))
            for now in (StateMetrics(0.99, 0.1 * MS), StateMetrics(0.6, 1.2 * MS))
            for state, tasks in (((1, 1, True), 3), ((1, 1, True), 1))
        ),
        (((3, 1, False), 8, PRESSED), {"variant": RELEASED}, (3, 2, True)),
    ],
)
def test_variants(row, options, expected):
    assert decide(*row, **options) == expected


O0 = {"o": MemoryState(1, 0)}


test_bad_input_is_named = refusals(
    call,
    (lambda: justin(O0, {"o": 1, "p": 2}, {}, {}), "previous and proposal disagree on 'p'; give both"),
    (lambda: justin(O0, {"o": 1}, {"q": FINE}, {}), "`now` has state metrics of 'q', which `previous` lacks; .* o"),
    (lambda: justin({"o": MemoryState(1, 3)}, {"o": 1}, {"o": FINE}, {}), "memory level 3; .* allows 0 to 2"),
    (lambda: justin(O0, {"o": 0}, {}, {}), "proposed number of tasks of operator 'o' is 0; it must be a whole"),
    (lambda: StateMetrics(1.2, None), "hit rate of StateMetrics is 1.2; it must be a share from 0 to 1, or None"),
    (lambda: MemoryState(0, 0), "number of tasks of a MemoryState is 0; it must be a whole number of at least 1"),
    (lambda: JustinVariant(guard="equal"), "guard is 'equal'; use one of 'differs', 'exceeds'"),
)


SHRINKING, GIVING = (JustinVariant(guard, give_back_hit_rate=0.9) for guard in ("exceeds", "differs"))
ALL_HITS, FEW_HITS = StateMetrics(None, None), StateMetrics(0.1, 5e-4)  # without look-ups all are hits


@pytest.mark.parametrize(
    ("row", "variant", "case", "state"),
    [
        (((9, 1), 3, StateMetrics(0.3, 1e-5)), SHRINKING, "shrinks", (3, 1)),
        (((9, 1), 3, StateMetrics(0.95, 1e-5)), SHRINKING, "gives back", (3, 0)),
        (((4, 2, True), 3, ALL_HITS, FEW_HITS), GIVING, "gives back", (3, 1)),  # it helped, so it is no roll back
        (((4, 2, True), 3, FEW_HITS, ALL_HITS), GIVING, "roll back", (3, 1)),
    ],
)
def test_cases_of_the_variants(row, variant, case, state):
    found = explained(*row, variant=variant)
    assert (found.case, found.state) == (case, MemoryState(*state))
