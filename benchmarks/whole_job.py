"""A whole job as people run it: two topics, a stateful join, Delta and a kept checkpoint, against a bare query.

    python benchmarks/whole_job.py [--slots 1,2,4] [--large 8] [--slot-cpus 0.2] [--interval 10]
        [--checkpoint PLACE | --store-ms 10 --python SERVER/bin/python]

A script joins two topics and writes to a Delta table. A broker on this machine gets the topics, a sample of each is
captured, and the broker ends: ``workbench init`` records the script on the samples, so measuring needs no broker. The
job's checkpoint is in a folder, or on the store of ``stores.py``, which answers each request `--store-ms` late. The
study is planned on the few slots, and ``workbench measure`` finds the maximum rate on the large count. The same follows
with Spark's ``noop`` sink and the checkpoint in memory. Prints what was predicted from the few slots, what was
measured, the error, and what each part costs on the large count. It takes about 40 minutes; an interrupted one goes on
from its folder.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import yaml

from workbench import units
from workbench.capacity.explore import keeps_state
from workbench.capacity.model import model_of_form
from workbench.errors import WorkbenchError
from workbench.records import PlannedStudy, measurement_from_document

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parent))

from kafka_broker import running
from kafka_records import sent_to
from stores import STORE, served

FOLDER = Path(".workbench/benchmark/whole-job")
JOB = """
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

builder = SparkSession.builder.appName("paid").config("spark.databricks.delta.snapshotPartitions", "4")
builder = builder.config("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false")  # half the store's requests
spark = builder.getOrCreate()


def topic(name, columns):
    rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", sys.argv[1]).option("subscribe", name)
    return rows.load().select(f.from_json(f.col("value").cast("string"), columns).alias("row")).select("row.*")


