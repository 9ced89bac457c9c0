"""What is measured: a streaming query and its input rows.

A query is a function from a streaming DataFrame to a streaming DataFrame. Its rows come from a `Generator` (made from
row numbers) or a `Dataset` (data at rest, replayed in a loop). Both take event times from an `EventClock`: a row's
event time is its due time minus its own lateness. A function of several streaming DataFrames has an `Input` for each.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from workbench.checks import require
from workbench.errors import WorkbenchError
from workbench.reading import is_there

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

ENCODED = b"workbench.encoded"
"""Key in the metadata of a captured sample's columns: the encoding of the topic's values, if not bytes or plain JSON.

``avro``, or ``framed``: JSON behind the wire format of a schema registry.
"""

Format = Literal["parquet", "csv", "json"]
OutputMode = Literal["append", "update", "complete"]


@dataclass(frozen=True)
class EventClock:
    """Maps row numbers to the event time at which they are due."""

    origin_us: int  # when row `first` is due, since the epoch, UTC
    first: int
    spacing_us: float  # by which each further row is later

    def times_us(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Event times of `rows` (any shape), microseconds since the epoch."""
        offsets: npt.NDArray[np.int64] = np.floor((rows - self.first) * self.spacing_us).astype(np.int64)
        return self.origin_us + offsets


@runtime_checkable
class Generator(Protocol):
    """Makes rows from row numbers, so that any partition can make any range and replays are exact."""

    def schema(self) -> "pa.Schema":
        """Columns of the batches."""
        ...

    def batches(self, first: int, last: int, clock: EventClock) -> "Iterator[pa.RecordBatch]":
        """Rows `first` to `last` (exclusive) in order, with event times from `clock`."""
        ...


@dataclass(frozen=True)
class Unread:
    """A user's function that is known from the text of its module: nothing of it was imported, so it cannot run."""

    module: str
    file: Path
    is_function: bool  # whether the text defines it as a function; otherwise it may be a `Query`, with its data

    def __call__(self, *_: object) -> "DataFrame":
        """Refuse to run."""
        raise WorkbenchError(f"The module {self.module!r} was read, not imported, so its query cannot run.")


_TOPIC = "kafka:"
_LONGEST_NAME = 255  # characters of a file's name
_SHARES = 1e-3  # by which the sum of shares may differ from 1


@dataclass(frozen=True)
class Dataset:
    """Data at rest: a file or a folder of files."""

    path: str
    format: Format  # CSV with a header, JSON with one object a line
    event_time: str | None = None  # the event-time column, replaced on replay; None if the query has none

    def __post_init__(self) -> None:
        require(
            self.format in get_args(Format),
            f"The dataset {self.path!r} has format {self.format!r}; use one of {', '.join(get_args(Format))}.",
        )

    @classmethod
    def at(cls, path: str, event_time: str | None = None) -> "Dataset":
        """Derive the format from the suffix of `path`, or of the first known file in it."""
        if path.startswith(_TOPIC):
            raise WorkbenchError(
                "A topic is not a data set here. Capture a sample with workbench capture TOPIC FILE, and name FILE."
            )
        place = Path(path)
        if not is_there(place):
            raise WorkbenchError(
                f"The dataset {path!r} does not exist; name a Parquet, CSV or JSON file or folder. Relative paths "
                f"begin at the folder in which you run this.{_meant(place)}"
            )
        files = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.suffix and p.is_file())
        endings = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
        for file in files:
            if file.suffix.lower() in endings:
                return cls(path, endings[file.suffix.lower()], event_time)  # type: ignore[arg-type]
        raise WorkbenchError(
            f"The dataset {path!r} holds no .parquet, .csv, .json, .jsonl or .ndjson file; convert it to one."
        )


def _meant(place: Path) -> str:
    """Return a question for what is in the same folder and has almost this name; "" without."""
    with suppress(OSError, ValueError):
        near = get_close_matches(place.name[:_LONGEST_NAME], (one.name for one in place.parent.iterdir()), n=1)
        return f" Did you mean {str(place.with_name(near[0]))!r}?" if near else ""
    return ""


@dataclass(frozen=True)
class Input:
    """One of the inputs of a query."""

    name: str  # the argument of the query's function that it feeds
    dataset: Dataset  # its rows and their event-time column
    share: float | None = None  # share of the commanded rate, above 0; None: its share of the rows of all data sets
    renew: tuple[str, ...] = ()  # columns with new values in each pass over the data, such as the numbers of orders


@dataclass(frozen=True)
class Query:
    """A streaming query and its input, or inputs.

    `build` takes the streaming input DataFrame, or one for each input in their order, and returns the streaming output
    DataFrame. A query whose state is unbounded, as in a join without watermarks, has no maximum rate, only a rate at a
    given size of the state.
    """

    name: str  # as the user calls it, for example "nexmark:q5"
    build: "Callable[..., DataFrame]"
    dataset: Dataset | Generator | tuple[Input, ...]  # the source of its rows, or its inputs if `build` takes several
    event_time: str | None = None  # the input column, replaced on replay; None: the data set's. Inputs have their own
    output_mode: OutputMode = "append"
    unbounded_state: bool = False  # whether the state grows with every record
    topic: str | None = None  # kafka://HOST:PORT/TOPIC, read with Spark's source; `dataset` gives the columns then
    sink: "Callable[..., Any] | None" = None  # what foreachBatch calls with a batch and its number, if the job does so

    def __post_init__(self) -> None:
        require(
            self.output_mode in get_args(OutputMode),
            f"Query {self.name!r} has output mode {self.output_mode!r}; use one of {', '.join(get_args(OutputMode))}.",
        )
        if self.event_time is None and isinstance(self.dataset, Dataset):
            object.__setattr__(self, "event_time", self.dataset.event_time)
        if isinstance(self.dataset, tuple):
            _check_inputs(self.name, self.dataset)

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs, if the query's function takes several."""
        return self.dataset if isinstance(self.dataset, tuple) else ()

    def reading(self, dataset: Dataset) -> "Query":
        """Return the same query fed from `dataset`."""
        return replace(self, dataset=dataset, event_time=dataset.event_time or self.event_time)


def _check_inputs(query: str, inputs: tuple[Input, ...]) -> None:
    names = [one.name for one in inputs]
    if len(set(names)) < len(names) or not names:
        raise WorkbenchError(
            f"The inputs of query {query!r} are {', '.join(map(repr, names)) or 'none'}; there must be at least one, "
            "each with another name."
        )
    given = [one.share for one in inputs if one.share is not None]
    whole = len(given) == len(inputs) and min(given) > 0 and math.isclose(sum(given), 1, abs_tol=_SHARES)
    if given and not whole:
        shown = ", ".join(f"{one.name} {'none' if one.share is None else f'{one.share:g}'}" for one in inputs)
        raise WorkbenchError(
            f"The shares of the rate of the inputs of query {query!r} are: {shown}; each must be above 0, and their "
            "sum 1. Correct them, or leave all of them out: then they are those of the rows."
        )
