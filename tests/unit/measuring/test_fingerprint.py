"""What a measurement is named by: it changes with the code and the data, and with nothing else."""

import functools
import importlib
import inspect
import os
import subprocess
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator, Configuration, fingerprint, measurement_key
from workbench.records import Machine
from workbench.study import find_query, read_query
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import testbed as spark_testbed
from workbench.workload import Dataset, nexmark

BUDGET = Budget(1, SlotProfile(1.0, 1024))
QUERY = nexmark.query("q1")


def typed(window):
    """A query whose function was typed into a shell: there is no file with its text."""
    shell = {"__name__": "typed"}
    exec(f"def build(rows):\n    return [rows.within(row, '{window}') for row in rows]\n", shell)  # noqa: S102
    return replace(QUERY, build=shell["build"])


def key(query):
    return measurement_key(Configuration(query, BUDGET), SimpleNamespace(identity="fake"), CapacityEstimator())


def test_a_changed_constant_in_typed_code_and_another_protocol_are_another_measurement(monkeypatch):
    assert key(typed("10 seconds")) == key(typed("10 seconds"))
    assert key(typed("10 seconds")) != key(typed("5 minutes"))
    before = key(QUERY)
    monkeypatch.setattr("workbench.measuring._measure.PROTOCOL", 0)
    assert key(QUERY) != before


def test_another_event_time_or_format_is_another_measurement_and_missing_data_is_told(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("t1,t2\n")

    def reading(event_time, kind="csv"):
        return key(replace(QUERY, dataset=Dataset(str(path), kind, event_time), event_time=event_time))

    assert reading("t1") == reading("t1")
    assert len({reading("t1"), reading("t2"), reading(None), reading("t1", "json")}) == 4
    with pytest.raises(WorkbenchError, match=r"gone\.csv' does not exist; check the path"):
        key(replace(QUERY, dataset=Dataset(str(tmp_path / "gone.csv"), "csv")))


FILES = {
    "myjobs.py": "import myhelpers\nfrom mypackage import windows\nimport json\n\ndef orders(_):\n    import mylate\n",
    "myhelpers.py": "from mysettings import WIDTH\n",
    "mysettings.py": "WIDTH = 10\n",
    "mylate.py": "import myjobs\n",
    "mypackage/__init__.py": "",
    "mypackage/windows.py": "from . import spans\nfrom .deep.one import x\n",
    "mypackage/spans.py": "",
    "mypackage/deep/one.py": "x = 1\n",
    "unrelated.py": "",
    "mymakers.py": """
import functools

class Build:
    def __init__(self, held):
        self.held = held

    def __call__(self, rows):
        return rows.where(self.held)

    def again(self, rows):
        return self(rows)

def made(held):
    def build(rows):
        return rows.where(held)
    return build

def by_default(held):
    def build(rows, held=held, *, more=held):
        return rows.where(held)
    return build

def bound(held):
    return functools.partial(Build.__call__, held)

def method(held):
    return Build(held).again

def plain(rows, held=1):
    return rows

""",
}


IMPORTED = {name: text for name, text in FILES.items() if name not in {"unrelated.py", "mymakers.py"}}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in FILES:  # another test may have left one of that name
        sys.modules.pop(name.removesuffix(".py").split("/")[0], None)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("my")]:
        del sys.modules[name]


def own(build=None):
    importlib.invalidate_caches()
    return key(replace(QUERY, build=build or importlib.import_module("myjobs").orders))


@pytest.mark.parametrize(
    ("name", "text", "same"),
    [
        *((name, text + "edited = True\n", False) for name, text in IMPORTED.items()),
        ("mylate.py", "def (", False),  # half edited
        ("unrelated.py", "edited = True\n", True),
        ("mymakers.py", "edited = True\n", True),
    ],
)
def test_an_edited_module_is_another_measurement_where_the_query_imports_it(folder, name, text, same):
    def keys():
        build = importlib.import_module("myjobs").orders
        return own(build), own(functools.partial(build, 1))

    before = keys()
    assert keys() == before
    (folder / name).write_text(text)
    assert [one == other for one, other in zip(keys(), before, strict=True)] == [same, same]


@pytest.mark.usefixtures("folder")
def test_what_a_partial_binds_and_calls_is_part_of_the_query():
    build = importlib.import_module("myjobs").orders
    ten, five = functools.partial(build, width=10), functools.partial(build, width=5)
    assert own(ten) == own(functools.partial(build, width=10))
    assert len({own(), own(ten), own(five), own(functools.partial(ten, 1)), own(functools.partial(print))}) == 5


def test_a_bound_function_is_told_by_its_code_and_not_by_where_it_lies():
    def build(orders, helper):
        return helper(orders)

    def shell(text):
        names = {"__name__": "typed"}
        exec(f"def helper(rows):\n    return rows.where('{text}')\n", names)  # noqa: S102
        return names["helper"]

    def keyed(helper):
        return key(replace(QUERY, build=functools.partial(build, helper=helper)))

    assert keyed(shell("a")) == keyed(shell("a"))
    assert keyed(functools.partial(shell("a"), 1)) == keyed(functools.partial(shell("a"), 1))
    assert len({keyed(shell("a")), keyed(shell("b")), keyed(functools.partial(shell("a"), 1))}) == 3

    def above(least, step=1):
        def keep(rows, most=step):
            return [row for row in rows if least < row < most and keep]

        return keep

    assert keyed(above(10)) == keyed(above(10))
    assert len({keyed(above(10)), keyed(above(1000)), keyed(above(10, 2))}) == 3


