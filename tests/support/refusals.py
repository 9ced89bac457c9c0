"""Tables of what is refused, as tests."""

import pytest

from workbench.errors import WorkbenchError


def refusals(use, *rows, error=WorkbenchError, fixture=None):
    """Give a test that refuses each row: what it is given, and last a pattern that the message matches.

    What the `fixture` of this name gives comes before the row. No message may hold the password hunter2.
    """

    @pytest.mark.parametrize("row", rows, ids=[row[-1] for row in rows])
    def test(row, request):
        *given, message = row
        first = [] if fixture is None else [request.getfixturevalue(fixture)]
        with pytest.raises(error, match=message) as refusal:
            use(*first, *given)
        assert "hunter2" not in str(refusal.value)

    return test
