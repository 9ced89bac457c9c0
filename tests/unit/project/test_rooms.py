"""Rooms with doors: outside its package, a module is imported through the package's `__init__` only."""

import ast
import json
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = {".".join(path.parent.relative_to(ROOT).parts) for path in ROOT.glob("workbench/**/__init__.py")}

FOLDERS = {"workbench.testbed.spark.driver", "workbench.testbed.spark.log", "workbench.testbed.spark.machine"}
"""Packages that sort the modules of the room above them, and export nothing themselves."""

SHELVES = {
    "workbench": "the modules at the top are rooms themselves",
    "workbench.answers": "one module per topic; loading all of them would load Plotly for every command",
    "workbench.cli": "one module per group of commands; the program starts at `main`",
    "workbench.views": "one module per subject; loading all of them would load Plotly for every command",
}
"""Packages whose modules are doors: they export nothing themselves."""

SEPARATE = {
    "workbench.report.tour": "the steps of one notebook, with the widgets that reports do without",
    "workbench.workload.kafka": "topics, which most workloads have nothing to do with",
    "workbench.workload.recording": "runs scripts with PySpark, which the package must not import",
    "workbench.workload.source": "imports PySpark, which the package must not",
}
"""Modules that are doors next to their package's."""

LOOKED_INTO = {
    "workbench.measuring.fingerprint",
    "workbench.placement.methods",
    "workbench.study._drift",
    "workbench.study.local",
    "workbench.study.planned",
    "workbench.study.scenario",
    "workbench.testbed.spark.cluster",
    "workbench.testbed.spark.driver.cores",
    "workbench.testbed.spark.driver.feed",
    "workbench.testbed.spark.driver.live",
    "workbench.testbed.spark.driver.process",
    "workbench.testbed.spark.driver.queries",
    "workbench.testbed.spark.driver.session",
    "workbench.testbed.spark.log.event_log",
    "workbench.testbed.spark.machine.broker",
    "workbench.testbed.spark.machine.java",
    "workbench.testbed.spark.machine.quota",
    "workbench.testbed.spark.testbed",
    "workbench.views.widgets.panel",
    "workbench.workload.nexmark.inference",
    "workbench.workload.nexmark.queries",
}
"""Modules that tests of other rooms import too."""


@cache
def exports(package):
    """Names that a package offers, without importing it."""
    tree = ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text())
    lists = [node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"]
    if lists:
        return ast.literal_eval(lists[0])
    return [
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]


def modules_imported(source):
    """Modules of the workbench that a source text imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module in PACKAGES:
            inside = ROOT / node.module.replace(".", "/")
            names = {alias.name for alias in node.names} - set(exports(node.module))
            yield node.module
            yield from (f"{node.module}.{name}" for name in names if (inside / f"{name}.py").exists())
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


def past_a_door(source, rooms):
    """Modules imported past their package's door by code that is in `rooms`, packages."""
    for module in set(modules_imported(source)):
        package = module.rpartition(".")[0]
        if package in FOLDERS:
            package = package.rpartition(".")[0]
        inside = any(f"{room}.".startswith(f"{package}.") for room in rooms)
        door = module in PACKAGES | set(SEPARATE) or package in SHELVES
        if module.startswith("workbench.") and not door and not inside:
            yield module


def source_of(path):
    """Text of a module, or of a notebook's cells."""
    if path.suffix == ".py":
        return path.read_text()
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    return "\n".join("".join(cell["source"]) for cell in cells)


def paths(*patterns):
    return sorted(str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern))


@pytest.mark.parametrize("path", paths("workbench/**/*.py"))
def test_rooms_import_each_other_through_their_doors(path):
    room = ".".join(Path(path).parent.parts)
    assert not sorted(past_a_door(source_of(ROOT / path), {room}))


@pytest.mark.parametrize("path", paths("benchmarks/*.py", "notebooks/*.py", "notebooks/*.ipynb", "templates/*.ipynb"))
def test_what_stands_outside_uses_the_doors(path):
    assert not sorted(past_a_door(source_of(ROOT / path), set()))


@pytest.mark.parametrize("path", paths("tests/**/test_*.py"))
def test_only_the_tests_of_a_room_look_inside(path):
    """Tests mirror the package: ``tests/unit/placement`` may import the modules of ``workbench.placement``."""
    room = Path(path).parts[2]
    inside = {package for package in PACKAGES if package.split(".")[1:2] == [room]}
    assert not sorted(set(past_a_door(source_of(ROOT / path), inside)) - LOOKED_INTO)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import workbench.placement._tree", ["workbench.placement._tree"]),
        ("from workbench.placement import _tree", ["workbench.placement._tree"]),
        ("def f():\n    from workbench.scaling._ds2 import ds2", ["workbench.scaling._ds2"]),
        ("from workbench.placement import search\nfrom workbench.views import cards", []),
    ],
)
def test_an_import_past_a_door_is_found(source, found):
    assert list(past_a_door(source, {"workbench.study"})) == found
    assert list(past_a_door(source, {"workbench.placement", "workbench.scaling.elastic"})) == []
