"""What this machine can measure: slots, a small budget, and the study for the first cell of a notebook."""

from dataclasses import replace
from typing import Any, Literal

from workbench.dataflow import Budget, SlotProfile
from workbench.defaults import MEMORY_MB, SLOT_CPUS, SLOTS, WARMUP_CAP_S
from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator
from workbench.simulation import preset
from workbench.study.spec import Study, study_from
from workbench.testbed import FluidTestbed, SparkTestbed, Testbed
from workbench.testbed.spark import SLOT_SHARE, quota_permitted, usable_cores

_WARMUP_S = 45.0
# Two deployments of one query differ by as much: a narrower bracket costs probes and adds little to the model.
_TOLERANCE = 0.1


def slot_cpus() -> float:
    """Cores of a slot: the default if this machine permits CPU quotas, else a whole core."""
    return SLOT_CPUS if quota_permitted() else 1.0


def slots_here() -> int:
    """Slots that this machine can serve."""
    cores = usable_cores()
    return int((cores * SLOT_SHARE / slot_cpus() if quota_permitted() else cores - 1) + 1e-9)


def small_budget() -> Budget:
    """Return one slot for what fits any machine, or the default number where quotas are permitted."""
    return Budget(SLOTS if quota_permitted() else 1, SlotProfile(slot_cpus(), MEMORY_MB))


def spark_here(*, quick: bool = False) -> SparkTestbed:
    """Spark on this machine; if `quick`, with a warm-up of ten seconds."""
    fractions: Literal["auto", "cores"] = "auto" if quota_permitted() else "cores"
    return SparkTestbed(slot_cpus=fractions, warmup_cap_s=10.0 if quick else WARMUP_CAP_S)


def quick_estimator() -> CapacityEstimator:
    """Return an estimator that brackets the maximum as well as three short probes can."""
    return CapacityEstimator(0.2, max_probes=3, warmup_min_s=5.0, warmup_cap_s=10.0, settle_s=2.0, window_s=6.0)


def first_study(
    query: str, dataset: str, event_time: str, targets: list[float], *, prices: str, simulated: bool
) -> Study:
    """Make the study of a first plan: three runs on the slots that this machine can serve."""
    data = {"dataset": dataset or None, "event_time": event_time or None, "prices": prices}
    asked = {"query": query, "targets": targets, "memory_mb": [MEMORY_MB], "choice": "edge", **data}
    return _study(asked, 3, simulated)


def loop_study(query: str, targets: list[float], memory_mb: list[int], minutes: float, *, simulated: bool) -> Study:
    """Make a study whose loop is worth watching: the corners of up to four slot counts, and two runs to choose."""
    asked = {"query": query, "targets": targets, "memory_mb": memory_mb, "minutes": minutes, "warmup_s": _WARMUP_S}
    return _study(asked, 6 if len(memory_mb) > 1 else 4, simulated, most_slots=4)


def _study(asked: dict[str, Any], most_runs: int, simulated: bool, most_slots: int = 3) -> Study:
    slots = [4, 6, 8, 12][:most_slots] if simulated else [*range(1, min(most_slots, slots_here()) + 1)]
    if len(slots) < 2:
        raise WorkbenchError(
            f"Of the {usable_cores():g} cores of this machine {len(slots)} can be a slot, and a plan takes runs on two "
            "sizes at least. Start the notebooks as root, so that a slot can be a fraction of a core; let a container "
            "write /sys/fs/cgroup; or use a machine of three cores. What one slot sustains is measured in "
            "01_measure.ipynb."
        )
    here: dict[str, Any] = {"testbed": "fluid", "slot_cpus": 1}
    if not simulated:
        here = {"testbed": "spark", "slot_cpus": slot_cpus(), "deployment": "shared"}
    how = {"tolerance": _TOLERANCE, "most_runs": most_runs}
    return study_from({**how, **asked, "slots": slots, **here}, "The first cell")


def first_testbed(study: Study) -> Testbed | None:
    """Return a simulated query under the name of the study's, or None: Spark, as the study says."""
    if study.testbed == "spark":
        return None
    model = preset("q11")
    named = replace(model.dataflow, name=study.query.removeprefix("nexmark:"))
    return FluidTestbed(models=[replace(model, dataflow=named)])
