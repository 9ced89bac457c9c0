"""What is read, by the name of its reader: valid inputs to begin with, and the command that reads them."""

import contextlib
import io
import json
import os
import shlex
import sys
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from workbench import cli
from workbench.errors import WorkbenchError
from workbench.report import _render, steps
from workbench.study import catalogue
from workbench.workload import Dataset
from workbench.workload import dataset as data_at_rest
from workbench.workload.query import EventClock

ROOT = Path(__file__).parents[2]
DATA, STORED = ROOT / "data", ROOT / "tests" / "stored"

STUDY = """query: nexmark:q1
targets: [200000, 1000000]
slots: [2, 4, 8]
memory_mb: [512, 1024]
testbed: fluid
most_runs: 4
"""
JOBS = '''"""Queries and a policy."""

import math

LIMIT = 4


def orders(rows):
    """Count."""
    return rows.groupBy("shop").count()


class Doubling:
    interval_s = 60.0

    def decide(self, window, memory):
        if max(window.busyness.values()) < 0.9:
            return None, memory
        return {name: min(LIMIT, 2 * tasks) for name, tasks in window.tasks.items()}, memory

    def begin(self, dataflow, decision, source_rates):
        return decision
'''
RESPONSE = """memory_mb,hit_rate,latency_s,true_rate
64,0.4,0.0001,20000
128,0.7,0.00005,30000
256,0.95,0.00001,50000
"""
KEYS = {
    "column": "shop",
    "records": 100,
    "missing": 2,
    "keys": ["a", "b", "c"],
    "counts": [50, 20, 10],
    "distinct": 8,
    "method": "exact",
    "count_error": 0,
    "distinct_deviation": 0.0,
    "partition_shares": {"4": [0.5, 0.2, 0.2, 0.1]},
}
PLACEMENT = {
    "workers": 2, "slots": 4, "rate": 14000, "worker": {"cpus": 2, "io": 2e8, "net": 1.25e8},
    "operators": {"a": {"tasks": 2, "cpu": 0.2, "net": 4e5}, "b": {"tasks": 3, "cpu": 0.5, "io": 2e7}},
    "edges": [["a", "b"]],
}  # fmt: skip
MORE = """prices: prices.csv
day: day.csv
keys: k.json
risk: 0.1
outage_s: 600
catch_up_s: 1200
low_rate: 1000
plan_memory_mb: [512, 1024]
seed: 0
tolerance: 0.05
"""
PARAMETERS = {
    "scaling": {
        "query": "q11", "rates": "day.csv", "slots": 12, "memory_mb": 2048.0, "policies": ["static", "ds2"],
        "settings": {"max_parallelism": 40}, "restart_s": 10.0, "workers": 4, "worker_slots": 4, "worker_cpus": 4.0,
        "hot_key": ["sessions", 0.2, 1], "seed": 1,
    },
    "placement": {
        "placement": "p.yaml", "more": [], "workers": 4, "slots": 8, "speeds": [], "rate": 14000.0, "cpus": 4.0,
        "io": 1e6, "net": 1e7, "calibrate": False, "thresholds": [1, 1, 1], "odrp": "default", "shapes": ["4x8"],
        "seed": 0, "samples": 5, "timeout_s": 1.0,
    },
    "capacity": {"study": "study.yaml", "history": "runs", "alarm": False},
    "plan": {"planned": "plan.json"},
    "measure": {"measurement": "m.json"},
    "observe": {
        "log": "log", "interval_s": 2.0, "slot_cpus": 0.4, "targets": [20000], "prices": "prices.csv", "risk": 0.1,
        "outage_min": 10.0,
    },
}  # fmt: skip
STUDIES = {
    "study.yaml": STUDY, "more.yaml": STUDY + MORE, "priced.yaml": f"{STUDY}prices: prices.csv\n",
    "table.yaml": STUDY.replace("fluid", "recorded").replace("nexmark:q1", "q1") + "table: t.csv\n",
}  # fmt: skip
READERS = {
    "journal": ("j.jsonl", ["plan study.yaml --journal j.jsonl --json"]),
    "measurement": (
        "m.json",
        ["MEASURE m.json", "place m.json --workers 2 --slots 4 --timeout 1 --json", "report m.json r.html"],
    ),
    "plan": (
        "plan.json spark.json",
        [
            "place {} --workers 8 --slots 8 --timeout 1 --json", "replay {} day.csv --json",
            "cluster {} --prices prices.csv --json", "report {} r.html",
        ],
    ),
    "recorded rates": ("t.csv", ["plan table.yaml --json"]),
    "replay's arguments": (
        "",
        [
            "replay q11 day.csv --slots 12 --memory-mb 1024 --policy static ds2 justin --managed-mb 100 --json",
            "replay q11 day.csv --slots 12 --hot-key sessions 0.2 1 --restart 20 --seed 3 --json",
            "replay q5 day.csv --slots 12 --shuffle-keys count 1.1 2 --setting max_parallelism=20",
            (
                "replay Q1-sliding day.csv --policy capsys ds2 --workers 4 --worker-slots 8 --worker-cpus 4 "
                "--worker-io-mb 100 --worker-net-mb 100 --json"
            ),
            "replay q11 day.csv --slots 12 --prices prices.csv --instance c6i.large --policy ds2 flink --json",
            "replay keyed short.csv --hot-key keyed 0.1 2 --workers 2 --worker-slots 4 --setting cpu_s=0.001 --json",
            "replay plan.json day.csv --plan-rate 100000 --response convert r.csv 2 --json",
            "replay q11 other.csv --slots 12 --time-column t --rate-column r --output o.csv",
        ],
    ),
    "user's module": (
        "fuzzed.py",
        [
            "replay q11 day.csv --slots 12 --policy fuzzed:Doubling --json",
            "init fuzzed.py:orders d.csv --output s.yaml", "QUERY fuzzed:orders d.csv",
        ],
    ),
    "data set": (
        "d.csv d.parquet d.json",
        ["SAMPLE {} time", "SAMPLE {}", "init fuzzed.py:orders {} --output s.yaml"],
    ),
    "prices": (
        "prices.csv",
        [
            "plan priced.yaml --journal j.jsonl --json",
            "replay q11 day.csv --slots 12 --instance c6i.large --prices prices.csv --json",
        ],
    ),
    "placement": (
        "p.yaml p.json",
        [
            "place {} --timeout 1 --json", "place {} --compare --draws 3 --timeout 0.2 --json",
            "place {} --shapes 4x8,8x4 --json",
        ],
    ),
    "placement's arguments": (
        "",
        [
            (
                "place p.json --workers 2 --slots 4 --speeds 1,1 --rate 14000 --cpus 2 --io 1e8 --net 1e8 "
                "--method caps --thresholds 1,1,1 --timeout 1 --seed 1 --json"
            ),
        ],
    ),
    "study": (
        "study.yaml more.yaml",
        ["plan {} --json", "plan {} --dry-run", "plan {} --journal j.jsonl --json"],
    ),
    "response": (
        "r.csv",
        ["replay q11 day.csv --slots 12 --policy static justin --response sessions r.csv 2 --json"],
    ),
    "rates": ("day.csv", ["replay q11 day.csv --slots 12 --json"]),
    "keys": ("k.json", ["replay q11 day.csv --slots 12 --keys sessions k.json 1 --json"]),
    "event log": (
        "log log.zstd",
        ["observe {} --json --interval 2 --target 20000 --output o.json", "OBSERVE {}"],
    ),
    "progress": ("p.jsonl", ["observe short.log --progress p.jsonl --interval 2 --json"]),
}  # fmt: skip
"""By reader: the files that are mutated, "" for the arguments, and the commands that read them, ``{}`` each of them."""


