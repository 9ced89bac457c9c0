"""How many examples a property is tried on: all of them in ``make test-all``, a quarter in ``make test``."""

import os

from hypothesis import settings

SHARE = 1.0 if os.environ.get("ALL_EXAMPLES") else 0.25


def examples(most):
    """Try a property on up to `most` examples."""
    return settings(max_examples=round(SHARE * most))
