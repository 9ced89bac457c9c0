"""The rate that a query sustains, found from batches of a load that may never reach it."""

from dataclasses import replace

import pytest
from written_logs import TRUE, a_day, events, written

from workbench.capacity.model import fit_micro_batch
from workbench.errors import WorkbenchError
from workbench.observing import as_measurement, headroom, read_log


def test_the_rate_is_told_from_a_load_that_never_reaches_it_and_the_farther_it_is_the_wider_is_its_interval(tmp_path):
    widths = []
    for share in (0.3, 0.5, 0.7):
        found = headroom(read_log(written(tmp_path / "log", events(a_day(share * TRUE), seed=3))).batches, 2.0)
        assert found.rate == pytest.approx(TRUE, rel=0.05)
        assert found.low < TRUE < found.high
        assert found.peak_rate == pytest.approx(share * TRUE, rel=0.05)
        assert found.reach == pytest.approx(1 / share, rel=0.1)
        assert found.left == pytest.approx(1 / share - 1, rel=0.15)
        assert found.fixed_s == pytest.approx(0.22, abs=0.02)
        widths.append(found.high / found.low)
    assert widths == sorted(widths, reverse=True)


def test_batches_of_a_query_that_is_behind_are_maxima_that_were_seen(tmp_path):
    seen = read_log(written(tmp_path / "log", events(a_day(1.4 * TRUE))))
    found = headroom(seen.batches, 2.0)
    assert found.behind > 0.1
    assert found.reach <= 1
    assert found.rate == pytest.approx(TRUE, rel=0.03)


SCATTERED = [0.0005 * TRUE * (1 + place % 9) for place in range(200)]


@pytest.mark.parametrize(
    ("log", "why_not"),
    [
        (events([0.5 * TRUE] * 60), "the load hardly moved"),
        (events(a_day(0.5 * TRUE), driver_s=2.5), "longer than the trigger interval of 2 s, .*; set a longer interval"),
        (events(a_day(0.5 * TRUE, batches=15)), "it takes 20 batches, and the log has 10 on 4 slots"),
        (events(SCATTERED, driver_s=1.0, noise=0.5), "beyond their scatter|no line can be trusted"),
    ],
)
def test_what_shows_no_rate_says_why(tmp_path, log, why_not):
    seen = read_log(written(tmp_path / "log", log))
    found = headroom(seen.batches, 2.0)
    assert (found.rate, found.left) == (None, None)
    with pytest.raises(WorkbenchError, match=f"is not identifiable from its log: .*({why_not})"):
        as_measurement(seen, found)
    one = seen.batches[:1]
    assert headroom([replace(one[0], slots=1)], 2.0).why_not.endswith("the log has 1 on 1 slot")
    assert headroom([replace(one[0], slots=0)], 2.0).why_not.endswith("the log has 1")


def test_a_log_is_a_measurement_whose_batch_is_explained(half):
    seen = read_log(half)
    run = as_measurement(seen, headroom(seen.batches, 2.0))
    parts = fit_micro_batch([run])
    assert parts is not None
    assert parts.explains
    assert parts.rate(4, 4, 2.0) == pytest.approx(TRUE, rel=0.06)
    assert [stage.name for stage in parts.stages] == ["1 scan", "2 aggregate"]
    assert run.estimate.middle == pytest.approx(headroom(seen.batches, 2.0).rate)
    assert run.testbed_kind == "observed"
