"""What a checkpoint costs in memory, in a folder, and on a store like S3 that takes its time to answer.

    python benchmarks/stores.py --python SERVER/bin/python [--rate 20000] [--observed 40] [memory folder 0 30 200]

Nexmark q5, which keeps state, runs on two slots at one rate. A number N is an S3 store on loopback that answers each
request N milliseconds later: moto's server, in the environment of `--python` (``pip install moto[server]``),
reached as ``s3a://``, with Hadoop's connector from Maven Central. Prints for each place the driver's seconds of a batch
for offsets and commits, the seconds in which a partition commits its state, the seconds of a batch, and the requests
of a batch.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from http.client import HTTPConnection

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.records import JobSettings
from workbench.study import find_query
from workbench.testbed import SparkTestbed

BUDGET = Budget(2, SlotProfile(0.4, 1024), 5.0)
PORT, STARTS_S = 5151, 60.0
SERVER = """
import sys, time
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple


class Once(WSGIRequestHandler):
    def handle_expect_100(self):
        return True  # else it goes on twice, and Amazon's asynchronous client waits forever

store, asked, late_s = DomainDispatcherApplication(create_backend_app), [0], float(sys.argv[2]) / 1000

def serve(environment, start):
    if environment["PATH_INFO"] == "/asked":
        start("200 OK", [])
        return [str(asked[0]).encode()]
    asked[0] += 1
    time.sleep(late_s)
    return store(environment, start)

run_simple("127.0.0.1", int(sys.argv[1]), serve, threaded=True, request_handler=Once)
"""
STORE = {
    "checkpoint": "s3a://bucket/checkpoints",
    "packages": ("org.apache.hadoop:hadoop-aws:3.5.0",),
    "spark": {
        "spark.hadoop.fs.s3a.endpoint": f"http://127.0.0.1:{PORT}",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": "${STORE_KEY}",
        "spark.hadoop.fs.s3a.secret.key": "${STORE_KEY}",
    },
}


@contextmanager
def served(python, late_ms):
    """A store with a bucket."""
    with subprocess.Popen([python, "-c", SERVER, str(PORT), str(late_ms)], stderr=subprocess.DEVNULL) as server:
        try:
            ends = time.monotonic() + STARTS_S
            while not asked():
                if time.monotonic() > ends or server.poll() is not None:
                    sys.exit(f"The store did not start in {python}: install moto[server] there.")
                time.sleep(0.2)
            yield
        finally:
            server.terminate()


def asked():
    """Requests that the store had; the first call makes the bucket."""
    try:
        count = int(answer("GET", "/asked"))
        return count or (answer("PUT", "/bucket") and int(answer("GET", "/asked")))
    except OSError:
        return 0


def answer(method, path):
    connection = HTTPConnection("127.0.0.1", PORT)
    connection.request(method, path)
    return connection.getresponse().read()


def found(settings, rate, observed_s, count):
    """What a deployment finds: seconds of a batch, what writing takes, and requests of a batch."""
    testbed = SparkTestbed(warmup_cap_s=30, settings=JobSettings(**settings))
    with testbed.deploy(find_query("nexmark:q5"), BUDGET) as run:
        run.set_rate(rate)
        run.settle(20)
        before = count()
        seen = run.observe(observed_s)
        batches = seen.batches[1:]
        return statistics.median(one.duration_s for one in batches), seen.writes, (count() - before) / len(batches)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("places", nargs="*", default=("memory", "folder", "0", "30", "200"))
    parser.add_argument("--python", default=sys.executable, help="with moto[server]; default: this one")
    parser.add_argument("--rate", type=float, default=20_000.0)
    parser.add_argument("--observed", type=float, default=40.0)
    options = parser.parse_args()
    os.environ["STORE_KEY"] = "any-key-will-do"
    for place in options.places:
        with tempfile.TemporaryDirectory() as folder:
            if place in {"memory", "folder"}:
                settings = {} if place == "memory" else {"checkpoint": folder}
                batch_s, cost, requests = found(settings, options.rate, options.observed, lambda: 0)
            else:
                with served(options.python, float(place)):
                    batch_s, cost, requests = found(STORE, options.rate, options.observed, asked)
        print(
            f"{place}: batch {batch_s:.2f} s, offsets and commits {1000 * cost.log_s:.0f} ms, "
            f"state {1000 * (cost.state_s or 0):.0f} ms a partition, {requests:.0f} requests a batch",
            flush=True,
        )


if __name__ == "__main__":
    try:
        main()
    except WorkbenchError as error:
        sys.exit(str(error))
