"""How many tasks each operator gets: BIDS2 and the rates that go into it."""

from workbench.capacity.allocation._bids2 import Allocation, bids2
from workbench.capacity.allocation.rates import SOURCE, allocate, input_ratios, true_rates

__all__ = ["SOURCE", "Allocation", "allocate", "bids2", "input_ratios", "true_rates"]
