"""What a replayed policy is charged with: its workers and the driver, which runs all the time."""

from workbench.records import DRIVER_CORES, DRIVER_MEMORY_MB
from workbench.scaling import Timeline


def paid(line: Timeline) -> dict[str, float]:
    """Give the summary of a replay, driver included; where workers have a price, the driver costs as much per core."""
    row = line.summary()
    hours = len(line.offered) * line.step_s / 3600
    driver = DRIVER_CORES * hours
    if "cost" in row and row["core_hours"]:
        row["cost"] += driver * row["cost"] / row["core_hours"]
    row["core_hours"] += driver
    row["gb_hours"] += DRIVER_MEMORY_MB / 1024 * hours
    return row
