"""The examples of CONTRIBUTING.md, executed: each adds one thing in under 30 lines."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
ADDED = dict(re.findall(r"^### (.+?)\n.*?^```python run\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL))


def test_it_shows_how_to_add_what_people_add():
    assert set(ADDED) == {"A query", "A testbed", "A scaling policy", "A placement method", "A figure"}


@pytest.mark.parametrize("thing", ADDED)
def test_an_example_runs_and_is_short(thing, monkeypatch):
    lines = [line for line in ADDED[thing].splitlines() if line and not line.startswith(("from ", "import "))]
    assert len(lines) < 30
    monkeypatch.chdir(ROOT)
    exec(compile(ADDED[thing], thing, "exec"), {"__name__": "example"})  # noqa: S102 - our own


@pytest.mark.parametrize("path", re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", GUIDE))
def test_every_path_it_names_exists(path):
    assert any((folder / path).exists() for folder in (ROOT, ROOT / "workbench", ROOT / "workbench" / "capacity")), path
