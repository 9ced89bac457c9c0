"""How time and memory grow with the work: one series per thing that grows, each size in a process of its own.

    python benchmarks/growth.py [SERIES ...] [--most SIZE] [--limit CPU_SECONDS] [--plot FILE.png]

Prints for every size the CPU seconds (other load on the machine does not count) and the peak of resident memory, and
for every series both exponents: the slope of ln seconds, and of ln memory that was added, over ln size by the last
three sizes. A size that takes longer than the limit, or more than 8 GB, ends its series. What was measured is kept in
``artifacts/growth.json``; ``--plot`` draws all that is there. The last series, ``keys``, needs Java and takes minutes.
"""

import argparse
import contextlib
import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

KEPT = ROOT / "artifacts" / "growth.json"
MOST_BYTES = 8 << 30
MB = 1 << 20
LAST = 3  # sizes that the exponents are taken from
LEAST_S, LEAST_MB = 0.02, 4.0  # below, the clock and the allocator decide
AIM = 1.2  # exponent of n log n over these sizes, and a little for scatter
DAY_S = 86_400
DEPLOYED = {"machine": {}, "budget": {"slots": 2, "profile": {"cpus": 1.0, "memory_mb": 512}, "interval_s": 2.0}}


@dataclass(frozen=True)
class Series:
    """Something that grows.

    Parameters
    ----------
    what
        What is done with how many of what.
    sizes
        Ascending.
    prepare
        Gets a size and a folder, and returns what is measured.
    """

    what: str
    sizes: tuple[int, ...]
    prepare: Callable[[int, Path], Callable[[], object]]


def a_probe():
    from example_measurement import example_measurement

    return example_measurement().estimate.probes[-1]


def write_journal(path, count, key):
    """Write `count` probes as `Journal.append` would, but at once; `key` names the measurement of each."""
    from workbench.journal import VERSION
    from workbench.records import unstructure

    data = json.dumps(unstructure(a_probe()), ensure_ascii=False)
    with path.open("w", encoding="utf-8") as file:
        file.write(f'{{"v": {VERSION}, "kind": "deployed", "key": "{key(0)}", "data": {json.dumps(DEPLOYED)}}}\n')
        for number in range(count):
            file.write(f'{{"v": {VERSION}, "kind": "probe", "key": "{key(number)}", "data": {data}}}\n')


def others(number):
    """Ten probes each."""
    return f"other/{number // 10:016x}"


def appended(count, folder):
    from workbench.journal import Journal
    from workbench.records import unstructure

    data, journal = unstructure(a_probe()), Journal(folder / "journal.jsonl")

    def run():
        for _ in range(count):
            journal.append("probe", "query/0", data)

    return run


def resumed(count, folder):
    from workbench.journal import Journal
    from workbench.measuring import replay

    write_journal(folder / "journal.jsonl", count, lambda _: "query/0")
    return lambda: replay(Journal(folder / "journal.jsonl"), "query/0").history


def opened(count, folder):
    from workbench.journal import Journal
    from workbench.study import run_study

    path = folder / "journal.jsonl"
    write_journal(path, count, others)
    return lambda: run_study(fluid_study((2e6,)), Journal(path))


def fluid_study(targets):
    from workbench.study import Study

    return Study(
        "nexmark:q11",
        tuple(targets),
        (4, 8, 12),
        (512, 1024),
        testbed="fluid",
        slot_cpus=1.0,
        interval_s=5.0,
        most_runs=7,
    )


