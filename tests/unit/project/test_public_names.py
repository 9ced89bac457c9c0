"""Names that others rely on are there; those of the reference explain themselves."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[3] / "docs" / "reference.md"


def documented():
    """Names in the reference's last table, as (module, name)."""
    table = REFERENCE.read_text().split("## Public names", 1)[1]
    for row in re.findall(r"^\| `(workbench[\w.]*)` \| (.+) \|$", table, re.MULTILINE):
        package = row[0]
        for part in row[1].split(";"):
            module = re.match(r"\s*`([\w.]+)`: ", part)
            where, names = (module[1], part[module.end() :]) if module else (package, part)
            if not where.startswith("workbench"):
                where = f"{package}.{where}"
            yield from ((where, name) for name in re.findall(r"`(\w+)`", names))


NAMES = sorted(set(documented()))


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_name_of_the_reference_is_there_and_explains_itself(module, name):
    thing = getattr(importlib.import_module(module), name)
    text = thing.__doc__ or ""
    assert text or not (inspect.isclass(thing) or inspect.isfunction(thing))
    assert not text.startswith(f"{name}("), f"{name} has only a dataclass's generated docstring"


FIXED = {
    "workbench.dataflow": "Operator Edge Dataflow SlotProfile Budget OperatorProfile",
    "workbench.metrics": "OperatorMetrics Observation",
    "workbench.workload": "Query Dataset",
    "workbench.workload.nexmark": "events query",
    "workbench.testbed": "Testbed Run SparkTestbed FluidTestbed RecordedTestbed",
    "workbench.capacity": (
        "CapacityEstimator MstEstimate bids2 Allocation bids2_micro_batch BatchLayout ConfigurationOptimizer "
        "ResourceExplorer CapacityModel select_model review_readings CapacityPlan"
    ),
    "workbench.placement": (
        "PlacementProblem count_plans CostVector search SearchResult Plan tune_thresholds optimal OptimalPlan "
        "flink_default flink_evenly round_robin odrp Job top_down task_level naive best_allocation GroupAllocation"
    ),
    "workbench.scaling": (
        "ds2 Ds2Decision justin MemoryState StateMetrics erlang_c jackson_latency allocate_cores CoreAllocation "
        "assign_cores Assignment rebalance_shards ShardPlan replay Timeline"
    ),
    "workbench.simulation": "RateTrace",
}
"""Names that notebooks, reports and programs of others rely on."""


@pytest.mark.parametrize("module", FIXED)
def test_the_names_that_others_rely_on_stay(module):
    offered = vars(importlib.import_module(module))
    assert [name for name in FIXED[module].split() if name not in offered] == []
