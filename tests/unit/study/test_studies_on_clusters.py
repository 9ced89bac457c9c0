"""A study moves to a cluster and back by its master."""

import pytest
from cluster_examples import MASTER, SHARED, STANDALONE

from workbench import cli
from workbench.cli import planning
from workbench.defaults import SLOT_CPUS
from workbench.errors import WorkbenchError
from workbench.study import study_from

STUDY = {"query": "nexmark:q1", "targets": [1e6], "slots": [1, 2, 4], "memory_mb": [1024], "master": MASTER}


def test_a_study_moves_to_a_cluster_by_its_master():
    study = study_from(STUDY | {"checkpoint": SHARED, "executor_slots": 1})
    assert study.cluster == STANDALONE
    assert (study.slot_cpus, study.shared) == (1.0, False)
    assert study_from({key: value for key, value in STUDY.items() if key != "master"}).cluster is None


@pytest.mark.parametrize(("given", "cpus"), [("", SLOT_CPUS), ("slot_cpus: 1\n", 1.0)])
def test_a_study_of_a_cluster_moves_to_this_machine_by_its_master(given, cpus, tmp_path, monkeypatch):
    (tmp_path / "study.yaml").write_text(
        f"query: nexmark:q1\ntargets: [1000]\nslots: [1, 2]\nmemory_mb: [1024]\n{given}"
        f"master: {MASTER}\ncheckpoint: {SHARED}\nexecutor_slots: 2\nallocation_s: 60\n"
    )
    found = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(planning, "dry_run", lambda study, _: found.append(study))
    monkeypatch.setattr(planning, "_show_dry_run", lambda *_, **__: 0)
    assert cli.main(["plan", "study.yaml", "--dry-run", "--master", "local"]) == 0
    assert (found[0].master, found[0].cluster, found[0].slot_cpus) == ("local", None, cpus)
    assert cli.main(["plan", "study.yaml", "--dry-run", "--allocation-s", "90"]) == 0
    assert (found[1].cluster.allocation_s, found[1].slot_cpus) == (90, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "checkpoints need a folder"),
        ({"checkpoint": SHARED, "deployment": "shared"}, "on a cluster each budget is deployed apart"),
        ({"checkpoint": SHARED, "testbed": "fluid"}, "the fluid testbed starts no Spark"),
        ({"executor_slots": 2, "master": "local"}, "executor_slots is given, but the master is 'local'"),
        ({"checkpoint": SHARED, "executor_slots": 0}, "executor_slots is 0; it must be a whole number of at least 1"),
    ],
)
def test_a_study_that_no_cluster_can_carry_out_is_refused(change, message):
    with pytest.raises(WorkbenchError, match=message):
        study_from(STUDY | change)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--master", MASTER], "(--checkpoint)"),
        (["--checkpoint", SHARED], "is given without a cluster. Give the master"),
        (["--master", MASTER, "--checkpoint", SHARED, "--slot-cpus", "0.4"], "whole cores"),
        (["--master", MASTER, "--checkpoint", SHARED, "--slots", "3", "--executor-slots", "2"], "(--slots, --executor"),
    ],
)
def test_the_command_line_names_its_own_options(options, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["measure", "nexmark:q1", *options]) == 2
    assert message in capsys.readouterr().err
