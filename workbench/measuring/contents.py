"""What a journal contains, measurement by measurement, and which of it can be removed.

A journal is append-only, so it keeps lines that nothing reads any more: the probes of a measurement that was finished,
which holds them itself, or given up. `prune_journal` removes these, and the measurements that you name, unless plans
refer to them, because their study would have to measure these again.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.journal import Entry, Journal
from workbench.measuring.events import Deployed, Event, State, event_of, fold
from workbench.records import Machine, Measurement

_NAMED = 5  # measurements that an error lists
_TEXTS = ("query", "testbed", "started_at")  # names of a measurement's texts

References = Mapping[tuple[object, ...], tuple[str, ...]]
"""Names of the files that contain a measurement, by what distinguishes it from every other."""


@dataclass(frozen=True)
class Recorded:
    """What a journal contains of one measurement, and the budget and machine that it was last deployed on."""

    key: str
    state: State
    budget: Budget
    machine: Machine
    size: int  # bytes of the measurement's lines
    spare: int  # bytes of those lines that nothing reads any more

    @property
    def last(self) -> Measurement | None:
        """The last finished measurement."""
        return self.state.finished[-1] if self.state.finished else None

    @property
    def open_probes(self) -> int:
        """Number of probes that the next run continues after."""
        return len(self.state.history) + len(self.state.load_curve)


@dataclass(frozen=True)
class Pruning:
    """What is removed from a journal; sizes are in bytes."""

    spare_lines: int  # lines that nothing reads any more
    spare_size: int
    removed: tuple[Recorded, ...]  # measurements removed with all their lines
    kept: tuple[tuple[Recorded, tuple[str, ...]], ...]  # measurements that stay, with the files that refer to them
    size: int


def read_contents(journal: Journal) -> tuple[Recorded, ...]:
    """Read the measurements in `journal`, in the order in which they began."""
    return _contents(journal.entries())


def _find(held: Sequence[Recorded], name: str) -> tuple[Recorded, ...]:
    """Return the measurements whose key, or the digest at its end, begins with `name`."""
    found = tuple(one for one in held if one.key.startswith(name) or one.key.rpartition("/")[2].startswith(name))
    if not found or not name:
        known = ", ".join(one.key for one in held[:_NAMED]) or "nothing"
        more = f" and {len(held) - _NAMED} more" if len(held) > _NAMED else ""
        raise WorkbenchError(
            f"The journal has no measurement whose key begins with {name!r}; it has {known}{more}. List all with "
            "workbench journal list."
        )
    return found


def find_recorded(held: Sequence[Recorded], name: str) -> Recorded:
    """Return the only measurement whose key, or the digest at its end, begins with `name`."""
    found = _find(held, name)
    if len(found) > 1:
        raise WorkbenchError(
            f"{name!r} means {len(found)} measurements: {', '.join(one.key for one in found[:_NAMED])}"
            f"{', ...' if len(found) > _NAMED else ''}. Give more of the key."
        )
    return found[0]


def read_references(files: Iterable[Path]) -> References:
    """Read which measurements the plans among `files` contain; skip other files."""
    found: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for file in files:
        for run in _runs(file):
            found[_identity(run)].append(file.name)
    return {identity: tuple(dict.fromkeys(names)) for identity, names in found.items()}


def files_referring(one: Recorded, plans: References) -> tuple[str, ...]:
    """Return the names of the files that contain a measurement of `one`; `plans` are from `read_references`."""
    held = (_identity({**vars(run), "budget": asdict(run.budget)}) for run in one.state.finished)
    return tuple(dict.fromkeys(name for identity in held for name in plans.get(identity, ())))


def prune_journal(
    journal: Journal,
    names: Sequence[str] = (),
    before: date | None = None,
    plans: References | None = None,
    *,
    remove: bool = False,
) -> Pruning:
    """Determine what can be removed from `journal`, and with `remove` also remove it.

    Measurements whose keys begin with one of `names` are removed as a whole, as are those of which the last finished
    one was begun `before` this day (UTC). Those in `plans` stay.
    """
    would: list[Pruning] = []

    def choose(lines: Sequence[Entry]) -> Collection[int]:
        places, pruning = _chosen(lines, names, before, plans or {})
        would.append(pruning)
        return places

    if remove:
        journal.prune(choose)
    if not would:  # nothing is removed, or there is no file
        choose(journal.entries())
    return would[0]


def _chosen(
    lines: Sequence[Entry], names: Sequence[str], before: date | None, plans: References
) -> tuple[set[int], Pruning]:
    held = _contents(lines)
    asked = {one.key for name in names for one in _find(held, name)}
    if before is not None:
        asked |= {one.key for one in held if one.last is not None and one.last.started_at[:10] < before.isoformat()}
    kept = tuple((one, files) for one in held if one.key in asked and (files := files_referring(one, plans)))
    gone = asked - {one.key for one, _ in kept}
    spare = _spare(lines)
    whole = {place for place, line in enumerate(lines) if line.key in gone}
    rest = spare - whole
    rest_size, size = (sum(lines[place].size for place in places) for places in (rest, spare | whole))
    removed = tuple(one for one in held if one.key in gone)
    return spare | whole, Pruning(len(rest), rest_size, removed, kept, size)


def _contents(lines: Sequence[Entry]) -> tuple[Recorded, ...]:
    spare = _spare(lines)
    events: dict[str, list[Event]] = defaultdict(list)
    sizes, spares = Counter[str](), Counter[str]()
    deployed: dict[str, Deployed] = {}
    for place, line in enumerate(lines):
        key = line.key
        sizes[key] += line.size
        if place in spare:
            spares[key] += line.size
            if line.kind != "deployed":  # the finished measurement contains the rest
                continue
        event = event_of(line)
        if isinstance(event, Deployed):
            deployed[key] = event
        if event is not None and place not in spare:
            events[key].append(event)
    held = []
    for key, size in sizes.items():
        state = fold(events[key])
        last = state.finished[-1] if state.finished else deployed.get(key)
        if last is not None:  # lines of another kind are not measurements
            held.append(Recorded(key, state, last.budget, last.machine, size, spares[key]))
    return tuple(held)


def _spare(lines: Sequence[Entry]) -> set[int]:
    """Return the places of lines that nothing reads any more: a later line of the same measurement has ended it."""
    ended, spare = set[str](), set[int]()
    for place, line in reversed(list(enumerate(lines))):
        if line.key in ended and line.kind in {"deployed", "probe", "load", "given up"}:
            spare.add(place)
        if line.kind in {"finished", "given up"}:
            ended.add(line.key)
    return spare


def _runs(file: Path) -> Iterable[Mapping[str, Any]]:
    """Read the runs in a file of plans, or the run in a file of a measurement; empty for any other file."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return ()
    if not isinstance(document, Mapping):
        return ()
    lists = [found for name in ("runs", "sweep") if isinstance(found := document.get(name), list)]
    runs = [document, *(run for found in lists for run in found)]
    return [run for run in runs if isinstance(run, Mapping) and all(isinstance(run.get(name), str) for name in _TEXTS)]


def _identity(run: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what distinguishes the measurement in a document from every other."""
    return (*(run.get(name) for name in _TEXTS), json.dumps(run.get("budget"), sort_keys=True))
