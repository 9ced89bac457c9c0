"""The events of streaming queries in a file: of Spark's event log, or progress events in any form they are stored in.

Progress events are found as JSON lines, in arrays, pretty-printed over several lines, in a log of the driver (plain,
structured, or as a container's runtime keeps it), as Python prints them, and as Prometheus scraped them (`Scrapes`).
Text in between is passed over. A file is read in pieces, so memory does not grow with it; a last line that is torn is
left out.
"""

import ast
import codecs
import json
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from heapq import heappush, heappushpop
from io import BufferedReader, RawIOBase
from itertools import chain
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.observing.files import Growing, entries_of, log_files, opened
from workbench.testbed.spark import seconds_of

USEFUL = frozenset({
    "SparkListenerLogStart", "SparkListenerApplicationStart", "SparkListenerEnvironmentUpdate",
    "SparkListenerExecutorAdded", "SparkListenerExecutorRemoved", "SparkListenerJobStart", "SparkListenerTaskEnd",
    "SparkListenerStageCompleted", "SparkListenerSQLExecutionStart", "SparkListenerSQLAdaptiveExecutionUpdate",
    "QueryStartedEvent", "QueryProgressEvent", "QueryIdleEvent", "QueryTerminatedEvent",
})  # fmt: skip
"""Events that show something of a query's capacity, by the last part of their names."""

UNREADABLE: dict[str, Any] = {}
"""In place of an unreadable event."""

PROGRESS = "QueryProgressEvent"

SCRAPED = "scraped"
"""Key that marks a progress event made of a scrape."""

_NAME = re.compile(rb'\s*\{"Event":\s*"[\w.$]*?([A-Za-z]+)"')
_MADE = b"made progress: "  # precedes what the driver logs of a batch
_PROGRESS = b"rogress"  # a text that has it may precede what others log of one
_BEGINS = re.compile(rb"\s*(?:\{|\[\s*(?:\{|$))")
_OBJECT = re.compile(rb"""\[?\{(?:\s*u?["']|\s*$)""")  # behind a text
_PYTHON, _NO_NUMBER = re.compile(rb"\s*\[?\{u?'"), re.compile(rb"(?<=': )-?(?:nan|inf)\b")
_WRAPPED = re.compile(rb'\{(?:"[^"]*":\s*(?:"[^"]*"|[\d.]+),\s*)*"(log|message|msg)":\s*"')  # a line of a log as JSON
_WITHIN = b' \t\r\n}]"'  # lines of a pretty-printed object begin with one of these
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"' + rb"|'(?:[^'\\]|\\.)*'")
_MARKS = (b"{", b"_streaming")  # every line in which an event or a sample begins has one of these
_HAS = (b"batchId", b"numInputRows", b"progress", b'"Event"', b'"data"')  # every event of one line has one of these
_PIECE, _LONGEST = 1 << 20, 1 << 26  # most bytes read at once; of a line, or of an object
_SPLIT, _LONGEST_PREFIX = 1 << 14, 1 << 10  # bytes at which Docker divides a line; before each line of an object
_BROKEN = (ValueError, TypeError, KeyError, AttributeError, SyntaxError, MemoryError, RecursionError)
_GAUGE = re.compile(
    r"(?:.*spark_streaming_(?P<query>.+?)_|.*structured_streaming.*?_)"
    r"(?P<what>inputRate_total|processingRate_total|latency|states_rowsTotal|states_usedBytes)(?:_Value|_Number)?",
    re.IGNORECASE,
)
_LINE = re.compile(rb"\s*([A-Za-z_:][\w:]*)?\s*(\{.*\})?\s+(\S+)\s+(\d{9,13}(?:\.\d+)?)\s*")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_MS = 1e11  # larger times are milliseconds
_NAMES = ("__name__", "query_name")


def read_events(path: str | Path) -> Iterator[dict[str, Any]]:
    """Read the useful events at a path in order; progress is returned as an event log has it.

    The path is that of a file, of the folder of a rolling event log (``eventlog_v2_...``), or of a folder of files with
    progress events, read in the order of their first ones. What cannot be read among events is `UNREADABLE`.
    """
    files, seen = log_files(path), False
    for place, file in enumerate(_by_time(path, files), 1):
        for event in _events_of(file, is_last=place == len(files)):
            seen = True
            if event is not None:
                yield event
    if not seen:
        raise WorkbenchError(_nothing(path, files))


