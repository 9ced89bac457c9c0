"""The cards of a replay, beyond those of its figures."""

from workbench.simulation import RateTrace
from workbench.study import replay_restarts
from workbench.views.scaling_cards import restart_card


def test_a_longer_restart_keeps_up_less_and_static_does_not_mind():
    day = RateTrace.steps([(1200, 300_000), (3600, 1_000_000)])
    restarts = replay_restarts("q11", day, slots=12, policies=("static", "ds2"), restarts_s=(5.0, 300.0))
    card = restart_card(restarts)
    rows = {
        (row[0], row[1]): dict(zip([one.name for one in card.table.columns], row, strict=True))
        for row in card.table.rows
    }
    assert set(rows) == {(5.0, "static"), (5.0, "ds2"), (300.0, "static"), (300.0, "ds2")}
    assert rows[5.0, "ds2"]["Keeps up"] > rows[300.0, "ds2"]["Keeps up"]
    assert rows[5.0, "static"] | {"Restart": 0} == rows[300.0, "static"] | {"Restart": 0}
    assert rows[300.0, "ds2"]["Downtime"] >= rows[5.0, "ds2"]["Downtime"] + 295.0
    assert "ds2 keeps up" in card.finding
    assert "static" not in card.finding