def one_changed(where, to):
    array = np.zeros(5000)
    array[where] = to
    return array


HELD = {
    "a number": lambda: 5,
    "another number": lambda: 5000,
    "an array": lambda: one_changed(2500, 0.0),
    "an array that differs in its middle": lambda: one_changed(2500, 9.0),
    "an array of another shape": lambda: np.zeros((50, 100)),
    "an array of another type": lambda: np.zeros(5000, dtype="int64"),
    "a table": lambda: pd.DataFrame({"key": np.arange(5000)}),
    "a table that differs in its middle": lambda: pd.DataFrame({"key": np.arange(5000) + (np.arange(5000) == 2500)}),
    "a table with another column": lambda: pd.DataFrame({"keys": np.arange(5000)}),
    "a dictionary": lambda: {"a": one_changed(2500, 0.0)},
    "a set": lambda: {"a", "b"},
    "an object": lambda: CapacityEstimator(tolerance=0.02),
    "an object that differs": lambda: CapacityEstimator(tolerance=0.03),
    "a module": lambda: functools,
    "a class": lambda: Dataset,
    "a lock, of which there are no copies": threading.Lock,
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("how", ["made", "by_default", "bound", "Build", "method"])
def test_what_the_function_of_a_query_holds_is_part_of_it(how):
    make = getattr(importlib.import_module("mymakers"), how)
    keys = {name: own(make(held())) for name, held in HELD.items()}
    assert keys == {name: own(make(held())) for name, held in HELD.items()}
    assert len(set(keys.values())) == len(HELD)


def test_what_typed_code_holds_is_part_of_it_also_objects_that_hold_each_other():
    def typed(least):
        shell = {"__name__": "typed", "LEAST": least}
        function = "def build(rows, least=LEAST): return rows\n"
        called = "class Build:\n def __init__(self): self.least = LEAST\n def __call__(self, rows): return rows\n"
        exec(function + called, shell)  # noqa: S102
        return [own(shell["build"]), own(shell["Build"]())]

    assert typed(1) == typed(1)
    assert len({*typed(1), *typed(2)}) == 4

    class Part:
        def __init__(self):
            self.others = []

        def __call__(self, rows):
            return rows

    def among(parts):
        made = [Part() for _ in range(parts)]
        for one in made:
            one.others = made
        return own(made[0])

    assert among(30) == among(30) != among(31)


def test_a_function_that_its_modules_text_tells_whole_is_named_by_that_text(folder):
    makers = importlib.import_module("mymakers")
    text = (folder / "mymakers.py").read_bytes()
    for build in (makers.plain, makers.made):
        assert fingerprint.code_of(replace(QUERY, build=build)) == fingerprint._digest(text)


def test_a_set_in_typed_code_has_one_text_in_all_processes():
    shown = "print(_compiled(compile(\"x in {'a', 'b', 'c', 'd', 'e'}\", '', 'eval')))"
    text = f"from types import CodeType\n{inspect.getsource(fingerprint._compiled)}\n{shown}"  # loads no library
    told = {
        subprocess.run(
            [sys.executable, "-c", text], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1
    assert told != {b""}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with the rooms that observe, one module in each."""
    monkeypatch.setattr(fingerprint, "_HOME", tmp_path)
    for room in fingerprint._OBSERVING:
        (tmp_path / room).mkdir()
        (tmp_path / room / "observe.py").write_text('"""Observe."""\n\nRATE = 1  # records/s\n')
    yield tmp_path
    fingerprint.observing_code.cache_clear()


def observed():
    fingerprint.observing_code.cache_clear()
    return fingerprint.observing_code()


SAME = ('"""See more."""\n\nRATE = 1\n', "RATE = 1\n\n\n", "# Why.\nRATE = (1)\n")  # prose and layout apart


@pytest.mark.parametrize(
    ("room", "text", "same"),
    [
        *((room, '"""Observe."""\n\nRATE = 2  # records/s\n', False) for room in ("testbed", "workload", "simulation")),
        *(("testbed", text, True) for text in SAME),
    ],
)
def test_other_code_that_observes_is_another_measurement_but_not_other_prose(home, room, text, same):
    before = observed()
    (home / room / "observe.py").write_text(text)
    assert (observed() == before) == same


def test_every_room_that_observes_is_there():
    assert all((fingerprint._HOME / room).is_dir() for room in fingerprint._OBSERVING)


def test_measurements_of_two_machines_are_not_mixed(monkeypatch):
    machines = [Machine(processor="A", cores=2), Machine(processor="A", cores=4), Machine(processor="B", cores=2)]
    named = []
    for machine in machines:
        monkeypatch.setattr(spark_testbed, "describe", lambda machine=machine: machine)
        named.append(SparkTestbed().identity)
    assert len(set(named)) == 3
    assert named[0].endswith("A with 2 cores")


def test_a_query_that_is_read_has_the_digest_of_the_one_that_is_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "orders.csv").write_text("time,shop\n2026-01-01T00:00:00,a\n")
    (tmp_path / "ownjobs").mkdir()
    for name in ("__init__", "parts", "jobs"):
        text = "from ownjobs import parts\n\n\ndef orders(rows):\n    return rows\n"
        (tmp_path / "ownjobs" / f"{name}.py").write_text(text if name != "parts" else "")
    for name in ("ownjobs.jobs:orders", "ownjobs:orders"):
        read, imported = read_query(name, "orders.csv"), find_query(name, "orders.csv")
        assert fingerprint.code_of(read) == fingerprint.code_of(imported)
        assert replace(read, build=imported.build) == imported
