"""What is said of a replay, beyond what the goldens hold."""

from workbench.answers.replayed import over_restarts
from workbench.simulation import RateTrace
from workbench.study import replay_restarts


def test_a_longer_restart_keeps_up_less_and_static_does_not_mind():
    day = RateTrace.steps([(1200, 300_000), (3600, 1_000_000)])
    found = over_restarts(replay_restarts("q11", day, slots=12, policies=("static", "ds2"), restarts_s=(5.0, 300.0)))
    rows = {(row["restart_s"], name): row for row, name in zip(found.document(), ["static", "ds2"] * 2, strict=True)}
    assert rows[5.0, "ds2"]["at_target"] > rows[300.0, "ds2"]["at_target"]
    assert rows[5.0, "static"] | {"restart_s": 300.0} == rows[300.0, "static"]
    assert rows[300.0, "ds2"]["downtime_s"] >= rows[5.0, "ds2"]["downtime_s"] + 295.0
    assert found.headline.startswith("ds2 keeps up ")
    assert "static" not in found.headline
