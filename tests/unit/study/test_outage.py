"""How long a running query needs after an outage, against a queue of micro-batches in plain Python."""

import math
import re

import pytest
from queued_batches import queued

from workbench.checks import shown
from workbench.errors import WorkbenchError
from workbench.study import observe
from workbench.study.observed import _worked_off_s

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
