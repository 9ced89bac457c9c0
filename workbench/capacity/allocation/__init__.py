"""How many tasks each operator gets: BIDS2 and the rates that go into it."""

from workbench.capacity.allocation._bids2 import bids2
from workbench.capacity.allocation.rates import allocate
from workbench.records import Allocation

__all__ = [
    "Allocation",
    "allocate",
    "bids2",
]
