"""Runs a script with its streams recorded instead of carried out.

``spark.readStream`` gives stand-ins without rows, or the rows that are measured; what arrives at ``writeStream`` is
kept and not started. Static data, views and functions are the script's own. What it writes outside of its streams is
left out, and its waiting ends at once.
"""

import runpy
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2
from pyspark.streaming import StreamingContext

from workbench.errors import QueryError
from workbench.redaction import redacted
from workbench.workload.pipelines import Pipeline
from workbench.workload.recorder import Chain, EndedError, Recorder, Streams, first_line, nothing
from workbench.workload.script import FILES, Recorded, Script

_WRITES: dict[type, tuple[str, ...]] = {
    DataFrameWriter: ("save", "saveAsTable", "insertInto", "jdbc", *FILES),
    DataFrameWriterV2: ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions"),
}
_PASSES = 3
_LONGEST_S = 180


def look(script: Script, spark: SparkSession, samples: Sequence[tuple[str, str]]) -> Recorded:
    """Run a script to its end, and return what was found; `samples` are names, or "", and paths of files."""
    with tempfile.TemporaryDirectory(prefix="workbench-script-") as folder:
        recorder = Recorder(spark, script, Path(folder), samples)

        def end(*_: object) -> None:
            recorder.note(f"still runs after {_LONGEST_S} s; what follows is not looked at")
            raise EndedError

        signal.signal(signal.SIGALRM, end)
        signal.alarm(_LONGEST_S)
        failure = _run(recorder)
        signal.alarm(0)
        return replace(recorder.found, failure=redacted(failure))


def arriving(script: Script, streams: Sequence[DataFrame]) -> DataFrame:
    """Run a script until the wanted query starts, with `streams` as its sources; return what it would write.

    It runs once to see which sources are the query's, and again where these were not fed. Raises QueryError when it
    does not get there, or the query reads another number of sources.
    """
    feeds: dict[int, int] = {}
    for _ in range(_PASSES):
        with tempfile.TemporaryDirectory(prefix="workbench-script-") as folder:
            recorder = Recorder(streams[0].sparkSession, script, Path(folder), (), streams, feeds)
            failure = _run(recorder)
        if len(recorder.frames) < script.number:
            reason = failure or f"it starts {len(recorder.frames)}"
            raise QueryError(
                f"The script {script.call} does not start its query {script.number}: {reason}. See what it starts: "
                f"workbench init {script.call!r}"
            )
        reads = recorder.reads[-1]
        if len(reads) != len(streams):
            names = ", ".join(recorder.found.sources[number].name for number in reads) or "none"
            raise QueryError(
                f"The query {script.name} reads {len(reads)} of the script's sources ({names}), and is fed "
                f"{len(streams)}. Write its study again: workbench init {script.call!r}"
            )
        wanted = {number: place for place, number in enumerate(reads)}
        frame = recorder.frames[-1]
        if frame is not None and wanted.items() <= recorder.fed.items():
            return frame
        feeds = wanted
    raise QueryError(f"The script {script.call} reads other sources each time it runs, so none of them can be fed.")


def _run(recorder: Recorder) -> str:
    """Run the script; return why it ended early, or ""."""
    script = recorder.script
    known = set(sys.modules)
    names = {"spark": recorder.spark, "sc": recorder.spark.sparkContext}  # as in shells and notebooks
    try:
        with _recorded(recorder), redirect_stdout(sys.stderr):
            if script.path.suffix != ".py":
                Pipeline(recorder).carry_out()
            else:
                runpy.run_path(str(script.path), names, "__main__")
    except EndedError:
        return ""
    except KeyboardInterrupt:
        raise
    except SystemExit as error:
        if not error.code:
            return ""
        return f"it exits with {error.code}; if it takes arguments, write them: '{script.file} ARGUMENT'"
    except BaseException as error:  # noqa: BLE001 - whatever a script does
        frames = traceback.walk_tb(error.__traceback__)
        lines = [line for frame, line in frames if frame.f_code.co_filename == str(script.path)]
        at = f"line {lines[-1]}: " if lines else ""
        return f"{at}{type(error).__name__}: {first_line(error)}"
    finally:  # its own modules may hold streams of this run
        for name in sys.modules.keys() - known:
            file = Path(getattr(sys.modules[name], "__file__", None) or "/")
            if script.path.parent in file.parents and "site-packages" not in file.parts:
                del sys.modules[name]
    return ""


@contextmanager
def _recorded(recorder: Recorder) -> Iterator[None]:
    """Replace what a script would carry out."""
    active = recorder.spark.sparkContext
    with ExitStack() as patches:
        for owner, name, new in (
            (SparkSession.Builder, "getOrCreate", lambda builder: recorder.session(builder)),  # noqa: PLW0108 - its self
            (SparkSession.Builder, "create", lambda builder: recorder.session(builder)),  # noqa: PLW0108
            (SparkContext, "__new__", lambda *_, **__: active),
            (SparkContext, "__init__", lambda _, *given, **named: recorder.context(*given, *named.values())),
            (StreamingContext, "__init__", recorder.older),
            (SparkContext, "stop", nothing),
            (SparkContext, "setLogLevel", nothing),
            (SparkSession, "stop", nothing),
            (SparkSession, "readStream", property(lambda _: Chain(recorder.read))),
            (SparkSession, "streams", property(lambda _: Streams(recorder))),
            (ClassicDataFrame, "writeStream", property(recorder.writer)),
            (RuntimeConfig, "set", lambda _, name, value: recorder.setting(name, value)),
            (time, "sleep", recorder.sleep),
            (sys, "argv", [recorder.script.file, *recorder.script.arguments]),
            (sys, "path", [str(recorder.script.path.parent), *sys.path]),
            *((owner, name, partial(recorder.write, name)) for owner, names in _WRITES.items() for name in names),
        ):
            patches.enter_context(patch.object(owner, name, new))
        yield