def latest_in_time(events: Iterable[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Return the latest `most` progress events of each query by their times, for a file that has another order."""
    kept = dict[str, list[tuple[float, int, dict[str, Any]]]]()
    for place, event in enumerate(events):
        told = event.get("progress")
        own = kept.setdefault(str(told.get("id") or told.get("name")) if isinstance(told, dict) else "", [])
        (heappush if len(own) < most else heappushpop)(own, (_at_s(event), place, event))
    return [event for _, _, event in sorted(chain(*kept.values()))]


def follow_events(path: str | Path, wait: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """Read the useful events at a path as they are written, in the order of the files' names; it need not exist yet.

    `wait` is called where everything is read; what it raises ends the reading, which has no end of its own.
    """
    read = set[Path]()
    current: list[Path] = []  # it may disappear and come back

    def left() -> list[Path]:
        is_here = Path(path).exists() or "://" in str(path)
        files = log_files(path) if is_here else []
        read.intersection_update({*files, *current})
        # a compact file repeats events that were read
        return [one for one in files if one not in read and not (read and one.suffix == ".compact")]

    while True:
        files = left()
        if not files:
            wait()
            continue
        current = files[:1]
        read.add(files[0])
        try:
            live = Growing(files[0], lambda: bool(left()), wait)
        except FileNotFoundError:  # it disappeared between two looks
            continue
        for event in _events_of(files[0], live, is_last=True):
            if event is not None:
                yield event


def _by_time(path: str | Path, files: list[Path]) -> list[Path]:
    """Put files of progress events in the order of their first ones; those of one event log are in order."""
    if len(files) < 2 or files[0].name.startswith("events_"):
        return files
    begun: list[tuple[float, Path]] = []
    for file in files:
        first = next((event for event in _events_of(file, is_last=True) if event), None)
        if first is None:
            continue
        if first["Event"] != PROGRESS:
            raise WorkbenchError(
                f"{path} holds {entries_of(path)}, of which {file.name} is an event log; that is one file, or one "
                "folder eventlog_v2_.... Give one of them."
            )
        begun.append((_at_s(first), file))
    return [file for _, file in sorted(begun)]


def _at_s(event: Mapping[str, Any]) -> float:
    try:
        return seconds_of(event["progress"]["timestamp"])
    except _BROKEN:
        return 0.0


def _nothing(path: str | Path, files: list[Path]) -> str:
    if len(files) != 1:
        return f"{path} holds {entries_of(path)}, and none has events. Give a log, or a folder of progress events."
    with opened(files[0]) as lines:
        first = next((line for line in iter(lambda: lines.readline(_LONGEST), b"") if line.strip()), None)
    if first is None:
        return f"The log {path} is empty. Wait until the application has written to it."
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return f"The log {path} is in UTF-16. Save it as UTF-8."
    return (
        f"{files[0]} holds no event of Spark, and no progress of a query: it begins with "
        f"{first[:40].decode('utf-8', 'replace')!r}. Give an event log (spark.eventLog.enabled=true), a log of the "
        "driver, query.lastProgress as JSON, or what Prometheus stored of spark_streaming_* metrics, with times."
    )


def _events_of(file: Path, live: RawIOBase | None = None, *, is_last: bool) -> Iterator[dict[str, Any] | None]:
    """Yield the events of a file; None for an event without use here."""
    try:
        with opened(file, live) as lines:
            yield from _events(_Text(lines), is_last=is_last)
    except (OSError, zlib.error) as error:
        raise WorkbenchError(
            f"The log {file} cannot be read: {getattr(error, 'strerror', None) or error}. Check the path, its "
            "permissions and its content."
        ) from error


class _Text:
    """A file in pieces of whole lines."""

    def __init__(self, file: BufferedReader) -> None:
        self._file, self._piece, self._at = file, b"", 0
        self._found = dict.fromkeys(_MARKS, -1)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.line, b"")

    def line(self) -> bytes:
        """Return the next line; empty at the end."""
        if self._at >= len(self._piece) and not self._more():
            return b""
        begun, self._at = self._at, self._piece.find(b"\n", self._at) + 1 or len(self._piece)
        return self._piece[begun : self._at]

    def marked(self) -> bytes:
        """Return the next line in which an event or sample may begin."""
        while self._at < len(self._piece) or self._more():
            for mark, place in self._found.items():
                if place < self._at:
                    found = self._piece.find(mark, self._at)
                    self._found[mark] = found if found >= 0 else len(self._piece)
            place = min(self._found.values())
            if place < len(self._piece):
                self._at = self._piece.rfind(b"\n", self._at, place) + 1 or self._at
                return self.line()
            self._at = place
        return b""

    def rest(self, begun: bytes) -> Any:  # noqa: ANN401 - what a file holds
        """Read the object that begins with the previous line, printed as JSON; None if it is another one, or torn."""
        if not begun.endswith(b"{\n"):
            return None
        end = b"\n" + begun[: len(begun) - len(begun.lstrip())] + b"}"
        found = self._piece.find(end, self._at - 1)
        whole = _parsed(begun + self._piece[self._at : found + len(end)]) if found >= 0 else None
        if whole is not None:
            self._at = self._piece.find(b"\n", found + 1) + 1 or len(self._piece)
        return whole

    def _more(self) -> bool:
        try:
            # of a file that is still written, the part there is
            self._piece = self._file.read1(_PIECE).removeprefix(codecs.BOM_UTF8)
            if not self._piece.endswith(b"\n"):
                self._piece += self._file.readline(_LONGEST)
        except EOFError:  # the file ends within a compressed block: it is still written
            return False
        self._at, self._found = 0, dict.fromkeys(_MARKS, -1)
        return bool(self._piece)


def _events(lines: _Text, *, is_last: bool) -> Iterator[dict[str, Any] | None]:
    """Yield the events of lines: in an event log of each line, elsewhere where an object is complete."""
    block, depth, before, scrapes = b"", 0, b"", Scrapes()
    while line := lines.line() if depth > 0 else lines.marked():
        if line.startswith(b'{"') and (depth > 0 or _PROGRESS in line or b"batchId" in line):
            line = _unwrapped(line, lines)
        if depth > 0 and line[0] not in _WITHIN:
            before = before or _before(line)
            line = re.sub(before, b"", line, count=1) or line
        if depth <= 0 and not line.startswith(b'{"') and scrapes.line(line):
            continue
        if _NAME.match(line):
            yield from _of_log(chain([line], lines), is_last=is_last)
            return
        if depth > 0 and (line[0] not in _WITHIN or len(block) > _LONGEST):  # another line came in between
            yield UNREADABLE
            block, depth, before = b"", 0, b""
        text = line if depth > 0 else _begun(line)
        if not text:
            continue
        if depth <= 0 and (whole := lines.rest(text)) is not None:
            yield from _events_in(whole)
            continue
        block, bare = block + text, _QUOTED.sub(b"", text)
        depth += bare.count(b"{") + bare.count(b"[") - bare.count(b"}") - bare.count(b"]")
        if depth <= 0:
            whole, block, depth, before = block, b"", 0, b""
            yield from _events_in(_parsed(whole.strip().rstrip(b",")))
    yield from _events_in([*scrapes.progress()])


def _of_log(lines: Iterable[bytes], *, is_last: bool) -> Iterator[dict[str, Any] | None]:
    for line in lines:
        found = _NAME.match(line)
        if found is not None and found[1].decode() not in USEFUL:
            yield None
        elif line.strip():
            parsed = _parsed(line)
            if parsed is not None or not is_last or line.endswith(b"\n"):
                yield from _events_in(parsed)


def _unwrapped(line: bytes, lines: _Text) -> bytes:
    """Return the line that a collector of logs keeps as a field of one object or several; other lines as they are."""
    text, part = b"", line
    while (field := _WRAPPED.match(part)) and isinstance(kept := _parsed(part), dict):
        text += str(kept[field[1].decode()]).encode("utf-8", "replace")
        if not text or len(text) % _SPLIT or text.endswith(b"\n"):
            return text + b"\n"
        part = lines.line()
    return text + b"\n" if text else line


def _before(line: bytes) -> bytes:
    """Return a pattern of what precedes each line of a printed object, as its second has it, whatever the digits."""
    prefix, indent, _ = line[:_LONGEST_PREFIX].partition(b'  "')
    return rb"\A" + re.sub(rb"\d+", rb"\\d+", re.escape(prefix if indent else b""))


def _begun(line: bytes) -> bytes:
    """Return the part of a line with which an object begins; empty if none begins there."""
    if not _BEGINS.match(line):
        begins = max(0, line.find(_MADE))
        at = _OBJECT.search(line, begins) if _PROGRESS in line or b"batchId" in line else None
        return line[at.start() :].lstrip() if at else b""
    if line.endswith(b"}\n") and not any(one in line for one in _HAS):  # a line of a structured log
        return b""
    return line if line.strip() != b"[" else b""


def _parsed(text: bytes) -> Any:  # noqa: ANN401 - what a file holds
    """Read JSON, or a progress as Python prints it; None for other text."""
    try:
        return json.loads(text)
    except _BROKEN:
        pass
    try:
        return ast.literal_eval(_NO_NUMBER.sub(b"None", text).decode()) if _PYTHON.match(text) else None
    except _BROKEN:
        return None


def _events_in(one: Any) -> Iterator[dict[str, Any] | None]:  # noqa: ANN401 - what a file holds
    """Yield the events in what was read; `UNREADABLE` for an invalid event."""
    if isinstance(one, list):
        for each in one:
            yield from _events_in(each)
    elif not isinstance(one, dict):
        yield UNREADABLE
    elif isinstance(one.get("Event"), str):
        yield one if re.split(r"[.$]", one["Event"])[-1] in USEFUL else None
    elif (samples := samples_of(one)) is not None:
        yield from _events_in([*samples])
    elif "timestamp" in one and ("batchId" in one or "numInputRows" in one):  # Spark 2.2 has no batchId
        yield {"Event": PROGRESS, "progress": one}
    elif "progress" in one:  # as a listener receives it
        told = _parsed(one["progress"].encode()) if isinstance(one["progress"], str) else one["progress"]
        yield from _events_in(told)


class Scrapes:
    """Samples so far of the gauges of streaming queries (spark.sql.streaming.metricsEnabled), as Prometheus has them.

    Two forms are read: the answer of Prometheus's API to a range of time, and samples as lines of text with their times
    (OpenMetrics, ``promtool tsdb dump``). Spark's gauges hold what the last batch was, so a batch is seen where they
    change between two scrapes. Of batches between them nothing is known, and when each began is known to a scrape.
    """

    def __init__(self) -> None:
        self._queries: dict[str, dict[float, dict[str, float]]] = {}

    def take(self, labels: dict[str, Any], samples: Any) -> None:  # noqa: ANN401 - what a file holds
        """Take samples in, pairs of a time in seconds and a value; ignore other metrics."""
        name, of = (str(labels.get(key, "")) for key in _NAMES)
        found = _GAUGE.fullmatch(name)
        if found is None:
            return
        query = self._queries.setdefault(found["query"] or of or "query", {})
        for at, value in samples:
            query.setdefault(float(at), {})[found["what"].lower()] = float(value)

    def line(self, line: bytes) -> bool:
        """Take a line of text in; return whether it is a sample."""
        found = _LINE.fullmatch(line.rstrip(b"\r\n"))
        if found is None:
            return False
        labels = dict(_LABEL.findall((found[2] or b"").decode("utf-8", "replace")))
        at, value = float(found[4]), found[3].decode()
        try:
            self.take({"__name__": (found[1] or b"").decode(), **labels}, [(at / 1000 if at > _MS else at, value)])
        except ValueError:
            return False
        return True

    def progress(self) -> Iterator[dict[str, Any]]:
        """Yield each batch that was seen, as a progress event, in the order of queries and times."""
        for query, samples in self._queries.items():
            before: dict[str, float] = {}
            for number, at in enumerate(sorted(samples)):
                told = {SCRAPED: True, "id": query, "name": query, "runId": SCRAPED, "batchId": number}
                if samples[at] != before and (batch := _batch(at, samples[at])):
                    yield told | batch
                before = samples[at]


def samples_of(answer: dict[str, Any]) -> Iterator[dict[str, Any]] | None:
    """Return the batches in an answer of Prometheus's API; None for other documents."""
    data = answer.get("data")
    if not isinstance(data, dict) or not isinstance(data.get("result"), list):
        return None
    scrapes = Scrapes()
    for series in data["result"]:
        scrapes.take(series["metric"], series.get("values") or [series["value"]])
    return scrapes.progress()


def _batch(at: float, seen: dict[str, float]) -> dict[str, Any]:
    """Return what the gauges show of a batch that ended by a time; empty if none has run."""
    lasted_s, rate = seen.get("latency", 0.0) / 1000, seen.get("processingrate_total", 0.0)
    if not lasted_s > 0 or not math.isfinite(rate):
        return {}
    began = datetime.fromtimestamp(at - lasted_s, UTC).isoformat(timespec="milliseconds")
    told: dict[str, Any] = {"timestamp": began, "durationMs": {"triggerExecution": 1000 * lasted_s}}
    told["numInputRows"] = round(rate * lasted_s)
    if (arriving := seen.get("inputrate_total", 0.0)) > 0:
        told["inputRowsPerSecond"] = arriving
    if "states_rowstotal" in seen:
        rows, size = seen["states_rowstotal"], seen.get("states_usedbytes", 0.0)
        told["stateOperators"] = [{"numRowsTotal": rows, "memoryUsedBytes": size}]
    return told