@dataclass(frozen=True)
class Case:
    """Arguments of a command, and the files that it finds; `changed` is the file that is mutated, "" the arguments."""

    arguments: tuple
    files: dict
    changed: str = ""
    fixed: int = 1


@dataclass(frozen=True)
class Reader:
    """A reader: valid cases, and what else is wrong with an answer."""

    name: str
    cases: tuple
    sense: object = field(default=lambda _: "")


class _ReachedError(BaseException):
    """The parameters of a report were accepted."""


def run(arguments):
    """Carry out a command, as a shell would; a first word in capitals is a step of a notebook.

    Only in a child: what takes long and is not reading, a kernel's start and the disk, is left out.
    """
    _render.execute = _stop
    os.fsync = lambda _: None
    step = _STEPS.get(arguments[0])
    try:
        if step is None:
            return cli.main(arguments)
        step(*arguments[1:])
    except WorkbenchError as error:
        print(error, file=sys.stderr)
        return 2
    except _ReachedError:
        pass
    return 0


def _stop(*_, **__):
    raise _ReachedError


def _sample(path, event_time=None):
    """Make a data set ready to be replayed, and read some of it."""
    data = Dataset.at(path)
    data_at_rest.check(data, event_time)
    made = data_at_rest.prepare(data, event_time, Path())
    clock = EventClock(1_700_000_000_000_000, 0, 1_000.0)
    print(json.dumps([made.rows, len(made.schema()), sum(batch.num_rows for batch in made.batches(0, 10, clock))]))


_STEPS = {
    "MEASURE": steps.show_measurement,
    "OBSERVE": lambda log, *progress: steps.show_observed(
        log, targets=[20_000], interval_s=2.0, **({"progress": progress[0]} if progress else {})
    ),
    "PLACE": lambda path: steps.show_placement(path, seed=0, samples=2, timeout_s=0.2),
    "SAMPLE": _sample,
    "QUERY": lambda name, path: catalogue.find_query(name, path, "time"),
}