def modelled(count, folder):  # noqa: ARG001 - like the others
    from example_measurement import example_measurement

    from workbench.capacity.explore import conclude
    from workbench.dataflow import Budget, SlotProfile

    dice, shape = random.Random(1), example_measurement()
    runs = []
    for number in range(count):
        slots, memory = 2 + number % 40, (512, 1024, 2048, 4096)[number // 40 % 4]
        rate = 25_000 * slots * dice.gauss(1.0, 0.03)
        estimate = replace(shape.estimate, rate=rate, low=0.995 * rate, high=1.005 * rate)
        runs.append(replace(shape, budget=Budget(slots, SlotProfile(1.0, memory), 2.0), estimate=estimate))
    return lambda: conclude(runs, "all were made", choice="edge")


def targeted(count, folder):
    from workbench.journal import Journal
    from workbench.study import read_planned, run_study, write_planned

    journal = Journal(folder / "journal.jsonl")
    run_study(fluid_study((2e6,)), journal)
    study = fluid_study(np.geomspace(1e5, 2e6, count).tolist())

    def run():
        write_planned(run_study(study, journal), folder / "plan.json")
        read_planned(folder / "plan.json")

    return run


def chain(count):
    """A source and `count` operators, one after the other, with a join of the last two at every tenth."""
    from workbench.dataflow import Dataflow, Edge, Operator

    names = ["source", *(f"operator {number}" for number in range(count))]
    edges = [Edge(one, other) for one, other in pairwise(names)]
    edges += [Edge(names[place - 2], names[place]) for place in range(10, len(names), 10)]
    kinds = ["source", *("map" for _ in range(count))]
    return Dataflow("chain", tuple(map(Operator, names, kinds)), tuple(edges))


def scaled(count, folder):  # noqa: ARG001
    from workbench.scaling import ds2

    flow = chain(count)
    counters = {operator.name: [(1000.0, 600.0, 0.5)] * 4 for operator in flow.operators if operator.kind != "source"}
    return lambda: [ds2(flow, counters, {"source": 1e4}) for _ in range(10)]


def allocated(count, folder):  # noqa: ARG001
    from workbench.capacity import bids2

    dice = random.Random(1)
    rates = {f"operator {number}": dice.uniform(1e3, 1e5) for number in range(count)}
    return lambda: [bids2(rates, dict.fromkeys(rates, 1.0), 10 * count) for _ in range(300)]


def drawn(count, folder):  # noqa: ARG001
    from workbench.views.figures import draw_dataflow_graph, observed_graph

    flow = chain(count)
    return lambda: draw_dataflow_graph(observed_graph(flow))


def simulated(count, folder):  # noqa: ARG001
    from workbench.dataflow import OperatorProfile
    from workbench.scaling import Static, replay
    from workbench.simulation import RateTrace

    flow = chain(count)
    profiles = {operator.name: OperatorProfile(1e-5, 0.0, 10.0, 0.9) for operator in flow.operators}
    tasks = {operator.name: 2 for operator in flow.operators}
    return lambda: replay(RateTrace.constant(1000.0, 3600.0), flow, Static(), tasks, profiles=profiles)


def to_place(tasks):
    """A chain of six operators with `tasks` tasks in all, on workers of eight slots, a tenth of them idle."""
    from workbench.placement import PlacementProblem

    shares = (0.1, 0.25, 0.2, 0.25, 0.15, 0.05)
    counts = [max(1, round(share * tasks)) for share in shares]
    workers = math.ceil(1.1 * sum(counts) / 8)
    edges = [(place, place + 1) for place in range(5)]
    return PlacementProblem(
        counts, edges, workers, 8, (0.2, 0.9, 0.5, 0.7, 0.3, 0.1), (0, 5, 0, 3, 1, 0), (5, 4, 9, 2, 1, 0)
    )


def placed(tasks, folder, *, method):  # noqa: ARG001
    from workbench.placement import PlacementInput, place
    from workbench.simulation import Worker

    place(PlacementInput({"chain": to_place(24)}, 1e5, Worker(4.0, 20.0, 40.0)), method)  # compiles
    given = PlacementInput({"chain": to_place(tasks)}, 1e5, Worker(4.0, 20.0, 40.0))
    return lambda: place(given, method)


def replayed(days, folder, *, policy):  # noqa: ARG001
    from workbench.scaling import Ds2Policy, Static, replay
    from workbench.simulation import RateTrace, preset

    query = preset("q11")
    trace = RateTrace.diurnal(1e5, 4e5, duration_s=days * DAY_S)
    tasks = dict.fromkeys(query.minimal_layout, 6)
    made = Static() if policy == "static" else Ds2Policy()
    return lambda: replay(trace, query, made, tasks).summary()


def observed(megabytes, folder):
    from workbench.observing import headroom, read_log

    path = folder / "log"
    write_log(path, megabytes * MB)

    def run():
        seen = read_log(path)
        headroom(seen.batches, seen.interval_s)

    return run


def write_log(path, size):
    """Repeat the real log until it has `size` bytes; each time the query starts again, an hour later."""
    import pyarrow as pa

    with pa.CompressedInputStream(pa.OSFile(str(ROOT / "data" / "q5-eventlog.zstd")), "zstd") as stream:
        lines = stream.read().splitlines(keepends=True)
    with path.open("wb") as file:
        for number in range(max(1, round(size / sum(map(len, lines))))):
            run_id = str(uuid.UUID(int=number))
            for line in lines:
                if b'"progress"' in line:
                    event = json.loads(line)
                    progress = event["progress"]
                    at = datetime.fromisoformat(progress["timestamp"]) + timedelta(hours=number)
                    progress |= {"runId": run_id, "timestamp": at.isoformat().replace("+00:00", "Z")}
                    file.write(json.dumps(event, separators=(",", ":")).encode() + b"\n")
                else:
                    file.write(line)


def counted(rows, folder):
    from pyspark.sql import SparkSession

    from workbench.workload import count_keys

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.local.dir", str(folder))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    data = spark.range(rows).selectExpr("pmod(hash(id), 1 + cast(pow(id % 1000, 2) AS int)) AS key")
    count_keys(spark, spark.range(1000).selectExpr("id AS key"), "key")  # warm
    return lambda: count_keys(spark, data, "key")


THOUSANDS = (1_000, 3_000, 10_000, 30_000, 100_000)
SERIES = {
    "append": Series("probes appended to a journal", THOUSANDS, appended),
    "resume": Series("probes of one measurement that is resumed", THOUSANDS, resumed),
    "journal": Series("probes in a journal from which a study is planned", THOUSANDS, opened),
    "model": Series("measurements in a model", (30, 100, 300, 1_000, 3_000, 10_000), modelled),
    "targets": Series("targets planned, written and read", (30, 100, 300, 1_000, 3_000, 10_000), targeted),
    "ds2": Series("operators scaled by DS2, ten times", (30, 100, 300, 1_000), scaled),
    "bids2": Series("operators that BIDS2 gives slots to, 300 times", (30, 100, 300, 1_000), allocated),
    "graph": Series("operators drawn", (30, 100, 300, 1_000), drawn),
    "simulate": Series("operators simulated for an hour", (30, 100, 300, 1_000, 3_000, 10_000), simulated),
    "least-cost": Series(
        "tasks placed at least cost", (100, 300, 1_000, 3_000, 10_000), partial(placed, method="least-cost")
    ),
    "optimal": Series(
        "tasks placed for the highest rate", (100, 300, 1_000, 3_000, 10_000), partial(placed, method="optimal")
    ),
    "top-down": Series(
        "tasks placed by group, top down", (100, 300, 1_000, 3_000, 10_000), partial(placed, method="top-down")
    ),
    "flink": Series(
        "tasks placed by Flink's default", (100, 300, 1_000, 3_000, 10_000), partial(placed, method="flink-default")
    ),
    "static": Series("days replayed", (3, 10, 30, 100, 365), partial(replayed, policy="static")),
    "replay": Series("days replayed with DS2", (3, 10, 30, 100, 365), partial(replayed, policy="ds2")),
    "log": Series("MB of event log observed", (20, 60, 200, 600, 2_000), observed),
    "keys": Series("rows whose keys are counted", (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000), counted),
}


def cpu_s():
    """CPU seconds of this process and of those it started."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = resource.getrusage(resource.RUSAGE_SELF)
    live = [one.cpu_times() for one in psutil.Process().children(recursive=True)]
    return sum(one.ru_utime + one.ru_stime for one in (ended, own)) + sum(one.user + one.system for one in live)


def peak_mb():
    """The most memory that was resident, of this process and of those it started and that are there."""
    pids = [os.getpid(), *(one.pid for one in psutil.Process().children(recursive=True))]
    kilobytes = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, IndexError):  # it has ended meanwhile, or nobody has asked how
            status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
            kilobytes += int(status.split("VmHWM:")[1].split()[0])
    return kilobytes / 1024


def child(name, size):
    """Prepare, do the work, and print what it took."""
    with tempfile.TemporaryDirectory() as folder:
        run = SERIES[name].prepare(size, Path(folder))
        # what preparing took at its peak is not part of the work's peak
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        held, begun = peak_mb(), cpu_s()
        run()
        taken, peak = cpu_s() - begun, peak_mb()
    print(json.dumps({"size": size, "cpu_s": taken, "peak_mb": peak, "added_mb": peak - held}))


def limited(limit_s):
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 5))


def grown(name, size, limit_s):
    """Seconds and memory of one size; a text that says why there are none."""
    command = [sys.executable, __file__, name, "--child", str(size)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=partial(limited, limit_s),  # noqa: PLW1509 - no thread runs here
    ) as process:
        watched = psutil.Process(process.pid)
        while True:
            try:
                output, errors = process.communicate(timeout=1)
                break
            except subprocess.TimeoutExpired:
                if resident(watched) > MOST_BYTES:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
                    return f"more than {MOST_BYTES >> 30} GB"
    if process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"more than {limit_s} s"
    if process.returncode:
        return (errors.strip().splitlines() or ["it failed"])[-1][:200]
    return json.loads(output.strip().splitlines()[-1])


def resident(process):
    try:
        return process.memory_info().rss
    except psutil.NoSuchProcess:
        return 0


def exponent(rows, what, least):
    """Slope of ln `what` over ln size by the last sizes at which it is not too small to be seen; nan if unknown."""
    pairs = [(math.log(row["size"]), math.log(row[what])) for row in rows[-LAST:] if row[what] >= least]
    if len(pairs) < 2:
        return math.nan
    x, y = np.array(pairs).T
    return float(np.polyfit(x, y, 1)[0])


def measure(name, most, limit_s):
    """One series, printed as it goes."""
    series, rows, ended = SERIES[name], [], ""
    print(f"{name}: {series.what}")
    print(f"{'size':>14}{'CPU seconds':>14}{'peak MB':>10}{'added MB':>10}", flush=True)
    for size in series.sizes:
        if size > most:
            break
        row = grown(name, size, limit_s)
        if isinstance(row, str):
            ended = f"{size:,}: {row}"
            print(f"{size:14,}  {row}", flush=True)
            break
        rows.append(row)
        print(f"{size:14,}{row['cpu_s']:14.2f}{row['peak_mb']:10.0f}{row['added_mb']:10.0f}", flush=True)
    slopes = exponent(rows, "cpu_s", LEAST_S), exponent(rows, "added_mb", LEAST_MB)
    verdict = "WORSE than n log n" if max(slopes) > AIM or ended else "n log n or better"
    print(f"  exponent of time {said(slopes[0])}, of memory {said(slopes[1])}: {verdict}\n", flush=True)
    return {"what": series.what, "rows": rows, "ended": ended, "time": slopes[0], "memory": slopes[1]}


def said(slope):
    return "too little to see" if math.isnan(slope) else f"{slope:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("series", nargs="*", metavar="SERIES", help=f"some of {', '.join(SERIES)}; all if left out")
    parser.add_argument("--most", type=int, default=10**12, metavar="SIZE", help="leave out larger sizes")
    parser.add_argument("--limit", type=int, default=120, metavar="CPU_SECONDS", help="of one size")
    parser.add_argument("--plot", metavar="FILE", help="draw all that was measured")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.series) - {*SERIES}
    if unknown:
        parser.error(f"no series {', '.join(sorted(unknown))}; use some of {', '.join(SERIES)}")
    if options.child is not None:
        return child(options.series[0], options.child)
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for name in options.series or ([] if options.plot else SERIES):
        kept[name] = measure(name, options.most, options.limit)
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    if options.plot:
        plot(kept, options.plot)
    return None


def plot(kept, path):
    """Seconds over size of every series, both as shares of the largest, in powers of ten."""
    import plotly.graph_objects as go
    from picture import save

    figure = go.Figure(layout={"template": "plotly_white", "width": 760, "height": 540})
    ends = np.array([1e-3, 1.0])
    for power, dash in ((1, "dot"), (2, "dash")):
        figure.add_scatter(
            x=ends, y=ends**power, name=f"exponent {power}", mode="lines", line={"color": "#999999", "dash": dash}
        )
    for name, series in kept.items():
        rows = [row for row in series["rows"] if row["cpu_s"] >= LEAST_S]
        if len(rows) > 1:
            x, y = (np.array([row[what] for row in rows]) for what in ("size", "cpu_s"))
            figure.add_scatter(x=x / x[-1], y=y / y[-1], name=f"{name}, to {x[-1]:,.0f}", mode="lines+markers")
    figure.update_layout(
        title="Time as the work grows",
        legend_font_size=10,
        xaxis_title="size / largest",
        yaxis_title="CPU seconds / most",
        font_size=12,
    )
    figure.update_xaxes(type="log", dtick=1)
    figure.update_yaxes(type="log", dtick=1, range=[-3, 0.2])
    save(figure, path)


if __name__ == "__main__":
    main()
