"""Runs for the tests of the capacity model: budgets, and what a query of a known kind sustains on them."""

import re

import numpy as np
import pytest

from workbench.capacity.model.forms import TRANSFORMS
from workbench.errors import WorkbenchError

BUDGETS = np.array([(m, n) for m in (512.0, 1024.0, 4096.0) for n in (4.0, 9.0, 16.0, 30.0)])


def rates_of(form, a, b, c, points=BUDGETS):
    g = TRANSFORMS[form]
    return a * g(points[:, 0]) + b * g(points[:, 1]) + c


def proportional(points, per_slot=50_000.0, overhead=1.0):
    return per_slot * (points[:, 1] - overhead)


def raises(message):
    return pytest.raises(WorkbenchError, match=re.escape(message))
