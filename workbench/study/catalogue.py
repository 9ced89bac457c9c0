"""Find the query a user names: ``nexmark:q5`` or ``module:function``."""

import importlib
import inspect
import sys
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import WorkbenchError
from workbench.workload import Dataset, OutputMode, Query, check_dataset, nexmark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def find_query(
    name: str, dataset: str | None = None, event_time: str | None = None, output_mode: OutputMode | None = None
) -> Query:
    """Return the query called `name`, fed from `dataset` where one is given.

    Parameters
    ----------
    name
        ``"nexmark:QUERY"``, or ``"module:name"`` of a function from streaming DataFrame to streaming DataFrame (it
        needs a data set) or of a `Query`. Modules are looked for in the current folder first, and read again there.
    dataset, event_time
        Path of the data and its event-time column, which is the query's own by default.
    output_mode
        Replaces the query's own.

    Raises
    ------
    WorkbenchError
        When there is no such query, its data set is missing or does not fit it, or an event time is given alone.
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise WorkbenchError(
            f"The query {name!r} is not of the form nexmark:QUERY or module:function; "
            "for example nexmark:q5, or jobs:orders for the function orders in jobs.py."
        )
    if module == "nexmark":
        query = _fed(nexmark.query(attribute), dataset, event_time)
    else:
        query = _users(name, module, attribute, dataset, event_time)
    return replace(query, output_mode=output_mode) if output_mode else query


def recorded_query(name: str, table: str) -> Query:
    """Return a stand-in for a query of which only measured rates are known: those in the file `table`."""
    return Query(name, _unknown, Dataset(table, "csv"))


def _unknown(_: "DataFrame") -> "DataFrame":
    raise WorkbenchError("Of a recorded query only its rates are known; it cannot be run.")


def _users(name: str, module: str, attribute: str, dataset: str | None, event_time: str | None) -> Query:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    _forget(module)
    try:
        loaded = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever the user's module does when it is imported
        raise WorkbenchError(
            f"The module {module!r} of query {name!r} cannot be imported: {type(error).__name__}: {error}. "
            + (
                "Run the command in the folder of its file, or install it."
                if isinstance(error, ImportError)
                else "Fix it; what it does as a script belongs under if __name__ == '__main__'."
            )
        ) from error
    found = getattr(loaded, attribute, None)
    if isinstance(found, Query):
        return _fed(found, dataset, event_time)
    if not callable(found):
        functions = [key for key, value in inspect.getmembers(loaded, inspect.isfunction) if not key.startswith("_")]
        near = get_close_matches(attribute, functions, n=1)
        hint = f"Did you mean {module}:{near[0]}? " if near else ""
        raise WorkbenchError(
            f"The module {module!r} has no function {attribute!r}. {hint}"
            f"Its functions are {', '.join(functions) or 'none'}."
        )
    if not dataset:
        raise WorkbenchError(
            f"The query {name!r} is a function, so it needs data to read. Give the path of a data set, and its "
            "event-time column if the query uses event time.",
            settings=("dataset", "event_time"),
        )
    data = _checked(dataset, event_time)
    return Query(name, found, data, event_time)


def _fed(query: Query, dataset: str | None, event_time: str | None) -> Query:
    """Return `query` with the rows that are asked for, or its own."""
    if dataset:
        return query.reading(_checked(dataset, event_time or query.event_time))
    if event_time:
        raise WorkbenchError(
            f"The event time {event_time!r} is a column of a data set, and none is given: the query {query.name!r} "
            "feeds itself. Give a data set, or leave out the event time.",
            settings=("dataset", "event_time"),
        )
    if isinstance(query.dataset, Dataset):
        check_dataset(query.dataset, query.event_time)
    return query


def _checked(path: str, event_time: str | None) -> Dataset:
    data = Dataset.at(path, event_time)
    check_dataset(data, event_time)
    return data


def _forget(module: str) -> None:
    """Have a module of the user's folder imported again: in a notebook it may have been edited since the last time."""
    importlib.invalidate_caches()
    file = Path(getattr(sys.modules.get(module), "__file__", None) or "/")
    if Path.cwd() in file.parents and "site-packages" not in file.parts:
        del sys.modules[module]
