"""Stand-ins for Spark's streams in a script: each records how it is used, and runs nothing."""

import uuid
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.redaction import HIDDEN, is_secret, redacted

if TYPE_CHECKING:
    from workbench.workload.recorder import Recorder

FILES = ("csv", "json", "orc", "parquet", "text", "xml")
_POSITIONAL = {
    "load": ("path", "format", "schema"),
    "start": ("path", "format", "outputMode", "partitionBy", "queryName"),
    "toTable": ("tableName", "format", "outputMode", "partitionBy", "queryName"),
    "changes": ("table",),
    **dict.fromkeys(FILES, ("path", "schema")),
}
_ENDS = {"load", "table", "changes", "start", "toTable", *FILES}
_NO_OPTIONS = {
    "format",
    "schema",
    "outputMode",
    "queryName",
    "trigger",
    "foreach",
    "foreachBatch",
    "table",
    "tableName",
}


def shown(name: str, value: object) -> str:
    """Write an option's value without a secret."""
    return HIDDEN if is_secret(name) else redacted(str(value))


def nothing(*_: object, **__: object) -> None:
    """Do nothing."""


class Chain:
    """Replaces ``spark.readStream`` and a DataFrame's ``writeStream``: records all calls until its `end`.

    That is called with the last method's name, what was given by the names of parameters, and the options.
    """

    def __init__(self, end: Callable[[str, dict[str, Any], dict[str, str]], Any]) -> None:
        self._end = end
        self._given: dict[str, Any] = {}
        self._options: dict[str, str] = {}

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return partial(self._called, method)

    def _called(self, method: str, *values: Any, **named: Any) -> Any:  # noqa: ANN401 - Spark's
        if method == "option":
            values, named = (), dict([(values or tuple(named.values()))])
        elif method == "trigger":
            named = {"trigger": ", ".join(f"{how}={value}" for how, value in named.items() if value is not None)}
        given = {**dict(zip(_POSITIONAL.get(method, (method,)), values, strict=False)), **named}
        for name, value in given.items():
            if name in _NO_OPTIONS:
                self._given[name] = value or self._given.get(name)
            elif value is not None and name not in {"partitionBy", "clusterBy", "name", "func", "f"}:
                self._options[name] = shown(name, value)
        if "func" in named or "f" in named:
            self._given[method] = named.get("func", named.get("f"))
        return self._end(method, dict(self._given), dict(self._options)) if method in _ENDS else self


class Started:
    """Replaces a ``StreamingQuery``."""

    isActive, lastProgress, status = False, None, {"message": "recorded", "isTriggerActive": False}  # noqa: N815

    def __init__(self, recorder: "Recorder", name: str) -> None:
        self._recorder, self.name = recorder, name or None
        self.id = self.runId = str(uuid.uuid4())
        self.awaitTermination = recorder.wait
        self.stop = self.explain = self.exception = nothing

    def processAllAvailable(self) -> None:  # noqa: N802
        """Note that nothing is processed."""
        self._recorder.note("processAllAvailable() waits for rows, and nothing runs: what it waits for is not there")

    @property
    def recentProgress(self) -> list[object]:  # noqa: N802
        """Progress of the query: none, which is noted."""
        self._recorder.note("recentProgress is empty: nothing runs")
        self._recorder.wait()
        return []


class Streams:
    """Replaces ``spark.streams``."""

    def __init__(self, recorder: "Recorder") -> None:
        self._recorder = recorder
        self.active: list[Started] = []
        self.awaitAnyTermination = recorder.wait
        self.removeListener = self.resetTerminated = nothing

    def addListener(self, listener: object) -> None:  # noqa: N802
        """Note that the listener hears nothing."""
        self._recorder.note(f"the listener {type(listener).__name__} hears nothing: nothing runs")

    def get(self, id: str) -> Started:  # noqa: A002
        """Return a query, whatever its id."""
        return Started(self._recorder, id)
