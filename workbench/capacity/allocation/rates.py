"""What BIDS2 distributes slots by: true rates and input ratios, seen on the minimal configuration."""

from workbench.capacity.allocation._bids2 import bids2
from workbench.errors import WorkbenchError
from workbench.metrics import Observation
from workbench.records import Allocation, Measurement, Run


def allocate(minimal: Run, slots: int) -> Allocation:
    """Distribute `slots` by BIDS2 with the true rates seen in the measurement `minimal`."""
    seen = minimal.estimate.observation if isinstance(minimal, Measurement) else None
    if seen is None or not seen.operators:
        raise WorkbenchError(
            f"The minimal configuration of {minimal.query!r} sustained no rate at {minimal.budget.profile.memory_mb:,} "
            "MB per slot, so its operators' true rates are unknown. Give a slot more memory_mb, or more slot_cpus."
        )
    return bids2(true_rates(seen), input_ratios(seen), slots)


def true_rates(observation: Observation) -> dict[str, float | None]:
    """Records/s one task of each operator processes when it is always busy; sources left out (section V)."""
    return {seen.operator: seen.true_processing_rate for seen in observation.operators if not seen.is_source}


def input_ratios(observation: Observation) -> dict[str, float]:
    """Input records of each operator per source record; sources left out (section V)."""
    consumed = observation.consumed_records
    return {
        seen.operator: seen.records_in / consumed if consumed else 0.0
        for seen in observation.operators
        if not seen.is_source
    }
