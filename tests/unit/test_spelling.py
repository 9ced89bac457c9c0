"""Paths in advice can be copied, and name no folder above this one or home."""

import subprocess

import pytest

from workbench.spelling import short, spelled, spelled_options, spelled_report


@pytest.fixture
def here(tmp_path, monkeypatch):
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "jane"))
    return folder


def test_a_path_is_named_from_this_folder_or_home(here, tmp_path):
    assert spelled(here / "data" / "q5.yaml") == "data/q5.yaml"
    assert spelled(tmp_path / "jane" / "q 5.yaml") == "~/'q 5.yaml'"
    assert short(tmp_path / "jane" / "q 5.yaml") == short("~/q 5.yaml") == "~/q 5.yaml"
    assert spelled("../else/q5.yaml") == "../else/q5.yaml"
    assert spelled("/home/alice/acme/s.yaml") == "s.yaml"  # of a path elsewhere the name is left
    assert spelled("/tmp/x y/my study.yaml") == "'my study.yaml'"
    assert spelled("-lead.yaml") == "./-lead.yaml"  # it begins no option


def test_a_path_has_no_detours(here, tmp_path):
    (here / "a b").mkdir()
    assert spelled("a b/../slow.yaml") == "slow.yaml"
    (tmp_path / "far" / "deep").mkdir(parents=True)
    (here / "link").symlink_to(tmp_path / "far" / "deep")
    assert spelled("link/../slow.yaml") == "../far/slow.yaml"  # as the system reads it
    assert spelled("link/slow.yaml") == "link/slow.yaml"


def test_a_folder_that_is_reached_by_a_link_is_this_folder(here, tmp_path, monkeypatch):
    (tmp_path / "other").symlink_to(here)
    assert spelled(tmp_path / "other" / "q5.yaml") == "q5.yaml"
    monkeypatch.setenv("HOME", str(tmp_path / "lane"))
    (tmp_path / "jane").mkdir()
    (tmp_path / "lane").symlink_to(tmp_path / "jane")
    assert spelled(tmp_path / "jane" / "q5.yaml") == "~/q5.yaml"


def test_a_folder_that_was_deleted_is_no_obstacle_and_the_root_none_to_name_paths_from(here, monkeypatch):
    here.rmdir()
    assert spelled("s.yaml") == "s.yaml"
    assert spelled("/home/alice/s.yaml") == "s.yaml"
    monkeypatch.chdir("/")
    monkeypatch.setenv("HOME", "/")
    assert spelled("/home/alice/s.yaml") == "s.yaml"


def test_options_are_spelled_with_short_paths(here):
    given = {"query": "my q", "interval": 2.0, "prices": "/home/alice/p.csv", "journal": str(here / "m.jsonl")}
    assert spelled_options(given) == "--query 'my q' --interval 2 --prices p.csv --journal m.jsonl"
    assert spelled_options({"checkpoint": "/mnt/all/here"}) == "--checkpoint /mnt/all/here"  # the executors' path
    assert spelled_options({"query": "-q", "prices": "-p.csv"}) == "--query=-q --prices ./-p.csv"


def test_a_report_is_spelled_as_a_shell_and_the_report_read_it(here, tmp_path):
    given = {
        "rates": str(here / "a day.csv"),
        "policies": ["ds2", "my_module:it's"],
        "settings": {"scale_down_interval_s": 3600.0},
        "keys": ["count", str(tmp_path / "jane" / "keys.json"), 3],
        "plan_rate": 1e6,
        "calibrate": True,
    }
    command = spelled_report("scaling", given)
    assert "jane" not in command
    told = subprocess.run(
        ["/bin/sh", "-c", command.replace("workbench", "printf '%s\\n'", 1)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert told[:3] == ["report", "scaling", "scaling.html"]
    assert set(told[3::3]) == {"-p"}
    assert dict(zip(told[4::3], told[5::3], strict=True)) == {
        "rates": "a day.csv",
        "policies": "[ds2, 'my_module:it''s']",
        "settings": "{scale_down_interval_s: 3600.0}",
        "keys": "[count, keys.json, 3]",
        "plan_rate": "1000000",
        "calibrate": "true",
    }
