"""A topic is filled, a sample of it captured, and a query planned from the sample, by the commands that a user types.

    python benchmarks/captured.py [--rows 2000000] [--sample 500000]

The broker runs on this machine and stops before the plan begins, which then has nothing but the captured sample. Prints
each command and what it answers, and compares the sample with the topic: rows, keys, and the share of the fullest key.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from kafka_broker import running

ROOT = Path(__file__).resolve().parents[1]

JOBS = '''"""Revenue and orders of each shop, per minute of event time."""

from pyspark.sql import functions as f


def revenue(orders):
    return (
        orders.withWatermark("_timestamp", "10 seconds")
        .groupBy(f.window("_timestamp", "1 minute"), "shop")
        .agg(f.sum(f.col("quantity") * f.col("price").cast("double")), f.count("*"))
    )
'''
STUDY = """query: jobs:revenue
dataset: orders.parquet
event_time: _timestamp
targets: [1000000, 3000000]   # records/s
slots: [1, 2]
memory_mb: [1024]          # per slot
slot_cpus: 0.4
interval_s: 2
warmup_s: 40
deployment: shared
patience_s: 20
"""


def workbench(*arguments):
    """Type a command, and let it answer here."""
    print(f"$ workbench {' '.join(arguments)}", flush=True)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-m", "workbench.cli", *arguments], env=environment, check=False)
    print(f"(exit code {done.returncode})\n", flush=True)
    if done.returncode not in (0, 3):
        sys.exit(done.returncode)


def shares(path):
    """Rows, shops, and the share of the fullest shop, in a file."""
    table = pq.read_table(path, columns=["shop"])
    counts = table.group_by("shop").aggregate([("shop", "count")])["shop_count"].to_pylist()
    return table.num_rows, len(counts), max(counts) / table.num_rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000, help="that fill the topic")
    parser.add_argument("--sample", type=int, default=500_000, help="rows captured of it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        Path("jobs.py").write_text(JOBS, encoding="utf-8")
        Path("study.yaml").write_text(STUDY, encoding="utf-8")
        with running(Path(name) / "broker") as broker:
            url = broker.url("orders")
            orders = str(ROOT / "data" / "orders.csv")
            workbench("fill", url, orders, "--rows", str(options.rows), "--key", "shop", "--event-rate", "20000")
            workbench("capture", url, "orders.parquet", "--rows", str(options.sample))
        rows, shops, fullest = shares("orders.parquet")
        print(f"captured: {rows:,} rows of {shops} shops, the fullest with {fullest:.1%} of them\n", flush=True)
        workbench("keys", "orders.parquet", "shop")
        workbench("plan", "study.yaml", "--output", "plan.json")


if __name__ == "__main__":
    main()
