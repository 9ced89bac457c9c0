"""One input in a child process with limits on time and memory, and what came of it.

A child is a fork of a process that has everything imported, so an input takes milliseconds. It carries out several
inputs; where it dies, the next one goes on after the input that killed it.
"""

import contextlib
import faulthandler
import io
import json
import os
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

CPU_S = 10.0
"""Longest time of an input, seconds of its process: how busy the machine is does not matter."""
WALL_S = 300.0
"""Longest time of an input that waits for something, seconds."""
MEMORY_BYTES = 1 << 30
"""Most memory that an input may take, in addition to that of the imports."""
KINDS = ("answered", "refused", "traceback", "hang", "memory", "crash", "exit code", "no sense")
FAILURES = KINDS[2:]
_BATCH = 40
_ANSWERS, _REFUSED = {0, 1, 3}, 2
_LARGEST = 1e25  # number of an answer
_LONGEST_MESSAGE = 3_000  # characters of standard error but for what it says while it works
PRINTED = "x" * 100_000
"""What a fuzzed module prints, which is not a message."""
_PROGRESS = re.compile(r"^(?:\[ *\d+ s\]|run \d+(?:/| of at most )\d+ ·) .*\n", re.MULTILINE)
_ENDLESS = re.compile(r"(?:\d,?){130}")
_DIGITS, _NAN = (
    re.compile(r"\d{25}|e\+[1-9]\d\d", re.IGNORECASE),
    re.compile(r"(?<![\w'\"/.-])nan(?![\w'\"-])", re.IGNORECASE),
)
_FOLDER = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())  # noqa: S108 - inputs are small


@dataclass(frozen=True)
class Outcome:
    """What came of an input: one of `KINDS`, and for a failure where it happened."""

    kind: str
    where: str = ""
    code: int | None = None
    message: str = ""
    seconds: float = 0.0

    @property
    def failed(self):
        return self.kind in FAILURES

    @property
    def signature(self):
        """The same for failures with one cause."""
        return f"{self.kind}: {self.where}"


def carry_out(cases, run, sense=lambda _: ""):
    """Carry out `cases`, each in its own folder; give an `Outcome` of each in order."""
    place = 0
    while place < len(cases):
        done = 0
        for outcome in _child(cases[place : place + _BATCH], run, sense):
            yield outcome
            done += 1
        place += done


def _child(cases, run, sense):
    """Carry out `cases` in one child until one of them kills it."""
    reading, writing = os.pipe()
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=_FOLDER))
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            _inside(cases, run, sense, folder, writing)
        finally:
            os._exit(0)
    os.close(writing)
    done, started = 0, time.monotonic()
    try:
        with os.fdopen(reading, "rb") as lines:
            while done < len(cases):
                ready, _, _ = select.select([lines], [], [], WALL_S)
                line = lines.readline() if ready else b""
                if not line:
                    break
                yield Outcome(**json.loads(line))
                done, started = done + 1, time.monotonic()
            if done < len(cases):
                yield _of_death(child, folder, time.monotonic() - started, alive=not ready)
            child = _ended(child)
    finally:
        if child:
            _ended(child)
        shutil.rmtree(folder, ignore_errors=True)


def _ended(child):
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 0


def _of_death(child, folder, seconds, *, alive):
    if alive:
        return Outcome("hang", f"more than {WALL_S:.0f} s", seconds=seconds)
    status = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    said = (folder / "stderr").read_text(errors="replace") if (folder / "stderr").exists() else ""
    if status.si_code == os.CLD_EXITED:
        return Outcome("exit code", f"the process ended with {status.si_status}", status.si_status, seconds=seconds)
    if status.si_status == signal.SIGPROF:
        return Outcome("hang", f"more than {CPU_S:.0f} s", seconds=seconds)
    name = signal.Signals(status.si_status).name
    return Outcome("memory" if "bad_alloc" in said else "crash", name, message=said[-500:], seconds=seconds)