orders = topic("orders", "order_id long, customer string, amount double, placed_at timestamp")
payments = topic("payments", "paid_order long, paid double, paid_at timestamp")
paid = orders.withWatermark("placed_at", "5 seconds").join(
    payments.withWatermark("paid_at", "5 seconds"),
    f.expr("order_id = paid_order AND paid_at BETWEEN placed_at AND placed_at + INTERVAL 5 SECONDS"),
)
writer = paid.writeStream.format("delta").option("path", "lake/paid").option("checkpointLocation", "checkpoints/paid")
writer.trigger(processingTime="10 seconds").start().awaitTermination()
"""
ORDERS, PAID, LAG_MS = 60_000, 0.8, 4_000
BARE = ("--sink", "noop", "--checkpoint", "memory")
PARTS = (  # name, field of what writing took, factor
    ("the sink, driver, ms a batch", "batch_s", 1e3),
    ("jobs on the table's log, ms a batch", "jobs_s", 1e3),
    ("the sink, ms a task", "task_s", 1e3),
    ("the sink, us a record", "record_s", 1e6),
    ("offsets and commits, driver, ms a batch", "log_s", 1e3),
    ("state's commit, ms a task", "state_s", 1e3),
    ("more each batch, ms", "growth_s", 1e3),
)


def rows(chance, begun_ms):
    """Orders, a millisecond of event time apart, and payments of most of them within four seconds; with their times."""
    for number in range(ORDERS):
        at = begun_ms + number
        yield at, "orders", {"order_id": number, "customer": f"c{chance.randrange(5_000)}", "placed_at": stamp(at)}
        if chance.random() < PAID:
            at += chance.randrange(LAG_MS)
            yield at, "payments", {"paid_order": number, "paid": chance.random(), "paid_at": stamp(at)}


def stamp(at_ms):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_ms // 1000)) + f".{at_ms % 1000:03d}Z"


def captured(folder):
    """Samples of the two topics, as ``workbench capture`` takes them of a broker."""
    names = ("orders", "payments")
    if not all((folder / f"{name}.parquet").exists() for name in names):
        with running(folder / "broker") as broker:
            records = {name: [] for name in names}
            begun_ms = int(1000 * time.time()) - ORDERS  # a broker deletes records of long ago
            for at, name, row in sorted(rows(random.Random(7), begun_ms), key=lambda one: one[0]):
                key, *_ = row.values()
                records[name].append((at, json.dumps(row).encode(), str(key).encode()))
            for name in names:
                sent_to(broker, name, records[name], partitions=2)
            for name in names:
                command(folder, "capture", broker.url(name), f"{name}.parquet")
    return [f"{name}={name}.parquet" for name in names]


def command(folder, *words, most=0):
    """Run a command of the workbench in `folder`; more than `most` as its exit code ends the benchmark."""
    print(f"workbench {' '.join(words)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "workbench.cli", *words], cwd=folder, check=False)
    if done.returncode > most:
        sys.exit(f"exit code {done.returncode}")


def study_of(name, samples, folder, options):
    """Write the study of a variant, as ``workbench init`` does, for the budgets of the benchmark; return its file."""
    study = f"{name}.yaml"
    places = BARE if name == "bare" else ("--checkpoint", options.checkpoint) if options.checkpoint else ()
    if not (folder / study).exists():
        command(folder, "init", "job.py broker:9092", *samples, *places, "--output", study)
    asked = yaml.safe_load((folder / study).read_text()) | {
        "targets": [1000],
        "slots": options.slots,
        "memory_mb": [options.memory_mb],
        "slot_cpus": options.slot_cpus,
        "interval_s": options.interval,
        "tolerance": 0.1,
        "minutes": options.minutes,
        "warmup_s": options.warmup,
    }
    if name != "bare" and options.store_ms is not None:
        asked |= {"checkpoint": STORE["checkpoint"], "packages": [*asked.get("packages", []), *STORE["packages"]]}
        asked["spark"] = asked.get("spark", {}) | STORE["spark"]
    (folder / study).write_text(yaml.safe_dump(asked, sort_keys=False))
    return study


def measured(name, study, folder, options):
    """The runs of the few slots and that of the large count."""
    plans, large = f"{name}.plans.json", f"{name}.large.json"
    if not (folder / plans).exists():
        command(folder, "plan", study, "--output", plans, most=1)  # which rate it plans for is of no account
    if not (folder / large).exists():
        minutes = str(options.minutes / 2)
        command(folder, "measure", study, "--slots", str(options.large), "--minutes", minutes, "--output", large)
    found = measurement_from_document(json.loads((folder / large).read_text()), large)
    return PlannedStudy.from_json(folder / plans).measurements, found


def predicted(runs, budget):
    """The rate on `budget` by the model that a plan fits to `runs`, with the ends of its 90 % interval."""
    shape = [(run.budget.profile.memory_mb, run.budget.slots) for run in runs]
    model = model_of_form("scaling", stateful=keeps_state(runs))
    model.fit(shape, [run.estimate.middle for run in runs], runs)
    there = [(budget.profile.memory_mb, budget.slots)]
    (middle,), ((low,), (high,)) = model.predict(there), model.interval(there)
    return middle, low, high


def compare(name, runs, large):
    few = ", ".join(f"{units.rate(run.estimate.middle)} on {run.budget.slots}" for run in runs)
    middle, low, high = predicted(runs, large.budget)
    found = large.estimate.middle
    print(
        f"{name}: {few}; on {large.budget.slots} predicted {units.rate(middle)} ({units.rate(low)} to "
        f"{units.rate(high)}), measured {units.rate(found)}: {middle / found - 1:+.1%}, "
        f"{'inside' if low <= found <= high else 'OUTSIDE'}"
    )


def costs(found):
    """What each part of a batch costs, by its name; None where it was not seen."""
    writes, source = found.estimate.observation.writes, found.source
    seen = {name: getattr(writes, field, None) for name, field, _ in PARTS}
    told = {name: None if seen[name] is None else factor * seen[name] for name, _, factor in PARTS}
    return told | {
        "the source, CPU ms a task": source and 1e3 * source.fixed_s,
        "the source, CPU us a record": source and 1e6 * source.per_record_s,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slots", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 4])
    parser.add_argument("--large", type=int, default=8)
    parser.add_argument("--slot-cpus", type=float, default=0.2)
    parser.add_argument("--memory-mb", type=int, default=1024)
    parser.add_argument("--interval", type=float, default=10.0)
    parser.add_argument("--minutes", type=float, default=14.0, help="most for a plan; half as many for the large count")
    parser.add_argument("--warmup", type=float, default=60.0)
    parser.add_argument("--checkpoint", help="where the job's is kept; default: a folder of the script")
    parser.add_argument("--store-ms", type=float, help="keep it on a store like S3 that answers so late")
    parser.add_argument("--python", default=sys.executable, help="with moto[server], for the store; default: this one")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="%(default)s")
    parser.add_argument("--dry-run", action="store_true", help="the studies, and what they would measure")
    parser.add_argument("variants", nargs="*", default=["whole", "bare"], help="whole, bare")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.py").write_text(JOB.lstrip())
    samples = captured(folder)
    os.environ["STORE_KEY"] = "any-key-will-do"
    found = {}
    with nullcontext() if options.store_ms is None else served(options.python, options.store_ms):
        for name in options.variants:
            study = study_of(name, samples, folder, options)
            if options.dry_run:
                command(folder, "plan", study, "--dry-run")
                continue
            runs, found[name] = measured(name, study, folder, options)
            compare(name, runs, found[name])
    parts = {name: costs(one) for name, one in found.items()}
    for part in next(iter(parts.values()), ()):
        shown = ("-" if own[part] is None else f"{own[part]:.2f}" for own in parts.values())
        print(f"{part:42}{''.join(f'{one:>12}' for one in shown)}")


if __name__ == "__main__":
    try:
        main()
    except WorkbenchError as error:
        sys.exit(str(error))
