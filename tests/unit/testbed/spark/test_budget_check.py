"""What a deployment is refused for, before anything starts."""

import math

import pytest
from refusals import refusals

from workbench import cli
from workbench.cli import measuring
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.testbed import SparkTestbed
from workbench.testbed.spark.driver.process import turn_of
from workbench.testbed.spark.driver.session import Turn, divide_memory
from workbench.testbed.spark.machine.quota import outer_limit


def test_memory_is_divided_between_state_and_heap():
    memory = divide_memory(Budget(4, SlotProfile(0.2, 512)))
    assert (memory.rocksdb_mb, memory.heap_mb) == (819, 1229)
    with pytest.raises(WorkbenchError, match=r"is \d+ MB; Spark needs 600 MB\. Give each slot at least 251 MB"):
        divide_memory(Budget(4, SlotProfile(0.2, 128)))
    divide_memory(Budget(4, SlotProfile(0.2, 251)))


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr("workbench.testbed.spark.testbed.usable_cores", lambda: 2)


test_what_the_machine_cannot_hold_is_refused_with_how_many_fit = refusals(
    lambda _, budget, slot_cpus="auto": SparkTestbed(slot_cpus=slot_cpus).check(budget),
    (Budget(10, SlotProfile(0.2, 512)), r"need 2 cores; of the 2 cores .* at most 1\.6 .* Use 8 slots or fewer"),
    (Budget(1, SlotProfile(4, 1024)), r"A slot of 4 cores is more than the 1\.6 cores"),
    (Budget(4, SlotProfile(0.2, 512), 0.01), r"interval is 0\.01 s; it must be at least 0\.1 s"),
    (Budget(4, SlotProfile(0.001, 512)), r"quota of 4 slots of 0\.001 cores is 0\.004 cores in total; it must be"),
    (Budget(2, SlotProfile(1.0, 512)), r"2 slots of 1 cores need 2 cores; .* Use 1 slot or fewer"),
    (Budget(1, SlotProfile(0.5, 1024)), "cores", r"0\.5 cores need a CPU quota; without one a slot is one whole"),
    fixture="two_cores",
)


def test_of_the_folders_above_a_deployments_own_those_go_with_it_that_it_makes(tmp_path, monkeypatch):
    for name, to in (("DriverProcess", lambda *_, above: above), ("_MEMORY_FOLDER", tmp_path / "none")):
        monkeypatch.setattr(f"workbench.testbed.spark.testbed.{name}", to)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place, budget = tmp_path / "checkpoints" / "fn", Budget(1, SlotProfile(1.0, 512))
    places = {"checkpoint": f"{place}/own", "sink": "s3a://lake/own"}
    assert SparkTestbed(slot_cpus="cores")._process(budget, places) == [place, place.parent]
    place.mkdir(parents=True)
    assert SparkTestbed(slot_cpus="cores")._process(budget, places) == []


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "100000 100000"}, 1.0),
        ({"cpu.max": "max 100000"}, math.inf),
        ({"cpu/cpu.cfs_quota_us": "150000", "cpu/cpu.cfs_period_us": "100000"}, 1.5),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, math.inf),
        ({}, math.inf),
        ({"a/cpu.max": "70000 100000", "a/b/cpu.max": "max 100000", "other/cpu.max": "1000 100000"}, 0.7),
        ({"cpu.max": "50000 100000", "a/b/cpu.max": "70000 100000"}, 0.5),
        ({"cpu/a/cpu.cfs_quota_us": "60000", "cpu/a/cpu.cfs_period_us": "100000"}, 0.6),
    ],
)
def test_a_limit_from_outside_is_seen(tmp_path, files, cores):
    version = "3:cpu,cpuacct:/a/b" if any(name.startswith("cpu/") for name in files) else "0::/a/b"
    (tmp_path / "own").write_text(f"4:memory:/other\n{version}\n")
    for name, text in ({"cpu/cgroup.procs": ""} | files if "cpu," in version else files).items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    limit = outer_limit(tmp_path, tmp_path / "own")
    assert limit.cores == cores


@pytest.mark.usefixtures("two_cores")
def test_without_quotas_the_defaults_of_the_command_line_fit(monkeypatch):
    SparkTestbed().check(Budget(8, SlotProfile(0.2, 512)))
    monkeypatch.setattr(measuring, "quota_permitted", lambda: False)
    monkeypatch.setattr(measuring, "usable_cores", lambda: 2.0)
    _, budget, testbed = measuring._asked(cli._parser().parse_args(["measure", "nexmark:q1"]))
    assert (budget.slots, budget.profile.cpus, testbed.slot_cpus) == (1, 1.0, "cores")
    testbed.check(budget)


def test_a_layout_sets_the_partitions_of_source_and_state():
    budget = Budget(2, SlotProfile(0.4, 1024))
    assert turn_of(budget, {}) == Turn(budget, 2, 2)
    assert turn_of(budget, {"source": 3, "state": 4}) == Turn(budget, 3, 4)
    for layout in ({"map": 2}, {"source": 0}, {"state": 1.5}):
        with pytest.raises(WorkbenchError, match=r"cannot be deployed on Spark: it may set 'source' and 'state'"):
            turn_of(budget, layout)


@pytest.mark.parametrize(("options", "slots"), [((), 3), (("--slots", "2"), 2)])
def test_a_measurement_of_a_study_takes_the_most_slots_that_this_machine_provides(
    tmp_path, monkeypatch, options, slots
):
    monkeypatch.setattr("workbench.testbed.spark.testbed.usable_cores", lambda: 1.2)
    study = tmp_path / "study.yaml"
    study.write_text("query: nexmark:q1\ntargets: [100]\nslots: [1, 3, 4]\nmemory_mb: [1024]\nslot_cpus: 0.25\n")
    _, budget, _ = measuring._asked(cli._parser().parse_args(["measure", str(study), *options]))
    assert budget.slots == slots
    with pytest.raises(WorkbenchError, match="Use 3 slots or fewer"):
        measuring._asked(cli._parser().parse_args(["measure", str(study), "--slots", "4"]))