def _inside(cases, run, sense, folder, writing):
    """In the child: carry out and report."""
    faulthandler.disable()  # a crash is reported by its signal
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = int(re.search(r"VmData:\s*(\d+)", Path("/proc/self/status").read_text())[1]) << 10
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY_BYTES,) * 2)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, case in enumerate(cases):
        here = folder / str(number)
        here.mkdir()
        for name, content in case.files.items():
            (here / name).write_bytes(content)
        os.chdir(here)
        os.environ["HOME"] = str(here)
        for place, stream in ((1, "stdout"), (2, "stderr")):
            opened = os.open(folder / stream, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            os.dup2(opened, place)
            os.close(opened)
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(place, "w", closefd=False), "utf-8", "backslashreplace") for place in (1, 2)
        )
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, CPU_S)
        code, error = _code(run, case)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):  # the input closed it
                stream.flush()
        said, complained = ((folder / name).read_text(errors="replace") for name in ("stdout", "stderr"))
        executed = (here / "pwned").exists()
        found = _judged(code, error, said, complained, sense(said) if code == 0 else "", executed=executed)
        line = {**vars(found), "seconds": time.process_time() - began}
        os.write(writing, json.dumps(line).encode() + b"\n")
        os.chdir(folder)
        _forget_modules(here)
        shutil.rmtree(here, ignore_errors=True)


def _forget_modules(folder):
    """Have the next input's modules imported: they may be called as those of `folder`."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(f"{folder}/"):
            del sys.modules[name]


def _code(run, case):
    """Return the exit code, and the traceback of what was not caught."""
    try:
        return run(case.arguments), ""
    except SystemExit as end:
        return (end.code if isinstance(end.code, int) else 0 if end.code is None else 1), ""
    except BaseException:  # noqa: BLE001 - to be reported
        return 70, traceback.format_exc()


def _judged(code, error, said, complained, complaint, *, executed):  # noqa: PLR0911 - one for each way to fail
    complained += error
    if executed:
        return Outcome("crash", "the input was executed", code, complained[-2_000:])
    if "bad_alloc" in complained or ("MemoryError" in complained and code != _REFUSED):  # a module may raise its own
        return Outcome("memory", _last_frame(complained), code, complained[-2_000:])
    if "Traceback (most recent call last)" in complained or code == 70:
        return Outcome("traceback", _last_frame(complained), code, complained[-2_000:])
    if code not in _ANSWERS | {_REFUSED}:
        return Outcome("exit code", f"{code}", code, complained[-2_000:])
    message = _PROGRESS.sub("", complained).replace(PRINTED, "")
    if len(message) > _LONGEST_MESSAGE:
        return Outcome("no sense", f"a message of {len(message):,} characters", code, message[:1_000])
    if _ENDLESS.search(complained):
        return Outcome("no sense", "a number without end in a message", code, complained[:1_000])
    if code == _REFUSED and not message.strip():
        return Outcome("no sense", "refused without a message", code)
    if code == 0 and (found := complaint or _absurd(said)):
        return Outcome("no sense", found, code, said[:2_000])
    return Outcome("refused" if code == _REFUSED else "answered", "", code, complained[:1_000])


def _absurd(said):
    """Return what no answer may have: numbers that are none, or have no end. Of JSON the texts may be anything."""
    try:
        numbers = list(_numbers(json.loads(said)))
    except (ValueError, RecursionError):
        found = _DIGITS.search(said) or _NAN.search(said)
        return f"the answer has {found[0][:30]}" if found else ""
    return next((f"the answer has {one!r:.30}" for one in numbers if not abs(one) < _LARGEST), "")


def _numbers(value):
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _numbers(one)
    elif isinstance(value, int | float):
        yield value


def _last_frame(text):
    """Return the last place of ours in a traceback, and the error."""
    ours = re.findall(r'File "[^"]*?/(workbench/[^"]+)", line (\d+)', text)
    errors = re.findall(r"^((?:[a-z_]\w*\.)*[A-Z]\w*)(?::.*)?$", text, re.MULTILINE)
    place = ":".join(ours[-1]) if ours else "?"
    return f"{place} {errors[-1] if errors else ''}"
