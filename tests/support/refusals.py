"""Tables of what is refused, as tests."""

import pytest

from workbench.errors import WorkbenchError


def refusals(use, *rows, error=WorkbenchError):
    """Give a test that refuses each row: what it is given, and last a pattern that the message matches."""

    @pytest.mark.parametrize("row", rows, ids=[row[-1] for row in rows])
    def test(row):
        *given, message = row
        with pytest.raises(error, match=message):
            use(*given)

    return test
