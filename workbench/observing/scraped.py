"""Batches of streaming queries from what Prometheus stored of Spark's metrics (spark.sql.streaming.metricsEnabled).

Two forms are read: the answer of Prometheus's API to a range of time, and samples as lines of text with their times
(OpenMetrics, ``promtool tsdb dump``). Spark's gauges hold what the last batch was, so a batch is seen where they change
between two scrapes. Of batches between them nothing is known, and when each began is known to a scrape.
"""

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

_GAUGE = re.compile(
    r"(?:.*spark_streaming_(?P<query>.+?)_|.*structured_streaming.*?_)"
    r"(?P<what>inputRate_total|processingRate_total|latency|states_rowsTotal|states_usedBytes)(?:_Value|_Number)?",
    re.IGNORECASE,
)
_LINE = re.compile(rb"\s*([A-Za-z_:][\w:]*)?\s*(\{.*\})?\s+(\S+)\s+(\d{9,13}(?:\.\d+)?)\s*")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
SCRAPED = "scraped"
"""Key that marks a progress event made of a scrape."""

_MS = 1e11  # larger times are milliseconds
_NAMES = ("__name__", "query_name")


class Scrapes:
    """Samples so far of the gauges of streaming queries."""

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
