"""What runs on each version of Spark: measuring, planning, and observing what it logs.

    python benchmarks/versions.py [4.0.1 4.1.1 4.2.0 4.3.0] [--steps tests plan log observe]

Each version gets an environment of its own under .workbench/benchmark, with its PySpark before the libraries of the one
that runs this. There run the contract of the Spark testbed and Nexmark's queries (the tests), `workbench plan` of q5 on
one and two slots, and `workbench observe` of a log that this version writes. Prints what ran, and the minutes.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from workbench.testbed.spark import find_java

HOME = Path(__file__).parents[1]
FOLDER = Path(".workbench/benchmark")
VERSIONS = ("4.0.1", "4.1.1", "4.2.0", "4.3.0")
TESTS = ("tests/spark/test_testbed_contract.py", "tests/spark/test_nexmark_queries.py")
STEPS = ("tests", "plan", "log", "observe")
STUDY = """
query: nexmark:q5
targets: [10000]
slots: [1, 2]
memory_mb: [1024]
slot_cpus: 0.4
interval_s: 2
tolerance: 0.25
minutes: 1
warmup_s: 20
"""
ABSENT = 3  # the exit status where no package index is reached
SHOWN = 300  # characters of what failed


def environment(version):
    """The interpreter of an environment with this version, whose other libraries are those of this interpreter."""
    folder = FOLDER / f"spark-{version}"
    python = (folder / "bin" / "python").absolute()
    if not python.exists():
        venv.create(folder, with_pip=True)
    asked = [python, "-m", "pip", "install", "-q", f"pyspark=={version}"]
    made = subprocess.run(asked, check=False, capture_output=True, text=True)
    if made.returncode:
        print(f"PySpark {version} cannot be installed here: {made.stderr.strip()}", file=sys.stderr)
        sys.exit(ABSENT if "(from versions: none)" in made.stderr else 1)
    (packages,) = folder.glob("lib/python*/site-packages")
    here = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "workbench.pth").write_text(f"{HOME}\n{here}\n")
    return python


def steps(python, work):
    """The commands of a version, by what they show."""
    (work / "study.yaml").write_text(STUDY)
    command = (python, "-m", "workbench.cli")
    return {
        "tests": (python, "-m", "pytest", "-q", "--no-header", *TESTS),
        "plan": (
            *command,
            "plan",
            work / "study.yaml",
            "--journal",
            work / "journal.jsonl",
            "--output",
            work / "plan.json",
        ),
        "log": (python, "benchmarks/make_logs.py", "--into", work, "constant"),
        "observe": (*command, "observe", work / "constant.jsonl.gz", "--output", work / "observed.json"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="*", default=VERSIONS)
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS)
    asked = parser.parse_args()
    failed = False
    for version in asked.versions:
        python = environment(version)
        with tempfile.TemporaryDirectory() as work:
            path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
            given = os.environ | {"PATH": path, "JAVA_HOME": find_java(Path(work)).home}
            commands = steps(python, Path(work))
            for name, command in ((name, commands[name]) for name in asked.steps):
                began = time.monotonic()
                ran = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False, env=given)
                failed |= ran.returncode != 0
                said = [line for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
                shown = said[-1][:SHOWN] if ran.returncode == 0 and said else " ".join(said)[-SHOWN:]
                print(
                    f"{version} {name}: {ran.returncode}, {(time.monotonic() - began) / 60:.1f} min: {shown}",
                    flush=True,
                )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
