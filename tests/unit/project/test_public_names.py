"""Help where people look: every public name exists and explains itself, its parameters and its errors."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

from workbench import study

PACKAGES = (
    *("capacity", "measuring", "records", "placement", "report", "scaling", "scaling.elastic", "simulation", "testbed"),
    *("views.figures", "views.widgets", "workload.nexmark"),
)
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


def public():
    """Names that packages export apart from the reference's; of a package without exports, its modules' names."""
    for package in PACKAGES:
        module = importlib.import_module(f"workbench.{package}")
        imported = (name for name, thing in vars(module).items() if name[0] != "_" and not inspect.ismodule(thing))
        yield from ((module.__name__, name) for name in getattr(module, "__all__", imported))
    for found in pkgutil.iter_modules(study.__path__, "workbench.study."):
        for name, thing in vars(importlib.import_module(found.name)).items():
            if getattr(thing, "__module__", None) == found.name and not name.startswith("_"):
                yield found.name, name


def sections(thing):
    return re.findall(r"^(\w[\w ]+)\n-{3,}$", inspect.getdoc(thing) or "", re.MULTILINE)


@pytest.mark.parametrize(("module", "name"), sorted(set(public()) | set(NAMES)))
def test_a_name_is_there_and_functions_and_classes_explain_themselves(module, name):
    thing = getattr(importlib.import_module(module), name)
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return
    text = inspect.cleandoc(thing.__doc__ or "")  # its own: a class would inherit one
    first = text.splitlines()[0] if text else ""
    assert first.endswith((".", ":", ",")) or len(text.splitlines()) > 1, f"{name}: {first!r}"
    assert not text.startswith(f"{name}("), f"{name} has only a dataclass's generated docstring"
    given = sections(thing)
    order = ["Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "Notes", "References", "Examples"]
    known = [section for section in given if section in order]
    assert known == sorted(known, key=order.index), f"{name}: sections {given} are not in numpydoc's order"
    assert set(given) <= {*order, "See Also"}, f"{name}: {given}"


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
