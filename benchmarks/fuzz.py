"""Feed wrong input to everything that reads, and count what is not refused with a message.

    python benchmarks/fuzz.py READER [--inputs 1000] [--seed 0] [--workers 2] [--tests]
    python benchmarks/fuzz.py all --inputs 10000

Each input is a valid one of which a few values, lines or bytes are changed. It is read by the command that a user would
give, in a child process that may take 10 s of its processor and 1 GB of memory. Prints for each reader how many inputs
were answered (exit code 0, 1 or 3) and refused (2 and a message), and how many ended otherwise: in a traceback, a hang,
out of memory, a crash, with an exit code of its own, or in an answer or a message without sense. With `--tests`, one
failure of each kind and place is made as small as possible and printed as a test. A reader's inputs depend on the seed
alone; `--only` repeats the one of a number.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fuzzing import sandbox
from fuzzing.cases import case_of, shrunk, written_as_test
from fuzzing.readers import compile_search, readers, run
from fuzzing.sandbox import FAILURES, KINDS, carry_out


def fuzz(reader, inputs, seed, worker=0, workers=1):
    """Return (number, outcome) of the reader's inputs whose number is `worker` modulo `workers`."""
    numbers = range(worker, inputs, workers)
    cases = [case_of(reader, seed, number) for number in numbers]
    return list(zip(numbers, carry_out(cases, run, reader.sense), strict=True))


def shared(reader, inputs, seed, workers):
    """Fuzz in several processes."""
    import pickle

    pipes = []
    for worker in range(workers):
        reading, writing = os.pipe()
        if not os.fork():
            os.close(reading)
            with os.fdopen(writing, "wb") as out:
                pickle.dump(fuzz(reader, inputs, seed, worker, workers), out)
            os._exit(0)
        os.close(writing)
        pipes.append(reading)
    found = []
    for reading in pipes:
        with os.fdopen(reading, "rb") as read:
            found += pickle.load(read)  # noqa: S301 - of our own child
    for _ in pipes:
        os.wait()
    return sorted(found, key=lambda one: one[0])


def named(names, known):
    """Return the readers of these names."""
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"There is no reader {unknown[0]!r}; there are: {', '.join(known)}. Or give all.")
    return [known[name] for name in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("reader", nargs="+", help="names of readers, or all")
    parser.add_argument("--inputs", type=int, default=1_000, help="for each reader (1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs (0)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes (one for each core)")
    parser.add_argument("--seconds", type=float, default=sandbox.CPU_S, help="longest of an input (%(default)g)")
    parser.add_argument("--tests", action="store_true", help="print one failure of each kind and place as a test")
    parser.add_argument(
        "--only", type=int, metavar="N", help="only input N of each reader: what came of it, and the input"
    )
    options = parser.parse_args()
    sandbox.CPU_S = options.seconds
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        known = readers(Path(folder))
        chosen = list(known.values()) if options.reader == ["all"] else named(options.reader, known)
        compile_search(chosen)
        if options.only is not None:
            for reader in chosen:
                show(reader, options.seed, options.only)
            return
        valid(chosen)
        print(
            f"{'reader':22}{'inputs':>8}"
            + "".join(f"{kind:>11}" for kind in KINDS)
            + f"{'longest s':>11}{'seconds':>9}"
        )
        failed = [tell(one, options) for one in chosen]
    sys.exit(any(failed))


def show(reader, seed, number):
    """Repeat an input, and print it as a test."""
    case = case_of(reader, seed, number)
    outcome = next(carry_out([case], run, reader.sense))
    print(
        outcome.message, written_as_test(reader, case, outcome), f"# {outcome.kind}, {outcome.seconds:.1f} s", sep="\n"
    )


def valid(chosen):
    """Check that what is changed is valid: else nothing would be tried beyond the first check."""
    refused = [
        f"{reader.name}: {case.arguments} is not answered: {outcome}"
        for reader in chosen
        for case, outcome in zip(reader.cases, carry_out(reader.cases, run, reader.sense), strict=True)
        if outcome.kind != "answered"
    ]
    if refused:
        raise SystemExit("\n".join(refused))


def tell(reader, options):
    """Fuzz a reader, print its row and its failures; whether there are any."""
    began = time.monotonic()
    found = shared(reader, options.inputs, options.seed, options.workers)
    counts = Counter(outcome.kind for _, outcome in found)
    longest = max(outcome.seconds for _, outcome in found)
    row = "".join(f"{counts[kind]:>11,}" for kind in KINDS)
    print(f"{reader.name:22}{len(found):>8,}{row}{longest:>11.1f}{time.monotonic() - began:>9.0f}", flush=True)
    failures = {}
    for number, outcome in found:
        if outcome.failed:
            failures.setdefault(outcome.signature, []).append((number, outcome))
    for signature, ones in sorted(failures.items(), key=lambda one: -len(one[1])):
        print(f"  {len(ones):5} x {signature} (inputs {', '.join(str(number) for number, _ in ones[:4])})", flush=True)
        if options.tests:
            number, outcome = ones[0]
            print(written_as_test(reader, shrunk(case_of(reader, options.seed, number), reader, outcome), outcome))
    return sum(counts[kind] for kind in FAILURES)


if __name__ == "__main__":
    main()
