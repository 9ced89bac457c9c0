import json
import re
import tomllib
from pathlib import Path

import advisories
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from workbench.testbed.spark.machine.java import FITTING

ROOT = Path(__file__).parents[3]
GIVEN = ("jupyterlab", "ipywidgets", "plotly", "pyspark", "scikit-optimize", "scikit-learn", "pulp", "papermill")


@pytest.fixture(scope="module")
def pins():
    pinned = advisories.pinned((ROOT / "requirements.txt").read_text())
    return {canonicalize_name(name): version for name, version in pinned}


def wanted():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return project["project"]["dependencies"] + project["dependency-groups"]["dev"]


@pytest.mark.parametrize("text", wanted())
def test_every_dependency_is_pinned_within_its_range(pins, text):
    requirement = Requirement(text)
    assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)])


def test_every_file_of_every_package_is_pinned_by_its_hash_and_the_given_packages_are_among_them(pins):
    assert set(GIVEN) <= set(pins)
    text = (ROOT / "requirements.txt").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(lines) == len(pins)
    for line in lines:
        hashes = re.findall(r"--hash=sha256:[0-9a-f]{64}(?= |$)", line)
        assert hashes, line
        assert line.count("--hash") == len(hashes), line
    (compiled,) = (line for line in lines if line.startswith("numpy=="))
    assert compiled.count("--hash") > 20  # the wheels of all platforms, not of one


def test_setup_installs_nothing_whose_hash_is_not_pinned():
    recipe = (ROOT / "Makefile").read_text()
    installs = [line for line in recipe.splitlines() if "pip install" in line]
    assert installs
    for line in installs:
        assert "--require-hashes --requirement requirements.txt" in line or "--no-deps --no-build-isolation" in line
    assert not re.search(r"https?:|--index|@", (ROOT / "requirements.txt").read_text())


def test_conda_users_get_the_same_versions():
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert {"pip": ["--requirement requirements.txt"]} in dependencies
    versions = dict(entry.split("=") for entry in dependencies if isinstance(entry, str) and "=" in entry)
    assert int(versions["openjdk"]) in FITTING
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert Requirement(f"python{project['requires-python']}").specifier.contains(versions["python"])


@pytest.mark.parametrize(
    ("first", "code", "said"), [({}, 0, "none for 1"), ({"vulns": [{"id": "GHSA-1"}]}, 1, ": GHSA-1\n")]
)
def test_every_package_is_asked_for_with_its_version_and_an_advisory_fails_the_check(capsys, first, code, said):
    def ask(question):
        queries = json.loads(question)["queries"]
        assert {"name": "numpy", "ecosystem": "PyPI"} in [one["package"] for one in queries]
        assert len(queries) > 150
        return json.dumps({"results": [first, *({} for _ in queries[1:])]}).encode()

    assert advisories.main(ask) == code
    assert said in capsys.readouterr().out


def test_without_the_list_it_says_so_and_passes(capsys):
    def ask(_):
        raise OSError("no network")

    assert advisories.main(ask) == 0
    assert "cannot be reached here (no network), so nothing was compared" in capsys.readouterr().out
