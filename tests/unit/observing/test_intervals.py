"""How often the interval of what a log shows holds the truth, on a few logs of `benchmarks/observed_intervals.py`."""

import benchmark_script
import numpy as np
import pytest

from workbench.observing import SeenBatch, headroom


@pytest.fixture(scope="module")
def simulated():
    return benchmark_script.load("observed_intervals")


def inside(simulated, path, name, level, seeds):
    """Share of the logs whose interval holds the truth, and the median of high / low."""
    _, share, _, _, width, none = simulated.covered(path / "log", simulated.SHAPES[name], level, 120, range(seeds))
    assert none == 0
    return share, width


@pytest.mark.parametrize(("level", "widest"), [(0.3, 2.1), (0.7, 1.45)])
def test_the_interval_holds_what_a_query_with_pauses_sustains(simulated, tmp_path, level, widest):
    share, width = inside(simulated, tmp_path, "GC outliers", level, 4)
    assert share == 1
    assert width < widest


def test_the_interval_holds_what_a_query_with_a_neighbour_sustains(simulated, tmp_path):
    """What slows one batch slows the next ones, too, so a day's busiest batches are few readings."""
    share, width = inside(simulated, tmp_path, "neighbour", 0.7, 25)
    assert share >= 0.9
    assert width < 1.6


def test_weather_that_lasts_is_more_doubt_than_weather_that_changes():
    """The same deviations of batches, in turns of one batch or of fifteen."""
    rows = 20_000 + 15_000 * np.sin(np.arange(120) / 19)
    widths = []
    for turn in (1, 15):
        off = np.where(np.arange(120) // turn % 2, 1.1, 0.9)
        seconds = (0.3 + rows / 30_000) * off
        seen = [
            SeenBatch(2.0 * place, float(one), int(count), 4, 2.0, 1.0)
            for place, (count, one) in enumerate(zip(rows, seconds, strict=True))
        ]
        found = headroom(seen, 2.0)
        widths.append(found.high / found.low)
    assert widths[1] > 1.25 * widths[0]
