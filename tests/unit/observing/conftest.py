import pytest
from written_logs import TRUE, a_day, events, written


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """The log of a day whose peak is half of what the query sustains."""
    return written(tmp_path_factory.mktemp("logs") / "log", events(a_day(0.5 * TRUE)))
