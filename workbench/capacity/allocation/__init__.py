"""How many tasks each operator, or partitions each stage, gets: BIDS2 and what goes into it."""

from workbench.capacity.allocation._bids2 import bids2
from workbench.capacity.allocation._bids2_micro_batch import LARGEST, at_rate, bids2_micro_batch
from workbench.capacity.allocation.rates import allocate, input_ratios, true_rates
from workbench.records import Allocation

__all__ = [
    "LARGEST",
    "Allocation",
    "allocate",
    "at_rate",
    "bids2",
    "bids2_micro_batch",
    "input_ratios",
    "true_rates",
]