def readers(folder):
    """Make all readers; what must be computed for their valid inputs is computed in `folder`."""
    for module in ("clusters", "drafting", "observing", "placing", "planning", "replaying", "reporting"):
        import_module(f"workbench.cli.{module}")  # here, not in each child
    files = _files() | {"j.jsonl": _journal(folder)}
    made = {}
    for name, (changed, commands) in READERS.items():
        cases = [
            Case(tuple(shlex.split(command.format(file))), _named(command.format(file), files), file)
            for file in changed.split() or [""]
            for command in commands
        ]
        made[name] = Reader(name, tuple(cases))
    given = [
        Case(
            ("report", name, "r.html", "-f", "given.yaml"),
            files | {"given.yaml": json.dumps(values).encode()},
            "given.yaml",
        )
        for name, values in PARAMETERS.items()
    ]
    typed = [
        Case(
            ("report", name, "r.html", *(word for one in values.items() for word in ("-p", *_typed(*one)))),
            files,
            "",
            3,
        )
        for name, values in PARAMETERS.items()
    ]
    made["report parameters"] = Reader("report parameters", (*given, *typed))
    return made


def compile_search(chosen):
    """Compile the placement search where it is used: once on a machine, which takes longer than an input may."""
    if any(case.arguments[0] == "place" for reader in chosen for case in reader.cases):
        with contextlib.redirect_stdout(io.StringIO()):
            cli.main(["place", str(DATA / "placement.yaml"), "--compare", "--draws", "1", "--timeout", "1", "--json"])


def _named(command, files):
    """Return those of `files` that a command may open: all, but for the large ones that it does not name."""
    return {name: content for name, content in files.items() if len(content) < 20_000 or name in command}


def _typed(name, value):
    return name, value if isinstance(value, str) else json.dumps(value)


def _journal(folder):
    (folder / "study.yaml").write_text(STUDY)
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        cli.main(["plan", "study.yaml", "--journal", "j.jsonl", "--json"])
    return (folder / "j.jsonl").read_bytes()


def _files():
    """Files that arguments name."""
    day = "\n".join((DATA / "day.csv").read_text().splitlines()[:13]) + "\n"
    lines = pa.CompressedInputStream(str(DATA / "q5-eventlog.zstd"), "zstd").read().decode().splitlines()
    kept = [line for line in lines if "SQLExecutionStart" not in line]  # plans of executions, which are long
    progress = [json.loads(line)["progress"] for line in lines if "QueryProgressEvent" in line]
    orders = "\n".join((DATA / "orders.csv").read_text().splitlines()[:20]) + "\n"
    rates = [f"{memory},{slots},{slots * 110_000}" for memory in (512, 1024) for slots in (2, 4, 8)]
    texts = {
        **STUDIES,
        "fuzzed.py": JOBS,
        "day.csv": day,
        "short.csv": "time_s,rate_per_s\n0,1000\n10,2000\n",
        "other.csv": day.replace("time_s,rate_per_s", "t,r"),
        "r.csv": RESPONSE,
        "k.json": json.dumps(KEYS),
        "t.csv": "\n".join(("memory_mb,slots,rate", *rates, "")),
        "p.json": json.dumps(PLACEMENT),
        "d.csv": orders,
        "log": "\n".join((*kept[:260], "")),
        "short.log": "\n".join((*(line for line in kept[:260] if "QueryProgress" not in line), "")),
        "p.jsonl": "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in progress[:30]),
    }
    return {name: text.encode() for name, text in texts.items()} | {
        "prices.csv": (DATA / "instances.csv").read_bytes(),
        "p.yaml": (DATA / "placement.yaml").read_bytes(),
        "plan.json": _plans("fluid"),
        "spark.json": _plans("spark"),
        "m.json": (STORED / "measurement.json").read_bytes(),
        "log.zstd": (DATA / "q5-eventlog.zstd").read_bytes(),
        **_data_sets(orders),
    }


def _plans(name):
    """Return stored plans, but for the last of two, of four million slots."""
    document = json.loads((STORED / f"plan-{name}.json").read_text())
    document["plans"] = document["plans"][:1]
    return json.dumps(document).encode()


def _data_sets(text):
    """Return the rows of a CSV text as Parquet and as JSON lines."""
    table = pa.csv.read_csv(pa.py_buffer(text.encode()))
    parquet = pa.BufferOutputStream()
    pa.parquet.write_table(table, parquet)
    rows = "".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist())
    return {"d.parquet": parquet.getvalue().to_pybytes(), "d.json": rows.encode()}
