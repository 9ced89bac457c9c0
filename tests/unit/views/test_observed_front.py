"""The first screen of what a running query's log shows."""

from pathlib import Path

from workbench.study import observe
from workbench.views.observed_front import front_html

LOG = Path(__file__).parents[3] / "data" / "q5-eventlog.zstd"


def test_an_outage_has_a_column_only_where_one_is_asked_about():
    found = observe(LOG)
    assert "Catches up after 10 min down" in front_html(found, 600.0)
    bare = front_html(found, 0.0)
    assert "Catches up" not in bare
    assert bare.count("<th ") == bare.count("<td") == 5
